package main

// #include "shim.h"
import "C"

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/icebergexec/icebergexec/engine/task"
)

// process is what all engines share.
var process = &processState{tasks: task.NewGroup(context.Background()), hostLimit: -1}

type processState struct {
	tasks *task.Group // ends with the process

	mu        sync.Mutex
	hostLimit int64 // the Go runtime's limit before the first engine, from GOMEMLIMIT
	limits    int64 // sum over the open engines
	engines   int
	returned  time.Time // when memory was last given back to the system
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
func (p *processState) opened(limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hostLimit < 0 {
		p.hostLimit = debug.SetMemoryLimit(-1)
	}
	p.engines++
	p.limits += limit
	p.applyLocked()
}

func (p *processState) closed(limit int64) {
	p.mu.Lock()
	p.engines--
	p.limits -= limit
	p.applyLocked()
	p.mu.Unlock()
	p.giveBack(closedFloor, 0)
}

func (p *processState) applyLocked() {
	limit := int64(math.MaxInt64)
	if p.engines > 0 {
		limit = p.limits
	}
	debug.SetMemoryLimit(min(limit, p.hostLimit))
}

const (
	// streamFloor and closedFloor are how much unused memory is worth the full
	// collection that giving it back costs.
	streamFloor = 64 << 20 // 64 MiB
	closedFloor = 16 << 20 // 16 MiB
	// giveBackEvery keeps many short streams from collecting all the time.
	giveBackEvery = time.Second
)

// streamEnded gives the memory of a stream back when it is much.
func (p *processState) streamEnded() { p.giveBack(streamFloor, giveBackEvery) }

func (p *processState) giveBack(floor int64, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.returned) < every {
		return
	}
	C.iex_trim_heap()
	if goHeap() < floor {
		return
	}
	debug.FreeOSMemory()
	p.returned = time.Now()
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
