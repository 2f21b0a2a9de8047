package spill

import (
	"context"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/spill/vfs"
)

// Lazy opens a Dir when something spills first, so that an engine that never
// spills needs no directory to write to. It is safe for concurrent use.
type Lazy struct {
	fs     vfs.FS
	parent string
	disk   *DiskBudget

	mu     sync.Mutex
	dir    *Dir
	closed bool
}

// NewLazy takes what OpenDir takes.
func NewLazy(fs vfs.FS, parent string, disk *DiskBudget) *Lazy {
	return &Lazy{fs: fs, parent: parent, disk: disk}
}

// Dir is the directory, the same at every call. A failure to open it is not
// kept: the next call tries again.
func (l *Lazy) Dir(ctx context.Context) (*Dir, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errs.At(errs.Cancelled, "spill to", l.parent, "the engine is closed")
	}
	if l.dir == nil {
		dir, _, err := OpenDir(ctx, l.fs, l.parent, l.disk)
		if err != nil {
			return nil, err
		}
		l.dir = dir
	}
	return l.dir, nil
}

// Close removes the directory if there is one. Idempotent.
func (l *Lazy) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.dir == nil {
		return nil
	}
	return l.dir.Close()
}
