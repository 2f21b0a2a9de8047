package pq

import (
	"context"
	"testing"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// TestReadsTogether checks that the small column chunks of a row group are
// read at once, and large ones in pieces.
func TestReadsTogether(t *testing.T) {
	f, source := openCase(t, "bloom.parquet", Options{})
	if len(source.reads) != 1 {
		t.Errorf("%d reads of the footer", len(source.reads))
	}
	source.reads = nil
	if _, _, err := readAll(t, f, selection{}); err != nil {
		t.Fatal(err)
	}
	if n, want := len(source.reads), len(f.RowGroups()); n != want {
		t.Errorf("%d reads for %d row groups", n, want)
	}

	f, source = openCase(t, "delta_long.parquet", Options{ReadSize: 1000})
	source.reads = nil
	if _, _, err := readAll(t, f, selection{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range source.reads {
		if r.Len() > f.meta.rowGroups[0].columns[1].compressedSize {
			t.Errorf("a read of %d bytes", r.Len())
		}
	}
}

// TestFooterLargerThanGuess checks that a longer footer costs one more read of
// just the part that is missing.
func TestFooterLargerThanGuess(t *testing.T) {
	f, source := openCase(t, "plain_v1.parquet", Options{FooterGuess: 100})
	if n := len(source.reads); n != 2 {
		t.Fatalf("%d reads", n)
	}
	if first := source.reads[1]; first.Start != f.dataEnd || first.End != f.source.Size()-100 {
		t.Errorf("the second read is %v", first)
	}
}

// TestMisuse checks errors for wrong requests.
func TestMisuse(t *testing.T) {
	f, _ := openCase(t, "nested_v1.parquet", Options{})
	ctx := context.Background()
	all := allColumns(f)
	for name, c := range map[string]struct {
		columns []batch.Column
		ranges  []batch.Range
	}{
		"no such column":  {columns: []batch.Column{{Index: 99, Leaves: []int{0}}}},
		"negative column": {columns: []batch.Column{{Index: -1, Leaves: []int{0}}}},
		"foreign leaf":    {columns: []batch.Column{{Index: 0, Leaves: []int{5}}}},
		"no leaf":         {columns: []batch.Column{{Index: 0}}},
		"beyond the end":  {columns: all, ranges: []batch.Range{{Start: 0, End: 301}}},
		"out of order":    {columns: all, ranges: []batch.Range{{Start: 10, End: 20}, {Start: 15, End: 30}}},
		"backwards":       {columns: all, ranges: []batch.Range{{Start: 10, End: 5}}},
	} {
		if _, err := f.NewReader(ctx, c.columns, c.ranges); errs.CodeOf(err) != errs.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := f.NewReader(ctx, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Read(ctx, []int{0}, nil); err == nil {
		t.Error("Read without a window")
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Next(cancelled); errs.CodeOf(err) != errs.Cancelled {
		t.Errorf("Next after cancel: %v", err)
	}
	if w, err := r.Next(ctx); err != nil || w.Start != 0 {
		t.Errorf("Next: %v %v", w, err)
	}
	if _, err := r.Read(ctx, []int{0}, batch.NewMask(3, true)); err == nil {
		t.Error("a mask of the wrong length")
	}
}

// TestBudget checks that reading holds little at a time, and that too little
// is an error, not a hang.
func TestBudget(t *testing.T) {
	for _, limit := range []int64{64 << 10, 256 << 10, 1 << 20} {
		pool := mem.NewPool("test", limit)
		f, _ := openCase(t, "ascending.parquet", Options{Pool: pool, ReadSize: 1000, BatchRows: 10})
		_, values, err := readAll(t, f, selection{})
		switch {
		case err != nil && (limit > 64<<10 || errs.CodeOf(err) != errs.MemoryLimit):
			t.Errorf("limit %d: %v", limit, err)
		case err == nil && len(values[0]) != 1200:
			t.Errorf("limit %d: %d rows", limit, len(values[0]))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if pool.Used() != 0 {
			t.Errorf("limit %d: %d bytes left", limit, pool.Used())
		}
	}
}

// TestParts checks that row groups can be read apart, with windows whose size
// changes on the way.
func TestParts(t *testing.T) {
	f, _ := openCase(t, "ascending.parquet", Options{})
	parts := f.Parts()
	if len(parts) != 3 || parts[0].Start != 0 || parts[2].End != f.NumRows() {
		t.Fatal(parts)
	}
	r, err := f.NewReader(context.Background(), allColumns(f), parts[1:2])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at := parts[1].Start
	for _, rows := range []int{7, 1, 0, 100, 1000} {
		r.(batch.WindowLimiter).LimitWindow(rows)
		w, err := r.Next(context.Background())
		if err != nil || w.Start != at || w.Len() != min(int64(max(rows, 1)), parts[1].End-at) {
			t.Fatalf("%d rows: %v %v", rows, w, err)
		}
		at = w.End
	}
	if leaf, ok := f.LeafOf(2); !ok || leaf != 1 {
		t.Errorf("field 2 is leaf %d, %v", leaf, ok)
	}
	if _, ok := f.LeafOf(5); ok {
		t.Error("a list's element has statistics of rows")
	}
	if _, ok := f.LeafOf(99); ok {
		t.Error("a field that is not there")
	}
}
