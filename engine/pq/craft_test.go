package pq

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Files that no writer at hand makes are put together here page by page.

// thriftWriter encodes the compact protocol.
type thriftWriter struct {
	buf  []byte
	last []int16 // the last field id of each open struct
}

func (w *thriftWriter) field(id int16, typ byte) {
	top := len(w.last) - 1
	if d := id - w.last[top]; d > 0 && d < 16 {
		w.buf = append(w.buf, byte(d)<<4|typ)
	} else {
		w.buf = binary.AppendVarint(append(w.buf, typ), int64(id))
	}
	w.last[top] = id
}

func (w *thriftWriter) begin() { w.last = append(w.last, 0) }
func (w *thriftWriter) end()   { w.buf = append(w.buf, 0); w.last = w.last[:len(w.last)-1] }

func (w *thriftWriter) i32(id int16, v int32) {
	w.field(id, thriftI32)
	w.buf = binary.AppendVarint(w.buf, int64(v))
}

func (w *thriftWriter) i64(id int16, v int64) {
	w.field(id, thriftI64)
	w.buf = binary.AppendVarint(w.buf, v)
}

func (w *thriftWriter) bytes(id int16, v []byte) {
	w.field(id, thriftBinary)
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(v))), v...)
}

func (w *thriftWriter) structure(id int16, fill func()) {
	w.field(id, thriftStruct)
	w.begin()
	fill()
	w.end()
}

func (w *thriftWriter) list(id int16, elem byte, n int, fill func(i int)) {
	w.field(id, thriftList)
	w.buf = binary.AppendUvarint(append(w.buf, 0xf0|elem), uint64(n))
	for i := range n {
		if elem == thriftStruct {
			w.begin()
			fill(i)
			w.end()
		} else {
			fill(i)
		}
	}
}

// craftedPage is one page of a crafted column chunk.
type craftedPage struct {
	header pageHeader
	body   []byte // as stored
}

// dataV1 is a data page of version 1 without compression.
func dataV1(n int, enc encoding, rep, def, values []byte) craftedPage {
	var body []byte
	for _, levels := range [][]byte{rep, def} {
		if levels != nil {
			body = append(binary.LittleEndian.AppendUint32(body, uint32(len(levels))), levels...)
		}
	}
	body = append(body, values...)
	return craftedPage{pageHeader{kind: dataPage, uncompressed: int32(len(body)), compressed: int32(len(body)), numValues: int32(n), encoding: enc, defEncoding: encRLE, repEncoding: encRLE}, body}
}

func dictPage(n int, values []byte) craftedPage {
	return craftedPage{pageHeader{kind: dictionaryPage, uncompressed: int32(len(values)), compressed: int32(len(values)), numValues: int32(n)}, values}
}

func (p craftedPage) encode() []byte {
	w := &thriftWriter{}
	w.begin()
	w.i32(1, int32(p.header.kind))
	w.i32(2, p.header.uncompressed)
	w.i32(3, p.header.compressed)
	switch p.header.kind {
	case dataPage:
		w.structure(5, func() {
			w.i32(1, p.header.numValues)
			w.i32(2, int32(p.header.encoding))
			w.i32(3, int32(p.header.defEncoding))
			w.i32(4, int32(p.header.repEncoding))
		})
	case dictionaryPage:
		w.structure(7, func() {
			w.i32(1, p.header.numValues)
			w.i32(2, int32(p.header.encoding))
		})
	case dataPageV2:
		w.structure(8, func() {
			w.i32(1, p.header.numValues)
			w.i32(2, p.header.numNulls)
			w.i32(3, p.header.numRows)
			w.i32(4, int32(p.header.encoding))
			w.i32(5, p.header.defLength)
			w.i32(6, p.header.repLength)
		})
	}
	w.end()
	return append(w.buf, p.body...)
}

// craftedColumn is a column chunk of the only row group.
type craftedColumn struct {
	pages       []craftedPage
	codec       int32
	values      int64
	offsetIndex func(pages []pageLocation) []pageLocation // nil: none; rows of pages without repetition
	edit        func(*columnChunk)
}

// craft makes a file of one row group.
func craft(schema []schemaElement, rows int64, columns ...craftedColumn) []byte {
	out := []byte(magicPlain)
	var chunks []columnChunk
	leaves := 0
	for _, c := range columns {
		for schema[leaves].physical == noPhysical {
			leaves++
		}
		chunk := columnChunk{physical: schema[leaves].physical, codec: c.codec, numValues: c.values, dataPageOffset: int64(len(out))}
		leaves++
		var locations []pageLocation
		row := int64(0)
		for _, p := range c.pages {
			encoded := p.encode()
			if p.header.kind == dictionaryPage {
				chunk.dictPageOffset, chunk.dataPageOffset = int64(len(out)), int64(len(out)+len(encoded))
			} else {
				locations = append(locations, pageLocation{int64(len(out)), int32(len(encoded)), row})
				row += int64(p.header.numValues)
			}
			out = append(out, encoded...)
			chunk.compressedSize += int64(len(encoded))
			chunk.uncompressedSize += int64(len(encoded)) + int64(p.header.uncompressed-p.header.compressed)
		}
		if c.offsetIndex != nil {
			index := encodeOffsetIndex(c.offsetIndex(locations))
			chunk.offsetIndex = section{int64(len(out)), int32(len(index))}
			out = append(out, index...)
		}
		if c.edit != nil {
			c.edit(&chunk)
		}
		chunks = append(chunks, chunk)
	}
	footer := encodeFooter(schema, rows, chunks)
	out = append(out, footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(footer)))
	return append(out, magicPlain...)
}

func encodeOffsetIndex(pages []pageLocation) []byte {
	w := &thriftWriter{}
	w.begin()
	w.list(1, thriftStruct, len(pages), func(i int) {
		w.i64(1, pages[i].offset)
		w.i32(2, pages[i].size)
		w.i64(3, pages[i].firstRow)
	})
	w.end()
	return w.buf
}

func encodeFooter(schema []schemaElement, rows int64, chunks []columnChunk) []byte {
	w := &thriftWriter{}
	w.begin()
	w.i32(1, 2)
	w.list(2, thriftStruct, len(schema), func(i int) {
		e := schema[i]
		if e.physical != noPhysical {
			w.i32(1, int32(e.physical))
		}
		if e.length > 0 {
			w.i32(2, e.length)
		}
		w.i32(3, int32(e.repetition))
		w.bytes(4, []byte(e.name))
		if e.numChildren > 0 {
			w.i32(5, e.numChildren)
		}
		if e.converted >= 0 {
			w.i32(6, e.converted)
		}
		if e.precision > 0 {
			w.i32(7, e.scale)
			w.i32(8, e.precision)
		}
		if e.hasFieldID {
			w.i32(9, e.fieldID)
		}
	})
	w.i64(3, rows)
	w.list(4, thriftStruct, 1, func(int) {
		w.list(1, thriftStruct, len(chunks), func(i int) {
			c := chunks[i]
			w.structure(3, func() {
				w.i32(1, int32(c.physical))
				w.i32(4, c.codec)
				w.i64(5, c.numValues)
				w.i64(6, c.uncompressedSize)
				w.i64(7, c.compressedSize)
				w.i64(9, c.dataPageOffset)
				if c.dictPageOffset > 0 {
					w.i64(11, c.dictPageOffset)
				}
			})
			if c.offsetIndex.length > 0 {
				w.i64(4, c.offsetIndex.offset)
				w.i32(5, c.offsetIndex.length)
			}
		})
		w.i64(3, rows)
	})
	w.end()
	return w.buf
}

// root, group and primitive are schema elements.
func root(children int32) schemaElement {
	return schemaElement{physical: noPhysical, name: "schema", numChildren: children, converted: -1}
}

func group(name string, r repetition, converted, children int32) schemaElement {
	return schemaElement{physical: noPhysical, name: name, repetition: r, converted: converted, numChildren: children}
}

func primitive(name string, r repetition, p physicalType) schemaElement {
	return schemaElement{physical: p, name: name, repetition: r, converted: -1}
}

// openCrafted opens a crafted file; everything that it allocates must be freed
// by the end of the test.
func openCrafted(t *testing.T, content []byte, opts Options) *File {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	opts.Alloc = alloc
	f, err := Open(context.Background(), &memoryFile{content: content}, "crafted.parquet", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		alloc.AssertSize(t, 0)
	})
	return f
}

// int32s are PLAIN values, each the one before plus one.
func int32s(first int32, n int) []byte {
	var out []byte
	for i := range int32(n) {
		out = binary.LittleEndian.AppendUint32(out, uint32(first+i))
	}
	return out
}

// levelRuns encodes levels of one bit, or of two where wide, as runs of one.
func levelRuns(levels ...byte) []byte {
	var out []byte
	for _, l := range levels {
		out = append(out, 2, l)
	}
	return out
}
