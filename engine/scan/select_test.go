package scan_test

import (
	"strings"
	"testing"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/project"
	"github.com/icebergexec/icebergexec/engine/scan"
)

const nestedSchema = `{"id":1,"name":"id","required":true,"type":"long"},
	{"id":2,"name":"s","required":false,"type":{"type":"struct","fields":[
		{"id":3,"name":"a","required":false,"type":"int"},
		{"id":4,"name":"t","required":false,"type":{"type":"struct","fields":[
			{"id":5,"name":"x","required":false,"type":"int"},{"id":6,"name":"y","required":false,"type":"string"}]}}]}},
	{"id":7,"name":"l","required":false,"type":{"type":"list","element-id":8,"element-required":false,"element":{"type":"struct","fields":[
		{"id":9,"name":"p","required":false,"type":"int"},{"id":10,"name":"q","required":false,"type":"int"}]}}},
	{"id":11,"name":"m","required":false,"type":{"type":"map","key-id":12,"key":"string","value-id":13,"value-required":false,"value":{"type":"struct","fields":[
		{"id":14,"name":"u","required":false,"type":"int"},{"id":15,"name":"v","required":false,"type":"int"}]}}},
	{"id":16,"name":"Case","required":false,"type":"int"},{"id":17,"name":"cAse","required":false,"type":"int"},{"id":18,"name":"a.b","required":false,"type":"int"}`

func TestSelect(t *testing.T) {
	b := newBench(t, mem.Unlimited, nestedSchema)
	for _, test := range []struct {
		columns string // comma-separated
		want    string
	}{
		{"id", "id: int64"},
		{"s,id", "s: struct<a: int32, t: struct<x: int32, y: utf8>>; id: int64"},
		{"s.t.y", "s: struct<t: struct<y: utf8>>"},
		{"s.t.y,id,s.a", "s: struct<a: int32, t: struct<y: utf8>>; id: int64"},
		{"s.t", "s: struct<t: struct<x: int32, y: utf8>>"},
		{"s.t.x,s.t", "s: struct<t: struct<x: int32, y: utf8>>"},
		{"l.element.q", "l: list<element: struct<q: int32>>"},
		{"l.q", "l: list<element: struct<q: int32>>"},
		{"m.value.v", "m: map<utf8, struct<v: int32>>"},
		{"m.key", "m: map<utf8, struct<u: int32, v: int32>>"},
		{"a.b", "a.b: int32"},
		{"_file,id,_pos", "_file: utf8; id: int64; _pos: int64"},
		{"_row_id", "_row_id: int64"},
	} {
		selection, err := scan.Select(b.table, b.table.CurrentSchema(), strings.Split(test.columns, ","), true, project.ArrowOptions{})
		if err != nil {
			t.Errorf("%s: %v", test.columns, err)
			continue
		}
		var got []string
		for _, f := range selection.Schema.Fields() {
			got = append(got, f.Name+": "+f.Type.String())
		}
		text := strings.ReplaceAll(strings.ReplaceAll(strings.Join(got, "; "), ", items_nullable", ""), ", nullable", "")
		text = strings.ReplaceAll(text, " nullable", "")
		if text != test.want {
			t.Errorf("%s: got %s, want %s", test.columns, text, test.want)
		}
	}
	for columns, part := range map[string]string{
		"nope": "there is no column \"nope\"", "s.nope": "there is no column", "id,id": "selected twice", "Id": "there is no column",
	} {
		_, err := scan.Select(b.table, b.table.CurrentSchema(), strings.Split(columns, ","), true, project.ArrowOptions{})
		if errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v", columns, err)
		}
	}
	for columns, part := range map[string]string{"ID,S.T.Y,_FILE": "", "Case": "", "case": `column "case" fits several columns`} {
		_, err := scan.Select(b.table, b.table.CurrentSchema(), strings.Split(columns, ","), false, project.ArrowOptions{})
		if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%s without case: got %v", columns, err)
		}
	}
}
