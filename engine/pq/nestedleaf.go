package pq

import (
	"bytes"
	"context"
)

// nestedLeaf reads a leaf whose rows may have any number of values.
//
// Every entry has a repetition level; a row starts at level zero and ends
// where the next one starts, which in old files may be in the next page.
type nestedLeaf struct {
	leafReader
	builder leafBuilder

	// The levels of the kept rows of the current window. rep is empty for a
	// leaf without repetition.
	rep, def []uint8
	flushed  int // of those, the entries whose values are in the builder

	row int64 // the next row, counted in the row group

	// The entries of the loaded page, and the first that is not used.
	pageRep, pageDef []uint8
	at               int
	repScratch       scratch
	defScratch       scratch

	spans  []span // values of the loaded page, not decoded yet
	passed int    // values of it to pass over since the last span
}

func newNestedLeaf(f *File, r *reader, l *leaf) *nestedLeaf {
	c := &nestedLeaf{leafReader: newLeafReader(f, r, l), builder: newLeafBuilder(l, f, r.charged)}
	c.repScratch = scratch{alloc: f.opts.Alloc, charged: r.charged}
	c.defScratch = c.repScratch
	return c
}

// read collects the levels and values of the kept rows of a window.
func (c *nestedLeaf) read(ctx context.Context, w *window) error {
	c.rep, c.def, c.flushed = c.rep[:0], c.def[:0], 0
	if err := c.builder.begin(w.kept); err != nil {
		return err
	}
	if w.kept == 0 {
		return nil
	}
	if c.rowGroup != w.rowGroup {
		if err := c.open(ctx, w.rowGroup); err != nil {
			return err
		}
	}
	if !c.begun {
		c.row = 0
		c.forgetPage()
		c.builder.expect(c.pages.chunk)
	}
	at := w.start
	for _, s := range w.spans {
		at += int64(s.skip)
		if err := c.advance(ctx, int(at-c.row), false); err != nil {
			return err
		}
		at += int64(s.take)
		if err := c.advance(ctx, s.take, true); err != nil {
			return err
		}
	}
	return c.flush()
}

func (c *nestedLeaf) forgetPage() {
	c.pageRep, c.pageDef, c.at, c.passed = nil, nil, 0, 0
}

// advance moves over n rows and keeps them or not.
func (c *nestedLeaf) advance(ctx context.Context, n int, keep bool) error {
	if n == 0 {
		return nil
	}
	started := 0 // rows whose first entry has been seen
	for {
		rows, end := c.scan(n - started)
		if started+rows == 0 && end > c.at {
			return corrupt("row %d of row group %d starts inside a list", c.row, c.rowGroup)
		}
		started += rows
		c.use(end, keep)
		if c.at < len(c.pageDef) || started == n && c.rowEndsWithPage() {
			break
		}
		if c.page.passed && c.pages.source.remaining() == 0 {
			if started < n {
				return corrupt("the pages of row group %d end before its last row", c.rowGroup)
			}
			break
		}
		if err := c.flush(); err != nil {
			return err
		}
		c.forgetPage()
		pass := 0
		if !keep {
			pass = n - started
		}
		passed, err := c.nextLevels(ctx, c.row+int64(started), pass)
		if err != nil {
			return err
		}
		started += passed
		if started == n && passed > 0 {
			break
		}
	}
	c.row += int64(n)
	return nil
}

// scan finds where in the loaded page the next n rows end: behind the last
// entry, if the page has no more than those. It returns how many start here.
func (c *nestedLeaf) scan(n int) (rows, end int) {
	if c.leaf.maxRep == 0 {
		rows = min(n, len(c.pageDef)-c.at)
		return rows, c.at + rows
	}
	for end = c.at; end < len(c.pageRep); end++ {
		if c.pageRep[end] == 0 {
			if rows == n {
				break
			}
			rows++
		}
	}
	return rows, end
}

// rowEndsWithPage reports whether the last row of the loaded page cannot
// continue in the next. Only pages of version 1 without an index split rows.
func (c *nestedLeaf) rowEndsWithPage() bool {
	return c.leaf.maxRep == 0 || c.pages.header.kind == dataPageV2 || c.pages.chunk.offsetIndex.length > 0
}

// use takes the entries up to end, or passes over them.
func (c *nestedLeaf) use(end int, keep bool) {
	def := c.pageDef[c.at:end]
	values := 0
	for _, d := range def {
		if d == c.leaf.maxDef {
			values++
		}
	}
	if !keep {
		c.passed += values
	} else if len(def) > 0 {
		c.spans = append(c.spans, span{skip: c.passed, take: values})
		c.passed = 0
		c.def = append(c.def, def...)
		if c.pageRep != nil {
			c.rep = append(c.rep, c.pageRep[c.at:end]...)
		}
	}
	c.at = end
}

// flush decodes the values of the collected entries that are not decoded yet.
func (c *nestedLeaf) flush() error {
	def := c.def[c.flushed:]
	c.flushed = len(c.def)
	if len(def) == 0 {
		return nil
	}
	slots, values := 0, 0
	for _, d := range def {
		if d >= c.leaf.slotDef {
			slots++
		}
		if d == c.leaf.maxDef {
			values++
		}
	}
	if err := c.builder.room(slots); err != nil {
		return err
	}
	err := c.builder.decode(c.fixed, c.bytes, c.spans)
	c.spans = c.spans[:0]
	if err != nil {
		return err
	}
	if slots == values {
		c.builder.fill(slots)
		return nil
	}
	valid := c.builder.validity()
	slot := c.builder.slots
	for _, d := range def {
		if d < c.leaf.slotDef {
			continue
		}
		if d == c.leaf.maxDef {
			setBit(valid, slot)
		}
		slot++
	}
	c.builder.spread(slots, values)
	return nil
}

// nextLevels moves to the next page and decodes its levels. Of the next n rows,
// which start at row and of which nothing is wanted, it passes over whole
// pages unloaded and returns how many rows those had.
func (c *nestedLeaf) nextLevels(ctx context.Context, row int64, n int) (passed int, err error) {
	if n > 0 && c.begun {
		p, ok, err := c.locate(ctx, row+int64(n))
		if err != nil {
			return 0, err
		}
		if ok && p.firstRow > row {
			c.pages.source.seek(p.offset, int(p.size))
			c.page.passed = true
			passed = int(p.firstRow - row)
			if err := c.nextPage(ctx); err != nil {
				return passed, err
			}
			return passed, c.loadJumped(ctx, p)
		}
	}
	for {
		if err := c.nextPage(ctx); err != nil {
			return passed, err
		}
		h := &c.pages.header
		rows := int(h.numRows)
		if h.kind == dataPage {
			rows = int(h.numValues)
		}
		rowsKnown := h.kind == dataPageV2 || c.leaf.maxRep == 0
		if passed == n || !rowsKnown || rows > n-passed {
			return passed, c.loadLevels(ctx)
		}
		if passed += rows; passed == n {
			return passed, nil // the page after this one is wanted
		}
	}
}

// loadJumped loads the page that the index led to, and checks that it has the
// rows that the index says.
func (c *nestedLeaf) loadJumped(ctx context.Context, p pageLocation) error {
	if err := c.loadLevels(ctx); err != nil {
		return err
	}
	rows := len(c.pageDef)
	if c.leaf.maxRep > 0 {
		rows = bytes.Count(c.pageRep, []byte{0})
	}
	if want := c.lastRow(p) - p.firstRow; int64(rows) != want || c.leaf.maxRep > 0 && c.pageRep[0] != 0 {
		return corrupt("the offset index of row group %d says that a page of %d rows has %d", c.rowGroup, rows, want)
	}
	return nil
}

// loadLevels decompresses the current page and decodes its levels.
func (c *nestedLeaf) loadLevels(ctx context.Context) error {
	n := int(c.pages.header.numValues)
	body, err := c.load(ctx)
	if err != nil {
		return err
	}
	if c.pageDef, err = decodeLevels(&c.defScratch, body.def, c.leaf.maxDef, n); err != nil {
		return err
	}
	if c.leaf.maxRep > 0 {
		if c.pageRep, err = decodeLevels(&c.repScratch, body.rep, c.leaf.maxRep, n); err != nil {
			return err
		}
	}
	return c.startValues(body, n)
}

// decodeLevels decodes the n levels of a page, none above most.
func decodeLevels(s *scratch, buf []byte, most uint8, n int) ([]uint8, error) {
	if err := s.grow(n, 0); err != nil {
		return nil, err
	}
	out := s.buf[:n:n]
	if most == 0 {
		clear(out)
		return out, nil
	}
	var h hybrid
	h.reset(buf, levelWidth(most))
	if h.levels(out) < n {
		return nil, corrupt("a page has fewer levels than values")
	}
	for _, level := range out {
		if level > most {
			return nil, corrupt("a level of %d where the most is %d", level, most)
		}
	}
	return out, nil
}

// levelWidth is the number of bits of levels from zero to most.
func levelWidth(most uint8) uint {
	width := uint(0)
	for ; most > 0; most >>= 1 {
		width++
	}
	return width
}

func (c *nestedLeaf) close() {
	c.builder.free()
	c.repScratch.free()
	c.defScratch.free()
	c.leafReader.free()
}
