package project

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
)

// TestRandomEvolution evolves random schemas at random and compares the
// projection with a model that works on single values.
func TestRandomEvolution(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	for round := range rounds {
		seed := uint64(round)
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			evolveAndCompare(t, &evolver{Rand: rand.New(rand.NewPCG(seed, 7))})
		})
	}
}

type evolver struct {
	*rand.Rand
	lastID int
}

// object is a struct value by field id; a list is []any, a map []entry, and
// primitives are what text renders.
type object map[int]any
type entry struct{ key, value any }

func (e *evolver) id() int { e.lastID++; return e.lastID }

var randomTypes = []iceberg.Type{types.Bool, types.Int32, types.Int64, types.Float32, types.Float64, types.Date, types.Time,
	types.Timestamp, types.TimestampTz, types.TimestampNs, types.String, types.Binary, types.UUID,
	iceberg.FixedTypeOf(3), iceberg.DecimalTypeOf(9, 2), iceberg.DecimalTypeOf(20, 2)}

func (e *evolver) anyType(depth int) iceberg.Type {
	if depth < 3 && e.IntN(3) == 0 {
		switch e.IntN(4) {
		case 0:
			return &iceberg.ListType{ElementID: e.id(), Element: e.anyType(depth + 1), ElementRequired: e.IntN(3) == 0}
		case 1:
			return &iceberg.MapType{KeyID: e.id(), KeyType: randomTypes[e.IntN(len(randomTypes))], ValueID: e.id(), ValueType: e.anyType(depth + 1)}
		default:
			return &iceberg.StructType{FieldList: e.fields(1+e.IntN(4), depth+1)}
		}
	}
	return randomTypes[e.IntN(len(randomTypes))]
}

func (e *evolver) fields(n, depth int) []iceberg.NestedField {
	var fields []iceberg.NestedField
	for range n {
		id := e.id()
		fields = append(fields, iceberg.NestedField{ID: id, Name: fmt.Sprint("f", id), Type: e.anyType(depth), Required: e.IntN(4) == 0})
	}
	return fields
}

// value draws a value of a field, null now and then.
func (e *evolver) value(t iceberg.Type, required bool) any {
	if !required && e.IntN(4) == 0 {
		return nil
	}
	switch t := t.(type) {
	case *iceberg.StructType:
		o := object{}
		for _, f := range t.FieldList {
			o[f.ID] = e.value(f.Type, f.Required)
		}
		return o
	case *iceberg.ListType:
		l := make([]any, e.IntN(4))
		for i := range l {
			l[i] = e.value(t.Element, t.ElementRequired)
		}
		return l
	case *iceberg.MapType:
		m := make([]entry, e.IntN(3))
		for i := range m {
			m[i] = entry{e.value(t.KeyType, true), e.value(t.ValueType, t.ValueRequired)}
		}
		return m
	case iceberg.BooleanType:
		return e.IntN(2) == 0
	case iceberg.Int32Type:
		return int32(e.Uint32())
	case iceberg.Float32Type:
		return float32(e.NormFloat64())
	case iceberg.Float64Type:
		return e.NormFloat64()
	case iceberg.DateType:
		return iceberg.Date(e.IntN(40000) - 20000)
	case iceberg.TimeType:
		return iceberg.Time(e.Int64N(86400e6))
	case iceberg.StringType:
		return strings.Repeat("é", e.IntN(5)) + fmt.Sprint(e.IntN(100))
	case iceberg.BinaryType:
		return []byte(fmt.Sprint(e.IntN(100)))
	case iceberg.FixedType:
		return []byte{byte(e.IntN(256)), 0, 255}
	case iceberg.UUIDType:
		return []byte(fmt.Sprintf("%016d", e.Uint32()))
	case iceberg.DecimalType:
		return iceberg.Decimal{Val: decimal128.FromI64(e.Int64N(2e8) - 1e8), Scale: t.Scale()}
	}
	return e.Int64N(2e17) - 1e17
}

// evolve returns the fields after some changes that Iceberg allows. keyOf says
// that they belong to a map's key, which cannot change but by promotion.
func (e *evolver) evolve(fields []iceberg.NestedField, depth int) []iceberg.NestedField {
	var out []iceberg.NestedField
	for _, f := range fields {
		if len(fields) > 1 && e.IntN(5) == 0 {
			continue // dropped
		}
		if e.IntN(3) == 0 {
			f.Name += "_renamed"
		}
		if e.IntN(3) == 0 {
			f.Required = false
		}
		f.Type = e.evolveType(f.Type, depth)
		out = append(out, f)
	}
	for e.IntN(3) == 0 {
		added := e.fields(1, depth)[0]
		_, isStruct := added.Type.(*iceberg.StructType)
		_, nested := added.Type.(iceberg.NestedType)
		added.Required = false
		switch {
		case isStruct && e.IntN(2) == 0:
			added.InitialDefault = map[string]any{}
			e.optionalOrDefault(added.Type.(*iceberg.StructType))
		case !nested && e.IntN(2) == 0:
			added.InitialDefault = e.value(added.Type, true)
			added.Required = e.IntN(2) == 0
		}
		out = append(out, added)
	}
	e.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// optionalOrDefault makes the fields of a struct that files lack resolvable.
func (e *evolver) optionalOrDefault(t *iceberg.StructType) {
	for i := range t.FieldList {
		f := &t.FieldList[i]
		if _, nested := f.Type.(iceberg.NestedType); nested || e.IntN(2) == 0 {
			f.Required = false
		} else {
			f.InitialDefault = e.value(f.Type, true)
		}
	}
}

func (e *evolver) evolveType(t iceberg.Type, depth int) iceberg.Type {
	switch t := t.(type) {
	case *iceberg.StructType:
		return &iceberg.StructType{FieldList: e.evolve(t.FieldList, depth+1)}
	case *iceberg.ListType:
		return &iceberg.ListType{ElementID: t.ElementID, Element: e.evolveType(t.Element, depth+1), ElementRequired: t.ElementRequired}
	case *iceberg.MapType:
		return &iceberg.MapType{KeyID: t.KeyID, KeyType: t.KeyType, ValueID: t.ValueID, ValueType: e.evolveType(t.ValueType, depth+1)}
	}
	if e.IntN(2) == 0 {
		return t
	}
	switch t := t.(type) {
	case iceberg.Int32Type:
		return types.Int64
	case iceberg.Float32Type:
		return types.Float64
	case iceberg.DateType:
		return []iceberg.Type{types.Timestamp, types.TimestampNs}[e.IntN(2)]
	case iceberg.DecimalType:
		return iceberg.DecimalTypeOf(t.Precision()+e.IntN(10), t.Scale())
	}
	return t
}

// model is the value of a wanted field for one row: has says that the file has
// the field, with the given value in the file's type.
func model(want iceberg.Type, from iceberg.Type, value any) string {
	if value == nil {
		return "null"
	}
	switch want := want.(type) {
	case *iceberg.StructType:
		var parts []string
		for _, f := range want.FieldList {
			text := ""
			if old, ok := fieldByID(from.(*iceberg.StructType).FieldList, f.ID); ok {
				text = model(f.Type, old.Type, value.(object)[f.ID])
			} else {
				text = modelDefault(f)
			}
			parts = append(parts, f.Name+":"+text)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case *iceberg.ListType:
		var parts []string
		for _, v := range value.([]any) {
			parts = append(parts, model(want.Element, from.(*iceberg.ListType).Element, v))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *iceberg.MapType:
		var parts []string
		for _, e := range value.([]entry) {
			old := from.(*iceberg.MapType)
			parts = append(parts, model(want.KeyType, old.KeyType, e.key)+"="+model(want.ValueType, old.ValueType, e.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case iceberg.TimestampType:
		if d, ok := value.(iceberg.Date); ok {
			return fmt.Sprint(time.Unix(int64(d)*86400, 0).UnixMicro())
		}
	case iceberg.TimestampNsType:
		if d, ok := value.(iceberg.Date); ok {
			return fmt.Sprint(time.Unix(int64(d)*86400, 0).UnixNano())
		}
	}
	switch v := value.(type) {
	case string:
		return strconv.Quote(v)
	case []byte:
		return fmt.Sprintf("x%x", v)
	case float32:
		return fmt.Sprint(float64(v))
	case iceberg.Date:
		return fmt.Sprint(int64(v))
	case iceberg.Time:
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprint(value)
}

func modelDefault(f iceberg.NestedField) string {
	if t, ok := f.Type.(*iceberg.StructType); ok && f.InitialDefault != nil {
		var parts []string
		for _, kid := range t.FieldList {
			parts = append(parts, kid.Name+":"+modelDefault(kid))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return model(f.Type, f.Type, f.InitialDefault)
}

func fieldByID(fields []iceberg.NestedField, id int) (iceberg.NestedField, bool) {
	for _, f := range fields {
		if f.ID == id {
			return f, true
		}
	}
	return iceberg.NestedField{}, false
}

// appendTo writes a value into the builder of a file's array.
func appendTo(b array.Builder, t iceberg.Type, value any) {
	if value == nil {
		b.AppendNull()
		return
	}
	switch t := t.(type) {
	case *iceberg.StructType:
		sb := b.(*array.StructBuilder)
		sb.Append(true)
		for i, f := range t.FieldList {
			appendTo(sb.FieldBuilder(i), f.Type, value.(object)[f.ID])
		}
	case *iceberg.ListType:
		lb := b.(array.ListLikeBuilder)
		lb.Append(true)
		for _, v := range value.([]any) {
			appendTo(lb.ValueBuilder(), t.Element, v)
		}
	case *iceberg.MapType:
		mb := b.(*array.MapBuilder)
		mb.Append(true)
		for _, e := range value.([]entry) {
			appendTo(mb.KeyBuilder(), t.KeyType, e.key)
			appendTo(mb.ItemBuilder(), t.ValueType, e.value)
		}
	default:
		if err := appendScalar(b, t, value); err != nil {
			panic(err)
		}
	}
}

func evolveAndCompare(t *testing.T, e *evolver) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	written := e.fields(1+e.IntN(6), 0)
	wanted := e.evolve(written, 0)
	schema, err := ArrowSchema(iceberg.NewSchema(0, written...), ArrowOptions{FieldIDs: true, LargeStrings: e.IntN(2) == 0, LargeLists: e.IntN(2) == 0})
	if err != nil {
		t.Fatal(err)
	}
	builder := array.NewRecordBuilder(alloc, schema)
	defer builder.Release()
	rows := make([]object, e.IntN(40))
	for i := range rows {
		rows[i] = object{}
		for k, f := range written {
			rows[i][f.ID] = e.value(f.Type, f.Required)
			appendTo(builder.Field(k), f.Type, rows[i][f.ID])
		}
	}
	whole := builder.NewRecordBatch()
	defer whole.Release()
	start := e.IntN(len(rows) + 1)
	end := start + e.IntN(len(rows)-start+1)
	file := whole.NewSlice(int64(start), int64(end))
	defer file.Release()
	rows = rows[start:end]

	extra := structLeaves(append(wanted, written...), nil)
	e.Shuffle(len(extra), func(i, j int) { extra[i], extra[j] = extra[j], extra[i] })
	var fields []iceberg.NestedField
	for _, path := range extra[:min(3, len(extra))] {
		fields = append(fields, path[len(path)-1])
	}
	p, err := New(schema, iceberg.NewSchema(1, wanted...), fields, Options{
		Arrow:   ArrowOptions{LargeStrings: e.IntN(2) == 0, LargeLists: e.IntN(2) == 0},
		Schemas: []*iceberg.Schema{iceberg.NewSchema(0, written...)},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := outputs(t, alloc, file, p)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range wanted {
		expect := make([]string, len(rows))
		for r, row := range rows {
			if old, ok := fieldByID(written, f.ID); ok {
				expect[r] = model(f.Type, old.Type, row[f.ID])
			} else {
				expect[r] = modelDefault(f)
			}
		}
		if text := "[" + strings.Join(expect, ",") + "]"; got[i] != text {
			t.Errorf("%s\n got %s\nwant %s", f, got[i], text)
		}
	}
	for i, c := range p.Columns() {
		in := readColumn(t, file, c)
		defer in.Release()
		for k, f := range fields {
			if p.LeafColumn(f.ID) == i {
				checkLeaf(t, alloc, p, extra[k], written, rows, in)
			}
		}
	}
}

// checkLeaf compares a leaf that has something in the file with the model.
func checkLeaf(t *testing.T, alloc memory.Allocator, p *Projection, path, written []iceberg.NestedField, rows []object, in arrow.Array) {
	t.Helper()
	a, err := p.Leaf(alloc, path[len(path)-1].ID, in, len(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	for r, row := range rows {
		var value any = row
		from := written
		expect := ""
		for i, f := range path {
			if value == nil {
				expect = "null"
				break
			}
			old, ok := fieldByID(from, f.ID)
			if !ok {
				expect = "null"
				if rest := path[i:]; allDefaults(rest) {
					expect = model(rest[len(rest)-1].Type, rest[len(rest)-1].Type, rest[len(rest)-1].InitialDefault)
				}
				break
			}
			value = value.(object)[f.ID]
			if s, ok := old.Type.(*iceberg.StructType); ok {
				from = s.FieldList
			} else {
				expect = model(f.Type, old.Type, value)
			}
		}
		if got := enginetest.RenderValue(a, r); got != expect {
			t.Errorf("leaf %v, row %d: got %s, want %s", path, r, got, expect)
		}
	}
}

func allDefaults(path []iceberg.NestedField) bool {
	for _, f := range path {
		if f.InitialDefault == nil {
			return false
		}
	}
	return true
}

// structLeaves lists the primitives inside structs, with the structs around.
func structLeaves(fields, parents []iceberg.NestedField) [][]iceberg.NestedField {
	var leaves [][]iceberg.NestedField
	seen := map[int]bool{}
	for _, f := range fields {
		if seen[f.ID] {
			continue // the wanted form of a field stands for the written one
		}
		seen[f.ID] = true
		path := append(append([]iceberg.NestedField(nil), parents...), f)
		switch t := f.Type.(type) {
		case *iceberg.StructType:
			leaves = append(leaves, structLeaves(t.FieldList, path)...)
		case iceberg.NestedType:
		default:
			leaves = append(leaves, path)
		}
	}
	return leaves
}
