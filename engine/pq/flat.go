package pq

import (
	"context"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// flatColumn reads a top-level primitive column, whose rows are its values.
//
// It moves over the rows of a row group in order. A page is loaded when a row
// of it is wanted; one without wanted rows is passed over by its header, or by
// the offset index when the file has one. Inside a page, unwanted values are
// passed over in bulk.
type flatColumn struct {
	leafReader
	builder leafBuilder
	spans   []span

	row int64 // the next row to read or pass over, counted in the row group

	valid    []byte  // of the loaded page, a bit a row; nil: no nulls
	validity scratch // valid's memory
}

func newFlatColumn(f *File, r *reader, l *leaf) *flatColumn {
	c := &flatColumn{leafReader: newLeafReader(f, r, l), builder: newLeafBuilder(l, f, r.charged)}
	c.validity = scratch{alloc: f.opts.Alloc, charged: r.charged}
	return c
}

func (c *flatColumn) read(ctx context.Context, rowGroup int, window batch.Range, keep *batch.Mask) (arrow.Array, error) {
	rows := int(window.Len())
	if keep != nil {
		rows = keep.Count()
	}
	if err := c.builder.begin(rows); err != nil {
		c.builder.abort()
		return nil, err
	}
	if rows > 0 { // otherwise the row group may never need to be opened
		if err := c.readRows(ctx, rowGroup, window, keep); err != nil {
			c.builder.abort()
			return nil, err
		}
	}
	return c.builder.finish(), nil
}

func (c *flatColumn) readRows(ctx context.Context, rowGroup int, window batch.Range, keep *batch.Mask) error {
	if c.rowGroup != rowGroup {
		if err := c.open(ctx, rowGroup); err != nil {
			return err
		}
	}
	if !c.begun {
		c.row = 0
		c.builder.expect(c.pages.chunk)
	}
	for at := window.Start; at < window.End; {
		if err := c.toPage(ctx, at); err != nil {
			return err
		}
		end := min(window.End, c.page.end)
		from, to := int(at-window.Start), int(end-window.Start)
		c.spans = appendSpans(c.spans[:0], keep, from, to)
		if len(c.spans) > 0 {
			if err := c.readPage(ctx, at); err != nil {
				return err
			}
		}
		at = end
	}
	return nil
}

// readPage reads the rows of spans, which start at row at of the current page.
func (c *flatColumn) readPage(ctx context.Context, at int64) error {
	if !c.page.loaded {
		if err := c.loadPage(ctx); err != nil {
			return err
		}
		c.row = c.page.start
	}
	first := int(c.row - c.page.start) // of the page's rows, the first not passed
	c.spans[0].skip += int(at - c.row)
	for _, s := range c.spans {
		c.row += int64(s.skip + s.take)
	}
	if c.valid == nil {
		if err := c.builder.decode(c.fixed, c.bytes, c.spans); err != nil {
			return err
		}
		for _, s := range c.spans {
			c.builder.fill(s.take)
		}
		return nil
	}
	// Turn rows into values: those that are not null.
	taken, count := 0, 0
	bitmap := c.builder.validity()
	for i, s := range c.spans {
		kept := first + s.skip
		values := span{skip: onesIn(c.valid, first, kept), take: onesIn(c.valid, kept, kept+s.take)}
		bitutil.CopyBitmap(c.valid, kept, s.take, bitmap, c.builder.slots+taken)
		taken, count = taken+s.take, count+values.take
		first = kept + s.take
		c.spans[i] = values
	}
	if err := c.builder.decode(c.fixed, c.bytes, c.spans); err != nil {
		return err
	}
	c.builder.spread(taken, count)
	return nil
}

// loadPage decompresses the current page and decodes its levels.
func (c *flatColumn) loadPage(ctx context.Context) error {
	body, err := c.load(ctx)
	if err != nil {
		return err
	}
	c.valid = nil
	rows := int(c.page.end - c.page.start)
	if c.leaf.maxDef > 0 {
		if err := c.loadValidity(body.def, rows); err != nil {
			return err
		}
	}
	return c.startValues(body, rows)
}

// loadValidity decodes definition levels, which are zero for null and one for
// a value: the bits of a validity bitmap.
func (c *flatColumn) loadValidity(def []byte, rows int) error {
	var h hybrid
	h.reset(def, 1)
	if h.allOnes(rows) {
		return nil
	}
	size := int(bitutil.BytesForBits(int64(rows)))
	if err := c.validity.grow(size, 0); err != nil {
		return err
	}
	bitmap := c.validity.buf[:size]
	clear(bitmap)
	if h.bits(bitmap, 0, rows) < rows {
		return corrupt("a page has fewer levels than values")
	}
	c.valid = bitmap
	return nil
}

func (c *flatColumn) leaves() []*leafReader { return []*leafReader{&c.leafReader} }

func (c *flatColumn) close() {
	c.builder.free()
	c.validity.free()
	c.leafReader.free()
}

// appendSpans lists the rows [from, to) of a window that keep keeps; nil keeps
// all. What is not kept behind the last kept row is left out.
func appendSpans(spans []span, keep *batch.Mask, from, to int) []span {
	if keep == nil {
		return append(spans, span{take: to - from})
	}
	last := from
	for at := from; at < to; {
		start := nextBit(keep, at, to, true)
		if start == to {
			break
		}
		end := nextBit(keep, start, to, false)
		spans = append(spans, span{skip: start - last, take: end - start})
		last, at = end, end
	}
	return spans
}

// nextBit is the first row in [from, to) that is kept, or not kept; to when
// there is none.
func nextBit(keep *batch.Mask, from, to int, kept bool) int {
	flip := ^uint64(0)
	if kept {
		flip = 0
	}
	for at := from; at < to; at = at&^63 + 64 {
		if word := (keep.Words[at>>6] ^ flip) >> (at & 63); word != 0 {
			return min(at+bits.TrailingZeros64(word), to)
		}
	}
	return to
}
