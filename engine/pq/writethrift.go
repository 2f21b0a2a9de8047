package pq

import "encoding/binary"

// thriftEncoder encodes Thrift's compact protocol. Fields of a struct are
// written by ascending id.
type thriftEncoder struct {
	buf  []byte
	last int16 // the id of the open struct's last field
}

// field writes a field's header: the difference to the last id, or, where
// that is large, the id.
func (t *thriftEncoder) field(id int16, typ byte) {
	if delta := id - t.last; delta > 0 && delta < 16 {
		t.buf = append(t.buf, byte(delta)<<4|typ)
	} else {
		t.buf = append(t.buf, typ)
		t.varint(int64(id))
	}
	t.last = id
}

func (t *thriftEncoder) varint(v int64) {
	t.buf = binary.AppendUvarint(t.buf, uint64(v<<1)^uint64(v>>63))
}

func (t *thriftEncoder) bool(id int16, v bool) {
	if v {
		t.field(id, thriftTrue)
	} else {
		t.field(id, thriftFalse)
	}
}

func (t *thriftEncoder) int16(id int16, v int16) {
	t.field(id, thriftI16)
	t.varint(int64(v))
}

func (t *thriftEncoder) int32(id int16, v int32) {
	t.field(id, thriftI32)
	t.varint(int64(v))
}

func (t *thriftEncoder) int64(id int16, v int64) {
	t.field(id, thriftI64)
	t.varint(v)
}

func (t *thriftEncoder) binary(id int16, v []byte) {
	t.field(id, thriftBinary)
	t.rawBinary(v)
}

func (t *thriftEncoder) string(id int16, v string) { t.binary(id, []byte(v)) }

// rawBinary writes an element of a list of binaries.
func (t *thriftEncoder) rawBinary(v []byte) {
	t.buf = binary.AppendUvarint(t.buf, uint64(len(v)))
	t.buf = append(t.buf, v...)
}

// list starts a list of n elements, which the caller writes.
func (t *thriftEncoder) list(id int16, elem byte, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.buf = append(t.buf, byte(n)<<4|elem)
	} else {
		t.buf = append(t.buf, 15<<4|elem)
		t.buf = binary.AppendUvarint(t.buf, uint64(n))
	}
}

// structure writes a field that is a struct.
func (t *thriftEncoder) structure(id int16, fields func()) {
	t.field(id, thriftStruct)
	t.element(fields)
}

// element writes a struct that is no field: an element of a list, or the
// outermost one.
func (t *thriftEncoder) element(fields func()) {
	outer := t.last
	t.last = 0
	fields()
	t.buf = append(t.buf, 0)
	t.last = outer
}

// empty writes a field that is a struct without fields, as the members of
// Parquet's unions are.
func (t *thriftEncoder) empty(id int16) {
	t.field(id, thriftStruct)
	t.buf = append(t.buf, 0)
}

// raw writes a field whose encoded value is given.
func (t *thriftEncoder) raw(id int16, typ byte, value []byte) {
	t.field(id, typ)
	t.buf = append(t.buf, value...)
}
