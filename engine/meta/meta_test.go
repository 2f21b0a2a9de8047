package meta

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// document makes a small valid version 2 document in which the pairs of
// old and new text are replaced.
func testDocument(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(`{
	"format-version": 2, "table-uuid": "u", "location": "/t", "last-sequence-number": 3, "last-updated-ms": 1, "last-column-id": 3,
	"current-schema-id": 1, "schemas": [
		{"type": "struct", "schema-id": 0, "fields": [
			{"id": 1, "name": "id", "required": true, "type": "int"},
			{"id": 2, "name": "gone", "required": false, "type": "string"}]},
		{"type": "struct", "schema-id": 1, "identifier-field-ids": [1], "fields": [
			{"id": 1, "name": "key", "required": true, "type": "long"},
			{"id": 3, "name": "s", "required": false, "type": {"type": "struct", "fields": [
				{"id": 4, "name": "x", "required": false, "type": {"type": "list", "element-id": 5, "element-required": false, "element": "double"}}]}}]}],
	"default-spec-id": 1, "partition-specs": [
		{"spec-id": 0, "fields": []},
		{"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1000, "name": "b", "transform": "bucket[4]"}]}],
	"last-partition-id": 1000,
	"default-sort-order-id": 1, "sort-orders": [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": [
		{"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}]}],
	"properties": {"a": "b"},
	"current-snapshot-id": 12, "snapshots": [
		{"snapshot-id": 11, "sequence-number": 1, "timestamp-ms": 5, "manifest-list": "/t/11.avro", "schema-id": 0, "summary": {"operation": "append"}},
		{"snapshot-id": 12, "parent-snapshot-id": 11, "sequence-number": 2, "timestamp-ms": 6, "manifest-list": "/t/12.avro", "schema-id": 1}],
	"snapshot-log": [{"snapshot-id": 11, "timestamp-ms": 5}, {"snapshot-id": 12, "timestamp-ms": 6}],
	"refs": {"main": {"snapshot-id": 12, "type": "branch"}, "old": {"snapshot-id": 11, "type": "tag"}}
}`)
}

func mustParse(t *testing.T, text string) *Table {
	t.Helper()
	table, err := Parse([]byte(text), "/t/m.json")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestParse(t *testing.T) {
	table := mustParse(t, testDocument())
	if table.FormatVersion != 2 || table.Location != "/t" || table.MetadataLocation != "/t/m.json" || table.Properties["a"] != "b" {
		t.Errorf("wrong: %+v", table)
	}
	if s := table.CurrentSchema(); s.ID != 1 || !reflect.DeepEqual(s.IdentifierFieldIDs, []int{1}) || s.Field(0).Name != "key" {
		t.Errorf("current schema %v", s)
	}
	if table.CurrentSnapshot().ID != 12 || *table.CurrentSnapshot().ParentID != 11 {
		t.Errorf("current snapshot %+v", table.CurrentSnapshot())
	}
	old, err := table.SnapshotByRef("old")
	if err != nil || old.ID != 11 || old.Operation() != "append" || table.SchemaOf(old).ID != 0 {
		t.Errorf("tag: %+v, %v", old, err)
	}
	if table.SchemaOf(nil).ID != 1 {
		t.Error("the schema of no snapshot is the current one")
	}
	for _, f := range []struct {
		id     int
		name   string
		schema int
		ok     bool
	}{{1, "key", 1, true}, {2, "gone", 0, true}, {4, "x", 1, true}, {5, "element", 1, true}, {9, "", 0, false}} {
		field, ok := table.Field(f.id)
		if schema, _ := table.SchemaWithField(f.id); ok != f.ok || ok && (field.Name != f.name || schema.ID != f.schema) {
			t.Errorf("field %d: %v, %v", f.id, field, ok)
		}
	}
	spec, ok := table.SpecByID(1)
	if !ok || table.DefaultSpecID != 1 {
		t.Fatal("spec 1 is missing")
	}
	if types := table.PartitionTypes(spec); len(types) != 1 || !types[0].Equals(iceberg.Int32Type{}) {
		t.Errorf("partition types %v", types)
	}
	order, ok := table.SortOrderByID(1)
	if !ok || len(order.Fields) != 1 || !order.Fields[0].Descending || order.Fields[0].NullsFirst || order.Fields[0].SourceIDs[0] != 1 {
		t.Errorf("sort order %+v", order)
	}
}

func TestParseVersion1(t *testing.T) {
	table := mustParse(t, `{"format-version": 1, "location": "/t", "last-updated-ms": 1, "last-column-id": 1,
		"schema": {"type": "struct", "fields": [{"id": 1, "name": "d", "required": false, "type": "date"}]},
		"partition-spec": [{"source-id": 1, "name": "d_day", "transform": "day", "field-id": 1000}],
		"current-snapshot-id": 5, "snapshots": [{"snapshot-id": 5, "timestamp-ms": 1, "manifests": ["/t/a.avro", "/t/b.avro"]}]}`)
	if s := table.CurrentSnapshot(); !reflect.DeepEqual(s.Manifests, []string{"/t/a.avro", "/t/b.avro"}) || s.SequenceNumber != 0 {
		t.Errorf("snapshot %+v", s)
	}
	if spec, ok := table.SpecByID(0); !ok || spec.NumFields() != 1 || table.DefaultSpecID != 0 {
		t.Error("partition-spec is not spec 0")
	}
	if o, ok := table.SortOrderByID(0); !ok || !o.IsUnsorted() {
		t.Error("sort order 0 must exist")
	}
	empty := mustParse(t, `{"format-version": 1, "location": "/t", "schema": {"type": "struct", "fields": []}, "partition-spec": [], "current-snapshot-id": -1}`)
	if s, err := empty.SnapshotByRef(MainBranch); s != nil || err != nil || empty.CurrentSnapshot() != nil {
		t.Errorf("a table without snapshots: %v, %v", s, err)
	}
}

// TestTypesAndDefaults covers every type of version 3 with its default in
// Iceberg's JSON single-value form.
func TestTypesAndDefaults(t *testing.T) {
	type mapping = map[string]any
	cases := []struct {
		typ, value string
		want       any
	}{
		{`"boolean"`, `true`, true},
		{`"int"`, `-7`, int32(-7)},
		{`"long"`, `9007199254740993`, int64(9007199254740993)}, // no float64 in between
		{`"float"`, `1.5`, float32(1.5)},
		{`"double"`, `1e300`, 1e300},
		{`"double"`, `"Infinity"`, math.Inf(1)},
		{`"decimal(9, 2)"`, `"-14.20"`, iceberg.Decimal{Val: decimal128.FromI64(-1420), Scale: 2}},
		{`"decimal(38, 10)"`, `"1E-10"`, iceberg.Decimal{Val: decimal128.FromI64(1), Scale: 10}},
		{`"date"`, `"2024-02-29"`, iceberg.Date(19782)},
		{`"time"`, `"22:31:08.123456"`, iceberg.Time(81068123456)},
		{`"timestamp"`, `"1970-01-01T00:00:01.000001"`, iceberg.Timestamp(1000001)},
		{`"timestamptz"`, `"1970-01-01T00:00:01.000001+00:00"`, iceberg.Timestamp(1000001)},
		{`"timestamp_ns"`, `"1970-01-01T00:00:01.000000001"`, iceberg.TimestampNano(1000000001)},
		{`"timestamptz_ns"`, `"1970-01-01T00:00:01.000000001+00:00"`, iceberg.TimestampNano(1000000001)},
		{`"string"`, `"iceberg"`, "iceberg"},
		{`"uuid"`, `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, uuid.MustParse("f79c3e09-677c-4bbd-a479-3f349cb785e7")},
		{`"fixed[4]"`, `"00010203"`, []byte{0, 1, 2, 3}},
		{`"binary"`, `"78797A"`, []byte("xyz")},
		{`{"type": "struct", "fields": []}`, `{}`, mapping{}},
		{`"unknown"`, `null`, nil}, {`"variant"`, `null`, nil}, {`"geometry"`, `null`, nil},
		{`"geometry(srid:3857)"`, `null`, nil}, {`"geography(srid:4269, karney)"`, `null`, nil},
		{`{"type": "map", "key-id": 8, "key": "int", "value-id": 9, "value": "string", "value-required": true}`, `null`, nil},
	}
	for _, c := range cases {
		field := fmt.Sprintf(`{"id": 6, "name": "f", "required": false, "type": %s, "initial-default": %s}`, c.typ, c.value)
		table := mustParse(t, testDocument(`{"id": 1, "name": "key", "required": true, "type": "long"}`, field, `"source-id": 1`, `"source-id": 6`))
		f, ok := table.Field(6)
		if !ok || !reflect.DeepEqual(f.InitialDefault, c.want) {
			t.Errorf("%s %s: got %#v, want %#v", c.typ, c.value, f.InitialDefault, c.want)
		}
	}
	for _, c := range [][2]string{
		{`"int"`, `3000000000`}, {`"int"`, `"x"`}, {`"decimal(3, 1)"`, `"123.4"`}, {`"decimal(3, 1)"`, `"1.23"`}, {`"decimal(3, 1)"`, `"1e999999999"`},
		{`"fixed[4]"`, `"00"`}, {`"variant"`, `"x"`}, {`"date"`, `"tomorrow"`}, {`"uuid"`, `7`}, {`"boolean"`, `"maybe"`},
	} {
		field := fmt.Sprintf(`{"id": 6, "name": "f", "required": false, "type": %s, "initial-default": %s}`, c[0], c[1])
		_, err := Parse([]byte(testDocument(`{"id": 1, "name": "key", "required": true, "type": "long"}`, field)), "/t/m.json")
		if errs.CodeOf(err) != errs.Corrupt || !strings.Contains(fmt.Sprint(err), `initial-default of field "f"`) {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	deep := strings.Repeat(`{"type": "list", "element-id": 9, "element-required": true, "element": `, 600) + `"int"` + strings.Repeat("}", 600)
	cases := []struct {
		name string
		text string
		code errs.Code
		says string
	}{
		{"no JSON", "PAR1", errs.Corrupt, "not a table metadata document"},
		{"empty", "", errs.Corrupt, "not a table metadata document"},
		{"another document", `{"a": 1}`, errs.Corrupt, "format-version is missing"},
		{"future version", testDocument(`"format-version": 2`, `"format-version": 4`), errs.Unsupported, "format version 4 is newer than this version of icebergexec, which reads 1 to 3"},
		{"future version of other shape", `{"format-version": 4, "schemas": 7}`, errs.Unsupported, "format version 4"},
		{"version 0", testDocument(`"format-version": 2`, `"format-version": 0`), errs.Corrupt, "format version 0"},
		{"no current schema", testDocument(`"current-schema-id": 1,`, ``), errs.Corrupt, "current-schema-id is missing"},
		{"missing current schema", testDocument(`"current-schema-id": 1`, `"current-schema-id": 7`), errs.Corrupt, "the current schema, id 7, is not among"},
		{"missing default spec", testDocument(`"default-spec-id": 1`, `"default-spec-id": 7`), errs.Corrupt, "the default partition spec, id 7,"},
		{"missing sort order", testDocument(`"default-sort-order-id": 1`, `"default-sort-order-id": 7`), errs.Corrupt, "the default sort order, id 7,"},
		{"missing current snapshot", testDocument(`"current-snapshot-id": 12`, `"current-snapshot-id": 7`), errs.Corrupt, "the current snapshot, id 7,"},
		{"dangling tag", testDocument(`"snapshot-id": 11, "type": "tag"`, `"snapshot-id": 7, "type": "tag"`), errs.Corrupt, `the tag "old" points to snapshot 7`},
		{"two schemas of one id", testDocument(`"schema-id": 1, "id`, `"schema-id": 0, "id`), errs.Corrupt, "two schemas with id 0"},
		{"two fields of one id", testDocument(`"id": 4`, `"id": 1`), errs.Corrupt, `fields "key" and "x" have the same id 1`},
		{"unknown type", testDocument(`"double"`, `"triple"`), errs.Corrupt, `unknown type "triple"`},
		{"deep schema", testDocument(`"double"`, deep), errs.Corrupt, "nested too deeply"},
		{"deep nonsense", strings.Repeat("[", 1<<20), errs.Corrupt, "nested too deeply"},
		{"damaged gzip", "\x1f\x8b\x08nonsense", errs.Corrupt, "damaged gzip"},
		{"array", `[1]`, errs.Corrupt, "the document is an array; table metadata is a JSON object"},
		{"number", `5`, errs.Corrupt, "the document is a number; table metadata is a JSON object"},
		{"version of another type", `{"format-version": "2"}`, errs.Corrupt, "format-version is a string; it must be a whole number"},
		{"refs", `{"format-version": 2, "refs": "main"}`, errs.Corrupt, "refs is a string; it must be an object"},
		{"schemas", `{"format-version": 2, "schemas": true}`, errs.Corrupt, "schemas is a boolean; it must be an array"},
		{"snapshots", `{"format-version": 2, "snapshots": {}}`, errs.Corrupt, "snapshots is an object; it must be an array"},
		{"snapshot", `{"format-version": 2, "snapshots": [{"snapshot-id": "x"}]}`, errs.Corrupt, "snapshots.snapshot-id is a string; it must be a whole number"},
		{"large id", `{"format-version": 2, "last-column-id": 99999999999999999999}`, errs.Corrupt, "last-column-id is the number 99999999999999999999; it must be a whole number of at most 64 bits"},
		{"schema", testDocument(`"schemas": [`, `"schemas": [7, `), errs.Corrupt, "schema: the document is a number; a schema is a JSON object"},
		{"sort direction", testDocument(`"desc"`, `"down"`), errs.Corrupt, `direction "down"`},
	}
	for _, c := range cases {
		_, err := Parse([]byte(c.text), "/t/m.json")
		if errs.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "read table metadata /t/m.json: ") {
			t.Errorf("%s: %v: %v", c.name, errs.CodeOf(err), err)
		}
	}
}

func TestLookupErrors(t *testing.T) {
	table := mustParse(t, testDocument())
	_, err := table.SnapshotByRef("nope")
	if errs.CodeOf(err) != errs.NotFound || !strings.Contains(err.Error(), `no branch or tag "nope"; known are main, old`) {
		t.Error(err)
	}
	_, err = table.Snapshot(99)
	if errs.CodeOf(err) != errs.NotFound || !strings.Contains(err.Error(), "snapshot 99 does not exist; the table has 2 snapshots") {
		t.Error(err)
	}
}

func TestGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(testDocument())); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if table := mustParse(t, b.String()); table.CurrentSchemaID != 1 {
		t.Error("wrong table")
	}
}

func TestNameMapping(t *testing.T) {
	table := mustParse(t, testDocument(`"a": "b"`, `"schema.name-mapping.default": "[{\"field-id\": 1, \"names\": [\"id\", \"key\"]}]"`))
	m, err := table.NameMapping()
	if err != nil || len(m) != 1 || m[0].ID() != 1 || len(m[0].Names) != 2 {
		t.Errorf("%v, %v", m, err)
	}
	table = mustParse(t, testDocument(`"a": "b"`, `"schema.name-mapping.default": "nonsense"`))
	if m, err := table.NameMapping(); m != nil || errs.CodeOf(err) != errs.Corrupt {
		t.Errorf("%v, %v", m, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(testDocument()))
	f.Add([]byte(testDocument(`"double"`, `"geography(srid:4269, karney)"`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Parse(text, "m.json")
		if err == nil && table.CurrentSchema() == nil {
			t.Error("no current schema")
		}
	})
}
