package task_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/task"
)

var ctx = context.Background()

func TestGroup(t *testing.T) {
	enginetest.NoLeaks(t)
	first := errors.New("first")
	g := task.NewGroup(ctx)
	g.Go("waits", func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	g.Go("fails", func(context.Context) error { return first })
	if err := g.Wait(); err != first {
		t.Errorf("got %v", err)
	}

	g = task.NewGroup(ctx)
	g.Go("reader", func(context.Context) error { panic("boom") })
	err := g.Wait()
	if errs.CodeOf(err) != errs.Internal || !strings.Contains(err.Error(), "reader") || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}

	g = task.NewGroup(ctx)
	g.Go("waits", func(ctx context.Context) error { <-ctx.Done(); return nil })
	g.Cancel()
	if err := g.Wait(); err != nil {
		t.Errorf("got %v", err)
	}
}

// item is what test jobs emit: its name, and its size.
type item struct {
	name string
	size int64
}

// ordered is an Ordered over a fixed list of jobs.
type ordered struct {
	*task.Ordered[item]
	pool    *mem.Pool
	queued  *mem.Reservation
	dropped atomic.Int64
}

func start(tb testing.TB, workers int, queueLimit, poolLimit int64, jobs []task.Job[item]) *ordered {
	tb.Helper()
	o := &ordered{pool: mem.NewPool("test", poolLimit)}
	o.queued = o.pool.Reserve("queued items")
	next := 0
	o.Ordered = task.NewOrdered(ctx, task.OrderedConfig[item]{
		Name: "test job", Workers: workers, Queued: o.queued, QueueLimit: queueLimit,
		Size: func(i item) int64 { return i.size }, Drop: func(item) { o.dropped.Add(1) },
		NextJob: func(context.Context) (task.Job[item], error) {
			if next == len(jobs) {
				return nil, io.EOF
			}
			next++
			return jobs[next-1], nil
		},
	})
	return o
}

// finish closes o and checks that it gave everything back.
func (o *ordered) finish(tb testing.TB) {
	tb.Helper()
	if err := o.Close(); err != nil {
		tb.Error(err)
	}
	if err := o.Close(); err != nil {
		tb.Errorf("second Close: %v", err)
	}
	if size := o.queued.Size(); size != 0 {
		tb.Errorf("%d bytes stay charged", size)
	}
	o.queued.Free()
	if err := o.pool.Close(); err != nil {
		tb.Error(err)
	}
}

// emits is a job that emits n items of a size.
func emits(name string, n int, size int64) task.Job[item] {
	return func(_ context.Context, emit func(item) error) error {
		for i := range n {
			if err := emit(item{fmt.Sprintf("%s.%d", name, i), size}); err != nil {
				return err
			}
		}
		return nil
	}
}

func drain(o *ordered) (names []string, err error) {
	for {
		i, err := o.Next(ctx)
		if err != nil {
			return names, err
		}
		names = append(names, i.name)
	}
}

func TestOrderedKeepsOrder(t *testing.T) {
	enginetest.NoLeaks(t)
	for _, workers := range []int{1, 2, 7} {
		for _, limit := range []int64{0, 1, 10, 1 << 30} {
			var jobs []task.Job[item]
			var want []string
			for j := range 100 {
				n := j % 4
				jobs = append(jobs, emits(fmt.Sprint(j), n, int64(j%3)))
				for i := range n {
					want = append(want, fmt.Sprintf("%d.%d", j, i))
				}
			}
			o := start(t, workers, limit, mem.Unlimited, jobs)
			got, err := drain(o)
			if err != io.EOF || !slices.Equal(got, want) {
				t.Errorf("%d workers, limit %d: got %v, %v", workers, limit, got, err)
			}
			if _, err := o.Next(ctx); err != io.EOF {
				t.Errorf("Next after the end: %v", err)
			}
			o.finish(t)
		}
	}
}

// TestOrderedBytes checks that waiting items stay within the limits, except for
// the one item of the job whose turn it is.
func TestOrderedBytes(t *testing.T) {
	enginetest.NoLeaks(t)
	for _, test := range []struct {
		name              string
		queue, pool, peak int64
	}{
		{"queue limit", 25, mem.Unlimited, 30},
		{"pool limit", mem.Unlimited, 35, 40},
		{"items larger than everything", 5, 5, 10},
	} {
		var jobs []task.Job[item]
		for j := range 30 {
			jobs = append(jobs, emits(fmt.Sprint(j), 5, 10))
		}
		o := start(t, 4, test.queue, test.pool, jobs)
		time.Sleep(time.Millisecond) // let the workers run into the limit
		if got, err := drain(o); err != io.EOF || len(got) != 150 {
			t.Errorf("%s: %d items, %v", test.name, len(got), err)
		}
		if peak := o.pool.Peak(); peak > test.peak {
			t.Errorf("%s: peak %d, want at most %d", test.name, peak, test.peak)
		}
		o.finish(t)
	}
}

func TestOrderedErrorsComeInOrder(t *testing.T) {
	enginetest.NoLeaks(t)
	failure := errors.New("job failed")
	fails := func(_ context.Context, emit func(item) error) error {
		if err := emit(item{"partial", 1}); err != nil {
			return err
		}
		return failure
	}
	slow := func(ctx context.Context, emit func(item) error) error {
		time.Sleep(5 * time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return emit(item{"slow", 1})
	}
	panics := func(context.Context, func(item) error) error { panic("boom") }
	for _, workers := range []int{1, 3} {
		o := start(t, workers, 100, mem.Unlimited, []task.Job[item]{slow, fails, emits("later", 3, 1)})
		got, err := drain(o)
		if !errors.Is(err, failure) || !slices.Equal(got, []string{"slow", "partial"}) {
			t.Errorf("%d workers: got %v, %v", workers, got, err)
		}
		if _, again := o.Next(ctx); again != err {
			t.Errorf("the error is not sticky: %v", again)
		}
		o.finish(t)

		o = start(t, workers, 100, mem.Unlimited, []task.Job[item]{slow, panics})
		if got, err := drain(o); errs.CodeOf(err) != errs.Internal || !strings.Contains(err.Error(), "test job") || len(got) != 1 {
			t.Errorf("%d workers: got %v, %v", workers, got, err)
		}
		o.finish(t)
	}
}

func TestOrderedNextJobError(t *testing.T) {
	enginetest.NoLeaks(t)
	failure := errors.New("no plan")
	calls := 0
	pool := mem.NewPool("test", mem.Unlimited)
	o := task.NewOrdered(ctx, task.OrderedConfig[item]{
		Name: "test", Workers: 3, Queued: pool.Reserve("items"), QueueLimit: 100,
		Size: func(i item) int64 { return i.size }, Drop: func(item) {},
		NextJob: func(context.Context) (task.Job[item], error) {
			if calls++; calls > 1 {
				return nil, failure
			}
			return emits("a", 2, 1), nil
		},
	})
	defer o.Close()
	for range 2 {
		if _, err := o.Next(ctx); err != nil {
			t.Errorf("the items before the error are lost: %v", err)
		}
	}
	if _, err := o.Next(ctx); err != failure {
		t.Errorf("got %v", err)
	}
	if calls != 2 {
		t.Errorf("NextJob was called %d times", calls)
	}
}

func TestOrderedCloseDropsWhatWaits(t *testing.T) {
	enginetest.NoLeaks(t)
	var emitted atomic.Int64
	job := func(_ context.Context, emit func(item) error) error {
		for {
			emitted.Add(1)
			if err := emit(item{"x", 10}); err != nil {
				return err
			}
		}
	}
	o := start(t, 3, 45, mem.Unlimited, []task.Job[item]{job, job, job})
	if _, err := o.Next(ctx); err != nil {
		t.Fatal(err)
	}
	o.finish(t)
	if dropped := o.dropped.Load(); dropped != emitted.Load()-1 {
		t.Errorf("%d of %d items dropped, want all but one", dropped, emitted.Load())
	}
	if _, err := o.Next(ctx); errs.CodeOf(err) != errs.Cancelled {
		t.Errorf("Next after Close: %v", err)
	}
}

// TestOrderedWait checks that the context of a call ends its wait and nothing
// else.
func TestOrderedWait(t *testing.T) {
	enginetest.NoLeaks(t)
	release := make(chan struct{})
	job := func(_ context.Context, emit func(item) error) error {
		<-release
		return emit(item{"x", 1})
	}
	o := start(t, 1, 100, mem.Unlimited, []task.Job[item]{job})
	brief, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := o.Next(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(release)
	if i, err := o.Next(ctx); err != nil || i.name != "x" {
		t.Errorf("got %v, %v", i, err)
	}
	o.finish(t)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	o = start(t, 1, 100, mem.Unlimited, []task.Job[item]{emits("a", 1, 1)})
	for deadline := time.Now().Add(5 * time.Second); o.queued.Size() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if i, err := o.Next(ended); err != nil || i.name != "a.0" {
		t.Errorf("an item that waits comes in spite of the ended context: %v, %v", i, err)
	}
	o.finish(t)
}

func TestOrderedParentCancelled(t *testing.T) {
	enginetest.NoLeaks(t)
	cause := errors.New("engine closed")
	parent, cancel := context.WithCancelCause(ctx)
	pool := mem.NewPool("test", mem.Unlimited)
	started := make(chan struct{})
	o := task.NewOrdered(parent, task.OrderedConfig[item]{
		Name: "test", Workers: 2, Queued: pool.Reserve("items"), QueueLimit: 100,
		Size: func(i item) int64 { return i.size }, Drop: func(item) {},
		NextJob: func(context.Context) (task.Job[item], error) {
			return func(ctx context.Context, _ func(item) error) error {
				select {
				case started <- struct{}{}:
				case <-ctx.Done():
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}, nil
		},
	})
	<-started
	cancel(cause)
	if _, err := o.Next(ctx); err != cause {
		t.Errorf("got %v", err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// TestOrderedManyEmptyJobs checks that jobs without items do not run ahead of a
// slow one without bound.
func TestOrderedManyEmptyJobs(t *testing.T) {
	enginetest.NoLeaks(t)
	release := make(chan struct{})
	var ran atomic.Int64
	jobs := []task.Job[item]{func(_ context.Context, emit func(item) error) error {
		<-release
		return emit(item{"slow", 1})
	}}
	for range 5000 {
		jobs = append(jobs, func(context.Context, func(item) error) error { ran.Add(1); return nil })
	}
	o := start(t, 2, 100, mem.Unlimited, jobs)
	time.Sleep(20 * time.Millisecond)
	if n := ran.Load(); n > 1024 {
		t.Errorf("%d jobs ran ahead", n)
	}
	close(release)
	if got, err := drain(o); err != io.EOF || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if ran.Load() != 5000 {
		t.Errorf("%d jobs ran", ran.Load())
	}
	o.finish(t)
}
