package spill

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"unsafe"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// Partitions distribute records over a number of partitions that share one
// file, so that one descriptor serves them all. Records are appended, from any
// number of goroutines, and read back partition by partition in the order of
// each goroutine.
//
// Each partition owns extents of the file, which hold many blocks, so that what
// is kept in memory of a terabyte on disk is the buffers and little else.
type Partitions struct {
	file   *File
	charge *mem.Reservation
	block  int
	parts  []partition
}

type partition struct {
	mu      sync.Mutex
	buffer  []byte // what is not written yet, one block at most
	extents []extent
	records int64
	bytes   int64
}

// extent is a part of the file that holds blocks one after the other.
type extent struct{ offset, used, size int64 }

// extentBlocks is how many blocks an extent has room for.
const extentBlocks = 64

const extentCost = int64(unsafe.Sizeof(extent{}))

// NewPartitions makes n empty partitions that write blocks of about the given
// size. Their buffers are charged at once, so that spilling never fails for
// want of memory in the middle: charge holds n*block bytes more until Close.
func (d *Dir) NewPartitions(n, block int, charge *mem.Reservation) (*Partitions, error) {
	if err := charge.TryGrow(int64(n) * int64(block)); err != nil {
		return nil, err
	}
	file, err := d.NewFile()
	if err != nil {
		charge.Shrink(int64(n) * int64(block))
		return nil, err
	}
	return &Partitions{file: file, charge: charge, block: block, parts: make([]partition, n)}, nil
}

// Append adds a record, given in two pieces, to a partition.
func (p *Partitions) Append(ctx context.Context, to int, head, tail []byte) error {
	part := &p.parts[to]
	part.mu.Lock()
	defer part.mu.Unlock()
	size := len(head) + len(tail)
	if len(part.buffer) > 0 && len(part.buffer)+binary.MaxVarintLen32+size > p.block {
		if err := p.flushLocked(ctx, part); err != nil {
			return err
		}
	}
	if part.buffer == nil {
		part.buffer = make([]byte, 0, p.block)
	}
	part.buffer = binary.AppendUvarint(part.buffer, uint64(size))
	part.buffer = append(append(part.buffer, head...), tail...)
	part.records++
	part.bytes += int64(size)
	if len(part.buffer) > p.block { // a record larger than a block
		if err := p.flushLocked(ctx, part); err != nil {
			return err
		}
		part.buffer = nil
	}
	return nil
}

// flushLocked writes a partition's buffer.
func (p *Partitions) flushLocked(ctx context.Context, part *partition) error {
	p.file.mu.Lock()
	defer p.file.mu.Unlock()
	var to *extent
	ref, err := p.file.writeLocked(ctx, part.buffer, func(stored int64) int64 {
		to = p.extentFor(part, stored)
		return to.offset + to.used
	})
	if err != nil {
		return err
	}
	to.used += int64(ref.Stored)
	part.buffer = part.buffer[:0]
	return nil
}

// extentFor finds or makes room for a block. The file is locked.
func (p *Partitions) extentFor(part *partition, stored int64) *extent {
	if n := len(part.extents); n > 0 && part.extents[n-1].used+stored <= part.extents[n-1].size {
		return &part.extents[n-1]
	}
	if len(part.extents) == cap(part.extents) {
		// A millionth of what is on disk: forced, since nothing could go on otherwise.
		more := max(4, cap(part.extents))
		p.charge.ForceGrow(int64(more) * extentCost)
		grown := make([]extent, len(part.extents), cap(part.extents)+more)
		copy(grown, part.extents)
		part.extents = grown
	}
	size := max(extentBlocks*int64(p.block+blockHeader), stored)
	part.extents = append(part.extents, extent{offset: p.file.end, size: size})
	p.file.end += size
	return &part.extents[len(part.extents)-1]
}

// Records and Bytes are how much a partition holds.
func (p *Partitions) Records(of int) int64 {
	part := &p.parts[of]
	part.mu.Lock()
	defer part.mu.Unlock()
	return part.records
}

// Bytes is the size of a partition's records.
func (p *Partitions) Bytes(of int) int64 {
	part := &p.parts[of]
	part.mu.Lock()
	defer part.mu.Unlock()
	return part.bytes
}

// Each calls use for every record of a partition. The record is valid until
// use returns. Nothing may be appended to the partition meanwhile.
func (p *Partitions) Each(ctx context.Context, of int, use func(record []byte) error) error {
	return p.From(ctx, of, new(Mark), use)
}

// Mark is a place between two records of a partition, at first its beginning.
type Mark struct {
	extent int
	offset int64 // of a block in the extent; behind its last one: the next extent or the buffer
	at     int   // in the block
}

// ErrStop makes From and Each return without an error.
var ErrStop = errors.New("stop")

// From is Each from a mark on, and moves the mark behind every record that use
// returned nil for. Records may be appended between two calls.
func (p *Partitions) From(ctx context.Context, of int, mark *Mark, use func(record []byte) error) error {
	part := &p.parts[of]
	part.mu.Lock()
	defer part.mu.Unlock()
	var buffer []byte // of one block: too small to charge
	for {
		content, stored, err := p.blockAt(ctx, part, mark, &buffer)
		if err != nil {
			return err
		}
		switch err := eachRecord(content, &mark.at, use); err {
		case nil:
		case ErrStop:
			return nil
		case errBadRecord:
			return errs.At(errs.Corrupt, "read spilled data from", p.file.path, "a record's length is wrong")
		default:
			return err
		}
		if stored == 0 {
			return nil // it was the buffer
		}
		mark.offset, mark.at = mark.offset+stored, 0
	}
}

// blockAt reads the block at a mark. stored is its size on disk, 0 for the
// buffer, which is the last block once it is written.
func (p *Partitions) blockAt(ctx context.Context, part *partition, mark *Mark, buffer *[]byte) (content []byte, stored int64, err error) {
	if n := len(part.extents); mark.extent+1 < n && mark.offset == part.extents[mark.extent].used {
		mark.extent, mark.offset = mark.extent+1, 0
	}
	if mark.extent >= len(part.extents) || mark.offset == part.extents[mark.extent].used {
		return part.buffer, 0, nil
	}
	e := part.extents[mark.extent]
	return p.file.readAt(ctx, e.offset+mark.offset, e.used-mark.offset, buffer)
}

var errBadRecord = errors.New("bad record")

func eachRecord(content []byte, at *int, use func(record []byte) error) error {
	for *at < len(content) {
		size, n := binary.Uvarint(content[*at:])
		if n <= 0 || size > uint64(len(content)-*at-n) {
			return errBadRecord
		}
		end := *at + n + int(size)
		if err := use(content[*at+n : end : end]); err != nil {
			return err
		}
		*at = end
	}
	return nil
}

// Close removes the file and gives the buffers back. Idempotent.
func (p *Partitions) Close() error {
	if p.parts == nil {
		return nil
	}
	held := int64(len(p.parts)) * int64(p.block)
	for i := range p.parts {
		held += int64(cap(p.parts[i].extents)) * extentCost
	}
	p.parts = nil
	p.charge.Shrink(held)
	return p.file.Close()
}
