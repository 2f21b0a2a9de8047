package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// samples are columns of every type that can cross, as JSON that arrow-go
// reads; five rows each, some null.
var samples = []struct {
	name string
	typ  arrow.DataType
	json string
}{
	{"null", arrow.Null, `[null, null, null, null, null]`},
	{"bool", arrow.FixedWidthTypes.Boolean, `[true, null, false, true, true]`},
	{"int8", arrow.PrimitiveTypes.Int8, `[1, null, -3, 4, 5]`},
	{"uint16", arrow.PrimitiveTypes.Uint16, `[1, null, 3, 4, 65535]`},
	{"int32", arrow.PrimitiveTypes.Int32, `[1, null, -3, 4, 5]`},
	{"int64 without null", arrow.PrimitiveTypes.Int64, `[1, 2, 3, 4, 5]`},
	{"float16", arrow.FixedWidthTypes.Float16, `[1, null, 3.5, 4, 5]`},
	{"float64", arrow.PrimitiveTypes.Float64, `[1, null, 3.5, 4, 5]`},
	{"decimal128", &arrow.Decimal128Type{Precision: 20, Scale: 3}, `["1.5", null, "-3.125", "4", "5"]`},
	{"decimal256", &arrow.Decimal256Type{Precision: 50, Scale: 3}, `["1.5", null, "-3.125", "4", "5"]`},
	{"decimal64", &arrow.Decimal64Type{Precision: 12, Scale: 2}, `["1.5", null, "-3.12", "4", "5"]`},
	{"date32", arrow.FixedWidthTypes.Date32, `["2020-01-01", null, "1969-12-31", "2021-01-01", "2022-01-01"]`},
	{"time64", arrow.FixedWidthTypes.Time64us, `["01:02:03.5", null, "00:00:00", "23:59:59", "12:00:00"]`},
	{"timestamp", &arrow.TimestampType{Unit: arrow.Nanosecond}, `["2020-01-01T00:00:00.000000001", null, "1969-12-31", "2021-01-01", "2022-01-01"]`},
	{"timestamptz", arrow.FixedWidthTypes.Timestamp_us, `["2020-01-01T00:00:00Z", null, "1969-12-31T00:00:00Z", "2021-01-01T00:00:00Z", "2022-01-01T00:00:00Z"]`},
	{"string", arrow.BinaryTypes.String, `["a", null, "", "some longer text than twelve bytes", "e"]`},
	{"large string", arrow.BinaryTypes.LargeString, `["a", null, "", "dddd", "e"]`},
	{"only empty strings", arrow.BinaryTypes.String, `["", "", "", "", ""]`},
	{"string view", arrow.BinaryTypes.StringView, `["a", null, "", "some longer text than twelve bytes", "e"]`},
	{"binary", arrow.BinaryTypes.Binary, `["YQ==", null, "", "ZGRkZA==", "ZQ=="]`},
	{"fixed", &arrow.FixedSizeBinaryType{ByteWidth: 3}, `["YWJj", null, "YWJj", "YWJj", "YWJj"]`},
	{"uuid", extensions.NewUUIDType(), `["8f1d6f4a-6d2c-4b52-9a3f-0d7a2c6f9b11", null, "8f1d6f4a-6d2c-4b52-9a3f-0d7a2c6f9b12", null, null]`},
	{"list", arrow.ListOf(arrow.BinaryTypes.String), `[["a", null], null, [], ["b"], ["c", "d"]]`},
	{"large list", arrow.LargeListOf(arrow.PrimitiveTypes.Int32), `[[1, null], null, [], [2], [3, 4]]`},
	{"fixed list", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), `[[1, null], null, [1, 2], [2, 3], [3, 4]]`},
	{"map", arrow.MapOf(arrow.BinaryTypes.String, &arrow.Decimal128Type{Precision: 9, Scale: 2}), `[[{"key": "a", "value": "1"}], null, [], [{"key": "b", "value": null}], []]`},
	{"struct", arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"7"})},
		arrow.Field{Name: "y", Type: arrow.ListOf(arrow.BinaryTypes.Binary), Nullable: true},
	), `[{"x": 1, "y": ["YQ=="]}, null, {"x": null, "y": null}, {"x": 4, "y": []}, {"x": 5, "y": [null]}]`},
	{"dictionary", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}, `["a", null, "b", "a", "a"]`},
	{"list of dictionary", arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}), `[["a"], null, ["b", "a"], [], ["a"]]`},
	{"duration", arrow.FixedWidthTypes.Duration_ms, `["1ms", null, "3ms", "4ms", "5ms"]`},
}

func build(t *testing.T, alloc memory.Allocator, typ arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(alloc, typ, strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return a
}

func record(name string, a arrow.Array) arrow.RecordBatch {
	field := arrow.Field{Name: name, Type: a.DataType(), Nullable: true,
		Metadata: arrow.NewMetadata([]string{"PARQUET:field_id", "doc"}, []string{"1", "ein Wort, größer"})}
	metadata := arrow.NewMetadata([]string{"k"}, []string{"v"})
	return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{field}, &metadata), []arrow.Array{a}, int64(a.Len()))
}

// cStruct is zeroed C memory for an ArrowArray or ArrowSchema.
func cStruct(t *testing.T) unsafe.Pointer {
	t.Helper()
	scratch := NewAllocator()
	b := scratch.Allocate(128)
	t.Cleanup(func() { scratch.Free(b) })
	return unsafe.Pointer(unsafe.SliceData(b))
}

// TestExportedBatchesComeBackEqual sends every type, whole and sliced, from
// memory of either kind, through the C structures and back through arrow-go's
// importer, which is not ours.
func TestExportedBatchesComeBackEqual(t *testing.T) {
	for _, s := range samples {
		for _, home := range []string{"C", "Go"} {
			for _, cut := range [][2]int64{{0, 5}, {0, 0}, {2, 2}, {1, 4}, {4, 5}} {
				t.Run(fmt.Sprintf("%s/%s/%d-%d", s.name, home, cut[0], cut[1]), func(t *testing.T) {
					alloc := NewAllocator()
					checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
					defer checked.AssertSize(t, 0)
					var from memory.Allocator = checked
					if home == "C" {
						from = alloc
					}
					whole := build(t, from, s.typ, s.json)
					defer whole.Release()
					slice := array.NewSlice(whole, cut[0], cut[1])
					batch := record(s.name, slice)
					slice.Release()

					carray, cschema := cStruct(t), cStruct(t)
					if err := NewExporter(alloc).Batch(batch, carray); err != nil {
						t.Fatal(err)
					}
					if err := ExportSchema(batch.Schema(), cschema); err != nil {
						t.Fatal(err)
					}
					got, err := cdata.ImportCRecordBatch((*cdata.CArrowArray)(carray), (*cdata.CArrowSchema)(cschema))
					if err != nil {
						t.Fatal(err)
					}
					if want := asImported(t, batch); want != batch {
						batch.Release()
						batch = want
					}
					if !got.Schema().Equal(batch.Schema()) || !got.Schema().Metadata().Equal(batch.Schema().Metadata()) {
						t.Errorf("schema\n%v, want\n%v", got.Schema(), batch.Schema())
					}
					if !array.RecordEqual(got, batch) {
						t.Errorf("got %v, want %v", got, batch)
					}
					if n := got.Column(0).NullN(); n != batch.Column(0).NullN() {
						t.Errorf("%d nulls, want %d", n, batch.Column(0).NullN())
					}
					checkAligned(t, got.Column(0).Data())
					batch.Release()
					if cut[1]-cut[0] == 5 && s.name != "null" && alloc.Exported() == 0 {
						t.Error("a batch is held and no byte counts as exported")
					}
					got.Release()
					if alloc.Exported() != 0 {
						t.Errorf("%d bytes still count as exported", alloc.Exported())
					}
					if home == "Go" && alloc.Live() != 0 {
						t.Errorf("%d bytes of copies leaked", alloc.Live())
					}
				})
			}
		}
	}
}

// asImported is the batch as arrow-go's importer gives it: an extension column
// comes as its storage, with the extension's name and parameters as metadata.
func asImported(t *testing.T, batch arrow.RecordBatch) arrow.RecordBatch {
	t.Helper()
	ext, ok := batch.Column(0).(array.ExtensionArray)
	if !ok {
		return batch
	}
	field := batch.Schema().Field(0)
	field.Type = ext.ExtensionType().StorageType()
	field.Metadata = arrow.NewMetadata(
		append(field.Metadata.Keys(), "ARROW:extension:name", "ARROW:extension:metadata"),
		append(field.Metadata.Values(), ext.ExtensionType().ExtensionName(), ext.ExtensionType().Serialize()))
	metadata := batch.Schema().Metadata()
	return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{field}, &metadata), []arrow.Array{ext.Storage()}, batch.NumRows())
}

func checkAligned(t *testing.T, data arrow.ArrayData) {
	t.Helper()
	for i, b := range data.Buffers() {
		if b == nil || b.Len() == 0 {
			continue
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes()))); at%64 != 0 {
			t.Errorf("%s: buffer %d at %x is not aligned", data.DataType(), i, at)
		}
	}
	for _, c := range data.Children() {
		checkAligned(t, c)
	}
}

// TestBlocksCountOnce exports one array twice and a slice of it: the bytes
// count once, until the last consumer lets go.
func TestBlocksCountOnce(t *testing.T) {
	alloc := NewAllocator()
	a := build(t, alloc, arrow.PrimitiveTypes.Int64, `[1, 2, 3, 4, 5]`)
	exporter := NewExporter(alloc)
	var held []unsafe.Pointer
	for _, cut := range [][2]int64{{0, 5}, {0, 5}, {1, 3}} {
		slice := array.NewSlice(a, cut[0], cut[1])
		batch := record("a", slice)
		out := cStruct(t)
		if err := exporter.Batch(batch, out); err != nil {
			t.Fatal(err)
		}
		held = append(held, out)
		batch.Release()
		slice.Release()
	}
	a.Release()
	want := alloc.Exported()
	if want == 0 || want != alloc.Live() {
		t.Fatalf("%d bytes exported, %d live: want the one block", want, alloc.Live())
	}
	for i, out := range held {
		if alloc.Exported() != want {
			t.Errorf("%d bytes exported before release %d, want %d", alloc.Exported(), i, want)
		}
		cdata.ReleaseCArrowArray((*cdata.CArrowArray)(out))
	}
	if alloc.Exported() != 0 || alloc.Live() != 0 {
		t.Errorf("%d bytes exported, %d live at the end", alloc.Exported(), alloc.Live())
	}
}

// TestMovedChildOutlivesItsParent takes a child out of an exported batch, as
// the C data interface allows, and releases the parent first.
func TestMovedChildOutlivesItsParent(t *testing.T) {
	alloc := NewAllocator()
	x, y := build(t, alloc, arrow.PrimitiveTypes.Int64, `[1, 2, 3]`), build(t, alloc, arrow.BinaryTypes.String, `["a", "b", "c"]`)
	batch := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "x", Type: x.DataType()}, {Name: "y", Type: y.DataType()}}, nil), []arrow.Array{x, y}, 3)
	out := cStruct(t)
	if err := NewExporter(alloc).Batch(batch, out); err != nil {
		t.Fatal(err)
	}
	for _, r := range []interface{ Release() }{x, y, batch} {
		r.Release()
	}
	moved := cStruct(t)
	parent := (*cArray)(out)
	child := unsafe.Slice(parent.children, 2)[1]
	*(*cArray)(moved) = *child
	child.release = nil
	cdata.ReleaseCArrowArray((*cdata.CArrowArray)(out))
	if parent.release != nil {
		t.Error("release left the structure unreleased")
	}
	got, err := cdata.ImportCArrayWithType((*cdata.CArrowArray)(moved), arrow.BinaryTypes.String)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(got); string(text) != `["a","b","c"]` {
		t.Errorf("moved child holds %s", text)
	}
	got.Release()
	if alloc.Live() != 0 {
		t.Errorf("%d bytes live at the end", alloc.Live())
	}
}

// cArray is struct ArrowArray.
type cArray struct {
	length, nulls, offset, nBuffers, nChildren int64
	buffers                                    unsafe.Pointer
	children                                   **cArray
	dictionary, release, private               unsafe.Pointer
}

func TestAllocator(t *testing.T) {
	KeepMemory(3 << 20)
	defer KeepMemory(0)
	alloc := NewAllocator()
	for _, n := range []int{0, 1, 63, 64, 65, 4096, 1 << 20, 64 << 10, 64<<10 - 1, 1 << 20, 5 << 20, 1<<20 + 1} {
		b := alloc.Allocate(n)
		if len(b) != n {
			t.Fatalf("%d bytes, want %d", len(b), n)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d of %d is not zero", i, n)
			}
			b[i] = byte(i)
		}
		for _, m := range []int{n + 1, n * 3, n, n / 3, 0, n} {
			before := append([]byte(nil), b...)
			b = alloc.Reallocate(m, b)
			if len(b) != m {
				t.Fatalf("%d bytes, want %d", len(b), m)
			}
			for i := range min(len(before), m) {
				if b[i] != before[i] {
					t.Fatalf("byte %d changed from %d to %d bytes", i, len(before), m)
				}
			}
		}
		alloc.Free(b)
	}
	if alloc.Live() != 0 {
		t.Errorf("%d bytes live at the end", alloc.Live())
	}
}

// TestFreedMemoryIsKept checks that large blocks use the memory of freed ones,
// zeroed.
func TestFreedMemoryIsKept(t *testing.T) {
	alloc := NewAllocator()
	at := func(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
	KeepMemory(4 << 20)
	defer KeepMemory(0)
	first := alloc.Allocate(1 << 20)
	first[17] = 1
	where := at(first)
	alloc.Free(first)
	second := alloc.Allocate(1<<20 + 100)
	if at(second) != where {
		t.Error("a block of about the size of the one freed before does not use its memory")
	}
	if second[17] != 0 {
		t.Error("used memory is not zeroed")
	}
	alloc.Free(second)

	// More than is to be kept: the oldest goes.
	var blocks [][]byte
	for range 8 {
		blocks = append(blocks, alloc.Allocate(1<<20))
	}
	last := at(blocks[7])
	for _, b := range blocks {
		alloc.Free(b)
	}
	again := alloc.Allocate(1 << 20)
	if at(again) != last {
		t.Error("the memory freed last is not used first")
	}
	alloc.Free(again)
	FlushMemory()
}

func BenchmarkExport(b *testing.B) {
	alloc := NewAllocator()
	columns := make([]arrow.Array, 8)
	fields := make([]arrow.Field, 8)
	for i := range columns {
		columns[i] = array.MakeArrayOfNull(alloc, arrow.PrimitiveTypes.Int64, 100)
		fields[i] = arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	}
	batch := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, 100)
	out := alloc.Allocate(128)
	exporter := NewExporter(alloc)
	b.ReportAllocs()
	for b.Loop() {
		if err := exporter.Batch(batch, unsafe.Pointer(unsafe.SliceData(out))); err != nil {
			b.Fatal(err)
		}
		cdata.ReleaseCArrowArray((*cdata.CArrowArray)(unsafe.Pointer(unsafe.SliceData(out))))
	}
}
