package spill

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// Partitions distribute records over a number of partitions that share one
// file, so that one descriptor serves them all. Records are appended, from any
// number of goroutines, and read back partition by partition in the order of
// each goroutine.
type Partitions struct {
	file   *File
	charge *mem.Reservation
	block  int
	parts  []partition
}

type partition struct {
	mu      sync.Mutex
	buffer  []byte
	blocks  []Ref
	records int64
	bytes   int64
}

// refCost is what a Ref takes up, and the slack of the slice that holds it.
const refCost = 48

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

// Len is the number of partitions.
func (p *Partitions) Len() int { return len(p.parts) }

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

func (p *Partitions) flushLocked(ctx context.Context, part *partition) error {
	ref, err := p.file.Append(ctx, part.buffer)
	if err != nil {
		return err
	}
	if len(part.blocks) == cap(part.blocks) {
		// One in a thousand of what is on disk: forced, since a partition could
		// not go on otherwise.
		p.charge.ForceGrow(int64(max(8, cap(part.blocks))) * refCost)
		grown := make([]Ref, len(part.blocks), cap(part.blocks)+max(8, cap(part.blocks)))
		copy(grown, part.blocks)
		part.blocks = grown
	}
	part.blocks = append(part.blocks, ref)
	part.buffer = part.buffer[:0]
	return nil
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
type Mark struct{ block, at int }

// ErrStop makes From and Each return without an error.
var ErrStop = errors.New("stop")

// From is Each from a mark on, and moves the mark behind every record that use
// returned nil for.
func (p *Partitions) From(ctx context.Context, of int, mark *Mark, use func(record []byte) error) error {
	part := &p.parts[of]
	part.mu.Lock()
	defer part.mu.Unlock()
	var buffer []byte // of one block: too small to charge
	for ; mark.block <= len(part.blocks); mark.block, mark.at = mark.block+1, 0 {
		content := part.buffer // the last one is not written yet
		if mark.block < len(part.blocks) {
			var err error
			if content, err = p.file.Read(ctx, part.blocks[mark.block], &buffer); err != nil {
				return err
			}
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
	}
	return nil
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
		held += int64(cap(p.parts[i].blocks)) * refCost
	}
	p.parts = nil
	p.charge.Shrink(held)
	return p.file.Close()
}
