package deletes

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/keys"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/task"
	"github.com/icebergexec/icebergexec/spill"
)

// What spilled is resolved into positions for many data files at a time, a
// wave, before the first of them is read:
//
//	key columns of the wave's files ──> sieve ──> candidates, partitioned as the keys are
//	                                                 │
//	spilled keys of partition p ──> tables ── look up ┴──> positions ──> bitmap per data file
//	spilled positions of the files' paths ──────────────────────────────────┘
//
// so the rows of a file keep their order, and what is in memory at a time is
// one partition of keys and the bitmaps. A partition that does not fit is
// split by fresh bits of the hash, and one that splitting does not help is
// worked off piece by piece.

// bytesPerWaveRow is how many bytes of the memory limit a wave needs for each
// row of its data files: a bitmap takes up at most a bit for each row, is
// charged twice, and all of them shall need an eighth of the memory at most.
const bytesPerWaveRow = 2

// member is a data file of a wave.
type member struct {
	task   *plan.Task
	tables []*keyTable  // those with spilled keys
	files  map[int]bool // the numbers of position-delete files with spilled positions
	charge *mem.Reservation
	set    *positionSet
}

// spilledPositions returns the positions of a task's data file that spilled
// keys and positions delete, for the caller to free.
func (r *Resolver) spilledPositions(ctx context.Context, t *plan.Task) (positionIndex, error) {
	select {
	case r.waves <- struct{}{}: // one wave at a time
		defer func() { <-r.waves }()
	case <-ctx.Done():
		return positionIndex{}, context.Cause(ctx)
	}
	if index, known := r.takeResolved(t); known {
		return index, nil
	}
	if err := r.runWaves(ctx, t); err != nil {
		return positionIndex{}, err
	}
	index, _ := r.takeResolved(t)
	return index, nil
}

// takeResolved hands over what a wave has prepared for a task.
func (r *Resolver) takeResolved(t *plan.Task) (positionIndex, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	index, known := r.resolved[t]
	delete(r.resolved, t)
	return index, known
}

func (r *Resolver) isResolved(t *plan.Task) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.resolved[t]
	return known
}

// runWaves resolves the task and as many others as there is memory for.
func (r *Resolver) runWaves(ctx context.Context, t *plan.Task) error {
	for {
		more, err := r.tasks.upcoming(ctx, t, r.waveRows-t.Data.RecordCount)
		if err != nil {
			return err
		}
		err = r.runWave(ctx, t, more)
		if errs.CodeOf(err) != errs.MemoryLimit || len(more) == 0 {
			return err
		}
		r.waveRows /= 4 // the bitmaps were too large after all
	}
}

func (r *Resolver) runWave(ctx context.Context, t *plan.Task, more []*plan.Task) (err error) {
	var members []*member
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range members {
			if err != nil {
				m.charge.Free()
				continue
			}
			r.resolved[m.task] = positionIndex{charge: m.charge, byPath: map[string]*positionSet{m.task.Data.Path: m.set}}
		}
	}()
	for _, other := range append([]*plan.Task{t}, more...) {
		if r.isResolved(other) {
			continue
		}
		m, err := r.memberOf(ctx, other)
		if err != nil {
			if other == t || ctx.Err() != nil {
				return err
			}
			continue // it gets the error when its turn has come
		}
		if len(m.tables) > 0 || len(m.files) > 0 {
			m.charge = r.cfg.Pool.Reserve("deleted positions")
			members = append(members, m)
		}
	}
	if err := r.addSpilledPositions(ctx, members); err != nil {
		return err
	}
	return r.lookUp(ctx, members)
}

// memberOf reads a task's shared delete files and finds out which of them have
// something on disk.
func (r *Resolver) memberOf(ctx context.Context, t *plan.Task) (*member, error) {
	c, err := classify(t)
	if err != nil {
		return nil, err
	}
	files, err := r.read(ctx, c.shared, c.equality)
	if err != nil {
		return nil, err
	}
	m := &member{task: t, files: map[int]bool{}, set: &positionSet{bitmap: roaring64.New()}}
	for _, f := range files {
		switch {
		case !f.spilled:
		case f.table == nil:
			m.files[f.number] = true
		case !slices.Contains(m.tables, f.table):
			m.tables = append(m.tables, f.table)
		}
	}
	return m, nil
}

// lookUp finds the members' rows whose keys are on disk.
func (r *Resolver) lookUp(ctx context.Context, all []*member) (err error) {
	var members []*member
	for _, m := range all {
		if len(m.tables) > 0 {
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		return nil
	}
	dir, err := r.cfg.Spill(ctx)
	if err != nil {
		return err
	}
	charge := r.memory.workspace.Reserve("candidates for spilled delete keys")
	defer charge.Free()
	candidates, err := dir.NewPartitions(r.overflow.n, r.overflow.block, charge)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, candidates.Close()) }()
	if err := r.collect(ctx, members, candidates); err != nil {
		return err
	}
	j := &join{r: r, dir: dir, members: members, charge: charge, layouts: r.layouts(), touched: map[int]struct{}{}}
	for p := range r.overflow.n {
		if err := j.partition(ctx, 0, r.overflow.parts, candidates, p); err != nil {
			return err
		}
	}
	return nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// layouts are those of all tables by number.
func (r *Resolver) layouts() []*keys.Layout {
	r.mu.Lock()
	defer r.mu.Unlock()
	layouts := make([]*keys.Layout, len(r.tables))
	for _, t := range r.tables {
		layouts[t.number] = t.layout
	}
	return layouts
}

// collect writes the rows of the members whose keys may be among the spilled
// ones:
//
//	record  uvarint table number, uvarint member, uvarint position, canonical key
func (r *Resolver) collect(ctx context.Context, members []*member, to *spill.Partitions) error {
	group := task.NewGroup(ctx)
	var next atomic.Int64
	for range min(r.readers, len(members)) {
		group.Go("look up delete keys", func(ctx context.Context) error {
			w := &keys.Workspace{}
			for {
				i := int(next.Add(1)) - 1
				if i >= len(members) {
					return nil
				}
				if err := r.collectFile(ctx, w, i, members[i], to); err != nil {
					return errs.Wrap(err, "read", members[i].task.Data.Path)
				}
			}
		})
	}
	return group.Wait()
}

func (r *Resolver) collectFile(ctx context.Context, w *keys.Workspace, number int, m *member, to *spill.Partitions) error {
	var fields []iceberg.NestedField
	rows := make([]*keys.Rows, len(m.tables))
	for i, t := range m.tables {
		fields = appendFields(fields, t.fields)
		rows[i] = t.layout.NewRows()
	}
	var head []byte
	var leaves []arrow.Array
	return r.cfg.ReadKeys(ctx, m.task, fields, func(window batch.Range, column func(fieldID int) (arrow.Array, error)) error {
		for i, t := range m.tables {
			leaves = leaves[:0]
			for _, f := range t.fields {
				leaf, err := column(f.ID)
				if err != nil {
					return err
				}
				leaves = append(leaves, leaf)
			}
			if err := rows[i].Bind(leaves); err != nil {
				return err
			}
			err := r.overflow.sieve.Pass(w, rows[i], func(row int, key []byte, hash uint64) error {
				head = binary.AppendUvarint(head[:0], uint64(t.number))
				head = binary.AppendUvarint(head, uint64(number))
				head = binary.AppendUvarint(head, uint64(window.Start)+uint64(row))
				return to.Append(ctx, partitionOf(hash, 0, r.overflow.n), head, key)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// candidate is a record that collect wrote.
type candidate struct {
	table, member, position uint64
	key                     []byte
}

func parseCandidate(record []byte) (c candidate, err error) {
	for _, v := range []*uint64{&c.table, &c.member, &c.position} {
		if *v, record, err = uvarint(record); err != nil {
			return c, err
		}
	}
	c.key = record
	return c, nil
}

// join looks the candidates of a wave up, partition by partition.
type join struct {
	r       *Resolver
	dir     *spill.Dir
	members []*member
	charge  *mem.Reservation
	layouts []*keys.Layout

	run       []uint64 // positions of runMember not yet in its bitmap
	runMember uint64
	touched   map[int]struct{} // members whose bitmaps grew
}

// partition resolves one partition of the keys and of the candidates.
func (j *join) partition(ctx context.Context, level int, from, candidates *spill.Partitions, p int) error {
	if candidates.Records(p) == 0 || from.Records(p) == 0 {
		return nil
	}
	maySplit := level < maxSplitLevel && !j.r.cfg.noSplit
	for mark := new(spill.Mark); ; {
		tables, complete, err := j.load(ctx, from, p, mark)
		if err == nil && (complete || !maySplit) {
			err = j.probe(ctx, tables, candidates, p)
		}
		for _, t := range tables {
			t.Free()
		}
		if err != nil || complete {
			return err
		}
		if maySplit {
			if done, err := j.split(ctx, level+1, from, candidates, p); done || err != nil {
				return err
			}
			// It does not help: piece by piece, from the beginning.
			maySplit, mark = false, new(spill.Mark)
		}
	}
}

// load puts keys from the mark on into tables, as many as fit.
func (j *join) load(ctx context.Context, from *spill.Partitions, p int, mark *spill.Mark) (tables map[uint64]*keys.Table, complete bool, err error) {
	tables = map[uint64]*keys.Table{}
	complete = true
	loaded, records := 0, from.Records(p)
	err = from.From(ctx, p, mark, func(record []byte) error {
		k, err := parseKeyRecord(record)
		if err != nil {
			return err
		}
		t := tables[k.table]
		if t == nil {
			if k.table >= uint64(len(j.layouts)) {
				return errs.New(errs.Corrupt, "a spilled record is of an unknown table")
			}
			t = keys.NewTable(j.layouts[k.table], j.r.cfg.Alloc, j.charge)
			tables[k.table] = t
			if len(j.layouts) == 1 {
				_ = t.Reserve(records) // it grows step by step where this is too much
			}
		}
		if err := t.AddEncoded(k.key, k.sequence); err != nil {
			if errs.CodeOf(err) == errs.MemoryLimit && loaded > 0 {
				complete = false
				return spill.ErrStop
			}
			return err
		}
		loaded++
		return nil
	})
	return tables, complete, err
}

// probe looks the candidates of a partition up in the tables.
func (j *join) probe(ctx context.Context, tables map[uint64]*keys.Table, candidates *spill.Partitions, p int) error {
	err := candidates.Each(ctx, p, func(record []byte) error {
		c, err := parseCandidate(record)
		if err != nil {
			return err
		}
		t := tables[c.table]
		if t == nil {
			return nil
		}
		hash, ok := t.Layout().Hash(c.key)
		if !ok || c.member >= uint64(len(j.members)) {
			return errs.New(errs.Corrupt, "a spilled record is damaged")
		}
		if sequence, found := t.Lookup(c.key, hash); found && sequence > j.members[c.member].task.Data.DataSequence {
			j.delete(c.member, c.position)
		}
		return nil
	})
	j.flush()
	if err != nil {
		return err
	}
	for i := range j.touched {
		m := j.members[i]
		if err := m.set.account(m.charge); err != nil {
			return err
		}
	}
	clear(j.touched)
	return nil
}

func (j *join) delete(member, position uint64) {
	if member != j.runMember || len(j.run) == cap(j.run) {
		j.flush()
		j.runMember = member
	}
	if j.run == nil {
		j.run = make([]uint64, 0, 1024)
	}
	j.run = append(j.run, position)
}

func (j *join) flush() {
	if len(j.run) > 0 {
		j.members[j.runMember].set.bitmap.AddMany(j.run)
		j.touched[int(j.runMember)] = struct{}{}
		j.run = j.run[:0]
	}
}

// split partitions a partition again by fresh bits of the hash and resolves
// the parts. done is false when that does not help, or there is no memory for
// the buffers.
func (j *join) split(ctx context.Context, level int, from, candidates *spill.Partitions, p int) (done bool, err error) {
	// A table takes up about twice the size of the records of its keys.
	free := max(1, j.r.memory.workspace.Available())
	parts := int(max(minSplit, min(maxSplit, 3*from.Bytes(p)/free)))
	subKeys, err := j.dir.NewPartitions(parts, minBlock, j.charge)
	if err != nil {
		return false, unlessMemory(err)
	}
	defer func() { err = firstError(err, subKeys.Close()) }()
	subCandidates, err := j.dir.NewPartitions(parts, minBlock, j.charge)
	if err != nil {
		return false, unlessMemory(err)
	}
	defer func() { err = firstError(err, subCandidates.Close()) }()
	again := func(source, to *spill.Partitions, key func(record []byte) (table uint64, key []byte, err error)) error {
		return source.Each(ctx, p, func(record []byte) error {
			table, key, err := key(record)
			if err != nil {
				return err
			}
			if table >= uint64(len(j.layouts)) {
				return errs.New(errs.Corrupt, "a spilled record is of an unknown table")
			}
			hash, ok := j.layouts[table].Hash(key)
			if !ok {
				return errs.New(errs.Corrupt, "a spilled record is damaged")
			}
			return to.Append(ctx, partitionOf(hash, level, parts), record, nil)
		})
	}
	if err := again(from, subKeys, func(record []byte) (uint64, []byte, error) {
		k, err := parseKeyRecord(record)
		return k.table, k.key, err
	}); err != nil {
		return false, err
	}
	for child := range parts {
		if subKeys.Bytes(child) > from.Bytes(p)/20*19 {
			return false, nil
		}
	}
	if err := again(candidates, subCandidates, func(record []byte) (uint64, []byte, error) {
		c, err := parseCandidate(record)
		return c.table, c.key, err
	}); err != nil {
		return false, err
	}
	for child := range parts {
		if err := j.partition(ctx, level, subKeys, subCandidates, child); err != nil {
			return false, err
		}
	}
	return true, nil
}

func unlessMemory(err error) error {
	if errs.CodeOf(err) == errs.MemoryLimit {
		return nil
	}
	return err
}
