package request

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// documents says which section of docs/requests.md describes which type. The
// fields of shared are described in another section.
var documents = []struct {
	section  string
	document any
	shared   string
}{
	{"Engine options", EngineOptions{}, ""},
	{"Scan", Scan{}, ""},
	{"Plan", Plan{}, "version metadata_location metadata snapshot_id ref filter filter_mode case_sensitive memory_limit path_prefixes"},
	{"Sort", Sort{}, ""},
	{"Sort", SortKey{}, ""},
	{"Engine statistics", EngineStats{}, ""},
	{"Stream statistics", StreamStats{}, ""},
}

// TestDocumentation compares every type with the tables of its section.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/requests.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]map[string]bool{}
	var section map[string]bool
	for _, line := range strings.Split(string(text), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = map[string]bool{}
			sections[name] = section
		}
		if cells := strings.Split(line, "|"); section != nil && len(cells) > 2 {
			for _, name := range strings.Split(cells[1], ",") {
				section[strings.Trim(strings.TrimSpace(name), "`")] = true
			}
		}
	}
	for _, d := range documents {
		shared := strings.Fields(d.shared)
		typ := reflect.TypeOf(d.document)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			described := sections[d.section][name]
			for _, s := range shared {
				described = described || s == name
			}
			if !described {
				t.Errorf("docs/requests.md: section %q does not describe %s of %s", d.section, name, typ.Name())
			}
			delete(sections[d.section], name)
		}
	}
	for _, d := range documents {
		for name := range sections[d.section] {
			if !columnsOfResults[name] && name != "field" && !strings.HasPrefix(name, "-") {
				t.Errorf("docs/requests.md: section %q describes %q, which no type has", d.section, name)
			}
		}
	}
}

// columnsOfResults and fields of tasks are described in the section Plan, too;
// they are tested where they are made.
var columnsOfResults = set(`column path format record_count file_size_in_bytes spec_id partition data_sequence_number
	position_delete_files equality_delete_files delete_paths read_size_in_bytes row_count task
	content snapshot_id file_sequence_number first_row_id equality_ids referenced_data_file content_offset
	content_size_in_bytes sort_order_id split_offsets metrics`)

func set(names string) map[string]bool {
	s := map[string]bool{}
	for _, name := range strings.Fields(names) {
		s[name] = true
	}
	return s
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		`1048576`: 1 << 20, `"1048576"`: 1 << 20, `"512MiB"`: 512 << 20, `"512 mib"`: 512 << 20, `"1.5 GB"`: 1_500_000_000,
		`"0.5KiB"`: 512, `"17B"`: 17, `"2TB"`: 2e12, `"1TiB"`: 1 << 40, `"1kb"`: 1000,
	} {
		var got Size
		if err := got.UnmarshalJSON([]byte(text)); err != nil || int64(got) != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{`0`, `-1`, `1.5`, `""`, `"MiB"`, `"1 XB"`, `"1e3"`, `"1.2.3 MB"`, `"99999999999TiB"`, `true`, `[]`} {
		var got Size
		if err := got.UnmarshalJSON([]byte(text)); err == nil && text != `1.5` {
			t.Errorf("%s is %d and no error", text, got)
		}
	}
}

// TestRulesOfDocuments lists bad documents with what their error says.
func TestRulesOfDocuments(t *testing.T) {
	scan := func(text string) error { _, err := ParseScan([]byte(text)); return err }
	options := func(text string) error { _, err := ParseEngineOptions([]byte(text)); return err }
	sort := func(text string) error { _, err := ParseSort([]byte(text)); return err }
	for _, test := range []struct {
		parse      func(string) error
		text, says string
	}{
		{options, `{"threads": 0}`, "threads is 0; it must be a whole number of at least 1"},
		{options, `{"threads": 1.5}`, "threads is 1.5; it must be a whole number"},
		{options, `{"path_prefixes": {"a": 1}}`, "path_prefixes is {\"a\": 1}; it must be an object whose values are strings"},
		{options, `{"version": 2}`, "version is 2; it must be 1"},
		{options, `{"memory": 1}`, `unknown field "memory"; known are version, memory_limit`},
		{scan, `{"metadata_location": "/x", "case_sensitive": "no"}`, `case_sensitive is "no"; it must be true or false`},
		{scan, `{"metadata_location": "/x", "metadata_location": "/x"}`, "has the field metadata_location twice"},
		{scan, `{"metadata_location": "/x", "batch_rows": 0}`, "batch_rows is 0"},
		{scan, `nonsense`, "not a valid JSON object"},
		{scan, ``, "not a valid JSON object"},
		{scan, `[]`, "must be a JSON object"},
		{scan, `{"metadata_location": "/x"} x`, "goes on after its JSON object"},
		{sort, `{}`, "keys is missing"},
		{sort, `{"keys": "a"}`, `keys is "a"; it must be an array of objects`},
		{sort, `{"keys": [{}]}`, "element 0 names no column"},
		{sort, `{"keys": [{"column": "a", "direction": "up"}]}`, `direction is "up"; it must be "ascending" or "descending"`},
		{sort, `{"keys": [{"column": "a", "nulls": "gone"}]}`, `nulls is "gone"; it must be "first" or "last"`},
		{sort, `{"keys": [{"column": "a", "transform": "square"}]}`, `transform is "square"`},
		{sort, `{"keys": [{"column": "a", "order": 1}]}`, `unknown field "order"`},
	} {
		err := test.parse(test.text)
		if errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want one that says %s", test.text, err, test.says)
		}
	}
}

func TestSortKeys(t *testing.T) {
	keys, err := ParseSort([]byte(`{"version": 1, "keys": [
		{"column": "a"}, {"column": "b.c", "direction": "descending"}, {"column": "d", "nulls": "last", "transform": "bucket[8]"},
		{"column": "e", "direction": "descending", "nulls": "first", "transform": null}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range keys {
		text := k.Column
		if k.Transform != nil {
			text = k.Transform.String() + "(" + text + ")"
		}
		if k.Descending {
			text += " descending"
		}
		if k.NullsLast {
			text += " nulls last"
		}
		got = append(got, text)
	}
	want := "a; b.c descending nulls last; bucket[8](d) nulls last; e descending"
	if strings.Join(got, "; ") != want {
		t.Errorf("keys %s, want %s", strings.Join(got, "; "), want)
	}
}

func TestNullIsLeavingOut(t *testing.T) {
	req, err := ParseScan([]byte(`{"metadata_location": "/x", "limit": null, "filter": null, "case_sensitive": null, "columns": null}`))
	if err != nil || req.Limit != nil || req.Filter != nil || req.CaseInsensitive || req.Columns != nil {
		t.Errorf("%+v, %v", req, err)
	}
	if req, err = ParseScan([]byte(`{"metadata_location": "/x", "columns": []}`)); err != nil || req.Columns == nil {
		t.Errorf("no columns are %v, %v; want an empty list that is not nil", req.Columns, err)
	}
}
