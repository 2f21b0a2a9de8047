package deletes

import (
	"context"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/task"
)

// sharedFile is a delete file that may concern several data files: it is read
// once and its result stays as long as the resolver.
type sharedFile struct {
	number int // in the order of first use, for spilled records
	file   *plan.File
	table  *keyTable // of an equality-delete file

	done      chan struct{} // closed when the fields below are final
	err       error
	positions positionIndex // of a position-delete file
	spilled   bool          // keys or positions of this file are on disk
}

func (f *sharedFile) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read makes sure that the given files are read, and returns them.
func (r *Resolver) read(ctx context.Context, positions, equality []*plan.File) ([]*sharedFile, error) {
	files, newKeys, err := r.start(positions, equality)
	if err != nil {
		return nil, err
	}
	for table, n := range newKeys {
		table.expect(n)
	}
	for _, f := range files {
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// start makes sure that the given files are read or being read, and returns
// them. newKeys is how many keys its new files promise to each table.
func (r *Resolver) start(positions, equality []*plan.File) (files []*sharedFile, newKeys map[*keyTable]int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errs.New(errs.Cancelled, "the scan is closed")
	}
	for _, f := range positions {
		shared := r.files[f.Path]
		if shared == nil {
			if shared, err = r.queueLocked(f, nil); err != nil {
				return nil, nil, err
			}
		}
		files = append(files, shared)
	}
	newKeys = map[*keyTable]int64{}
	for _, f := range equality {
		shared := r.files[f.Path]
		if shared == nil {
			table, err := r.tableLocked(f)
			if err != nil {
				return nil, nil, err
			}
			if shared, err = r.queueLocked(f, table); err != nil {
				return nil, nil, err
			}
			newKeys[table] += max(f.RecordCount, 0)
			r.expected += max(f.RecordCount, 0)
		}
		files = append(files, shared)
	}
	for range min(len(r.queue), r.readers-r.active) {
		r.active++
		r.group.Go("read delete files", r.readQueue)
	}
	return files, newKeys, nil
}

func (r *Resolver) queueLocked(f *plan.File, table *keyTable) (*sharedFile, error) {
	if err := r.books.TryGrow(fileCost + int64(len(f.Path))); err != nil {
		return nil, err
	}
	shared := &sharedFile{number: len(r.files), file: f, table: table, done: make(chan struct{})}
	r.files[f.Path] = shared
	r.queue = append(r.queue, shared)
	return shared, nil
}

// readQueue reads queued files until there are none. After an error of any
// file the others fail with the same error, since the scan is lost.
func (r *Resolver) readQueue(ctx context.Context) error {
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.active--
			r.mu.Unlock()
			return nil
		}
		f := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		err := task.Call("read delete file", func() error { return r.readShared(ctx, f) })
		if err != nil {
			r.failQueue(err)
			return err
		}
	}
}

// failQueue gives an error to all files that are still queued.
func (r *Resolver) failQueue(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
	for _, f := range r.queue {
		f.err = err
		close(f.done)
	}
	r.queue = nil
}

func (r *Resolver) readShared(ctx context.Context, f *sharedFile) error {
	f.err = errs.At(errs.Internal, "read", f.file.Path, "reading was given up") // stays only after a panic
	defer close(f.done)
	if ctx.Err() != nil {
		f.err = context.Cause(ctx)
		return f.err
	}
	if f.table != nil {
		f.err = r.readKeys(ctx, f)
	} else {
		f.err = r.readSharedPositions(ctx, f)
	}
	return f.err
}
