package pq

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// ErrCannotCopy is the cause of every refusal to copy a row group as it is:
// its rows can be read and written instead. A refusal leaves the writer usable.
var ErrCannotCopy = errors.New("the row group cannot be copied as it is")

// CopyOptions say what a copied row group's bytes do not.
type CopyOptions struct {
	// NaNCounts are those of the row group's columns, by field id, as far as
	// they are known; Parquet does not count NaNs. A column without a count
	// has none in the metrics of the new file.
	NaNCounts map[int]int64
	// Generated supplies columns of the new file that are not to be copied,
	// and those that the source lacks: some of the columns of the writer's
	// batches, by field id, for all rows of the row group; nil: none. The
	// caller closes it.
	Generated batch.Stream
}

// CanCopy tells whether CopyRowGroup would take a row group of a file; the
// error says why not, and is an ErrCannotCopy if the rows can be decoded. The
// row group must have the writer's columns except those of generated, with the
// same field ids, physical types, annotations and nullability at every level.
// Names and order may differ.
func (w *Writer) CanCopy(src *File, rowGroup int, generated *arrow.Schema) error {
	_, err := w.planCopy(src, rowGroup, generated)
	return err
}

// CopyRowGroup ends the open row group and copies one of another file: the
// bytes of its column chunks and Bloom filters, its statistics and its page
// index, with every offset moved.
func (w *Writer) CopyRowGroup(ctx context.Context, src *File, rowGroup int, options CopyOptions) error {
	var generated *arrow.Schema
	if options.Generated != nil {
		generated = options.Generated.Schema()
	}
	plan, err := w.planCopy(src, rowGroup, generated)
	if err != nil {
		return err
	}
	return w.step(func() error {
		if err := w.flush(ctx); err != nil {
			return err
		}
		if plan.rows == 0 {
			return nil
		}
		return w.copyRowGroup(ctx, plan, options)
	})
}

// CopyRowGroups copies row groups, or none of them when one is refused.
func (w *Writer) CopyRowGroups(ctx context.Context, src *File, rowGroups []int) error {
	for _, g := range rowGroups {
		if err := w.CanCopy(src, g, nil); err != nil {
			return err
		}
	}
	for _, g := range rowGroups {
		if err := w.CopyRowGroup(ctx, src, g, CopyOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// copyPlan says where each column chunk of a new row group comes from.
type copyPlan struct {
	src    *File
	rows   int64
	group  *rowGroup
	chunks []plannedChunk // by leaf of the new file
	tops   []int          // the generated columns: which of the writer's
}

// plannedChunk is a column chunk to copy, or to generate.
type plannedChunk struct {
	leaf       *leaf // of the source; nil: generated
	chunk      *columnChunk
	metadata   []byte // the ColumnMetaData as the source's footer has it
	start, end int64
}

func (w *Writer) planCopy(src *File, group int, generated *arrow.Schema) (*copyPlan, error) {
	p := &copyPlan{src: src, group: &src.meta.rowGroups[group], chunks: make([]plannedChunk, len(w.tree.leaves))}
	p.rows = p.group.numRows
	err := p.fill(w, group, generated)
	if errs.CodeOf(err) == errs.Unsupported {
		err = &errs.Error{Code: errs.Unsupported, Msg: err.Error(), Err: ErrCannotCopy}
	}
	return p, errs.Wrap(err, "copy", src.path)
}

func (p *copyPlan) fill(w *Writer, group int, generated *arrow.Schema) error {
	made := map[int]bool{}
	if generated != nil {
		for _, f := range generated.Fields() {
			top, err := w.columnOf(f)
			if err != nil {
				return err
			}
			made[top] = true
			p.tops = append(p.tops, top)
		}
	}
	metadata, err := p.group.columnMetadata()
	if err != nil {
		return err
	}
	byID := nodesByID(p.src.schema.columns)
	for _, n := range w.tree.columns {
		if made[w.tops[n.firstLeaf]] {
			continue
		}
		from := byID[n.fieldID()]
		if from == nil {
			return errs.New(errs.Unsupported, "the file has no column with the field id %s, which is %s", n.fieldID(), n.field.Name)
		}
		if err := p.match(n, from); err != nil {
			return err
		}
	}
	for i := range p.chunks {
		c := &p.chunks[i]
		if c.leaf == nil {
			continue
		}
		if c.chunk, c.start, c.end, err = p.src.chunkOf(group, c.leaf); err != nil {
			return err
		}
		c.metadata = metadata[c.leaf.index]
	}
	return nil
}

// columnOf finds the column of the writer's batches that a generated one is.
func (w *Writer) columnOf(f arrow.Field) (int, error) {
	id, _ := f.Metadata.GetValue(fieldIDKey)
	n := nodesByID(w.tree.columns)[id]
	if n == nil {
		return 0, errs.New(errs.InvalidArgument, "the generated column %s is none of the file's", f.Name)
	}
	top := w.tops[n.firstLeaf]
	if want := w.schema.Field(top).Type; !arrow.TypeEqual(want, f.Type) {
		return 0, errs.New(errs.InvalidArgument, "the generated column %s has the type %s, the file's is %s", f.Name, f.Type, want)
	}
	return top, nil
}

// fieldID is the node's field id as text; empty: it has none.
func (n *node) fieldID() string {
	id, _ := n.field.Metadata.GetValue(fieldIDKey)
	return id
}

func nodesByID(nodes []*node) map[string]*node {
	byID := map[string]*node{}
	for _, n := range nodes {
		if id := n.fieldID(); id != "" {
			byID[id] = n
		}
	}
	return byID
}

// match finds the chunks of a node of the new file below one of the source.
// What the levels and values of a leaf mean must be the same in both.
func (p *copyPlan) match(n, from *node) error {
	name := n.field.Name
	if n.kind != from.kind || n.fieldID() != from.fieldID() {
		return errs.New(errs.Unsupported, "column %s is not nested as it was", name)
	}
	if n.def != from.def || n.rep != from.rep || n.field.Nullable != from.field.Nullable {
		return errs.New(errs.Unsupported, "column %s was optional and is required, or the other way round", name)
	}
	if n.kind == leafNode {
		l, have := n.leaf, from.leaf
		if l.physical != have.physical || l.physical == physFixedLenArray && l.length != have.length || have.unsupported != "" || !arrow.TypeEqual(l.typ, have.typ) {
			return errs.New(errs.Unsupported, "column %s was written with another type", name)
		}
		p.chunks[l.index].leaf = have
		return nil
	}
	if n.kind != structNode {
		for i, child := range n.children {
			if err := p.match(child, from.children[i]); err != nil {
				return err
			}
		}
		return nil
	}
	byID := nodesByID(from.children)
	for _, child := range n.children {
		part := byID[child.fieldID()]
		if part == nil {
			return errs.New(errs.Unsupported, "the file has no column with the field id %s, which is %s.%s", child.fieldID(), name, child.field.Name)
		}
		if err := p.match(child, part); err != nil {
			return err
		}
	}
	return nil
}

// copyRowGroup writes the planned row group.
func (w *Writer) copyRowGroup(ctx context.Context, p *copyPlan, options CopyOptions) error {
	if err := w.file.start(); err != nil {
		return err
	}
	if err := w.generate(ctx, p, options.Generated); err != nil {
		return err
	}
	group := writtenGroup{rows: p.rows, offset: w.file.offset}
	starts := make([]int64, len(p.chunks)) // of the chunks in the new file
	made := make([]finishedChunk, len(p.chunks))
	for i := 0; i < len(p.chunks); {
		c := &p.chunks[i]
		starts[i] = w.file.offset
		if c.leaf == nil {
			var err error
			if made[i], err = w.columns[i].writeChunk(&w.file, w.makers[0]); err != nil {
				return err
			}
			group.compressed += made[i].compressed
			group.uncompressed += made[i].uncompressed
			i++
			continue
		}
		// Chunks that are neighbours in the source too are copied in one go.
		start, end := c.start, c.start
		for i < len(p.chunks) && p.chunks[i].leaf != nil && p.chunks[i].start == end {
			c := &p.chunks[i]
			starts[i] = w.file.offset + end - start
			end = c.end
			group.compressed += c.end - c.start
			group.uncompressed += max(c.chunk.uncompressedSize, 0)
			i++
		}
		if err := w.copyBytes(ctx, p.src, start, end); err != nil {
			return err
		}
	}
	for i := range p.chunks {
		var chunk writtenChunk
		var err error
		if p.chunks[i].leaf == nil {
			chunk, err = w.finishChunk(i, &made[i])
		} else {
			chunk, err = w.finishCopy(ctx, p, i, starts[i], options)
		}
		if err != nil {
			return err
		}
		group.chunks = append(group.chunks, chunk)
	}
	w.file.add(group)
	w.chargeAnyway()
	return nil
}

// generate encodes the columns that are not copied.
func (w *Writer) generate(ctx context.Context, p *copyPlan, columns batch.Stream) error {
	if columns == nil {
		return nil
	}
	rows := int64(0)
	for {
		record, err := columns.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		err = w.generateBatch(ctx, p, record)
		rows += record.NumRows()
		record.Release()
		if err != nil {
			return err
		}
	}
	if rows != p.rows {
		return errs.New(errs.InvalidArgument, "the generated columns have %d rows, the row group %d", rows, p.rows)
	}
	for i := range p.chunks {
		if c := w.columns[i]; p.chunks[i].leaf == nil && c.page.rows > 0 {
			if err := c.endPage(w.makers[0], true /* last */); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) generateBatch(ctx context.Context, p *copyPlan, record arrow.RecordBatch) error {
	rows := int(record.NumRows())
	slice := rowsOfSlice(record)
	for from := 0; from < rows; from += slice {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		to := min(from+slice, rows)
		for column, top := range p.tops {
			for i, c := range w.columns {
				if w.tops[i] == top {
					if err := c.write(w.makers[0], record.Column(column), from, to); err != nil {
						return err
					}
				}
			}
		}
		// A row group that is copied cannot end early.
		w.chargeAnyway()
	}
	return nil
}

// copyPiece is how many bytes are copied at a time.
const copyPiece = 1 << 20 // 1 MiB

// copyBytes copies the bytes [start, end) of a file.
func (w *Writer) copyBytes(ctx context.Context, src *File, start, end int64) error {
	if w.copying == nil {
		w.copying = make([]byte, copyPiece)
	}
	for start < end {
		block := w.copying[:min(end-start, copyPiece)]
		if err := readInto(ctx, src.source, block, start); err != nil {
			return errs.Wrap(err, "read", src.path)
		}
		if err := w.file.write(block); err != nil {
			return err
		}
		start += int64(len(block))
	}
	return nil
}

// finishCopy describes a copied column chunk, which starts at an offset of the
// new file, and copies its Bloom filter.
func (w *Writer) finishCopy(ctx context.Context, p *copyPlan, i int, start int64, options CopyOptions) (writtenChunk, error) {
	c := &p.chunks[i]
	shift := start - c.start
	bloom, err := w.copyBloomFilter(ctx, p.src, c.chunk)
	if err != nil {
		return writtenChunk{}, err
	}
	done := writtenChunk{metadata: c.moved(p.src, w.paths[i], shift, bloom)}
	if done.offsetIndex, err = p.src.movedOffsetIndex(ctx, c, shift); err != nil {
		return writtenChunk{}, err
	}
	if done.offsetIndex != nil && p.src.trustsBounds(c.leaf) {
		if done.columnIndex, err = p.src.rawIndex(ctx, c.chunk.columnIndex); err != nil {
			return writtenChunk{}, err
		}
	}
	w.gathered[i].addCopied(p.src, c, options)
	return done, nil
}

// copyBloomFilter copies the filter of a column chunk, if it has one that can
// be found.
func (w *Writer) copyBloomFilter(ctx context.Context, src *File, c *columnChunk) (section, error) {
	size, err := src.bloomSize(ctx, c)
	if err != nil || size == 0 {
		return section{}, errs.Wrap(err, "read", src.path)
	}
	at := section{w.file.offset, int32(size)}
	return at, w.copyBytes(ctx, src, c.bloomOffset, c.bloomOffset+size)
}
