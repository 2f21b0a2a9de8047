package plan

import (
	"context"
	"io"
	"unsafe"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/engine/task"
)

const (
	// chunkTasks is how many tasks travel together from a manifest's reader:
	// enough to make the hand-over cheap, few enough for the first to come at once.
	chunkTasks = 64
	// queueLimit bounds the tasks that wait to be taken.
	queueLimit = 8 << 20 // 8 MiB
)

// Request says what to plan.
type Request struct {
	Table *meta.Table
	// Snapshot is the state to read; nil, a table without snapshots, gives no tasks.
	Snapshot *meta.Snapshot
	// After makes an incremental plan: only files appended after this ancestor
	// of Snapshot, up to and including Snapshot, without deletes.
	After *meta.Snapshot
	// Filter prunes files and leaves residuals; nil keeps all.
	Filter *expr.Bound
	Mode   expr.Mode
	// IncludeEmptyFiles keeps data files with no records.
	IncludeEmptyFiles bool
	// AllDeletes keeps equality deletes whose keys the filter excludes, for a
	// reader of the tasks that reads more rows than the filter matches.
	AllDeletes bool
	// AllMetrics puts all column metrics on the data files of tasks.
	AllMetrics bool
	// Workers is how many manifests are read at a time; 0 is 1.
	Workers int
}

// Plan starts planning. It returns when the delete manifests are read; data
// manifests are read as tasks are taken. The caller closes the result.
func Plan(ctx context.Context, fs fileio.FS, pool *mem.Pool, req Request) (*Tasks, error) {
	p := &planner{fs: fs, req: req, decoder: recordDecoder{pool: pool}, filters: map[int]*expr.PartitionFilter{}}
	t := &Tasks{listHeld: pool.Reserve("manifest list"), indexHeld: pool.Reserve("delete index"), queued: pool.Reserve("planned tasks")}
	if err := p.start(ctx, t); err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

// Tasks is a plan under way. It is used by one goroutine at a time.
type Tasks struct {
	chunks                      *task.Ordered[chunk]
	listHeld, indexHeld, queued *mem.Reservation
	ready                       []*Task
}

type chunk struct {
	tasks []*Task
	size  int64
}

// Next returns the next task, io.EOF after the last. An error is sticky.
func (t *Tasks) Next(ctx context.Context) (*Task, error) {
	for len(t.ready) == 0 {
		if t.chunks == nil {
			return nil, io.EOF
		}
		c, err := t.chunks.Next(ctx)
		if err != nil {
			return nil, err
		}
		t.ready = c.tasks
	}
	next := t.ready[0]
	t.ready[0] = nil
	t.ready = t.ready[1:]
	return next, nil
}

// Close ends planning; idempotent.
func (t *Tasks) Close() error {
	var err error
	if t.chunks != nil {
		err = t.chunks.Close()
	}
	t.ready = nil
	for _, held := range []*mem.Reservation{t.listHeld, t.indexHeld, t.queued} {
		held.Free()
	}
	return err
}

// planner is what the readers of manifests share.
type planner struct {
	fs      fileio.FS
	req     Request
	decoder decoder
	filters map[int]*expr.PartitionFilter // by spec id, when there is a filter
	index   *deleteIndex
	// appended are the snapshots of an incremental plan; else nil.
	appended map[int64]bool
}

func (p *planner) start(ctx context.Context, t *Tasks) error {
	p.index = newDeleteIndex(p.req.Table, t.indexHeld)
	if p.req.Snapshot == nil {
		return nil
	}
	if p.req.Filter != nil {
		for _, spec := range p.req.Table.Specs() {
			p.filters[spec.ID()] = p.req.Filter.Partition(p.req.Mode, &spec)
		}
	}
	manifests, err := p.manifests(ctx)
	if err != nil {
		return err
	}
	size := int64(0)
	for i := range manifests {
		size += manifests[i].memorySize()
	}
	if err := t.listHeld.TryGrow(size); err != nil {
		return err
	}
	var data, deletes []*manifest
	for i := range manifests {
		m := &manifests[i]
		switch {
		case m.hasNoLiveFiles() || !p.mayMatch(m):
		case m.deletes:
			deletes = append(deletes, m)
		default:
			data = append(data, m)
		}
	}
	if len(data) == 0 {
		return nil
	}
	if p.appended == nil {
		if err := p.readDeletes(ctx, deletes, t.queued); err != nil {
			return err
		}
	}
	t.chunks = task.NewOrdered(ctx, task.OrderedConfig[chunk]{
		Name: "read data manifests", Workers: min(max(p.req.Workers, 1), len(data)),
		Queued: t.queued, QueueLimit: queueLimit,
		Size: func(c chunk) int64 { return c.size }, Drop: func(chunk) {},
		NextJob: jobs(data, p.readData),
	})
	return nil
}

// jobs makes one job of each manifest.
func jobs[T any](manifests []*manifest, read func(context.Context, *manifest, func(T) error) error) func(context.Context) (task.Job[T], error) {
	return func(context.Context) (task.Job[T], error) {
		if len(manifests) == 0 {
			return nil, io.EOF
		}
		m := manifests[0]
		manifests = manifests[1:]
		return func(ctx context.Context, emit func(T) error) error { return read(ctx, m, emit) }, nil
	}
}

// manifests lists the snapshot's manifests, of an incremental plan only those
// that hold appended files.
func (p *planner) manifests(ctx context.Context) ([]manifest, error) {
	if p.req.After == nil {
		return readManifests(ctx, p.fs, p.decoder, p.req.Snapshot)
	}
	var found []manifest
	p.appended = map[int64]bool{}
	for s := p.req.Snapshot; s.ID != p.req.After.ID; {
		if s.Operation() == "append" {
			p.appended[s.ID] = true
			all, err := readManifests(ctx, p.fs, p.decoder, s)
			if err != nil {
				return nil, err
			}
			var own []manifest
			for _, m := range all {
				if !m.deletes && m.snapshotID == s.ID {
					own = append(own, m)
				}
			}
			found = append(own, found...) // oldest snapshot first
		}
		if s.ParentID == nil {
			return nil, errs.New(errs.InvalidArgument, "snapshot %d is not an ancestor of snapshot %d", p.req.After.ID, p.req.Snapshot.ID)
		}
		var err error
		if s, err = p.req.Table.Snapshot(*s.ParentID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// mayMatch judges a manifest by its partition summaries. Delete manifests of
// an unpartitioned spec have none, and are kept.
func (p *planner) mayMatch(m *manifest) bool {
	f := p.filters[m.specID]
	return f == nil || f.MayMatchSummaries(m.summaries)
}

// readDeletes fills the index.
func (p *planner) readDeletes(ctx context.Context, manifests []*manifest, queued *mem.Reservation) error {
	if len(manifests) == 0 {
		return nil
	}
	read := func(ctx context.Context, m *manifest, emit func([]*File) error) error {
		var files []*File
		want := statistics{ids: map[int]bool{filePathID: true}, keys: true}
		err := readEntries(ctx, p.fs, p.decoder, p.req.Table, m, want, func(e *entry) error {
			if !p.deleteMayMatch(&e.file) {
				return nil
			}
			if files = append(files, &e.file); len(files) < chunkTasks {
				return nil
			}
			full := files
			files = nil
			return emit(full)
		})
		if err != nil || len(files) == 0 {
			return err
		}
		return emit(files)
	}
	chunks := task.NewOrdered(ctx, task.OrderedConfig[[]*File]{
		Name: "read delete manifests", Workers: min(max(p.req.Workers, 1), len(manifests)),
		Queued: queued, QueueLimit: queueLimit,
		Size: func(files []*File) (size int64) {
			for _, f := range files {
				size += fileSize(f)
			}
			return size
		},
		Drop:    func([]*File) {},
		NextJob: jobs(manifests, read),
	})
	defer chunks.Close()
	for {
		files, err := chunks.Next(ctx)
		if err == io.EOF {
			p.index.build()
			return nil
		}
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := p.index.add(f); err != nil {
				return errs.Wrap(err, "plan", p.req.Table.Location)
			}
		}
	}
}

// deleteMayMatch reports whether a delete file may delete a row that the
// filter matches. Its partition decides for data of the same partition, its
// key columns for all.
func (p *planner) deleteMayMatch(f *File) bool {
	if p.req.Filter == nil {
		return true
	}
	spec, _ := p.req.Table.SpecByID(f.SpecID)
	if !spec.IsUnpartitioned() && !p.filters[f.SpecID].MayMatch(f.Partition) {
		return false
	}
	if f.Content != EqualityDeletes || p.req.AllDeletes {
		return true
	}
	keys := map[int]bool{}
	for _, id := range f.EqualityIDs {
		keys[id] = true
	}
	metrics := f.exprMetrics()
	column := metrics.Column
	metrics.Column = func(id int) expr.ColumnMetrics {
		if !keys[id] {
			return expr.ColumnMetrics{}
		}
		return column(id)
	}
	return p.req.Filter.MayMatch(p.req.Mode, metrics)
}

// readData emits the tasks of one data manifest.
func (p *planner) readData(ctx context.Context, m *manifest, emit func(chunk) error) error {
	want := statistics{all: p.req.AllMetrics, ids: p.wantedMetrics()}
	var c chunk
	err := readEntries(ctx, p.fs, p.decoder, p.req.Table, m, want, func(e *entry) error {
		if p.appended != nil && (e.status != statusAdded || !p.appended[e.file.SnapshotID]) {
			return nil
		}
		if e.partition.facts == nil {
			e.partition.facts = p.facts(&e.file)
		}
		t, size, err := p.task(&e.file, e.partition.facts)
		if t == nil || err != nil {
			return err
		}
		c.tasks = append(c.tasks, t)
		c.size += size
		if len(c.tasks) < chunkTasks {
			return nil
		}
		full := c
		c = chunk{}
		return emit(full)
	})
	if err != nil || len(c.tasks) == 0 {
		return err
	}
	return emit(c)
}

// wantedMetrics are the columns whose metrics pruning can use.
func (p *planner) wantedMetrics() map[int]bool {
	ids := map[int]bool{}
	for id := range p.index.keyIDs {
		ids[id] = true
	}
	for _, id := range p.req.Filter.FieldIDs() {
		ids[id] = true
	}
	return ids
}

// task makes the task of a data file, nil when no row of it can match, and
// tells the memory that it takes.
func (p *planner) task(f *File, facts *partitionFacts) (*Task, int64, error) {
	if !facts.mayMatch || f.RecordCount == 0 && !p.req.IncludeEmptyFiles {
		return nil, 0, nil
	}
	t := &Task{Data: f, Residual: facts.residual}
	if t.Residual != nil && f.RecordCount != 0 {
		metrics := f.exprMetrics()
		if !t.Residual.MayMatch(p.req.Mode, metrics) {
			return nil, 0, nil
		}
		if t.Residual.MustMatch(p.req.Mode, metrics) {
			t.Residual = nil
		}
	}
	deletes, size, err := p.index.find(f, facts.scope)
	if err != nil {
		return nil, 0, errs.Wrap(err, "plan", p.req.Table.Location)
	}
	t.Deletes = deletes
	if !p.req.AllMetrics {
		f.Metrics = nil
	}
	return t, int64(unsafe.Sizeof(*t)) + fileSize(f) + size, nil
}

// partitionFacts are what a data file's partition alone decides.
type partitionFacts struct {
	scope    *scope // of the delete index; nil when no delete file has it
	mayMatch bool
	residual *expr.Bound
}

func (p *planner) facts(f *File) *partitionFacts {
	facts := &partitionFacts{scope: p.index.scope(f), mayMatch: true}
	if filter := p.filters[f.SpecID]; filter != nil {
		if facts.mayMatch = filter.MayMatch(f.Partition); facts.mayMatch {
			facts.residual = filter.Residual(f.Partition)
		}
	}
	return facts
}

// exprMetrics presents the file's metrics to package expr.
func (f *File) exprMetrics() expr.Metrics {
	out := expr.Metrics{Column: func(int) expr.ColumnMetrics { return expr.ColumnMetrics{} }}
	if f.RecordCount >= 0 {
		out.RecordCount = expr.KnownCount(f.RecordCount)
	}
	if m := f.Metrics; m != nil {
		out.Column = func(id int) expr.ColumnMetrics {
			return expr.ColumnMetrics{
				ValueCount: countOf(m.ValueCounts, id), NullCount: countOf(m.NullCounts, id), NaNCount: countOf(m.NaNCounts, id),
				Lower: m.LowerBounds[id], Upper: m.UpperBounds[id],
			}
		}
	}
	return out
}

func countOf(counts map[int]int64, id int) expr.Count {
	n, known := counts[id]
	return expr.Count{N: n, Known: known && n >= 0}
}
