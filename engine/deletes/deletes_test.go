package deletes

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
)

// The tests work on tables that exist in memory only: a schema history, specs,
// and files that are JSON rows. bench is the table with its files.
type bench struct {
	t     testing.TB
	alloc *memory.CheckedAllocator
	pool  *mem.Pool

	schemas []*iceberg.Schema // oldest first; the last is current
	specs   map[int]*iceberg.PartitionSpec
	mapping iceberg.NameMapping

	files   map[string]*memoryFile
	blobs   map[string][]byte
	window  int // rows of a window
	workers int
}

// memoryFile is the content of a data or delete file.
type memoryFile struct {
	schema *arrow.Schema
	rows   string // JSON
	opened atomic.Int64
}

func newBench(t testing.TB, fields ...iceberg.NestedField) *bench {
	enginetest.NoLeaks(t)
	b := &bench{
		t: t, alloc: memory.NewCheckedAllocator(memory.DefaultAllocator), pool: mem.NewPool("scan", 64<<20),
		schemas: []*iceberg.Schema{iceberg.NewSchema(0, fields...)},
		specs:   map[int]*iceberg.PartitionSpec{0: iceberg.UnpartitionedSpec},
		files:   map[string]*memoryFile{}, blobs: map[string][]byte{}, window: 3, workers: 2,
	}
	t.Cleanup(func() {
		b.alloc.AssertSize(t, 0)
		if err := b.pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) evolve(fields ...iceberg.NestedField) {
	b.schemas = append(b.schemas, iceberg.NewSchema(len(b.schemas), fields...))
}

func (b *bench) CurrentSchema() *iceberg.Schema { return b.schemas[len(b.schemas)-1] }

func (b *bench) Field(id int) (iceberg.NestedField, bool) {
	for i := len(b.schemas) - 1; i >= 0; i-- {
		if f, ok := b.schemas[i].FindFieldByID(id); ok {
			return f, true
		}
	}
	return iceberg.NestedField{}, false
}

func (b *bench) SpecByID(id int) (*iceberg.PartitionSpec, bool) {
	spec, ok := b.specs[id]
	return spec, ok
}

func (b *bench) NameMapping() (iceberg.NameMapping, error) { return b.mapping, nil }

// column is a column of a file with its field id.
func column(id int, name string, t arrow.DataType, children ...arrow.Field) arrow.Field {
	if len(children) > 0 {
		t = arrow.StructOf(children...)
	}
	f := arrow.Field{Name: name, Type: t, Nullable: true}
	if id > 0 {
		f.Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(id)})
	}
	return f
}

func (b *bench) write(path, rows string, columns ...arrow.Field) *memoryFile {
	f := &memoryFile{schema: arrow.NewSchema(columns, nil), rows: rows}
	b.files[path] = f
	return f
}

func (b *bench) open(_ context.Context, f *plan.File) (DeleteFile, error) {
	file := b.files[f.Path]
	if file == nil {
		return nil, errs.At(errs.NotFound, "open", f.Path, "no such file")
	}
	file.opened.Add(1)
	return &openMemoryFile{b: b, file: file}, nil
}

type openMemoryFile struct {
	b    *bench
	file *memoryFile
}

func (f *openMemoryFile) Schema() *arrow.Schema { return f.file.schema }
func (f *openMemoryFile) Close() error          { return nil }

func (f *openMemoryFile) NewReader(_ context.Context, columns []batch.Column, _ []batch.Range) (batch.FileReader, error) {
	record, _, err := array.RecordFromJSON(f.b.alloc, f.file.schema, strings.NewReader(f.file.rows))
	if err != nil {
		return nil, err
	}
	return &memoryReader{record: record, columns: columns, size: int64(f.b.window)}, nil
}

type memoryReader struct {
	record  arrow.RecordBatch
	columns []batch.Column
	window  batch.Range
	size    int64
}

func (r *memoryReader) Schema() *arrow.Schema { return nil }

func (r *memoryReader) Next(context.Context) (batch.Range, error) {
	start := r.window.End
	if start == r.record.NumRows() {
		return batch.Range{}, io.EOF
	}
	r.window = batch.Range{Start: start, End: min(start+r.size, r.record.NumRows())}
	return r.window, nil
}

// Read returns whole columns: the tests' structs have only the fields that are read.
func (r *memoryReader) Read(_ context.Context, columns []int, _ *batch.Mask) ([]arrow.Array, error) {
	var out []arrow.Array
	for _, c := range columns {
		out = append(out, array.NewSlice(r.record.Column(r.columns[c].Index), r.window.Start, r.window.End))
	}
	return out, nil
}

func (r *memoryReader) Close() error {
	if r.record != nil {
		r.record.Release()
		r.record = nil
	}
	return nil
}

func (b *bench) resolver() *Resolver {
	return NewResolver(Config{FS: blobFS{b.blobs}, Pool: b.pool, Alloc: b.alloc, Table: b, Open: b.open, Workers: b.workers})
}

// kept is the rows, by number, of a task's data file that are not deleted.
// keys are its leaves by field id.
func (b *bench) kept(r *Resolver, t *plan.Task, n int, keys map[int]arrow.Array) ([]int, error) {
	set, err := r.ForTask(context.Background(), t)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	kept := []int{}
	for start := 0; start < n; start += b.window {
		end := min(start+b.window, n)
		keep := batch.NewMask(end-start, true)
		var slices []arrow.Array
		err := set.Apply(context.Background(), batch.Range{Start: int64(start), End: int64(end)}, func(id int) (arrow.Array, error) {
			if keys[id] == nil {
				return nil, fmt.Errorf("the set asks for column %d", id)
			}
			slice := array.NewSlice(keys[id], int64(start), int64(end))
			slices = append(slices, slice)
			return slice, nil
		}, keep)
		releaseAll(slices)
		if err != nil {
			return nil, err
		}
		for i := range keep.Len {
			if keep.Get(i) {
				kept = append(kept, start+i)
			}
		}
	}
	return kept, nil
}

// values is an array of JSON values.
func (b *bench) values(t arrow.DataType, json string) arrow.Array {
	b.t.Helper()
	a, _, err := array.FromJSON(b.alloc, t, strings.NewReader(json))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(a.Release)
	return a
}

type blobFS struct{ blobs map[string][]byte }

type blobFile struct{ *strings.Reader }

func (blobFile) Close() error { return nil }

func (fs blobFS) Open(_ context.Context, location string) (fileio.File, error) {
	blob, ok := fs.blobs[location]
	if !ok {
		return nil, errs.At(errs.NotFound, "open", location, "no such file")
	}
	return blobFile{strings.NewReader(string(blob))}, nil
}
func (blobFS) Create(context.Context, string) (fileio.Writer, error) { panic("not used") }
func (blobFS) Remove(context.Context, string) error                  { panic("not used") }

func dataFile(sequence int64) *plan.File {
	return &plan.File{Path: "F", Format: plan.FormatParquet, DataSequence: sequence}
}

func equality(path string, sequence int64, ids ...int) *plan.File {
	return &plan.File{Content: plan.EqualityDeletes, Format: plan.FormatParquet, Path: path, DataSequence: sequence, EqualityIDs: ids}
}

var (
	i64, i32, str = arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String
	long          = iceberg.PrimitiveTypes.Int64
	text          = iceberg.PrimitiveTypes.String
)

func field(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

// Each case is one data file @1, given by its key columns, and delete files @2.
func TestEqualityDeletes(t *testing.T) {
	type deleteFile struct {
		ids     []int
		columns []arrow.Field
		rows    string
	}
	id, status := column(1, "id", i64), column(2, "status", str)
	a, bb := column(3, "a", i64), column(4, "b", i64)
	idStatus := []iceberg.NestedField{field(1, "id", long), field(2, "status", text)}
	pair := []iceberg.NestedField{field(3, "a", long), field(4, "b", long)}
	x := []iceberg.NestedField{field(5, "x", iceberg.PrimitiveTypes.Float64)}
	nested := []iceberg.NestedField{field(7, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{field(8, "k", long)}})}
	statuses := map[int]string{1: `[1,2,3]`, 2: `["ACTIVE","INACTIVE",null]`}
	pairs := map[int]string{3: `[1,1,null]`, 4: `[null,2,null]`}
	sets := map[int]string{1: `[1,2,3,null,5]`, 2: `["a","b","c","d",null]`}
	for _, c := range []struct {
		name    string
		fields  []iceberg.NestedField
		data    map[int]string
		deletes []deleteFile
		kept    string
	}{
		{"a value does not match null", idStatus, statuses, []deleteFile{{[]int{2}, []arrow.Field{status}, `[{"status":"INACTIVE"}]`}}, "[0 2]"},
		{"null matches null only", idStatus, statuses, []deleteFile{{[]int{2}, []arrow.Field{status}, `[{"status":null}]`}}, "[0 1]"},
		{"value and null", idStatus, statuses, []deleteFile{
			{[]int{2}, []arrow.Field{status}, `[{"status":"INACTIVE"}]`}, {[]int{2}, []arrow.Field{status}, `[{"status":null}]`}}, "[0]"},
		{"a column that old files lack", idStatus, map[int]string{2: `[null,null]`}, []deleteFile{{[]int{2}, []arrow.Field{status}, `[{"status":"INACTIVE"}]`}}, "[0 1]"},
		{"null in a column that old files lack", idStatus, map[int]string{2: `[null,null]`}, []deleteFile{{[]int{2}, []arrow.Field{status}, `[{"status":null}]`}}, "[]"},
		{"null in one of two keys", pair, pairs, []deleteFile{{[]int{3, 4}, []arrow.Field{a, bb}, `[{"a":1,"b":null}]`}}, "[1 2]"},
		{"all keys null", pair, pairs, []deleteFile{{[]int{3, 4}, []arrow.Field{a, bb}, `[{"a":null,"b":null}]`}}, "[0 1]"},
		{"several sets of ids", idStatus, sets, []deleteFile{
			{[]int{1}, []arrow.Field{id}, `[{"id":1}]`}, {[]int{1}, []arrow.Field{id}, `[{"id":null}]`},
			{[]int{2}, []arrow.Field{status}, `[{"status":null}]`}, {[]int{1, 2}, []arrow.Field{id, status}, `[{"id":2,"status":"b"}]`}}, "[2]"},
		{"sets of ids are not merged", idStatus, sets, []deleteFile{{[]int{1, 2}, []arrow.Field{id, status}, `[{"id":2,"status":"z"}]`}}, "[0 1 2 3 4]"},
		{"order of ids and columns", idStatus, sets, []deleteFile{{[]int{2, 1}, []arrow.Field{id, status}, `[{"id":2,"status":"b"}]`}}, "[0 2 3 4]"},
		{"extra columns are ignored", idStatus, sets, []deleteFile{{[]int{1}, []arrow.Field{status, id}, `[{"id":2,"status":"wrong"}]`}}, "[0 2 3 4]"},
		{"other names in the delete file", idStatus, sets, []deleteFile{{[]int{1}, []arrow.Field{column(2, "id", str), column(1, "old_id", i64)}, `[{"old_id":2,"id":"1"}]`}}, "[0 2 3 4]"},
		{"narrower in the delete file", idStatus, map[int]string{1: `[null,0,1,4294967296]`}, []deleteFile{{[]int{1}, []arrow.Field{column(1, "id", i32)}, `[{"id":null}]`}}, "[1 2 3]"},
		{"a repeated key", idStatus, sets, []deleteFile{{[]int{1}, []arrow.Field{id}, `[{"id":2},{"id":2},{"id":3},{"id":2}]`}}, "[0 3 4]"},
		{"no rows", idStatus, nil, []deleteFile{{[]int{1}, []arrow.Field{id}, `[]`}}, "[0 1]"},
		{"signed zeros", x, map[int]string{5: `[-0.0,0.0,1.5]`}, []deleteFile{{[]int{5}, []arrow.Field{column(5, "x", arrow.PrimitiveTypes.Float64)}, `[{"x":-0.0}]`}}, "[1 2]"},
		{"float for double", x, map[int]string{5: `[0.5,0.1,1.5]`}, []deleteFile{{[]int{5}, []arrow.Field{column(5, "x", arrow.PrimitiveTypes.Float32)}, `[{"x":0.5},{"x":0.1}]`}}, "[1 2]"},
		{"nested key", nested, map[int]string{8: `[1,2,null]`}, []deleteFile{{[]int{8}, []arrow.Field{column(7, "s", nil, column(8, "k", i64))}, `[{"s":{"k":2}}]`}}, "[0 2]"},
		{"null parent of a key", nested, map[int]string{8: `[1,2,null]`}, []deleteFile{{[]int{8}, []arrow.Field{column(7, "s", nil, column(8, "k", i64))}, `[{"s":null}]`}}, "[0 1]"},
		{"null key in its parent", nested, map[int]string{8: `[1,2,null]`}, []deleteFile{{[]int{8}, []arrow.Field{column(7, "s", nil, column(8, "k", i64))}, `[{"s":{"k":null}}]`}}, "[0 1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.fields...)
			task := &plan.Task{Data: dataFile(1)}
			for i, d := range c.deletes {
				path := fmt.Sprint("E", i)
				b.write(path, d.rows, d.columns...)
				task.Deletes = append(task.Deletes, equality(path, 2, d.ids...))
			}
			columns, n := map[int]arrow.Array{}, 2
			for id, values := range c.data {
				f, _ := b.Field(id)
				columns[id] = b.values(map[string]arrow.DataType{"long": i64, "string": str, "double": arrow.PrimitiveTypes.Float64}[f.Type.Type()], values)
				n = columns[id].Len()
			}
			r := b.resolver()
			defer r.Close()
			kept, err := b.kept(r, task, n, columns)
			if got := fmt.Sprint(kept); err != nil || got != c.kept {
				t.Errorf("rows %s are kept, expected %s (error %v)", got, c.kept, err)
			}
		})
	}
}

// A delete applies to data that is strictly older, and one table serves data
// files of different ages, with the youngest delete of a key deciding.
func TestEqualitySequences(t *testing.T) {
	b := newBench(t, field(1, "id", long))
	b.write("E2", `[{"id":1},{"id":2}]`, column(1, "id", i64))
	b.write("E4", `[{"id":2},{"id":3}]`, column(1, "id", i64))
	e2, e4 := equality("E2", 2, 1), equality("E4", 4, 1)
	r := b.resolver()
	defer r.Close()
	ids := map[int]arrow.Array{1: b.values(i64, `[1,2,3,4]`)}
	for _, c := range []struct {
		sequence int64
		deletes  []*plan.File
		kept     string
	}{
		{3, []*plan.File{e4}, "[0 3]"},
		{0, []*plan.File{e2, e4}, "[3]"}, // born in format version 1
		{1, []*plan.File{e2, e4}, "[3]"},
		{2, []*plan.File{e4}, "[0 3]"}, // the table holds E2's keys too by now
		{4, nil, "[0 1 2 3]"},
	} {
		kept, err := b.kept(r, &plan.Task{Data: dataFile(c.sequence), Deletes: c.deletes}, 4, ids)
		if fmt.Sprint(kept) != c.kept || err != nil {
			t.Errorf("data @%d: rows %v are kept, expected %s (error %v)", c.sequence, kept, c.kept, err)
		}
	}
	for path, f := range b.files {
		if n := f.opened.Load(); n != 1 {
			t.Errorf("%s was opened %d times", path, n)
		}
	}
}

// Keys of one partition do not act on another; those of an unpartitioned spec,
// also one whose fields are all void, act on all.
func TestEqualityScopes(t *testing.T) {
	b := newBench(t, field(1, "id", long), field(2, "region", text))
	spec := func(id int, transform iceberg.Transform) {
		s := iceberg.NewPartitionSpecID(id, iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "region", Transform: transform})
		b.specs[id] = &s
	}
	spec(1, iceberg.IdentityTransform{})
	spec(2, iceberg.VoidTransform{})
	b.write("E", `[{"id":7}]`, column(1, "id", i64))
	eu, us := iceberg.Literal(iceberg.StringLiteral("eu")), iceberg.Literal(iceberg.StringLiteral("us"))
	for i, c := range []struct {
		spec      int
		partition []iceberg.Literal
		// the partition of a later task that does not list E but shares a resolver
		other []iceberg.Literal
		same  bool
	}{
		{1, []iceberg.Literal{eu}, []iceberg.Literal{us}, false},
		{1, []iceberg.Literal{nil}, []iceberg.Literal{us}, false},
		{1, []iceberg.Literal{eu}, []iceberg.Literal{eu}, true},
		{1, []iceberg.Literal{nil}, []iceberg.Literal{nil}, true},
		{0, nil, nil, true},
		{2, []iceberg.Literal{nil}, nil, true},
	} {
		r := b.resolver()
		e, f := equality("E", 2, 1), equality("F", 3, 1)
		e.SpecID, e.Partition = c.spec, c.partition
		f.SpecID, f.Partition = c.spec, c.other
		b.write("F", `[{"id":8}]`, column(1, "id", i64))
		ids := map[int]arrow.Array{1: b.values(i64, `[7,8]`)}
		if kept, err := b.kept(r, &plan.Task{Data: dataFile(1), Deletes: []*plan.File{e}}, 2, ids); fmt.Sprint(kept) != "[1]" || err != nil {
			t.Errorf("case %d: rows %v are kept (error %v)", i, kept, err)
		}
		// Its own delete file brings only key 8; key 7 comes with the scope.
		want := "[0]"
		if c.same {
			want = "[]"
		}
		if kept, err := b.kept(r, &plan.Task{Data: dataFile(1), Deletes: []*plan.File{f}}, 2, ids); fmt.Sprint(kept) != want || err != nil {
			t.Errorf("case %d: rows %v are kept, expected %s (error %v)", i, kept, want, err)
		}
		r.Close()
	}
}

// A dropped key column is bound through the schema history, a re-added name is
// another column, and the newest type of a promoted one counts.
func TestEqualityKeyHistory(t *testing.T) {
	b := newBench(t, field(1, "id", iceberg.PrimitiveTypes.Int32), field(2, "data", text))
	b.evolve(field(2, "data", text), field(3, "id", long))
	b.write("E", `[{"id":2}]`, column(1, "id", i32))
	r := b.resolver()
	defer r.Close()
	task := &plan.Task{Data: dataFile(1), Deletes: []*plan.File{equality("E", 2, 1)}}
	set, err := r.ForTask(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	fields := set.Fields()
	set.Close()
	if len(fields) != 1 || fields[0].ID != 1 || fields[0].Required || !fields[0].Type.Equals(iceberg.PrimitiveTypes.Int32) {
		t.Errorf("key fields are %v", fields)
	}
	if kept, err := b.kept(r, task, 3, map[int]arrow.Array{1: b.values(i32, `[1,2,null]`)}); fmt.Sprint(kept) != "[0 2]" || err != nil {
		t.Errorf("rows %v are kept (error %v)", kept, err)
	}
}

// Fields of data files keep what their absence means.
func TestFieldsKeepDefaults(t *testing.T) {
	b := newBench(t, iceberg.NestedField{ID: 1, Name: "k", Type: long, InitialDefault: int64(5), Required: true})
	b.write("E", `[{"k":5}]`, column(1, "k", i64))
	r := b.resolver()
	defer r.Close()
	set, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{equality("E", 2, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if f := set.Fields(); len(f) != 1 || f[0].InitialDefault != int64(5) || !f[0].Required {
		t.Errorf("key fields are %v", f)
	}
}

// A key column that a delete file lacks is an error, unless its partition says
// what it is. A delete file without field ids uses the name mapping.
func TestKeyColumnsOfDeleteFiles(t *testing.T) {
	ids := map[int]string{1: `[1,2]`, 2: `["eu","us"]`}
	for _, c := range []struct {
		name    string
		columns []arrow.Field
		rows    string
		spec    int
		mapping iceberg.NameMapping
		kept    string
		err     string
	}{
		{"absent", []arrow.Field{column(1, "id", i64)}, `[{"id":1}]`, 0, nil, "", `read E: the delete file lacks column "region" (field id 2)`},
		{"both absent", []arrow.Field{column(9, "z", i64)}, `[{"z":1}]`, 0, nil, "", `read E: the delete file lacks column "id" (field id 1)`},
		{"constant by partition", []arrow.Field{column(1, "id", i64)}, `[{"id":1},{"id":2}]`, 1, nil, "[1]", ""},
		{"no ids, no mapping", []arrow.Field{column(0, "id", i64), column(0, "region", str)}, `[{"id":1,"region":"eu"}]`, 0, nil, "",
			"read E: the file has no field ids and the table has no name mapping (property schema.name-mapping.default)"},
		{"name mapping", []arrow.Field{column(0, "ident", i64), column(0, "region", str)}, `[{"ident":1,"region":"eu"}]`, 0,
			iceberg.NameMapping{{FieldID: pointer(1), Names: []string{"id", "ident"}}, {FieldID: pointer(2), Names: []string{"region"}}}, "[1]", ""},
		{"other type", []arrow.Field{column(1, "id", str), column(2, "region", str)}, `[{"id":"1","region":"eu"}]`, 0, nil, "", `read E: column id`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, field(1, "id", long), field(2, "region", text))
			spec := iceberg.NewPartitionSpecID(1, iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "region", Transform: iceberg.IdentityTransform{}})
			b.specs[1], b.mapping = &spec, c.mapping
			b.write("E", c.rows, c.columns...)
			e := equality("E", 2, 1, 2)
			if c.spec == 1 {
				e.SpecID, e.Partition = 1, []iceberg.Literal{iceberg.StringLiteral("eu")}
			}
			r := b.resolver()
			defer r.Close()
			kept, err := b.kept(r, &plan.Task{Data: dataFile(1), Deletes: []*plan.File{e}}, 2, map[int]arrow.Array{1: b.values(i64, ids[1]), 2: b.values(str, ids[2])})
			if c.err == "" {
				if err != nil || fmt.Sprint(kept) != c.kept {
					t.Errorf("rows %v are kept, expected %s (error %v)", kept, c.kept, err)
				}
			} else if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("error is %v, expected %s", err, c.err)
			}
		})
	}
}

func pointer[T any](v T) *T { return &v }

func TestUnusableKeys(t *testing.T) {
	list := &iceberg.ListType{ElementID: 3, Element: long}
	for _, c := range []struct {
		name string
		ids  []int
		spec int
		code errs.Code
	}{
		{"list", []int{2}, 0, errs.Unsupported},
		{"struct", []int{4}, 0, errs.Unsupported},
		{"unknown id", []int{99}, 0, errs.Corrupt},
		{"no ids", nil, 0, errs.Corrupt},
		{"unknown spec", []int{1}, 7, errs.Corrupt},
		{"missing file", []int{1}, 0, errs.NotFound},
		{"element of a list", []int{3}, 0, errs.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, field(1, "id", long), field(2, "l", list), field(4, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{field(5, "k", long)}}))
			path := "E"
			b.write("E", `[]`, column(2, "l", arrow.ListOfField(column(3, "element", i64))))
			if c.name == "missing file" {
				path = "M"
			}
			e := equality(path, 2, c.ids...)
			e.SpecID = c.spec
			r := b.resolver()
			defer r.Close()
			_, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{e}})
			if errs.CodeOf(err) != c.code || !strings.Contains(err.Error(), " "+path+": ") {
				t.Errorf("error is %v (%s), expected %s naming the file", err, errs.CodeOf(err), c.code)
			}
			// Whoever asks again gets an error too.
			if _, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{e}}); err == nil {
				t.Error("the second task ignores the delete file")
			}
		})
	}
}

// Many tasks at once share tables and files; each file is opened once.
func TestConcurrentTasks(t *testing.T) {
	b := newBench(t, field(1, "id", long))
	var all []*plan.File
	for i := range 40 {
		path := fmt.Sprint("E", i)
		b.write(path, fmt.Sprintf(`[{"id":%d},{"id":%d}]`, i, 1000+i), column(1, "id", i64))
		all = append(all, equality(path, int64(10+i), 1))
	}
	b.write("P", `[{"file_path":"F","pos":0},{"file_path":"G","pos":1}]`, column(filePathID, "file_path", str), column(posID, "pos", i64))
	all = append(all, &plan.File{Content: plan.PositionDeletes, Format: plan.FormatParquet, Path: "P", DataSequence: 99})
	r := b.resolver()
	defer r.Close()
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			sequence := int64(i * 3)
			task := &plan.Task{Data: dataFile(sequence)}
			want := []int{}
			var rows strings.Builder
			for k := range 40 {
				fmt.Fprintf(&rows, ",%d", k)
				if int64(10+k) > sequence {
					task.Deletes = append(task.Deletes, all[k])
				} else if k > 0 {
					want = append(want, k)
				}
			}
			task.Deletes = append(task.Deletes, all[40])
			values, _, err := array.FromJSON(b.alloc, i64, strings.NewReader("["+rows.String()[1:]+"]"))
			if err != nil {
				t.Error(err)
				return
			}
			defer values.Release()
			kept, err := b.kept(r, task, 40, map[int]arrow.Array{1: values})
			if err != nil || fmt.Sprint(kept) != fmt.Sprint(want) {
				t.Errorf("data @%d: rows %v are kept, expected %v (error %v)", sequence, kept, want, err)
			}
		})
	}
	group.Wait()
	for path, f := range b.files {
		if n := f.opened.Load(); n != 1 {
			t.Errorf("%s was opened %d times", path, n)
		}
	}
}

// A table that does not fit is refused and leaves nothing behind.
func TestMemoryLimit(t *testing.T) {
	b := newBench(t, field(1, "id", long))
	b.pool = mem.NewPool("scan", 4<<10)
	var rows strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&rows, `,{"id":%d}`, i)
	}
	b.write("E", "["+rows.String()[1:]+"]", column(1, "id", i64))
	b.window = 100
	r := b.resolver()
	_, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{equality("E", 2, 1)}})
	if errs.CodeOf(err) != errs.MemoryLimit || !strings.Contains(err.Error(), "equality-delete keys") || !strings.Contains(err.Error(), "memory_limit") {
		t.Errorf("error is %v", err)
	}
	r.Close()
	if used := b.pool.Used(); used != 0 {
		t.Errorf("%d bytes are still charged", used)
	}
}
