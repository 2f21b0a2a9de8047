// Package project binds the columns of a data file to an Iceberg schema by
// field id, at every nesting level.
//
//	file schema ──┐  field ids, or the        Columns()  what to ask the file's reader for
//	wanted schema ┼─ table's name mapping ──> Output(i)  column i of the wanted schema   <── array read
//	extra leaves ─┘                           Leaf(id)   a filter or key column, flat     <── array read
//
// A field that the file lacks is, in this order: the value of the file's
// identity partition field, what the name mapping finds in a file without
// field ids, the field's initial default, null. A required field with none of
// them is an error.
//
// A field whose type in the file differs is promoted: int to long, float to
// double, decimals to a greater precision, date to a timestamp without zone,
// unknown to anything. Files may also hold a type in another Arrow form: small
// and unsigned integers, large strings and lists, strings as plain binary
// (checked to be UTF-8), times and timestamps in other units. Values that do
// not fit are an error; finer than the table's unit they are rounded down, as
// a nanosecond timestamp in a microsecond column is. Any other difference is a
// Corrupt error that names the column and both types.
//
// Arrays are built without Arrow's compute kernels, from the given allocator,
// reusing the buffers of the file's arrays where these can stay as they are.
package project

import (
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// Options configure New.
type Options struct {
	// Path is the data file's location, for errors.
	Path string
	// NameMapping supplies the table's name mapping; it is asked only for a
	// file without field ids. nil means none.
	NameMapping func() (iceberg.NameMapping, error)
	// Constants holds the file's identity-partition values by source field id,
	// as iceberg-go literal values (int32, iceberg.Date, []byte ...) or nil.
	Constants map[int]any
	// Schemas is the table's schema history, newest first. It places an extra
	// leaf that is neither in the file nor in the wanted schema inside its
	// parent structs.
	Schemas []*iceberg.Schema
	// Arrow chooses the Arrow types of the outputs.
	Arrow ArrowOptions
}

// NoColumn says that an output or leaf needs nothing of the file.
const NoColumn = -1

// Projection turns the arrays of one file into columns of the wanted schema.
// It is immutable and safe for concurrent use.
type Projection struct {
	path    string
	schema  *arrow.Schema
	columns []batch.Column
	outputs []output
	leaves  map[int]*leaf
	absent  []int
}

// output is one column of the wanted schema.
type output struct {
	column int // index into columns, or NoColumn
	node   node
}

// New binds a file's schema to the wanted schema and to extra leaf fields that
// are needed by id besides: those of a filter and of equality-delete keys.
// Each extra is a primitive, at the top or inside structs, in the type that it
// shall have.
func New(file *arrow.Schema, want *iceberg.Schema, extra []iceberg.NestedField, options Options) (*Projection, error) {
	p, err := newProjection(file, want, extra, options)
	if err != nil {
		return nil, errs.Wrap(err, "read", options.Path)
	}
	return p, nil
}

func newProjection(file *arrow.Schema, want *iceberg.Schema, extra []iceberg.NestedField, options Options) (*Projection, error) {
	schema, err := ArrowSchema(want, options.Arrow)
	if err != nil {
		return nil, err
	}
	b := &binder{options: options, want: want, file: indexFile(file, options)}
	p := &Projection{path: options.Path, schema: schema, leaves: map[int]*leaf{}}
	tops := make([]*fileNode, len(want.Fields())) // the file column of each output
	for i, field := range want.Fields() {
		top, n, err := b.bindTop(field, schema.Field(i))
		if err != nil {
			return nil, err
		}
		tops[i] = top
		p.outputs = append(p.outputs, output{node: n})
	}
	for _, field := range extra {
		if p.leaves[field.ID] != nil {
			continue
		}
		l, err := b.bindLeaf(field)
		if err != nil {
			return nil, err
		}
		p.leaves[field.ID] = l
	}
	for _, container := range b.containers {
		container.selectAny()
	}
	p.absent = b.absent
	// All leaves are selected now: the pruned shape of each column is known.
	p.columns = b.file.columns()
	for _, finish := range b.late {
		finish()
	}
	for i, top := range tops {
		p.outputs[i].column = p.indexOf(top)
	}
	for _, l := range p.leaves {
		l.column = p.indexOf(l.top)
	}
	return p, nil
}

// indexOf finds a top-level column of the file among the columns to read.
func (p *Projection) indexOf(top *fileNode) int {
	if top == nil {
		return NoColumn
	}
	return sort.Search(len(p.columns), func(i int) bool { return p.columns[i].Index >= top.index })
}

// Columns are the file columns to read, ascending by index, each once and with
// all leaves that any output or leaf needs of it.
func (p *Projection) Columns() []batch.Column { return p.columns }

// Schema is the Arrow form of the wanted schema.
func (p *Projection) Schema() *arrow.Schema { return p.schema }

// AbsentFields are the ids of the wanted schema's fields, at every level, that
// the file does not have.
func (p *Projection) AbsentFields() []int { return slices.Clone(p.absent) }

// OutputColumn is the index into Columns of the file column that output i is
// built from, or NoColumn.
func (p *Projection) OutputColumn(i int) int { return p.outputs[i].column }

// LeafColumn is the index into Columns of the file column that a leaf is built
// from, or NoColumn. The leaf must be one of the extra fields.
func (p *Projection) LeafColumn(fieldID int) int {
	if l := p.leaves[fieldID]; l != nil {
		return l.column
	}
	return NoColumn
}

// LeafIsAbsent reports whether the file does not have an extra field and
// nothing stands in for it, so that it is null in every row.
func (p *Projection) LeafIsAbsent(fieldID int) bool {
	l := p.leaves[fieldID]
	if l == nil {
		return false
	}
	n := l.node
	for {
		switch t := n.(type) {
		case *structNode: // the chain of structs around a leaf has one field each
			n = t.kids[0].node
		case *constantNode:
			return t.row == nil
		default:
			return false
		}
	}
}

// Output builds n rows of column i of the wanted schema. column is the array
// read for OutputColumn(i) and has n rows, or is nil for NoColumn. The result
// has the type of Schema and one reference, owned by the caller.
func (p *Projection) Output(alloc memory.Allocator, i int, column arrow.Array, n int) (arrow.Array, error) {
	out := &p.outputs[i]
	if err := p.checkInput(out.column, column, n); err != nil {
		return nil, err
	}
	a, err := out.node.build(alloc, column, n)
	if err != nil {
		return nil, errs.Wrap(err, "read", p.path)
	}
	if err := requirementOf(out.node).check(a, nil); err != nil {
		a.Release()
		return nil, errs.Wrap(err, "read", p.path)
	}
	return a, nil
}

// Leaf builds n rows of an extra field: flat, in the field's type, and null
// also where a struct around it is null. column is as for Output.
func (p *Projection) Leaf(alloc memory.Allocator, fieldID int, column arrow.Array, n int) (arrow.Array, error) {
	l := p.leaves[fieldID]
	if l == nil {
		return nil, errs.At(errs.Internal, "read", p.path, "field id %d is not among the leaves of the projection", fieldID)
	}
	if err := p.checkInput(l.column, column, n); err != nil {
		return nil, err
	}
	a, err := l.build(alloc, column, n)
	return a, errs.Wrap(err, "read", p.path)
}

func (p *Projection) checkInput(index int, column arrow.Array, n int) error {
	switch {
	case (index == NoColumn) != (column == nil):
		return errs.At(errs.Internal, "read", p.path, "a projected column was built without its file column, or with one it does not need")
	case column != nil && column.Len() != n:
		return errs.At(errs.Internal, "read", p.path, "a reader returned %d rows of %d", column.Len(), n)
	}
	return nil
}
