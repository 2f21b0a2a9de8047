package deletes

import (
	"context"
	"slices"
	"sync"

	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
)

// taskQueue passes the scan's tasks on and looks ahead at them when spilled
// keys are resolved: the more data files are looked up together, the less often
// the spilled keys are read.
type taskQueue struct {
	books *mem.Reservation

	mu   sync.Mutex
	next func(ctx context.Context) (*plan.Task, error) // nil: the tasks come from elsewhere
	// open are the latest tasks that were handed out and may still ask for their
	// deletes, keep at most; ahead are those that nobody has seen yet.
	open, ahead []*plan.Task
	keep        int
	limit, held int64 // bytes that ahead may take up, and does
	err         error // of next, io.EOF at the end; comes after ahead
}

// taskCost is about what a waiting task takes up beside its list of deletes.
const taskCost = 512

func costOf(t *plan.Task) int64 { return taskCost + 8*int64(len(t.Deletes)) }

// NextTask returns the next task of Config.NextTask. The scan must take its
// tasks here, so that the resolver can look ahead. A task need not ask for its
// deletes: what was prepared for it is freed some tasks later.
func (r *Resolver) NextTask(ctx context.Context) (*plan.Task, error) {
	t, past, err := r.tasks.pop(ctx)
	for _, other := range past {
		if index, known := r.takeResolved(other); known {
			index.free()
		}
	}
	return t, err
}

// pop hands out a task. past are those that will not ask any more.
func (q *taskQueue) pop(ctx context.Context) (t *plan.Task, past []*plan.Task, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ahead) == 0 {
		if err := q.pullLocked(ctx); err != nil {
			return nil, nil, err
		}
	}
	t = q.ahead[0]
	q.ahead = q.ahead[1:]
	q.books.Shrink(costOf(t))
	q.held -= costOf(t)
	if len(t.Deletes) > 0 {
		q.open = append(q.open, t)
	}
	if over := len(q.open) - q.keep; over > 0 {
		past = slices.Clone(q.open[:over])
		q.open = slices.Delete(q.open, 0, over)
	}
	return t, past, nil
}

// pullLocked adds a task to ahead, also when there is no memory for it, since
// the plan has made it.
func (q *taskQueue) pullLocked(ctx context.Context) error {
	if q.err != nil {
		return q.err
	}
	t, err := q.next(ctx)
	if err != nil {
		if ctx.Err() == nil {
			q.err = err
		}
		return err
	}
	q.books.ForceGrow(costOf(t))
	q.held += costOf(t)
	q.ahead = append(q.ahead, t)
	return nil
}

// settled forgets a task that was handed out.
func (q *taskQueue) settled(t *plan.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.open, t); i >= 0 {
		q.open = slices.Delete(q.open, i, i+1)
	}
}

// upcoming returns tasks beside the given one that ask for their deletes soon,
// with about as many rows as given. An error of the plan comes later, when its
// turn has come.
func (q *taskQueue) upcoming(ctx context.Context, t *plan.Task, rows int64) ([]*plan.Task, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var found []*plan.Task
	take := func(other *plan.Task) {
		if other != t && rows > 0 {
			found = append(found, other)
			rows -= max(other.Data.RecordCount, 1)
		}
	}
	for _, other := range q.open {
		take(other)
	}
	for _, other := range q.ahead {
		take(other)
	}
	for q.next != nil && rows > 0 && q.held < q.limit {
		if err := q.pullLocked(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			break
		}
		take(q.ahead[len(q.ahead)-1])
	}
	return found, nil
}
