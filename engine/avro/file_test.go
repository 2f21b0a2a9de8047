package avro

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/avro/ocf"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

func TestMain(m *testing.M) { os.Exit(fixtures.Main(m)) }

func openFixture(t *testing.T, name string) *File {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures.Dir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := open(t, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestJavaFiles(t *testing.T) {
	for _, test := range []struct {
		name   string
		schema []string
		rows   []string
	}{
		{"fmt_avro_deletes/data/pos01.avro", []string{"file_path utf8 2147483546", "pos int64 2147483545"}, []string{
			`"/tmp/iceberg-fixtures/fmt_avro_deletes/data/d01.parquet" 3`,
			`"/tmp/iceberg-fixtures/fmt_avro_deletes/data/d02.parquet" 0`,
			`"/tmp/iceberg-fixtures/fmt_avro_deletes/data/d02.parquet" 19`}},
		{"fmt_avro_deletes/data/eq01.avro", []string{"name utf8 3", "id int32 2"}, nil},
		{"fmt_avro/data/d03.avro", []string{"rid int64 1", "id int64 2", "nm utf8 3", "x int64 4"}, nil},
	} {
		f := openFixture(t, test.name)
		var schema []string
		for _, field := range f.Schema().Fields() {
			id, _ := field.Metadata.GetValue(fieldIDKey)
			schema = append(schema, fmt.Sprintf("%s %s %s", field.Name, field.Type, id))
		}
		if !slices.Equal(schema, test.schema) {
			t.Errorf("%s: schema %q", test.name, schema)
		}
		rows, err := readAll(f, allColumns(f), nil, false, nil)
		if err != nil || len(rows) == 0 || test.rows != nil && !slices.Equal(rows, test.rows) {
			t.Errorf("%s: rows %q, %v", test.name, rows, err)
		}
	}
}

const everyType = `{"type":"record","name":"table","fields":[
	{"name":"b","type":"boolean","field-id":1},
	{"name":"i","type":["null","int"],"field-id":2},
	{"name":"l","type":["long","null"],"field-id":3},
	{"name":"f","type":"float","field-id":4},
	{"name":"d","type":["null","double"],"field-id":5},
	{"name":"date","type":["null",{"type":"int","logicalType":"date"}],"field-id":6},
	{"name":"time","type":{"type":"long","logicalType":"time-micros"},"field-id":7},
	{"name":"ts","type":{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":false},"field-id":8},
	{"name":"tz","type":{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true},"field-id":9},
	{"name":"ns","type":{"type":"long","logicalType":"timestamp-nanos","adjust-to-utc":true},"field-id":10},
	{"name":"ms","type":{"type":"long","logicalType":"timestamp-millis"},"field-id":11},
	{"name":"tms","type":{"type":"int","logicalType":"time-millis"},"field-id":12},
	{"name":"s","type":["null","string"],"field-id":13},
	{"name":"bin","type":["null","bytes"],"field-id":14},
	{"name":"fx","type":["null",{"type":"fixed","name":"fixed_3","size":3}],"field-id":15},
	{"name":"u","type":["null",{"type":"fixed","name":"uuid_fixed","size":16,"logicalType":"uuid"}],"field-id":16},
	{"name":"us","type":["null",{"type":"string","logicalType":"uuid"}],"field-id":17},
	{"name":"dec","type":["null",{"type":"fixed","name":"decimal_9_2","size":4,"logicalType":"decimal","precision":9,"scale":2}],"field-id":18},
	{"name":"decb","type":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":3}],"field-id":19},
	{"name":"e","type":{"type":"enum","name":"color","symbols":["RED","GREEN"]},"field-id":20},
	{"name":"n","type":"null","field-id":21},
	{"name":"st","type":["null",{"type":"record","name":"r22","fields":[
		{"name":"a","type":["null","int"],"field-id":23},{"name":"z","type":"string","field-id":24}]}],"field-id":22},
	{"name":"li","type":["null",{"type":"array","items":["null","long"],"element-id":26}],"field-id":25},
	{"name":"mk","type":["null",{"type":"array","logicalType":"map","items":{"type":"record","name":"k28_v29","fields":[
		{"name":"key","type":"int","field-id":28},{"name":"value","type":["null","string"],"field-id":29}]}}],"field-id":27},
	{"name":"ms2","type":["null",{"type":"map","values":["null","int"],"key-id":31,"value-id":32}],"field-id":30},
	{"name":"one","type":["int"],"field-id":33},
	{"name":"ref","type":["null","fixed_3"],"field-id":34}]}`

const everyArrow = `schema:
  fields: 27
    - b: type=bool 1
    - i: type=int32, nullable 2
    - l: type=int64, nullable 3
    - f: type=float32 4
    - d: type=float64, nullable 5
    - date: type=date32, nullable 6
    - time: type=time64[us] 7
    - ts: type=timestamp[us] 8
    - tz: type=timestamp[us, tz=UTC] 9
    - ns: type=timestamp[ns, tz=UTC] 10
    - ms: type=timestamp[ms] 11
    - tms: type=time32[ms] 12
    - s: type=utf8, nullable 13
    - bin: type=binary, nullable 14
    - fx: type=fixed_size_binary[3], nullable 15
    - u: type=fixed_size_binary[16], nullable 16
    - us: type=fixed_size_binary[16], nullable 17
    - dec: type=decimal(9, 2), nullable 18
    - decb: type=decimal(38, 3), nullable 19
    - e: type=utf8 20
    - n: type=null, nullable 21
    - st: type=struct<a: int32 nullable, z: utf8>, nullable 22
    - li: type=list<element: int64, nullable>, nullable 25
    - mk: type=map<int32, utf8, items_nullable>, nullable 27
    - ms2: type=map<utf8, int32, items_nullable>, nullable 30
    - one: type=int32 33
    - ref: type=fixed_size_binary[3], nullable 34`

// encodeEvery writes row i of the type above, by hand, and says how it reads.
func encodeEvery(i int) (bytes []byte, rendered []string) {
	null := i%3 == 1
	var b []byte
	long := func(v int64) { b = binary.AppendVarint(b, v) }
	text := func(s string) { long(int64(len(s))); b = append(b, s...) }
	// optional writes a union of null and a type, with null first or last.
	optional := func(nullFirst bool, value string, write func()) string {
		branch := int64(0)
		if nullFirst != null {
			branch = 1
		}
		long(branch)
		if null {
			return "null"
		}
		write()
		return value
	}
	add := func(s string) { rendered = append(rendered, s) }
	if i%2 == 0 {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	add(fmt.Sprint(i%2 == 0))
	add(optional(true, fmt.Sprint(-i), func() { long(int64(-i)) }))
	add(optional(false, fmt.Sprint(int64(i)<<40), func() { long(int64(i) << 40) }))
	b = append(b, 0, 0, 0xc0, 0x3f) // 1.5
	add("1.5")
	add(optional(true, "-2", func() { b = append(b, 0, 0, 0, 0, 0, 0, 0, 0xc0) }))
	add(optional(true, fmt.Sprint(i-100), func() { long(int64(i - 100)) }))
	for k := range 5 { // time, ts, tz, ns, ms
		long(int64(i*1000+k) * 1e9)
		add(fmt.Sprint(int64(i*1000+k) * 1e9))
	}
	long(int64(i) * 7)
	add(fmt.Sprint(int64(i) * 7))
	s := strings.Repeat("é", i%5)
	add(optional(true, fmt.Sprintf("%q", s), func() { text(s) }))
	add(optional(true, fmt.Sprintf("x%x", s), func() { text(s) }))
	add(optional(true, "x010203", func() { b = append(b, 1, 2, 3) }))
	add(optional(true, "x000102030405060708090a0b0c0d0e0f", func() { b = append(b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) }))
	add(optional(true, "x000102030405060708090a0b0c0d0e0f", func() { text("00010203-0405-0607-0809-0A0B0C0D0E0F") }))
	add(optional(true, "-1.25", func() { b = append(b, 0xff, 0xff, 0xff, 0x83) }))
	add(optional(true, "-0.001", func() { text("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") }))
	long(int64(i % 2))
	add([]string{`"RED"`, `"GREEN"`}[i%2])
	add("null")
	add(optional(true, fmt.Sprintf("{a:%d,z:%q}", i, s), func() { long(1); long(int64(i)); text(s) }))
	add(optional(true, fmt.Sprintf("[%d,null,3]", i), func() {
		long(-2) // a block with its size
		long(int64(2 + len(binary.AppendVarint(nil, int64(i)))))
		long(1)
		long(int64(i))
		long(0)
		long(1) // and one without
		long(1)
		long(3)
		long(0)
	}))
	add(optional(true, `{7="x",8=null}`, func() {
		long(2)
		long(7)
		long(1)
		text("x")
		long(8)
		long(0)
		long(0)
	}))
	add(optional(true, `{"k"=5}`, func() { long(1); text("k"); long(1); long(5); long(0) }))
	long(0)
	long(42)
	add("42")
	add(optional(true, "x040506", func() { b = append(b, 4, 5, 6) }))
	return b, rendered
}

// container puts encoded rows into blocks of some rows each.
func container(schema string, rows [][]byte, blockRows int) []byte {
	sync := []byte("0123456789abcdef")
	text := func(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	b := append([]byte("Obj\x01"), 2)
	b = text(text(b, "avro.schema"), schema)
	b = append(b, 0)
	b = append(b, sync...)
	for block := range slices.Chunk(rows, blockRows) {
		content := slices.Concat(block...)
		b = binary.AppendVarint(b, int64(len(block)))
		b = binary.AppendVarint(b, int64(len(content)))
		b = append(b, content...)
		b = append(b, sync...)
	}
	return b
}

func everyRows(n int) (encoded [][]byte, rendered [][]string) {
	for i := range n {
		e, r := encodeEvery(i)
		encoded, rendered = append(encoded, e), append(rendered, r)
	}
	return encoded, rendered
}

func TestEveryType(t *testing.T) {
	const n = 100
	encoded, rendered := everyRows(n)
	for _, blockRows := range []int{1, 7, n} {
		b := container(everyType, encoded, blockRows)
		for _, batchRows := range []int{1, 3, 10, 0} {
			f, err := open(t, b, batchRows)
			if err != nil {
				t.Fatal(err)
			}
			checkSchema(t, f.Schema(), everyArrow)
			all := allColumns(f)
			for _, ranges := range [][]batch.Range{nil, {{Start: 0, End: n}}, {{Start: 5, End: 6}, {Start: 20, End: 55}, {Start: 99, End: 200}}, {{Start: 150, End: 160}}, {}} {
				for name, columns := range map[string][]batch.Column{"all": all, "odd": {all[1], all[12], all[23]}, "reversed": {all[26], all[0]}} {
					for _, split := range []bool{false, true} {
						for which, keep := range map[string]func(int64) bool{
							"all": nil, "none": func(int64) bool { return false }, "some": func(p int64) bool { return p%3 != 0 },
						} {
							got, err := readAll(f, columns, ranges, split, keep)
							if err != nil {
								t.Fatal(err)
							}
							var want []string
							for p, row := range rendered {
								inside := ranges == nil
								for _, r := range ranges {
									inside = inside || int64(p) >= r.Start && int64(p) < r.End
								}
								if !inside || keep != nil && !keep(int64(p)) {
									continue
								}
								var parts []string
								for _, c := range columns {
									parts = append(parts, row[c.Index])
								}
								want = append(want, strings.Join(parts, " "))
							}
							if !slices.Equal(got, want) {
								t.Fatalf("blocks of %d, batches of %d, ranges %v, %s columns, split %v, rows %s:\n got %q\nwant %q", blockRows, batchRows, ranges, name, split, which, got, want)
							}
						}
					}
				}
			}
		}
	}
}

func checkSchema(t *testing.T, s *arrow.Schema, want string) {
	t.Helper()
	lines := []string{"schema:", fmt.Sprintf("  fields: %d", s.NumFields())}
	for _, f := range s.Fields() {
		id, _ := f.Metadata.GetValue(fieldIDKey)
		nullable := ""
		if f.Nullable {
			nullable = ", nullable"
		}
		lines = append(lines, fmt.Sprintf("    - %s: type=%s%s %s", f.Name, f.Type, nullable, id))
	}
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestPrunedLeaves(t *testing.T) {
	encoded, rendered := everyRows(9)
	f, err := open(t, container(everyType, encoded, 4), 0)
	if err != nil {
		t.Fatal(err)
	}
	st := f.fields[21] // struct<a, z>
	for leaf, cut := range map[int]func(string) string{
		st.firstLeaf:     func(s string) string { return s[:strings.IndexByte(s, ',')] + "}" },
		st.firstLeaf + 1: func(s string) string { return "{" + s[strings.IndexByte(s, ',')+1:] },
	} {
		got, err := readAll(f, []batch.Column{{Index: 21, Leaves: []int{leaf}}}, nil, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rendered {
			want := row[21]
			if want != "null" {
				want = cut(want)
			}
			if got[i] != want {
				t.Errorf("row %d: got %s, want %s", i, got[i], want)
			}
		}
	}
}

func TestCodecs(t *testing.T) {
	const schema = `{"type":"record","name":"r","fields":[{"name":"i","type":"long"},{"name":"s","type":"string"}]}`
	var rows []any
	var want []string
	for i := range 5000 {
		s := strings.Repeat("abc", i%50)
		rows = append(rows, map[string]any{"i": int64(i), "s": s})
		want = append(want, fmt.Sprintf("%d %q", i, s))
	}
	for name, codec := range map[string]ocf.WriterOpt{
		"null": nil, "deflate": ocf.WithCodec(ocf.DeflateCodec(6)), "snappy": ocf.WithCodec(ocf.SnappyCodec()), "zstandard": ocf.WithCodec(ocf.MustZstdCodec(nil, nil)),
	} {
		options := []ocf.WriterOpt{ocf.WithBlockCount(700)}
		if codec != nil {
			options = append(options, codec)
		}
		b := writeFile(t, schema, rows, options...)
		f, err := open(t, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(f.header.metadata["avro.codec"]); got != name && codec != nil {
			t.Fatalf("codec %q", got)
		}
		got, err := readAll(f, allColumns(f), nil, false, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: wrong rows", name)
		}
	}
}

func TestUnsupportedCodec(t *testing.T) {
	b := container(`{"type":"record","name":"r","fields":[]}`, nil, 1)
	b = []byte(strings.Replace(string(b), "Obj\x01\x02", "Obj\x01\x04\x14avro.codec\x0abzip2", 1))
	_, err := open(t, b, 0)
	if err == nil || err.Error() != `read `+testPath+`: its blocks are compressed with "bzip2"; known are null, deflate, snappy and zstandard` {
		t.Error(err)
	}
}

func TestCountOnly(t *testing.T) {
	encoded, _ := everyRows(50)
	f, err := open(t, container(everyType, encoded, 7), 10)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.NewReader(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := int64(0)
	for {
		w, err := r.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil || w.Start != rows {
			t.Fatal(w, err)
		}
		rows = w.End
	}
	if rows != 50 {
		t.Errorf("%d rows", rows)
	}
}
