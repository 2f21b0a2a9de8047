package sort

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/spill"
)

// run is a sorted sequence of rows, in memory or on disk.
type run struct {
	buffer *buffer // nil once it is on disk
	// settled is closed when the worker has left the run; err says how.
	settled chan struct{}
	err     error

	file     *file
	blocks   []spill.Ref
	bytes    int64
	maxBlock int64
}

// fileBytes is when another file is begun: runs share files, so that a large
// sort needs few descriptors.
const fileBytes = 1 << 30 // 1 GiB

// file is a spill file that holds runs; it is removed with the last of them.
type file struct {
	*spill.File
	runs int
	busy bool
}

// files are the spill files of one sort.
type files struct {
	dir  func(ctx context.Context) (*spill.Dir, error)
	mu   sync.Mutex
	open map[*file]struct{}
}

// take finds a file to append a run to.
func (f *files) take(ctx context.Context) (*file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for known := range f.open {
		if !known.busy && known.Size() < fileBytes {
			known.busy = true
			known.runs++
			return known, nil
		}
	}
	dir, err := f.dir(ctx)
	if err != nil {
		return nil, err
	}
	made, err := dir.NewFile()
	if err != nil {
		return nil, err
	}
	added := &file{File: made, runs: 1, busy: true}
	f.open[added] = struct{}{}
	return added, nil
}

func (f *files) written(file *file) { f.mu.Lock(); defer f.mu.Unlock(); file.busy = false }

// drop ends a run, and its file with the last one.
func (f *files) drop(r *run) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	if file.runs--; file.runs > 0 || file.busy {
		return nil
	}
	delete(f.open, file)
	return file.Close()
}

func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first error
	for file := range f.open {
		if err := file.Close(); first == nil {
			first = err
		}
	}
	clear(f.open)
	return first
}

// refCost is what a block's reference takes up, and the slack of its slice.
const refCost = 48

// writer appends rows to a new run on disk in blocks of about a given size.
type writer struct {
	run    *run
	files  *files
	charge *mem.Reservation
	size   int
	block  []byte
}

func (f *files) newWriter(ctx context.Context, blockSize int, charge *mem.Reservation) (*writer, error) {
	file, err := f.take(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{run: &run{file: file}, files: f, charge: charge, size: blockSize, block: make([]byte, 0, blockSize)}, nil
}

func (w *writer) add(ctx context.Context, row []byte) error {
	if len(w.block) > 0 && len(w.block)+len(row) > w.size {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.block = append(w.block, row...)
	return nil
}

func (w *writer) flush(ctx context.Context) error {
	if len(w.block) == 0 {
		return nil
	}
	ref, err := w.run.file.Append(ctx, w.block)
	if err != nil {
		return err
	}
	// A few thousandths of what is on disk: forced, since the sort could not go
	// on otherwise.
	w.charge.ForceGrow(refCost)
	w.run.blocks = append(w.run.blocks, ref)
	w.run.bytes += int64(len(w.block))
	w.run.maxBlock = max(w.run.maxBlock, int64(ref.Stored))
	if w.block = w.block[:0]; cap(w.block) > 2*w.size {
		w.block = make([]byte, 0, w.size)
	}
	return nil
}

// finish writes the last block and returns the run.
func (w *writer) finish(ctx context.Context) (*run, error) {
	err := w.flush(ctx)
	w.files.written(w.run.file)
	return w.run, err
}

// reader walks over the rows of a run.
type reader struct {
	run    *run
	next   int // entry or block
	block  []byte
	memory []byte
}

// following returns the next row, nil after the last; replaced is called before
// rows that were returned become invalid.
func (r *reader) following(ctx context.Context, replaced func() error) ([]byte, error) {
	if b := r.run.buffer; b != nil {
		if r.next == len(b.entries) {
			return nil, nil
		}
		r.next++
		return b.row(r.next - 1), nil
	}
	if len(r.block) == 0 {
		if err := replaced(); err != nil {
			return nil, err
		}
		if r.next == len(r.run.blocks) {
			r.memory = nil
			return nil, nil
		}
		var err error
		if r.block, err = r.run.file.Read(ctx, r.run.blocks[r.next], &r.memory); err != nil {
			return nil, err
		}
		r.next++
	}
	n := binary.LittleEndian.Uint32(r.block)
	row := r.block[:n]
	r.block = r.block[n:]
	return row, nil
}
