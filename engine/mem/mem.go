// Package mem is the budget tree: who may hold how much memory.
//
//	Pool (engine, limit)
//	 ├── Pool (scan, limit ≤ engine's)
//	 │    ├── Reservation "delete keys"
//	 │    └── Reservation "queued batches"
//	 └── Pool (sort) ...
//
// A pool hands out reservations; growing one charges every pool on the way to
// the root, and fails when any of them would pass its limit. Whatever holds
// memory that grows with its input holds a reservation for it. The one batch
// that passes between two operators is not charged: whoever keeps batches is.
//
// The tree counts; it does not allocate. The error of a failed TryGrow lists
// the top consumers, whether they can spill, and the option to raise.
package mem

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Purpose says what a reservation's memory is for, in words a user can read in
// an error message: "equality-delete keys", "queued batches".
type Purpose string

// Unlimited is the limit of a pool that only counts.
const Unlimited = int64(1) << 62

// Headroom is how far working sets may pass a pool's limit, all of them
// together. What they are for has begun and holds memory that only its end
// gives back, so that refusing them is an error and never a wait. It is half of
// the margin over the limit that a process may take; the other half is the
// runtime's.
const Headroom = 32 << 20 // 32 MiB

// kind says how far a reservation may fill its pools.
type kind int

const (
	ordinary   kind = iota // up to the limit
	spillable              // up to the limit; its owner spills then
	workingSet             // up to Headroom past the limit
	ahead                  // up to half of the limit, counting what all others hold
)

// room is what of a pool's limit a reservation of the kind may see in use.
func (k kind) room(limit int64) int64 {
	switch k {
	case workingSet:
		return limit + Headroom
	case ahead:
		return limit / 2
	}
	return limit
}

// Pool is one node of the tree. It is safe for concurrent use.
type Pool struct {
	name   string
	limit  int64
	parent *Pool
	root   *Pool

	mu *sync.Mutex // the root's: one lock for the whole tree keeps checks atomic

	used, peak   int64
	children     map[*Pool]struct{}
	reservations map[*Reservation]struct{}
}

// NewPool makes a root pool with a limit in bytes.
func NewPool(name string, limit int64) *Pool {
	p := &Pool{name: name, limit: limit, mu: new(sync.Mutex)}
	p.root = p
	p.init()
	return p
}

func (p *Pool) init() {
	p.children = map[*Pool]struct{}{}
	p.reservations = map[*Reservation]struct{}{}
}

// Child makes a pool under p. limit caps it inside p's own limit; zero or less
// means no cap of its own.
func (p *Pool) Child(name string, limit int64) *Pool {
	if limit <= 0 {
		limit = Unlimited
	}
	c := &Pool{name: name, limit: limit, parent: p, root: p.root, mu: p.mu}
	c.init()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.children[c] = struct{}{}
	return c
}

// Share makes a pool under p for an operation that adapts to what it gets: half
// of what the limits of p's other children leave, but at least floor. So one
// operation that runs alone has much, and one that starts while others run, or
// wait for a consumer that reads several at a time, still has enough.
func (p *Pool) Share(name string, floor int64) *Pool {
	p.mu.Lock()
	left := p.limit
	for c := range p.children {
		if c.limit < Unlimited {
			left -= c.limit
		}
	}
	p.mu.Unlock()
	return p.Child(name, max(left/2, floor))
}

// Close detaches the pool from its parent. It returns an Internal error that
// names what is still reserved, since that is a leak, and gives it back.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parent != nil {
		delete(p.parent.children, p)
	}
	if p.used == 0 {
		return nil
	}
	err := errs.New(errs.Internal, "memory pool %q closed with %d bytes reserved (%s)", p.name, p.used, p.consumersLocked(3))
	for q := p.parent; q != nil; q = q.parent {
		q.used -= p.used
	}
	p.endLocked()
	return err
}

// endLocked makes what is left under p give nothing back any more.
func (p *Pool) endLocked() {
	p.used = 0
	for r := range p.reservations {
		r.closed = true
	}
	for c := range p.children {
		c.endLocked()
	}
}

// Used and Peak are the bytes reserved under p now and at most so far.
func (p *Pool) Used() int64 { p.mu.Lock(); defer p.mu.Unlock(); return p.used }

// Peak is the greatest value that Used had.
func (p *Pool) Peak() int64 { p.mu.Lock(); defer p.mu.Unlock(); return p.peak }

// Limit is the smallest limit on the way to the root: what p could hold if
// nothing else held anything.
func (p *Pool) Limit() int64 {
	limit := p.limit
	for q := p.parent; q != nil; q = q.parent {
		limit = min(limit, q.limit)
	}
	return limit
}

// Available is how much a reservation under p could grow by now.
func (p *Pool) Available() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := Unlimited
	for q := p; q != nil; q = q.parent {
		free = min(free, q.limit-q.used)
	}
	return max(free, 0)
}

// Reserve makes an empty reservation.
func (p *Pool) Reserve(purpose Purpose) *Reservation { return p.reserve(purpose, ordinary) }

// ReserveSpillable makes an empty reservation whose owner can spill, which the
// error of a failed TryGrow tells.
func (p *Pool) ReserveSpillable(purpose Purpose) *Reservation { return p.reserve(purpose, spillable) }

// ReserveWorkingSet makes an empty reservation for what running work cannot go
// on without and what is small for each: a page and a dictionary a column.
func (p *Pool) ReserveWorkingSet(purpose Purpose) *Reservation {
	return p.reserve(purpose, workingSet)
}

// ReserveAhead makes an empty reservation for work done before it is asked for.
// It leaves half of the limit to work that has to be done.
func (p *Pool) ReserveAhead(purpose Purpose) *Reservation { return p.reserve(purpose, ahead) }

func (p *Pool) reserve(purpose Purpose, k kind) *Reservation {
	r := &Reservation{pool: p, purpose: purpose, kind: k}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reservations[r] = struct{}{}
	return r
}

func (p *Pool) growLocked(n int64, k kind) *Pool {
	for q := p; q != nil; q = q.parent {
		if q.used+n > k.room(q.limit) {
			return q
		}
	}
	p.chargeLocked(n)
	return nil
}

func (p *Pool) chargeLocked(n int64) {
	for q := p; q != nil; q = q.parent {
		q.used += n
		q.peak = max(q.peak, q.used)
	}
}

// consumersLocked lists the n purposes under p that hold most.
func (p *Pool) consumersLocked(n int) string {
	type consumer struct {
		purpose   Purpose
		spillable bool
	}
	sizes := map[consumer]int64{}
	var walk func(*Pool)
	walk = func(q *Pool) {
		for r := range q.reservations {
			if r.size > 0 {
				sizes[consumer{r.purpose, r.kind == spillable}] += r.size
			}
		}
		for c := range q.children {
			walk(c)
		}
	}
	walk(p)
	all := slices.SortedFunc(maps.Keys(sizes), func(a, b consumer) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a.purpose, b.purpose))
	})
	var parts []string
	for _, c := range all[:min(n, len(all))] {
		spills := "cannot spill"
		if c.spillable {
			spills = "can spill"
		}
		parts = append(parts, fmt.Sprintf("%s %s, %s", c.purpose, FormatBytes(sizes[c]), spills))
	}
	if len(parts) == 0 {
		return "nothing else is reserved"
	}
	return strings.Join(parts, "; ")
}

// Reservation is memory held for one purpose. Its methods are safe for
// concurrent use; one owner frees it.
type Reservation struct {
	pool    *Pool
	purpose Purpose
	kind    kind
	size    int64 // guarded by the tree's lock
	closed  bool
}

// TryGrow charges n more bytes, or fails with MemoryLimit and charges nothing.
func (r *Reservation) TryGrow(n int64) error {
	p := r.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	r.checkLocked(n)
	if full := p.growLocked(n, r.kind); full != nil {
		return &errs.Error{
			Code: errs.MemoryLimit,
			Msg: fmt.Sprintf("no memory for %s: %s more is needed, but %s of the %s memory limit of the %s is in use (%s); raise memory_limit, or read fewer columns",
				r.purpose, FormatBytes(n), FormatBytes(full.used), FormatBytes(full.limit), full.name, full.consumersLocked(3)),
			Detail: map[string]any{
				"purpose": string(r.purpose), "needed_bytes": n, "used_bytes": full.used, "limit_bytes": full.limit, "option": "memory_limit",
			},
		}
	}
	r.size += n
	return nil
}

// ForceGrow charges n bytes even past the limit. Only for the single item
// without which an operation could not make progress: one row, one page, one
// dictionary.
func (r *Reservation) ForceGrow(n int64) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.checkLocked(n)
	r.pool.chargeLocked(n)
	r.size += n
}

// checkLocked catches charges that nobody would ever give back.
func (r *Reservation) checkLocked(n int64) {
	if r.closed || n < 0 {
		panic(fmt.Sprintf("mem: %s grows by %d bytes (ended: %t)", r.purpose, n, r.closed))
	}
}

// Resize grows or shrinks the reservation to exactly n bytes.
func (r *Reservation) Resize(n int64) error {
	if d := n - r.Size(); d > 0 {
		return r.TryGrow(d)
	} else if d < 0 {
		r.Shrink(-d)
	}
	return nil
}

// Shrink gives n bytes back.
func (r *Reservation) Shrink(n int64) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.shrinkLocked(n)
}

func (r *Reservation) shrinkLocked(n int64) {
	if r.closed {
		return
	}
	if n > r.size || n < 0 {
		panic(fmt.Sprintf("mem: %s gives back %d of %d bytes", r.purpose, n, r.size))
	}
	r.size -= n
	for q := r.pool; q != nil; q = q.parent {
		q.used -= n
	}
}

// Split moves n bytes of this reservation into a new one of the same purpose,
// so that prepaid workspace is handed on and never freed and asked for again.
func (r *Reservation) Split(n int64) *Reservation {
	p := r.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > r.size || n < 0 || r.closed {
		panic(fmt.Sprintf("mem: %s splits %d of %d bytes", r.purpose, n, r.size))
	}
	r.size -= n
	s := &Reservation{pool: p, purpose: r.purpose, kind: r.kind, size: n}
	p.reservations[s] = struct{}{}
	return s
}

// Size is the number of bytes held.
func (r *Reservation) Size() int64 {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	return r.size
}

// Free gives everything back and ends the reservation; idempotent.
func (r *Reservation) Free() {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.shrinkLocked(r.size)
	r.closed = true
	delete(r.pool.reservations, r)
}

// FormatBytes renders a size for an error message: "16 MiB", "1.5 GiB", "700 B".
func FormatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	if f == float64(int64(f)) {
		return fmt.Sprintf("%d %s", int64(f), units[u])
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}
