package spill

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// DiskBudget is how much an engine may have on disk at a time, over all of its
// spill files. It is safe for concurrent use.
type DiskBudget struct {
	limit int64

	mu         sync.Mutex
	used, peak int64
}

// NewDiskBudget makes a budget of limit bytes; 0 or less means no limit.
func NewDiskBudget(limit int64) *DiskBudget {
	if limit <= 0 {
		limit = mem.Unlimited
	}
	return &DiskBudget{limit: limit}
}

// Used and Peak are the bytes on disk now and at most so far.
func (d *DiskBudget) Used() int64 { d.mu.Lock(); defer d.mu.Unlock(); return d.used }

// Peak is the greatest value that Used had.
func (d *DiskBudget) Peak() int64 { d.mu.Lock(); defer d.mu.Unlock(); return d.peak }

// take charges n bytes before they are written to a file in dir.
func (d *DiskBudget) take(n int64, dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.used+n > d.limit {
		return &errs.Error{
			Code: errs.SpillFull, Op: "spill to", Path: dir,
			Msg: fmt.Sprintf("%s more are needed and %s of the limit of %s are used; raise spill_limit",
				mem.FormatBytes(n), mem.FormatBytes(d.used), mem.FormatBytes(d.limit)),
			Detail: map[string]any{"needed_bytes": n, "used_bytes": d.used, "limit_bytes": d.limit, "option": "spill_limit"},
		}
	}
	d.used += n
	d.peak = max(d.peak, d.used)
	return nil
}

func (d *DiskBudget) give(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used -= n
}

// diskError makes what the file system says of a write into an error that
// tells which option helps.
func diskError(err error, op, dir string, needed int64) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return errs.Wrap(err, op, dir)
	}
	return &errs.Error{
		Code: errs.SpillFull, Op: op, Path: dir, Err: err,
		Msg:    fmt.Sprintf("the disk has no room for %s more; set spill_dir to a larger one", mem.FormatBytes(needed)),
		Detail: map[string]any{"needed_bytes": needed, "option": "spill_dir"},
	}
}
