package pq

import (
	"fmt"
)

// finishedChunk is a column chunk whose pages are in the file.
type finishedChunk struct {
	dictionary   section // no length: none
	dataOffset   int64
	compressed   int64
	uncompressed int64
	bloom        section
}

// writeChunk writes the column chunk's pages, which have ended.
func (c *columnWriter) writeChunk(f *fileWriter, m *pageMaker) (finishedChunk, error) {
	done := finishedChunk{uncompressed: c.chunk.uncompressed}
	start := f.offset
	var entries int
	m.body, entries = c.encoder.dictionaryPage(m.body[:0])
	if entries > 0 {
		parts, err := m.seal(pageHeader{kind: dictionaryPage, numValues: int32(entries), encoding: encPlain})
		if err != nil {
			return done, fmt.Errorf("column %s: %w", c.leaf.path, err)
		}
		for _, part := range parts {
			if err := f.write(part); err != nil {
				return done, err
			}
		}
		done.dictionary = section{start, int32(f.offset - start)}
		done.uncompressed += int64(len(parts[0]) + len(m.body))
	}
	done.dataOffset = f.offset
	err := c.blocks.each(f.write)
	done.compressed = f.offset - start
	return done, err
}

// writeBloomFilter writes the chunk's filter, if it has one.
func (c *columnWriter) writeBloomFilter(f *fileWriter, done *finishedChunk) error {
	if c.filter == nil {
		return nil
	}
	filter := c.filter.finish()
	done.bloom = section{f.offset, int32(len(filter))}
	return f.write(filter)
}

// metadata encodes the chunk's ColumnMetaData.
func (c *columnWriter) metadata(path []string, done *finishedChunk) []byte {
	var t thriftEncoder
	t.element(func() {
		t.int32(1, int32(c.leaf.physical))
		encodings := []encoding{encPlain, encRLE}
		if done.dictionary.length > 0 {
			encodings = append(encodings, encRLEDictionary)
		}
		t.list(2, thriftI32, len(encodings))
		for _, e := range encodings {
			t.varint(int64(e))
		}
		t.list(3, thriftBinary, len(path))
		for _, name := range path {
			t.rawBinary([]byte(name))
		}
		t.int32(4, int32(codecs[c.options.Compression.Codec].id))
		t.int64(5, c.chunk.slots)
		t.int64(6, done.uncompressed)
		t.int64(7, done.compressed)
		t.int64(9, done.dataOffset)
		if done.dictionary.length > 0 {
			t.int64(11, done.dictionary.offset)
		}
		t.structure(12, func() { c.writeStatistics(&t) })
		c.writeEncodingStats(&t, done.dictionary.length > 0)
		if done.bloom.length > 0 {
			t.int64(14, done.bloom.offset)
			t.int32(15, done.bloom.length)
		}
		if c.leaf.physical == physByteArray {
			t.structure(16, func() { t.int64(1, c.chunk.unencoded) })
		}
	})
	return t.buf
}

// writeStatistics encodes Statistics. Bounds are given only whole: not every
// reader minds that they may be truncated.
func (c *columnWriter) writeStatistics(t *thriftEncoder) {
	b := &c.chunk.bounds
	t.int64(3, c.chunk.slots-c.chunk.values)
	if b.known() && !b.cutMin && !b.cutMax {
		t.binary(5, c.leaf.parquetBound(b.max, false /* lower */))
		t.binary(6, c.leaf.parquetBound(b.min, true /* lower */))
		t.bool(7, true)
		t.bool(8, true)
	}
}

// writeEncodingStats counts the pages by encoding: readers see from it whether
// the dictionary has every value.
func (c *columnWriter) writeEncodingStats(t *thriftEncoder, hasDictionary bool) {
	kind := dataPage
	if c.options.PageVersion == 2 {
		kind = dataPageV2
	}
	type entry struct {
		kind     pageKind
		encoding encoding
		count    int32
	}
	var entries []entry
	if hasDictionary {
		entries = append(entries, entry{dictionaryPage, encPlain, 1})
	}
	for _, enc := range []encoding{encPlain, encRLEDictionary} {
		n := int32(0)
		for i := range c.pages {
			if c.pages[i].encoding == enc {
				n++
			}
		}
		if n > 0 {
			entries = append(entries, entry{kind, enc, n})
		}
	}
	t.list(13, thriftStruct, len(entries))
	for _, e := range entries {
		t.element(func() {
			t.int32(1, int32(e.kind))
			t.int32(2, int32(e.encoding))
			t.int32(3, e.count)
		})
	}
}

// offsetIndex encodes the OffsetIndex of the chunk, whose data pages start at
// an offset of the file.
func (c *columnWriter) offsetIndex(offset int64) []byte {
	var t thriftEncoder
	row := int64(0)
	t.element(func() {
		t.list(1, thriftStruct, len(c.pages))
		for i := range c.pages {
			p := &c.pages[i]
			t.element(func() {
				t.int64(1, offset)
				t.int32(2, int32(p.size))
				t.int64(3, row)
			})
			offset += int64(p.size)
			row += int64(p.rows)
		}
	})
	return t.buf
}

// maxIndexBound is how long the bounds of pages are, as in other writers.
const maxIndexBound = 64

// Orders of the pages of a column index by their bounds.
const (
	unordered  = 0
	ascending  = 1
	descending = 2
)

// columnIndex encodes the ColumnIndex of the chunk; nil when a page has values
// and no bounds, as one of nothing but NaNs has.
func (c *columnWriter) columnIndex() []byte {
	cut := make([]bounds, len(c.pages))
	up, down, some := true, true, false
	var before bounds
	for i := range c.pages {
		p := &c.pages[i]
		if p.values == 0 {
			continue
		}
		b := p.bounds.truncate(c.leaf, maxIndexBound)
		if !b.known() {
			return nil
		}
		if some {
			low, high := c.leaf.compare(before.min, b.min), c.leaf.compare(before.max, b.max)
			up, down = up && low <= 0 && high <= 0, down && low >= 0 && high >= 0
		}
		cut[i], before, some = b, b, true
	}
	order := int32(unordered)
	switch {
	case some && up:
		order = ascending
	case some && down:
		order = descending
	}
	var t thriftEncoder
	t.element(func() {
		t.list(1, thriftTrue, len(c.pages))
		for i := range c.pages {
			if c.pages[i].values == 0 {
				t.buf = append(t.buf, thriftTrue)
			} else {
				t.buf = append(t.buf, thriftFalse)
			}
		}
		t.list(2, thriftBinary, len(c.pages))
		for i := range cut {
			t.rawBinary(c.leaf.parquetBound(cut[i].min, true /* lower */))
		}
		t.list(3, thriftBinary, len(c.pages))
		for i := range cut {
			t.rawBinary(c.leaf.parquetBound(cut[i].max, false /* lower */))
		}
		t.int32(4, order)
		t.list(5, thriftI64, len(c.pages))
		for i := range c.pages {
			t.varint(int64(c.pages[i].slots - c.pages[i].values))
		}
	})
	return t.buf
}
