package pq

import "encoding/binary"

// thriftWriter encodes Thrift's compact protocol. Fields of a struct are
// written by ascending id.
type thriftWriter struct {
	buf  []byte
	last int16 // the id of the open struct's last field
}

// field writes a field's header. The ids of Parquet are small, so that the
// short form, which holds the difference to the last id, always fits.
func (t *thriftWriter) field(id int16, typ byte) {
	t.buf = append(t.buf, byte(id-t.last)<<4|typ)
	t.last = id
}

func (t *thriftWriter) varint(v int64) {
	t.buf = binary.AppendUvarint(t.buf, uint64(v<<1)^uint64(v>>63))
}

func (t *thriftWriter) bool(id int16, v bool) {
	if v {
		t.field(id, thriftTrue)
	} else {
		t.field(id, thriftFalse)
	}
}

func (t *thriftWriter) int8(id int16, v int8) {
	t.field(id, thriftByte)
	t.buf = append(t.buf, byte(v))
}

func (t *thriftWriter) int16(id int16, v int16) {
	t.field(id, thriftI16)
	t.varint(int64(v))
}

func (t *thriftWriter) int32(id int16, v int32) {
	t.field(id, thriftI32)
	t.varint(int64(v))
}

func (t *thriftWriter) int64(id int16, v int64) {
	t.field(id, thriftI64)
	t.varint(v)
}

func (t *thriftWriter) binary(id int16, v []byte) {
	t.field(id, thriftBinary)
	t.rawBinary(v)
}

func (t *thriftWriter) string(id int16, v string) { t.binary(id, []byte(v)) }

// rawBinary writes an element of a list of binaries.
func (t *thriftWriter) rawBinary(v []byte) {
	t.buf = binary.AppendUvarint(t.buf, uint64(len(v)))
	t.buf = append(t.buf, v...)
}

// list starts a list of n elements, which the caller writes.
func (t *thriftWriter) list(id int16, elem byte, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.buf = append(t.buf, byte(n)<<4|elem)
	} else {
		t.buf = append(t.buf, 15<<4|elem)
		t.buf = binary.AppendUvarint(t.buf, uint64(n))
	}
}

// structure writes a field that is a struct.
func (t *thriftWriter) structure(id int16, fields func()) {
	t.field(id, thriftStruct)
	t.element(fields)
}

// element writes a struct that is no field: an element of a list, or the
// outermost one.
func (t *thriftWriter) element(fields func()) {
	outer := t.last
	t.last = 0
	fields()
	t.buf = append(t.buf, 0)
	t.last = outer
}

// empty writes a field that is a struct without fields, as the members of
// Parquet's unions are.
func (t *thriftWriter) empty(id int16) {
	t.field(id, thriftStruct)
	t.buf = append(t.buf, 0)
}

// raw writes a field whose encoded value is given.
func (t *thriftWriter) raw(id int16, typ byte, value []byte) {
	t.field(id, typ)
	t.buf = append(t.buf, value...)
}
