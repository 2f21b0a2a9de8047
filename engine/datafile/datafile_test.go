package datafile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/datafile"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
)

var ctx = context.Background()

func field(id int, name string, t arrow.DataType) arrow.Field {
	f := arrow.Field{Name: name, Type: t, Nullable: true}
	if id > 0 {
		f.Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(id)})
	}
	return f
}

// hostSchema has the leaves 0 id, 1 s.a, 2 s.t.x, 3 s.t.y, 4 l.element.p,
// 5 l.element.q, 6 m.key, 7 m.value.
var hostSchema = arrow.NewSchema([]arrow.Field{
	field(1, "id", arrow.PrimitiveTypes.Int64),
	field(2, "s", arrow.StructOf(field(3, "a", arrow.PrimitiveTypes.Int32),
		field(4, "t", arrow.StructOf(field(5, "x", arrow.PrimitiveTypes.Int32), field(6, "y", arrow.BinaryTypes.String))))),
	field(7, "l", arrow.ListOfField(field(8, "element", arrow.StructOf(field(9, "p", arrow.PrimitiveTypes.Int32), field(10, "q", arrow.PrimitiveTypes.Int32))))),
	field(11, "m", arrow.MapOfFields(arrow.Field{Name: "key", Type: arrow.BinaryTypes.String, Metadata: field(12, "", nil).Metadata}, field(13, "value", arrow.PrimitiveTypes.Int32))),
}, nil)

// hostRow is a row of hostSchema as JSON.
func hostRow(i int) string {
	return fmt.Sprintf(`{"id":%d,"s":{"a":%d,"t":{"x":%d,"y":"y%d"}},"l":[{"p":%d,"q":%d},null],"m":[{"key":"k","value":%d}]}`, i, i+100, i+200, i, i+300, i+400, i+500)
}

// host is a reader of one file of n rows in batches.
type host struct {
	alloc   memory.Allocator
	schema  *arrow.Schema
	batches []int
	asked   [][]int
	open    int
	err     error // of the last batch
}

func (h *host) read(_ context.Context, location, format string, fieldIDs []int) (batch.Stream, error) {
	if location != "/f.orc" || format != "ORC" {
		return nil, fmt.Errorf("asked for %s of format %s", location, format)
	}
	h.asked = append(h.asked, fieldIDs)
	h.open++
	return &hostStream{host: h}, nil
}

type hostStream struct {
	host  *host
	batch int
	row   int
}

func (s *hostStream) Schema() *arrow.Schema { return s.host.schema }

func (s *hostStream) Close() error {
	s.host.open--
	return nil
}

func (s *hostStream) Next(context.Context) (arrow.RecordBatch, error) {
	if s.batch == len(s.host.batches) {
		if s.host.err != nil {
			return nil, s.host.err
		}
		return nil, io.EOF
	}
	var text []string
	for range s.host.batches[s.batch] {
		text = append(text, hostRow(s.row))
		s.row++
	}
	s.batch++
	record, _, err := array.RecordFromJSON(s.host.alloc, hostSchema, strings.NewReader("["+strings.Join(text, ",")+"]"))
	if err != nil {
		return nil, err
	}
	defer record.Release()
	return array.NewRecordBatch(s.host.schema, record.Columns()[:s.host.schema.NumFields()], record.NumRows()), nil
}

func options(t *testing.T, h *host) datafile.Options {
	enginetest.NoLeaks(t)
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	pool := mem.NewPool("test", mem.Unlimited)
	t.Cleanup(func() {
		alloc.AssertSize(t, 0)
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	o := datafile.Options{FS: fileio.NewLocal(), Alloc: alloc, Pool: pool, BatchRows: 4}
	if h != nil {
		h.alloc = alloc
		o.Host = h.read
	}
	return o
}

// windows reads everything: each window's range, and its kept rows as JSON.
func windows(t *testing.T, r batch.FileReader, keep func(position int64) bool) (out []string) {
	t.Helper()
	for {
		w, err := r.Next(ctx)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		mask := batch.NewMask(int(w.Len()), false)
		for i := range mask.Len {
			if keep(w.Start + int64(i)) {
				mask.Set(i)
			}
		}
		all := make([]int, r.Schema().NumFields())
		for i := range all {
			all[i] = i
		}
		arrays, err := r.Read(ctx, all, mask)
		if err != nil {
			t.Fatal(err)
		}
		var columns []string
		for i, a := range arrays {
			if !arrow.TypeEqual(a.DataType(), r.Schema().Field(i).Type) {
				t.Errorf("column %d is %s instead of %s", i, a.DataType(), r.Schema().Field(i).Type)
			}
			text, err := a.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			columns = append(columns, strings.ReplaceAll(string(text), "\n", ""))
			a.Release()
		}
		out = append(out, fmt.Sprintf("%d-%d %s", w.Start, w.End, strings.Join(columns, " ")))
	}
}

func all(int64) bool { return true }

func TestHostReader(t *testing.T) {
	id := []batch.Column{{Index: 0, Leaves: []int{0}}}
	for _, test := range []struct {
		name    string
		batches []int
		columns []batch.Column
		ranges  []batch.Range
		keep    func(int64) bool
		limit   int
		asked   []int
		want    []string
	}{
		{"windows within batches", []int{3, 6, 0, 1}, id, nil, all, 0, []int{1},
			[]string{"0-3 [0,1,2]", "3-7 [3,4,5,6]", "7-9 [7,8]", "9-10 [9]"}},
		{"smaller windows", []int{3, 6}, id, nil, all, 2, []int{1},
			[]string{"0-2 [0,1]", "2-3 [2]", "3-5 [3,4]", "5-7 [5,6]", "7-9 [7,8]"}},
		{"ranges", []int{3, 6, 3}, id, []batch.Range{{Start: 1, End: 2}, {Start: 4, End: 4}, {Start: 6, End: 11}}, all, 0, []int{1},
			[]string{"1-2 [1]", "6-9 [6,7,8]", "9-11 [9,10]"}},
		{"no ranges", []int{3}, id, []batch.Range{}, all, 0, []int{1}, nil},
		{"ranges past the end", []int{3}, id, []batch.Range{{Start: 2, End: 100}}, all, 0, []int{1}, []string{"2-3 [2]"}},
		{"masked", []int{8}, id, nil, func(p int64) bool { return p%3 == 0 }, 0, []int{1}, []string{"0-4 [0,3]", "4-8 [6]"}},
		{"no rows", nil, id, nil, all, 0, []int{1}, nil},
		{"no columns", []int{2}, nil, nil, all, 0, []int{}, []string{"0-2 "}},
		{"part of a struct", []int{2}, []batch.Column{{Index: 1, Leaves: []int{3}}}, nil, all, 0, []int{3, 5, 6},
			[]string{`0-2 [{"t":{"y":"y0"}},{"t":{"y":"y1"}}]`}},
		{"parts of several", []int{2}, []batch.Column{{Index: 2, Leaves: []int{5}}, {Index: 1, Leaves: []int{1, 2}}, {Index: 3, Leaves: []int{6, 7}}}, nil,
			func(p int64) bool { return p == 1 }, 0, []int{9, 10, 3, 5, 6, 12, 13},
			[]string{`0-2 [[{"q":401},null]] [{"a":101,"t":{"x":201}}] [[{"key":"k","value":501}]]`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &host{schema: hostSchema, batches: test.batches}
			f, err := datafile.Open(ctx, "/f.orc", "orc", options(t, h))
			if err != nil {
				t.Fatal(err)
			}
			r, err := f.NewReader(ctx, test.columns, test.ranges)
			if err != nil {
				t.Fatal(err)
			}
			if test.limit > 0 {
				r.(batch.WindowLimiter).LimitWindow(test.limit)
			}
			if got := windows(t, r, test.keep); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if len(h.asked) != 2 || h.asked[0] != nil || !slices.Equal(h.asked[1], test.asked) {
				t.Errorf("the host was asked for %v", h.asked)
			}
			for range 2 {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if h.open != 0 {
				t.Errorf("%d streams stay open", h.open)
			}
		})
	}
}

func TestHostReaderErrors(t *testing.T) {
	id := []batch.Column{{Index: 0, Leaves: []int{0}}}
	t.Run("the stream fails", func(t *testing.T) {
		cause := errors.New("bad stripe")
		h := &host{schema: hostSchema, batches: []int{2}, err: cause}
		f, err := datafile.Open(ctx, "/f.orc", "ORC", options(t, h))
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.NewReader(ctx, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(ctx); !errors.Is(err, cause) || err.Error() != "read /f.orc: bad stripe" {
			t.Errorf("got %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("the schema changes", func(t *testing.T) {
		h := &host{schema: hostSchema, batches: []int{2}}
		f, err := datafile.Open(ctx, "/f.orc", "ORC", options(t, h))
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			schema *arrow.Schema
			part   string
		}{
			{arrow.NewSchema([]arrow.Field{field(1, "id", arrow.PrimitiveTypes.Int32)}, nil), `column "id" as int32 after announcing int64`},
			{arrow.NewSchema([]arrow.Field{field(9, "id", arrow.PrimitiveTypes.Int64)}, nil), `left out column "id"`},
		} {
			h.schema = test.schema
			if _, err := f.NewReader(ctx, id, nil); errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), test.part) {
				t.Errorf("got %v, want %q", err, test.part)
			}
		}
		if h.open != 0 {
			t.Errorf("%d streams stay open", h.open)
		}
	})
	t.Run("a column has no id", func(t *testing.T) {
		h := &host{schema: arrow.NewSchema([]arrow.Field{field(0, "id", arrow.PrimitiveTypes.Int64)}, nil), batches: []int{2}}
		f, err := datafile.Open(ctx, "/f.orc", "ORC", options(t, h))
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.NewReader(ctx, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := windows(t, r, all); !slices.Equal(got, []string{"0-2 [0,1]"}) || h.asked[1] != nil {
			t.Errorf("got %v, asked %v", got, h.asked)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("not a data file of any kind"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := options(t, nil)
	for _, test := range []struct {
		location, format string
		code             errs.Code
		part             string
	}{
		{garbage, "parquet", errs.Corrupt, "read " + garbage},
		{garbage, "Avro", errs.Corrupt, "read " + garbage},
		{garbage, "ORC", errs.Unsupported, "decoded by the host"},
		{garbage, "csv", errs.Unsupported, `the file format "csv" cannot be read`},
		{garbage, "", errs.Unsupported, `the file format "" cannot be read`},
		{dir + "/none", "PARQUET", errs.NotFound, "open " + dir + "/none: no such file"},
		{dir + "/none", "avro", errs.NotFound, "open " + dir + "/none: no such file"},
		{dir, "avro", errs.InvalidArgument, "is a directory"},
	} {
		f, err := datafile.Open(ctx, test.location, test.format, o)
		if errs.CodeOf(err) != test.code || f != nil || !strings.Contains(err.Error(), test.part) {
			t.Errorf("%s as %q: got %v %v, want %v with %q", test.location, test.format, errs.CodeOf(err), err, test.code, test.part)
		}
	}
}
