package deletes

import (
	"context"
	"encoding/binary"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/keys"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/spill"
)

// keyMemory divides what the keys of equality deletes may hold.
//
//	pool ── keys (half of the limit, less of a small one) ── key tables
//	         └─ workspace (a quarter of it or more), prepaid: no spilling step can fail
//	            because others took the memory meanwhile
//	             ├── sieve of the spilled keys (half of it)
//	             ├── buffers of the partitions of keys and of candidates
//	             └── tables of the partition at hand
//
// Without spilling, key tables may take what the pool has.
type keyMemory struct {
	tables    *mem.Pool
	prepaid   *mem.Reservation
	workspace *mem.Pool // counts inside prepaid
}

// partitions is how many partitions to make for a number of keys, and how
// large their buffers are: so many that the keys of one fit into a quarter of
// the workspace, as far as the buffers of all need no more than an eighth.
func (m *keyMemory) partitions(keys int64) (n, block int) {
	workspace := m.workspace.Limit()
	for n = minPartitions; n < maxPartitions && keys/int64(n)*bytesPerKey > workspace/4; {
		n *= 2
	}
	for n > minPartitions && workspace/int64(16*n) < minBlock {
		n /= 2
	}
	return n, int(max(minBlock, min(maxBlock, workspace/int64(16*n))))
}

const (
	minPartitions, maxPartitions = 32, 256
	// bytesPerKey is about what a key takes up in a table.
	bytesPerKey = 64
	// A partition that does not fit is split into as many as make each of them
	// fit, within these bounds.
	minSplit, maxSplit = 4, 64
	// Two keys of one hash never part; a table of them is worked off in pieces.
	maxSplitLevel = 4

	// scanNeeds is what plan and decoding use beside the keys to be fast.
	scanNeeds = 48 << 20 // 48 MiB

	minBlock     = 4 << 10   // 4 KiB: below, the disk is asked too often
	maxBlock     = 64 << 10  // 64 KiB: above, nothing is gained
	minWorkspace = 768 << 10 // 768 KiB: buffers of minBlock, and two thirds for sieve and tables
	maxWorkspace = 256 << 20 // 256 MiB
	// A smaller workspace makes every partition be split.
	usefulWorkspace = 8 << 20 // 8 MiB
)

func newKeyMemory(pool *mem.Pool, spills bool) (*keyMemory, error) {
	if !spills {
		return &keyMemory{tables: pool}, nil
	}
	limit := pool.Limit()
	share := max(limit/4, min(limit/2, limit-scanNeeds))
	workspace := min(share, max(minWorkspace, min(share/2, usefulWorkspace), min(share/4, maxWorkspace)))
	m := &keyMemory{
		tables:    pool.Child("equality-delete keys", share),
		workspace: mem.NewPool("workspace for spilled delete keys", workspace),
	}
	m.prepaid = m.tables.Reserve("workspace for spilled delete keys")
	if err := m.prepaid.TryGrow(workspace); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *keyMemory) close() {
	if m == nil || m.prepaid == nil {
		return
	}
	m.prepaid.Free()
	_ = m.tables.Close() // what leaked would show in its parent
}

// overflow holds the keys that did not fit in memory, of all tables together:
//
//	record  uvarint table number, uvarint sequence number, canonical key
//
// in the partition that the key's hash gives. The sieve tells of most keys of
// a data file that they are not here.
type overflow struct {
	charge *mem.Reservation
	n      int // partitions
	block  int // bytes of the buffer of each
	parts  *spill.Partitions
	sieve  *keys.Sieve
}

// openOverflow makes the overflow when the first table needs it.
func (r *Resolver) openOverflow(ctx context.Context) (*overflow, error) {
	r.spillMu.Lock()
	defer r.spillMu.Unlock()
	if r.overflow != nil {
		return r.overflow, nil
	}
	dir, err := r.cfg.Spill(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	expected := r.expected
	r.mu.Unlock()
	o := &overflow{charge: r.memory.workspace.Reserve("spilled delete keys")}
	o.n, o.block = r.memory.partitions(expected)
	if o.parts, err = dir.NewPartitions(o.n, o.block, o.charge); err != nil {
		o.charge.Free()
		return nil, err
	}
	if o.sieve, err = keys.NewSieve(expected, r.memory.workspace.Limit()/2, r.cfg.Alloc, o.charge); err != nil {
		_ = o.parts.Close() // empty
		o.charge.Free()
		return nil, err
	}
	r.overflow = o
	return o, nil
}

func (o *overflow) close() error {
	o.sieve.Free()
	err := o.parts.Close()
	o.charge.Free()
	return err
}

// add writes the keys of rows from one on.
func (o *overflow) add(ctx context.Context, table int, w *keys.Workspace, rows *keys.Rows, from int, sequence int64) error {
	head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(table)), uint64(sequence))
	return o.sieve.Add(w, rows, from, func(_ int, key []byte, hash uint64) error {
		return o.parts.Append(ctx, partitionOf(hash, 0, o.n), head, key)
	})
}

func partitionOf(hash uint64, level, partitions int) int {
	return int(keys.Scatter(hash, level) >> 32 * uint64(partitions) >> 32)
}

// keyRecord is a record of the overflow.
type keyRecord struct {
	table    uint64
	sequence int64
	key      []byte
}

func parseKeyRecord(record []byte) (k keyRecord, err error) {
	var sequence uint64
	if k.table, record, err = uvarint(record); err != nil {
		return k, err
	}
	if sequence, record, err = uvarint(record); err != nil {
		return k, err
	}
	k.sequence, k.key = int64(sequence), record
	return k, nil
}

func uvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, errs.New(errs.Corrupt, "a spilled record ends early")
	}
	return v, b[n:], nil
}
