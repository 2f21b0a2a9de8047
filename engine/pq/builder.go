package pq

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/mem"
)

// leafBuilder collects the values of a leaf into the buffers of an Arrow
// array. Values are decoded densely to the end of what is there and then
// spread over their slots, so that each is written where it stays, or moved
// once when nulls are around it.
type leafBuilder struct {
	typ    arrow.DataType
	layout layout
	alloc  memory.Allocator

	slots    int            // filled
	capacity int            // slots that the buffers have room for
	values   *memory.Buffer // of fixed width; of strings, the offsets
	data     *memory.Buffer // bytes of strings
	bytes    bytesOut       // writes data
	valid    *memory.Buffer // nil: no null so far
	nulls    int

	bools scratch // booleans while they take a byte each

	// bytesPerSlot is what strings took in the arrays before: the first guess
	// for the next.
	bytesPerSlot float64
}

func newLeafBuilder(l *leaf, f *File, charged *mem.Reservation) leafBuilder {
	return leafBuilder{typ: l.typ, layout: l.layout(), alloc: f.opts.Alloc, bools: scratch{alloc: f.opts.Alloc, charged: charged}}
}

// expect prepares for the values of a column chunk.
func (b *leafBuilder) expect(c *columnChunk) {
	if b.bytesPerSlot > 0 || c.numValues == 0 {
		return
	}
	size := c.uncompressedSize
	if c.unencodedBytes >= 0 {
		size = c.unencodedBytes
	}
	b.bytesPerSlot = min(float64(max(size, 0))/float64(c.numValues), 1024)
}

// begin starts an array of about n slots.
func (b *leafBuilder) begin(n int) error {
	b.slots, b.capacity, b.nulls, b.valid = 0, n, 0, nil
	b.values = memory.NewResizableBuffer(b.alloc)
	if b.layout.boolean {
		return b.bools.grow(n, 0)
	}
	b.values.Reserve(max(b.valuesSize(n), 1)) // never nil
	if b.layout.width > 0 {
		return nil
	}
	b.offsets()[0] = 0
	b.data = memory.NewResizableBuffer(b.alloc)
	// A tenth above the average, so that most arrays never grow.
	b.data.Reserve(int(min(float64(n)*b.bytesPerSlot*1.1, maxStringBytes)) + slack)
	b.bytes = bytesOut{memory: b, data: b.data.Buf()}
	return nil
}

// resize makes the strings' buffer hold at least n bytes.
func (b *leafBuilder) resize(n, _ int) ([]byte, error) {
	b.data.Reserve(n)
	return b.data.Buf(), nil
}

// valuesSize is the size of the values buffer for n slots.
func (b *leafBuilder) valuesSize(n int) int {
	if b.layout.width > 0 {
		return n * b.layout.width
	}
	return 4 * (n + 1)
}

func (b *leafBuilder) offsets() []int32 {
	return arrow.Int32Traits.CastFromBytes(b.values.Buf())
}

// room makes space for n more slots.
func (b *leafBuilder) room(n int) error {
	if b.slots+n <= b.capacity {
		return nil
	}
	b.capacity = max(b.slots+n, b.capacity*3/2)
	if b.layout.boolean {
		if err := b.bools.grow(b.capacity, b.slots); err != nil {
			return err
		}
	} else {
		b.values.Reserve(b.valuesSize(b.capacity))
	}
	if b.valid != nil {
		held := b.valid.Cap()
		b.valid.Reserve(bitmapSize(b.capacity))
		clear(b.valid.Buf()[held:])
	}
	return nil
}

// fixed is the values buffer from slot on.
func (b *leafBuilder) fixed(slot int) []byte {
	if b.layout.boolean {
		return b.bools.buf[slot:]
	}
	return b.values.Buf()[slot*b.layout.width:]
}

// decode puts the values of the spans behind the filled slots, without gaps.
// Room for them is there.
func (b *leafBuilder) decode(fixed fixedDecoder, bytes bytesDecoder, spans []span) error {
	if fixed != nil {
		return fixed.decode(b.fixed(b.slots), spans)
	}
	b.bytes.offsets, b.bytes.count = b.offsets()[b.slots+1:], 0
	return bytes.decode(&b.bytes, spans)
}

// fill adds n slots that all have values, which decode has put there.
func (b *leafBuilder) fill(n int) {
	if b.valid != nil {
		setBits(b.valid.Buf(), b.slots, n)
	}
	b.slots += n
}

// validity is the bitmap in which the caller sets the bits of the next slots
// that have values; those of all slots from the filled ones on are zero.
func (b *leafBuilder) validity() []byte {
	if b.valid == nil {
		b.valid = memory.NewResizableBuffer(b.alloc)
		b.valid.Reserve(max(bitmapSize(b.capacity), 1))
		clear(b.valid.Buf())
		setBits(b.valid.Buf(), 0, b.slots)
	}
	return b.valid.Buf()
}

// spread adds n slots of which those with a bit in validity have the values
// that decode has put there, count of them; null slots become zero.
func (b *leafBuilder) spread(n, count int) {
	valid := b.valid.Buf()
	switch b.layout.width {
	case 0:
		b.spreadOffsets(valid, n, count)
	case 1:
		spread(b.fixed(b.slots)[:n], valid, b.slots, count)
	case 2:
		spread(arrow.Uint16Traits.CastFromBytes(b.fixed(b.slots))[:n], valid, b.slots, count)
	case 4:
		spread(arrow.Uint32Traits.CastFromBytes(b.fixed(b.slots))[:n], valid, b.slots, count)
	case 8:
		spread(arrow.Uint64Traits.CastFromBytes(b.fixed(b.slots))[:n], valid, b.slots, count)
	case 16:
		spread(arrow.Decimal128Traits.CastFromBytes(b.fixed(b.slots))[:n], valid, b.slots, count)
	default:
		spreadWide(b.fixed(b.slots)[:n*b.layout.width], b.layout.width, valid, b.slots, count)
	}
	b.slots += n
	b.nulls += n - count
}

// spread moves the first count values to the slots whose bits are set, from
// the last on, and clears the others. bit is the first slot's bit.
func spread[T any](slots []T, valid []byte, bit, count int) {
	var zero T
	from := count
	for i := len(slots); i > 0 && from < i; {
		// Whole stretches of values move together.
		if (bit+i)&7 == 0 && i >= 8 {
			switch valid[(bit+i)>>3-1] {
			case 0xff:
				copy(slots[i-8:i], slots[from-8:from])
				i, from = i-8, from-8
				continue
			case 0:
				clear(slots[i-8 : i])
				i -= 8
				continue
			}
		}
		i--
		if valid[(bit+i)>>3]>>((bit+i)&7)&1 == 1 {
			from--
			slots[i] = slots[from]
		} else {
			slots[i] = zero
		}
	}
}

func spreadWide(slots []byte, width int, valid []byte, bit, count int) {
	from := count
	for i := len(slots)/width - 1; i >= from && i >= 0; i-- {
		if valid[(bit+i)>>3]>>((bit+i)&7)&1 == 1 {
			from--
			copy(slots[i*width:(i+1)*width], slots[from*width:])
		} else {
			clear(slots[i*width : (i+1)*width])
		}
	}
}

// spreadOffsets gives each null slot the end of the value before it.
func (b *leafBuilder) spreadOffsets(valid []byte, n, count int) {
	ends := b.offsets()[b.slots : b.slots+n+1] // the first is the end of what came before
	from := count
	for i := n; i > 0 && from < i; i-- {
		ends[i] = ends[from]
		from -= int(valid[(b.slots+i-1)>>3] >> ((b.slots + i - 1) & 7) & 1)
	}
}

// finish returns the array of the filled slots.
func (b *leafBuilder) finish() arrow.Array {
	defer b.abort()
	if b.typ.ID() == arrow.NULL {
		return array.NewNull(b.slots)
	}
	if b.valid != nil {
		b.valid.ResizeNoShrink(bitmapSize(b.slots))
	}
	valid := b.valid
	if b.nulls == 0 {
		valid = nil
	}
	buffers := []*memory.Buffer{valid, b.values}
	switch {
	case b.layout.boolean:
		b.values.Reserve(max(bitmapSize(b.slots), 1))
		b.values.ResizeNoShrink(bitmapSize(b.slots))
		packBools(b.values.Bytes(), b.bools.buf[:b.slots])
	case b.layout.width > 0:
		b.values.ResizeNoShrink(b.valuesSize(b.slots))
	default:
		b.values.ResizeNoShrink(b.valuesSize(b.slots))
		b.trimData()
		buffers = append(buffers, b.data)
	}
	data := array.NewData(b.typ, b.slots, buffers, nil, b.nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// trimData gives back the part of the strings' buffer that a bad guess left
// unused, when it is large.
func (b *leafBuilder) trimData() {
	if b.slots > 0 {
		b.bytesPerSlot = float64(b.bytes.used) / float64(b.slots)
	}
	if b.data.Cap() > b.bytes.used+b.bytes.used/4+4096 {
		b.data.Resize(max(b.bytes.used, 1))
	}
	b.data.ResizeNoShrink(b.bytes.used)
}

// abort drops what is collected; after finish, the builder's references.
func (b *leafBuilder) abort() {
	for _, buffer := range []**memory.Buffer{&b.values, &b.data, &b.valid} {
		if *buffer != nil {
			(*buffer).Release()
			*buffer = nil
		}
	}
	b.bytes = bytesOut{}
}

func (b *leafBuilder) free() {
	b.abort()
	b.bools.free()
}
