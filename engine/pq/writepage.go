package pq

import (
	"fmt"
	"hash/crc32"
	"math"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// pageMaker is the workspace in which pages end: one at a time.
type pageMaker struct {
	codec compress.Codec // nil: none
	level int

	body       []byte // of a page before compression; levels first
	header     thriftEncoder
	compressed []byte
}

func newPageMaker(c Compression) (*pageMaker, error) {
	m := &pageMaker{level: c.Level}
	if c.Level == 0 {
		m.level = compress.DefaultCompressionLevel
	}
	if c.Codec == Uncompressed {
		return m, nil
	}
	var err error
	m.codec, err = compress.GetCodec(codecs[c.Codec].id)
	return m, err
}

func (m *pageMaker) compress(body []byte) []byte {
	if n := int(m.codec.CompressBound(int64(len(body)))); cap(m.compressed) < n {
		m.compressed = make([]byte, n)
	}
	return m.codec.EncodeLevel(m.compressed[:cap(m.compressed)], body, m.level)
}

// seal compresses the page in m.body and returns what is stored of it: the
// header, then the body in parts. They are valid until the next page.
func (m *pageMaker) seal(h pageHeader) (parts [3][]byte, err error) {
	levels := 0
	if h.kind == dataPageV2 {
		levels = int(h.repLength + h.defLength)
	}
	stored := m.body[levels:]
	if m.codec != nil && len(stored) > 0 {
		small := m.compress(stored)
		// Pages of version 1 are compressed whatever comes of it.
		if h.valuesCompressed = h.kind != dataPageV2 || len(small) < len(stored); h.valuesCompressed {
			stored = small
		}
	}
	if max(len(m.body), levels+len(stored)) > math.MaxInt32 {
		return parts, fmt.Errorf("a page of %d bytes is larger than Parquet allows; a value is too large", len(m.body))
	}
	h.uncompressed, h.compressed = int32(len(m.body)), int32(levels+len(stored))
	h.crc = crc32.Update(crc32.ChecksumIEEE(m.body[:levels]), crc32.IEEETable, stored)
	m.header.buf = m.header.buf[:0]
	h.write(&m.header)
	return [3][]byte{m.header.buf, m.body[:levels], stored}, nil
}

// write encodes a page header.
func (h *pageHeader) write(t *thriftEncoder) {
	t.element(func() {
		t.int32(1, int32(h.kind))
		t.int32(2, h.uncompressed)
		t.int32(3, h.compressed)
		t.int32(4, int32(h.crc))
		switch h.kind {
		case dataPage:
			t.structure(5, func() {
				t.int32(1, h.numValues)
				t.int32(2, int32(h.encoding))
				t.int32(3, int32(encRLE))
				t.int32(4, int32(encRLE))
			})
		case dictionaryPage:
			t.structure(7, func() {
				t.int32(1, h.numValues)
				t.int32(2, int32(h.encoding))
			})
		case dataPageV2:
			t.structure(8, func() {
				t.int32(1, h.numValues)
				t.int32(2, h.numNulls)
				t.int32(3, h.numRows)
				t.int32(4, int32(h.encoding))
				t.int32(5, h.defLength)
				t.int32(6, h.repLength)
				t.bool(7, h.valuesCompressed)
			})
		}
	})
}

func (m *pageMaker) held() int { return cap(m.body) + cap(m.header.buf) + cap(m.compressed) }

// trim gives the workspace back.
func (m *pageMaker) trim() { m.body, m.header.buf, m.compressed = nil, nil, nil }
