package scan_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/project"
	"github.com/icebergexec/icebergexec/engine/scan"
)

var ctx = context.Background()

// bench scans tables whose files exist only in memory: a host reader "decodes"
// them, so that tests choose rows and batches freely.
type bench struct {
	t     *testing.T
	alloc *memory.CheckedAllocator
	pool  *mem.Pool
	table *meta.Table
	files map[string]*memoryFile
	tasks []*plan.Task

	threads    int
	batchRows  int
	batchBytes int64
	limit      *int64
}

// memoryFile is a file of n rows, made while it is read.
type memoryFile struct {
	schema *arrow.Schema
	rows   int // in all
	batch  int // rows of each batch
	row    func(b *array.RecordBuilder, i int)
	fail   func(i int) error // nil: never; called at each batch with its first row
}

const specs = `[{"spec-id":0,"fields":[]},
	{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"transform":"identity","name":"id"}]},
	{"spec-id":2,"fields":[{"source-id":1,"field-id":1001,"transform":"bucket[4]","name":"id_bucket"},{"source-id":1,"field-id":1000,"transform":"void","name":"id"}]}]`

// newBench makes a table with the given schemas, each the JSON of its fields;
// the last is the current one.
func newBench(t *testing.T, memoryLimit int64, schemas ...string) *bench {
	t.Helper()
	enginetest.NoLeaks(t)
	var all []string
	for i, fields := range schemas {
		all = append(all, fmt.Sprintf(`{"type":"struct","schema-id":%d,"fields":[%s]}`, i, fields))
	}
	document := fmt.Sprintf(`{"format-version":3,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"/t",
		"last-sequence-number":9,"next-row-id":0,"last-updated-ms":1,"last-column-id":99,"current-schema-id":%d,"schemas":[%s],
		"default-spec-id":0,"partition-specs":%s,"last-partition-id":1001,
		"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}]}`, len(schemas)-1, strings.Join(all, ","), specs)
	table, err := meta.Parse([]byte(document), "/t/m.json")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		t: t, alloc: memory.NewCheckedAllocator(memory.DefaultAllocator), pool: mem.NewPool("engine", memoryLimit),
		table: table, files: map[string]*memoryFile{}, threads: 2, batchRows: 100, batchBytes: 1 << 20,
	}
	t.Cleanup(func() {
		if err := b.pool.Close(); err != nil {
			t.Error(err)
		}
		b.alloc.AssertSize(t, 0)
	})
	return b
}

// field is an Arrow field with an id.
func field(id int, name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true, Metadata: arrow.NewMetadata([]string{project.FieldIDKey}, []string{fmt.Sprint(id)})}
}

// add adds a data file.
func (b *bench) add(path string, f *memoryFile) *plan.Task {
	b.files[path] = f
	task := &plan.Task{Data: &plan.File{Path: path, Format: "orc", RecordCount: int64(f.rows), Size: 1000, DataSequence: 1, FileSequence: 1}}
	b.tasks = append(b.tasks, task)
	return task
}

func (b *bench) host(_ context.Context, location, format string, _ []int) (batch.Stream, error) {
	f := b.files[location]
	if f == nil {
		return nil, errs.New(errs.NotFound, "no such file")
	}
	if format != "ORC" {
		return nil, errs.New(errs.Unsupported, "format %s", format)
	}
	return &memoryStream{file: f, alloc: b.alloc}, nil
}

type memoryStream struct {
	file  *memoryFile
	alloc memory.Allocator
	at    int
}

func (s *memoryStream) Schema() *arrow.Schema { return s.file.schema }
func (s *memoryStream) Close() error          { return nil }

func (s *memoryStream) Next(context.Context) (arrow.RecordBatch, error) {
	if s.at == s.file.rows {
		return nil, io.EOF
	}
	if s.file.fail != nil {
		if err := s.file.fail(s.at); err != nil {
			return nil, err
		}
	}
	b := array.NewRecordBuilder(s.alloc, s.file.schema)
	defer b.Release()
	for end := min(s.file.rows, s.at+s.file.batch); s.at < end; s.at++ {
		s.file.row(b, s.at)
	}
	return b.NewRecordBatch(), nil
}

type taskList struct{ tasks []*plan.Task }

func (l *taskList) Close() error { return nil }

func (l *taskList) Next(context.Context) (*plan.Task, error) {
	if len(l.tasks) == 0 {
		return nil, io.EOF
	}
	next := l.tasks[0]
	l.tasks = l.tasks[1:]
	return next, nil
}

// scan starts a scan of columns of a schema.
func (b *bench) scan(schemaID int, columns []string, filter *expr.Expr) *scan.Scan {
	b.t.Helper()
	schema, _ := b.table.SchemaByID(schemaID)
	selection, err := scan.Select(b.table, schema, columns, true, project.ArrowOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var bound *expr.Bound
	if filter != nil {
		if bound, err = filter.Bind(schema, true); err != nil {
			b.t.Fatal(err)
		}
	}
	tasks := make([]*plan.Task, len(b.tasks))
	for i, t := range b.tasks {
		copied := *t
		copied.Residual = bound
		tasks[i] = &copied
	}
	return scan.New(ctx, scan.Config{
		Plan:  func(context.Context) (scan.Tasks, error) { return &taskList{tasks}, nil },
		Table: b.table, Schema: schema, Selection: selection, Filter: bound, Limit: b.limit,
		FS: fileio.NewLocal(), Pool: b.pool, Alloc: b.alloc, Host: b.host,
		Workers: b.threads, BatchRows: b.batchRows, BatchBytes: b.batchBytes,
	})
}

// rows drains and closes a scan, and renders its rows.
func rows(s *scan.Scan) (out []string, err error) {
	defer func() { err = errors.Join(err, s.Close()) }()
	for {
		record, err := s.Next(ctx)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for i := range int(record.NumRows()) {
			var values []string
			for _, column := range record.Columns() {
				values = append(values, column.ValueStr(i))
			}
			out = append(out, strings.Join(values, " "))
		}
		record.Release()
	}
}

func (b *bench) rows(schemaID int, columns []string, filter *expr.Expr) []string {
	b.t.Helper()
	got, err := rows(b.scan(schemaID, columns, filter))
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}
