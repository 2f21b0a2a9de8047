package pq

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// everyType is a schema with every type that is written, flat and nested.
func everyType() *iceberg.Schema {
	id := 0
	next := func() int { id++; return id }
	field := func(name string, t iceberg.Type, isRequired bool) iceberg.NestedField {
		return iceberg.NestedField{ID: next(), Name: name, Type: t, Required: isRequired}
	}
	var fields []iceberg.NestedField
	for name, t := range ordered(
		"boolean", iceberg.PrimitiveTypes.Bool, "int", iceberg.PrimitiveTypes.Int32, "long", iceberg.PrimitiveTypes.Int64,
		"float", iceberg.PrimitiveTypes.Float32, "double", iceberg.PrimitiveTypes.Float64,
		"decimal9", iceberg.DecimalTypeOf(9, 2), "decimal18", iceberg.DecimalTypeOf(18, 3),
		"decimal19", iceberg.DecimalTypeOf(19, 0), "decimal38", iceberg.DecimalTypeOf(38, 10),
		"date", iceberg.PrimitiveTypes.Date, "time", iceberg.PrimitiveTypes.Time,
		"timestamp", iceberg.PrimitiveTypes.Timestamp, "timestamptz", iceberg.PrimitiveTypes.TimestampTz,
		"timestamp_ns", iceberg.PrimitiveTypes.TimestampNs, "timestamptz_ns", iceberg.PrimitiveTypes.TimestampTzNs,
		"string", iceberg.PrimitiveTypes.String, "binary", iceberg.PrimitiveTypes.Binary,
		"uuid", iceberg.PrimitiveTypes.UUID, "fixed", iceberg.FixedTypeOf(5),
	) {
		fields = append(fields, field(name, t, false), field(name+"_required", t, true))
	}
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{
		field("a", iceberg.PrimitiveTypes.Int32, false), field("b", iceberg.PrimitiveTypes.String, true),
	}}
	fields = append(fields, field("struct", &iceberg.StructType{FieldList: []iceberg.NestedField{
		field("x", iceberg.PrimitiveTypes.Float64, false), field("inner", inner, false),
	}}, false))
	fields = append(fields, field("list", &iceberg.ListType{ElementID: next(), Element: iceberg.PrimitiveTypes.Int64}, false))
	fields = append(fields, field("map", &iceberg.MapType{
		KeyID: next(), KeyType: iceberg.PrimitiveTypes.String, ValueID: next(), ValueType: iceberg.DecimalTypeOf(5, 1),
	}, true))
	deep := &iceberg.StructType{FieldList: []iceberg.NestedField{
		field("y", iceberg.PrimitiveTypes.Bool, true),
		field("z", &iceberg.ListType{ElementID: next(), Element: iceberg.PrimitiveTypes.UUID, ElementRequired: true}, false),
	}}
	fields = append(fields, field("deep", &iceberg.ListType{ElementID: next(), Element: deep}, false))
	return iceberg.NewSchema(7, fields...)
}

// ordered yields pairs of a name and a type.
func ordered(pairs ...any) func(yield func(string, iceberg.Type) bool) {
	return func(yield func(string, iceberg.Type) bool) {
		for i := 0; i < len(pairs); i += 2 {
			if !yield(pairs[i].(string), pairs[i+1].(iceberg.Type)) {
				return
			}
		}
	}
}

// batchSchema is the Arrow schema of an Iceberg schema, with field ids.
func batchSchema(s *iceberg.Schema) *arrow.Schema {
	return arrow.NewSchema(arrowFields(s.Fields()), nil)
}

func arrowFields(fields []iceberg.NestedField) []arrow.Field {
	var out []arrow.Field
	for _, f := range fields {
		out = append(out, arrow.Field{
			Name: f.Name, Type: arrowType(f.Type), Nullable: !f.Required,
			Metadata: arrow.NewMetadata([]string{fieldIDKey}, []string{strconv.Itoa(f.ID)}),
		})
	}
	return out
}

func arrowType(t iceberg.Type) arrow.DataType {
	switch t := t.(type) {
	case *iceberg.StructType:
		return arrow.StructOf(arrowFields(t.FieldList)...)
	case *iceberg.ListType:
		return arrow.ListOfField(arrowFields([]iceberg.NestedField{t.ElementField()})[0])
	case *iceberg.MapType:
		f := arrowFields([]iceberg.NestedField{t.KeyField(), t.ValueField()})
		return arrow.MapOfFields(f[0], f[1])
	case iceberg.UnknownType:
		return arrow.Null
	}
	e := schemaElement{physical: noPhysical, converted: -1}
	e.setPrimitive(t)
	l := &leaf{physical: e.physical, length: e.length, logical: e.annotation()}
	if err := l.chooseType(); err != nil {
		panic(err)
	}
	return l.typ
}

// filler fills builders with random values.
type filler struct {
	rng *rand.Rand
	// distinct is how many different values a column has; nulls is the chance
	// of a null; length bounds strings.
	distinct int
	nulls    float64
	length   int
}

func (f *filler) field(b array.Builder, field arrow.Field) {
	if field.Nullable && f.rng.Float64() < f.nulls {
		b.AppendNull()
		return
	}
	f.value(b, field.Type)
}

func (f *filler) value(b array.Builder, t arrow.DataType) {
	v := rand.New(rand.NewPCG(uint64(f.rng.IntN(f.distinct)), 9)) // the same for the same value
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.IntN(2) == 0)
	case *array.Int32Builder:
		b.Append(int32(v.Uint32()))
	case *array.Int64Builder:
		b.Append(int64(v.Uint64()))
	case *array.Float32Builder:
		b.Append(float32(someFloat(v)))
	case *array.Float64Builder:
		b.Append(someFloat(v))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.IntN(100000) - 50000))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.Int64N(86400e6)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.Int64N(1<<60) - 1<<59))
	case *array.Decimal128Builder:
		digits := v.IntN(int(t.(*arrow.Decimal128Type).Precision)) + 1
		text := []byte("-")[v.IntN(2):]
		for range digits {
			text = append(text, byte('0'+v.IntN(10)))
		}
		d, err := decimal128.FromString(string(text), 38, 0)
		if err != nil {
			panic(err)
		}
		b.Append(d)
	case *array.StringBuilder:
		b.Append(someString(v, f.length))
	case *array.BinaryBuilder:
		b.Append([]byte(someString(v, f.length)))
	case *array.FixedSizeBinaryBuilder:
		value := make([]byte, t.(*arrow.FixedSizeBinaryType).ByteWidth)
		for i := range value {
			value[i] = byte(v.IntN(256))
		}
		b.Append(value)
	case *array.StructBuilder:
		b.Append(true)
		for i, field := range t.(*arrow.StructType).Fields() {
			f.field(b.FieldBuilder(i), field)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range f.rng.IntN(4) {
			f.field(b.ValueBuilder(), t.(*arrow.ListType).ElemField())
		}
	case *array.MapBuilder:
		b.Append(true)
		for range f.rng.IntN(3) {
			f.value(b.KeyBuilder(), t.(*arrow.MapType).KeyType())
			f.field(b.ItemBuilder(), t.(*arrow.MapType).ItemField())
		}
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

func someFloat(v *rand.Rand) float64 {
	special := []float64{math.NaN(), 0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1.5}
	if i := v.IntN(20); i < len(special) {
		return special[i]
	}
	return v.NormFloat64() * 1000
}

// someString is of code points of every length, among them the greatest.
func someString(v *rand.Rand, length int) string {
	var s strings.Builder
	for range v.IntN(length + 1) {
		s.WriteRune([]rune{'a', 'z', 0x7f, 0xe9, 0x20ac, 0xd7ff, 0xffff, 0x1f600, 0x10ffff}[v.IntN(9)])
	}
	return s.String()
}

func (f *filler) record(alloc memory.Allocator, schema *arrow.Schema, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(alloc, schema)
	defer b.Release()
	for i, field := range schema.Fields() {
		for range rows {
			f.field(b.Field(i), field)
		}
	}
	return b.NewRecordBatch()
}

// TestWriteReadBack writes random batches under many options and reads them
// back: values, statistics, page bounds, Bloom filters and the file's metrics.
func TestWriteReadBack(t *testing.T) {
	schema := everyType()
	names := map[int]BloomOptions{}
	for _, id := range primitiveIDs(schema) {
		names[id] = BloomOptions{MaxBytes: 4096}
	}
	for i, c := range []struct {
		filler
		batches []int
		options WriterOptions
	}{
		{filler{distinct: 10, nulls: 0.2, length: 3}, []int{1}, WriterOptions{}},
		{filler{distinct: 10, nulls: 0.2, length: 3}, nil, WriterOptions{}},
		{filler{distinct: 10, nulls: 0, length: 3}, []int{500, 1, 300}, WriterOptions{PageRows: 100}},
		{filler{distinct: 1 << 30, nulls: 0, length: 30}, []int{700}, WriterOptions{PageRows: 100, RowGroupRows: 333, PageVersion: 2}},
		{filler{distinct: 1 << 30, nulls: 0.5, length: 30}, []int{700, 3}, WriterOptions{PageBytes: 256, RowGroupBytes: 60_000, BloomFilters: names}},
		{filler{distinct: 300, nulls: 0.3, length: 20}, []int{1000, 1000}, WriterOptions{DictionaryBytes: 500, PageBytes: 300, Compression: Compression{Codec: Snappy}}},
		{filler{distinct: 40, nulls: 0.9, length: 20}, []int{3000}, WriterOptions{PageRows: 50, PageVersion: 2, Compression: Compression{Codec: Uncompressed}, BloomFilters: names}},
		{filler{distinct: 5, nulls: 1, length: 20}, []int{100}, WriterOptions{PageRows: 7}},
		{filler{distinct: 2, nulls: 0.01, length: 200}, []int{200, 0, 200}, WriterOptions{PageRows: 30, Compression: Compression{Codec: Gzip, Level: 9}, Threads: 3}},
		{filler{distinct: 1000, nulls: 0.1, length: 5}, []int{500}, WriterOptions{PageVersion: 2, Compression: Compression{Codec: LZ4}, Metrics: MetricsConfig{Default: MetricsMode{Kind: MetricsFull}}}},
		{filler{distinct: 1000, nulls: 0.1, length: 9}, []int{500}, WriterOptions{Compression: Compression{Codec: Brotli, Level: 1}, Metrics: MetricsConfig{Default: MetricsMode{Length: 1}}}},
		{filler{distinct: 20, nulls: 0.1, length: 3000}, []int{50}, WriterOptions{}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c.rng = rand.New(rand.NewPCG(uint64(i), 3))
			checkReadBack(t, schema, &c.filler, c.batches, c.options)
		})
	}
}

// TestWriteRandom does the same with options and values drawn at random.
func TestWriteRandom(t *testing.T) {
	schema := everyType()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 8))
		pick := func(of ...int) int { return of[rng.IntN(len(of))] }
		fill := &filler{rng: rng, distinct: pick(1, 2, 9, 200, 1<<30), nulls: []float64{0, 0.05, 0.5, 0.95}[rng.IntN(4)], length: pick(0, 1, 8, 9, 40)}
		options := WriterOptions{
			Compression: Compression{Codec: Codec(rng.IntN(int(LZ4) + 1))}, PageVersion: 1 + rng.IntN(2), PageRows: pick(1, 8, 9, 100, 1000),
			PageBytes: pick(1, 100, 5000), DictionaryBytes: pick(1, 100, 1000, 1<<20), RowGroupRows: int64(pick(1, 7, 300, 1000)),
			Threads: pick(1, 3), Metrics: MetricsConfig{Default: MetricsMode{Length: pick(1, 2, 16)}},
		}
		if rng.IntN(2) == 0 {
			options.BloomFilters = map[int]BloomOptions{}
			for _, id := range primitiveIDs(schema) {
				options.BloomFilters[id] = BloomOptions{MaxBytes: pick(32, 100, 2000), FalsePositives: 0.1}
			}
		}
		var batches []int
		for range 1 + rng.IntN(4) {
			batches = append(batches, pick(0, 1, 8, 50, 120))
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkReadBack(t, schema, fill, batches, options) })
	}
}

func checkReadBack(t *testing.T, schema *iceberg.Schema, fill *filler, batches []int, options WriterOptions) {
	ctx := context.Background()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	pool := mem.NewPool("test", mem.Unlimited)
	options.Alloc, options.Pool, options.Path = alloc, pool, "out.parquet"

	want := batchSchema(schema)
	var out bytes.Buffer
	w, err := NewWriter(ctx, &out, want, schema, options)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	values := make([][]string, len(want.Fields()))
	rows := int64(0)
	for _, n := range batches {
		record := fill.record(alloc, want, n)
		defer record.Release()
		for i := range values {
			values[i] = append(values[i], render(record.Column(i))...)
		}
		if err := w.Write(ctx, record); err != nil {
			t.Fatal(err)
		}
		rows += int64(n)
	}
	written, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if written.Records != rows || written.Size != int64(out.Len()) {
		t.Errorf("%d rows in %d bytes, want %d in %d", written.Records, written.Size, rows, out.Len())
	}

	f, err := Open(ctx, &memoryFile{content: out.Bytes()}, "out.parquet", Options{Alloc: alloc, BatchRows: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checkMetadata(t, f.Schema().Fields(), want.Fields())
	_, got, err := readAll(t, f, selection{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range values {
		for row := range values[i] {
			if values[i][row] != got[i][row] {
				t.Fatalf("column %s row %d is %s, want %s", want.Field(i).Name, row, got[i][row], values[i][row])
			}
		}
	}
	checkWrittenStatistics(t, f, written, options)
}

// checkWrittenStatistics checks what a file and its metrics say of flat
// columns against their values.
func checkWrittenStatistics(t *testing.T, f *File, written *Written, options WriterOptions) {
	offsets := 0
	for i, c := range f.meta.rowGroups {
		if start := min(max(c.columns[0].dictPageOffset, 4), c.columns[0].dataPageOffset); c.columns[0].dictPageOffset > 0 && written.SplitOffsets[i] != start {
			t.Errorf("row group %d starts at %d, written says %d", i, start, written.SplitOffsets[i])
		}
		offsets++
	}
	if offsets != len(written.SplitOffsets) {
		t.Errorf("%d row groups, %d split offsets", offsets, len(written.SplitOffsets))
	}
	for leaf, l := range f.schema.leaves {
		id := int(l.fieldID)
		size := int64(0)
		for i := range f.meta.rowGroups {
			size += f.meta.rowGroups[i].columns[leaf].compressedSize
		}
		if written.ColumnSizes[id] != size {
			t.Errorf("%s takes %d bytes, written says %d", l.path, size, written.ColumnSizes[id])
		}
		if !l.flat() || f.schema.columnOf(leaf).kind != leafNode {
			continue
		}
		nulls, nans := int64(0), int64(0)
		for g, rows := range f.RowGroups() {
			checkPart(t, f, leaf, rows, f.RowGroupStatistics(g, leaf), options)
			pages, err := f.PageStatistics(context.Background(), g, leaf)
			if err != nil {
				t.Fatal(err)
			}
			end := rows.Start
			for _, p := range pages {
				checkPart(t, f, leaf, p.Range, p.Statistics, options)
				if p.Range.Start != end || p.Range.Len() > int64(options.withDefaults().PageRows) {
					t.Errorf("%s: page %v in row group %v", l.path, p.Range, rows)
				}
				end = p.Range.End
			}
			a := column(t, f, leaf, rows)
			if end != rows.End && !(nansIn(a) > 0) {
				t.Errorf("%s: pages end at %d of %d", l.path, end, rows.End)
			}
			nulls += int64(a.NullN())
			nans += nansIn(a)
			if options.BloomFilters != nil && l.physical != physBoolean {
				checkBloom(t, f, g, leaf, a)
			}
			for i := range a.Len() {
				if a.IsNull(i) {
					continue
				}
				if b := written.LowerBounds[id]; b != nil && orderOf(a, i, b) < 0 {
					t.Errorf("%s: %s is below the lower bound %x", l.path, a.ValueStr(i), b)
				}
				if b := written.UpperBounds[id]; b != nil && orderOf(a, i, b) > 0 {
					t.Errorf("%s: %s is above the upper bound %x", l.path, a.ValueStr(i), b)
				}
			}
			a.Release()
		}
		if written.ValueCounts[id] != f.NumRows() || written.NullCounts[id] != nulls || written.NaNCounts[id] != nans {
			t.Errorf("%s: %d values, %d nulls, %d NaNs, want %d, %d, %d", l.path,
				written.ValueCounts[id], written.NullCounts[id], written.NaNCounts[id], f.NumRows(), nulls, nans)
		}
		if _, ok := written.LowerBounds[id]; !ok && nulls+nans < f.NumRows() {
			t.Errorf("%s has no lower bound", l.path)
		}
	}
}

func nansIn(a arrow.Array) (n int64) {
	for i := range a.Len() {
		switch a := a.(type) {
		case *array.Float32:
			if v := a.Value(i); a.IsValid(i) && v != v {
				n++
			}
		case *array.Float64:
			if v := a.Value(i); a.IsValid(i) && v != v {
				n++
			}
		}
	}
	return n
}

// checkPart checks the statistics of some rows, which must be as close as
// their length allows.
func checkPart(t *testing.T, f *File, leaf int, rows batch.Range, s Statistics, _ WriterOptions) {
	a := column(t, f, leaf, rows)
	defer a.Release()
	path := f.schema.leaves[leaf].path
	if s.NullCount != int64(a.NullN()) {
		t.Errorf("%s rows %v: %d nulls, want %d", path, rows, s.NullCount, a.NullN())
	}
	lowerMet, upperMet := len(s.Lower) > 16, len(s.Upper) > 16
	for i := range a.Len() {
		if a.IsNull(i) || s.Lower == nil || s.Upper == nil {
			continue
		}
		low, high := orderOf(a, i, s.Lower), orderOf(a, i, s.Upper)
		if low < 0 || high > 0 {
			t.Errorf("%s rows %v: %s is not within [%x, %x]", path, rows, a.ValueStr(i), s.Lower, s.Upper)
		}
		lowerMet, upperMet = lowerMet || low == 0, upperMet || high == 0
	}
	zero := func(b []byte) bool { return len(bytes.Trim(b, "\x00\x80")) == 0 } // -0.0 bounds 0.0
	if s.Lower != nil && !lowerMet && !zero(s.Lower) || s.Upper != nil && !upperMet && !zero(s.Upper) {
		t.Errorf("%s rows %v: the bounds [%x, %x] are not met", path, rows, s.Lower, s.Upper)
	}
}

// checkBloom checks that a filter knows every value of a row group.
func checkBloom(t *testing.T, f *File, g, leaf int, a arrow.Array) {
	filter, err := f.BloomFilter(context.Background(), g, leaf)
	if err != nil || filter == nil {
		t.Fatalf("%s: no Bloom filter: %v", f.schema.leaves[leaf].path, err)
	}
	for i := range a.Len() {
		switch a := a.(type) {
		case *array.Decimal128, *array.Boolean:
			continue
		case *array.Time64:
			if !filter.MayContain(binary.LittleEndian.AppendUint64(nil, uint64(a.Value(i)))) && a.IsValid(i) {
				t.Errorf("%s is not in the Bloom filter", a.ValueStr(i))
			}
			continue
		}
		if a.IsValid(i) && !filter.MayContain(serialized(a, i)) {
			t.Errorf("%s: %s is not in the Bloom filter", f.schema.leaves[leaf].path, a.ValueStr(i))
		}
	}
}
