package sort

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/spill"
	"github.com/icebergexec/icebergexec/spill/vfs"
)

var ctx = context.Background()

// list is a stream of given batches.
type list struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	next    int
	err     error
	closed  bool
}

func (l *list) Schema() *arrow.Schema { return l.schema }

func (l *list) Next(context.Context) (arrow.RecordBatch, error) {
	if l.next == len(l.batches) {
		if l.err != nil {
			return nil, l.err
		}
		return nil, io.EOF
	}
	l.next++
	l.batches[l.next-1].Retain()
	return l.batches[l.next-1], nil
}

func (l *list) Close() error { l.closed = true; return nil }

// bench runs sorts and checks that they leave nothing.
type bench struct {
	t      testing.TB
	alloc  *memory.CheckedAllocator
	fs     vfs.FS
	parent string
	disk   *spill.DiskBudget
	limit  int64
	rows   int
}

func newBench(t testing.TB) *bench {
	enginetest.NoLeaks(t)
	b := &bench{
		t: t, alloc: memory.NewCheckedAllocator(memory.DefaultAllocator), fs: vfs.OS(),
		parent: t.TempDir(), disk: spill.NewDiskBudget(0), limit: 64 << 20, rows: 1000,
	}
	t.Cleanup(func() { b.alloc.AssertSize(t, 0) })
	return b
}

// sort collects the batches of a sort.
func (b *bench) sort(input *list, use func(arrow.RecordBatch), sortKeys ...Key) error {
	pool := mem.NewPool("test", b.limit)
	var dir *spill.Dir
	s, err := New(ctx, input, Config{
		Keys: sortKeys, Pool: pool, Alloc: b.alloc, Threads: 2, BatchRows: b.rows, BatchBytes: 1 << 20,
		Spill: func(ctx context.Context) (_ *spill.Dir, err error) {
			if dir == nil {
				dir, _, err = spill.OpenDir(ctx, b.fs, b.parent, b.disk)
			}
			return dir, err
		},
	})
	if err == nil {
		for err == nil {
			var record arrow.RecordBatch
			if record, err = s.Next(ctx); err == nil {
				use(record)
				record.Release()
			}
		}
		if closeErr := s.Close(); err == io.EOF && closeErr != nil {
			err = closeErr
		}
	}
	if !input.closed {
		b.t.Error("the input is not closed")
	}
	if used := b.disk.Used(); used != 0 {
		b.t.Errorf("%d bytes of disk are in use", used)
	}
	if dir != nil {
		if closeErr := dir.Close(); closeErr != nil && err == io.EOF {
			err = closeErr
		}
	}
	if poolErr := pool.Close(); poolErr != nil {
		b.t.Error(poolErr)
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

// values renders column name of the sorted rows.
func (b *bench) values(input *list, name string, sortKeys ...Key) []string {
	b.t.Helper()
	var got []string
	err := b.sort(input, func(r arrow.RecordBatch) {
		if !r.Schema().Equal(input.schema) {
			b.t.Errorf("schema %s", r.Schema())
		}
		c := r.Column(r.Schema().FieldIndices(name)[0])
		for i := range c.Len() {
			got = append(got, c.ValueStr(i))
		}
	}, sortKeys...)
	if err != nil {
		b.t.Error(err)
	}
	return got
}

// fromJSON makes a stream of one batch per text, and releases it at the end.
func (b *bench) fromJSON(schema *arrow.Schema, texts ...string) *list {
	l := &list{schema: schema}
	for _, text := range texts {
		r, _, err := array.RecordFromJSON(b.alloc, schema, strings.NewReader(text))
		if err != nil {
			b.t.Fatal(err)
		}
		l.batches = append(l.batches, r)
		b.t.Cleanup(r.Release)
	}
	return l
}

func schemaOf(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }

func TestFloatOrder(t *testing.T) {
	b := newBench(t)
	schema := schemaOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	builder := array.NewRecordBuilder(b.alloc, schema)
	defer builder.Release()
	x := builder.Field(0).(*array.Float64Builder)
	x.AppendNull()
	x.AppendValues([]float64{math.Float64frombits(0xfff8000000000001), 0, math.Copysign(0, -1), math.Inf(-1), math.Inf(1)}, nil)
	record := builder.NewRecordBatch()
	defer record.Release()
	for _, test := range []struct {
		descending, nullsLast bool
		want                  string
	}{
		{false, false, "(null) -Inf -0 0 +Inf NaN"},
		{false, true, "-Inf -0 0 +Inf NaN (null)"},
		{true, false, "(null) NaN +Inf 0 -0 -Inf"},
		{true, true, "NaN +Inf 0 -0 -Inf (null)"},
	} {
		in := &list{schema: schema, batches: []arrow.RecordBatch{record}}
		got := strings.Join(b.values(in, "x", Key{Column: "x", Descending: test.descending, NullsLast: test.nullsLast}), " ")
		if got != test.want {
			t.Errorf("descending %t, nulls last %t: %s, want %s", test.descending, test.nullsLast, got, test.want)
		}
	}
}

// Transformed values are ordered, and rows that are equal then stay as they came.
func TestTransforms(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string { return strings.Repeat(string(rune('a'+r.IntN(3)))+"é\x00", r.IntN(4)) }
	fixed := &arrow.FixedSizeBinaryType{ByteWidth: 4}
	for _, test := range []struct {
		source     iceberg.Type
		arrow      arrow.DataType
		transforms string
		value      func(b array.Builder) iceberg.Literal
	}{
		{iceberg.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32, "identity,void,bucket[8],truncate[7]", func(b array.Builder) iceberg.Literal {
			v := int32(r.IntN(60) - 30)
			b.(*array.Int32Builder).Append(v)
			return iceberg.Int32Literal(v)
		}},
		{iceberg.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int64, "identity,bucket[8],truncate[1000]", func(b array.Builder) iceberg.Literal {
			v := int64(r.Uint64()) >> r.IntN(64)
			b.(*array.Int64Builder).Append(v)
			return iceberg.Int64Literal(v)
		}},
		{iceberg.PrimitiveTypes.Date, arrow.FixedWidthTypes.Date32, "identity,bucket[8],year,month,day", func(b array.Builder) iceberg.Literal {
			v := int32(r.IntN(200_000) - 100_000)
			b.(*array.Date32Builder).Append(arrow.Date32(v))
			return iceberg.DateLiteral(v)
		}},
		{iceberg.PrimitiveTypes.Timestamp, &arrow.TimestampType{Unit: arrow.Microsecond}, "identity,bucket[8],year,month,day,hour", func(b array.Builder) iceberg.Literal {
			v := r.Int64N(1e16) - 5e15
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(v))
			return iceberg.TimestampLiteral(v)
		}},
		{iceberg.DecimalTypeOf(9, 2), &arrow.Decimal128Type{Precision: 9, Scale: 2}, "identity,bucket[8],truncate[50]", func(b array.Builder) iceberg.Literal {
			v := decimal128.FromI64(r.Int64N(2000) - 1000)
			b.(*array.Decimal128Builder).Append(v)
			return iceberg.DecimalLiteral{Val: v, Scale: 2}
		}},
		{iceberg.DecimalTypeOf(38, 2), &arrow.Decimal128Type{Precision: 38, Scale: 2}, "identity,bucket[8],truncate[50]", func(b array.Builder) iceberg.Literal {
			v := decimal128.New(int64(r.Uint64())>>(2+r.IntN(62)), r.Uint64())
			b.(*array.Decimal128Builder).Append(v)
			return iceberg.DecimalLiteral{Val: v, Scale: 2}
		}},
		{iceberg.PrimitiveTypes.String, arrow.BinaryTypes.String, "identity,bucket[8],truncate[4]", func(b array.Builder) iceberg.Literal {
			v := text()
			b.(*array.StringBuilder).Append(v)
			return iceberg.StringLiteral(v)
		}},
		{iceberg.PrimitiveTypes.Binary, arrow.BinaryTypes.Binary, "identity,bucket[8],truncate[4]", func(b array.Builder) iceberg.Literal {
			v := []byte(text())
			b.(*array.BinaryBuilder).Append(v)
			return iceberg.BinaryLiteral(v)
		}},
		{iceberg.FixedTypeOf(4), fixed, "identity,bucket[8]", func(b array.Builder) iceberg.Literal {
			v := []byte{byte(r.IntN(3)), byte(r.IntN(3)), 0, byte(r.IntN(256))}
			b.(*array.FixedSizeBinaryBuilder).Append(v)
			return iceberg.FixedLiteral(v)
		}},
		{iceberg.PrimitiveTypes.UUID, &arrow.FixedSizeBinaryType{ByteWidth: 16}, "bucket[8]", func(b array.Builder) iceberg.Literal {
			v := iceberg.UUIDLiteral{0: byte(r.IntN(256)), 15: byte(r.IntN(256))}
			b.(*array.FixedSizeBinaryBuilder).Append(v[:])
			return v
		}},
	} {
		var metadata arrow.Metadata
		if test.source == iceberg.PrimitiveTypes.UUID {
			metadata = arrow.NewMetadata([]string{"ARROW:extension:name"}, []string{"arrow.uuid"})
		}
		schema := schemaOf(arrow.Field{Name: "v", Type: test.arrow, Nullable: true, Metadata: metadata}, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64})
		builder := array.NewRecordBuilder(b.alloc, schema)
		var literals []iceberg.Literal
		for i := range 400 {
			builder.Field(1).(*array.Int64Builder).Append(int64(i))
			if r.IntN(5) == 0 {
				builder.Field(0).AppendNull()
				literals = append(literals, nil)
			} else {
				literals = append(literals, test.value(builder.Field(0)))
			}
		}
		record := builder.NewRecordBatch()
		builder.Release()
		for _, name := range strings.Split(test.transforms, ",") {
			transform, err := iceberg.ParseTransform(name)
			if err != nil {
				t.Fatal(err)
			}
			key := Key{Column: "v", Transform: transform, Descending: r.IntN(2) == 0, NullsLast: r.IntN(2) == 0}
			want := make([]int, len(literals))
			moved := make([]iceberg.Optional[iceberg.Literal], len(literals))
			for i, v := range literals {
				want[i] = i
				moved[i] = transform.Apply(iceberg.Optional[iceberg.Literal]{Val: v, Valid: v != nil})
			}
			slices.SortStableFunc(want, func(i, j int) int { return compareLiterals(moved[i], moved[j], key) })
			var wantText []string
			for _, i := range want {
				wantText = append(wantText, fmt.Sprint(i))
			}
			in := &list{schema: schema, batches: []arrow.RecordBatch{record}}
			if got := b.values(in, "n", key); !slices.Equal(got, wantText) {
				t.Errorf("%s by %+v:\n got %v\nwant %v", test.source, key, got, wantText)
			}
		}
		record.Release()
	}
}

// compareLiterals is the order of the format's specification.
func compareLiterals(a, b iceberg.Optional[iceberg.Literal], key Key) int {
	if !a.Valid || !b.Valid {
		if a.Valid == b.Valid {
			return 0
		}
		if a.Valid == key.NullsLast {
			return -1
		}
		return 1
	}
	order := 0
	switch x := a.Val.(type) {
	case iceberg.Int32Literal:
		order = cmp.Compare(x, b.Val.(iceberg.Int32Literal))
	case iceberg.Int64Literal:
		order = cmp.Compare(x, b.Val.(iceberg.Int64Literal))
	case iceberg.DateLiteral:
		order = cmp.Compare(x, b.Val.(iceberg.DateLiteral))
	case iceberg.TimestampLiteral:
		order = cmp.Compare(x, b.Val.(iceberg.TimestampLiteral))
	case iceberg.DecimalLiteral:
		order = x.Val.Cmp(b.Val.(iceberg.DecimalLiteral).Val)
	case iceberg.StringLiteral:
		order = strings.Compare(string(x), string(b.Val.(iceberg.StringLiteral)))
	case iceberg.BinaryLiteral:
		order = bytes.Compare(x, b.Val.(iceberg.BinaryLiteral))
	case iceberg.FixedLiteral:
		order = bytes.Compare(x, b.Val.(iceberg.FixedLiteral))
	default:
		panic(fmt.Sprintf("%T", x))
	}
	if key.Descending {
		return -order
	}
	return order
}

// Every column comes back as it was, in its own type.
func TestPayloadTypes(t *testing.T) {
	b := newBench(t)
	b.rows = 3
	item := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true})
	schema := schemaOf(
		arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int32},
		arrow.Field{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		arrow.Field{Name: "large", Type: arrow.BinaryTypes.LargeString, Nullable: true},
		arrow.Field{Name: "view", Type: arrow.BinaryTypes.StringView, Nullable: true},
		arrow.Field{Name: "list", Type: arrow.ListOf(item), Nullable: true},
		arrow.Field{Name: "pair", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16), Nullable: true},
		arrow.Field{Name: "map", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float32), Nullable: true},
		arrow.Field{Name: "struct", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), Nullable: true},
		arrow.Field{Name: "none", Type: arrow.Null, Nullable: true},
		arrow.Field{Name: "word", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
	)
	rows := []string{
		`{"k":4,"flag":true,"large":"l","view":"short","list":[{"a":"x","b":true},{"a":null,"b":null},null],"pair":[1,2],"map":[{"key":"p","value":1.5}],"struct":{"x":7},"none":null,"word":"w"}`,
		`{"k":1,"flag":null,"large":null,"view":null,"list":null,"pair":null,"map":null,"struct":null,"none":null,"word":null}`,
		`{"k":3,"flag":false,"large":"","view":"longer than twelve bytes","list":[],"pair":[3,4],"map":[],"struct":{"x":null},"none":null,"word":"v"}`,
		`{"k":2,"flag":true,"large":"m","view":"","list":[{"a":"","b":false}],"pair":[5,6],"map":[{"key":"q","value":null},{"key":"r","value":2}],"struct":{"x":9},"none":null,"word":"w"}`,
	}
	want := []string{rows[1], rows[3], rows[2], rows[0]}
	in := b.fromJSON(schema, "["+strings.Join(rows[:3], ",")+"]", "["+rows[3]+"]")
	// A slice must give its own rows only.
	in.batches[0] = in.batches[0].NewSlice(0, 3)
	defer in.batches[0].Release()
	var got []any
	if err := b.sort(in, func(r arrow.RecordBatch) {
		if !r.Schema().Equal(schema) {
			t.Errorf("schema %s", r.Schema())
		}
		text, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var decoded []any
		if err := json.Unmarshal(text, &decoded); err != nil {
			t.Fatal(err)
		}
		got = append(got, decoded...)
	}, Key{Column: "k"}); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		var w any
		if err := json.Unmarshal([]byte(want[i]), &w); err != nil {
			t.Fatal(err)
		}
		if g := fmt.Sprint(got[i]); g != fmt.Sprint(w) {
			t.Errorf("row %d\n got %s\nwant %v", i, g, w)
		}
	}
	for column, order := range map[string]string{"struct.x": "1 3 4 2", "word": "1 3 4 2", "view": "1 2 3 4", "none": "4 1 3 2"} {
		in.next, in.closed = 0, false
		if got := strings.Join(b.values(in, "k", Key{Column: column}), " "); got != order {
			t.Errorf("by %s: %s, want %s", column, got, order)
		}
	}
}

// numbered makes rows (k, n, text) with few or many distinct keys.
func numbered(alloc memory.Allocator, seed uint64, batches, rows, distinct, width int) *list {
	r := rand.New(rand.NewPCG(seed, 7))
	l := &list{schema: schemaOf(arrow.Field{Name: "k", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "text", Type: arrow.BinaryTypes.String})}
	n := int64(0)
	for range batches {
		b := array.NewRecordBuilder(alloc, l.schema)
		for range rows {
			if k := r.IntN(distinct); k == 0 {
				b.Field(0).AppendNull()
			} else {
				b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("key %d", k))
			}
			b.Field(1).(*array.Int64Builder).Append(n)
			b.Field(2).(*array.StringBuilder).Append(strings.Repeat("x", r.IntN(width)))
			n++
		}
		l.batches = append(l.batches, b.NewRecordBatch())
		b.Release()
	}
	return l
}

func (l *list) release() {
	for _, b := range l.batches {
		b.Release()
	}
}

// Whatever the limit, the rows are the same, in order and stable.
func TestSpill(t *testing.T) {
	b := newBench(t)
	in := numbered(b.alloc, 3, 20, 5000, 20_000, 500)
	defer in.release()
	var reference []string
	for _, limit := range []int64{1 << 30, 64 << 20, 32 << 20, 16 << 20, 2 << 20 /* several passes */} {
		b.limit, in.next, in.closed = limit, 0, false
		before := b.disk.Peak()
		got := b.values(in, "n", Key{Column: "k", Descending: true, NullsLast: true})
		if len(got) != 100_000 {
			t.Fatalf("limit %d: %d rows", limit, len(got))
		}
		if reference == nil {
			reference = got
		} else if !slices.Equal(got, reference) {
			t.Errorf("limit %d: other rows", limit)
		}
		if spilled := b.disk.Peak() > before; limit == 16<<20 && !spilled && before == 0 {
			t.Error("nothing was spilled")
		}
	}
	all := map[int]string{}
	for _, record := range in.batches {
		k, n := record.Column(0).(*array.String), record.Column(1).(*array.Int64)
		for i := range k.Len() {
			if k.IsValid(i) {
				all[int(n.Value(i))] = k.Value(i)
			}
		}
	}
	position := func(text string) (n int) { _, _ = fmt.Sscan(text, &n); return n }
	if !slices.IsSortedFunc(reference, func(a, b string) int {
		x, xOK := all[position(a)]
		y, yOK := all[position(b)]
		switch {
		case xOK != yOK && xOK:
			return -1
		case xOK != yOK:
			return 1
		case x != y:
			return strings.Compare(y, x)
		}
		return cmp.Compare(position(a), position(b))
	}) {
		t.Error("the rows are not in order")
	}
}

// Rows larger than any block, and than the workspace, still come through.
func TestWideRows(t *testing.T) {
	b := newBench(t)
	b.limit = 16 << 20
	in := numbered(b.alloc, 5, 6, 8, 10, 2<<20)
	defer in.release()
	if got := b.values(in, "n", Key{Column: "k"}, Key{Column: "n", Descending: true}); len(got) != 48 {
		t.Errorf("%d rows", len(got))
	}
}

func TestEmpty(t *testing.T) {
	b := newBench(t)
	in := numbered(b.alloc, 1, 2, 0, 5, 5)
	defer in.release()
	if got := b.values(in, "n", Key{Column: "k"}); len(got) != 0 {
		t.Errorf("%d rows", len(got))
	}
}

// Each operation of the disk fails once: an error or the right rows, no file,
// no descriptor and no goroutine stays.
func TestFaults(t *testing.T) {
	b := newBench(t)
	b.limit = 5 << 20
	in := numbered(b.alloc, 9, 8, 2000, 1000, 1000)
	defer in.release()
	// The first operations one by one, then some of the many blocks.
	for k := int64(0); ; k += 1 + k/30*11 {
		fs := &vfs.Faulty{Inner: vfs.OS(), Err: syscall.EIO}
		fs.FailAfter(k)
		b.fs = fs
		in.next, in.closed = 0, false
		rows := 0
		err := b.sort(in, func(r arrow.RecordBatch) { rows += int(r.NumRows()) }, Key{Column: "k"})
		if err == nil && rows != 16_000 {
			t.Fatalf("operation %d: %d rows and no error", k, rows)
		}
		if open := fs.OpenFiles(); open != 0 {
			t.Fatalf("operation %d: %d files stay open", k, open)
		}
		if !fs.Failed() {
			if err != nil || k < 20 {
				t.Errorf("after %d operations: %v", k, err)
			}
			break
		}
	}
}

func TestDiskFull(t *testing.T) {
	b := newBench(t)
	b.limit = 5 << 20
	in := numbered(b.alloc, 9, 8, 2000, 1000, 1000)
	defer in.release()
	b.fs = &vfs.Faulty{Inner: vfs.OS(), Capacity: 2 << 20}
	err := b.sort(in, func(arrow.RecordBatch) {}, Key{Column: "k"})
	if errs.CodeOf(err) != errs.SpillFull || !strings.Contains(err.Error(), "spill_dir") {
		t.Errorf("disk full: %v", err)
	}
	in.next, in.closed = 0, false
	b.fs, b.disk = vfs.OS(), spill.NewDiskBudget(1<<20)
	err = b.sort(in, func(arrow.RecordBatch) {}, Key{Column: "k"})
	if errs.CodeOf(err) != errs.SpillFull || !strings.Contains(err.Error(), "spill_limit") {
		t.Errorf("budget used up: %v", err)
	}
	if entries, err := os.ReadDir(b.parent); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// An early end frees the disk, and an error of the input comes out.
func TestEarlyEnd(t *testing.T) {
	b := newBench(t)
	in := numbered(b.alloc, 9, 8, 2000, 1000, 1000)
	defer in.release()
	pool, disk := mem.NewPool("test", 5<<20), spill.NewDiskBudget(0)
	dir, _, err := spill.OpenDir(ctx, vfs.OS(), b.parent, disk)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s, err := New(ctx, in, Config{Keys: []Key{{Column: "k"}}, Pool: pool, Alloc: b.alloc, Threads: 2, BatchRows: 100, BatchBytes: 1 << 20,
		Spill: func(context.Context) (*spill.Dir, error) { return dir, nil }})
	if err != nil {
		t.Fatal(err)
	}
	record, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	record.Release()
	if disk.Used() == 0 {
		t.Error("nothing was spilled")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if record, err := s.Next(ended); err == nil {
		record.Release()
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(s.Close(), s.Close(), pool.Close()); err != nil || disk.Used() != 0 || !in.closed {
		t.Errorf("%v; %d bytes on disk; input closed %t", err, disk.Used(), in.closed)
	}
	failure := errors.New("no more input")
	in.next, in.closed, in.err = 0, false, failure
	if err := b.sort(in, func(arrow.RecordBatch) {}, Key{Column: "k"}); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestBadKeys(t *testing.T) {
	b := newBench(t)
	schema := schemaOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)})
	for _, test := range []struct {
		key  Key
		code errs.Code
		text string
	}{
		{Key{Column: "b"}, errs.InvalidArgument, `no column "b" (there are: a, l)`},
		{Key{Column: "a.x"}, errs.InvalidArgument, "no column"},
		{Key{Column: "l"}, errs.Unsupported, "cannot be a sort key"},
		{Key{Column: "a", Transform: iceberg.HourTransform{}}, errs.InvalidArgument, "does not apply to type int"},
	} {
		err := b.sort(&list{schema: schema}, nil, test.key)
		if errs.CodeOf(err) != test.code || !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("%+v: %v", test.key, err)
		}
	}
}

// Several keys of any direction, checked against a sort of the rows in memory.
func TestSeveralKeys(t *testing.T) {
	b := newBench(t)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		schema := schemaOf(
			arrow.Field{Name: "a", Type: arrow.BinaryTypes.Binary, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true},
			arrow.Field{Name: "c", Type: arrow.BinaryTypes.Binary, Nullable: true}, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64})
		in := &list{schema: schema}
		var rows [][3]iceberg.Optional[iceberg.Literal]
		for range 3 {
			builder := array.NewRecordBuilder(b.alloc, schema)
			for range r.IntN(200) {
				var row [3]iceberg.Optional[iceberg.Literal]
				for c := range row {
					if r.IntN(4) == 0 {
						builder.Field(c).AppendNull()
						continue
					}
					v := make([]byte, r.IntN(3))
					for i := range v { // bytes at which encodings could err
						v[i] = []byte{0x00, 0x01, 0xfe, 0xff}[r.IntN(4)]
					}
					builder.Field(c).(*array.BinaryBuilder).Append(v)
					row[c] = iceberg.Optional[iceberg.Literal]{Val: iceberg.BinaryLiteral(v), Valid: true}
				}
				builder.Field(3).(*array.Int64Builder).Append(int64(len(rows)))
				rows = append(rows, row)
			}
			in.batches = append(in.batches, builder.NewRecordBatch())
			builder.Release()
		}
		var sortKeys []Key
		for _, c := range r.Perm(3) {
			sortKeys = append(sortKeys, Key{Column: string(rune('a' + c)), Descending: r.IntN(2) == 0, NullsLast: r.IntN(2) == 0})
		}
		order := make([]int, len(rows))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int {
			for _, k := range sortKeys {
				c := k.Column[0] - 'a'
				if result := compareLiterals(rows[i][c], rows[j][c], k); result != 0 {
					return result
				}
			}
			return 0
		})
		var want []string
		for _, i := range order {
			want = append(want, fmt.Sprint(i))
		}
		if got := b.values(in, "n", sortKeys...); !slices.Equal(got, want) {
			t.Errorf("seed %d, keys %+v:\n got %v\nwant %v", seed, sortKeys, got, want)
		}
		in.release()
	}
}
