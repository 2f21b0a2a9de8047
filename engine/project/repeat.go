package project

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// repeat makes times copies of the rows of an array, one after the other. It
// knows the types that an Iceberg default can have.
func repeat(alloc memory.Allocator, a arrow.Array, times int) (arrow.Array, error) {
	data, err := repeatData(alloc, a, times)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

func repeatData(alloc memory.Allocator, a arrow.Array, times int) (arrow.ArrayData, error) {
	source, rows := a.Data(), a.Len()
	n, t := rows*times, source.DataType()
	if n == 0 || t.ID() == arrow.NULL {
		return nullData(alloc, t, n), nil
	}
	buffers := []*memory.Buffer{nil}
	defer func() { releaseBuffers(buffers) }()
	if a.NullN() > 0 {
		buffers[0] = repeatBits(alloc, source.Buffers()[0].Bytes(), source.Offset(), rows, times)
	}
	var kids []arrow.ArrayData
	defer func() { release(kids) }()
	addKid := func(kid arrow.Array, from, to int64) error {
		part := array.NewSlice(kid, from, to)
		defer part.Release()
		data, err := repeatData(alloc, part, times)
		if err == nil {
			kids = append(kids, data)
		}
		return err
	}
	var err error
	switch t := t.(type) {
	case *arrow.StructType:
		for i := range t.NumFields() {
			if err := addKid(a.(*array.Struct).Field(i), 0, int64(rows)); err != nil {
				return nil, err
			}
		}
	case *arrow.ListType, *arrow.LargeListType, *arrow.MapType:
		var offsets *memory.Buffer
		var first, last int64
		if offsets, first, last, err = repeatOffsets(alloc, source, t.ID() == arrow.LARGE_LIST, times); err == nil {
			buffers = append(buffers, offsets)
			err = addKid(a.(array.ListLike).ListValues(), first, last)
		}
	case *arrow.StringType, *arrow.BinaryType, *arrow.LargeStringType, *arrow.LargeBinaryType:
		var offsets *memory.Buffer
		var first, last int64
		if offsets, first, last, err = repeatOffsets(alloc, source, isLarge(t), times); err == nil {
			values := newBuffer(alloc, int(last-first)*times)
			buffers = append(buffers, offsets, values)
			if last > first {
				fill(values.Bytes(), source.Buffers()[2].Bytes()[first:last])
			}
		}
	case *arrow.BooleanType:
		buffers = append(buffers, repeatBits(alloc, source.Buffers()[1].Bytes(), source.Offset(), rows, times))
	case arrow.FixedWidthDataType:
		width := t.BitWidth() / 8
		values := newBuffer(alloc, n*width)
		buffers = append(buffers, values)
		fill(values.Bytes(), source.Buffers()[1].Bytes()[source.Offset()*width:(source.Offset()+rows)*width])
	default:
		err = errs.New(errs.Internal, "values of Arrow type %s cannot be repeated", t)
	}
	if err != nil {
		return nil, err
	}
	return array.NewData(t, n, buffers, kids, a.NullN()*times, 0), nil
}

// fill repeats a pattern over dest, whose length is a multiple of the pattern's.
func fill(dest, pattern []byte) {
	for done := copy(dest, pattern); done > 0 && done < len(dest); {
		done += copy(dest[done:], dest[:done])
	}
}

func repeatBits(alloc memory.Allocator, source []byte, offset, rows, times int) *memory.Buffer {
	b := zeros(alloc, int(bitutil.BytesForBits(int64(rows*times))))
	for i := range rows * times {
		if bitutil.BitIsSet(source, offset+i%rows) {
			bitutil.SetBit(b.Bytes(), i)
		}
	}
	return b
}

// repeatOffsets are the offsets of the copies, and the range of the values that
// each copy has.
func repeatOffsets(alloc memory.Allocator, source arrow.ArrayData, large bool, times int) (offsets *memory.Buffer, first, last int64, err error) {
	rows := source.Len()
	one, first, last, err := rebaseOffsets(alloc, source, large, large)
	if err != nil {
		return nil, 0, 0, err
	}
	defer one.Release()
	if !large && (last-first)*int64(times) > math.MaxInt32 {
		return nil, 0, 0, errs.New(errs.Unsupported, "a batch holds more than 2 GiB of values; use smaller batches")
	}
	if large {
		return tile[int64](alloc, one, rows, times), first, last, nil
	}
	return tile[int32](alloc, one, rows, times), first, last, nil
}

func tile[O int32 | int64](alloc memory.Allocator, one *memory.Buffer, rows, times int) *memory.Buffer {
	b := newBuffer(alloc, (rows*times+1)*sizeOf[O]())
	from, to := valuesOf[O](one.Bytes()), valuesOf[O](b.Bytes())
	to[0] = 0
	for c := range times {
		base := to[c*rows]
		for i := range rows {
			to[c*rows+i+1] = base + from[i+1]
		}
	}
	return b
}
