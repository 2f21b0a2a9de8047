package project

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// run is a stretch of rows [start, start+length).
type run struct{ start, length int }

// Filter copies the rows of an array that a mask keeps, for columns that were
// read before the mask was known. The result has one reference.
func Filter(alloc memory.Allocator, a arrow.Array, keep *batch.Mask) (arrow.Array, error) {
	if a.Len() != keep.Len {
		return nil, errs.New(errs.Internal, "a mask of %d rows is applied to an array of %d", keep.Len, a.Len())
	}
	kept := keep.Count()
	if kept == keep.Len {
		a.Retain()
		return a, nil
	}
	return arrayOf(gather(alloc, a, runsOf(keep), kept))
}

// runsOf lists the stretches of rows that a mask keeps.
func runsOf(keep *batch.Mask) []run {
	var runs []run
	open := -1 // where the current stretch began
	for i, word := range keep.Words {
		base := i * 64
		for bit := 0; bit < 64; {
			rest := word >> bit
			if open < 0 {
				skip := bits.TrailingZeros64(rest)
				if skip >= 64-bit {
					break
				}
				bit += skip
				open = base + bit
				continue
			}
			ones := bits.TrailingZeros64(^rest)
			if ones >= 64-bit {
				break
			}
			bit += ones
			runs = append(runs, run{open, base + bit - open})
			open = -1
		}
	}
	if open >= 0 {
		runs = append(runs, run{open, keep.Len - open})
	}
	return runs
}

// repeat makes n rows of the one row of an array.
func repeat(alloc memory.Allocator, row arrow.Array, n int) (arrow.Array, error) {
	if t, ok := row.DataType().(arrow.FixedWidthDataType); ok && row.IsValid(0) && t.BitWidth()%8 == 0 {
		width := t.BitWidth() / 8
		values := newBuffer(alloc, n*width)
		defer values.Release()
		fill(values.Bytes(), row.Data().Buffers()[1].Bytes()[:width])
		return arrayOf(array.NewData(t, n, []*memory.Buffer{nil, values}, nil, 0, 0), nil)
	}
	runs := make([]run, n)
	for i := range runs {
		runs[i] = run{0, 1}
	}
	return arrayOf(gather(alloc, row, runs, n))
}

// fill repeats a pattern over dest, whose length is a multiple of it.
func fill(dest, pattern []byte) {
	for done := copy(dest, pattern); done > 0 && done < len(dest); {
		done += copy(dest[done:], dest[:done])
	}
}

func arrayOf(data arrow.ArrayData, err error) (arrow.Array, error) {
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

// gather copies runs of rows, n in total, into an array of their own.
func gather(alloc memory.Allocator, a arrow.Array, runs []run, n int) (arrow.ArrayData, error) {
	data := a.Data()
	t := data.DataType()
	if t.ID() == arrow.NULL {
		return array.NewData(t, n, []*memory.Buffer{nil}, nil, n, 0), nil
	}
	buffers := []*memory.Buffer{nil}
	defer func() { releaseBuffers(buffers) }()
	nulls := 0
	if a.NullN() > 0 {
		buffers[0] = gatherBits(alloc, data.Buffers()[0].Bytes(), data.Offset(), runs, n)
		nulls = array.UnknownNullCount
	}
	var kids []arrow.ArrayData
	defer func() { release(kids) }()
	add := func(kid arrow.ArrayData, err error) error {
		if err == nil {
			kids = append(kids, kid)
		}
		return err
	}
	var err error
	switch t := t.(type) {
	case *arrow.BooleanType:
		if n > 0 {
			buffers = append(buffers, gatherBits(alloc, data.Buffers()[1].Bytes(), data.Offset(), runs, n))
		} else {
			buffers = append(buffers, zeros(alloc, 0))
		}
	case *arrow.StringType, *arrow.BinaryType:
		err = gatherBytes[int32](alloc, data, runs, n, &buffers)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		err = gatherBytes[int64](alloc, data, runs, n, &buffers)
	case *arrow.StructType:
		for i := range t.NumFields() {
			if err := add(gather(alloc, a.(*array.Struct).Field(i), runs, n)); err != nil {
				return nil, err
			}
		}
	case *arrow.ListType:
		offsets, values, total := gatherOffsets[int32](alloc, data, runs, n)
		buffers = append(buffers, offsets)
		err = add(gather(alloc, a.(*array.List).ListValues(), values, total))
	case *arrow.LargeListType:
		offsets, values, total := gatherOffsets[int64](alloc, data, runs, n)
		buffers = append(buffers, offsets)
		err = add(gather(alloc, a.(*array.LargeList).ListValues(), values, total))
	case *arrow.MapType:
		offsets, values, total := gatherOffsets[int32](alloc, data, runs, n)
		buffers = append(buffers, offsets)
		err = add(gather(alloc, a.(*array.Map).ListValues(), values, total))
	case arrow.ExtensionType:
		storage, err := gather(alloc, a.(array.ExtensionArray).Storage(), runs, n)
		if err != nil {
			return nil, err
		}
		defer storage.Release()
		return array.NewData(t, n, append([]*memory.Buffer(nil), storage.Buffers()...), storage.Children(), storage.NullN(), 0), nil
	case arrow.FixedWidthDataType:
		buffers = append(buffers, gatherFixed(alloc, data, t.BitWidth()/8, runs, n))
	default:
		err = errs.New(errs.Unsupported, "rows of Arrow type %s cannot be filtered", t)
	}
	if err != nil {
		return nil, err
	}
	return array.NewData(t, n, buffers, kids, nulls, 0), nil
}

func gatherBits(alloc memory.Allocator, source []byte, offset int, runs []run, n int) *memory.Buffer {
	b := zeros(alloc, int(bitutil.BytesForBits(int64(n))))
	at := 0
	for _, r := range runs {
		if r.length == 1 {
			bitutil.SetBitTo(b.Bytes(), at, bitutil.BitIsSet(source, offset+r.start))
		} else {
			bitutil.CopyBitmap(source, offset+r.start, r.length, b.Bytes(), at)
		}
		at += r.length
	}
	return b
}

func gatherFixed(alloc memory.Allocator, data arrow.ArrayData, width int, runs []run, n int) *memory.Buffer {
	b := newBuffer(alloc, n*width)
	if n == 0 {
		return b
	}
	source, dest := data.Buffers()[1].Bytes()[data.Offset()*width:], b.Bytes()
	for _, r := range runs {
		dest = dest[copy(dest, source[r.start*width:(r.start+r.length)*width]):]
	}
	return b
}

// gatherOffsets are the offsets of the gathered lists, and the runs and number
// of values that they are made of.
func gatherOffsets[O int32 | int64](alloc memory.Allocator, data arrow.ArrayData, runs []run, n int) (*memory.Buffer, []run, int) {
	b := newBuffer(alloc, (n+1)*sizeOf[O]())
	offsets := valuesOf[O](b.Bytes())
	offsets[0] = 0
	if n == 0 {
		return b, nil, 0
	}
	source := valuesOf[O](data.Buffers()[1].Bytes())[data.Offset():]
	values := make([]run, 0, len(runs))
	at, total := 1, O(0)
	for _, r := range runs {
		start := source[r.start]
		for i := r.start; i < r.start+r.length; i++ {
			offsets[at] = total + source[i+1] - start
			at++
		}
		if length := source[r.start+r.length] - start; length > 0 {
			values = append(values, run{int(start), int(length)})
			total += length
		}
	}
	return b, values, int(total)
}

func gatherBytes[O int32 | int64](alloc memory.Allocator, data arrow.ArrayData, runs []run, n int, buffers *[]*memory.Buffer) error {
	if n > 0 && sizeOf[O]() == 4 && len(runs) > data.Len() { // only a repeated row can outgrow its source
		source := valuesOf[O](data.Buffers()[1].Bytes())[data.Offset():]
		if int64(source[1]-source[0])*int64(n) > math.MaxInt32 {
			return errs.New(errs.Unsupported, "a batch holds more than 2 GiB of values; use smaller batches")
		}
	}
	offsets, values, total := gatherOffsets[O](alloc, data, runs, n)
	bytes := newBuffer(alloc, total)
	*buffers = append(*buffers, offsets, bytes)
	if total > 0 {
		source, dest := data.Buffers()[2].Bytes(), bytes.Bytes()
		for _, r := range values {
			dest = dest[copy(dest, source[r.start:r.start+r.length]):]
		}
	}
	return nil
}
