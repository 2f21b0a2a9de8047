// Package task is the only place that starts goroutines.
//
// Every goroutine recovers panics into an Internal error, belongs to a Group,
// and has ended when the group's Wait or the Ordered's Close returns.
//
//	jobs (in order)            workers                    Ordered.Next (in order)
//	j1 j2 j3 j4 ...  ------->  run up to n at a time -->  j1's items, j2's items, ...
//	                           queued bytes are charged
package task

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Group is a set of goroutines that share a context. The first error cancels it.
type Group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

// NewGroup makes a group whose context derives from ctx.
func NewGroup(ctx context.Context) *Group {
	g := &Group{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Context is cancelled by the first error, by Cancel, and by the parent.
func (g *Group) Context() context.Context { return g.ctx }

// Go runs fn in a goroutine. name appears in the error of a panic.
func (g *Group) Go(name string, fn func(ctx context.Context) error) {
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		if err := Call(name, func() error { return fn(g.ctx) }); err != nil {
			g.fail(err)
		}
	}()
}

// Call runs fn and turns a panic into an Internal error that names it.
func Call(name string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errs.Recovered(name, v, debug.Stack())
		}
	}()
	return fn()
}

func (g *Group) fail(err error) {
	g.once.Do(func() {
		g.err = err
		g.cancel(err)
	})
}

// Cancel asks all goroutines to stop.
func (g *Group) Cancel() { g.cancel(context.Canceled) }

// Wait returns when every goroutine has ended, with the first error.
func (g *Group) Wait() error {
	g.wg.Wait()
	g.cancel(nil)
	return g.err
}
