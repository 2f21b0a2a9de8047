package project

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

const testPath = "s3://b/t/data/f.parquet"

func optional(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

func required(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t, Required: true}
}

func withDefault(f iceberg.NestedField, value any) iceberg.NestedField {
	f.InitialDefault = value
	return f
}

func structOf(fields ...iceberg.NestedField) iceberg.Type {
	return &iceberg.StructType{FieldList: fields}
}

func listOf(id int, element iceberg.Type) iceberg.Type {
	return &iceberg.ListType{ElementID: id, Element: element}
}

func mapOf(keyID int, key iceberg.Type, valueID int, value iceberg.Type) iceberg.Type {
	return &iceberg.MapType{KeyID: keyID, KeyType: key, ValueID: valueID, ValueType: value}
}

var types = iceberg.PrimitiveTypes

// withIDs is the Arrow schema of a file that was written with this schema.
func withIDs(t *testing.T, fields ...iceberg.NestedField) *arrow.Schema {
	t.Helper()
	s, err := ArrowSchema(iceberg.NewSchema(0, fields...), ArrowOptions{FieldIDs: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// without is a schema without its metadata: a file that has no field ids.
func without(s *arrow.Schema) *arrow.Schema {
	var strip func(f arrow.Field) arrow.Field
	strip = func(f arrow.Field) arrow.Field {
		f.Metadata = arrow.Metadata{}
		switch t := f.Type.(type) {
		case *arrow.StructType:
			var kids []arrow.Field
			for _, k := range t.Fields() {
				kids = append(kids, strip(k))
			}
			f.Type = arrow.StructOf(kids...)
		case *arrow.ListType:
			f.Type = arrow.ListOfField(strip(t.ElemField()))
		case *arrow.MapType:
			f.Type = arrow.MapOfFields(strip(t.KeyField()), strip(t.ItemField()))
		}
		return f
	}
	var fields []arrow.Field
	for _, f := range s.Fields() {
		fields = append(fields, strip(f))
	}
	return arrow.NewSchema(fields, nil)
}

// readColumn prunes a column of a file's rows to the selected leaves, as a
// FileReader does.
func readColumn(t *testing.T, file arrow.RecordBatch, column batch.Column) arrow.Array {
	t.Helper()
	selected := map[int]bool{}
	for _, l := range column.Leaves {
		selected[l] = true
	}
	leaf := 0
	var prune func(data arrow.ArrayData, f arrow.Field) (arrow.ArrayData, arrow.Field, bool)
	prune = func(data arrow.ArrayData, f arrow.Field) (arrow.ArrayData, arrow.Field, bool) {
		kids := childFields(f.Type)
		if len(kids) == 0 {
			keep := selected[leaf]
			leaf++
			data.Retain()
			return data, f, keep
		}
		source := data.Children()
		if f.Type.ID() == arrow.MAP {
			source = source[0].Children()
		}
		var keptData []arrow.ArrayData
		var keptFields []arrow.Field
		for i, kid := range kids {
			d, kf, keep := prune(source[i], kid)
			if keep {
				keptData, keptFields = append(keptData, d), append(keptFields, kf)
			} else {
				d.Release()
			}
		}
		defer release(keptData)
		if len(keptData) == 0 {
			data.Retain()
			return data, f, false
		}
		children := keptData
		switch t := f.Type.(type) {
		case *arrow.StructType:
			f.Type = arrow.StructOf(keptFields...)
		case *arrow.ListType:
			f.Type = arrow.ListOfField(keptFields[0])
		case *arrow.LargeListType:
			f.Type = arrow.LargeListOfField(keptFields[0])
		case *arrow.MapType:
			mt := arrow.MapOfFields(keptFields[0], keptFields[1])
			f.Type = mt
			entries := data.Children()[0]
			children = []arrow.ArrayData{array.NewData(mt.Elem(), entries.Len(), entries.Buffers(), keptData, 0, entries.Offset())}
			defer children[0].Release()
		default:
			panic(t)
		}
		return array.NewData(f.Type, data.Len(), data.Buffers(), children, data.NullN(), data.Offset()), f, true
	}
	for i := range column.Index {
		var count func(f arrow.Field)
		count = func(f arrow.Field) {
			kids := childFields(f.Type)
			if len(kids) == 0 {
				leaf++
			}
			for _, k := range kids {
				count(k)
			}
		}
		count(file.Schema().Field(i))
	}
	data, _, keep := prune(file.Column(column.Index).Data(), file.Schema().Field(column.Index))
	defer data.Release()
	if !keep {
		t.Fatalf("column %d is read without any leaf", column.Index)
	}
	return array.MakeFromData(data)
}

// outputs projects all rows of a file and renders each output column.
func outputs(t *testing.T, alloc memory.Allocator, file arrow.RecordBatch, p *Projection) ([]string, error) {
	t.Helper()
	columns := make([]arrow.Array, len(p.Columns()))
	for i, c := range p.Columns() {
		columns[i] = readColumn(t, file, c)
		defer columns[i].Release()
	}
	var rendered []string
	for i := range p.Schema().NumFields() {
		var in arrow.Array
		if c := p.OutputColumn(i); c != NoColumn {
			in = columns[c]
		}
		a, err := p.Output(alloc, i, in, int(file.NumRows()))
		if err != nil {
			return nil, err
		}
		defer a.Release()
		if !arrow.TypeEqual(a.DataType(), p.Schema().Field(i).Type, arrow.CheckMetadata()) {
			t.Errorf("output %d has type %s, the schema says %s", i, a.DataType(), p.Schema().Field(i).Type)
		}
		rendered = append(rendered, render(a))
	}
	return rendered, nil
}

func fromJSON(t *testing.T, alloc memory.Allocator, schema *arrow.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	r, _, err := array.RecordFromJSON(alloc, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mapping(fields ...iceberg.MappedField) func() (iceberg.NameMapping, error) {
	return func() (iceberg.NameMapping, error) { return fields, nil }
}

func mappedField(id int, names []string, fields ...iceberg.MappedField) iceberg.MappedField {
	return iceberg.MappedField{FieldID: &id, Names: names, Fields: fields}
}

func decimalOf(precision, scale int) iceberg.Type { return iceberg.DecimalTypeOf(precision, scale) }

func TestEvolution(t *testing.T) {
	fileABC := []iceberg.NestedField{required(1, "a", types.Int32), optional(2, "b", types.String), optional(3, "c", types.Float32)}
	rowsABC := `[{"a":1,"b":"x","c":1.5},{"a":2,"b":null,"c":null}]`
	nested := []iceberg.NestedField{optional(1, "s", structOf(optional(2, "a", types.Int32), optional(3, "b", types.Int32)))}
	rowsNested := `[{"s":{"a":1,"b":2}},{"s":null},{"s":{"a":null,"b":3}}]`
	lists := []iceberg.NestedField{
		optional(1, "l", listOf(2, structOf(optional(3, "x", types.Int32), optional(4, "y", types.String)))),
		optional(5, "m", mapOf(6, types.String, 7, structOf(optional(8, "p", types.Int32), optional(9, "q", types.Float32)))),
	}
	rowsLists := `[{"l":[{"x":1,"y":"a"},null,{"x":null,"y":"b"}],"m":[{"key":"k","value":{"p":1,"q":0.5}}]},
		{"l":null,"m":null},{"l":[],"m":[{"key":"z","value":null}]}]`

	for _, test := range []struct {
		name    string
		file    []iceberg.NestedField
		rows    string
		want    []iceberg.NestedField
		options Options
		noIDs   bool
		columns []int // top-level columns read
		leaves  []int // all leaves read
		expect  []string
		err     string // part of the message
	}{{
		name: "the same", file: fileABC, rows: rowsABC, want: fileABC,
		columns: []int{0, 1, 2}, leaves: []int{0, 1, 2}, expect: []string{`[1,2]`, `["x",null]`, `[1.5,null]`},
	}, {
		name: "renamed, reordered, dropped, promoted", file: fileABC, rows: rowsABC,
		want:    []iceberg.NestedField{optional(3, "a", types.Float64), required(1, "z", types.Int64)},
		columns: []int{0, 2}, leaves: []int{0, 2}, expect: []string{`[1.5,null]`, `[1,2]`},
	}, {
		name: "names swapped", file: fileABC[:2], rows: rowsABC,
		want:    []iceberg.NestedField{optional(2, "a", types.String), optional(1, "b", types.Int32)},
		columns: []int{0, 1}, leaves: []int{0, 1}, expect: []string{`["x",null]`, `[1,2]`},
	}, {
		name: "dropped and added again under the same name", file: fileABC, rows: rowsABC,
		want:    []iceberg.NestedField{optional(9, "a", types.Int32)},
		columns: nil, leaves: nil, expect: []string{`[null,null]`},
	}, {
		name: "added with defaults", file: fileABC, rows: rowsABC,
		want: []iceberg.NestedField{
			withDefault(optional(10, "i", types.Int32), 7.0), withDefault(required(11, "s", types.String), "d"),
			withDefault(optional(12, "d", types.Date), "2024-02-29"), withDefault(optional(13, "dec", decimalOf(9, 2)), "12.34"),
			withDefault(optional(14, "l", listOf(15, types.Int32)), []any{1.0, nil}), withDefault(optional(25, "ls", listOf(26, types.String)), []any{"a", nil, "bcd"}),
			withDefault(optional(27, "e", listOf(28, types.Bool)), []any{}), withDefault(optional(31, "raw", listOf(32, types.Int64)), json.RawMessage(`[9007199254740993]`)), withDefault(optional(29, "bs", listOf(30, types.Bool)), []any{true, false, nil}),
			withDefault(optional(16, "t", structOf(withDefault(optional(17, "u", types.Int32), 5.0), optional(18, "v", types.String))), map[string]any{}),
			withDefault(optional(19, "b", types.Bool), true), withDefault(optional(20, "bin", types.Binary), "00ff"),
			withDefault(optional(21, "ts", types.TimestampTz), "2024-02-29T01:02:03.000004+00:00"),
			withDefault(optional(22, "m", mapOf(23, types.String, 24, types.Int64)), map[string]any{"keys": []any{"a"}, "values": []any{1.0}}),
		},
		expect: []string{`[7,7]`, `["d","d"]`, `[19782,19782]`, `[12.34,12.34]`, `[[1,null],[1,null]]`, `[["a",null,"bcd"],["a",null,"bcd"]]`, `[[],[]]`, `[[9007199254740993],[9007199254740993]]`, `[[true,false,null],[true,false,null]]`,
			`[{u:5,v:null},{u:5,v:null}]`, `[true,true]`, `[x00ff,x00ff]`,
			`[1709168523000004,1709168523000004]`, `[{"a"=1},{"a"=1}]`},
	}, {
		name: "partition constants only where the file has no column", file: fileABC, rows: rowsABC,
		want:    []iceberg.NestedField{optional(2, "b", types.String), withDefault(optional(4, "p", types.Int64), 1.0), withDefault(optional(5, "q", types.String), "never")},
		options: Options{Constants: map[int]any{2: "wrong", 4: iceberg.Int32Literal(8), 5: nil}},
		columns: []int{1}, leaves: []int{1}, expect: []string{`["x",null]`, `[8,8]`, `[null,null]`},
	}, {
		name: "required and absent", file: fileABC, rows: rowsABC, want: []iceberg.NestedField{required(4, "gone", types.Int32)},
		err: "read " + testPath + ": column gone is required but the file does not have it",
	}, {
		name: "required and null in the partition", file: fileABC, rows: rowsABC, want: []iceberg.NestedField{required(4, "p", types.Int32)},
		options: Options{Constants: map[int]any{4: nil}}, err: "column p is required but null",
	}, {
		name: "required with a null in the file", file: fileABC, rows: rowsABC, want: []iceberg.NestedField{required(2, "b", types.String)},
		err: "column b is required but null in row 1",
	}, {
		name: "unknown becomes a type", file: []iceberg.NestedField{optional(1, "u", types.Unknown)}, rows: `[{"u":null}]`,
		want: []iceberg.NestedField{optional(1, "u", types.Int64)}, columns: []int{0}, leaves: []int{0}, expect: []string{`[null]`},
	}, {
		name: "wanted as unknown", file: fileABC, rows: rowsABC, want: []iceberg.NestedField{optional(4, "u", types.Unknown)},
		expect: []string{`[null,null]`},
	}, {
		name: "not a promotion", file: fileABC, rows: rowsABC, want: []iceberg.NestedField{optional(2, "b", types.Int32)},
		err: "column b has type utf8 in the file, which cannot be read as int",
	}, {
		name: "narrowed", file: []iceberg.NestedField{optional(1, "a", types.Int64)}, rows: `[{"a":1}]`,
		want: []iceberg.NestedField{optional(1, "a", types.Int32)}, err: "column a has type int64 in the file, which cannot be read as int",
	}, {
		name: "decimal narrowed", file: []iceberg.NestedField{optional(1, "a", decimalOf(10, 2))}, rows: `[{"a":"1.00"}]`,
		want: []iceberg.NestedField{optional(1, "a", decimalOf(9, 2))}, err: "cannot be read as decimal(9, 2)",
	}, {
		name: "decimal rescaled", file: []iceberg.NestedField{optional(1, "a", decimalOf(9, 2))}, rows: `[{"a":"1.00"}]`,
		want: []iceberg.NestedField{optional(1, "a", decimalOf(12, 3))}, err: "cannot be read as decimal(12, 3)",
	}, {
		name: "decimal widened", file: []iceberg.NestedField{optional(1, "a", decimalOf(9, 2))}, rows: `[{"a":"-1.25"},{"a":null}]`,
		want: []iceberg.NestedField{optional(1, "a", decimalOf(38, 2))}, columns: []int{0}, leaves: []int{0}, expect: []string{`[-1.25,null]`},
	}, {
		name: "date to timestamps", file: []iceberg.NestedField{optional(1, "a", types.Date)}, rows: `[{"a":"1969-12-31"},{"a":null}]`,
		want: []iceberg.NestedField{optional(1, "a", types.Timestamp)}, columns: []int{0}, leaves: []int{0}, expect: []string{`[-86400000000,null]`},
	}, {
		name: "date to timestamp_ns", file: []iceberg.NestedField{optional(1, "a", types.Date)}, rows: `[{"a":"2262-04-11"}]`,
		want: []iceberg.NestedField{optional(1, "a", types.TimestampNs)}, columns: []int{0}, leaves: []int{0}, expect: []string{`[9223286400000000000]`},
	}, {
		name: "date past timestamp_ns", file: []iceberg.NestedField{optional(1, "a", types.Date)}, rows: `[{"a":null},{"a":"2262-04-12"}]`,
		want: []iceberg.NestedField{optional(1, "a", types.TimestampNs)}, err: "column a: value",
	}, {
		name: "date to timestamptz", file: []iceberg.NestedField{optional(1, "a", types.Date)}, rows: `[{"a":"1969-12-31"}]`,
		want: []iceberg.NestedField{optional(1, "a", types.TimestampTz)}, err: "cannot be read as timestamptz",
	}, {
		name: "struct: drop a, rename b to x, add c with a default, order c, x", file: nested, rows: rowsNested,
		want:    []iceberg.NestedField{optional(1, "s", structOf(withDefault(optional(4, "c", types.Int32), 0.0), optional(3, "x", types.Int64)))},
		columns: []int{0}, leaves: []int{1}, expect: []string{`[{c:0,x:2},null,{c:0,x:3}]`},
	}, {
		name: "struct of which no wanted field is in the file", file: nested, rows: rowsNested,
		want:    []iceberg.NestedField{optional(1, "s", structOf(withDefault(optional(4, "c", types.Int32), 9.0)))},
		columns: []int{0}, leaves: []int{0}, expect: []string{`[{c:9},null,{c:9}]`},
	}, {
		name: "struct added", file: fileABC, rows: rowsABC,
		want:   []iceberg.NestedField{optional(9, "s", structOf(required(4, "c", types.Int32)))},
		expect: []string{`[null,null]`},
	}, {
		name: "partition constant inside an absent struct", file: fileABC, rows: rowsABC,
		want:    []iceberg.NestedField{optional(9, "s", structOf(optional(4, "c", types.Int32), optional(5, "d", types.Int32)))},
		options: Options{Constants: map[int]any{4: int32(6)}}, expect: []string{`[{c:6,d:null},{c:6,d:null}]`},
	}, {
		name: "required field of a null struct", file: []iceberg.NestedField{optional(1, "s", structOf(optional(2, "a", types.Int32)))}, rows: `[{"s":null},{"s":{"a":1}}]`,
		want: []iceberg.NestedField{optional(1, "s", structOf(required(2, "a", types.Int32)))}, columns: []int{0}, leaves: []int{0}, expect: []string{`[null,{a:1}]`},
	}, {
		name: "required field null in a struct", file: []iceberg.NestedField{optional(1, "s", structOf(optional(2, "a", types.Int32)))}, rows: `[{"s":null},{"s":{"a":null}}]`,
		want: []iceberg.NestedField{optional(1, "s", structOf(required(2, "a", types.Int32)))}, err: "column s.a is required but null in row 1",
	}, {
		name: "struct against a primitive", file: nested, rows: rowsNested, want: []iceberg.NestedField{optional(1, "s", types.Int32)},
		err: "column s has type struct<",
	}, {
		name: "list and map of structs evolve inside", file: lists, rows: rowsLists,
		want: []iceberg.NestedField{
			optional(1, "l", listOf(2, structOf(optional(4, "why", types.String), withDefault(optional(10, "z", types.Int32), 3.0), optional(3, "x", types.Int64)))),
			optional(5, "m", mapOf(6, types.String, 7, structOf(optional(9, "q", types.Float64)))),
		},
		columns: []int{0, 1}, leaves: []int{0, 1, 2, 4},
		expect: []string{`[[{why:"a",z:3,x:1},null,{why:"b",z:3,x:null}],null,[]]`, `[{"k"={q:0.5}},null,{"z"=null}]`},
	}, {
		name: "map whose value has only new fields", file: lists, rows: rowsLists,
		want:    []iceberg.NestedField{optional(5, "m", mapOf(6, types.String, 7, structOf(optional(11, "r", types.Float64))))},
		columns: []int{1}, leaves: []int{2, 3}, expect: []string{`[{"k"={r:null}},null,{"z"=null}]`},
	}, {
		name: "list against a map", file: lists, rows: rowsLists, want: []iceberg.NestedField{optional(5, "m", listOf(6, types.String))},
		err: "column m has type map<",
	}, {
		name: "name mapping", file: fileABC, rows: rowsABC, noIDs: true,
		options: Options{NameMapping: mapping(mappedField(5, []string{"other", "b"}), mappedField(6, []string{"a"}), mappedField(7, []string{"new"}))},
		want:    []iceberg.NestedField{optional(5, "x", types.String), optional(6, "y", types.Int64), optional(7, "z", types.Int32), optional(3, "c", types.Float32)},
		columns: []int{0, 1}, leaves: []int{0, 1}, expect: []string{`["x",null]`, `[1,2]`, `[null,null]`, `[null,null]`},
	}, {
		name: "nested name mapping", file: lists, rows: rowsLists, noIDs: true,
		options: Options{NameMapping: mapping(
			mappedField(1, []string{"l"}, mappedField(2, []string{"element"}, mappedField(4, []string{"y"}))),
			mappedField(5, []string{"m"}, mappedField(6, []string{"key"}), mappedField(7, []string{"value"}, mappedField(9, []string{"q"}))))},
		want: []iceberg.NestedField{
			optional(1, "l", listOf(2, structOf(optional(3, "x", types.Int32), optional(4, "y", types.String)))),
			optional(5, "m", mapOf(6, types.String, 7, structOf(optional(9, "q", types.Float32)))),
		},
		columns: []int{0, 1}, leaves: []int{1, 2, 4},
		expect: []string{`[[{x:null,y:"a"},null,{x:null,y:"b"}],null,[]]`, `[{"k"={q:0.5}},null,{"z"=null}]`},
	}, {
		name: "the partition's constant stands before the name mapping", file: fileABC, rows: rowsABC, noIDs: true,
		options: Options{NameMapping: mapping(mappedField(1, []string{"a"})), Constants: map[int]any{1: int32(5)}},
		want:    []iceberg.NestedField{optional(1, "a", types.Int32)}, expect: []string{`[5,5]`},
	}, {
		name: "no ids and no mapping", file: fileABC, rows: rowsABC, noIDs: true, want: fileABC, err: "the file has no field ids and the table has no name mapping",
	}, {
		name: "no ids and nothing to read", file: fileABC, rows: rowsABC, noIDs: true, want: nil,
	}, {
		name: "two columns of the file for one name of the mapping", noIDs: true, rows: `[]`,
		file:    []iceberg.NestedField{optional(1, "a", types.Int32), optional(2, "b", types.Int32)},
		options: Options{NameMapping: mapping(mappedField(1, []string{"a", "b"}))}, want: []iceberg.NestedField{optional(1, "a", types.Int32)},
		err: "the file's columns a and b both have field id 1",
	}, {
		name: "one name twice in the mapping", file: fileABC, rows: rowsABC, noIDs: true,
		options: Options{NameMapping: mapping(mappedField(1, []string{"a"}), mappedField(2, []string{"a"}))}, want: fileABC,
		err: "name mapping has the name \"a\" twice",
	}, {
		name: "a broken mapping matters only to files without ids", file: fileABC[:1], rows: rowsABC, want: fileABC[:1],
		options: Options{NameMapping: func() (iceberg.NameMapping, error) { return nil, errs.New(errs.InvalidArgument, "broken") }},
		columns: []int{0}, leaves: []int{0}, expect: []string{`[1,2]`},
	}, {
		name: "unsupported type", file: fileABC, rows: rowsABC, want: []iceberg.NestedField{optional(1, "v", iceberg.VariantType{})},
		err: "column v has type variant, which this version does not read",
	}} {
		t.Run(test.name, func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer alloc.AssertSize(t, 0)
			schema := withIDs(t, test.file...)
			if test.noIDs {
				schema = without(schema)
			}
			file := fromJSON(t, alloc, schema, test.rows)
			defer file.Release()
			test.options.Path = testPath
			p, err := New(file.Schema(), iceberg.NewSchema(1, test.want...), nil, test.options)
			var got []string
			if err == nil {
				got, err = outputs(t, alloc, file, p)
			}
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), testPath) && !strings.Contains(test.err, "version") {
					t.Fatalf("error %v, want one with %q and the path", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var columns, leaves []int
			for _, c := range p.Columns() {
				columns, leaves = append(columns, c.Index), append(leaves, c.Leaves...)
			}
			check(t, "columns", columns, test.columns)
			check(t, "leaves", leaves, test.leaves)
			check(t, "outputs", got, test.expect)
		})
	}
}

func check[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s %d: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestLeaves(t *testing.T) {
	file := []iceberg.NestedField{
		optional(1, "s", structOf(optional(2, "a", types.Int32), optional(3, "t", structOf(optional(4, "b", types.String))))),
		optional(5, "l", listOf(6, types.Int32)),
	}
	rows := `[{"s":{"a":1,"t":{"b":"x"}},"l":[1]},{"s":null,"l":null},{"s":{"a":null,"t":null},"l":null},{"s":{"a":4,"t":{"b":null}},"l":null}]`
	history := iceberg.NewSchema(0, append(file,
		optional(10, "gone", structOf(optional(11, "x", types.Int32))),
		optional(12, "t2", structOf(withDefault(optional(13, "y", types.Int32), 1.0))))...)
	within := iceberg.NewSchema(1, optional(1, "s", structOf(withDefault(optional(9, "n", types.Int64), 7.0))))
	for _, test := range []struct {
		leaf    iceberg.NestedField
		want    *iceberg.Schema
		expect  string
		columns []int
		err     string
	}{
		{leaf: optional(2, "a", types.Int64), expect: `[1,null,null,4]`, columns: []int{0}},
		{leaf: optional(4, "b", types.String), expect: `["x",null,null,null]`, columns: []int{0}},
		{leaf: required(4, "b", types.String), expect: `["x",null,null,null]`, columns: []int{0}},
		{leaf: withDefault(optional(9, "n", types.Int64), 7.0), want: within, expect: `[7,null,7,7]`, columns: []int{0, 0}},
		{leaf: optional(11, "x", types.Int32), expect: `[null,null,null,null]`},
		{leaf: withDefault(optional(13, "y", types.Int32), 1.0), expect: `[null,null,null,null]`},
		{leaf: withDefault(optional(20, "top", types.Int32), 1.0), expect: `[1,1,1,1]`},
		{leaf: optional(21, "top", types.Date), expect: `["1970-01-02","1970-01-02","1970-01-02","1970-01-02"]`},
		{leaf: optional(6, "e", types.Int32), err: "cannot be a filter or key column"},
		{leaf: optional(1, "s", structOf()), err: "only a primitive can be"},
		{leaf: required(22, "r", types.Int32), err: "column r is required"},
	} {
		t.Run(test.leaf.String(), func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer alloc.AssertSize(t, 0)
			record := fromJSON(t, alloc, withIDs(t, file...), rows)
			defer record.Release()
			want := test.want
			if want == nil {
				want = iceberg.NewSchema(1)
			}
			p, err := New(record.Schema(), want, []iceberg.NestedField{test.leaf},
				Options{Path: testPath, Schemas: []*iceberg.Schema{history}, Constants: map[int]any{21: iceberg.Date(1)}})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var in arrow.Array
			if c := p.LeafColumn(test.leaf.ID); c != NoColumn {
				in = readColumn(t, record, p.Columns()[c])
				defer in.Release()
			}
			for _, slice := range [][2]int64{{0, 4}, {1, 4}, {3, 4}, {2, 2}} {
				part := in
				if in != nil {
					part = array.NewSlice(in, slice[0], slice[1])
					defer part.Release()
				}
				a, err := p.Leaf(alloc, test.leaf.ID, part, int(slice[1]-slice[0]))
				if err != nil {
					t.Fatal(err)
				}
				defer a.Release()
				whole := fromJSONArray(t, alloc, a.DataType(), test.expect)
				defer whole.Release()
				expect := array.NewSlice(whole, slice[0], slice[1])
				defer expect.Release()
				if !array.Equal(a, expect) {
					t.Errorf("rows %v: got %v, want %v", slice, a, expect)
				}
			}
		})
	}
}

func fromJSONArray(t *testing.T, alloc memory.Allocator, dt arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(alloc, dt, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
