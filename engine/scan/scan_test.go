package scan_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
)

const idAndText = `{"id":1,"name":"id","required":false,"type":"long"},{"id":2,"name":"text","required":false,"type":"string"}`

var idAndTextArrow = arrow.NewSchema([]arrow.Field{field(1, "id", arrow.PrimitiveTypes.Int64), field(2, "text", arrow.BinaryTypes.String)}, nil)

// numbered is a file of rows (first+i, text of that number).
func numbered(first, n, batch int) *memoryFile {
	return &memoryFile{schema: idAndTextArrow, rows: n, batch: batch, row: func(b *array.RecordBuilder, i int) {
		b.Field(0).(*array.Int64Builder).Append(int64(first + i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("t", first+i))
	}}
}

func TestOrderAndBatches(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		for _, batchRows := range []int{1, 7, 64, 1000} {
			b := newBench(t, mem.Unlimited, idAndText)
			b.threads, b.batchRows = threads, batchRows
			var want []string
			for f := range 9 {
				n := f * f * 3
				b.add(fmt.Sprint("/f", f), numbered(1000*f, n, 10+f))
				for i := range n {
					want = append(want, fmt.Sprintf("%d t%d", 1000*f+i, 1000*f+i))
				}
			}
			if got := b.rows(0, nil, nil); !slices.Equal(got, want) {
				t.Errorf("%d threads, batches of %d: %d rows, want %d", threads, batchRows, len(got), len(want))
			}
			odd := expr.Compare(expr.OpLt, "id", iceberg.Int64Literal(1040))
			if got := b.rows(0, []string{"text"}, odd); len(got) != 3 || got[2] != "t1002" {
				t.Errorf("filtered: %v", got)
			}
			for _, limit := range []int64{1, 3, 100} {
				b.limit = &limit
				if got := b.rows(0, nil, nil); !slices.Equal(got, want[:limit]) {
					t.Errorf("limit %d: %d rows", limit, len(got))
				}
			}
			b.limit = nil
			if got := b.rows(0, []string{}, nil); len(got) != len(want) {
				t.Errorf("without columns: %d rows", len(got))
			}
		}
	}
}

// TestErrorsComeInOrder checks that the rows before an error come, whatever the
// number of threads, and that the error names the file.
func TestErrorsComeInOrder(t *testing.T) {
	broken := errors.New("bad stripe")
	for _, threads := range []int{1, 4} {
		b := newBench(t, mem.Unlimited, idAndText)
		b.threads, b.batchRows = threads, 10
		b.add("/good", numbered(0, 100, 10))
		bad := numbered(100, 100, 10)
		bad.fail = func(i int) error {
			if i == 50 {
				return broken
			}
			return nil
		}
		b.add("/bad", bad)
		b.add("/later", numbered(200, 100, 10))
		s := b.scan(0, []string{"id"}, nil)
		got, err := rows(s)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "read /bad: bad stripe") {
			t.Errorf("got %v", err)
		}
		if len(got) < 100 || len(got) > 150 || got[len(got)-1] != fmt.Sprint(len(got)-1) {
			t.Errorf("%d rows before the error", len(got))
		}
		if _, again := s.Next(ctx); errs.CodeOf(again) != errs.CodeOf(err) {
			t.Errorf("the error is not sticky: %v", again)
		}

		limit := int64(100)
		b.limit = &limit
		if got, err := rows(b.scan(0, []string{"id"}, nil)); err != nil || len(got) != 100 {
			t.Errorf("a limit before the error: %d rows, %v", len(got), err)
		}
	}
}

func TestPanicInReader(t *testing.T) {
	b := newBench(t, mem.Unlimited, idAndText)
	bad := numbered(0, 100, 10)
	bad.fail = func(i int) error {
		if i == 50 {
			panic("host defect")
		}
		return nil
	}
	b.add("/bad", bad)
	_, err := rows(b.scan(0, nil, nil))
	if errs.CodeOf(err) != errs.Internal || !strings.Contains(err.Error(), "host defect") {
		t.Errorf("got %v", err)
	}
}

func TestCloseInTheMiddle(t *testing.T) {
	for taken := range 5 {
		b := newBench(t, mem.Unlimited, idAndText)
		b.batchRows, b.threads = 5, 3
		for f := range 5 {
			b.add(fmt.Sprint("/f", f), numbered(0, 100, 10))
		}
		s := b.scan(0, nil, nil)
		for range taken {
			record, err := s.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			record.Release()
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Next(ctx); errs.CodeOf(err) != errs.Cancelled {
			t.Errorf("Next after Close: %v", err)
		}
	}
}

// TestWideRows reads rows of 1 MiB and of very different sizes: batches follow
// the bytes, and what is charged stays near the limit.
func TestWideRows(t *testing.T) {
	const limit = 16 << 20
	for _, test := range []struct {
		name  string
		width func(i int) int
	}{
		{"all wide", func(int) int { return 1 << 20 }},
		{"wide after narrow", func(i int) int {
			if i < 150 {
				return 10
			}
			return 1 << 20
		}},
		{"mixed", func(i int) int {
			if i%17 == 0 {
				return 2 << 20
			}
			return 1000
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, limit, idAndText)
			b.batchRows, b.batchBytes = 1<<16, 8<<20
			wide := strings.Repeat("x", 2<<20)
			f := numbered(0, 200, 1)
			f.row = func(b *array.RecordBuilder, i int) {
				b.Field(0).(*array.Int64Builder).Append(int64(i))
				b.Field(1).(*array.StringBuilder).Append(wide[:test.width(i)])
			}
			b.add("/wide", f)
			s := b.scan(0, nil, nil)
			n := int64(0)
			for {
				record, err := s.Next(ctx)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				bytes := 0
				for i := range int(record.NumRows()) {
					bytes += len(record.Column(1).(*array.String).Value(i))
				}
				if bytes > 4<<20 {
					t.Errorf("a batch of %d bytes in %d rows", bytes, record.NumRows())
				}
				n += record.NumRows()
				record.Release()
			}
			if n != 200 {
				t.Errorf("%d rows", n)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if peak := b.pool.Peak(); peak > limit {
				t.Errorf("%d bytes were charged at a time", peak)
			}
		})
	}
}

// TestQueuedBytes checks that workers that are ahead stay within the limit
// while the consumer is slow.
func TestQueuedBytes(t *testing.T) {
	b := newBench(t, 16<<20, idAndText)
	b.threads, b.batchRows = 4, 1000
	text := strings.Repeat("y", 1000)
	for f := range 8 {
		file := numbered(0, 3000, 500)
		file.row = func(b *array.RecordBuilder, i int) {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			b.Field(1).(*array.StringBuilder).Append(text)
		}
		b.add(fmt.Sprint("/f", f), file)
	}
	if got := b.rows(0, []string{"id", "text"}, nil); len(got) != 24000 {
		t.Errorf("%d rows", len(got))
	}
	if peak := b.pool.Peak(); peak > 16<<20 {
		t.Errorf("%d bytes were charged at a time", peak)
	}
}

func TestMetadataColumns(t *testing.T) {
	b := newBench(t, mem.Unlimited, idAndText)
	b.batchRows = 3
	b.add("/plain", numbered(0, 5, 2))
	identity := b.add("/identity", numbered(0, 5, 2))
	identity.Data.SpecID, identity.Data.Partition = 1, []iceberg.Literal{iceberg.Int64Literal(77)}
	bucket := b.add("file:/bucket", numbered(0, 5, 2))
	bucket.Data.SpecID, bucket.Data.Partition = 2, []iceberg.Literal{iceberg.Int32Literal(3), nil}
	first := int64(500)
	bucket.Data.FirstRowID, bucket.Data.DataSequence = &first, 8

	got := b.rows(0, []string{"_partition", "_file", "_pos", "_spec_id", "id", "_row_id", "_last_updated_sequence_number"},
		expr.In("id", iceberg.Int64Literal(1), iceberg.Int64Literal(4)))
	want := []string{
		`{"id":null,"id_bucket":null} /plain 1 0 1 (null) (null)`,
		`{"id":null,"id_bucket":null} /plain 4 0 4 (null) (null)`,
		`{"id":77,"id_bucket":null} /identity 1 1 1 (null) (null)`,
		`{"id":77,"id_bucket":null} /identity 4 1 4 (null) (null)`,
		`{"id":null,"id_bucket":3} file:/bucket 1 2 1 501 8`,
		`{"id":null,"id_bucket":3} file:/bucket 4 2 4 504 8`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStoredLineage checks that stored lineage stands and only its nulls
// inherit.
func TestStoredLineage(t *testing.T) {
	b := newBench(t, mem.Unlimited, idAndText)
	file := &memoryFile{rows: 3, batch: 3, schema: arrow.NewSchema([]arrow.Field{
		field(1, "id", arrow.PrimitiveTypes.Int64),
		field(iceberg.RowIDFieldID, "_row_id", arrow.PrimitiveTypes.Int64),
		field(iceberg.LastUpdatedSequenceNumberFieldID, "_last_updated_sequence_number", arrow.PrimitiveTypes.Int64),
	}, nil), row: func(b *array.RecordBuilder, i int) {
		for c := range 3 {
			if c > 0 && i == c {
				b.Field(c).AppendNull()
			} else {
				b.Field(c).(*array.Int64Builder).Append(int64(100*c + i))
			}
		}
	}}
	task := b.add("/f", file)
	first := int64(7000)
	task.Data.FirstRowID, task.Data.DataSequence = &first, 9
	got := b.rows(0, []string{"id", "_row_id", "_last_updated_sequence_number"}, nil)
	if want := []string{"0 100 200", "1 7001 201", "2 102 9"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestIdentityPartitionValue checks that a column that a file leaves out takes
// the value of its partition, in the result and in the filter.
func TestIdentityPartitionValue(t *testing.T) {
	b := newBench(t, mem.Unlimited, idAndText)
	for i, value := range []iceberg.Literal{iceberg.Int64Literal(5), nil, iceberg.Int64Literal(6)} {
		task := b.add(fmt.Sprint("/f", i), &memoryFile{rows: 2, batch: 2,
			schema: arrow.NewSchema([]arrow.Field{field(2, "text", arrow.BinaryTypes.String)}, nil),
			row:    func(b *array.RecordBuilder, i int) { b.Field(0).(*array.StringBuilder).Append(fmt.Sprint(i)) }})
		task.Data.SpecID, task.Data.Partition = 1, []iceberg.Literal{value}
	}
	got := b.rows(0, nil, expr.Or(expr.IsNull("id"), expr.Compare(expr.OpEq, "id", iceberg.Int64Literal(6))))
	if want := []string{"(null) 0", "(null) 1", "6 0", "6 1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestKeyAndFilterOfOneColumn reads an old snapshot whose schema has a column
// as int while delete keys have it as long: filter and deletes each get their
// type.
func TestKeyAndFilterOfOneColumn(t *testing.T) {
	for _, nested := range []bool{false, true} {
		column, was, is := "k", `{"id":1,"name":"k","required":false,"type":"int"}`, `{"id":1,"name":"k","required":false,"type":"long"}`
		stored := field(1, "k", arrow.PrimitiveTypes.Int32)
		if nested {
			column = "s.k"
			wrap := func(f string) string {
				return `{"id":5,"name":"s","required":false,"type":{"type":"struct","fields":[` + f + `,{"id":6,"name":"o","required":false,"type":"int"}]}}`
			}
			was, is = wrap(was), wrap(is)
			stored = field(5, "s", arrow.StructOf(stored, field(6, "o", arrow.PrimitiveTypes.Int32)))
		}
		b := newBench(t, mem.Unlimited, was, is)
		appendKey := func(builder array.Builder, value int32) {
			if s, ok := builder.(*array.StructBuilder); ok {
				s.Append(true)
				s.FieldBuilder(1).(*array.Int32Builder).Append(-value)
				builder = s.FieldBuilder(0)
			}
			builder.(*array.Int32Builder).Append(value)
		}
		task := b.add("/f", &memoryFile{rows: 10, batch: 4, schema: arrow.NewSchema([]arrow.Field{stored}, nil),
			row: func(b *array.RecordBuilder, i int) { appendKey(b.Field(0), int32(i)) }})
		b.files["/e"] = &memoryFile{rows: 3, batch: 3, schema: arrow.NewSchema([]arrow.Field{stored}, nil),
			row: func(b *array.RecordBuilder, i int) { appendKey(b.Field(0), int32(2*i)) }}
		task.Deletes = []*plan.File{{Content: plan.EqualityDeletes, Path: "/e", Format: "orc", EqualityIDs: []int{1}, DataSequence: 2, FileSequence: 2, RecordCount: 3}}
		filter := expr.Compare(expr.OpLt, column, iceberg.Int32Literal(7))
		want := []string{"1", "3", "5", "6"}
		if nested {
			for i, k := range want {
				want[i] = fmt.Sprintf(`{"k":%s,"o":-%s}`, k, k)
			}
		}
		for schema := range 2 {
			if got := b.rows(schema, nil, filter); !slices.Equal(got, want) {
				t.Errorf("nested %v, schema %d: got %v, want %v", nested, schema, got, want)
			}
		}
	}
}
