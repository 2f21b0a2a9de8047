package deletes

import (
	"context"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/plan"
)

// ownDeletes are the positions that concern the data file of one task alone:
// its deletion vector, or its file-scoped position-delete files, and what
// keys and positions on disk delete. The Sets of a task share them, since a large data file is
// read in parts.
type ownDeletes struct {
	task *plan.Task
	// users are the Sets, and the resolver while the task is the latest one:
	// its next part may come a moment after the last one ended.
	users int // guarded by the resolver's lock

	done    chan struct{} // closed when the fields below are final
	err     error
	indexes []positionIndex
}

// acquireOwn returns a task's own deletes, read by the first who asks, or nil
// if there are none.
func (r *Resolver) acquireOwn(ctx context.Context, t *plan.Task, c classified) (*ownDeletes, error) {
	if c.vector == nil && len(c.own) == 0 && !c.spilled {
		return nil, nil
	}
	for {
		own, isFirst, err := r.findOwn(t)
		if err != nil {
			return nil, err
		}
		if isFirst {
			r.fillOwn(ctx, own, c)
		}
		select {
		case <-own.done:
		case <-ctx.Done():
			r.releaseOwn(own)
			return nil, context.Cause(ctx)
		}
		if own.err == nil {
			return own, nil
		}
		r.releaseOwn(own)
		if isFirst || errs.CodeOf(own.err) != errs.Cancelled {
			return nil, own.err
		}
		// Only the one who read was cancelled: read it oneself.
	}
}

func (r *Resolver) fillOwn(ctx context.Context, own *ownDeletes, c classified) {
	own.err = errs.At(errs.Internal, "read", own.task.Data.Path, "reading its deletes was given up") // stays only after a panic
	defer close(own.done)
	own.indexes, own.err = r.readOwn(ctx, own.task, c)
}

// findOwn finds or makes a task's entry and adds a user to it.
func (r *Resolver) findOwn(t *plan.Task) (own *ownDeletes, isFirst bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false, errs.New(errs.Cancelled, "the scan is closed")
	}
	own = r.own[t]
	if own == nil {
		own, isFirst = &ownDeletes{task: t, done: make(chan struct{})}, true
		r.own[t] = own
	}
	own.users++
	if r.latest != own {
		own.users++
		r.dropLatestLocked()
		r.latest = own
	}
	return own, isFirst, nil
}

func (r *Resolver) dropLatestLocked() {
	if own := r.latest; own != nil {
		r.latest = nil
		r.releaseOwnLocked(own)
	}
}

func (r *Resolver) releaseOwn(own *ownDeletes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-own.done:
		if own.err != nil && r.latest == own {
			r.dropLatestLocked()
		}
	default:
	}
	r.releaseOwnLocked(own)
}

func (r *Resolver) releaseOwnLocked(own *ownDeletes) {
	if own.users--; own.users > 0 {
		return
	}
	if r.own[own.task] == own {
		delete(r.own, own.task)
	}
	for i := range own.indexes {
		own.indexes[i].free()
	}
}

func (r *Resolver) readOwn(ctx context.Context, t *plan.Task, c classified) (indexes []positionIndex, err error) {
	defer func() {
		if err != nil {
			for i := range indexes {
				indexes[i].free()
			}
			indexes = nil
		}
	}()
	if c.vector != nil {
		index, err := r.readVector(ctx, c.vector, t.Data.Path)
		if err != nil {
			return indexes, err
		}
		indexes = append(indexes, index)
	}
	for _, f := range c.own {
		index, err := r.readPositions(ctx, f, t.Data.Path)
		if err != nil {
			return indexes, err
		}
		indexes = append(indexes, index)
	}
	if c.spilled {
		index, err := r.spilledPositions(ctx, t)
		if err != nil {
			return indexes, err
		}
		indexes = append(indexes, index)
	}
	return indexes, nil
}
