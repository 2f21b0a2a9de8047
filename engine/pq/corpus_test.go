package pq

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// corpusCase is a Parquet file and what pyarrow reads from it
// (tests/tools/gen_parquet_cases.py).
type corpusCase struct {
	File     string `json:"file"`
	Expected string `json:"expected"`
}

func corpus(t testing.TB) []corpusCase {
	raw, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []corpusCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// memoryFile is a file in memory that counts what is read from it.
type memoryFile struct {
	content []byte
	mu      sync.Mutex
	reads   []batch.Range // byte ranges
}

func (m *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	m.mu.Lock()
	m.reads = append(m.reads, batch.Range{Start: at, End: at + int64(len(p))})
	m.mu.Unlock()
	if at >= int64(len(m.content)) {
		return 0, io.EOF
	}
	n := copy(p, m.content[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memoryFile) Size() int64  { return int64(len(m.content)) }
func (m *memoryFile) Close() error { return nil }

// expectation is a table rendered value by value.
type expectation struct {
	schema *arrow.Schema
	rows   int
	values [][]string // by column
}

func expected(t testing.TB, name string) expectation {
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e := expectation{schema: r.Schema(), values: make([][]string, r.Schema().NumFields())}
	for i := range r.NumRecords() {
		record, err := r.RecordBatch(i)
		if err != nil {
			t.Fatal(err)
		}
		e.rows += int(record.NumRows())
		for c := range e.values {
			e.values[c] = append(e.values[c], render(record.Column(c))...)
		}
	}
	return e
}

func render(a arrow.Array) []string {
	out := make([]string, a.Len())
	for i := range out {
		out[i] = a.ValueStr(i)
	}
	return out
}

// allColumns selects every leaf of every column.
func allColumns(f *File) []batch.Column {
	var columns []batch.Column
	for i, n := range f.schema.columns {
		c := batch.Column{Index: i}
		for leaf := n.firstLeaf; leaf < n.endLeaf; leaf++ {
			c.Leaves = append(c.Leaves, leaf)
		}
		columns = append(columns, c)
	}
	return columns
}

// selection is a way to read a file.
type selection struct {
	batchRows int
	ranges    []batch.Range
	// keep decides each row of a window; nil keeps all without a mask.
	keep func(position int64) bool
	// skipWindow leaves a column unread in a window.
	skipWindow func(column int, position int64) bool
	// readSize and readAhead are the options.
	readSize  int
	readAhead bool
	// dictionary asks for dictionary-encoded strings.
	dictionary bool
}

// readAll reads a file as selected and returns the positions and values that
// each column yields.
func readAll(t testing.TB, f *File, s selection) (positions [][]int64, values [][]string, err error) {
	ctx := context.Background()
	r, err := f.NewReader(ctx, allColumns(f), s.ranges)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	n := r.Schema().NumFields()
	positions, values = make([][]int64, n), make([][]string, n)
	for {
		w, err := r.Next(ctx)
		if err == io.EOF {
			return positions, values, nil
		}
		if err != nil {
			return nil, nil, err
		}
		var mask *batch.Mask
		if s.keep != nil {
			mask = batch.NewMask(int(w.Len()), false)
			for i := range int(w.Len()) {
				if s.keep(w.Start + int64(i)) {
					mask.Set(i)
				}
			}
		}
		var read []int
		for c := range n {
			if s.skipWindow == nil || !s.skipWindow(c, w.Start) {
				read = append(read, c)
			}
		}
		arrays, err := r.Read(ctx, read, mask)
		if err != nil {
			return nil, nil, err
		}
		for i, c := range read {
			if !arrow.TypeEqual(arrays[i].DataType(), r.Schema().Field(c).Type) {
				t.Errorf("column %d is a %s, the schema says %s", c, arrays[i].DataType(), r.Schema().Field(c).Type)
			}
			if d, ok := arrays[i].(*array.Dictionary); ok {
				distinct := render(d.Dictionary())
				slices.Sort(distinct)
				if n := len(distinct); len(slices.Compact(distinct)) != n {
					t.Errorf("column %d: a dictionary of %d values has some twice", c, n)
				}
			}
			if err := checkArray(arrays[i]); err != nil {
				t.Errorf("column %d: %v", c, err)
			}
			for p := w.Start; p < w.End; p++ {
				if mask == nil || mask.Get(int(p-w.Start)) {
					positions[c] = append(positions[c], p)
				}
			}
			values[c] = append(values[c], render(arrays[i])...)
			arrays[i].Release()
		}
	}
}

// checkArray checks what rendering does not see: buffer sizes and null counts.
func checkArray(a arrow.Array) error {
	nulls := 0
	for i := range a.Len() {
		if a.IsNull(i) {
			nulls++
		}
	}
	if nulls != a.NullN() {
		return fmt.Errorf("%d nulls, %d claimed", nulls, a.NullN())
	}
	switch a := a.(type) {
	case *array.Struct:
		for i := range a.NumField() {
			if a.Field(i).Len() != a.Len() {
				return fmt.Errorf("field %d has %d values for %d", i, a.Field(i).Len(), a.Len())
			}
			if err := checkArray(a.Field(i)); err != nil {
				return err
			}
		}
	case *array.List:
		return checkArray(a.ListValues())
	case *array.Map:
		return checkArray(a.ListValues())
	}
	return nil
}

func openCase(t testing.TB, name string, opts Options) (*File, *memoryFile) {
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	source := &memoryFile{content: content}
	f, err := Open(context.Background(), source, name, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f, source
}

func TestCorpus(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range corpus(t) {
		t.Run(c.File, func(t *testing.T) {
			want := expected(t, c.Expected)
			n := want.rows
			selections := map[string]selection{
				"batch of 1":          {batchRows: 1},
				"batch of 3":          {batchRows: 3, readAhead: true},
				"batch of 7, skipped": {batchRows: 7, skipWindow: func(c int, p int64) bool { return (int64(c)+p/7)%3 != 0 }},
				"batch of n":          {batchRows: max(n, 1), readSize: 1 << 20},
				"batch of n+1":        {batchRows: n + 1},
				"none kept":           {batchRows: 64, keep: func(int64) bool { return false }},
				"every third":         {batchRows: 50, keep: func(p int64) bool { return p%3 == 0 }, readSize: 5000},
				"few":                 {batchRows: 1000, keep: func(p int64) bool { return p%97 == 5 }, readSize: 1000, readAhead: true},
				"runs":                {batchRows: 33, keep: func(p int64) bool { return p/29%2 == 1 }},
			}
			for _, odds := range []float64{0.02, 0.3, 0.5, 0.9} {
				bits := make([]bool, n)
				for i := range bits {
					bits[i] = rng.Float64() < odds
				}
				selections[fmt.Sprintf("random %v", odds)] = selection{batchRows: 1 + rng.IntN(200), keep: func(p int64) bool { return bits[p] }, ranges: randomRanges(rng, n)}
			}
			for _, s := range []selection{{batchRows: 40}, {batchRows: 7, keep: func(p int64) bool { return p%5 < 3 }}, {batchRows: 1000, ranges: randomRanges(rng, n)}} {
				s.dictionary = true
				selections[fmt.Sprintf("dictionary, batch of %d", s.batchRows)] = s
			}
			selections["ranges"] = selection{batchRows: 16, ranges: randomRanges(rng, n)}
			selections["last rows"] = selection{batchRows: 16, ranges: []batch.Range{{Start: int64(n - n/10), End: int64(n)}}}
			for name, s := range selections {
				t.Run(name, func(t *testing.T) { checkSelection(t, c, want, s) })
			}
		})
	}
}

func randomRanges(rng *rand.Rand, n int) []batch.Range {
	ranges := []batch.Range{}
	for at := rng.IntN(20); at < n; {
		end := min(n, at+1+rng.IntN(60))
		ranges = append(ranges, batch.Range{Start: int64(at), End: int64(end)})
		at = end + rng.IntN(80)
	}
	return ranges
}

func checkSelection(t *testing.T, c corpusCase, want expectation, s selection) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	pool := mem.NewPool("test", 64<<20)
	opts := Options{Alloc: alloc, Pool: pool, BatchRows: s.batchRows, ReadSize: max(s.readSize, 100), ReadAhead: s.readAhead, DictionaryFields: map[int]bool{}}
	for id := range 100 {
		opts.DictionaryFields[id] = s.dictionary
	}
	f, _ := openCase(t, c.File, opts)
	if !f.Schema().Equal(want.schema) {
		t.Errorf("schema\n%s\nwant\n%s", f.Schema(), want.schema)
	}
	checkMetadata(t, f.Schema().Fields(), want.schema.Fields())
	positions, values, err := readAll(t, f, s)
	if err != nil {
		t.Fatal(err)
	}
	for column := range values {
		var wantPositions []int64
		for p := range int64(want.rows) {
			in := s.ranges == nil || slices.ContainsFunc(s.ranges, func(r batch.Range) bool { return r.Start <= p && p < r.End })
			if in && (s.keep == nil || s.keep(p)) {
				wantPositions = append(wantPositions, p)
			}
		}
		if s.skipWindow == nil && !slices.Equal(positions[column], wantPositions) {
			t.Fatalf("column %d: positions %v, want %v", column, positions[column], wantPositions)
		}
		for i, p := range positions[column] {
			if got := values[column][i]; got != want.values[column][p] {
				t.Fatalf("column %s row %d is %q, want %q", want.schema.Field(column).Name, p, got, want.values[column][p])
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}

// checkMetadata compares field ids at every level.
func checkMetadata(t *testing.T, got, want []arrow.Field) {
	for i := range want {
		g, _ := got[i].Metadata.GetValue(fieldIDKey)
		w, _ := want[i].Metadata.GetValue(fieldIDKey)
		if g != w {
			t.Errorf("field %s has the id %q, want %q", want[i].Name, g, w)
		}
		if nested, ok := want[i].Type.(arrow.NestedType); ok {
			checkMetadata(t, got[i].Type.(arrow.NestedType).Fields(), nested.Fields())
		}
	}
}
