package pq

import (
	"context"
	"encoding/binary"
	"hash/crc32"

	"github.com/icebergexec/icebergexec/engine/errs"
)

const (
	// firstHeaderPeek covers page headers without long statistics.
	firstHeaderPeek = 256
	// maxHeader bounds a page header: it may hold two values as statistics.
	maxHeader = 16 << 20 // 16 MiB
	// maxDoubtfulPage is the size from which on a page must not be larger than
	// its column chunk claims to be in all.
	maxDoubtfulPage = 64 << 20 // 64 MiB
)

// pageReader walks over the pages of one column chunk.
type pageReader struct {
	source     chunkSource
	chunk      *columnChunk
	leaf       *leaf
	decompress decompressor
	body       scratch // a decompressed page
	header     pageHeader
}

// chunkOf checks what a row group says of a leaf and finds the bytes of its
// column chunk, [start, end).
func (f *File) chunkOf(rowGroup int, l *leaf) (c *columnChunk, start, end int64, err error) {
	g := &f.meta.rowGroups[rowGroup]
	c = &g.columns[l.index]
	switch {
	case !c.hasColumnMetadata:
		return nil, 0, 0, corrupt("row group %d does not describe the column", rowGroup)
	case c.encrypted:
		return nil, 0, 0, errs.New(errs.Unsupported, "the column is encrypted")
	case c.elsewhere:
		return nil, 0, 0, errs.New(errs.Unsupported, "the column's data is in another file")
	case c.physical != l.physical:
		return nil, 0, 0, corrupt("row group %d has the physical type %d, the schema %d", rowGroup, c.physical, l.physical)
	case l.maxRep == 0 && c.numValues != g.numRows, c.numValues < g.numRows:
		return nil, 0, 0, corrupt("row group %d has %d values for %d rows", rowGroup, c.numValues, g.numRows)
	}
	start = c.dataPageOffset
	if c.dictPageOffset > 0 {
		start = min(start, c.dictPageOffset)
	}
	if start < int64(len(magicPlain)) || c.compressedSize < 0 || start > f.dataEnd-c.compressedSize {
		return nil, 0, 0, corrupt("row group %d claims %d bytes at offset %d of %d", rowGroup, c.compressedSize, start, f.dataEnd)
	}
	return c, start, start + c.compressedSize, nil
}

// open starts a column chunk.
func (p *pageReader) open(f *File, rowGroup int, l *leaf) error {
	c, start, end, err := f.chunkOf(rowGroup, l)
	if err != nil {
		return err
	}
	if p.decompress, err = decompressorOf(c.codec); err != nil {
		return err
	}
	p.chunk, p.leaf = c, l
	p.source.open(start, end)
	return nil
}

// next reads the next page's header. The page is then loaded or skipped.
func (p *pageReader) next(ctx context.Context) error {
	for peek := firstHeaderPeek; ; peek *= 4 {
		buf, err := p.source.peek(ctx, peek)
		if err != nil {
			return err
		}
		header, length, short, err := parsePageHeader(buf)
		if err != nil {
			return err
		}
		if short {
			if len(buf) < peek || peek >= maxHeader {
				return corrupt("a page header is cut off")
			}
			continue
		}
		p.header = header
		p.source.skip(length)
		break
	}
	h := &p.header
	if int64(h.compressed) > p.source.remaining() {
		return corrupt("a page claims %d bytes where %d are left", h.compressed, p.source.remaining())
	}
	if int64(h.uncompressed) > max(p.chunk.uncompressedSize, maxDoubtfulPage) {
		return corrupt("a page claims %d bytes in a column chunk of %d", h.uncompressed, p.chunk.uncompressedSize)
	}
	return nil
}

// skip passes over the page.
func (p *pageReader) skip() { p.source.skip(int(p.header.compressed)) }

// pageBody is a page's content. The slices are valid until the next page, with
// slack behind values.
type pageBody struct {
	rep, def []byte // run-length encoded levels; nil: the column has none
	values   []byte
}

// load decompresses the page.
func (p *pageReader) load(ctx context.Context) (pageBody, error) {
	h := &p.header
	stored, err := p.source.peek(ctx, int(h.compressed))
	if err != nil {
		return pageBody{}, err
	}
	p.source.skip(int(h.compressed))
	if h.hasCRC && crc32.ChecksumIEEE(stored) != h.crc {
		return pageBody{}, corrupt("a page's checksum does not match")
	}
	var body pageBody
	if h.kind == dataPageV2 {
		body.rep, body.def = stored[:h.repLength], stored[h.repLength:h.repLength+h.defLength]
		levels := h.repLength + h.defLength
		body.values, err = p.inflate(stored[levels:], int(h.uncompressed-levels), h.valuesCompressed)
		return body, err
	}
	if body.values, err = p.inflate(stored, int(h.uncompressed), true); err != nil || h.kind != dataPage {
		return body, err
	}
	if p.leaf.maxRep > 0 {
		if body.rep, body.values, err = splitLevels(body.values, h.repEncoding); err != nil {
			return body, err
		}
	}
	if p.leaf.maxDef > 0 {
		body.def, body.values, err = splitLevels(body.values, h.defEncoding)
	}
	return body, err
}

// inflate returns the size bytes that stored holds.
func (p *pageReader) inflate(stored []byte, size int, compressed bool) ([]byte, error) {
	if !compressed || p.chunk.codec == codecNone {
		if len(stored) != size {
			return nil, corrupt("an uncompressed page has %d bytes and claims %d", len(stored), size)
		}
		return stored, nil
	}
	if size == 0 { // some writers compress nothing to nothing
		return p.body.buf[:0], nil
	}
	if err := p.body.grow(size, 0); err != nil {
		return nil, err
	}
	dst := p.body.buf[:size:size]
	if err := p.decompress(dst, stored); err != nil {
		return nil, err
	}
	return p.body.buf[:size], nil
}

// splitLevels takes the levels off the front of a version 1 page.
func splitLevels(values []byte, enc encoding) (levels, rest []byte, err error) {
	if enc != encRLE {
		return nil, nil, errs.New(errs.Unsupported, "levels in the encoding %d are not supported", enc)
	}
	if len(values) < 4 {
		return nil, nil, corrupt("a page ends inside its levels")
	}
	n := binary.LittleEndian.Uint32(values)
	if uint64(n) > uint64(len(values)-4) {
		return nil, nil, corrupt("a page's levels claim %d bytes of %d", n, len(values)-4)
	}
	return values[4 : 4+n], values[4+n:], nil
}

func (p *pageReader) free() {
	p.source.free()
	p.body.free()
}
