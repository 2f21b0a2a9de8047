package deletes

import (
	"context"
	"encoding/binary"
	"hash/maphash"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/spill"
)

// positionMemory is what position-delete files of several data files may hold,
// an eighth of the memory, and where the others of their positions are:
//
//	record  uvarint number of the delete file, uvarint length of the path, path, bitmap
//
// in the partition that the path's hash gives. Buffers are prepaid.
type positionMemory struct {
	pool      *mem.Pool
	prepaid   *mem.Reservation
	workspace *mem.Pool // counts inside prepaid
	block     int
	seed      maphash.Seed
	parts     *spill.Partitions // nil before the first that spills; guarded by spillMu
}

const positionPartitions = 64

// sharedPositionMemory makes the position memory when the first file needs it.
func (r *Resolver) sharedPositionMemory() (*positionMemory, error) {
	r.spillMu.Lock()
	defer r.spillMu.Unlock()
	if r.positions != nil {
		return r.positions, nil
	}
	share := r.cfg.Pool.Limit() / 8
	m := &positionMemory{
		pool: r.cfg.Pool.Child("deleted positions", share), seed: maphash.MakeSeed(),
		block: int(max(minBlock/4, min(maxBlock, share/(4*positionPartitions)))),
	}
	size := positionPartitions * int64(m.block)
	m.workspace = mem.NewPool("workspace for spilled positions", size)
	m.prepaid = m.pool.Reserve("workspace for spilled positions")
	if err := m.prepaid.TryGrow(size); err != nil {
		_ = m.close()
		return nil, err
	}
	r.positions = m
	return m, nil
}

func (m *positionMemory) partitionOf(path string) int {
	return int(maphash.String(m.seed, path) >> 32 * positionPartitions >> 32)
}

func (m *positionMemory) close() (err error) {
	if m == nil {
		return nil
	}
	if m.parts != nil {
		err = m.parts.Close()
	}
	m.prepaid.Free()
	_ = m.pool.Close() // what leaked would show in its parent
	return err
}

// spillPositions writes positions of one data file from one delete file.
func (r *Resolver) spillPositions(ctx context.Context, file int, path string, positions *roaring64.Bitmap) error {
	parts, err := r.openPositionSpill(ctx)
	if err != nil {
		return err
	}
	head := binary.AppendUvarint(nil, uint64(file))
	head = append(binary.AppendUvarint(head, uint64(len(path))), path...)
	bitmap, err := positions.ToBytes()
	if err != nil {
		return err
	}
	return parts.Append(ctx, r.positions.partitionOf(path), head, bitmap)
}

func (r *Resolver) openPositionSpill(ctx context.Context) (*spill.Partitions, error) {
	r.spillMu.Lock()
	defer r.spillMu.Unlock()
	m := r.positions
	if m.parts != nil {
		return m.parts, nil
	}
	dir, err := r.cfg.Spill(ctx)
	if err != nil {
		return nil, err
	}
	m.parts, err = dir.NewPartitions(positionPartitions, m.block, m.workspace.Reserve("spilled positions"))
	return m.parts, err
}

// addSpilledPositions adds the members' positions that are on disk to their
// bitmaps. Only the partitions of their paths are read.
func (r *Resolver) addSpilledPositions(ctx context.Context, members []*member) error {
	byPath := map[string][]*member{}
	wanted := map[int]bool{}
	for _, m := range members {
		if len(m.files) > 0 {
			path := m.task.Data.Path
			byPath[path] = append(byPath[path], m)
			wanted[r.positions.partitionOf(path)] = true
		}
	}
	for p := range wanted {
		err := r.positions.parts.Each(ctx, p, func(record []byte) error {
			file, rest, err := uvarint(record)
			if err != nil {
				return err
			}
			length, rest, err := uvarint(rest)
			if err != nil {
				return err
			}
			if length > uint64(len(rest)) {
				return errs.New(errs.Corrupt, "a spilled record ends early")
			}
			path, bitmap := rest[:length], rest[length:]
			for _, m := range byPath[string(path)] {
				if m.files[int(file)] {
					if err := m.set.addSerialised(bitmap, m.charge); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *positionSet) addSerialised(b []byte, charge *mem.Reservation) error {
	more := roaring64.New()
	if err := more.UnmarshalBinary(b); err != nil { // copies: b is reused
		return errs.WrapAs(errs.Corrupt, err, "read spilled positions", "")
	}
	s.bitmap.Or(more)
	return s.account(charge)
}
