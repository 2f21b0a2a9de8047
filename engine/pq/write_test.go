package pq

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
)

func oneColumn(t iceberg.Type, isRequired bool) *iceberg.Schema {
	return iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: t, Required: isRequired})
}

// TestWriterMemory checks that a row group ends early when memory is short, at
// its least size, and that the charge covers the row group.
func TestWriterMemory(t *testing.T) {
	ctx := context.Background()
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 2, Name: "b", Type: iceberg.PrimitiveTypes.Int64})
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	fill := filler{rng: rand.New(rand.NewPCG(1, 1)), distinct: 1 << 30, length: 100}
	var batches []arrow.RecordBatch
	for range 40 {
		b := fill.record(alloc, batchSchema(schema), 5000)
		defer b.Release()
		batches = append(batches, b)
	}
	for _, c := range []struct {
		limit    int64
		min, max int64 // bytes of a row group
		peak     int64
	}{
		{mem.Unlimited, 16 << 20, 18 << 20, 1 << 40},
		{8 << 20, 1 << 20, 8 << 20, 8 << 20},
		{3 << 20, 1 << 20, 4 << 20, 6 << 20},
		{1, 1 << 20, 3 << 20, 6 << 20},
	} {
		pool := mem.NewPool("test", c.limit)
		w, err := NewWriter(ctx, io.Discard, batchSchema(schema), schema, WriterOptions{
			Alloc: alloc, Pool: pool, Compression: Compression{Codec: Uncompressed}, RowGroupBytes: 16 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			if err := w.Write(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(ctx); err != nil {
			t.Fatal(err)
		}
		groups := w.file.groups
		for i, g := range groups[:len(groups)-1] {
			if g.compressed < c.min || g.compressed > c.max {
				t.Errorf("limit %d: row group %d of %d has %d bytes", c.limit, i, len(groups), g.compressed)
			}
		}
		if len(groups) < 2 || pool.Peak() > c.peak || pool.Used() != 0 {
			t.Errorf("limit %d: %d row groups, peak %d, left %d", c.limit, len(groups), pool.Peak(), pool.Used())
		}
	}
}

// TestFlushGivesMemoryBack checks what a caller of many writers relies on.
func TestFlushGivesMemoryBack(t *testing.T) {
	ctx := context.Background()
	schema := oneColumn(iceberg.PrimitiveTypes.String, false)
	fill := filler{rng: rand.New(rand.NewPCG(1, 1)), distinct: 1 << 30, length: 500}
	w, err := NewWriter(ctx, io.Discard, batchSchema(schema), schema, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for range 5 {
		if err := w.Write(ctx, fill.record(memory.DefaultAllocator, batchSchema(schema), 5000)); err != nil {
			t.Fatal(err)
		}
	}
	before, size := w.Held(), w.Size()
	if err := w.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if before < size || size < 3<<20 || w.Held() > 1<<20 {
		t.Errorf("a row group of %d bytes was charged %d; after it %d are", size, before, w.Held())
	}
}

// TestWriterFaults fails each write in turn.
func TestWriterFaults(t *testing.T) {
	ctx := context.Background()
	schema := iceberg.NewSchema(0, everyType().Fields()[30:]...)
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	fill := filler{rng: rand.New(rand.NewPCG(1, 1)), distinct: 1 << 30, nulls: 0.1, length: 500}
	record := fill.record(alloc, batchSchema(schema), 1200)
	defer record.Release()
	source, _ := writeFile(t, schema, WriterOptions{Alloc: alloc}, record)
	defer source.Close()
	faults := 0
	for k := int64(0); ; k++ {
		fs := enginetest.NewFaultFS(fileio.NewLocal(), k)
		pool := mem.NewPool("test", mem.Unlimited)
		err := writeThrough(ctx, fs, t.TempDir()+"/out.parquet", record, source, schema, WriterOptions{
			Alloc: alloc, Pool: pool, Path: "out.parquet", RowGroupRows: 500, BloomFilters: map[int]BloomOptions{31: {}},
		})
		if err := pool.Close(); err != nil {
			t.Errorf("fault %d: %v", k, err)
		}
		if !fs.Failed() {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		faults++
		if !errors.Is(err, enginetest.ErrFault) {
			t.Errorf("fault %d: %v", k, err)
		}
	}
	if faults < 20 {
		t.Errorf("only %d faults", faults)
	}
}

func writeThrough(ctx context.Context, fs fileio.FS, path string, record arrow.RecordBatch, source *File, schema *iceberg.Schema, options WriterOptions) error {
	file, err := fs.Create(ctx, path)
	if err != nil {
		return err
	}
	defer file.Abort()
	w, err := NewWriter(ctx, file, record.Schema(), schema, options)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := w.Write(ctx, record); err != nil {
		return err
	}
	if err := w.CopyRowGroups(ctx, source, []int{0}); err != nil {
		return err
	}
	if _, err := w.Close(ctx); err != nil {
		return err
	}
	return file.Close()
}

// TestArrayKinds writes the same strings from every kind of array that holds
// strings, sliced.
func TestArrayKinds(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	values := []string{"skipped", "a", "", "a longer string than views hold inline", "b", "a", "é", "skipped"}
	valid := []bool{true, true, true, true, false, true, true, true}
	uuid := strings.Repeat("x", 16)
	build := func(b array.Builder, add func(v string)) arrow.Array {
		defer b.Release()
		for i, v := range values {
			if valid[i] {
				add(v)
			} else {
				b.AppendNull()
			}
		}
		whole := b.NewArray()
		defer whole.Release()
		return array.NewSlice(whole, 1, int64(len(values)-1))
	}
	p := iceberg.PrimitiveTypes
	strs, large, view := array.NewStringBuilder(alloc), array.NewLargeStringBuilder(alloc), array.NewStringViewBuilder(alloc)
	bin, largeBin, binView := array.NewBinaryBuilder(alloc, arrow.BinaryTypes.Binary), array.NewBinaryBuilder(alloc, arrow.BinaryTypes.LargeBinary), array.NewBinaryViewBuilder(alloc)
	dictionary := array.NewDictionaryBuilder(alloc, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}).(*array.BinaryDictionaryBuilder)
	ids := extensions.NewUUIDBuilder(alloc)
	for name, c := range map[string]struct {
		t     iceberg.Type
		array arrow.Array
	}{
		"string":       {p.String, build(strs, strs.Append)},
		"large string": {p.String, build(large, large.Append)},
		"string view":  {p.String, build(view, view.Append)},
		"binary":       {p.Binary, build(bin, func(v string) { bin.Append([]byte(v)) })},
		"large binary": {p.Binary, build(largeBin, func(v string) { largeBin.Append([]byte(v)) })},
		"binary view":  {p.Binary, build(binView, func(v string) { binView.Append([]byte(v)) })},
		"dictionary":   {p.String, build(dictionary, func(v string) { _ = dictionary.AppendString(v) })},
		"uuid":         {p.UUID, build(ids, func(v string) { ids.AppendBytes([16]byte([]byte((v + uuid)[:16]))) })},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.array.Release()
			schema := oneColumn(c.t, false)
			f := batchSchema(schema).Field(0)
			f.Type = c.array.DataType()
			record := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{f}, nil), []arrow.Array{c.array}, int64(c.array.Len()))
			defer record.Release()
			file, _ := writeFile(t, schema, WriterOptions{Alloc: alloc}, record)
			_, got, err := readAll(t, file, selection{})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got[0] {
				want := c.array.ValueStr(i)
				switch a := c.array.(type) {
				case *array.LargeBinary, *array.BinaryView, *extensions.UUIDArray:
					if a.IsValid(i) {
						want = column(t, file, 0, file.RowGroups()[0]).ValueStr(i)
						raw := values[i+1]
						if name == "uuid" {
							raw = (raw + uuid)[:16]
						}
						if v := column(t, file, 0, file.RowGroups()[0]); name == "uuid" && string(v.(*array.FixedSizeBinary).Value(i)) != raw ||
							name != "uuid" && string(v.(*array.Binary).Value(i)) != raw {
							t.Errorf("row %d is %s", i, v.ValueStr(i))
						}
					}
				}
				if v != want {
					t.Errorf("row %d is %q, want %q", i, v, want)
				}
			}
		})
	}
}

// TestWriterMisuse checks errors for batches that do not fit.
func TestWriterMisuse(t *testing.T) {
	ctx := context.Background()
	p := iceberg.PrimitiveTypes
	ids := func(i string) arrow.Metadata { return arrow.NewMetadata([]string{fieldIDKey}, []string{i}) }
	for name, c := range map[string]struct {
		t     iceberg.Type
		field arrow.Field
		code  errs.Code
		text  string
	}{
		"another type":  {p.Int64, arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Int32}, errs.InvalidArgument, "column c has the type long, the batches have int32"},
		"another id":    {p.Int64, arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Int64, Metadata: ids("9")}, errs.InvalidArgument, "the field id 1 in the table, 9 in the batches"},
		"another name":  {p.Int64, arrow.Field{Name: "d", Type: arrow.PrimitiveTypes.Int64}, errs.InvalidArgument, "a column d where the table has c"},
		"another zone":  {p.TimestampTz, arrow.Field{Name: "c", Type: arrow.FixedWidthTypes.Timestamp_us.(*arrow.TimestampType)}, errs.OK, ""},
		"no zone":       {p.TimestampTz, arrow.Field{Name: "c", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}, errs.InvalidArgument, "has the type timestamptz"},
		"too precise":   {iceberg.DecimalTypeOf(4, 1), arrow.Field{Name: "c", Type: &arrow.Decimal128Type{Precision: 5, Scale: 1}}, errs.InvalidArgument, "decimal"},
		"not a list":    {&iceberg.ListType{ElementID: 2, Element: p.Int64}, arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Int64}, errs.InvalidArgument, "column c"},
		"not written":   {iceberg.VariantType{}, arrow.Field{Name: "c", Type: arrow.BinaryTypes.Binary}, errs.Unsupported, "variant"},
		"empty struct":  {&iceberg.StructType{}, arrow.Field{Name: "c", Type: arrow.StructOf()}, errs.Unsupported, "without stored fields"},
		"wrong element": {&iceberg.ListType{ElementID: 2, Element: p.Int64}, arrow.Field{Name: "c", Type: arrow.ListOf(arrow.BinaryTypes.String)}, errs.InvalidArgument, "column c.element has the type long, the batches have utf8"},
	} {
		_, err := NewWriter(ctx, io.Discard, arrow.NewSchema([]arrow.Field{c.field}, nil), oneColumn(c.t, false), WriterOptions{Path: "x.parquet"})
		if c.code == errs.OK && err == nil {
			continue
		}
		if errs.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "write x.parquet: ") {
			t.Errorf("%s: %v", name, err)
		}
	}

	// A null in a required column, and a decimal of more digits than its type.
	null := array.NewInt64Builder(memory.DefaultAllocator)
	null.AppendNull()
	decimal := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 9, Scale: 0})
	decimal.Append(decimal128.FromI64(1 << 40))
	wide := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 20, Scale: 0})
	wide.Append(decimal128.New(1<<40, 0))
	for text, c := range map[string]struct {
		schema *iceberg.Schema
		array  arrow.Array
	}{
		"column c is required and has a null": {oneColumn(p.Int64, true), null.NewArray()},
		"does not fit decimal(9, 0)":          {oneColumn(iceberg.DecimalTypeOf(9, 0), true), decimal.NewArray()},
		"does not fit decimal(20, 0)":         {oneColumn(iceberg.DecimalTypeOf(20, 0), true), wide.NewArray()},
	} {
		schema := batchSchema(c.schema)
		w, err := NewWriter(ctx, io.Discard, schema, c.schema, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		record := array.NewRecordBatch(schema, []arrow.Array{c.array}, 1)
		err = w.Write(ctx, record)
		if errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
		if again := w.Flush(ctx); again == nil || again.Error() != err.Error() {
			t.Errorf("after the error: %v", again)
		}
		w.Abort()
		if err := w.Write(ctx, record); errs.CodeOf(err) != errs.InvalidArgument {
			t.Errorf("after the end: %v", err)
		}
	}
}

// TestWriterCancelled checks that a cancelled context ends the writer, and that
// its memory comes back.
func TestWriterCancelled(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	schema := oneColumn(iceberg.PrimitiveTypes.Int64, false)
	fill := filler{rng: rand.New(rand.NewPCG(1, 1)), distinct: 1 << 30}
	record := fill.record(alloc, batchSchema(schema), 10_000)
	defer record.Release()
	for _, threads := range []int{1, 2} {
		ctx, cancel := context.WithCancel(context.Background())
		pool := mem.NewPool("test", mem.Unlimited)
		w, err := NewWriter(ctx, io.Discard, record.Schema(), schema, WriterOptions{Alloc: alloc, Pool: pool, Threads: threads, PageRows: 100})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(ctx, record); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := w.Write(ctx, record); errs.CodeOf(err) != errs.Cancelled {
			t.Errorf("Write: %v", err)
		}
		if _, err := w.Close(context.Background()); errs.CodeOf(err) != errs.Cancelled {
			t.Errorf("Close: %v", err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEmptyFiles checks files without rows and without stored columns.
func TestEmptyFiles(t *testing.T) {
	ctx := context.Background()
	unknown := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "u", Type: iceberg.UnknownType{}})
	for name, c := range map[string]struct {
		schema *iceberg.Schema
		rows   int64
	}{
		"no rows": {everyType(), 0}, "no columns": {iceberg.NewSchema(0), 0}, "unknown": {unknown, 3}, "columns of no kind": {iceberg.NewSchema(0), 5},
	} {
		var out bytes.Buffer
		schema := batchSchema(c.schema)
		w, err := NewWriter(ctx, &out, schema, c.schema, WriterOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.rows > 0 {
			var columns []arrow.Array
			for range schema.Fields() {
				columns = append(columns, array.NewNull(int(c.rows)))
			}
			if err := w.Write(ctx, array.NewRecordBatch(schema, columns, c.rows)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		written, err := w.Close(ctx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f := openBytes(t, out.Bytes())
		if f.NumRows() != c.rows || written.Records != c.rows || len(f.Schema().Fields()) != len(w.tree.columns) {
			t.Errorf("%s: %d rows, %d written, schema %s", name, f.NumRows(), written.Records, f.Schema())
		}
	}
}

// TestBoundsTruncated checks truncated bounds against all that they must hold.
func TestBoundsTruncated(t *testing.T) {
	text := &leaf{physical: physByteArray, logical: logicalType{kind: logicalString}, typ: arrow.BinaryTypes.String}
	binary := &leaf{physical: physByteArray, typ: arrow.BinaryTypes.Binary}
	for _, c := range []struct {
		leaf         *leaf
		value        string
		length       int
		lower, upper string // upper "-": none
	}{
		{text, "abc", 3, "abc", "abc"},
		{text, "abcd", 3, "abc", "abd"},
		{text, "", 1, "", ""},
		{text, "ab\U0010ffff\U0010ffffx", 3, "ab\U0010ffff", "ac"},
		{text, "\U0010ffff\U0010ffff", 1, "\U0010ffff", "-"},
		{text, "a\ud7ffx", 2, "a\ud7ff", "a\ue000"},
		{text, "éé", 1, "é", "ê"},
		{text, "\u007fx", 1, "\u007f", "\u0080"},
		{text, "\uffffx", 1, "\uffff", "\U00010000"},
		{binary, "abcd", 2, "ab", "ac"},
		{binary, "a\xff\xffd", 3, "a\xff\xff", "b"},
		{binary, "\xff\xffd", 2, "\xff\xff", "-"},
		{binary, "\xff\xff", 2, "\xff\xff", "\xff\xff"},
	} {
		lower, upper := c.leaf.truncateBounds(boundsOf(c.leaf, []byte(c.value), []byte(c.value)), c.length)
		if string(lower) != c.lower || (upper == nil) != (c.upper == "-") || upper != nil && string(upper) != c.upper {
			t.Errorf("%q cut to %d: [%q, %q], want [%q, %q]", c.value, c.length, lower, upper, c.lower, c.upper)
		}
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20000 {
		v := []byte(someString(rng, 12))
		l := text
		if rng.IntN(2) == 0 {
			l = binary
		}
		if rng.IntN(4) == 0 && len(v) > 0 {
			v[rng.IntN(len(v))] = 0xff // no longer UTF-8
		}
		n := 1 + rng.IntN(8)
		lower, upper := l.truncateBounds(boundsOf(l, v, v), n)
		cut := boundsOf(l, v, v).truncate(l, n)
		for _, b := range [][]byte{lower, cut.min} {
			if bytes.Compare(b, v) > 0 {
				t.Errorf("the lower bound %q of %q", b, v)
			}
		}
		for _, b := range [][]byte{upper, cut.max} {
			if b != nil && (bytes.Compare(b, v) < 0 || l == text && utf8.Valid(v) && !utf8.Valid(b)) {
				t.Errorf("the upper bound %q of %q", b, v)
			}
		}
		if len(cut.min) > n || len(cut.max) > n+3 || l == text && utf8.RuneCount(lower) > n {
			t.Errorf("%q cut to %d: %q %q %q", v, n, cut.min, cut.max, lower)
		}
	}
}

// TestLongBounds checks a chunk whose bounds are too long to be kept whole.
func TestLongBounds(t *testing.T) {
	schema := oneColumn(iceberg.PrimitiveTypes.String, false)
	write := func(values ...string) *Written {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.AppendValues(values, nil)
		record := array.NewRecordBatch(batchSchema(schema), []arrow.Array{b.NewArray()}, int64(len(values)))
		f, written := writeFile(t, schema, WriterOptions{Metrics: MetricsConfig{Default: MetricsMode{Kind: MetricsFull}}}, record)
		s := f.RowGroupStatistics(0, 0)
		pages, err := f.PageStatistics(context.Background(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		all := []Statistics{s}
		for _, p := range pages {
			all = append(all, p.Statistics)
		}
		for _, s := range all {
			if s.Lower != nil && slices.ContainsFunc(values, func(v string) bool { return v < string(s.Lower) }) ||
				s.Upper != nil && slices.ContainsFunc(values, func(v string) bool { return v > string(s.Upper) }) {
				t.Errorf("bounds of %d and %d bytes", len(s.Lower), len(s.Upper))
			}
		}
		return written
	}
	long := strings.Repeat("x", 5000)
	written := write(long+"a", "y"+long)
	if lower, upper := string(written.LowerBounds[1]), string(written.UpperBounds[1]); lower != long[:maxBound] || upper != "y"+long[:maxBound-2]+"y" {
		t.Errorf("bounds of %d and %d bytes", len(lower), len(upper))
	}
	greatest := strings.Repeat("\U0010ffff", 2000)
	if written = write("a", greatest); string(written.LowerBounds[1]) != "a" || written.UpperBounds[1] != nil {
		t.Errorf("bounds %q %q", written.LowerBounds[1], written.UpperBounds[1])
	}
}

// TestMetricsModes checks what each mode leaves out.
func TestMetricsModes(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "s", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 2, Name: "d", Type: iceberg.PrimitiveTypes.Float64})
	fill := filler{rng: rand.New(rand.NewPCG(1, 1)), distinct: 100, nulls: 0.1, length: 100}
	record := fill.record(memory.DefaultAllocator, batchSchema(schema), 200)
	for _, c := range []struct {
		properties map[string]string
		counts     bool
		length     int // of the string's bounds; -1: none
	}{
		{nil, true, 16},
		{map[string]string{"write.metadata.metrics.default": "counts"}, true, -1},
		{map[string]string{"write.metadata.metrics.default": "none"}, false, -1},
		{map[string]string{"write.metadata.metrics.default": "full", "write.metadata.metrics.column.s": "truncate(3)"}, true, 3},
		{map[string]string{"write.metadata.metrics.column.s": "none"}, false, -1},
		{map[string]string{"write.metadata.metrics.max-inferred-column-defaults": "0"}, false, -1},
		{map[string]string{"write.metadata.metrics.max-inferred-column-defaults": "0", "write.metadata.metrics.column.s": "full"}, true, 1000},
	} {
		options, err := ParseWriterOptions(c.properties, schema)
		if err != nil {
			t.Fatal(err)
		}
		_, written := writeFile(t, schema, options, record)
		_, counted := written.NullCounts[1]
		_, valued := written.ValueCounts[1]
		lower, bounded := written.LowerBounds[1]
		if counted != c.counts || valued != c.counts || bounded != (c.length >= 0) || utf8.RuneCount(lower) > max(c.length, 0) || written.ColumnSizes[1] == 0 {
			t.Errorf("%v: %+v", c.properties, written)
		}
	}
}

func TestParseWriterOptions(t *testing.T) {
	schema := everyType()
	o, err := ParseWriterOptions(map[string]string{
		"write.parquet.compression-codec": "GZIP", "write.parquet.compression-level": "7",
		"write.parquet.row-group-size-bytes": "1000", "write.parquet.row-group-limit": "10",
		"write.parquet.page-size-bytes": "2000", "write.parquet.page-row-limit": "20", "write.parquet.dict-size-bytes": "3000",
		"write.parquet.page-version": "v2", "write.parquet.bloom-filter-max-bytes": "4096",
		"write.parquet.bloom-filter-enabled.column.long":   "true",
		"write.parquet.bloom-filter-fpp.column.long":       "0.05",
		"write.parquet.bloom-filter-enabled.column.string": "false",
		"write.parquet.bloom-filter-enabled.column.gone":   "true",
		"other": "x",
	}, schema)
	if err != nil {
		t.Fatal(err)
	}
	long, _ := schema.FindFieldByName("long")
	if o.Compression != (Compression{Gzip, 7}) || o.RowGroupBytes != 1000 || o.RowGroupRows != 10 || o.PageBytes != 2000 || o.PageRows != 20 ||
		o.DictionaryBytes != 3000 || o.PageVersion != 2 || len(o.BloomFilters) != 1 || o.BloomFilters[long.ID] != (BloomOptions{0.05, 4096}) {
		t.Errorf("%+v", o)
	}
	for _, c := range [][3]string{
		{"write.parquet.compression-codec", "lzo", "expected one of zstd, uncompressed"},
		{"write.parquet.compression-level", "23", "expected a number from 1 to 22 for zstd"},
		{"write.parquet.compression-level", "fast", "expected a number"},
		{"write.parquet.page-size-bytes", "0", "expected a number from 1 to"},
		{"write.parquet.row-group-size-bytes", "1MB", "expected a number from 1 to"},
		{"write.parquet.page-version", "v3", "expected v1 or v2"},
		{"write.parquet.bloom-filter-enabled.column.long", "yes", "expected true or false"},
		{"write.metadata.metrics.default", "truncate(0)", "expected none, counts, truncate"},
		{"write.metadata.metrics.column.long", "truncate", "expected none, counts, truncate"},
		{"write.metadata.metrics.max-inferred-column-defaults", "-1", "not negative"},
	} {
		_, err := ParseWriterOptions(map[string]string{c[0]: c[1]}, schema)
		if errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), c[0]) || !strings.Contains(err.Error(), c[2]) || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s=%s: %v", c[0], c[1], err)
		}
	}
}
