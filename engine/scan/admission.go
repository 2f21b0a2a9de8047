package scan

import (
	"context"
	"sync"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/mem"
)

// columnShare is what an open column holds while it is read: a page, also in
// its compressed form, and a dictionary. Writers make both of about 1 MiB.
const columnShare = 9 << 18 // 2.25 MiB

// admission lets parts start as long as what they will need fits beside each
// other. A part that is alone always starts. Parts ask in their order, so that
// one that others wait for never waits for them.
type admission struct {
	limit    int64 // of pool, without what may be queued
	pool     *mem.Pool
	decoding *mem.Pool // the part of pool that admitted parts use
	queued   *mem.Reservation

	mu      sync.Mutex
	running int
	needs   int64
	changed chan struct{} // closed by the next change
}

func newAdmission(pool, decoding *mem.Pool, queued *mem.Reservation, queueLimit int64) *admission {
	return &admission{limit: pool.Limit() - queueLimit, pool: pool, decoding: decoding, queued: queued, changed: make(chan struct{})}
}

// enter waits until a part that needs so many bytes may start.
func (a *admission) enter(ctx context.Context, need int64) error {
	for {
		a.mu.Lock()
		// Delete keys and plans hold what they hold, whoever decodes.
		others := a.pool.Used() - a.decoding.Used() - a.queued.Size()
		// Half of what is free is left to other operations of the engine.
		if a.running == 0 || a.needs+need <= a.limit-others && need <= a.pool.Available()/2 {
			a.running++
			a.needs += need
			a.mu.Unlock()
			return nil
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *admission) leave(need int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	a.needs -= need
	close(a.changed)
	a.changed = make(chan struct{})
}

// partNeed estimates what reading a part of so many stored bytes holds.
func partNeed(columns int, bytes, batchBytes int64) int64 {
	return min(int64(columns)*columnShare, 4*bytes) + batchBytes
}

// leafCount is the number of leaf columns of some fields.
func leafCount(fields []iceberg.NestedField) int {
	n := 0
	for _, f := range fields {
		if nested, ok := f.Type.(iceberg.NestedType); ok {
			n += leafCount(nested.Fields())
		} else {
			n++
		}
	}
	return n
}
