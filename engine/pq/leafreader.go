package pq

import (
	"context"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// leafReader walks over the data pages of a leaf's column chunk.
type leafReader struct {
	file *File
	leaf *leaf

	rowGroup int // -1: none is open
	pages    pageReader
	decoders decoders
	page     pagePosition
	begun    bool // the first data page's header has been read

	// The decoder of the loaded page: one of them.
	fixed fixedDecoder
	bytes bytesDecoder

	index        []pageLocation // of the open column chunk; nil: none
	indexCharged *mem.Reservation
	indexLooked  bool // index has been read, or must not be used
	jumped       bool // the current page was found by the index
}

// pagePosition is the current data page.
type pagePosition struct {
	// start and end are its rows, counted in the row group. Of a column with
	// repetition they are known only where the page or the index tells.
	start, end int64
	loaded     bool
	passed     bool // its bytes are behind the page reader
}

func newLeafReader(f *File, r *reader, l *leaf) leafReader {
	own := func() scratch { return scratch{alloc: f.opts.Alloc, charged: r.charged} }
	c := leafReader{file: f, leaf: l, rowGroup: -1, indexCharged: f.opts.Pool.ReserveWorkingSet("Parquet page indexes")}
	c.pages.source = chunkSource{source: f.source, block: f.opts.ReadSize, scratch: own(), ahead: newReadAhead(r)}
	c.pages.body = own()
	c.decoders.layout = l.layout()
	c.decoders.dictionary.memory, c.decoders.dictionary.views = own(), own()
	c.decoders.prefixes.last = own()
	c.decoders.decimals.out.scratch, c.decoders.sized.out.scratch, c.decoders.memo.out.scratch = own(), own(), own()
	return c
}

// open starts the leaf's column chunk of a row group, in front of its first
// data page, with the dictionary loaded.
func (c *leafReader) open(ctx context.Context, rowGroup int) error {
	c.rowGroup = -1
	c.decoders.dictionary.loaded = false
	c.index, c.indexLooked, c.jumped = nil, false, false
	c.indexCharged.Shrink(c.indexCharged.Size())
	c.page, c.begun = pagePosition{passed: true}, false
	if err := c.pages.open(c.file, rowGroup, c.leaf); err != nil {
		return err
	}
	c.rowGroup = rowGroup
	return nil
}

// nextPage moves to the next data page by reading its header. A dictionary on
// the way is loaded.
func (c *leafReader) nextPage(ctx context.Context) error {
	if !c.page.passed {
		c.pages.skip()
		c.page.passed = true
	}
	for {
		if c.pages.source.remaining() == 0 {
			return corrupt("the pages of row group %d end before its last row", c.rowGroup)
		}
		if err := c.pages.next(ctx); err != nil {
			return err
		}
		switch c.pages.header.kind {
		case dataPage, dataPageV2:
			c.page.loaded, c.page.passed, c.begun = false, false, true
			return nil
		case dictionaryPage:
			if err := c.loadDictionary(ctx); err != nil {
				return err
			}
		default: // of no use for reading
			c.pages.skip()
		}
	}
}

func (c *leafReader) loadDictionary(ctx context.Context) error {
	h := c.pages.header
	if h.encoding != encPlain && h.encoding != encPlainDictionary {
		return errs.New(errs.Unsupported, "a dictionary in the encoding %d is not supported", h.encoding)
	}
	if c.decoders.dictionary.loaded {
		return corrupt("a column chunk has two dictionaries")
	}
	body, err := c.pages.load(ctx)
	if err != nil {
		return err
	}
	return c.decoders.dictionary.load(c.leaf, c.decoders.layout, body.values, int(h.numValues))
}

// load decompresses the current page.
func (c *leafReader) load(ctx context.Context) (pageBody, error) {
	c.page.passed = true
	body, err := c.pages.load(ctx)
	if err == nil {
		c.page.loaded = true
	}
	return body, err
}

// startValues makes the decoder of the loaded page, which has at most n
// values.
func (c *leafReader) startValues(body pageBody, n int) (err error) {
	c.fixed, c.bytes, err = c.decoders.start(c.leaf, c.pages.header.encoding, body.values, n)
	return err
}

// toPage moves to the page of a row of a flat column.
func (c *leafReader) toPage(ctx context.Context, row int64) error {
	for row >= c.page.end {
		if err := c.jump(ctx, row); err != nil {
			return err
		}
		if !c.begun && row > 0 && c.pages.chunk.offsetIndex.length > 0 {
			// Probably only the dictionary and the first header are wanted here.
			head := c.pages.chunk.dataPageOffset - c.pages.source.begin + firstHeaderPeek
			c.pages.source.expect = int(max(firstHeaderPeek, min(head, int64(c.pages.source.block))))
		}
		start := c.page.end
		if err := c.nextPage(ctx); err != nil {
			return err
		}
		h := &c.pages.header
		if h.kind == dataPageV2 && h.numRows != h.numValues {
			return corrupt("a page of %d rows has %d values", h.numRows, h.numValues)
		}
		c.page.start, c.page.end = start, start+int64(h.numValues)
		if rows := c.file.meta.rowGroups[c.rowGroup].numRows; c.page.end > rows {
			return corrupt("the pages of row group %d go beyond its %d rows", c.rowGroup, rows)
		}
		if err := c.checkJump(ctx); err != nil {
			return err
		}
	}
	return nil
}

// jump uses the offset index, if there is one, to move in front of the page of
// a row of a flat column without reading what lies between. It does nothing
// where the current page is at hand anyway, and in front of the first page,
// which a dictionary may precede.
func (c *leafReader) jump(ctx context.Context, row int64) error {
	if c.page.passed || c.pages.source.held() >= int(c.pages.header.compressed) {
		return nil
	}
	p, ok, err := c.locate(ctx, row)
	if err != nil || !ok || p.firstRow <= c.page.end {
		return err
	}
	c.pages.source.seek(p.offset, int(p.size))
	c.page = pagePosition{start: p.firstRow, end: p.firstRow, passed: true}
	c.jumped = true
	return nil
}

// locate finds the page of a row in the offset index; false when there is no
// index, or when the page does not lie ahead.
func (c *leafReader) locate(ctx context.Context, row int64) (p pageLocation, ok bool, err error) {
	if !c.indexLooked {
		source := &c.pages.source
		c.index, err = c.file.offsetIndex(ctx, c.pages.chunk, source.begin, source.end, c.file.meta.rowGroups[c.rowGroup].numRows, c.indexCharged)
		if err != nil {
			return p, false, err
		}
		c.indexLooked = true
	}
	if c.index == nil {
		return p, false, nil
	}
	p = c.index[pageOf(c.index, row)]
	return p, p.offset > c.pages.source.offset(), nil
}

// lastRow is the row behind those of a page, as the index says.
func (c *leafReader) lastRow(p pageLocation) int64 {
	if next := pageOf(c.index, p.firstRow) + 1; next < len(c.index) {
		return c.index[next].firstRow
	}
	return c.file.meta.rowGroups[c.rowGroup].numRows
}

// checkJump compares the page that a jump led to with the index. One that
// differs shows that the index is of no use: the column chunk is read from its
// start without it.
func (c *leafReader) checkJump(ctx context.Context) error {
	if !c.jumped {
		return nil
	}
	c.jumped = false
	if c.page.end == c.lastRow(c.index[pageOf(c.index, c.page.start)]) {
		return nil
	}
	if err := c.open(ctx, c.rowGroup); err != nil {
		return err
	}
	c.indexLooked = true
	return nil
}

func (c *leafReader) free() {
	c.pages.free()
	c.decoders.free()
	c.indexCharged.Free()
}
