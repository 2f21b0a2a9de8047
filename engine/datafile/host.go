package datafile

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// HostReader decodes a whole file, in the host's own way: every row, in the
// file's order. Each field of the stream's schema, at every level, carries the
// id that the file gives it under the metadata key PARQUET:field_id.
//
// fieldIDs names the leaf columns that are needed; nil asks for all. The host
// may return more. The batches are the engine's to release.
type HostReader func(ctx context.Context, location, format string, fieldIDs []int) (batch.Stream, error)

// hostFile asks the host once for the schema, and again for every reader.
type hostFile struct {
	location string
	format   string
	options  Options
	schema   *arrow.Schema
}

func openHost(ctx context.Context, location, format string, options Options) (File, error) {
	f := &hostFile{location: location, format: format, options: options}
	stream, err := options.Host(ctx, location, format, nil)
	if err != nil {
		return nil, errs.Wrap(err, "open", location)
	}
	f.schema = stream.Schema()
	if err := stream.Close(); err != nil {
		return nil, errs.Wrap(err, "open", location)
	}
	return f, nil
}

func (f *hostFile) Schema() *arrow.Schema { return f.schema }

func (f *hostFile) Close() error { return nil }

// fieldIDKey is the metadata key of a field's id.
const fieldIDKey = "PARQUET:field_id"

func fieldID(field arrow.Field) (int, bool) {
	i := field.Metadata.FindKey(fieldIDKey)
	if i < 0 {
		return 0, false
	}
	id, err := strconv.Atoi(field.Metadata.Values()[i])
	return id, err == nil
}

// leafIDs appends the ids of a field's leaves; false when one has none.
func leafIDs(ids []int, field arrow.Field) ([]int, bool) {
	nested, ok := field.Type.(arrow.NestedType)
	if !ok || nested.NumFields() == 0 {
		id, known := fieldID(field)
		return append(ids, id), known
	}
	for _, child := range nested.Fields() {
		if ids, ok = leafIDs(ids, child); !ok {
			return ids, false
		}
	}
	return ids, true
}

// leafCount is the number of leaf columns of a type.
func leafCount(t arrow.DataType) int {
	nested, ok := t.(arrow.NestedType)
	if !ok || nested.NumFields() == 0 {
		return 1
	}
	n := 0
	for _, child := range nested.Fields() {
		n += leafCount(child.Type)
	}
	return n
}

// NewReader asks for whole top-level columns and prunes them here, so that a
// host need not understand nested selections.
func (f *hostFile) NewReader(ctx context.Context, columns []batch.Column, ranges []batch.Range) (batch.FileReader, error) {
	r := &hostReader{file: f, ranges: ranges, all: ranges == nil}
	r.LimitWindow(f.options.BatchRows)
	ids, known := []int{}, true
	var fields []arrow.Field
	for _, column := range columns {
		field := f.schema.Field(column.Index)
		if known {
			ids, known = leafIDs(ids, field)
		}
		first := 0
		for i := range column.Index {
			first += leafCount(f.schema.Field(i).Type)
		}
		p := newPruning(field.Type, column.Leaves, &first)
		field.Type = p.out
		fields = append(fields, field)
		r.pruning = append(r.pruning, p)
	}
	if !known {
		ids = nil // only a request for everything reaches columns without ids
	}
	r.schema = arrow.NewSchema(fields, nil)
	stream, err := f.options.Host(ctx, f.location, f.format, ids)
	if err != nil {
		return nil, errs.Wrap(err, "open", f.location)
	}
	r.stream = stream
	r.charged = f.options.Pool.ReserveWorkingSet("batches of the host's reader")
	if err := r.bind(columns); err != nil {
		_ = r.Close() // the error that counts is the schema's
		return nil, errs.Wrap(err, "read", f.location)
	}
	return r, nil
}

// hostReader cuts the host's batches into windows.
type hostReader struct {
	file    *hostFile
	schema  *arrow.Schema
	stream  batch.Stream
	sources []int // the stream's column of each selected column
	pruning []*pruning
	ranges  []batch.Range // what is left to visit
	all     bool          // ranges are not restricted
	rows    int64         // the most of a window

	charged  *mem.Reservation  // for record
	record   arrow.RecordBatch // the batch that position lies in; nil before the first
	start    int64             // the file position of its first row
	position int64             // where the next window may start
	window   batch.Range
}

// bind finds the selected columns in the stream, by id or by name.
func (r *hostReader) bind(columns []batch.Column) error {
	got := r.stream.Schema()
	for _, column := range columns {
		want := r.file.schema.Field(column.Index)
		i := slices.IndexFunc(got.Fields(), func(f arrow.Field) bool {
			wantID, hasID := fieldID(want)
			gotID, gotHas := fieldID(f)
			if hasID && gotHas {
				return gotID == wantID
			}
			return f.Name == want.Name
		})
		if i < 0 {
			return errs.New(errs.InvalidArgument, "the host's reader left out column %q", want.Name)
		}
		if !arrow.TypeEqual(got.Field(i).Type, want.Type) {
			return errs.New(errs.InvalidArgument, "the host's reader returned column %q as %s after announcing %s", want.Name, got.Field(i).Type, want.Type)
		}
		r.sources = append(r.sources, i)
	}
	return nil
}

func (r *hostReader) Schema() *arrow.Schema { return r.schema }

// LimitWindow implements batch.WindowLimiter.
func (r *hostReader) LimitWindow(rows int) { r.rows = int64(max(rows, 1)) }

// Next advances over batches and unselected rows to the next window.
func (r *hostReader) Next(ctx context.Context) (batch.Range, error) {
	for {
		for !r.all && len(r.ranges) > 0 && r.ranges[0].End <= max(r.position, r.ranges[0].Start) {
			r.ranges = r.ranges[1:]
		}
		if !r.all && len(r.ranges) == 0 {
			return batch.Range{}, io.EOF
		}
		if r.record != nil {
			end := r.start + r.record.NumRows()
			start := r.position
			if !r.all {
				start = max(start, r.ranges[0].Start)
			}
			if start < end {
				stop := min(end, start+r.rows)
				if !r.all {
					stop = min(stop, r.ranges[0].End)
				}
				r.window, r.position = batch.Range{Start: start, End: stop}, stop
				return r.window, nil
			}
			r.start, r.position = end, end
			r.drop()
		}
		record, err := r.stream.Next(ctx)
		if err == io.EOF {
			return batch.Range{}, io.EOF
		}
		if err != nil {
			return batch.Range{}, errs.Wrap(err, "read", r.file.location)
		}
		r.record = record
		r.charged.ForceGrow(batch.RecordBytes(record)) // it is there already
	}
}

// drop releases the current batch.
func (r *hostReader) drop() {
	if r.record != nil {
		r.record.Release()
		r.record = nil
		r.charged.Shrink(r.charged.Size())
	}
}

func (r *hostReader) Read(_ context.Context, columns []int, keep *batch.Mask) ([]arrow.Array, error) {
	from, to := r.window.Start-r.start, r.window.End-r.start
	arrays := make([]arrow.Array, 0, len(columns))
	for _, i := range columns {
		rows := array.NewSlice(r.record.Column(r.sources[i]), from, to)
		pruned := r.pruning[i].apply(rows)
		rows.Release()
		kept, err := batch.Select(r.file.options.Alloc, pruned, keep)
		pruned.Release()
		if err != nil {
			for _, a := range arrays {
				a.Release()
			}
			return nil, errs.Wrap(err, "read", r.file.location)
		}
		arrays = append(arrays, kept)
	}
	return arrays, nil
}

func (r *hostReader) Close() error {
	r.drop()
	if r.stream == nil {
		return nil
	}
	r.charged.Free()
	err := r.stream.Close()
	r.stream = nil
	return errs.Wrap(err, "close", r.file.location)
}

// pruning leaves fields out of a nested type.
type pruning struct {
	out      arrow.DataType
	whole    bool // nothing is left out
	fields   []int
	children []*pruning // of the kept fields
}

// newPruning keeps the selected leaves of a type whose first leaf has the
// ordinal *next, which it advances past the type.
func newPruning(t arrow.DataType, leaves []int, next *int) *pruning {
	nested, ok := t.(arrow.NestedType)
	if !ok || nested.NumFields() == 0 {
		*next++
		return &pruning{out: t, whole: true}
	}
	p := &pruning{out: t, whole: true}
	var kept []arrow.Field
	for i, field := range nested.Fields() {
		first := *next
		child := newPruning(field.Type, leaves, next)
		if !slices.ContainsFunc(leaves, func(leaf int) bool { return first <= leaf && leaf < *next }) {
			p.whole = false
			continue
		}
		p.whole = p.whole && child.whole
		p.fields, p.children = append(p.fields, i), append(p.children, child)
		field.Type = child.out
		kept = append(kept, field)
	}
	if p.whole {
		return p
	}
	switch t := t.(type) {
	case *arrow.StructType:
		p.out = arrow.StructOf(kept...)
	case *arrow.ListType:
		p.out = arrow.ListOfField(kept[0])
	case *arrow.LargeListType:
		p.out = arrow.LargeListOfField(kept[0])
	case *arrow.FixedSizeListType:
		p.out = arrow.FixedSizeListOfField(t.Len(), kept[0])
	default: // map keys and values belong together
		p.out, p.whole = t, true
	}
	return p
}

// apply prunes an array; the caller owns the result.
func (p *pruning) apply(values arrow.Array) arrow.Array {
	if p.whole {
		values.Retain()
		return values
	}
	data := p.applyData(values.Data())
	defer data.Release()
	return array.MakeFromData(data)
}

func (p *pruning) applyData(data arrow.ArrayData) arrow.ArrayData {
	if p.whole {
		data.Retain()
		return data
	}
	children := make([]arrow.ArrayData, len(p.fields))
	for i, field := range p.fields {
		children[i] = p.children[i].applyData(data.Children()[field])
		defer children[i].Release()
	}
	return array.NewData(p.out, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}
