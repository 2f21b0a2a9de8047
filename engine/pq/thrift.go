package pq

import (
	"encoding/binary"
	"iter"
	"math"
)

// thriftReader decodes Thrift's compact protocol, in which Parquet writes its
// footer, page headers and indexes. It never fails loudly: damaged input sets
// failed and ends the input, so that loops end and callers check once.
//
// Byte slices that it returns alias the input.
type thriftReader struct {
	buf    []byte
	pos    int
	failed bool
	short  bool // failed because the input ended: more of it may help
}

// Wire types of the compact protocol. A boolean field is its own type.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// thriftMaxDepth bounds the nesting of values that are skipped. Parquet's own
// structures nest about ten deep.
const thriftMaxDepth = 32

func (t *thriftReader) fail() {
	t.failed = true
	t.pos = len(t.buf)
}

// end fails because the input ended too early.
func (t *thriftReader) end() {
	t.short = t.short || !t.failed
	t.fail()
}

func (t *thriftReader) byte() byte {
	if t.pos >= len(t.buf) {
		t.end()
		return 0
	}
	b := t.buf[t.pos]
	t.pos++
	return b
}

func (t *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(t.buf[t.pos:])
	switch {
	case n == 0:
		t.end()
		return 0
	case n < 0:
		t.fail()
		return 0
	}
	t.pos += n
	return v
}

func (t *thriftReader) varint() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// fields iterates over the fields of a struct: field id and wire type. The
// body consumes the value, with skip when it does not know the field.
func (t *thriftReader) fields() iter.Seq2[int16, byte] {
	return func(yield func(int16, byte) bool) {
		id := int16(0)
		for !t.failed {
			header := t.byte()
			if header == 0 {
				return
			}
			if delta := header >> 4; delta != 0 {
				id += int16(delta)
			} else {
				id = int16(t.varint())
			}
			if !yield(id, header&15) {
				return
			}
		}
	}
}

// list reads a list's header: the elements' type and number. Every element
// takes at least a byte, so the number is bounded by what is left.
func (t *thriftReader) list(typ byte) (elem byte, n int) {
	if typ != thriftList && typ != thriftSet {
		t.fail()
		return 0, 0
	}
	header := t.byte()
	count := uint64(header >> 4)
	if count == 15 {
		count = t.uvarint()
	}
	if count > uint64(len(t.buf)-t.pos) {
		t.end()
		return 0, 0
	}
	return header & 15, int(count)
}

// elements iterates over a list whose elements have the wire type want.
func (t *thriftReader) elements(typ, want byte) iter.Seq2[int, int] {
	return func(yield func(index, count int) bool) {
		elem, n := t.list(typ)
		if n > 0 && elem != want && (want != thriftTrue || elem != thriftFalse) {
			t.fail()
		}
		for i := 0; i < n && !t.failed; i++ {
			if !yield(i, n) {
				return
			}
		}
	}
}

func (t *thriftReader) int64(typ byte) int64 {
	switch typ {
	case thriftByte:
		return int64(int8(t.byte()))
	case thriftI16, thriftI32, thriftI64:
		return t.varint()
	}
	t.fail()
	return 0
}

func (t *thriftReader) int32(typ byte) int32 {
	v := t.int64(typ)
	if v < math.MinInt32 || v > math.MaxInt32 {
		t.fail()
		return 0
	}
	return int32(v)
}

// bool is the value of a boolean field; one in a list is a byte (boolElement).
func (t *thriftReader) bool(typ byte) bool {
	if typ != thriftTrue && typ != thriftFalse {
		t.fail()
	}
	return typ == thriftTrue
}

func (t *thriftReader) boolElement() bool { return t.byte() == thriftTrue }

func (t *thriftReader) bytes(typ byte) []byte {
	if typ != thriftBinary {
		t.fail()
		return nil
	}
	n := t.uvarint()
	if n > uint64(len(t.buf)-t.pos) {
		t.end()
		return nil
	}
	b := t.buf[t.pos : t.pos+int(n) : t.pos+int(n)]
	t.pos += int(n)
	return b
}

// structure checks that a field holds a struct, whose fields follow.
func (t *thriftReader) structure(typ byte) iter.Seq2[int16, byte] {
	if typ != thriftStruct {
		t.fail()
	}
	return t.fields()
}

func (t *thriftReader) skip(typ byte) { t.skipNested(typ, 0) }

func (t *thriftReader) skipNested(typ byte, depth int) {
	if depth > thriftMaxDepth {
		t.fail()
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.discard(8)
	case thriftUUID:
		t.discard(16)
	case thriftBinary:
		t.bytes(typ)
	case thriftList, thriftSet:
		elem, n := t.list(typ)
		for i := 0; i < n && !t.failed; i++ {
			t.skipElement(elem, depth+1)
		}
	case thriftMap:
		n := t.uvarint()
		if n == 0 {
			return
		}
		types := t.byte()
		for ; n > 0 && !t.failed; n-- {
			t.skipElement(types>>4, depth+1)
			t.skipElement(types&15, depth+1)
		}
	case thriftStruct:
		for _, typ := range t.fields() {
			t.skipNested(typ, depth+1)
		}
	default:
		t.fail()
	}
}

// skipElement skips one element of a list or map, where booleans take a byte.
func (t *thriftReader) skipElement(typ byte, depth int) {
	if typ == thriftTrue || typ == thriftFalse {
		typ = thriftByte
	}
	t.skipNested(typ, depth)
}

func (t *thriftReader) discard(n int) {
	if n > len(t.buf)-t.pos {
		t.end()
		return
	}
	t.pos += n
}
