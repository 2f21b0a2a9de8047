package scan

import (
	"context"
	"io"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/datafile"
	"github.com/icebergexec/icebergexec/engine/deletes"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/project"
)

// sharedFile is an open file that the parts of one task share.
type sharedFile struct {
	datafile.File
	users atomic.Int32
}

func (f *sharedFile) retain() *sharedFile {
	f.users.Add(1)
	return f
}

func (f *sharedFile) release() error {
	if f == nil || f.users.Add(-1) > 0 {
		return nil
	}
	return f.Close()
}

// part is the job of reading some rows of one data file.
type part struct {
	scan   *Scan
	task   *plan.Task
	file   *sharedFile   // nil: not open yet
	ranges []batch.Range // nil: all rows
	need   int64         // what admission has granted
	first  bool          // of the scan

	set        *deletes.Set
	residual   *expr.Bound         // of the task, for the columns that the file has
	projection *project.Projection // of the result and the filter
	keys       *project.Projection // of the keys: mostly the same
	reader     batch.FileReader
	metadata   *metadataColumns
	sizer      *sizer
	gather     *gather
}

// run reads the part and emits its batches.
func (p *part) run(ctx context.Context, hand func(found) error) (err error) {
	defer func() {
		if closeErr := p.close(); err == nil {
			err = closeErr
		}
		p.scan.admission.leave(p.need)
	}()
	if err := p.openFile(ctx); err != nil {
		return err
	}
	if p.ranges != nil && len(p.ranges) == 0 {
		return nil // no row can match
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	large := p.largeFields()
	emit := func(record arrow.RecordBatch) error {
		next := found{record: record, large: large}
		large = nil
		return hand(next)
	}
	limit := p.scan.limit()
	for {
		p.sizer.prepare()
		window, err := p.reader.Next(ctx)
		if err == io.EOF {
			return p.gather.flush(emit)
		}
		if err != nil {
			return err
		}
		record, err := p.read(ctx, window)
		if err != nil {
			return err
		}
		if record == nil {
			continue
		}
		limit -= record.NumRows()
		if err := p.gather.add(record, emit); err != nil {
			return err
		}
		if limit <= 0 {
			return p.gather.flush(emit)
		}
	}
}

// limit is how many rows one part needs to return at most.
func (s *Scan) limit() int64 {
	if s.cfg.Limit != nil {
		return *s.cfg.Limit
	}
	return int64(1) << 62
}

// openFile opens the data file and leaves out rows that its statistics rule
// out.
func (p *part) openFile(ctx context.Context) error {
	if p.file == nil {
		file, err := p.scan.open(ctx, p.task.Data, p.scan.decoding)
		if err != nil {
			return err
		}
		p.file = (&sharedFile{File: file}).retain()
	}
	cfg := &p.scan.cfg
	var err error
	p.ranges, err = datafile.Prune(ctx, p.file.File, p.ranges, p.task.Residual, cfg.Mode, cfg.Schema.FindFieldByID)
	return err
}

// open prepares deletes, columns and the reader.
func (p *part) open(ctx context.Context) error {
	var err error
	if p.set, err = p.scan.resolver.ForTask(ctx, p.task); err != nil {
		return err
	}
	if err := p.bind(); err != nil {
		return err
	}
	if p.reader, err = p.file.NewReader(ctx, p.projection.Columns(), p.ranges); err != nil {
		return err
	}
	cfg := &p.scan.cfg
	if p.metadata, err = newMetadataColumns(cfg, p.task.Data); err != nil {
		return err
	}
	p.sizer = newSizer(cfg, p.scan.decoding, p.reader)
	p.gather = newGather(cfg, p.sizer, p.first)
	return nil
}

// bind finds the columns that the result, the filter and the deletes need.
func (p *part) bind() error {
	cfg := &p.scan.cfg
	options, err := p.scan.projectOptions(p.task.Data)
	if err != nil {
		return err
	}
	leaves, err := p.filterFields()
	if err != nil {
		return err
	}
	// Keys have the newest type of their column. Where the filter of an older
	// snapshot has another, keys get a projection of their own, of the same
	// fields and so of the same file columns.
	keys := p.set.Fields()
	keysFirst, filterFirst := union(keys, leaves), union(leaves, keys)
	if p.projection, err = project.New(p.file.Schema(), cfg.Selection.stored, filterFirst, options); err != nil {
		return err
	}
	// pyiceberg judges a column that the file lacks by other rules than nulls in
	// one that it has.
	p.residual = p.task.Residual.WithConstants(cfg.Mode, func(id int) (iceberg.Literal, bool) {
		return nil, p.projection.LeafIsAbsent(id)
	})
	p.keys = p.projection
	for _, key := range keys {
		if i := indexOfField(leaves, key.ID); i >= 0 && !leaves[i].Type.Equals(key.Type) {
			p.keys, err = project.New(p.file.Schema(), cfg.Selection.stored, keysFirst, options)
			return err
		}
	}
	return nil
}

// projectOptions say how the columns of a data file are bound.
func (s *Scan) projectOptions(data *plan.File) (project.Options, error) {
	spec, ok := s.cfg.Table.SpecByID(data.SpecID)
	if !ok {
		return project.Options{}, errs.At(errs.Corrupt, "read", data.Path, "its partition spec %d is not in the table metadata", data.SpecID)
	}
	return project.Options{
		Path: data.Path, NameMapping: s.cfg.Table.NameMapping, Schemas: s.schemas,
		Constants: identityValues(spec, data.Partition), Arrow: s.cfg.Selection.arrow,
	}, nil
}

// union appends to a the fields of b whose ids it lacks.
func union(a, b []iceberg.NestedField) []iceberg.NestedField {
	all := slices.Clone(a)
	for _, f := range b {
		if indexOfField(a, f.ID) < 0 {
			all = append(all, f)
		}
	}
	return all
}

func indexOfField(fields []iceberg.NestedField, id int) int {
	return slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.ID == id })
}

// filterFields are the columns of the filter in the types of the scan's schema.
func (p *part) filterFields() ([]iceberg.NestedField, error) {
	var fields []iceberg.NestedField
	for _, id := range p.task.Residual.FieldIDs() {
		field, ok := p.scan.cfg.Schema.FindFieldByID(id)
		if !ok {
			return nil, errs.New(errs.Internal, "the filter uses field id %d, which its schema does not have", id)
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// identityValues are a file's partition values by source field id, of those
// fields whose partition value is the column's value.
func identityValues(spec *iceberg.PartitionSpec, values []iceberg.Literal) map[int]any {
	constants := map[int]any{}
	for i, field := range spec.Fields() {
		if _, identity := field.Transform.(iceberg.IdentityTransform); !identity || i >= len(values) {
			continue
		}
		if values[i] == nil {
			constants[field.SourceID()] = nil
		} else {
			constants[field.SourceID()] = values[i].Any()
		}
	}
	return constants
}

func (p *part) close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if p.gather != nil {
		p.gather.drop()
	}
	if p.sizer != nil {
		p.sizer.free()
	}
	if p.reader != nil {
		keep(p.reader.Close())
	}
	if p.set != nil {
		p.set.Close()
	}
	keep(p.file.release())
	return first
}

// window is the state of reading one window.
type window struct {
	part *part
	rows batch.Range
	n    int // rows in the window
	keep batch.Mask
	// full holds the file columns that were read for all rows.
	full map[int]arrow.Array
	// leaves holds the filter and key columns that were built.
	leaves map[leafKey]arrow.Array
}

type leafKey struct {
	projection *project.Projection
	id         int
}

func (w *window) release() {
	for _, a := range w.full {
		a.Release()
	}
	for _, a := range w.leaves {
		a.Release()
	}
}

// leaf returns a filter or key column of all rows of the window. The window
// owns it.
func (w *window) leaf(ctx context.Context, projection *project.Projection, id int) (arrow.Array, error) {
	key := leafKey{projection, id}
	if a := w.leaves[key]; a != nil {
		return a, nil
	}
	p := w.part
	var column arrow.Array
	if i := projection.LeafColumn(id); i != project.NoColumn {
		if column = w.full[i]; column == nil {
			read, err := p.reader.Read(ctx, []int{i}, nil)
			if err != nil {
				return nil, err
			}
			column = read[0]
			w.full[i] = column
			p.sizer.readFull(column)
		}
	}
	a, err := projection.Leaf(p.scan.cfg.Alloc, id, column, w.n)
	if err != nil {
		return nil, err
	}
	w.leaves[key] = a
	return a, nil
}

// read returns the rows of a window that are left, nil when there are none.
func (p *part) read(ctx context.Context, rows batch.Range) (arrow.RecordBatch, error) {
	cfg := &p.scan.cfg
	w := &window{part: p, rows: rows, n: int(rows.Len()), full: map[int]arrow.Array{}, leaves: map[leafKey]arrow.Array{}}
	defer w.release()
	w.keep.Reset(w.n, true)
	defer func() { p.sizer.window(w.n, w.keep.Count()) }()
	key := func(id int) (arrow.Array, error) { return w.leaf(ctx, p.keys, id) }
	if err := p.set.Apply(ctx, rows, key, &w.keep); err != nil {
		return nil, err
	}
	if w.keep.Count() > 0 {
		value := func(id int) (arrow.Array, error) { return w.leaf(ctx, p.projection, id) }
		if err := p.residual.Evaluate(cfg.Mode, w.n, value, &w.keep); err != nil {
			return nil, errs.Wrap(err, "filter", p.task.Data.Path)
		}
	}
	kept := w.keep.Count()
	if kept == 0 {
		return nil, nil
	}
	return p.output(ctx, w, kept)
}

// output builds the result's columns for the kept rows.
func (p *part) output(ctx context.Context, w *window, kept int) (arrow.RecordBatch, error) {
	columns, err := p.payload(ctx, w)
	defer func() {
		for _, a := range columns {
			a.Release()
		}
	}()
	if err != nil {
		return nil, err
	}
	selection := p.scan.cfg.Selection
	out := make([]arrow.Array, 0, len(selection.kinds))
	defer func() {
		for _, a := range out {
			a.Release()
		}
	}()
	stored := 0
	for _, kind := range selection.kinds {
		var a arrow.Array
		if kind == storedKind {
			var column arrow.Array
			if i := p.projection.OutputColumn(stored); i != project.NoColumn {
				column = columns[i]
			}
			if a, err = p.projection.Output(p.scan.cfg.Alloc, stored, column, kept); err == nil {
				a, err = p.metadata.inherit(selection.stored.Field(stored).ID, a, w)
			}
			stored++
		} else {
			a, err = p.metadata.build(kind, w, kept)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return array.NewRecordBatch(selection.Schema, out, int64(kept)), nil
}

// payload returns the kept rows of the file columns that the result needs. The
// caller owns them, also after an error.
func (p *part) payload(ctx context.Context, w *window) (map[int]arrow.Array, error) {
	columns := map[int]arrow.Array{}
	var missing []int
	for i := range p.scan.cfg.Selection.stored.NumFields() {
		c := p.projection.OutputColumn(i)
		switch {
		case c == project.NoColumn:
		case w.full[c] == nil:
			missing = append(missing, c)
		default:
			kept, err := batch.Select(p.scan.cfg.Alloc, w.full[c], &w.keep)
			if err != nil {
				return columns, errs.Wrap(err, "read", p.task.Data.Path)
			}
			columns[c] = kept
		}
	}
	if len(missing) == 0 {
		return columns, nil
	}
	read, err := p.reader.Read(ctx, missing, &w.keep)
	if err != nil {
		return columns, err
	}
	for i, c := range missing {
		columns[c] = read[i]
		p.sizer.readKept(read[i])
	}
	return columns, nil
}
