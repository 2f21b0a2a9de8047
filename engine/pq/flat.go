package pq

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
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
	encoder *dictionaryEncoder // nil: strings come out as they are
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

// encode makes the column, which has strings, come out dictionary-encoded.
func (c *flatColumn) encode(f *File, r *reader) {
	c.encoder = newDictionaryEncoder(c.leaf, f, r.charged)
	c.builder.typ, c.builder.layout = arrow.PrimitiveTypes.Int32, layout{width: indexWidth}
}

func (c *flatColumn) read(ctx context.Context, w *window) (arrow.Array, error) {
	if err := c.builder.begin(w.kept); err != nil {
		c.builder.abort()
		return nil, err
	}
	if w.kept > 0 { // otherwise the row group may never need to be opened
		if err := c.readRows(ctx, w); err != nil {
			c.builder.abort()
			return nil, err
		}
	}
	a := c.builder.finish()
	if c.encoder != nil {
		return c.encoder.finish(&c.decoders.dictionary, a)
	}
	return a, nil
}

func (c *flatColumn) readRows(ctx context.Context, w *window) error {
	if c.rowGroup != w.rowGroup {
		if err := c.open(ctx, w.rowGroup); err != nil {
			return err
		}
	}
	if !c.begun {
		c.row = 0
		c.builder.expect(c.pages.chunk)
	}
	at := w.start // from where s.skip counts
	rest := w.spans[1:]
	for s := w.spans[0]; s.take > 0; {
		first := at + int64(s.skip)
		if err := c.toPage(ctx, first); err != nil {
			return err
		}
		// Cut out the spans that lie in this page.
		c.spans = c.spans[:0]
		for s.take > 0 && at+int64(s.skip) < c.page.end {
			start := at + int64(s.skip)
			take := int(min(int64(s.take), c.page.end-start))
			c.spans = append(c.spans, span{skip: s.skip, take: take})
			at = start + int64(take)
			s = span{take: s.take - take}
			if s.take == 0 && len(rest) > 0 {
				s, rest = rest[0], rest[1:]
			}
		}
		if err := c.readPage(ctx, first); err != nil {
			return err
		}
	}
	return nil
}

// readPage reads the rows of spans from the current page. Row at is the first.
func (c *flatColumn) readPage(ctx context.Context, at int64) error {
	if !c.page.loaded {
		if err := c.loadPage(ctx); err != nil {
			return err
		}
		c.row = c.page.start
	}
	first := int(c.row - c.page.start) // of the page's rows, the first not passed
	c.spans[0].skip = int(at - c.row)
	taken := 0
	for _, s := range c.spans {
		c.row += int64(s.skip + s.take)
		taken += s.take
	}
	if c.valid == nil {
		if err := c.builder.decode(c.fixed, c.bytes, c.spans); err != nil {
			return err
		}
		c.builder.fill(taken)
		return nil
	}
	// Turn rows into values: those that are not null.
	slot, count := c.builder.slots, 0
	bitmap := c.builder.validity()
	for i, s := range c.spans {
		kept := first + s.skip
		values := span{skip: onesIn(c.valid, first, kept), take: onesIn(c.valid, kept, kept+s.take)}
		copyBits(bitmap, slot, c.valid, kept, s.take)
		slot, count = slot+s.take, count+values.take
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
	if err := c.startValues(body, rows); err != nil || c.encoder == nil {
		return err
	}
	c.fixed, err = c.encoder.indicesOf(&c.decoders, c.rowGroup, c.bytes)
	c.bytes = nil
	return err
}

// loadValidity decodes definition levels, which are zero for null and one for
// a value: the bits of a validity bitmap.
func (c *flatColumn) loadValidity(def []byte, rows int) error {
	var h hybrid
	h.reset(def, 1)
	if h.allOnes(rows) {
		return nil
	}
	size := bitmapSize(rows)
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
	if c.encoder != nil {
		c.encoder.free()
	}
	c.builder.free()
	c.validity.free()
	c.leafReader.free()
}
