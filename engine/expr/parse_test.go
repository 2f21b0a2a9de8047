package expr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// testSchema has a column of every type, and nested ones.
func testSchema(t testing.TB) *iceberg.Schema {
	var fields []iceberg.NestedField
	for i, typ := range allTypes {
		name, _, _ := strings.Cut(strings.Replace(typ, "[", "(", 1), "(")
		fields = append(fields, field(t, i+1, name, typ, false))
	}
	point := &iceberg.StructType{FieldList: []iceberg.NestedField{
		field(t, 51, "x", "int", true),
		field(t, 52, "Label", "string", false),
	}}
	fields = append(fields,
		iceberg.NestedField{ID: 50, Name: "point", Type: point},
		iceberg.NestedField{ID: 60, Name: "tags", Type: &iceberg.ListType{ElementID: 61, Element: &iceberg.StructType{
			FieldList: []iceberg.NestedField{field(t, 62, "x", "int", true)}}}},
		iceberg.NestedField{ID: 70, Name: "props", Type: &iceberg.MapType{
			KeyID: 71, KeyType: iceberg.PrimitiveTypes.String, ValueID: 72, ValueType: iceberg.PrimitiveTypes.String}},
		iceberg.NestedField{ID: 80, Name: "anything", Type: iceberg.VariantType{}},
		iceberg.NestedField{ID: 81, Name: "nothing", Type: iceberg.UnknownType{}},
		field(t, 82, "customer_id", "long", false),
		field(t, 83, "Customer_ID", "long", false),
		field(t, 84, "point.x", "int", false),
	)
	return iceberg.NewSchema(0, fields...)
}

func TestWireForm(t *testing.T) {
	schema := testSchema(t)
	for _, c := range []struct{ wire, want string }{
		{`[{"op":"true"}]`, `true`},
		{`[{"op":"false"}]`, `false`},
		{`[{"op":"and","args":[]}]`, `true`},
		{`[{"op":"or","args":[]}]`, `false`},
		{`[{"op":"eq","ref":"boolean","type":"boolean","value":true}]`, `boolean = true`},
		{`[{"op":"eq","ref":"int","type":"int","value":-5}]`, `int = -5`},
		{`[{"op":"lt","ref":"int","type":"long","value":5}]`, `int <= 4`},
		{`[{"op":"gt-eq","ref":"long","type":"int","value":5}]`, `long >= 5`},
		{`[{"op":"eq","ref":"float","type":"double","value":0.1}]`, `float = 0.10000000149011612`},
		{`[{"op":"gt","ref":"double","type":"double","value":"-Infinity"}]`, `double >= -1.7976931348623157e+308`},
		{`[{"op":"eq","ref":"double","type":"float","value":-0.0}]`, `double = -0`},
		{`[{"op":"eq","ref":"decimal","type":"decimal","value":"12.5"}]`, `decimal = 12.50`},
		{`[{"op":"eq","ref":"decimal","type":"decimal","value":"1.25E+1"}]`, `decimal = 12.50`},
		{`[{"op":"eq","ref":"decimal","type":"double","value":1.005}]`, `decimal = 1.01`},
		{`[{"op":"eq","ref":"decimal","type":"double","value":-1.005}]`, `decimal = -1.01`},
		{`[{"op":"eq","ref":"decimal","type":"long","value":3}]`, `decimal = 3.00`},
		{`[{"op":"eq","ref":"long","type":"decimal","value":"3.00"}]`, `long = 3`},
		{`[{"op":"eq","ref":"date","type":"date","value":19782}]`, `date = 2024-02-29`},
		{`[{"op":"eq","ref":"date","type":"string","value":"2024-02-29"}]`, `date = 2024-02-29`},
		{`[{"op":"eq","ref":"date","type":"timestamp","value":-1}]`, `date = 1969-12-31`},
		{`[{"op":"eq","ref":"time","type":"time","value":1}]`, `time = 00:00:00.000001`},
		{`[{"op":"eq","ref":"timestamp","type":"timestamp_ns","value":1000}]`, `timestamp = 1970-01-01 00:00:00.000001`},
		{`[{"op":"eq","ref":"timestamp_ns","type":"timestamp","value":1}]`, `timestamp_ns = 1970-01-01 00:00:00.000001000`},
		{`[{"op":"lt","ref":"timestamp_ns","type":"timestamp","value":9223372036854775807}]`, `timestamp_ns is not null`},
		{`[{"op":"eq","ref":"timestamptz","type":"string","value":"1970-01-01T01:00:00+01:00"}]`, `timestamptz = 1970-01-01 00:00:00.000000`},
		{`[{"op":"eq","ref":"string","type":"string","value":"a\"\u0000é"}]`, `string = "a\"\x00é"`},
		{`[{"op":"starts-with","ref":"string","type":"string","value":"ab"}]`, `"ab" <= string < "ac"`},
		{`[{"op":"eq","ref":"binary","type":"binary","value":"00ff"}]`, `binary = 0x00ff`},
		{`[{"op":"eq","ref":"fixed","type":"binary","value":"00ff01"}]`, `fixed = 0x00ff01`},
		{`[{"op":"eq","ref":"uuid","type":"uuid","value":"f79c3e09-677c-4bbd-a479-3f349cb785e7"}]`, `uuid = f79c3e09-677c-4bbd-a479-3f349cb785e7`},
		{`[{"op":"is-null","id":52}]`, `point.Label is null`},
		{`[{"op":"not-null","ref":"nothing"}]`, `false`},
		{`[{"op":"not-eq","ref":"nothing","type":"long","value":1}]`, `true`},
		// What no value of the column can reach.
		{`[{"op":"lt","ref":"int","type":"long","value":2147483648}]`, `int is not null`},
		{`[{"op":"gt","ref":"int","type":"long","value":2147483648}]`, `false`},
		{`[{"op":"not-eq","ref":"int","type":"long","value":-2147483649}]`, `true`},
		{`[{"op":"gt-eq","ref":"long","type":"long","value":-99999999999999999999}]`, `long is not null`},
		{`[{"op":"lt","ref":"double","type":"long","value":99999999999999999999}]`, `double <= 9.999999999999998e+19`},
		{`[{"op":"lt","ref":"decimal","type":"long","value":9999999999999999999999999999999999999999999}]`, `decimal is not null`},
		{`[{"op":"gt","ref":"float","type":"double","value":1e300}]`, `float >= 1.0000000000000002e+300`},
		// Sets.
		{`[{"op":"in","ref":"int","type":"long","values":[3,1,3,99999999999]}]`, `int in (1, 3)`},
		{`[{"op":"in","ref":"long","type":"long","values":[]}]`, `false`},
		{`[{"op":"not-in","ref":"string","type":"string","values":["b","a"]}]`, `string not in ("a", "b")`},
		{`[{"op":"in","ref":"date","type":"string","values":["1970-01-02"]}]`, `date in (1970-01-02)`},
		{`[{"op":"in","ref":"decimal","type":"decimal","values":["1.00","2.5"]}]`, `decimal in (1.00, 2.50)`},
		// Combinations.
		{`[{"op":"eq","ref":"int","type":"int","value":1},{"op":"not","args":[0]}]`, `int != 1`},
		{`[{"op":"eq","ref":"int","type":"int","value":1},{"op":"is-null","ref":"string"},{"op":"or","args":[1,0]}]`, `string is null or int = 1`},
		{`[{"op":"gt","ref":"int","type":"int","value":1},{"op":"lt","ref":"int","type":"int","value":5},{"op":"and","args":[0,1]}]`, `2 <= int <= 4`},
		{`[{"op":"eq","ref":"int","type":"int","value":1},{"op":"is-null","ref":"int"},{"op":"or","args":[0,1]}]`, `(int = 1 or int is null)`},
	} {
		e, err := Parse([]byte(c.wire))
		if err != nil {
			t.Errorf("%s: %v", c.wire, err)
			continue
		}
		b, err := e.Bind(schema, true)
		if err != nil {
			t.Errorf("%s: %v", c.wire, err)
			continue
		}
		if b.String() != c.want {
			t.Errorf("%s: %s, expected %s", c.wire, b, c.want)
		}
	}
}

func TestWireErrors(t *testing.T) {
	deep := make([]string, 0, 2*maxDepth)
	for i := range 2 * maxDepth {
		op := []string{"and", "or"}[i%2]
		deep = append(deep, fmt.Sprintf(`{"op":"is-null","ref":"a"},{"op":"is-null","ref":"b"},{"op":"%s","args":[%d,%d,%d]}`, op, max(0, 3*i-1), 3*i, 3*i+1))
	}
	deep[0] = `{"op":"is-null","ref":"a"},{"op":"is-null","ref":"b"},{"op":"and","args":[0,1]}`
	for _, c := range []struct{ wire, want string }{
		{``, "not a JSON array"},
		{`{}`, "not a JSON array"},
		{`[]`, "filter is empty; leave it out to keep all rows"},
		{`[{"op":"true"}`, "ends too early"},
		{`[{"op":"true"}] 5`, "more after"},
		{`[5]`, "node 0: not an object"},
		{`[{}]`, `node 0: field "op" is missing`},
		{`[{"op":"xor"}]`, `node 0: unknown operation "xor"`},
		{`[{"op":5}]`, `node 0: field "op" must not be a JSON number`},
		{`[{"op":"true","op":"true"}]`, `field "op" is given twice`},
		{`[{"op":"true","why":1}]`, `unknown field "why"`},
		{`[{"op":"true","ref":"x"}]`, `field "ref" does not belong to true`},
		{`[{"op":"and"}]`, `field "args" is missing`},
		{`[{"op":"and","args":[0]}]`, "argument 0 is not the index of a node before it"},
		{`[{"op":"true"},{"op":"and","args":[-1]}]`, "argument -1 is not"},
		{`[{"op":"true"},{"op":"and","args":[99999999999999999999]}]`, `field "args" must not be`},
		{`[{"op":"true"},{"op":"and","args":[0,0]}]`, "node 0 is used twice"},
		{`[{"op":"true"},{"op":"true"}]`, "node 0 is not used"},
		{`[{"op":"true"},{"op":"true"},{"op":"not","args":[0,1]}]`, "not takes one argument"},
		{`[{"op":"is-null"}]`, `one of "ref" and "id"`},
		{`[{"op":"is-null","ref":"a","id":1}]`, `one of "ref" and "id"`},
		{`[{"op":"eq","ref":"a","value":1}]`, `"type" and "value" must be given`},
		{`[{"op":"eq","ref":"a","type":"integer","value":1}]`, `unknown literal type "integer"`},
		{`[{"op":"eq","ref":"a","type":"int","value":1.5}]`, "1.5 is not a literal of type int"},
		{`[{"op":"eq","ref":"a","type":"int","value":null}]`, "null is not a literal of type int"},
		{`[{"op":"eq","ref":"a","type":"int","value":"1"}]`, `"1" is not a literal of type int`},
		{`[{"op":"eq","ref":"a","type":"string","value":1}]`, "1 is not a literal of type string"},
		{`[{"op":"eq","ref":"a","type":"double","value":"x"}]`, `"x" is not a literal of type double`},
		{`[{"op":"eq","ref":"a","type":"double","value":1e999}]`, "not a literal of type double"},
		{`[{"op":"eq","ref":"a","type":"boolean","value":1}]`, "1 is not a literal of type boolean"},
		{`[{"op":"eq","ref":"a","type":"decimal","value":"1e999999999"}]`, "not a literal of type decimal"},
		{`[{"op":"eq","ref":"a","type":"decimal","value":"NaN"}]`, "not a literal of type decimal"},
		{`[{"op":"eq","ref":"a","type":"uuid","value":"f79c3e09"}]`, "not a literal of type uuid"},
		{`[{"op":"eq","ref":"a","type":"binary","value":"0"}]`, "not a literal of type binary"},
		{`[{"op":"in","ref":"a","type":"int","values":5}]`, `"values" is not an array`},
		{`[{"op":"in","ref":"a","type":"int","values":[1,null]}]`, "null is not a literal of type int"},
		{`[{"op":"in","ref":"a","type":"string","values":["a",null]}]`, "null is not a literal of type string"},
		{`[{"op":"in","ref":"a","set":0}]`, "set 0 was not given"},
		{`[{"op":"in","ref":"a","set":0,"type":"int"}]`, `"set" stands in the place of`},
		{`[` + strings.Join(deep, ",") + `]`, "nest more than 500 deep; write it with in"},
		{`[{"op":"and","args":` + strings.Repeat("[", 20_000), "JSON"},
		{`[{"op":"eq","ref":"a","type":"int","value":` + strings.Repeat(`{"a":`, 20_000), "JSON"},
	} {
		_, err := Parse([]byte(c.wire))
		if err == nil || errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200s: %v, expected InvalidArgument with %q", c.wire, err, c.want)
		}
	}
}

func TestBindErrors(t *testing.T) {
	schema := testSchema(t)
	str := iceberg.StringLiteral("x")
	nan, _ := Parse([]byte(`[{"op":"eq","ref":"double","type":"double","value":"NaN"}]`))
	shared := And(IsNull("int"), IsNull("long"))
	for range 60 {
		shared = And(shared, shared)
	}
	deep := IsNull("int")
	for range maxDepth {
		deep = Or(And(deep, IsNull("long")), IsNull("string"))
	}
	for _, c := range []struct {
		expr *Expr
		code errs.Code
		want string
	}{
		{IsNull("custmer_id"), errs.InvalidArgument, `no column "custmer_id"; did you mean "customer_id" or "Customer_ID"?`},
		{IsNull("STRING"), errs.InvalidArgument, `did you mean "string"?`},
		{IsNull("label"), errs.InvalidArgument, `did you mean "point.Label"?`},
		{IsNull("zzzzzzzzzz"), errs.InvalidArgument, `no column "zzzzzzzzzz"; the columns are `},
		{&Expr{op: OpIsNull, ref: ref{id: 999, hasID: true}}, errs.InvalidArgument, "no column with field id 999"},
		{IsNull("point.x"), errs.InvalidArgument, `column name "point.x" is ambiguous`},
		{IsNull("point"), errs.InvalidArgument, `column "point" is a struct`},
		{IsNull("tags"), errs.InvalidArgument, `column "tags" is a list`},
		{IsNull("tags.element.x"), errs.InvalidArgument, `inside the list or map "tags"`},
		{IsNull("props.key"), errs.InvalidArgument, `inside the list or map "props"`},
		{IsNull("anything"), errs.Unsupported, `column "anything" is of type variant`},
		{Compare(OpEq, "int", str), errs.InvalidArgument, `column "int" is of type int and cannot be compared with the string literal "x": not a whole number`},
		{Compare(OpEq, "int", iceberg.Float64Literal(1.5)), errs.InvalidArgument, `cannot be compared with the double literal "1.5"`},
		{Compare(OpEq, "long", decimal(t, "1.5")), errs.InvalidArgument, "whole numbers only"},
		{Compare(OpEq, "decimal", decimal(t, "1.555")), errs.InvalidArgument, "only 2 digits after the point"},
		{Compare(OpEq, "timestamp", iceberg.TimestampNsLiteral(1)), errs.InvalidArgument, "only microseconds"},
		{Compare(OpEq, "boolean", iceberg.Int64Literal(1)), errs.InvalidArgument, `column "boolean"`},
		{Compare(OpEq, "date", str), errs.InvalidArgument, "not a date"},
		{Compare(OpEq, "uuid", str), errs.InvalidArgument, "not a uuid"},
		{Compare(OpEq, "fixed", iceberg.BinaryLiteral("ab")), errs.InvalidArgument, `column "fixed"`},
		{Compare(OpStartsWith, "int", iceberg.Int64Literal(1)), errs.InvalidArgument, "not a string but int"},
		{Compare(OpEq, "int", nil), errs.InvalidArgument, "compared with null; use is-null"},
		{In("int", iceberg.Int64Literal(1), nil), errs.InvalidArgument, "compared with null"},
		{nan, errs.InvalidArgument, "compared with NaN, which has no order; use is-nan"},
		{Compare(OpEq, "double", iceberg.StringLiteral("nan")), errs.InvalidArgument, "use is-nan"},
		{Compare(OpAnd, "int", str), errs.InvalidArgument, "and is not a comparison"},
		{deep, errs.InvalidArgument, "nest more than 500 deep"},
		{shared, errs.InvalidArgument, "more than"},
	} {
		_, err := c.expr.Bind(schema, true)
		if err == nil || errs.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %s with %q", err, c.code, c.want)
		}
	}
	if _, err := IsNull("CUSTOMER_id").Bind(schema, false); err == nil || !strings.Contains(err.Error(), "ambiguous") {
		t.Errorf("names that differ in case only: %v", err)
	}
	b, err := And(IsNull("POINT.LABEL"), Compare(OpEq, "String", str)).Bind(schema, false)
	if err != nil || fmt.Sprint(b.FieldIDs()) != "[13 52]" {
		t.Errorf("%v %v", b.FieldIDs(), err)
	}
}

func TestIcebergJSON(t *testing.T) {
	schema := testSchema(t)
	for _, c := range []struct{ json, want string }{
		{`true`, `true`},
		{`{"type":"false"}`, `false`},
		{`{"type":"literal","value":true}`, `true`},
		{`{"type":"eq","term":"int","value":5}`, `int = 5`},
		{`{"value":5,"term":{"type":"reference","term":"int"},"type":"lt-eq"}`, `int <= 5`},
		{`{"type":"eq","term":"double","value":{"type":"literal","value":1.5}}`, `double = 1.5`},
		{`{"type":"eq","term":"binary","value":"00FF"}`, `binary = 0x00ff`},
		{`{"type":"eq","term":"date","value":"2024-02-29"}`, `date = 2024-02-29`},
		{`{"type":"eq","term":"timestamptz","value":"1970-01-01T00:00:00.000001+00:00"}`, `timestamptz = 1970-01-01 00:00:00.000001`},
		{`{"type":"eq","term":"decimal","value":"14.20"}`, `decimal = 14.20`},
		{`{"type":"in","term":"int","values":[1,2]}`, `int in (1, 2)`},
		{`{"type":"NOT_NULL","term":"string"}`, `string is not null`},
		{`{"type":"not","child":{"type":"or","left":{"type":"eq","term":"int","value":5},"right":true}}`, `false`},
		{`{"right":{"type":"is-nan","term":"double"},"left":{"type":"starts-with","term":"string","value":"a"},"type":"and"}`,
			`"a" <= string < "b" and double is nan`},
	} {
		e, err := ParseIcebergJSON([]byte(c.json))
		if err != nil {
			t.Errorf("%s: %v", c.json, err)
			continue
		}
		b, err := e.Bind(schema, true)
		if err != nil || b.String() != c.want {
			t.Errorf("%s: %s %v, expected %s", c.json, b, err, c.want)
		}
	}
	for _, c := range []struct{ json, want string }{
		{``, "ends too early"},
		{`{"type":"and","left":true`, "ends too early"},
		{`{"type":"and","left":true}`, `without "left" and "right"`},
		{`{"type":"not"}`, `without "child"`},
		{`{"type":"eq","term":"a"}`, `without "value"`},
		{`{"type":"eq","term":"a","value":null}`, "not a literal: null"},
		{`{"type":"in","term":"a","values":[[1]]}`, "not a literal: [1]"},
		{`{"type":"eq","value":1}`, `without "term"`},
		{`{"type":"between"}`, `unknown operation "between"`},
		{`{"type":"true"} {}`, "more after"},
		{`[1]`, "an object or a boolean"},
		{`{"type":"true","x":1}`, `unknown field "x"`},
		{`{"type":"true","type":"true"}`, "given twice"},
		{`{"type":"eq","term":{"type":"transform","transform":"bucket[4]","term":"a"},"value":1}`, "transform bucket[4]"},
		{strings.Repeat(`{"type":"not","child":{"type":"and","left":{"type":"is-null","term":"a"},"right":`, 300) + "x", "not valid JSON"},
	} {
		_, err := ParseIcebergJSON([]byte(c.json))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100s: %v, expected %q", c.json, err, c.want)
		}
	}
}

// TestLongChains: binary ands and ors of any length, as other libraries write
// them, neither recurse nor grow quadratically.
func TestLongChains(t *testing.T) {
	const n = 100_000
	text := strings.Repeat(`{"type":"or","left":`, n) + `{"type":"eq","term":"int","value":0}` +
		strings.Repeat(`,"right":{"type":"eq","term":"int","value":7}}`, n)
	e, err := ParseIcebergJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Bind(testSchema(t), true)
	if err != nil || b.String() != "int in (0, 7)" {
		t.Errorf("%.100s %v", b, err)
	}
	chain := Compare(OpNotEq, "int", iceberg.Int32Literal(0))
	for i := range n {
		chain = And(chain, Compare(OpNotEq, "int", iceberg.Int32Literal(i%2)))
	}
	b, err = chain.Bind(testSchema(t), true)
	if err != nil || b.String() != "int not in (0, 1)" {
		t.Errorf("%.100s %v", b, err)
	}
}

func TestArraysOfLiterals(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	fromJSON := func(typ arrow.DataType, text string) arrow.Array {
		arr, _, err := array.FromJSON(alloc, typ, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return arr
	}
	schema := testSchema(t)
	for _, c := range []struct {
		column string
		typ    arrow.DataType
		json   string
		want   string
	}{
		{"int", arrow.PrimitiveTypes.Int64, `[2, 1, 99999999999]`, `int in (1, 2)`},
		{"long", arrow.PrimitiveTypes.Int8, `[2, 1]`, `long in (1, 2)`},
		{"long", arrow.PrimitiveTypes.Uint64, `[2, 1]`, `long in (1, 2)`},
		{"boolean", arrow.FixedWidthTypes.Boolean, `[true]`, `boolean in (true)`},
		{"double", arrow.PrimitiveTypes.Float32, `[0.5, 1]`, `double in (0.5, 1)`},
		{"float", arrow.PrimitiveTypes.Float64, `[0.5, 1]`, `float in (0.5, 1)`},
		{"decimal", &arrow.Decimal128Type{Precision: 10, Scale: 1}, `["1.5"]`, `decimal in (1.50)`},
		{"date", arrow.FixedWidthTypes.Date32, `["1970-01-02"]`, `date in (1970-01-02)`},
		{"time", arrow.FixedWidthTypes.Time32ms, `["00:00:01"]`, `time in (00:00:01.000000)`},
		{"timestamp", arrow.FixedWidthTypes.Timestamp_s, `[1]`, `timestamp in (1970-01-01 00:00:01.000000)`},
		{"timestamp_ns", &arrow.TimestampType{Unit: arrow.Nanosecond}, `[1000000000]`, `timestamp_ns in (1970-01-01 00:00:01.000000000)`},
		{"string", arrow.BinaryTypes.LargeString, `["b", "a"]`, `string in ("a", "b")`},
		{"string", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["b", "a", "b"]`, `string in ("a", "b")`},
		{"binary", arrow.BinaryTypes.Binary, `["AAE="]`, `binary in (0x0001)`},
		{"uuid", &arrow.FixedSizeBinaryType{ByteWidth: 16}, `["AAAAAAAAAAAAAAAAAAAAAQ=="]`, `uuid in (00000000-0000-0000-0000-000000000001)`},
		{"int", arrow.Null, `[]`, `false`},
	} {
		arr := fromJSON(c.typ, c.json)
		e, err := Parse([]byte(fmt.Sprintf(`[{"op":"in","ref":%q,"set":0}]`, c.column)), arr)
		arr.Release()
		if err != nil {
			t.Errorf("%s of %s: %v", c.column, c.typ, err)
			continue
		}
		b, err := e.Bind(schema, true)
		if err != nil || b.String() != c.want {
			t.Errorf("%s of %s: %s %v, expected %s", c.column, c.typ, b, err, c.want)
		}
	}
	arr := fromJSON(arrow.PrimitiveTypes.Int64, `[1, null]`)
	defer arr.Release()
	if _, err := NotInArray("int", arr); err == nil || !strings.Contains(err.Error(), "has a null") {
		t.Errorf("a null among the literals: %v", err)
	}
	list := fromJSON(arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1]]`)
	defer list.Release()
	if _, err := InArray("int", list); err == nil || !strings.Contains(err.Error(), "cannot be of Arrow type list") {
		t.Errorf("a list of literals: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"op":"eq","ref":"a.b","type":"long","value":5},{"op":"not","args":[0]}]`))
	f.Add([]byte(`[{"op":"in","id":3,"type":"decimal","values":["1.5","2"]},{"op":"is-nan","ref":"double"},{"op":"or","args":[1,0]}]`))
	f.Add([]byte(`{"type":"and","left":{"type":"in","term":"int","values":[1,2]},"right":{"type":"eq","term":"date","value":"2024-01-01"}}`))
	f.Add([]byte(`[{"op":"starts-with","ref":"string","type":"string","value":""},{"op":"eq","ref":"fixed","type":"fixed","value":"000000"},{"op":"and","args":[0,1]}]`))
	schema := testSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (*Expr, error){
			func(b []byte) (*Expr, error) { return Parse(b) }, ParseIcebergJSON,
		} {
			e, err := parse(data)
			if err == nil {
				var b *Bound
				if b, err = e.Bind(schema, true); err == nil {
					_ = b.String()
					for _, mode := range modes {
						b.MayMatch(mode, Metrics{Column: func(int) ColumnMetrics { return ColumnMetrics{} }})
					}
				}
			}
			if code := errs.CodeOf(err); err != nil && code != errs.InvalidArgument && code != errs.Unsupported {
				t.Fatalf("%v", err)
			}
		}
	})
}
