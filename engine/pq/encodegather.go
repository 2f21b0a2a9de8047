package pq

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// picked says which values of an array a leaf has: those at positions,
// or, when positions is nil, all of [from, to).
type picked struct {
	from, to  int
	positions []int32
}

func (p picked) len() int {
	if p.positions != nil {
		return len(p.positions)
	}
	return p.to - p.from
}

// each yields the positions in order.
func (p picked) each(visit func(i, at int)) {
	if p.positions == nil {
		for at := p.from; at < p.to; at++ {
			visit(at-p.from, at)
		}
		return
	}
	for i, at := range p.positions {
		visit(i, int(at))
	}
}

// resized returns s with n elements, whose contents are unspecified.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// gatherWords returns the picked values of an array of words. They alias the
// array where they can, else they are in scratch.
func gatherWords[T uint32 | uint64](scratch, values []T, p picked) (dense, kept []T) {
	if p.positions == nil {
		return values[p.from:p.to], scratch
	}
	scratch = resized(scratch, len(p.positions))
	for i, at := range p.positions {
		scratch[i] = values[at]
	}
	return scratch, scratch
}

// storageOf is the array that an extension array wraps.
func storageOf(values arrow.Array) arrow.Array {
	if e, ok := values.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return values
}

// fixedBytes are the values of an array of fixed width.
func fixedWidthBytes(data arrow.ArrayData, width int) []byte {
	if data.Len() == 0 || data.Buffers()[1] == nil {
		return nil
	}
	return data.Buffers()[1].Bytes()[data.Offset()*width : (data.Offset()+data.Len())*width]
}

// decimals are the low and high words of an array of 128-bit decimals.
type decimals []byte

func (d decimals) at(i int) (low, high uint64) {
	return binary.LittleEndian.Uint64(d[16*i:]), binary.LittleEndian.Uint64(d[16*i+8:])
}

func (l *leaf) decimalTooLarge() error {
	return errs.New(errs.InvalidArgument, "column %s has a value that does not fit %s", l.path, l.typ)
}

// gatherDecimals returns the picked decimals as words of 32 or 64 bits.
func gatherDecimals[T uint32 | uint64](scratch []T, l *leaf, d decimals, p picked) ([]T, error) {
	scratch = resized(scratch, p.len())
	wrong := uint64(0)
	short := l.physical == physInt32
	p.each(func(i, at int) {
		low, high := d.at(at)
		value := int64(low)
		if short {
			value = int64(int32(low))
		}
		wrong |= uint64(value) ^ low | uint64(value>>63) ^ high
		scratch[i] = T(low)
	})
	if wrong != 0 {
		return scratch, l.decimalTooLarge()
	}
	return scratch, nil
}

// byteRange is where a value lies in a buffer.
type byteRange struct{ start, end int }

// bytesSource holds the picked values of an array of bytes.
type bytesSource struct {
	buf    []byte
	ranges []byteRange
	own    []byte // buf where the values had to be put together
}

func (b *bytesSource) at(i int) []byte {
	r := b.ranges[i]
	return b.buf[r.start:r.end]
}

// size is how many bytes the values have.
func (b *bytesSource) size() int {
	n := 0
	for _, r := range b.ranges {
		n += r.end - r.start
	}
	return n
}

// load picks values of any array that holds bytes for the leaf.
func (b *bytesSource) load(l *leaf, values arrow.Array, p picked) error {
	values = storageOf(values)
	b.ranges = resized(b.ranges, p.len())
	data := values.Data()
	switch v := values.(type) {
	case *array.String, *array.Binary:
		b.buf = bufferBytes(data, 2)
		pickRanges(b.ranges, arrow.Int32Traits.CastFromBytes(bufferBytes(data, 1)), data.Offset(), p)
	case *array.LargeString, *array.LargeBinary:
		b.buf = bufferBytes(data, 2)
		pickRanges(b.ranges, arrow.Int64Traits.CastFromBytes(bufferBytes(data, 1)), data.Offset(), p)
	case *array.FixedSizeBinary:
		width := int(l.length)
		b.buf = fixedWidthBytes(data, width)
		p.each(func(i, at int) { b.ranges[i] = byteRange{at * width, (at + 1) * width} })
	case *array.StringView:
		b.collect(p, func(at int) []byte { return []byte(v.Value(at)) })
	case *array.BinaryView:
		b.collect(p, v.Value)
	case *array.Dictionary:
		return b.loadDictionary(l, v, p)
	case *array.Decimal128:
		return b.loadDecimals(l, fixedWidthBytes(data, 16), p)
	default:
		return errs.New(errs.Internal, "column %s: no bytes in an array of %s", l.path, values.DataType())
	}
	return nil
}

func bufferBytes(data arrow.ArrayData, i int) []byte {
	if b := data.Buffers()[i]; b != nil {
		return b.Bytes()
	}
	return nil
}

func pickRanges[O int32 | int64](ranges []byteRange, offsets []O, first int, p picked) {
	if p.positions == nil {
		if p.from == p.to {
			return
		}
		offsets = offsets[first+p.from : first+p.to+1]
		for i := range ranges {
			ranges[i] = byteRange{int(offsets[i]), int(offsets[i+1])}
		}
		return
	}
	for i, at := range p.positions {
		ranges[i] = byteRange{int(offsets[first+int(at)]), int(offsets[first+int(at)+1])}
	}
}

// collect copies values that do not lie in one buffer.
func (b *bytesSource) collect(p picked, value func(at int) []byte) {
	b.own = b.own[:0]
	p.each(func(i, at int) {
		start := len(b.own)
		b.own = append(b.own, value(at)...)
		b.ranges[i] = byteRange{start, len(b.own)}
	})
	b.buf = b.own
}

// loadDictionary looks the values of a dictionary array up.
func (b *bytesSource) loadDictionary(l *leaf, values *array.Dictionary, p picked) error {
	indices := make([]int32, 0, p.len())
	p.each(func(_, at int) { indices = append(indices, int32(values.GetValueIndex(at))) })
	return b.load(l, values.Dictionary(), picked{positions: indices})
}

// loadDecimals makes the big-endian numbers in which Parquet stores decimals
// of fixed length.
func (b *bytesSource) loadDecimals(l *leaf, d decimals, p picked) error {
	width := int(l.length)
	b.own = resized(b.own, p.len()*width)
	fits := true
	p.each(func(i, at int) {
		var wide [16]byte
		low, high := d.at(at)
		binary.BigEndian.PutUint64(wide[:], high)
		binary.BigEndian.PutUint64(wide[8:], low)
		cut := 16 - width
		sign := byte(int8(wide[cut]) >> 7)
		for _, v := range wide[:cut] {
			fits = fits && v == sign
		}
		copy(b.own[i*width:], wide[cut:])
		b.ranges[i] = byteRange{i * width, (i + 1) * width}
	})
	b.buf = b.own
	if !fits {
		return l.decimalTooLarge()
	}
	return nil
}
