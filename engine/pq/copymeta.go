package pq

import (
	"context"
	"slices"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// What the footer and the indexes of a file say of a column chunk, as it must
// be said of its copy. Fields that this version does not know are kept.

// trustsBounds reports whether the bounds of a leaf's pages are in the order
// that the new file will claim for them.
func (f *File) trustsBounds(l *leaf) bool { return f.typeOrdered(l) && f.ordersDecimals(l) }

// bloomSize is how many bytes a chunk's filter takes with its header; zero:
// there is none. Older writers do not tell in the footer.
func (f *File) bloomSize(ctx context.Context, c *columnChunk) (int64, error) {
	if c.bloomOffset < int64(len(magicPlain)) || c.bloomOffset >= f.dataEnd {
		return 0, nil
	}
	size := int64(c.bloomLength)
	if size <= 0 {
		head, err := readRange(ctx, f.source, c.bloomOffset, min(c.bloomOffset+bloomHeaderGuess, f.dataEnd))
		if err != nil {
			return 0, err
		}
		t := &thriftReader{buf: head}
		for id, typ := range t.fields() {
			if id == 1 {
				size = int64(t.int32(typ))
			} else {
				t.skip(typ)
			}
		}
		if t.failed || size <= 0 {
			return 0, nil
		}
		size += int64(t.pos)
	}
	if size > maxBloomFilter+bloomHeaderGuess || size > f.dataEnd-c.bloomOffset {
		return 0, nil
	}
	return size, nil
}

// rawIndex reads an index as it is; nil when there is none, or when its place
// is damaged: an index only saves reading.
func (f *File) rawIndex(ctx context.Context, s section) ([]byte, error) {
	if s.length <= 0 || s.length > maxIndex || s.offset < 0 || s.offset > f.dataEnd-int64(s.length) {
		return nil, nil
	}
	b, err := readRange(ctx, f.source, s.offset, s.offset+int64(s.length))
	return b, errs.Wrap(err, "read", f.path)
}

// movedOffsetIndex is the chunk's OffsetIndex with its offsets moved; nil when
// there is none that fits the chunk.
func (f *File) movedOffsetIndex(ctx context.Context, c *plannedChunk, shift int64) ([]byte, error) {
	buf, err := f.rawIndex(ctx, c.chunk.offsetIndex)
	if err != nil || buf == nil {
		return nil, err
	}
	pages, ok := parseOffsetIndex(buf)
	if !ok {
		return nil, nil
	}
	for _, p := range pages {
		if p.offset < c.start || p.size <= 0 || p.offset > c.end-int64(p.size) {
			return nil, nil
		}
	}
	return rewriteStruct(buf, func(t *thriftEncoder, id int16, typ byte, value []byte) {
		if id != 1 {
			t.raw(id, typ, value)
			return
		}
		t.list(1, thriftStruct, len(pages))
		for _, p := range pages {
			t.element(func() {
				t.int64(1, p.offset+shift)
				t.int32(2, p.size)
				t.int64(3, p.firstRow)
			})
		}
	}), nil
}

// moved is the chunk's ColumnMetaData for the new file.
func (c *plannedChunk) moved(src *File, path []string, shift int64, bloom section) []byte {
	return rewriteStruct(c.metadata, func(t *thriftEncoder, id int16, typ byte, value []byte) {
		switch id {
		case 3:
			t.list(3, thriftBinary, len(path))
			for _, name := range path {
				t.rawBinary([]byte(name))
			}
		case 9, 10, 11: // offsets of pages; zero: none
			v := thriftReader{buf: value}
			if offset := v.int64(typ); offset > 0 {
				t.int64(id, offset+shift)
			}
		case 12:
			t.structure(12, func() { c.moveStatistics(t, src, value) })
		case 14:
			if bloom.length > 0 {
				t.int64(14, bloom.offset)
				t.int32(15, bloom.length)
			}
		case 15: // written with its offset
		default:
			t.raw(id, typ, value)
		}
	})
}

// moveStatistics keeps the bounds that hold in the order that the new file
// claims. The older kind of bounds is dropped or becomes the newer one, since
// readers judge it by the name of the file's writer.
func (c *plannedChunk) moveStatistics(t *thriftEncoder, src *File, value []byte) {
	fields := structFields(value)
	keep := func(first, last int16) {
		for _, f := range fields {
			if f.id >= first && f.id <= last {
				t.raw(f.id, f.typ, f.value)
			}
		}
	}
	keep(3, 4) // counts
	min, max := src.copiedBounds(c)
	if max != nil {
		t.binary(5, max)
	}
	if min != nil {
		t.binary(6, min)
	}
	if max != nil && min != nil {
		keep(7, 8) // whether they are whole
	}
}

// copiedBounds are a chunk's bounds that can be relied on, as it stores them.
func (f *File) copiedBounds(c *plannedChunk) (min, max []byte) {
	if !f.ordersDecimals(c.leaf) {
		return nil, nil
	}
	min, max = f.storedBounds(c.leaf, &c.chunk.stats)
	if c.leaf.convertBound(min, true /* lower */) == nil {
		min = nil
	}
	if c.leaf.convertBound(max, false /* lower */) == nil {
		max = nil
	}
	return min, max
}

// addCopied counts a copied chunk, as far as the source tells of it.
func (g *leafMetrics) addCopied(src *File, c *plannedChunk, options CopyOptions) {
	l, s := c.leaf, &c.chunk.stats
	g.size += c.end - c.start
	g.slots += c.chunk.numValues
	if s.nullCount >= 0 && s.nullCount <= c.chunk.numValues {
		g.nulls += s.nullCount
	} else {
		g.nullsUnknown = true
	}
	nans, known := options.NaNCounts[int(l.fieldID)]
	g.nans += nans
	g.nansUnknown = g.nansUnknown || !known
	if s.nullCount == c.chunk.numValues {
		return
	}
	min, max := src.copiedBounds(c)
	b := bounds{lostMin: min == nil, lostMax: max == nil}
	if min != nil {
		b.min = append([]byte{}, l.parquetBound(min, true /* lower */)...)
	}
	if max != nil {
		b.max = append([]byte{}, l.parquetBound(max, false /* lower */)...)
	}
	g.bounds.merge(l, b.truncate(l, maxBound))
}

// rawField is a field of an encoded struct. A boolean is its type.
type rawField struct {
	id    int16
	typ   byte
	value []byte
}

// structFields are the fields of an encoded struct that has been decoded
// before, by ascending id.
func structFields(encoded []byte) []rawField {
	var fields []rawField
	t := &thriftReader{buf: encoded}
	for id, typ := range t.fields() {
		start := t.pos
		t.skip(typ)
		fields = append(fields, rawField{id, typ, encoded[start:t.pos]})
	}
	slices.SortStableFunc(fields, func(a, b rawField) int { return int(a.id) - int(b.id) })
	return fields
}

// rewriteStruct encodes a struct again, its fields by way of a function.
func rewriteStruct(encoded []byte, field func(t *thriftEncoder, id int16, typ byte, value []byte)) []byte {
	var t thriftEncoder
	t.element(func() {
		for _, f := range structFields(encoded) {
			field(&t, f.id, f.typ, f.value)
		}
	})
	return t.buf
}

// columnMetadata are the encoded ColumnMetaData of the row group's columns.
func (g *rowGroup) columnMetadata() ([][]byte, error) {
	var all [][]byte
	t := &thriftReader{buf: g.encoded}
	for id, typ := range t.fields() {
		if id != 1 {
			t.skip(typ)
			continue
		}
		for range t.elements(typ, thriftStruct) {
			var metadata []byte
			for id, typ := range t.fields() {
				start := t.pos
				t.skip(typ)
				if id == 3 {
					metadata = g.encoded[start:t.pos]
				}
			}
			all = append(all, metadata)
		}
	}
	if t.failed || len(all) != len(g.columns) {
		return nil, corrupt("a row group cannot be decoded again")
	}
	return all, nil
}
