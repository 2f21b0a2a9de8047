package pq

import (
	"context"

	"github.com/icebergexec/icebergexec/engine/task"
)

// readAhead reads the next block of a column chunk while the one before is
// decoded. A nil readAhead does nothing.
type readAhead struct {
	group   *task.Group
	scratch scratch
	offset  int64 // of the block in the file
	size    int
	done    chan error // of the read that runs or has ended; nil: none
}

// newReadAhead is nil when the file is not to be read ahead.
func newReadAhead(r *reader) *readAhead {
	if r.ahead == nil {
		return nil
	}
	return &readAhead{group: r.ahead, scratch: scratch{alloc: r.file.opts.Alloc, charged: r.charged}}
}

// start reads the block that c will need next, if there is one and the pool
// has room for it.
func (a *readAhead) start(_ context.Context, c *chunkSource) {
	if a == nil || a.done != nil || c.next >= c.end {
		return
	}
	size := int(min(int64(c.block), c.end-c.next))
	if a.scratch.grow(size, 0) != nil {
		return
	}
	a.offset, a.size = c.next, size
	done := make(chan error, 1)
	a.done = done
	source, buf, offset := c.source, a.scratch.buf[:size], c.next
	a.group.Go("read ahead", func(ctx context.Context) error {
		done <- readInto(ctx, source, buf, offset)
		return nil
	})
}

// take fills the front of buf with what has been read ahead of the file offset
// at, and returns how much that is. A block from elsewhere is dropped.
func (a *readAhead) take(ctx context.Context, at int64, buf []byte) (int, error) {
	if a == nil || a.done == nil {
		return 0, nil
	}
	select {
	case err := <-a.done:
		a.done = nil
		if err != nil {
			return 0, err
		}
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if at < a.offset || at >= a.offset+int64(a.size) {
		return 0, nil
	}
	return copy(buf, a.scratch.buf[at-a.offset:a.size]), nil
}

// free waits for the read that runs.
func (a *readAhead) free() {
	if a == nil {
		return
	}
	if a.done != nil {
		<-a.done
		a.done = nil
	}
	a.scratch.free()
}
