package pq

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// writeFile writes one batch per row group, or as the options say.
func writeFile(t *testing.T, schema *iceberg.Schema, options WriterOptions, records ...arrow.RecordBatch) (*File, *Written) {
	t.Helper()
	var out bytes.Buffer
	ctx := context.Background()
	w, err := NewWriter(ctx, &out, records[0].Schema(), schema, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	written, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return openBytes(t, out.Bytes()), written
}

func openBytes(t *testing.T, content []byte) *File {
	t.Helper()
	f, err := Open(context.Background(), &memoryFile{content: content}, "test.parquet", Options{BatchRows: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// records are the batches of a stream.
type records struct {
	schema *arrow.Schema
	left   []arrow.RecordBatch
}

func (r *records) Schema() *arrow.Schema { return r.schema }
func (r *records) Close() error          { return nil }
func (r *records) Next(context.Context) (arrow.RecordBatch, error) {
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	next := r.left[0]
	next.Retain()
	r.left = r.left[1:]
	return next, nil
}

// TestCopyRowGroups mixes copied row groups with new ones.
func TestCopyRowGroups(t *testing.T) {
	ctx := context.Background()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	schema := everyType()
	arrowSchema := batchSchema(schema)
	bloom := map[int]BloomOptions{}
	for _, id := range primitiveIDs(schema) {
		bloom[id] = BloomOptions{MaxBytes: 1024}
	}
	fill := filler{rng: rand.New(rand.NewPCG(4, 4)), distinct: 100, nulls: 0.2, length: 10}
	var batches []arrow.RecordBatch
	for _, n := range []int{100, 1, 250, 40} {
		b := fill.record(alloc, arrowSchema, n)
		defer b.Release()
		batches = append(batches, b)
	}
	options := WriterOptions{PageRows: 30, BloomFilters: bloom, Alloc: alloc}
	source, _ := writeFile(t, schema, options, batches[:3]...)
	defer source.Close()

	var out bytes.Buffer
	w, err := NewWriter(ctx, &out, arrowSchema, schema, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, batches[3]); err != nil {
		t.Fatal(err)
	}
	if err := w.CopyRowGroups(ctx, source, []int{2, 0}); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, batches[1]); err != nil {
		t.Fatal(err)
	}
	if err := w.CopyRowGroup(ctx, source, 1, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	written, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, out.Bytes())
	defer f.Close()
	if n := len(f.RowGroups()); n != 5 || written.Records != 392 || written.Size != int64(out.Len()) {
		t.Errorf("%d row groups, %d rows, %d bytes", n, written.Records, written.Size)
	}
	_, got, err := readAll(t, f, selection{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		row := 0
		for _, b := range []int{3, 2, 0, 1, 1} {
			for _, want := range render(batches[b].Column(i)) {
				if got[i][row] != want {
					t.Fatalf("column %s row %d is %s, want %s", arrowSchema.Field(i).Name, row, got[i][row], want)
				}
				row++
			}
		}
	}
	// The NaN counts are not in the source.
	if len(written.NaNCounts) > 0 {
		t.Errorf("NaN counts %v", written.NaNCounts)
	}
	for leaf, l := range f.schema.leaves {
		if l.physical != physFloat && l.physical != physDouble || !l.flat() {
			continue
		}
		n := int64(0)
		for _, rows := range f.RowGroups() {
			a := column(t, f, leaf, rows)
			n += nansIn(a)
			a.Release()
		}
		written.NaNCounts[int(l.fieldID)] = n
	}
	checkWrittenStatistics(t, f, written, options)
}

// TestCopyGenerates replaces a column of a copied row group and adds another.
func TestCopyGenerates(t *testing.T) {
	ctx := context.Background()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	field := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	before := iceberg.NewSchema(0, field(1, "a", iceberg.PrimitiveTypes.String), field(2, "b", iceberg.PrimitiveTypes.Int64), field(3, "c", iceberg.PrimitiveTypes.Float64))
	// a is renamed, c is moved, d is new.
	after := iceberg.NewSchema(1, field(3, "c", iceberg.PrimitiveTypes.Float64), field(4, "d", iceberg.PrimitiveTypes.Int64),
		field(1, "A", iceberg.PrimitiveTypes.String), field(2, "b", iceberg.PrimitiveTypes.Int64))
	fill := filler{rng: rand.New(rand.NewPCG(4, 4)), distinct: 1000, nulls: 0.2, length: 10}
	old := fill.record(alloc, batchSchema(before), 300)
	defer old.Release()
	source, _ := writeFile(t, before, WriterOptions{Alloc: alloc}, old)
	defer source.Close()

	target := batchSchema(after)
	part := arrow.NewSchema([]arrow.Field{target.Field(3), target.Field(1)}, nil) // b and d
	first, second := fill.record(alloc, part, 100), fill.record(alloc, part, 200)
	defer first.Release()
	defer second.Release()

	var out bytes.Buffer
	w, err := NewWriter(ctx, &out, target, after, WriterOptions{PageRows: 50, Alloc: alloc})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.CopyRowGroups(ctx, source, []int{0}); !errors.Is(err, ErrCannotCopy) {
		t.Fatalf("a column is missing: %v", err)
	}
	stream := &records{schema: part, left: []arrow.RecordBatch{first, second}}
	if err := w.CopyRowGroup(ctx, source, 0, CopyOptions{Generated: stream, NaNCounts: map[int]int64{3: nansIn(old.Column(2))}}); err != nil {
		t.Fatal(err)
	}
	written, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, out.Bytes())
	defer f.Close()
	_, got, err := readAll(t, f, selection{})
	if err != nil {
		t.Fatal(err)
	}
	joined := func(i int) []string { return append(render(first.Column(i)), render(second.Column(i))...) }
	for i, want := range [][]string{render(old.Column(2)), joined(1), render(old.Column(0)), joined(0)} {
		for row := range want {
			if got[i][row] != want[row] {
				t.Fatalf("column %s row %d is %s, want %s", target.Field(i).Name, row, got[i][row], want[row])
			}
		}
	}
	checkWrittenStatistics(t, f, written, WriterOptions{})

	// Rows that do not match the row group end the writer.
	w, err = NewWriter(ctx, io.Discard, target, after, WriterOptions{Alloc: alloc})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	stream = &records{schema: part, left: []arrow.RecordBatch{first}}
	if err := w.CopyRowGroup(ctx, source, 0, CopyOptions{Generated: stream}); errs.CodeOf(err) != errs.InvalidArgument {
		t.Errorf("too few rows: %v", err)
	}
	if _, err := w.Close(ctx); errs.CodeOf(err) != errs.InvalidArgument {
		t.Errorf("Close after an error: %v", err)
	}
}

// TestCopyRefuses checks the differences that forbid a copy, each of which
// leaves the writer usable.
func TestCopyRefuses(t *testing.T) {
	ctx := context.Background()
	list := func(element iceberg.Type, isRequired bool) iceberg.Type {
		return &iceberg.ListType{ElementID: 2, Element: element, ElementRequired: isRequired}
	}
	structure := func(fields ...iceberg.NestedField) iceberg.Type { return &iceberg.StructType{FieldList: fields} }
	p := iceberg.PrimitiveTypes
	for name, c := range map[string]struct {
		before, after iceberg.NestedField
		copies        bool
	}{
		"same":              {iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64}, iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64}, true},
		"renamed":           {iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64}, iceberg.NestedField{ID: 1, Name: "b", Type: p.Int64}, true},
		"another id":        {iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64}, iceberg.NestedField{ID: 3, Name: "a", Type: p.Int64}, false},
		"wider":             {iceberg.NestedField{ID: 1, Name: "a", Type: p.Int32}, iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64}, false},
		"no longer wanted":  {iceberg.NestedField{ID: 1, Name: "a", Type: p.Int32, Required: true}, iceberg.NestedField{ID: 1, Name: "a", Type: p.Int32}, false},
		"precision":         {iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.DecimalTypeOf(4, 2)}, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.DecimalTypeOf(5, 2)}, false},
		"annotation":        {iceberg.NestedField{ID: 1, Name: "a", Type: p.Binary}, iceberg.NestedField{ID: 1, Name: "a", Type: p.String}, false},
		"zone":              {iceberg.NestedField{ID: 1, Name: "a", Type: p.Timestamp}, iceberg.NestedField{ID: 1, Name: "a", Type: p.TimestampTz}, false},
		"list":              {iceberg.NestedField{ID: 1, Name: "a", Type: list(p.Date, true)}, iceberg.NestedField{ID: 1, Name: "a", Type: list(p.Date, true)}, true},
		"optional elements": {iceberg.NestedField{ID: 1, Name: "a", Type: list(p.Date, true)}, iceberg.NestedField{ID: 1, Name: "a", Type: list(p.Date, false)}, false},
		"part dropped": {
			iceberg.NestedField{ID: 1, Name: "a", Type: structure(iceberg.NestedField{ID: 2, Name: "x", Type: p.Date}, iceberg.NestedField{ID: 3, Name: "y", Type: p.Date})},
			iceberg.NestedField{ID: 1, Name: "a", Type: structure(iceberg.NestedField{ID: 3, Name: "y", Type: p.Date})}, true,
		},
		"part added": {
			iceberg.NestedField{ID: 1, Name: "a", Type: structure(iceberg.NestedField{ID: 3, Name: "y", Type: p.Date})},
			iceberg.NestedField{ID: 1, Name: "a", Type: structure(iceberg.NestedField{ID: 2, Name: "x", Type: p.Date}, iceberg.NestedField{ID: 3, Name: "y", Type: p.Date})}, false,
		},
		"nested otherwise": {
			iceberg.NestedField{ID: 1, Name: "a", Type: structure(iceberg.NestedField{ID: 2, Name: "x", Type: p.Date})},
			iceberg.NestedField{ID: 1, Name: "a", Type: list(p.Date, false)}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := iceberg.NewSchema(0, c.before), iceberg.NewSchema(0, c.after)
			fill := filler{rng: rand.New(rand.NewPCG(4, 4)), distinct: 50, nulls: 0.2, length: 10}
			old, young := fill.record(memory.DefaultAllocator, batchSchema(before), 50), fill.record(memory.DefaultAllocator, batchSchema(after), 7)
			source, _ := writeFile(t, before, WriterOptions{}, old)
			var out bytes.Buffer
			w, err := NewWriter(ctx, &out, batchSchema(after), after, WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = w.CopyRowGroups(ctx, source, []int{0})
			if (err == nil) != c.copies || err != nil && (!errors.Is(err, ErrCannotCopy) || errs.CodeOf(err) != errs.Unsupported) {
				t.Errorf("copy: %v", err)
			}
			if err := w.Write(ctx, young); err != nil {
				t.Fatal(err)
			}
			written, err := w.Close(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want := render(young.Column(0))
			if c.copies && name != "part dropped" {
				want = append(render(old.Column(0)), want...)
			} else if c.copies {
				dropped := array.NewRecordBatch(batchSchema(after), []arrow.Array{withoutFirst(old.Column(0), batchSchema(after).Field(0).Type)}, 50)
				want = append(render(dropped.Column(0)), want...)
			}
			_, got, err := readAll(t, openBytes(t, out.Bytes()), selection{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got[0]) != len(want) || written.Records != int64(len(want)) {
				t.Fatalf("%d rows, %d written, want %d", len(got[0]), written.Records, len(want))
			}
			for i := range want {
				if got[0][i] != want[i] {
					t.Errorf("row %d is %s, want %s", i, got[0][i], want[i])
				}
			}
		})
	}
}

// withoutFirst is a struct array without its first field.
func withoutFirst(a arrow.Array, to arrow.DataType) arrow.Array {
	data := a.Data()
	return array.MakeFromData(array.NewData(to, data.Len(), data.Buffers(), data.Children()[1:], data.NullN(), data.Offset()))
}
