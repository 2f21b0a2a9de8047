package pq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/task"
)

// reader is the batch.FileReader of a Parquet file.
type reader struct {
	file    *File
	schema  *arrow.Schema
	columns []columnReader
	windows windows
	started bool             // Next has returned a window
	taken   window           // by the Read that runs
	err     error            // of a Read, after which columns are not where they should be
	charged *mem.Reservation // what the columns hold between windows

	together scratch     // for column chunks that are read together
	ahead    *task.Group // reads ahead; nil: nothing does
}

// columnReader decodes one selected column. Windows come in ascending order;
// those of a column that nobody reads are skipped when the next one is read.
type columnReader interface {
	// read returns the kept rows of a window.
	read(ctx context.Context, w *window) (arrow.Array, error)
	// leaves are the readers of the column's leaves.
	leaves() []*leafReader
	close()
}

// NewReader makes a reader of some columns and row ranges; nil ranges mean all
// rows. Ranges are ascending and do not overlap. The reader is closed before
// the file.
func (f *File) NewReader(ctx context.Context, columns []batch.Column, ranges []batch.Range) (batch.FileReader, error) {
	w, err := newWindows(f, ranges)
	if err != nil {
		return nil, errs.Wrap(err, "read", f.path)
	}
	r := &reader{file: f, windows: w, charged: f.opts.Pool.ReserveWorkingSet("Parquet pages")}
	r.together = scratch{alloc: f.opts.Alloc, charged: r.charged}
	if f.opts.ReadAhead {
		r.ahead = task.NewGroup(ctx)
	}
	fields := make([]arrow.Field, len(columns))
	for i, column := range columns {
		n, err := f.schema.selectColumn(column)
		if err != nil {
			r.charged.Free()
			return nil, errs.Wrap(err, "read", f.path)
		}
		fields[i] = n.field
		if n.kind != leafNode || !n.leaf.flat() {
			r.columns = append(r.columns, newNestedColumn(f, r, n))
			continue
		}
		flat := newFlatColumn(f, r, n.leaf)
		if f.dictionaryEncoded(n.leaf) {
			flat.encode(f, r)
			fields[i].Type = flat.encoder.typ
		}
		r.columns = append(r.columns, flat)
	}
	r.schema = arrow.NewSchema(fields, nil)
	return r, nil
}

// dictionaryEncoded reports whether a flat leaf is to come out
// dictionary-encoded.
func (f *File) dictionaryEncoded(l *leaf) bool {
	return l.hasFieldID && f.opts.DictionaryFields[int(l.fieldID)] && (l.typ.ID() == arrow.STRING || l.typ.ID() == arrow.BINARY)
}

// selectColumn finds a column and prunes it to its selected leaves.
func (s *schemaTree) selectColumn(c batch.Column) (*node, error) {
	if c.Index < 0 || c.Index >= len(s.columns) {
		return nil, errs.New(errs.InvalidArgument, "column %d of %d is selected", c.Index, len(s.columns))
	}
	n := s.columns[c.Index]
	selected := make(map[int]bool, len(c.Leaves))
	for _, leaf := range c.Leaves {
		if leaf < n.firstLeaf || leaf >= n.endLeaf {
			return nil, errs.New(errs.InvalidArgument, "leaf %d does not belong to column %q", leaf, n.field.Name)
		}
		selected[leaf] = true
	}
	pruned := n.prune(selected)
	if pruned == nil {
		return nil, errs.New(errs.InvalidArgument, "no leaf of column %q is selected", n.field.Name)
	}
	for _, l := range pruned.leaves(nil) {
		if l.unsupported != "" {
			return nil, errs.New(errs.Unsupported, "column %s: %s", l.path, l.unsupported)
		}
	}
	return pruned, nil
}

// leaves appends the leaves below a node.
func (n *node) leaves(to []*leaf) []*leaf {
	if n.kind == leafNode {
		return append(to, n.leaf)
	}
	for _, child := range n.children {
		to = child.leaves(to)
	}
	return to
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

func (r *reader) Next(ctx context.Context) (batch.Range, error) {
	if err := ctx.Err(); err != nil {
		return batch.Range{}, context.Cause(ctx)
	}
	if r.err != nil {
		return batch.Range{}, r.err
	}
	r.started = r.windows.next()
	if !r.started {
		return batch.Range{}, io.EOF
	}
	return r.windows.current, nil
}

func (r *reader) Read(ctx context.Context, columns []int, keep *batch.Mask) (arrays []arrow.Array, err error) {
	if r.err != nil {
		return nil, r.err
	}
	if !r.started {
		return nil, errs.New(errs.Internal, "pq: Read without a window")
	}
	if n := r.windows.current.Len(); keep != nil && int64(keep.Len) != n {
		return nil, errs.New(errs.Internal, "pq: a mask of %d rows for a window of %d", keep.Len, n)
	}
	w := &r.taken
	r.windows.take(w, keep)
	defer func() {
		if err != nil {
			for _, a := range arrays {
				a.Release()
			}
			arrays = nil
		}
	}()
	if w.kept > 0 {
		var leaves []*leafReader
		for _, i := range columns {
			leaves = append(leaves, r.columns[i].leaves()...)
		}
		if err := r.openTogether(ctx, w.rowGroup, leaves); err != nil {
			r.err = errs.Wrap(err, "read", r.file.path)
			return nil, r.err
		}
	}
	for _, i := range columns {
		if err := ctx.Err(); err != nil {
			return arrays, context.Cause(ctx)
		}
		a, err := r.columns[i].read(ctx, w)
		if err != nil {
			r.err = r.columnError(err, r.schema.Field(i).Name)
			return arrays, r.err
		}
		arrays = append(arrays, a)
	}
	return arrays, nil
}

// columnError names file and column, unless the error names its place or has
// nothing to do with one.
func (r *reader) columnError(err error, column string) error {
	var known *errs.Error
	if !errors.As(err, &known) || known.Path != "" || known.Code == errs.Cancelled || known.Code == errs.MemoryLimit {
		return errs.Wrap(err, "read", r.file.path)
	}
	return &errs.Error{Code: known.Code, Op: "read", Path: r.file.path, Msg: fmt.Sprintf("column %q", column), Detail: known.Detail, Err: err}
}

func (r *reader) Close() error {
	if r.ahead != nil {
		r.ahead.Cancel()
	}
	for _, c := range r.columns {
		c.close()
	}
	if r.ahead != nil {
		_ = r.ahead.Wait() // reads report where they are taken
	}
	r.together.free()
	r.columns, r.started = nil, false
	r.charged.Free()
	return nil
}

// windows walks over the selected rows of a file.
type windows struct {
	groups    []batch.Range // the rows of each row group, as file positions
	ranges    []batch.Range // what is left to visit
	batchRows int64

	rowGroup int         // of the current window
	current  batch.Range // file positions
}

func newWindows(f *File, ranges []batch.Range) (windows, error) {
	w := windows{groups: f.RowGroups(), batchRows: int64(f.opts.BatchRows)}
	if ranges == nil {
		w.ranges = []batch.Range{{Start: 0, End: f.meta.numRows}}
		return w, nil
	}
	last := int64(0)
	for _, r := range ranges {
		if r.Start < last || r.End < r.Start || r.End > f.meta.numRows {
			return w, errs.New(errs.InvalidArgument, "row range [%d, %d) is out of order or beyond the %d rows", r.Start, r.End, f.meta.numRows)
		}
		last = r.End
	}
	w.ranges = slices.Clone(ranges)
	return w, nil
}

// next moves to the next window; false at the end.
func (w *windows) next() bool {
	for len(w.ranges) > 0 {
		r := &w.ranges[0]
		if r.Len() == 0 {
			w.ranges = w.ranges[1:]
			continue
		}
		for w.groups[w.rowGroup].End <= r.Start {
			w.rowGroup++
		}
		w.current = batch.Range{Start: r.Start, End: min(r.End, r.Start+w.batchRows, w.groups[w.rowGroup].End)}
		r.Start = w.current.End
		return true
	}
	return false
}

// take sets t to what keep leaves of the current window.
func (w *windows) take(t *window, keep *batch.Mask) {
	t.set(w.rowGroup, w.current.Start-w.groups[w.rowGroup].Start, int(w.current.Len()), keep)
}
