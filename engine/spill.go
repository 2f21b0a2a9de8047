package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/spill"
	"github.com/icebergexec/icebergexec/spill/vfs"
)

// spillDir is an engine's directory for spill files. It is made when the first
// operation needs it, so that most engines never touch the disk.
type spillDir struct {
	parent string
	disk   *spill.DiskBudget

	mu     sync.Mutex
	dir    *spill.Dir
	closed bool
}

// open makes the directory, or gives the one that is there. After an error the
// next operation tries again.
func (d *spillDir) open(ctx context.Context) (*spill.Dir, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errEngineClosed
	}
	if d.dir == nil {
		dir, _, err := spill.OpenDir(ctx, vfs.OS(), d.parent, d.disk)
		if err != nil {
			return nil, err
		}
		d.dir = dir
	}
	return d.dir, nil
}

// checkSpillDir makes a directory in the one that was configured, and removes
// it: what Open does not find wrong would end an operation halfway.
func checkSpillDir(parent string) error {
	trial, err := os.MkdirTemp(parent, "icebergexec-trial-")
	if err == nil {
		err = os.Remove(trial)
	}
	if err == nil {
		return nil
	}
	var cause *fs.PathError // names the trial's path, which nobody knows
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return errs.New(errs.InvalidArgument, "spill_dir is %q; it must be a directory that exists and can be written to (%v)", parent, err)
}

func (d *spillDir) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.dir == nil {
		return nil
	}
	return d.dir.Close()
}
