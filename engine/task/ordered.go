package task

import (
	"context"
	"io"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// Job produces items in order by calling emit. emit takes over the item also
// when it fails; a job returns the error of emit unchanged.
type Job[T any] func(ctx context.Context, emit func(T) error) error

// OrderedConfig configures an Ordered.
type OrderedConfig[T any] struct {
	// Name appears in errors of panics.
	Name string
	// Workers is the number of jobs that run at a time, at least 1.
	Workers int
	// Queued is charged with the size of the items that wait for Next. It may
	// refuse: then jobs wait, except that the job whose turn it is may always
	// hold one item. Close does not free it; its owner does.
	Queued *mem.Reservation
	// QueueLimit is how many bytes may wait at most.
	QueueLimit int64
	// Size is the bytes that an item holds; Drop releases one that nobody takes.
	Size func(T) int64
	Drop func(T)
	// NextJob yields the jobs in order and io.EOF after the last. It is called
	// by one goroutine at a time.
	NextJob func(ctx context.Context) (Job[T], error)
}

// Ordered runs jobs on several workers and yields their items in job order,
// holding a bounded number of bytes.
type Ordered[T any] struct {
	cfg   OrderedConfig[T]
	group *Group

	mu      sync.Mutex
	changed *sync.Cond
	slots   []*slot[T] // started jobs whose items are not all taken, in order
	queued  int64
	noMore  bool // NextJob has returned io.EOF
	err     error
	closed  bool
}

// slot is one job's output.
type slot[T any] struct {
	items []T
	sizes []int64
	done  bool
}

// NewOrdered starts the workers. The caller closes the result.
func NewOrdered[T any](ctx context.Context, cfg OrderedConfig[T]) *Ordered[T] {
	o := &Ordered[T]{cfg: cfg, group: NewGroup(ctx)}
	o.changed = sync.NewCond(&o.mu)
	// A context cannot wake a sync.Cond; this callback can. It only signals.
	stop := context.AfterFunc(o.group.ctx, func() { o.mu.Lock(); defer o.mu.Unlock(); o.changed.Broadcast() })
	var nextJob sync.Mutex
	var running sync.WaitGroup
	running.Add(cfg.Workers)
	for range cfg.Workers {
		o.group.Go(cfg.Name, func(ctx context.Context) error {
			defer running.Done()
			err := o.work(ctx, &nextJob)
			if err != nil {
				o.fail(err)
			}
			return err
		})
	}
	o.group.Go(cfg.Name, func(context.Context) error {
		running.Wait()
		stop()
		return nil
	})
	return o
}

// work takes jobs until there are none.
func (o *Ordered[T]) work(ctx context.Context, nextJob *sync.Mutex) error {
	for {
		job, s, err := o.start(ctx, nextJob)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = Call(o.cfg.Name, func() error {
			return job(ctx, func(item T) error { return o.put(ctx, s, item) })
		})
		if err != nil {
			return err // the slot stays open: Next must not pass it before it sees the error
		}
		o.mu.Lock()
		s.done = true
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}

// start takes the next job and gives it its place in the order.
func (o *Ordered[T]) start(ctx context.Context, nextJob *sync.Mutex) (Job[T], *slot[T], error) {
	nextJob.Lock()
	defer nextJob.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	o.mu.Lock()
	ended := o.noMore
	o.mu.Unlock()
	if ended {
		return nil, nil, io.EOF
	}
	var job Job[T]
	err := Call(o.cfg.Name, func() (err error) { job, err = o.cfg.NextJob(ctx); return err })
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		if err == io.EOF {
			o.noMore = true
			o.changed.Broadcast()
		}
		return nil, nil, err
	}
	s := &slot[T]{}
	o.slots = append(o.slots, s)
	return job, s, nil
}

// put queues an item, waiting for room.
func (o *Ordered[T]) put(ctx context.Context, s *slot[T], item T) error {
	size := o.cfg.Size(item)
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			o.cfg.Drop(item)
			return context.Cause(ctx)
		}
		mayAlways := len(o.slots) > 0 && o.slots[0] == s && len(s.items) == 0
		if mayAlways {
			o.cfg.Queued.ForceGrow(size)
			break
		}
		if o.queued+size <= o.cfg.QueueLimit && o.cfg.Queued.TryGrow(size) == nil {
			break
		}
		o.changed.Wait()
	}
	o.queued += size
	s.items = append(s.items, item)
	s.sizes = append(s.sizes, size)
	o.changed.Broadcast()
	return nil
}

func (o *Ordered[T]) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.changed.Broadcast()
}

// Next returns the next item in order, io.EOF after the last, or the first
// error of any job or of NextJob. Items of earlier jobs may be lost to an
// error of a later one. The caller owns the item.
func (o *Ordered[T]) Next(ctx context.Context) (T, error) {
	var none T
	stop := context.AfterFunc(ctx, func() { o.mu.Lock(); defer o.mu.Unlock(); o.changed.Broadcast() })
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch {
		case o.err != nil:
			return none, o.err
		case o.closed:
			return none, errs.New(errs.Cancelled, "the stream is closed")
		case ctx.Err() != nil:
			return none, context.Cause(ctx)
		}
		if len(o.slots) > 0 {
			head := o.slots[0]
			if len(head.items) > 0 {
				return o.takeLocked(head), nil
			}
			if head.done {
				o.slots = o.slots[1:]
				o.changed.Broadcast() // the next job's turn
				continue
			}
		} else if o.noMore {
			return none, io.EOF
		} else if cause := context.Cause(o.group.ctx); cause != nil {
			return none, cause
		}
		o.changed.Wait()
	}
}

func (o *Ordered[T]) takeLocked(s *slot[T]) T {
	item, size := s.items[0], s.sizes[0]
	s.items, s.sizes = s.items[1:], s.sizes[1:]
	o.queued -= size
	o.cfg.Queued.Shrink(size)
	o.changed.Broadcast()
	return item
}

// Close stops the workers, waits for them and drops what nobody took. Idempotent.
func (o *Ordered[T]) Close() error {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.group.Cancel()
	_ = o.group.Wait() // the error was or would have been Next's
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.slots {
		for len(s.items) > 0 {
			o.cfg.Drop(o.takeLocked(s))
		}
	}
	o.slots = nil
	return nil
}
