package engine

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/task"
)

// PlanRequest says which data files of a table to list. Fields that ScanRequest
// has too mean the same.
type PlanRequest struct {
	Metadata         []byte
	MetadataLocation string

	SnapshotID *int64
	Ref        string
	AsOf       *time.Time
	// FromSnapshotID makes the plan incremental: only files that were appended
	// after this ancestor of the snapshot, without deletes; nil: all files.
	FromSnapshotID *int64

	CaseInsensitive bool
	Filter          *expr.Expr
	FilterMode      expr.Mode
	// IncludeEmptyFiles keeps data files without records.
	IncludeEmptyFiles bool
	// AllDeletes keeps equality deletes whose keys the filter excludes. Tasks
	// that are read without the filter need them.
	AllDeletes bool
	// Metrics puts the column metrics on the data files.
	Metrics bool

	MemoryLimit  int64
	PathPrefixes map[string]string
}

// source is the scan of what is planned.
func (r PlanRequest) source() ScanRequest {
	return ScanRequest{
		Metadata: r.Metadata, MetadataLocation: r.MetadataLocation, SnapshotID: r.SnapshotID, Ref: r.Ref, AsOf: r.AsOf,
		CaseInsensitive: r.CaseInsensitive, Filter: r.Filter, FilterMode: r.FilterMode,
		MemoryLimit: r.MemoryLimit, PathPrefixes: r.PathPrefixes,
	}
}

// Plan is a plan under way: tasks come as manifests are read, in the order of
// their data files in a scan. It is read either by Next or as a batch.Stream.
type Plan struct {
	stream *stream
	tasks  *planned
}

// Plan lists the data files that a scan would read, each with its deletes. It
// returns once the metadata is read and the request is checked. ctx bounds this
// call only. The caller closes the plan.
func (e *Engine) Plan(ctx context.Context, request PlanRequest) (*Plan, error) {
	if err := checkMemoryLimit(request.MemoryLimit); err != nil {
		return nil, err
	}
	p := &Plan{tasks: &planned{}}
	var err error
	p.stream, err = e.run(ctx, "plan", request.MemoryLimit, func(ctx, lifetime context.Context, s *stream) error {
		return p.open(ctx, lifetime, s, request)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Plan) open(ctx, lifetime context.Context, s *stream, request PlanRequest) error {
	source, err := s.openSource(ctx, request.source())
	if err != nil {
		return err
	}
	var after *meta.Snapshot
	if request.FromSnapshotID != nil {
		if after, err = source.table.Snapshot(*request.FromSnapshotID); err != nil {
			return err
		}
		if source.snapshot == nil {
			return errs.New(errs.InvalidArgument, "the table has no snapshot to plan up to")
		}
	}
	options := s.engine.options
	*p.tasks = planned{
		table: source.table, alloc: options.Allocator, queued: s.pool.Reserve("planned tasks"),
		batchRows: options.BatchRows, batchBytes: options.BatchBytes,
	}
	p.tasks.start(lifetime, func(ctx context.Context) (*plan.Tasks, error) {
		return plan.Plan(ctx, source.fs, s.pool, plan.Request{
			Table: source.table, Snapshot: source.snapshot, After: after,
			Filter: source.filter, Mode: request.FilterMode,
			IncludeEmptyFiles: request.IncludeEmptyFiles, AllDeletes: request.AllDeletes, AllMetrics: request.Metrics, Workers: options.Threads,
		})
	})
	s.schema, s.inner = planSchema, p.tasks
	return nil
}

// Next returns the next task, io.EOF after the last. (*plan.Task).Encode gives
// the form in which ScanRequest.Tasks takes it.
func (p *Plan) Next(ctx context.Context) (*plan.Task, error) {
	var next *plan.Task
	err := p.stream.step(ctx, func() (err error) {
		next, err = p.tasks.next(ctx)
		return err
	})
	return next, err
}

// Stream gives the tasks that Next has not returned as record batches, one row
// a data file. Closing it closes the plan.
func (p *Plan) Stream() batch.Stream { return p.stream }

// Close ends planning; idempotent.
func (p *Plan) Close() error { return p.stream.Close() }

// planSchema is documented in docs/requests.md.
var planSchema = arrow.NewSchema([]arrow.Field{
	{Name: "path", Type: arrow.BinaryTypes.String},
	{Name: "format", Type: arrow.BinaryTypes.String},
	{Name: "record_count", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "file_size_in_bytes", Type: arrow.PrimitiveTypes.Int64},
	{Name: "spec_id", Type: arrow.PrimitiveTypes.Int32},
	{Name: "partition", Type: arrow.BinaryTypes.String},
	{Name: "data_sequence_number", Type: arrow.PrimitiveTypes.Int64},
	{Name: "position_delete_files", Type: arrow.PrimitiveTypes.Int32},
	{Name: "equality_delete_files", Type: arrow.PrimitiveTypes.Int32},
	{Name: "delete_paths", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.String)},
	{Name: "read_size_in_bytes", Type: arrow.PrimitiveTypes.Int64},
	{Name: "row_count", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "task", Type: arrow.BinaryTypes.String},
}, nil)

const (
	// The first tasks are handed over one by one, so that reading can start;
	// later ones in chunks that make the hand-over cheap.
	maxPlanChunk = 64
	// planQueue bounds what planning may be ahead.
	planQueue = 4 << 20 // 4 MiB
	// Batches grow likewise: from a few files to as many as are worth a batch.
	minPlanBatch, maxPlanBatch = 64, 4096
)

// planned runs planning in the background and presents its tasks one by one or
// as batches.
type planned struct {
	table      *meta.Table
	alloc      memory.Allocator
	batchRows  int
	batchBytes int64

	queued *mem.Reservation
	chunks *task.Ordered[[]*plan.Task]
	ready  []*plan.Task
	rows   int // of the next batch
}

func (p *planned) start(ctx context.Context, open func(context.Context) (*plan.Tasks, error)) {
	begun := false
	p.rows = minPlanBatch
	p.chunks = task.NewOrdered(ctx, task.OrderedConfig[[]*plan.Task]{
		Name: "plan", Workers: 1, Queued: p.queued, QueueLimit: planQueue,
		Size: func(tasks []*plan.Task) (size int64) {
			for _, t := range tasks {
				size += t.MemorySize()
			}
			return size
		},
		Drop: func([]*plan.Task) {},
		NextJob: func(context.Context) (task.Job[[]*plan.Task], error) {
			if begun {
				return nil, io.EOF
			}
			begun = true
			return func(ctx context.Context, emit func([]*plan.Task) error) error {
				tasks, err := open(ctx)
				if err != nil {
					return err
				}
				err = emitChunks(ctx, tasks, emit)
				if closeErr := tasks.Close(); err == nil {
					err = closeErr
				}
				return err
			}, nil
		},
	})
}

func emitChunks(ctx context.Context, tasks *plan.Tasks, emit func([]*plan.Task) error) error {
	for size := 1; ; size = min(2*size, maxPlanChunk) {
		chunk := make([]*plan.Task, 0, size)
		for len(chunk) < size {
			t, err := tasks.Next(ctx)
			if err == io.EOF {
				if len(chunk) == 0 {
					return nil
				}
				return emit(chunk)
			}
			if err != nil {
				return err
			}
			chunk = append(chunk, t)
		}
		if err := emit(chunk); err != nil {
			return err
		}
	}
}

// peek makes sure that a task is ready.
func (p *planned) peek(ctx context.Context) error {
	for len(p.ready) == 0 {
		chunk, err := p.chunks.Next(ctx)
		if err != nil {
			return err
		}
		p.ready = chunk
	}
	return nil
}

func (p *planned) next(ctx context.Context) (*plan.Task, error) {
	if err := p.peek(ctx); err != nil {
		return nil, err
	}
	t := p.ready[0]
	p.ready = p.ready[1:]
	return t, nil
}

// Schema implements batch.Stream.
func (p *planned) Schema() *arrow.Schema { return planSchema }

// Next implements batch.Stream. The tasks taken when ctx ends come back with the
// next call.
func (p *planned) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := p.peek(ctx); err != nil {
		return nil, err
	}
	builder := array.NewRecordBuilder(p.alloc, planSchema)
	defer builder.Release()
	size, most := int64(0), min(p.rows, p.batchRows)
	for rows := 0; rows < most && size < p.batchBytes; rows++ {
		// What is there already makes a batch; it does not wait for more than
		// the rest of a batch, and an error comes after the rows before it.
		if rows > 0 && p.peek(ctx) != nil {
			break
		}
		t := p.ready[0]
		n, err := p.appendTask(builder, t)
		if err != nil {
			return nil, err
		}
		p.ready = p.ready[1:]
		size += n
	}
	p.rows = min(2*p.rows, maxPlanBatch)
	return builder.NewRecordBatch(), nil
}

// appendTask adds a row and tells its size.
func (p *planned) appendTask(b *array.RecordBuilder, t *plan.Task) (int64, error) {
	text, err := t.Encode()
	if err != nil {
		return 0, err
	}
	f := t.Data
	partition, err := p.partition(f)
	if err != nil {
		return 0, err
	}
	size := int64(len(text) + len(f.Path) + len(partition))
	b.Field(0).(*array.StringBuilder).Append(f.Path)
	b.Field(1).(*array.StringBuilder).Append(f.Format)
	appendCount(b.Field(2), f.RecordCount, f.RecordCount >= 0)
	b.Field(3).(*array.Int64Builder).Append(f.Size)
	b.Field(4).(*array.Int32Builder).Append(int32(f.SpecID))
	b.Field(5).(*array.StringBuilder).Append(partition)
	b.Field(6).(*array.Int64Builder).Append(f.DataSequence)
	positions, equality := int32(0), int32(0)
	list := b.Field(9).(*array.ListBuilder)
	list.Append(true)
	for _, d := range t.Deletes {
		if d.Content == plan.EqualityDeletes {
			equality++
		} else {
			positions++
		}
		list.ValueBuilder().(*array.StringBuilder).Append(d.Path)
		size += int64(len(d.Path))
	}
	b.Field(7).(*array.Int32Builder).Append(positions)
	b.Field(8).(*array.Int32Builder).Append(equality)
	b.Field(10).(*array.Int64Builder).Append(t.ReadSize())
	count, known := t.Count()
	appendCount(b.Field(11), count, known)
	b.Field(12).(*array.StringBuilder).BinaryBuilder.Append(text)
	return size, nil
}

func appendCount(b array.Builder, n int64, known bool) {
	if known {
		b.(*array.Int64Builder).Append(n)
	} else {
		b.AppendNull()
	}
}

// partition is the file's partition as a JSON object by field name.
func (p *planned) partition(f *plan.File) (string, error) {
	spec, ok := p.table.SpecByID(f.SpecID)
	if !ok {
		return "", errs.At(errs.Corrupt, "plan", f.Path, "its partition spec %d is not in the table metadata", f.SpecID)
	}
	text := []byte{'{'}
	for i, value := range f.Partition {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(spec.Field(i).Name)
		if err != nil {
			return "", errs.WrapAs(errs.Internal, err, "plan", f.Path)
		}
		text = append(append(append(text, name...), ':'), plan.EncodeLiteral(value)...)
	}
	return string(append(text, '}')), nil
}

// Close implements batch.Stream.
func (p *planned) Close() error {
	err := p.chunks.Close()
	p.ready = nil
	p.queued.Free()
	return err
}

// given are tasks that a request holds.
type given struct{ tasks []*plan.Task }

// decodeTasks reads the tasks of a request, charged to held.
func decodeTasks(texts []json.RawMessage, source *source, mode expr.Mode, held *mem.Reservation) (*given, error) {
	// By spec: the filter of partitions, from which residuals follow.
	filters := map[int]*expr.PartitionFilter{}
	g := &given{}
	for i, text := range texts {
		t, err := plan.Decode(text, source.table)
		if err != nil {
			return nil, errs.New(errs.InvalidArgument, "tasks[%d]: %v", i, err)
		}
		if err := held.TryGrow(t.MemorySize()); err != nil {
			return nil, err
		}
		if source.filter != nil {
			id := t.Data.SpecID
			if filters[id] == nil {
				spec, _ := source.table.SpecByID(id) // Decode has found it
				filters[id] = source.filter.Partition(mode, spec)
			}
			if !filters[id].MayMatch(t.Data.Partition) {
				continue
			}
			t.Residual = filters[id].Residual(t.Data.Partition)
		}
		g.tasks = append(g.tasks, t)
	}
	return g, nil
}

// Next implements scan.Tasks.
func (g *given) Next(context.Context) (*plan.Task, error) {
	if len(g.tasks) == 0 {
		return nil, io.EOF
	}
	t := g.tasks[0]
	g.tasks = g.tasks[1:]
	return t, nil
}

// Close implements scan.Tasks.
func (g *given) Close() error { return nil }
