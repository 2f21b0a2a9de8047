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

// maxStarted bounds the jobs that have started and whose items are not all
// taken: finished jobs without items cost no queued bytes, and a slow job may
// have any number of them behind it.
const maxStarted = 1024

// Ordered runs jobs on several workers and yields their items in job order,
// holding a bounded number of bytes. Errors come in job order too: what a
// consumer sees does not depend on how far the workers are ahead.
type Ordered[T any] struct {
	cfg   OrderedConfig[T]
	group *Group

	mu      sync.Mutex
	changed *sync.Cond
	slots   []*slot[T] // started jobs whose items are not all taken, in order
	queued  int64
	noMore  bool  // no job will be started any more
	err     error // what Next has returned; sticky
	closed  bool
}

// slot is one job's output.
type slot[T any] struct {
	items []T
	sizes []int64
	done  bool
	err   error // how the job ended
}

// NewOrdered starts the workers. The caller closes the result.
func NewOrdered[T any](ctx context.Context, cfg OrderedConfig[T]) *Ordered[T] {
	o := &Ordered[T]{cfg: cfg, group: NewGroup(ctx)}
	o.changed = sync.NewCond(&o.mu)
	// A context cannot wake a sync.Cond; this callback can. It only signals.
	stop := context.AfterFunc(o.group.ctx, o.wake)
	var nextJob sync.Mutex
	var running sync.WaitGroup
	running.Add(cfg.Workers)
	for range cfg.Workers {
		o.group.Go(cfg.Name, func(ctx context.Context) error {
			defer running.Done()
			o.work(ctx, &nextJob)
			return nil
		})
	}
	o.group.Go(cfg.Name, func(context.Context) error {
		running.Wait()
		stop()
		return nil
	})
	return o
}

func (o *Ordered[T]) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
}

// work takes jobs until there are none, or one has failed.
func (o *Ordered[T]) work(ctx context.Context, nextJob *sync.Mutex) {
	for {
		job, s := o.start(ctx, nextJob)
		if job == nil {
			return
		}
		err := Call(o.cfg.Name, func() error {
			return job(ctx, func(item T) error { return o.put(ctx, s, item) })
		})
		o.mu.Lock()
		s.done, s.err = true, err
		o.noMore = o.noMore || err != nil
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}

// start takes the next job and gives it its place in the order; nil when there
// is none. An error of NextJob takes a place too.
func (o *Ordered[T]) start(ctx context.Context, nextJob *sync.Mutex) (Job[T], *slot[T]) {
	nextJob.Lock()
	defer nextJob.Unlock()
	if !o.mayStart(ctx) {
		return nil, nil
	}
	var job Job[T]
	err := Call(o.cfg.Name, func() (err error) { job, err = o.cfg.NextJob(ctx); return err })
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.changed.Broadcast()
	if err == io.EOF {
		o.noMore = true
		return nil, nil
	}
	s := &slot[T]{}
	o.slots = append(o.slots, s)
	if err != nil {
		o.noMore = true
		s.done, s.err = true, err
		return nil, nil
	}
	return job, s
}

// mayStart waits until another job may start; false when none will.
func (o *Ordered[T]) mayStart(ctx context.Context) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if o.noMore || ctx.Err() != nil {
			return false
		}
		if len(o.slots) < maxStarted {
			return true
		}
		o.changed.Wait()
	}
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

// Next returns the next item in order, io.EOF after the last, or the error of
// the job whose turn it is. The caller owns the item. An item that is there
// comes even when ctx has ended.
func (o *Ordered[T]) Next(ctx context.Context) (T, error) {
	var none T
	stop := context.AfterFunc(ctx, o.wake)
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch {
		case o.err != nil:
			return none, o.err
		case o.closed:
			return none, errs.New(errs.Cancelled, "the stream is closed")
		case o.group.ctx.Err() != nil:
			o.err = context.Cause(o.group.ctx)
			return none, o.err
		}
		if len(o.slots) > 0 {
			head := o.slots[0]
			if len(head.items) > 0 {
				return o.takeLocked(head), nil
			}
			if head.err != nil {
				o.err = head.err
				o.group.Cancel()
				return none, o.err
			}
			if head.done {
				o.slots[0] = nil
				o.slots = o.slots[1:]
				o.changed.Broadcast() // the next job's turn
				continue
			}
		} else if o.noMore {
			o.err = io.EOF
			return none, o.err
		}
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		o.changed.Wait()
	}
}

func (o *Ordered[T]) takeLocked(s *slot[T]) T {
	item, size := s.items[0], s.sizes[0]
	var none T
	s.items[0] = none // a queued item must not stay reachable through the array
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
	_ = o.group.Wait() // jobs leave their errors in their slots
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
