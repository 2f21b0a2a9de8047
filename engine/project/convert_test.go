package project

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// TestForms reads the same types in the other Arrow forms that files have.
func TestForms(t *testing.T) {
	ts := func(unit arrow.TimeUnit, zone string) arrow.DataType {
		return &arrow.TimestampType{Unit: unit, TimeZone: zone}
	}
	for _, test := range []struct {
		file   arrow.DataType
		want   iceberg.Type
		rows   string
		expect string
		err    string
	}{
		{arrow.PrimitiveTypes.Int8, types.Int32, `[-128, null, 127]`, `[-128,null,127]`, ""},
		{arrow.PrimitiveTypes.Int16, types.Int64, `[-32768]`, `[-32768]`, ""},
		{arrow.PrimitiveTypes.Int16, types.Int32, `[-32768]`, `[-32768]`, ""},
		{arrow.PrimitiveTypes.Int8, types.Int64, `[-1]`, `[-1]`, ""},
		{arrow.PrimitiveTypes.Uint8, types.Int32, `[255]`, `[255]`, ""},
		{arrow.PrimitiveTypes.Uint8, types.Int64, `[255]`, `[255]`, ""},
		{arrow.PrimitiveTypes.Uint16, types.Int32, `[65535]`, `[65535]`, ""},
		{arrow.PrimitiveTypes.Uint16, types.Int64, `[65535]`, `[65535]`, ""},
		{arrow.PrimitiveTypes.Uint32, types.Int32, `[7]`, `[7]`, ""},
		{arrow.PrimitiveTypes.Uint32, types.Int32, `[null, 2147483648]`, "", "value 2147483648 of the file does not fit int32"},
		{arrow.PrimitiveTypes.Uint32, types.Int64, `[4294967295]`, `[4294967295]`, ""},
		{arrow.PrimitiveTypes.Uint64, types.Int64, `[9223372036854775807]`, `[9223372036854775807]`, ""},
		{arrow.PrimitiveTypes.Uint64, types.Int64, `[9223372036854775808]`, "", "does not fit int64"},
		{arrow.FixedWidthTypes.Float16, types.Float32, `[1.5]`, `[1.5]`, ""},
		{arrow.FixedWidthTypes.Float16, types.Float64, `[1.5]`, `[1.5]`, ""},
		{arrow.PrimitiveTypes.Float64, types.Float32, `[1.5]`, "", "cannot be read as float"},
		{&arrow.Decimal32Type{Precision: 9, Scale: 2}, decimalOf(9, 2), `["-1.25"]`, `[-1.25]`, ""},
		{&arrow.Decimal64Type{Precision: 18, Scale: 2}, decimalOf(20, 2), `["-1.25"]`, `[-1.25]`, ""},
		{&arrow.Decimal256Type{Precision: 38, Scale: 2}, decimalOf(38, 2), `["-1.25", "99999999999999999999999.25", null]`, `[-1.25,99999999999999999999999.25,null]`, ""},
		{arrow.FixedWidthTypes.Time32s, types.Time, `["00:00:01"]`, `[1000000]`, ""},
		{arrow.FixedWidthTypes.Time32ms, types.Time, `["00:00:01.5"]`, `[1500000]`, ""},
		{arrow.FixedWidthTypes.Time64ns, types.Time, `["00:00:00.000001999"]`, `[1]`, ""},
		{ts(arrow.Second, ""), types.Timestamp, `["1970-01-01T00:00:01"]`, `[1000000]`, ""},
		{ts(arrow.Millisecond, "UTC"), types.TimestampTz, `["1970-01-01T00:00:00.001Z"]`, `[1000]`, ""},
		{ts(arrow.Nanosecond, ""), types.Timestamp, `["1970-01-01T00:00:00.000001999", "1969-12-31T23:59:59.999999999", null]`, `[1,-1,null]`, ""},
		{ts(arrow.Microsecond, ""), types.TimestampNs, `["1970-01-01T00:00:00.000001"]`, `[1000]`, ""},
		{ts(arrow.Microsecond, ""), types.TimestampNs, `["2300-01-01T00:00:00"]`, "", "does not fit timestamp"},
		{ts(arrow.Microsecond, ""), types.TimestampTz, `["1970-01-01T00:00:00.000001"]`, `[1]`, ""},
		{ts(arrow.Microsecond, "Etc/UTC"), types.Timestamp, `["1970-01-01T00:00:00.000001Z"]`, `[1]`, ""},
		{ts(arrow.Microsecond, ""), types.Date, `["1970-01-01T00:00:00"]`, "", "cannot be read as date"},
		{arrow.BinaryTypes.Binary, types.String, `["w6k=", null, ""]`, `["é",null,""]`, ""},
		{arrow.BinaryTypes.LargeBinary, types.String, `["w6k="]`, `["é"]`, ""},
		{arrow.BinaryTypes.Binary, types.String, `["w6k=", "w6n/"]`, "", "row 1 of a batch is not valid UTF-8"},
		{arrow.BinaryTypes.String, types.Binary, `["é"]`, `[xc3a9]`, ""},
		{arrow.BinaryTypes.LargeString, types.String, `["é", null, "z"]`, `["é",null,"z"]`, ""},
		{&arrow.FixedSizeBinaryType{ByteWidth: 16}, types.UUID, `["AAECAwQFBgcICQoLDA0ODw=="]`, `[x000102030405060708090a0b0c0d0e0f]`, ""},
		{&arrow.FixedSizeBinaryType{ByteWidth: 3}, iceberg.FixedTypeOf(4), `["AAEC"]`, "", "cannot be read as fixed[4]"},
		{extensions.NewUUIDType(), types.UUID, `["00010203-0405-0607-0809-0a0b0c0d0e0f", null]`, `[x000102030405060708090a0b0c0d0e0f,null]`, ""},
		{arrow.Null, types.String, `[null, null]`, `[null,null]`, ""},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), listOf(3, types.Int32), `[[1, 2]]`, "", "cannot be read as list<int>"},
	} {
		t.Run(test.file.String()+" as "+test.want.String(), func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer alloc.AssertSize(t, 0)
			in := fromJSONArray(t, alloc, test.file, test.rows)
			defer in.Release()
			file := arrow.NewSchema([]arrow.Field{{Name: "c", Type: test.file, Nullable: true, Metadata: arrow.NewMetadata([]string{FieldIDKey}, []string{"1"})}}, nil)
			p, err := New(file, iceberg.NewSchema(0, optional(1, "c", test.want)), nil, Options{Path: testPath})
			if err == nil {
				// The whole array, and its last row alone.
				for _, start := range []int{0, in.Len() - 1} {
					part := array.NewSlice(in, int64(start), int64(in.Len()))
					defer part.Release()
					var a arrow.Array
					if a, err = p.Output(alloc, 0, part, part.Len()); err != nil {
						break
					}
					defer a.Release()
					expect := strings.Split(strings.Trim(test.expect, "[]"), ",")
					if got, want := render(a), "["+strings.Join(expect[start:], ",")+"]"; got != want {
						t.Errorf("from row %d: got %s, want %s", start, got, want)
					}
				}
			}
			switch {
			case test.err == "" && err != nil:
				t.Fatal(err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), "column c")):
				t.Fatalf("error %v, want one of column c with %q", err, test.err)
			}
		})
	}
}

func TestBadDefaults(t *testing.T) {
	for _, test := range []struct {
		t     iceberg.Type
		value any
	}{
		{types.Int32, 3e9}, {types.Int32, 1.5}, {types.Int32, true}, {types.Bool, "maybe"}, {types.Date, "2024-02-30"}, {types.String, 5.0},
		{types.UUID, "xyz"}, {iceberg.FixedTypeOf(2), "00"}, {types.Binary, "0"}, {decimalOf(4, 2), "123.45"}, {decimalOf(4, 2), 1.0},
		{listOf(2, types.Int32), "x"}, {mapOf(2, types.String, 3, types.Int32), map[string]any{"keys": []any{"a"}, "values": []any{}}},
	} {
		f := withDefault(optional(1, "c", test.t), test.value)
		if _, err := New(arrow.NewSchema(nil, nil), iceberg.NewSchema(0, f), nil, Options{Path: testPath}); err == nil || !strings.Contains(err.Error(), "column c: ") {
			t.Errorf("default %v of %s: %v", test.value, test.t, err)
		}
	}
}

func TestRequiredElements(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	file := fromJSON(t, alloc, withIDs(t, optional(1, "l", listOf(2, types.Int32))), `[{"l":[1]},{"l":null},{"l":[2,null]}]`)
	defer file.Release()
	want := iceberg.NewSchema(1, optional(1, "l", &iceberg.ListType{ElementID: 2, Element: types.Int32, ElementRequired: true}))
	p, err := New(file.Schema(), want, nil, Options{Path: testPath})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outputs(t, alloc, file, p); err == nil || !strings.Contains(err.Error(), "column l.element is required but null in row 2") {
		t.Error(err)
	}
	head := file.NewSlice(0, 2)
	defer head.Release()
	if got, err := outputs(t, alloc, head, p); err != nil || got[0] != "[[1],null]" {
		t.Error(got, err)
	}
}

func TestArrowSchema(t *testing.T) {
	doc := optional(1, "u", types.UUID)
	doc.Doc = "what it is"
	s, err := ArrowSchema(iceberg.NewSchema(0, doc, required(2, "l", listOf(3, types.String))), ArrowOptions{FieldIDs: true, LargeStrings: true, LargeLists: true})
	if err != nil {
		t.Fatal(err)
	}
	element := arrow.Field{Name: "element", Type: arrow.BinaryTypes.LargeString, Nullable: true, Metadata: arrow.NewMetadata([]string{FieldIDKey}, []string{"3"})}
	want := arrow.NewSchema([]arrow.Field{
		{Name: "u", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}, Nullable: true, Metadata: arrow.NewMetadata(
			[]string{"doc", FieldIDKey, "ARROW:extension:name", "ARROW:extension:metadata"}, []string{"what it is", "1", "arrow.uuid", ""})},
		{Name: "l", Type: arrow.LargeListOfField(element), Metadata: arrow.NewMetadata([]string{FieldIDKey}, []string{"2"})},
	}, nil)
	if !s.Equal(want) {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}
