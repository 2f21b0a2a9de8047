package main

// #include "shim.h"
import "C"

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/icebergexec/icebergexec/bridge"
	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/task"
)

// process is what all engines share.
var process = &processState{
	tasks: task.NewGroup(context.Background()), hostLimit: -1, engines: map[*engine.Engine]int64{},
}

type processState struct {
	tasks *task.Group // ends with the process

	mu        sync.Mutex
	hostLimit int64                    // the Go runtime's limit before the first engine, from GOMEMLIMIT
	engines   map[*engine.Engine]int64 // the limits of the open engines
	returned  time.Time                // when memory was last given back to the system
	later     bool                     // it will be given back again
}

// background runs work that nobody waits for.
func (p *processState) background(name string, work func() error) {
	p.tasks.Go(name, func(context.Context) error {
		_ = task.Call(name, work) // an error here must not cancel the group
		return nil
	})
}

// opened and closed keep the Go runtime's soft limit at the sum of the limits
// of the open engines, so that the collector works harder before the budget of
// an engine is passed by garbage. Batch memory is C's and not part of it.
func (p *processState) opened(e *engine.Engine, limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hostLimit < 0 {
		p.hostLimit = debug.SetMemoryLimit(-1)
	}
	p.engines[e] = limit
	p.applyLocked()
}

func (p *processState) closed(e *engine.Engine) {
	p.mu.Lock()
	delete(p.engines, e)
	p.applyLocked()
	p.mu.Unlock()
	p.giveBack(closedFloor, 0)
}

func (p *processState) applyLocked() {
	limit := p.hostLimit
	if len(p.engines) > 0 {
		sum := int64(0)
		for _, l := range p.engines {
			sum += l
		}
		limit = min(limit, sum)
	}
	debug.SetMemoryLimit(limit)
	p.keepLocked()
}

// batchTaken lets freed batch memory stay for the next batches as far as the
// budgets leave room for it, so that both together stay within the limits.
func (p *processState) batchTaken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepLocked()
}

func (p *processState) keepLocked() {
	room := int64(0)
	for e, limit := range p.engines {
		room += min(max(limit-e.Stats().MemoryUsed, 0), limit/keptShare)
	}
	bridge.KeepMemory(room)
}

const (
	// keptShare is the part of a limit that freed batch memory may take at most
	// until its next use: as much as a scan's queue of batches, which fills and
	// empties all the time.
	keptShare = 2
	// streamFloor and closedFloor are how large the Go heap must be to be worth
	// the full collection that giving memory back costs.
	streamFloor = 64 << 20 // 64 MiB
	closedFloor = 16 << 20 // 16 MiB
	// giveBackEvery keeps many short streams from doing so all the time.
	giveBackEvery = time.Second
)

// streamEnded gives the memory of a stream back when it is much.
func (p *processState) streamEnded() { p.giveBack(streamFloor, giveBackEvery) }

// giveBack returns memory to the system, or arranges that it will be when it
// was just done.
func (p *processState) giveBack(floor int64, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := every - time.Since(p.returned); wait > 0 {
		if !p.later {
			p.later = true
			time.AfterFunc(wait, func() { _ = task.Call("give memory back", func() error { p.giveBack(floor, 0); return nil }) })
		}
		return
	}
	p.returned, p.later = time.Now(), false
	bridge.FlushMemory()
	C.iex_trim_heap()
	if goHeap() >= floor {
		debug.FreeOSMemory()
	}
}

// goHeap is what the Go heap takes of the system's memory: objects, which may
// be garbage by now, and free space.
func goHeap() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	total := int64(0)
	for _, s := range samples {
		total += int64(s.Value.Uint64())
	}
	return total
}
