package plan

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
)

// indexTable has an unpartitioned spec 0, spec 1 by region, spec 2 in which
// region was dropped (so it is unpartitioned), and spec 3 by region again.
func indexTable(tb testing.TB) *meta.Table {
	tb.Helper()
	table, err := meta.Parse([]byte(`{"format-version": 3, "location": "/t", "current-schema-id": 0, "schemas": [
		{"type": "struct", "schema-id": 0, "fields": [
			{"id": 1, "name": "id", "required": false, "type": "long"},
			{"id": 2, "name": "region", "required": false, "type": "string"},
			{"id": 3, "name": "x", "required": false, "type": "double"},
			{"id": 4, "name": "s", "required": false, "type": {"type": "struct", "fields": [{"id": 5, "name": "k", "required": false, "type": "long"}]}}]}],
		"partition-specs": [
			{"spec-id": 0, "fields": []},
			{"spec-id": 1, "fields": [{"source-id": 2, "field-id": 1000, "name": "region", "transform": "identity"}]},
			{"spec-id": 2, "fields": [{"source-id": 2, "field-id": 1000, "name": "region", "transform": "void"}]},
			{"spec-id": 3, "fields": [{"source-id": 2, "field-id": 1001, "name": "r", "transform": "identity"}]}],
		"default-spec-id": 1}`), "")
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

type option func(*File)

func spec(id int, partition ...any) option {
	return func(f *File) {
		f.SpecID = id
		f.Partition = nil
		for _, v := range partition {
			if v == nil {
				f.Partition = append(f.Partition, nil)
			} else {
				f.Partition = append(f.Partition, iceberg.StringLiteral(v.(string)))
			}
		}
	}
}

func referencing(path string) option { return func(f *File) { f.ReferencedDataFile = &path } }

func paths(lower, upper string) option {
	return func(f *File) {
		f.Metrics = &Metrics{LowerBounds: map[int][]byte{filePathID: []byte(lower)}, UpperBounds: map[int][]byte{filePathID: []byte(upper)}}
	}
}

// longs gives column id the bounds and counts of long values.
func longs(id int, lower, upper int64, nulls, values int64) option {
	return func(f *File) {
		if f.Metrics == nil {
			f.Metrics = &Metrics{ValueCounts: map[int]int64{}, NullCounts: map[int]int64{}, LowerBounds: map[int][]byte{}, UpperBounds: map[int][]byte{}}
		}
		f.Metrics.ValueCounts[id], f.Metrics.NullCounts[id] = values, nulls
		if nulls < values {
			f.Metrics.LowerBounds[id] = binary.LittleEndian.AppendUint64(nil, uint64(lower))
			f.Metrics.UpperBounds[id] = binary.LittleEndian.AppendUint64(nil, uint64(upper))
		}
	}
}

func file(content Content, path string, sequence int64, options ...option) *File {
	f := &File{Content: content, Path: path, Format: FormatParquet, RecordCount: 1, DataSequence: sequence, FileSequence: sequence}
	for _, o := range options {
		o(f)
	}
	return f
}

func dataFile(path string, sequence int64, options ...option) *File {
	return file(Data, path, sequence, options...)
}

func equality(path string, sequence int64, ids []int, options ...option) *File {
	f := file(EqualityDeletes, path, sequence, options...)
	f.EqualityIDs = ids
	return f
}

func positions(path string, sequence int64, options ...option) *File {
	return file(PositionDeletes, path, sequence, options...)
}

func vector(path string, offset, sequence int64, data string, options ...option) *File {
	f := file(PositionDeletes, path, sequence, append([]option{referencing(data)}, options...)...)
	size := int64(40)
	f.Format, f.ContentOffset, f.ContentSize = FormatPuffin, &offset, &size
	return f
}

func buildIndex(tb testing.TB, table *meta.Table, deletes ...*File) (*deleteIndex, error) {
	pool := mem.NewPool("test", 64<<20)
	held := pool.Reserve("delete index")
	tb.Cleanup(held.Free)
	x := newDeleteIndex(table, held)
	for _, f := range deletes {
		if err := x.add(f); err != nil {
			return nil, err
		}
	}
	x.build()
	return x, nil
}

func (x *deleteIndex) findAll(data *File) ([]*File, int64, error) {
	return x.find(data, x.scope(data))
}

func names(files []*File) string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return strings.Join(out, " ")
}

// TestIndexRules has one row for each rule of scope, sequence and pruning.
func TestIndexRules(t *testing.T) {
	id := []int{1}
	eu, us, null := spec(1, "eu"), spec(1, "us"), spec(1, nil)
	cases := []struct {
		name    string
		deletes []*File
		data    *File
		want    string
	}{
		// Sequence numbers.
		{"equality deletes delete older data only", []*File{equality("e1", 1, id), equality("e2", 2, id), equality("e3", 3, id)}, dataFile("f", 2), "e3"},
		{"position deletes also delete data of their own commit", []*File{positions("p1", 1), positions("p2", 2), positions("p3", 3)}, dataFile("f", 2), "p2 p3"},
		{"so do deletion vectors", []*File{vector("v", 4, 2, "f")}, dataFile("f", 2), "v"},
		{"a deletion vector older than the file", []*File{vector("v", 4, 1, "f")}, dataFile("f", 2), ""},
		{"data of version 1 has number 0", []*File{equality("e1", 1, id), positions("p0", 0)}, dataFile("f", 0), "p0 e1"},
		{"the order is that of sequence numbers", []*File{equality("e5", 5, id), positions("p4", 4), equality("e3", 3, []int{3}), positions("p9", 9, referencing("f"))}, dataFile("f", 1), "e3 p4 e5 p9"},
		// Partition scope.
		{"same partition", []*File{equality("eu", 2, id, eu), equality("us", 2, id, us)}, dataFile("f", 1, eu), "eu"},
		{"null partition", []*File{equality("eu", 2, id, eu), equality("null", 2, id, null)}, dataFile("f", 1, null), "null"},
		{"null is not the empty string", []*File{equality("null", 2, id, null)}, dataFile("f", 1, spec(1, "")), ""},
		{"same partition of another spec", []*File{equality("e", 2, id, eu), positions("p", 2, eu)}, dataFile("f", 1, spec(3, "eu")), ""},
		{"partitioned deletes do not apply to unpartitioned data", []*File{equality("e", 2, id, eu)}, dataFile("f", 1), ""},
		{"unpartitioned equality deletes are global", []*File{equality("e", 2, id)}, dataFile("f", 1, eu), "e"},
		{"and so are those of a spec of void fields", []*File{equality("e", 2, id, spec(2, nil))}, dataFile("f", 1, eu), "e"},
		{"unpartitioned position deletes are not", []*File{positions("p", 2)}, dataFile("f", 1, eu), ""},
		{"position deletes of the same partition", []*File{positions("eu", 2, eu), positions("us", 2, us)}, dataFile("f", 1, eu), "eu"},
		{"a referenced file in another partition", []*File{positions("p", 2, us, referencing("f"))}, dataFile("f", 1, eu), ""},
		// Paths.
		{"referenced data file", []*File{positions("p", 2, referencing("f")), positions("q", 2, referencing("g"))}, dataFile("f", 1), "p"},
		{"paths compare byte for byte", []*File{positions("p", 2, referencing("file:/d/f"))}, dataFile("/d/f", 1), ""},
		{"equal bounds of file_path", []*File{positions("p", 2, paths("/d/f1", "/d/f1")), positions("q", 2, paths("/d/f2", "/d/f2"))}, dataFile("/d/f1", 1), "p"},
		{"a range of paths", []*File{positions("p", 2, paths("/d/f1", "/d/f3")), positions("q", 2, paths("/d/f3", "/d/f4"))}, dataFile("/d/f2", 1), "p"},
		{"equal bounds that were cut short", []*File{positions("p", 2, paths("/d/f", "/d/f"))}, dataFile("/d/f1", 1), "p"},
		{"an upper bound that was cut short", []*File{positions("p", 2, paths("/d/a", "/d/f"))}, dataFile("/d/f1", 1), "p"},
		{"no bounds", []*File{positions("p", 2)}, dataFile("/d/f1", 1), "p"},
		// Deletion vectors.
		{"a vector replaces position deletes of its file", []*File{positions("p", 2, referencing("f")), positions("q", 2), vector("v", 4, 3, "f")}, dataFile("f", 1), "v"},
		{"but not those of other files", []*File{positions("q", 2), vector("v", 4, 3, "f")}, dataFile("g", 1), "q"},
		{"and no equality deletes", []*File{equality("e", 2, id), vector("v", 4, 3, "f")}, dataFile("f", 1), "e v"},
		{"two vectors in one file", []*File{vector("v", 4, 2, "f"), vector("v", 44, 2, "g")}, dataFile("g", 1), "v"},
		// Key ranges.
		{"apart", []*File{equality("e", 2, id, longs(1, 10, 20, 0, 5))}, dataFile("f", 1, longs(1, 21, 30, 0, 5)), ""},
		{"touching", []*File{equality("e", 2, id, longs(1, 10, 20, 0, 5))}, dataFile("f", 1, longs(1, 20, 30, 0, 5)), "e"},
		{"negative", []*File{equality("e", 2, id, longs(1, -20, -10, 0, 5))}, dataFile("f", 1, longs(1, -5, 5, 0, 5)), ""},
		{"nulls on both sides", []*File{equality("e", 2, id, longs(1, 10, 20, 1, 5))}, dataFile("f", 1, longs(1, 21, 30, 1, 5)), "e"},
		{"nulls on one side", []*File{equality("e", 2, id, longs(1, 10, 20, 1, 5))}, dataFile("f", 1, longs(1, 21, 30, 0, 5)), ""},
		{"only nulls deleted, none there", []*File{equality("e", 2, id, longs(1, 0, 0, 5, 5))}, dataFile("f", 1, longs(1, 21, 30, 0, 5)), ""},
		{"only nulls there, none deleted", []*File{equality("e", 2, id, longs(1, 21, 30, 0, 5))}, dataFile("f", 1, longs(1, 0, 0, 5, 5)), ""},
		{"only nulls on both sides", []*File{equality("e", 2, id, longs(1, 0, 0, 5, 5))}, dataFile("f", 1, longs(1, 0, 0, 5, 5)), "e"},
		{"no metrics of the data", []*File{equality("e", 2, id, longs(1, 10, 20, 0, 5))}, dataFile("f", 1), "e"},
		{"no metrics of the deletes", []*File{equality("e", 2, id)}, dataFile("f", 1, longs(1, 10, 20, 0, 5)), "e"},
		{"second column apart", []*File{equality("e", 2, []int{5, 1}, longs(1, 1, 9, 0, 5), longs(5, 1, 9, 0, 5))}, dataFile("f", 1, longs(1, 10, 19, 0, 5), longs(5, 1, 9, 0, 5)), ""},
		{"null counts inside structs prove nothing", []*File{equality("e", 2, []int{5}, longs(5, 1, 2, 0, 5))}, dataFile("f", 1, longs(5, 0, 0, 5, 5)), "e"},
		{"a column that no schema has", []*File{equality("e", 2, []int{77}, longs(77, 1, 2, 0, 5))}, dataFile("f", 1, longs(77, 3, 4, 0, 5)), "e"},
	}
	table := indexTable(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x, err := buildIndex(t, table, c.deletes...)
			if err != nil {
				t.Fatal(err)
			}
			found, _, err := x.findAll(c.data)
			if got := names(found); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestIndexErrors(t *testing.T) {
	table := indexTable(t)
	noReference := vector("v", 4, 2, "f")
	noReference.ReferencedDataFile = nil
	noOffset := vector("v", 4, 2, "f")
	noOffset.ContentOffset = nil
	cases := []struct {
		name    string
		deletes []*File
		says    string
	}{
		{"two vectors for one file", []*File{vector("v1", 4, 2, "f"), vector("v2", 4, 3, "f")}, "the data file f has two deletion vectors, in v1 and v2"},
		{"vector without data file", []*File{noReference}, "the deletion vector in v does not name its data file"},
		{"vector without offset", []*File{noOffset}, "the deletion vector in v for f has no offset or size"},
		{"equality deletes without ids", []*File{equality("e", 2, nil)}, "the equality-delete file e has no equality ids"},
	}
	for _, c := range cases {
		_, err := buildIndex(t, table, c.deletes...)
		if errs.CodeOf(err) != errs.Corrupt || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	x, err := buildIndex(t, table, vector("v", 4, 2, "f", spec(1, "us")))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := x.findAll(dataFile("f", 1, spec(1, "eu"))); errs.CodeOf(err) != errs.Corrupt || !strings.Contains(err.Error(), "another partition") {
		t.Error(err)
	}
}

func TestIndexMemoryLimit(t *testing.T) {
	pool := mem.NewPool("test", 10<<10)
	held := pool.Reserve("delete index")
	defer held.Free()
	x := newDeleteIndex(indexTable(t), held)
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = x.add(positions(fmt.Sprint("p", i), 2, referencing(fmt.Sprint("f", i))))
	}
	if errs.CodeOf(err) != errs.MemoryLimit {
		t.Error(err)
	}
}

// TestIndexGrowth: each of many file-scoped position deletes is found for its
// data file only, by reference or by bounds, and equality deletes in ranges of
// keys for the data of the range only; in little memory.
func TestIndexGrowth(t *testing.T) {
	const files = 100_000
	table := indexTable(t)
	path := func(i int) string { return fmt.Sprintf("s3://warehouse/t/data/00000-%d-0b3c-%08d.parquet", i%100, i) }
	for _, c := range []struct {
		name    string
		n, each int // delete files, and those found for a data file
		limit   int64
		delete  func(i int) *File
	}{
		{"referenced", files, 1, 40 << 20, func(i int) *File { return positions(path(i)+".pos", 2, referencing(path(i))) }},
		{"bounds", files, 1, 80 << 20, func(i int) *File { return positions(path(i)+".pos", 2, paths(path(i), path(i))) }},
		{"keys", files / 10, files / 1000, 10 << 20, func(i int) *File {
			from := int64(i % 100 * 1000)
			return equality(path(i)+".eq", 2, []int{1}, longs(1, from, from+999, 0, 10))
		}},
	} {
		pool := mem.NewPool("test", c.limit)
		held := pool.Reserve("delete index")
		x := newDeleteIndex(table, held)
		for i := range c.n {
			if err := x.add(c.delete(i)); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		x.build()
		for i := range c.n {
			from := int64(i % 100 * 1000)
			found, _, err := x.findAll(dataFile(path(i), 1, longs(1, from+10, from+20, 0, 10)))
			if err != nil || len(found) != c.each {
				t.Fatalf("%s: data file %d has %d delete files, %v", c.name, i, len(found), err)
			}
		}
		held.Free()
	}
}
