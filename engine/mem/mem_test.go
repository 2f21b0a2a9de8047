package mem_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

func used(t *testing.T, p *mem.Pool, want int64) {
	t.Helper()
	if got := p.Used(); got != want {
		t.Errorf("used %d, want %d", got, want)
	}
}

func mustGrow(t *testing.T, r *mem.Reservation, n int64) {
	t.Helper()
	if err := r.TryGrow(n); err != nil {
		t.Fatal(err)
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}

func TestTreeCharges(t *testing.T) {
	root := mem.NewPool("engine", 100)
	scan := root.Child("scan", 60)
	sort := root.Child("sort", 0)
	keys, rows := scan.Reserve("delete keys"), scan.Reserve("queued batches")
	runs := sort.ReserveSpillable("sort runs")

	mustGrow(t, keys, 40)
	mustGrow(t, rows, 20)
	used(t, scan, 60)
	used(t, root, 60)
	if scan.Limit() != 60 || sort.Limit() != 100 || scan.Available() != 0 || sort.Available() != 40 {
		t.Errorf("limits %d %d, available %d %d", scan.Limit(), sort.Limit(), scan.Available(), sort.Available())
	}

	// The scan's own limit refuses, and names the scan's consumers only.
	err := keys.TryGrow(1)
	if errs.CodeOf(err) != errs.MemoryLimit {
		t.Fatalf("got %v", err)
	}
	want := "no memory for delete keys: 1 B more is needed, but 60 B of the 60 B memory limit of the scan is in use (delete keys 40 B, cannot spill; queued batches 20 B, cannot spill); raise memory_limit, or read fewer columns"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	used(t, root, 60)

	// The engine's limit refuses the sort, and names everybody's.
	mustGrow(t, runs, 40)
	err = runs.TryGrow(1)
	for _, part := range []string{"100 B of the 100 B memory limit of the engine", "sort runs 40 B, can spill"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}

	runs.ForceGrow(10)
	used(t, root, 110)
	if sort.Available() != 0 {
		t.Errorf("available %d past the limit", sort.Available())
	}
	runs.Shrink(50)
	if err := rows.Resize(5); err != nil {
		t.Fatal(err)
	}
	if err := rows.Resize(61); errs.CodeOf(err) != errs.MemoryLimit || rows.Size() != 5 {
		t.Errorf("a refused Resize: %v, size %d", err, rows.Size())
	}
	keys.Free()
	keys.Free()
	rows.Free()
	runs.Free()
	for _, p := range []*mem.Pool{scan, sort, root} {
		used(t, p, 0)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if root.Peak() != 110 || scan.Peak() != 60 {
		t.Errorf("peaks %d %d", root.Peak(), scan.Peak())
	}
}

func TestSplitHandsOn(t *testing.T) {
	pool := mem.NewPool("engine", 100)
	whole := pool.Reserve("merge workspace")
	mustGrow(t, whole, 100)
	part := whole.Split(30)
	used(t, pool, 100)
	if whole.Size() != 70 || part.Size() != 30 {
		t.Errorf("sizes %d, %d", whole.Size(), part.Size())
	}
	whole.Free()
	used(t, pool, 30)
	part.Free()
	used(t, pool, 0)
}

// TestCloseReportsLeaks checks that a leak is named, given back, and that a late
// owner cannot give it back twice.
func TestCloseReportsLeaks(t *testing.T) {
	root := mem.NewPool("engine", 100)
	scan := root.Child("scan", 0)
	below := scan.Child("part", 0)
	leaked := below.Reserve("decoded rows")
	mustGrow(t, leaked, 30)
	err := scan.Close()
	if errs.CodeOf(err) != errs.Internal || !strings.Contains(err.Error(), "decoded rows 30 B") {
		t.Errorf("got %v", err)
	}
	used(t, root, 0)
	leaked.Shrink(10)
	leaked.Free()
	used(t, root, 0)
	used(t, below, 0)
	if err := scan.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := root.Close(); err != nil {
		t.Error(err)
	}
}

func TestMisuse(t *testing.T) {
	r := mem.NewPool("engine", 100).Reserve("rows")
	mustGrow(t, r, 5)
	mustPanic(t, "giving back too much", func() { r.Shrink(6) })
	mustPanic(t, "splitting off too much", func() { _ = r.Split(6) })
	mustPanic(t, "growing by a negative size", func() { _ = r.TryGrow(-1) })
	r.Free()
	mustPanic(t, "growing after Free", func() { _ = r.TryGrow(1) })
	mustPanic(t, "growing after Free", func() { r.ForceGrow(1) })
}

func TestConcurrentCharges(t *testing.T) {
	root := mem.NewPool("engine", 1000)
	var wg sync.WaitGroup
	for range 8 {
		child := root.Child("scan", 300)
		wg.Go(func() {
			for range 1000 {
				r := child.Reserve("rows")
				if r.TryGrow(200) == nil {
					s := r.Split(50)
					s.Free()
				}
				r.Free()
			}
		})
	}
	wg.Wait()
	used(t, root, 0)
	if root.Peak() > 1000 {
		t.Errorf("peak %d is over the limit", root.Peak())
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 700: "700 B", 1024: "1 KiB", 1536: "1.5 KiB", 16 << 20: "16 MiB", 3 << 29: "1.5 GiB", 1 << 50: "1024 TiB",
	} {
		if got := mem.FormatBytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

// Work ahead leaves half of the limit alone, whoever fills the other half; a
// working set may pass the limit by the headroom, counted over all of them.
func TestKindsOfReservations(t *testing.T) {
	const limit = 64 << 20
	pool := mem.NewPool("engine", limit)
	scan := pool.Child("scan", 0)
	keys, queued := scan.Reserve("delete keys"), scan.ReserveAhead("queued batches")
	pages, rows := scan.ReserveWorkingSet("pages"), scan.ReserveWorkingSet("rows")
	steps := []struct {
		name string
		r    *mem.Reservation
		n    int64
		fits bool
	}{
		{"ahead within half", queued, 20 << 20, true},
		{"ahead past half", queued, 13 << 20, false},
		{"ordinary to the limit", keys, 44 << 20, true},
		{"ordinary past the limit", keys, 1, false},
		{"ahead when others fill the limit", queued, 1, false},
		{"working set past the limit", pages, mem.Headroom - 1, true},
		{"another working set shares the headroom", rows, 2, false},
		{"the last byte of headroom", rows, 1, true},
	}
	for _, s := range steps {
		if err := s.r.TryGrow(s.n); (err == nil) != s.fits {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	for _, r := range []*mem.Reservation{keys, queued, pages, rows} {
		r.Free()
	}
	if err := errors.Join(scan.Close(), pool.Close()); err != nil {
		t.Error(err)
	}
}

// Consumers of one purpose count together in the message.
func TestErrorSumsPurposes(t *testing.T) {
	pool := mem.NewPool("engine", 10)
	a, b := pool.Reserve("pages"), pool.Reserve("pages")
	for _, r := range []*mem.Reservation{a, b} {
		if err := r.TryGrow(5); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.TryGrow(1); err == nil || !strings.Contains(err.Error(), "(pages 10 B, cannot spill)") {
		t.Error(err)
	}
	a.Free()
	b.Free()
}

// Operations that run beside each other get less and less, but never too little.
func TestShare(t *testing.T) {
	pool := mem.NewPool("engine", 512)
	counting := pool.Child("counts only", 0)
	var shares []*mem.Pool
	for _, want := range []int64{256, 128, 64, 32, 20, 20} {
		share := pool.Share("scan", 20)
		if got := share.Limit(); got != want {
			t.Errorf("share %d is %d, want %d", len(shares), got, want)
		}
		shares = append(shares, share)
	}
	for _, p := range append(shares, counting) {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	alone := pool.Share("scan", 20)
	if got := alone.Limit(); got != 256 {
		t.Errorf("a share after all others ended is %d", got)
	}
	if err := errors.Join(alone.Close(), pool.Close()); err != nil {
		t.Error(err)
	}
}
