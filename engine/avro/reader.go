package avro

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// windowBytes is the size of the rows of a window, as the file stores them, at
// which blocks are no longer put together and rows no longer added.
const windowBytes = 4 << 20 // 4 MiB

// rowBytes bounds what the fixed-width parts of a window's rows take.
const rowBytes = 64 << 20 // 64 MiB

// reader is the batch.FileReader of an Avro file. Blocks are decompressed one
// after the other into data until there are enough rows for a window; Read
// goes over the rows once for each set of columns. The first time it notes
// where each row starts, so that later ones go to the kept rows directly.
type reader struct {
	file     *File
	blocks   blockReader
	schema   *arrow.Schema
	columns  []selectedColumn
	skip     []skipOp // over a whole row
	maxRows  int64    // of the next windows
	mostRows int64    // of any window
	programs []*program

	ranges []batch.Range // what is left to visit
	next   int64         // position of the row after those of all blocks so far

	// The blocks' data holds the rows [first, next).
	first int64
	ends  []blockEnd

	window batch.Range
	open   bool
	// The cursor stands at the start of row at, at or before the window's
	// first, until the window is gone over: then offsets has the starts of its
	// rows and the end of the last.
	cursor  cursor
	at      int64
	offsets []int
}

// blockEnd is where a block of data ends: rows before row are before byte.
type blockEnd struct {
	row  int64
	byte int
}

type selectedColumn struct {
	field  int // of the file
	column column
	read   bool // in the current window
}

// program reads the rows of a window into some of the columns.
type program struct {
	columns []int
	steps   []recordStep
	last    int // steps[:last] end with the last column
}

// NewReader makes a reader of some columns and row ranges; nil ranges mean all
// rows. Ranges are ascending and do not overlap; what of them lies beyond the
// end of the file has no rows. The reader is closed before the file.
func (f *File) NewReader(_ context.Context, columns []batch.Column, ranges []batch.Range) (batch.FileReader, error) {
	r := &reader{file: f, skip: skips(nil, f.record)}
	fields := make([]arrow.Field, len(columns))
	width := 0
	for i, c := range columns {
		same := func(other batch.Column) bool { return other.Index == c.Index }
		if c.Index < 0 || c.Index >= len(f.fields) || slices.ContainsFunc(columns[:i], same) {
			return nil, errs.At(errs.Internal, "read", f.path, "column %d of %d is selected twice or does not exist", c.Index, len(f.fields))
		}
		b := columnBuilder{alloc: f.opts.Alloc, selected: map[int]bool{}}
		for _, leaf := range c.Leaves {
			b.selected[leaf] = true
		}
		column, pruned, err := b.build(f.fields[c.Index])
		if err == nil && column == nil {
			err = errs.New(errs.Internal, "column %s is read without any leaf", f.fields[c.Index].arrow.Name)
		}
		if err != nil {
			return nil, errs.Wrap(err, "read", f.path)
		}
		r.columns = append(r.columns, selectedColumn{field: c.Index, column: column})
		fields[i] = pruned.arrow
		width += column.width()
	}
	r.schema = arrow.NewSchema(fields, nil)
	r.mostRows = max(1, min(int64(f.opts.BatchRows), rowBytes/int64(max(width, 1))))
	r.maxRows = r.mostRows
	r.ranges = slices.Clone(ranges)
	if ranges == nil {
		r.ranges = []batch.Range{{Start: 0, End: math.MaxInt64}}
	}
	r.blocks = newBlockReader(f.source, f.header, f.codec, f.record, f.opts.Pool)
	return r, nil
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

// LimitWindow implements batch.WindowLimiter.
func (r *reader) LimitWindow(rows int) { r.maxRows = max(1, min(int64(rows), r.mostRows)) }

func (r *reader) Next(ctx context.Context) (batch.Range, error) {
	if err := ctx.Err(); err != nil {
		return batch.Range{}, context.Cause(ctx)
	}
	from := r.window.End
	r.open = false
	for len(r.ranges) > 0 && r.ranges[0].End <= from || len(r.ranges) > 0 && r.ranges[0].Len() <= 0 {
		r.ranges = r.ranges[1:]
	}
	if len(r.ranges) == 0 {
		return batch.Range{}, io.EOF
	}
	from = max(from, r.ranges[0].Start)
	if from >= r.next {
		switch err := r.load(ctx, from, r.ranges[0].End); {
		case err == io.EOF:
			r.ranges = nil
			return batch.Range{}, io.EOF
		case err != nil:
			return batch.Range{}, errs.Wrap(err, "read", r.file.path)
		}
	}
	rows := min(r.maxRows, r.next-from, r.ranges[0].End-from)
	if each := int64(len(r.blocks.data)) / (r.next - r.first); each > 0 {
		rows = min(rows, max(1, windowBytes/each))
	}
	r.window, r.open = batch.Range{Start: from, End: from + rows}, true
	r.offsets = r.offsets[:0]
	for i := range r.columns {
		r.columns[i].read = false
	}
	return r.window, nil
}

// load reads the blocks from the one with row from on, until there are rows
// enough for a window or the row before end is there.
func (r *reader) load(ctx context.Context, from, end int64) error {
	r.blocks.data, r.ends = r.blocks.data[:0], r.ends[:0]
	r.first = r.next
	for r.next <= from || r.next < end && r.next-r.first < r.maxRows && len(r.blocks.data) < windowBytes {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		b, err := r.blocks.source.nextBlock(r.blocks.sync, func(rows int64) bool { return rows > 0 && r.next+rows > from })
		if err == io.EOF && r.next > from {
			break
		}
		if err != nil {
			return err
		}
		if b.rows > math.MaxInt64-r.next {
			return errs.New(errs.Corrupt, "the block at byte %d has %d rows", b.offset, b.rows)
		}
		if b.rows == 0 {
			continue // whatever it holds
		}
		if r.next+b.rows <= from { // passed over
			r.next += b.rows
			r.first = r.next
			continue
		}
		if err := r.blocks.append(b); err != nil {
			return err
		}
		r.next += b.rows
		r.ends = append(r.ends, blockEnd{row: r.next, byte: len(r.blocks.data)})
	}
	r.cursor, r.at = newCursor(r.blocks.data), r.first
	return nil
}

func (r *reader) Read(ctx context.Context, columns []int, keep *batch.Mask) ([]arrow.Array, error) {
	arrays, err := r.read(ctx, columns, keep)
	return arrays, errs.Wrap(err, "read", r.file.path)
}

func (r *reader) read(ctx context.Context, columns []int, keep *batch.Mask) ([]arrow.Array, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	n := int(r.window.Len())
	switch {
	case !r.open:
		return nil, errs.New(errs.Internal, "rows are read without a window")
	case keep != nil && keep.Len != n:
		return nil, errs.New(errs.Internal, "a mask of %d rows for a window of %d", keep.Len, n)
	case len(columns) == 0:
		return nil, nil
	}
	kept := n
	if keep != nil {
		kept = keep.Count()
	}
	if kept == n {
		keep = nil
	}
	for _, i := range columns {
		c := &r.columns[i]
		if c.read {
			return nil, errs.New(errs.Internal, "column %s is read twice in a window", r.schema.Field(i).Name)
		}
		c.read = true
		c.column.reserve(kept)
	}
	p := r.program(columns)
	var err error
	if len(r.offsets) == 0 {
		err = r.goOver(p, n, keep)
	} else {
		err = r.goTo(p, n, keep)
	}
	if err != nil {
		for _, i := range columns {
			r.columns[i].column.release()
		}
		return nil, err
	}
	arrays := make([]arrow.Array, len(columns))
	for i, c := range columns {
		arrays[i] = arrayOf(r.columns[c].column)
	}
	return arrays, nil
}

// program compiles what is done to each row for some columns.
func (r *reader) program(columns []int) *program {
	for _, p := range r.programs {
		if slices.Equal(p.columns, columns) {
			return p
		}
	}
	p := &program{columns: slices.Clone(columns)}
	byField := make([]column, len(r.file.fields))
	for _, i := range columns {
		byField[r.columns[i].field] = r.columns[i].column
	}
	p.steps = recordSteps(r.file.fields, byField)
	for i, s := range p.steps {
		if s.column != nil {
			p.last = i + 1
		}
	}
	r.programs = append(r.programs, p)
	return p
}

// goOver reads the rows of the window for the first time, one after the other.
func (r *reader) goOver(p *program, n int, keep *batch.Mask) error {
	c := &r.cursor
	for ; r.at < r.window.Start; r.at++ {
		c.skip(r.skip)
		r.checkEnd(r.at + 1)
		if c.err != nil {
			return r.atRow(c, int(r.at-r.window.Start))
		}
	}
	if cap(r.offsets) < n+1 {
		r.offsets = make([]int, 0, n+1)
		r.blocks.extra = 8 * int64(n+1)
		if err := r.blocks.charge(); err != nil {
			return err
		}
	}
	r.offsets = append(r.offsets, c.at)
	for i := range n {
		if keep != nil && !keep.Get(i) {
			c.skip(r.skip)
		} else {
			c.read(p.steps)
		}
		r.checkEnd(r.window.Start + int64(i) + 1)
		if c.err != nil {
			r.offsets = r.offsets[:0]
			return r.atRow(c, i)
		}
		r.offsets = append(r.offsets, c.at)
	}
	r.at = r.window.End
	return nil
}

// atRow is the cursor's error with the place where it happened.
func (r *reader) atRow(c *cursor, i int) error {
	row := r.window.Start + int64(i)
	if c.column == "" {
		return errs.New(errs.CodeOf(c.err), "row %d: %v", row, c.err)
	}
	return errs.New(errs.CodeOf(c.err), "column %s, row %d: %v", c.column, row, c.err)
}

// read does the steps of one row.
func (c *cursor) read(steps []recordStep) {
	for i := range steps {
		s := &steps[i]
		if s.column == nil {
			c.skip(s.skip)
			continue
		}
		s.column.read(c)
		if c.err != nil && c.column == "" {
			c.column = s.name
		}
	}
}

// checkEnd makes sure that a block ends where its last row does.
func (r *reader) checkEnd(row int64) {
	if len(r.ends) == 0 || r.ends[0].row > row {
		return
	}
	c := &r.cursor
	if end := r.ends[0].byte; c.err == nil && c.at != end {
		c.fail("the rows of a block have %d bytes more or less than the block", max(end-c.at, c.at-end))
	}
	r.ends = r.ends[1:]
}

// goTo reads the kept rows of a window that was gone over before.
func (r *reader) goTo(p *program, n int, keep *batch.Mask) error {
	c := newCursor(r.blocks.data)
	for i := range n {
		if keep != nil && !keep.Get(i) {
			continue
		}
		c.at = r.offsets[i]
		c.read(p.steps[:p.last])
		if c.err != nil {
			return r.atRow(&c, i)
		}
	}
	return nil
}

func (r *reader) Close() error {
	for _, c := range r.columns {
		c.column.release()
	}
	r.columns, r.programs, r.offsets, r.ranges, r.open = nil, nil, nil, nil, false
	r.blocks.close()
	return nil
}
