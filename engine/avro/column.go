package avro

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
)

// column decodes the values of one field into the buffers of an Arrow array.
type column interface {
	// read appends the value at the cursor.
	read(c *cursor)
	// null appends a null.
	null(c *cursor)
	// width is how many bytes a null takes.
	width() int
	// reserve makes room for n more values.
	reserve(n int)
	// finish returns the array and starts an empty one.
	finish() arrow.ArrayData
	// release drops what was appended.
	release()
}

// buffer is a growing block of memory that becomes an Arrow buffer.
type buffer struct {
	alloc memory.Allocator
	block *memory.Buffer
	bytes []byte // what is written; the block's memory
}

// extend appends n undefined bytes and returns them.
func (b *buffer) extend(n int) []byte {
	old := len(b.bytes)
	if old+n > cap(b.bytes) {
		b.grow(old + n)
	}
	b.bytes = b.bytes[:old+n]
	return b.bytes[old:]
}

func (b *buffer) reserve(n int) {
	if need := len(b.bytes) + n; need > cap(b.bytes) {
		b.grow(need)
	}
}

func (b *buffer) grow(need int) {
	if b.block == nil {
		b.block = memory.NewResizableBuffer(b.alloc)
	}
	n := len(b.bytes)
	b.block.Resize(n) // what a growing block keeps
	b.block.Reserve(max(need, 2*cap(b.bytes), 64))
	b.bytes = b.block.Buf()[:n]
}

// finish hands the block out.
func (b *buffer) finish() *memory.Buffer {
	block := b.block
	if block == nil {
		block = memory.NewResizableBuffer(b.alloc)
	}
	block.ResizeNoShrink(len(b.bytes))
	b.block, b.bytes = nil, nil
	return block
}

func (b *buffer) release() {
	if b.block != nil {
		b.block.Release()
	}
	b.block, b.bytes = nil, nil
}

// validity is a null bitmap that exists only once there is a null.
type validity struct {
	bits     buffer
	n, nulls int
}

func (v *validity) appendValid() {
	if v.nulls > 0 {
		v.bit(true)
	}
	v.n++
}

func (v *validity) appendNull() {
	if v.nulls == 0 {
		ones := v.bits.extend((v.n + 7) / 8)
		for i := range ones {
			ones[i] = 0xff
		}
		if tail := v.n & 7; tail != 0 {
			ones[len(ones)-1] = 1<<tail - 1
		}
	}
	v.nulls++
	v.bit(false)
	v.n++
}

func (v *validity) bit(valid bool) {
	if v.n&7 == 0 {
		v.bits.extend(1)[0] = 0
	}
	if valid {
		v.bits.bytes[v.n>>3] |= 1 << (v.n & 7)
	}
}

// finish makes the array's data of its other buffers, which it takes over.
func (v *validity) finish(t arrow.DataType, kids []arrow.ArrayData, rest ...*memory.Buffer) arrow.ArrayData {
	buffers := make([]*memory.Buffer, 1, 1+len(rest))
	if v.nulls > 0 {
		buffers[0] = v.bits.finish()
	}
	buffers = append(buffers, rest...)
	data := array.NewData(t, v.n, buffers, kids, v.nulls, 0)
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, k := range kids {
		k.Release()
	}
	v.n, v.nulls = 0, 0
	return data
}

func (v *validity) release() {
	v.bits.release()
	v.n, v.nulls = 0, 0
}

// optionalColumn reads the branch of a union with null before the value.
type optionalColumn struct {
	column
	branches   int
	nullBranch int // -1: none
}

func (o *optionalColumn) read(c *cursor) {
	if c.branch(o.branches) == o.nullBranch {
		o.column.null(c)
	} else {
		o.column.read(c)
	}
}

// nullColumn is of the type null, whose values take no bytes.
type nullColumn struct{ n int }

func (l *nullColumn) read(*cursor) { l.n++ }
func (l *nullColumn) null(*cursor) { l.n++ }
func (l *nullColumn) reserve(int)  {}
func (l *nullColumn) width() int   { return 0 }
func (l *nullColumn) release()     { l.n = 0 }
func (l *nullColumn) finish() arrow.ArrayData {
	n := l.n
	l.n = 0
	return array.NewData(arrow.Null, n, []*memory.Buffer{nil}, nil, n, 0)
}

// fixedColumn holds values of a fixed width.
type fixedColumn struct {
	validity
	dataType arrow.DataType
	size     int // of a value
	values   buffer
}

func (f *fixedColumn) null(*cursor) {
	clear(f.values.extend(f.size))
	f.appendNull()
}
func (f *fixedColumn) width() int    { return f.size }
func (f *fixedColumn) reserve(n int) { f.values.reserve(n * f.size) }
func (f *fixedColumn) finish() arrow.ArrayData {
	return f.validity.finish(f.dataType, nil, f.values.finish())
}
func (f *fixedColumn) release() { f.values.release(); f.validity.release() }

// put appends one value of a fixed-width column.
func put[T any](f *fixedColumn, v T) {
	*(*T)(unsafe.Pointer(unsafe.SliceData(f.values.extend(int(unsafe.Sizeof(v)))))) = v
	f.appendValid()
}

type intColumn struct{ fixedColumn }

func (f *intColumn) read(c *cursor) { put(&f.fixedColumn, c.int()) }

type longColumn struct{ fixedColumn }

func (f *longColumn) read(c *cursor) { put(&f.fixedColumn, c.long()) }

type floatColumn struct{ fixedColumn }

func (f *floatColumn) read(c *cursor) { put(&f.fixedColumn, c.float()) }

type doubleColumn struct{ fixedColumn }

func (f *doubleColumn) read(c *cursor) { put(&f.fixedColumn, c.double()) }

// fixedBytesColumn is of Avro's fixed, as fixed-size binary.
type fixedBytesColumn struct{ fixedColumn }

func (f *fixedBytesColumn) read(c *cursor) {
	b := f.values.extend(f.size)
	clear(b[copy(b, c.take(f.size)):])
	f.appendValid()
}

// decimalColumn is of big-endian integers, in bytes or in a fixed.
type decimalColumn struct {
	fixedColumn
	length int // of a fixed; -1: each value says
}

func (f *decimalColumn) read(c *cursor) {
	var b []byte
	if f.length < 0 {
		b = c.bytes()
	} else {
		b = c.take(f.length)
	}
	v, ok := decimalOf(b)
	if !ok {
		c.fail("a decimal of %d bytes has more than 128 bits", len(b))
	}
	put(&f.fixedColumn, v)
}

// decimalOf reads a big-endian two's complement integer of any length.
func decimalOf(b []byte) (decimal128.Num, bool) {
	var high, low uint64
	if len(b) > 0 && b[0]&0x80 != 0 {
		high, low = ^uint64(0), ^uint64(0)
	}
	for len(b) > 16 {
		if uint64(int64(int8(b[0]))) != high || b[1]&0x80 != byte(high)&0x80 {
			return decimal128.Num{}, false
		}
		b = b[1:]
	}
	for _, x := range b {
		high, low = high<<8|low>>56, low<<8|uint64(x)
	}
	return decimal128.New(int64(high), low), true
}

// uuidTextColumn is of uuids in text form, as 16 bytes.
type uuidTextColumn struct{ fixedColumn }

func (f *uuidTextColumn) read(c *cursor) {
	b := c.bytes()
	v, err := uuid.ParseBytes(b)
	if err != nil {
		c.fail("%.40q is not a uuid", b)
	}
	put(&f.fixedColumn, v)
}

type booleanColumn struct {
	validity
	values buffer
}

func (f *booleanColumn) put(v bool) {
	if f.n&7 == 0 {
		f.values.extend(1)[0] = 0
	}
	if v {
		f.values.bytes[f.n>>3] |= 1 << (f.n & 7)
	}
}
func (f *booleanColumn) read(c *cursor) { f.put(c.boolean()); f.appendValid() }
func (f *booleanColumn) null(*cursor)   { f.put(false); f.appendNull() }
func (f *booleanColumn) width() int     { return 1 }
func (f *booleanColumn) reserve(n int)  { f.values.reserve((n + 7) / 8) }
func (f *booleanColumn) finish() arrow.ArrayData {
	return f.validity.finish(arrow.FixedWidthTypes.Boolean, nil, f.values.finish())
}
func (f *booleanColumn) release() { f.values.release(); f.validity.release() }

// offsetBuffer holds the 32-bit offsets of strings and lists. The data of a
// window is far smaller than what they reach.
type offsetBuffer struct{ buffer }

// start writes the first offset.
func (o *offsetBuffer) start() {
	if len(o.bytes) == 0 {
		o.append(0)
	}
}

func (o *offsetBuffer) append(end int) {
	*(*int32)(unsafe.Pointer(unsafe.SliceData(o.extend(4)))) = int32(end)
}
func (o *offsetBuffer) reserve(n int) { o.buffer.reserve(4 * (n + 1)) }
func (o *offsetBuffer) finish() *memory.Buffer {
	o.start()
	return o.buffer.finish()
}
