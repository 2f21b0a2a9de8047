package pq

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/task"
)

// WriterOptions configures NewWriter. The zero value is usable: it writes as a
// table without properties asks for. ParseWriterOptions reads a table's.
type WriterOptions struct {
	// Path names the file in errors.
	Path string
	// Alloc makes the buffers of encoded pages; nil: the Go allocator.
	Alloc memory.Allocator
	// Pool is charged for what the writer holds; nil: unlimited. When it
	// refuses, the open row group is closed early.
	Pool *mem.Pool

	// Compression of every column.
	Compression Compression
	// RowGroupBytes and RowGroupRows end a row group: its encoded size, zero:
	// 128 MiB, and its rows, zero: 1,048,576.
	RowGroupBytes, RowGroupRows int64
	// PageBytes and PageRows end a page: the size of its values as they are
	// encoded, zero: 1 MiB, and its rows, zero: 20,000.
	PageBytes, PageRows int
	// DictionaryBytes bounds the dictionary of a column chunk; zero: 2 MiB.
	DictionaryBytes int
	// PageVersion is the version of data pages, 1 or 2; zero: 1.
	PageVersion int
	// BloomFilters holds the columns to write Bloom filters for, by field id.
	BloomFilters map[int]BloomOptions
	// Metrics says what to gather of each column.
	Metrics MetricsConfig
	// Like is a file whose row groups will be copied: decimals are stored as
	// there, since writers differ in it. nil: as Iceberg's specification says.
	Like *File
	// Threads is how many columns are encoded at a time; zero: one.
	Threads int
}

// Written describes a finished file in the terms of a manifest entry. Maps are
// by field id; a missing key means unknown.
type Written struct {
	Records, Size int64
	// SplitOffsets are where the row groups start.
	SplitOffsets []int64
	// ColumnSizes are the stored bytes of each column.
	ColumnSizes map[int]int64
	// ValueCounts count values, nulls and NaNs included.
	ValueCounts, NullCounts, NaNCounts map[int]int64
	// LowerBounds and UpperBounds are in Iceberg's single-value serialisation.
	LowerBounds, UpperBounds map[int][]byte
}

const (
	// sliceRows and sliceBytes bound the rows that all columns take before the
	// writer looks at sizes again: enough that a column's work is long, few
	// enough that what is held past a limit is little.
	sliceRows  = 8 << 10
	sliceBytes = 1 << 20 // 1 MiB
	// smallestRowGroup is the encoded size below which a row group does not
	// end for want of memory.
	smallestRowGroup = 1 << 20 // 1 MiB
)

// Writer writes one Parquet file for an Iceberg table. It is used by one
// goroutine at a time. The first error ends it: every later call returns it.
type Writer struct {
	options  WriterOptions
	schema   *arrow.Schema
	elements []schemaElement
	tree     *schemaTree
	paths    [][]string // of each leaf: the names on the way to it
	keyValue []keyValue

	file     fileWriter
	blocks   blockPool
	columns  []*columnWriter
	tops     []int // the batch's column that each leaf is in
	makers   []*pageMaker
	charged  *mem.Reservation
	rows     int64 // in the open row group
	gathered []leafMetrics
	copying  []byte // a piece of a file that is copied
	err      error
	ended    bool
}

// NewWriter starts a file of an Iceberg schema. The batches that will come have
// the given Arrow schema: its fields are those of the Iceberg schema in order,
// known by their field ids (metadata PARQUET:field_id) or, without, their
// names. The caller closes w, after Close.
func NewWriter(_ context.Context, w io.Writer, schema *arrow.Schema, table *iceberg.Schema, options WriterOptions) (*Writer, error) {
	options = options.withDefaults()
	n := &Writer{options: options, schema: schema, file: newFileWriter(w), blocks: blockPool{alloc: options.Alloc}}
	if err := n.open(table); err != nil {
		return nil, errs.Wrap(err, "write", options.Path)
	}
	return n, nil
}

func (w *Writer) open(table *iceberg.Schema) (err error) {
	if w.elements, err = schemaElements(table); err != nil {
		return err
	}
	if w.options.Like != nil {
		storeDecimalsLike(w.elements, w.options.Like)
	}
	if w.tree, err = buildSchema(w.elements); err != nil {
		return err
	}
	w.paths = leafPaths(w.elements)
	steps, err := bindBatches(w.schema, table, w.tree)
	if err != nil {
		return err
	}
	document, err := json.Marshal(table)
	if err != nil {
		return errs.WrapAs(errs.Internal, err, "", "")
	}
	w.keyValue = []keyValue{{"iceberg.schema", string(document)}}
	for i, l := range w.tree.leaves {
		w.columns = append(w.columns, newColumnWriter(l, steps[i], &w.options, &w.blocks))
		w.tops = append(w.tops, steps[i][0].child)
	}
	for range min(max(w.options.Threads, 1), max(len(w.columns), 1)) {
		maker, err := newPageMaker(w.options.Compression)
		if err != nil {
			return err
		}
		w.makers = append(w.makers, maker)
	}
	w.gathered = make([]leafMetrics, len(w.columns))
	w.charged = w.options.Pool.Reserve("open Parquet row groups")
	return nil
}

// Rows and Size are what the file has so far; the size counts what is encoded
// of the open row group.
func (w *Writer) Rows() int64 {
	n := w.rows
	for i := range w.file.groups {
		n += w.file.groups[i].rows
	}
	return n
}

// Size see Rows.
func (w *Writer) Size() int64 { return w.file.offset + w.openSize() }

func (w *Writer) openSize() int64 {
	n := int64(0)
	for _, c := range w.columns {
		n += int64(c.size())
	}
	return n
}

// Held is the memory that the writer is charged for. Flush gives most of it
// back.
func (w *Writer) Held() int64 { return w.charged.Size() }

// Write encodes a batch, which it does not keep.
func (w *Writer) Write(ctx context.Context, record arrow.RecordBatch) error {
	return w.step(func() error { return w.write(ctx, record) })
}

// step runs a part of the work unless an earlier one has failed.
func (w *Writer) step(work func() error) error {
	if w.ended {
		return errs.At(errs.InvalidArgument, "write", w.options.Path, "the file is finished")
	}
	if w.err == nil {
		w.err = errs.Wrap(work(), "write", w.options.Path)
	}
	return w.err
}

func (w *Writer) write(ctx context.Context, record arrow.RecordBatch) error {
	if record.Schema() != w.schema && !record.Schema().Equal(w.schema) {
		return errs.New(errs.InvalidArgument, "a batch has the schema %s, the writer was made for %s", record.Schema(), w.schema)
	}
	rows := int(record.NumRows())
	if rows == 0 {
		return nil
	}
	slice := rowsOfSlice(record)
	for from := 0; from < rows; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		to := from + int(min(int64(min(slice, rows-from)), w.options.RowGroupRows-w.rows))
		if err := w.encode(ctx, record, from, to); err != nil {
			return err
		}
		w.rows += int64(to - from)
		from = to
		size := w.openSize()
		crowded := w.charge() != nil
		if w.rows >= w.options.RowGroupRows || size >= w.options.RowGroupBytes || crowded && size >= smallestRowGroup {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		switch {
		case crowded && w.rows == 0:
			w.trim()
		case crowded: // the row group is too small to end
			w.chargeAnyway()
		}
	}
	return nil
}

// rowsOfSlice is how many rows of a batch, which is not empty, make a slice.
func rowsOfSlice(record arrow.RecordBatch) int {
	row := max(batch.RecordBytes(record)/max(record.NumRows(), 1), 1)
	return int(min(max(sliceBytes/row, 1), sliceRows))
}

// encode gives the rows [from, to) to every column.
func (w *Writer) encode(ctx context.Context, record arrow.RecordBatch, from, to int) error {
	return w.eachColumn(ctx, func(i int, m *pageMaker) error {
		return w.columns[i].write(m, record.Column(w.tops[i]), from, to)
	})
}

// eachColumn works on the columns, on as many at a time as there are threads.
func (w *Writer) eachColumn(ctx context.Context, work func(i int, m *pageMaker) error) error {
	if len(w.makers) <= 1 {
		for i := range w.columns {
			if err := work(i, w.makers[0]); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	group := task.NewGroup(ctx)
	for _, m := range w.makers {
		group.Go("encode columns", func(ctx context.Context) error {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(w.columns) {
					return nil
				}
				if err := work(i, m); err != nil {
					return err
				}
			}
			return context.Cause(ctx)
		})
	}
	return group.Wait()
}

// held is the memory that the writer keeps.
func (w *Writer) held() int64 {
	n := int64(w.blocks.size()) + writeBuffer + w.file.kept + int64(len(w.copying))
	for _, c := range w.columns {
		n += int64(c.held())
	}
	for _, m := range w.makers {
		n += int64(m.held())
	}
	return n
}

func (w *Writer) charge() error { return w.charged.Resize(w.held()) }

// chargeAnyway charges what the writer keeps, even past the limit.
func (w *Writer) chargeAnyway() {
	if missing := w.held() - w.charged.Size(); missing > 0 {
		w.charged.ForceGrow(missing)
	} else {
		w.charged.Shrink(-missing)
	}
}

// Flush ends the open row group, if there is one, and gives back the memory
// that it took.
func (w *Writer) Flush(ctx context.Context) error {
	return w.step(func() error {
		err := w.flush(ctx)
		w.trim()
		return err
	})
}

// trim gives back what nothing open needs, and charges what is left even if
// memory is short: a row group that has just begun may not end yet.
func (w *Writer) trim() {
	w.blocks.trim()
	if w.rows == 0 {
		for _, c := range w.columns {
			c.trim()
		}
		w.copying = nil
	}
	for _, m := range w.makers {
		m.trim()
	}
	w.chargeAnyway()
}

// flush writes the open row group.
func (w *Writer) flush(ctx context.Context) error {
	if w.rows == 0 {
		return nil
	}
	if err := w.file.start(); err != nil {
		return err
	}
	err := w.eachColumn(ctx, func(i int, m *pageMaker) error {
		if c := w.columns[i]; c.page.rows > 0 {
			return c.endPage(m, true /* last */)
		}
		return nil
	})
	if err != nil {
		return err
	}
	group := writtenGroup{rows: w.rows, offset: w.file.offset}
	chunks := make([]finishedChunk, len(w.columns))
	for i, c := range w.columns {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if chunks[i], err = c.writeChunk(&w.file, w.makers[0]); err != nil {
			return err
		}
		group.compressed += chunks[i].compressed
		group.uncompressed += chunks[i].uncompressed
	}
	for i := range w.columns {
		chunk, err := w.finishChunk(i, &chunks[i])
		if err != nil {
			return err
		}
		group.chunks = append(group.chunks, chunk)
	}
	w.file.add(group)
	w.rows = 0
	return nil
}

// finishChunk describes a column chunk whose pages are written, writes its
// Bloom filter and empties the column.
func (w *Writer) finishChunk(i int, done *finishedChunk) (writtenChunk, error) {
	c := w.columns[i]
	if err := c.writeBloomFilter(&w.file, done); err != nil {
		return writtenChunk{}, err
	}
	chunk := writtenChunk{metadata: c.metadata(w.paths[i], done), columnIndex: c.columnIndex(), offsetIndex: c.offsetIndex(done.dataOffset)}
	w.gathered[i].add(c, done)
	c.reset()
	return chunk, nil
}

// Close ends the file and describes it. Whatever happens, the writer gives back
// its memory.
func (w *Writer) Close(ctx context.Context) (*Written, error) {
	defer w.Abort()
	err := w.step(func() error {
		if err := w.flush(ctx); err != nil {
			return err
		}
		return w.file.finish(w.elements, len(w.tree.leaves), w.keyValue)
	})
	if err != nil {
		return nil, err
	}
	return w.written(), nil
}

// Abort ends the writer without finishing the file. After Close it does
// nothing.
func (w *Writer) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	for _, c := range w.columns {
		c.blocks.reset()
	}
	w.blocks.trim()
	w.columns, w.makers = nil, nil
	w.charged.Free()
}
