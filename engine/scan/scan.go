// Package scan turns the tasks of a plan into one ordered stream of batches.
//
//	Tasks.Next --> jobs: one data file, or a few row groups of a large one
//	                 |  run by several workers, each window of rows by itself:
//	                 |
//	                 |   positions   deleted positions leave the mask, no column needed
//	                 |   keys        key columns of all rows --> equality deletes leave
//	                 |   filter      filter columns of all rows --> rows that do not match leave
//	                 |   payload     the other columns, kept rows only
//	                 |   project     table types, absent columns, metadata columns
//	                 |   gather      small results become batches of useful size
//	                 v
//	task.Ordered: batches in task order; waiting bytes are charged
//	                 v
//	Scan.Next: limit
//
// A window's size follows the bytes that the rows before it took, so that wide
// rows come in small windows and memory stays bounded by bytes, not by rows.
package scan

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/datafile"
	"github.com/icebergexec/icebergexec/engine/deletes"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/task"
	"github.com/icebergexec/icebergexec/spill"
)

// Tasks yields the tasks of a plan in order, and io.EOF after the last. Next is
// called by one goroutine at a time.
type Tasks interface {
	Next(ctx context.Context) (*plan.Task, error)
	Close() error
}

// Config says what to scan and how. All fields are required unless they say
// otherwise.
type Config struct {
	// Plan makes the tasks. It is called once, by the first job; the scan closes
	// the result.
	Plan  func(ctx context.Context) (Tasks, error)
	Table *meta.Table
	// Schema is what Filter is bound to.
	Schema *iceberg.Schema
	// Selection are the columns of the result.
	Selection *Selection
	// Filter keeps the rows that match in Mode; nil: all.
	Filter *expr.Bound
	Mode   expr.Mode
	// Limit is how many rows to return at most; nil: all.
	Limit *int64

	FS    fileio.FS
	Pool  *mem.Pool
	Alloc memory.Allocator
	// Host reads formats that the engine does not; may be nil.
	Host datafile.HostReader
	// Spill opens the directory for deletes that do not fit in memory; nil
	// refuses them with MemoryLimit.
	Spill func(ctx context.Context) (*spill.Dir, error)
	// AlwaysSpill sends all deletes that can spill to disk. For tests.
	AlwaysSpill bool
	// Workers is how many jobs run at a time at most.
	Workers int
	// BatchRows and BatchBytes bound a batch, except that one row may be larger.
	BatchRows  int
	BatchBytes int64
}

const (
	// queueShare is what each worker may be ahead of the consumer: half a large
	// row group, which keeps every worker busy while the jobs before its own are
	// consumed.
	queueShare = 32 << 20 // 32 MiB
	// A read of minReadSize still costs little against decoding it; one of
	// maxReadSize makes the round trip to remote storage cheap.
	minReadSize = 64 << 10 // 64 KiB
	maxReadSize = 1 << 20  // 1 MiB
)

// splitSize is the size from which a file is read by several jobs. Below,
// opening it once more costs more than the order of the output gains. Tests
// lower it.
var splitSize int64 = 8 << 20 // 8 MiB

// Scan is a batch.Stream.
type Scan struct {
	cfg     Config
	ctx     context.Context // of everything that outlives one Next
	schemas []*iceberg.Schema
	left    int64 // rows that may still be returned

	readSize   int   // of one column at a time
	queueLimit int64 // of all batches that wait

	resolver  *deletes.Resolver
	decoding  *mem.Pool // what parts use
	queued    *mem.Reservation
	admission *admission
	tasks     Tasks
	jobs      *task.Ordered[found]
	parts     []*part // of the task that is being handed out
	begun     bool    // a part has been handed out

	varies bool // whether columns can come with either width of offsets
	large  largeFields

	err    error // sticky
	closed bool
}

// New makes a scan that starts with the first Next. ctx bounds its whole life.
func New(ctx context.Context, cfg Config) *Scan {
	s := &Scan{cfg: cfg, ctx: ctx, left: int64(1) << 62}
	if cfg.Limit != nil {
		s.left = *cfg.Limit
	}
	s.varies = variesInOffsets(cfg.Selection.stored.Fields())
	limit := cfg.Pool.Limit()
	s.cfg.BatchBytes = min(cfg.BatchBytes, limit/int64(8*s.cfg.Workers))
	share := limit / int64(s.cfg.Workers)
	s.readSize = int(max(minReadSize, min(share/256, maxReadSize)))
	s.queueLimit = min(limit/4, int64(s.cfg.Workers)*queueShare)
	s.schemas = cfg.Table.Schemas()
	slices.SortStableFunc(s.schemas, func(a, b *iceberg.Schema) int { return b.ID - a.ID })
	return s
}

// Schema implements batch.Stream.
func (s *Scan) Schema() *arrow.Schema { return s.cfg.Selection.Schema }

// start makes what Next draws from. Planning is the first job's work, so that a
// Next with a deadline need not wait for it.
func (s *Scan) start() {
	s.resolver = deletes.NewResolver(deletes.Config{
		FS: s.cfg.FS, Pool: s.cfg.Pool, Alloc: s.cfg.Alloc, Table: s.cfg.Table, Workers: s.cfg.Workers,
		Open:  func(ctx context.Context, f *plan.File) (deletes.DeleteFile, error) { return s.open(ctx, f, s.cfg.Pool) },
		Spill: s.cfg.Spill, ReadKeys: s.readKeys, NextTask: s.nextTask, AlwaysSpill: s.cfg.AlwaysSpill,
	})
	s.queued = s.cfg.Pool.ReserveAhead("queued batches")
	s.decoding = s.cfg.Pool.Child("decoding", 0)
	s.admission = newAdmission(s.cfg.Pool, s.decoding, s.queued, s.queueLimit)
	s.jobs = task.NewOrdered(s.ctx, task.OrderedConfig[found]{
		Name: "scan", Workers: s.cfg.Workers,
		Queued: s.queued, QueueLimit: s.queueLimit,
		Size: func(f found) int64 { return batch.RecordBytes(f.record) }, Drop: func(f found) { f.record.Release() },
		NextJob: s.nextJob,
	})
}

func (s *Scan) open(ctx context.Context, f *plan.File, pool *mem.Pool) (datafile.File, error) {
	return datafile.Open(ctx, f.Path, f.Format, datafile.Options{
		FS: s.cfg.FS, Alloc: s.cfg.Alloc, Pool: pool, Host: s.cfg.Host,
		BatchRows: s.cfg.BatchRows, ReadSize: s.readSize,
	})
}

// nextJob hands out the parts of one task after the other.
func (s *Scan) nextJob(ctx context.Context) (task.Job[found], error) {
	if len(s.parts) == 0 {
		t, err := s.resolver.NextTask(ctx)
		if err != nil {
			return nil, err
		}
		if s.parts, err = s.split(ctx, t); err != nil {
			return nil, err
		}
	}
	next := s.parts[0]
	if err := s.admission.enter(ctx, next.need); err != nil {
		return nil, err
	}
	s.parts = s.parts[1:]
	next.first, s.begun = !s.begun, true
	return next.run, nil
}

// nextTask draws the plan. The resolver calls it, which may look ahead.
func (s *Scan) nextTask(ctx context.Context) (*plan.Task, error) {
	if s.tasks == nil {
		var err error
		if s.tasks, err = s.cfg.Plan(ctx); err != nil {
			return nil, err
		}
	}
	return s.tasks.Next(ctx)
}

// split cuts a large file into parts of whole row groups. The file is opened
// here then, and shared by the parts.
func (s *Scan) split(ctx context.Context, t *plan.Task) ([]*part, error) {
	// Key columns are known only when the deletes are read; there are few.
	columns := leafCount(s.cfg.Selection.stored.Fields()) + len(t.Residual.FieldIDs())
	whole := part{scan: s, task: t, need: partNeed(columns, t.Data.Size, s.cfg.BatchBytes)}
	if t.Data.Size < splitSize || s.cfg.Workers == 1 {
		return []*part{&whole}, nil
	}
	file, err := s.open(ctx, t.Data, s.decoding)
	if err != nil {
		return nil, err
	}
	shared := &sharedFile{File: file}
	splitter, ok := file.(datafile.Splitter)
	if !ok {
		whole.file = shared.retain()
		return []*part{&whole}, nil
	}
	var parts []*part
	for _, r := range joinParts(splitter.Parts(), t.Data.Size) {
		p := whole
		p.file, p.ranges = shared.retain(), []batch.Range{r}
		parts = append(parts, &p)
	}
	if len(parts) == 0 { // no rows
		whole.file = shared.retain()
		parts = append(parts, &whole)
	}
	return parts, nil
}

// joinParts joins neighbouring row groups until they have about half the
// splitSize of a file of size bytes: small ones are not worth a job each.
func joinParts(parts []batch.Range, size int64) []batch.Range {
	if len(parts) == 0 {
		return nil
	}
	rows := parts[len(parts)-1].End
	least := int64(float64(rows) * float64(splitSize/2) / float64(size))
	var joined []batch.Range
	for _, r := range parts {
		if last := len(joined) - 1; last >= 0 && joined[last].Len() < least {
			joined[last].End = r.End
		} else {
			joined = append(joined, r)
		}
	}
	return joined
}

// Next implements batch.Stream. An error of ctx itself ends the wait only.
func (s *Scan) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.closed {
		return nil, errs.New(errs.Cancelled, "the scan is closed")
	}
	record, err := s.next(ctx)
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Cause(ctx))) {
		s.err = err
	}
	return record, err
}

func (s *Scan) next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.left <= 0 {
		return nil, io.EOF
	}
	if s.jobs == nil {
		s.start()
	}
	next, err := s.jobs.Next(ctx)
	if err != nil {
		return nil, err
	}
	s.large.add(next.large)
	record := next.record
	if record.NumRows() > s.left {
		whole := record
		record = whole.NewSlice(0, s.left)
		whole.Release()
	}
	if s.left -= record.NumRows(); s.left == 0 {
		// Nothing more will be asked for: stop the workers now.
		if err := s.jobs.Close(); err != nil {
			record.Release()
			return nil, err
		}
	}
	return record, nil
}

// Close implements batch.Stream.
func (s *Scan) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if s.jobs != nil {
		keep(s.jobs.Close())
		s.queued.Free()
	}
	for _, p := range s.parts {
		keep(p.file.release())
	}
	s.parts = nil
	if s.resolver != nil {
		keep(s.resolver.Close())
	}
	if s.tasks != nil {
		keep(s.tasks.Close())
	}
	if s.decoding != nil {
		keep(s.decoding.Close())
	}
	return first
}
