package batch

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// RecordBytes is the memory behind a batch. A buffer that columns share counts
// once, and a slice counts what it shows of its parent's buffers.
func RecordBytes(record arrow.RecordBatch) int64 {
	s := sizing{seen: map[*memory.Buffer]bool{}}
	for _, column := range record.Columns() {
		s.add(column.Data(), int64(column.Data().Offset()), int64(column.Len()))
	}
	return s.total
}

// ArrayBytes is the memory behind an array, as RecordBytes counts it.
func ArrayBytes(a arrow.Array) int64 {
	s := sizing{}
	s.add(a.Data(), int64(a.Data().Offset()), int64(a.Len()))
	return s.total
}

type sizing struct {
	total int64
	seen  map[*memory.Buffer]bool // nil: buffers are not shared
}

// buffer adds a buffer of which shown bytes belong to the rows.
func (s *sizing) buffer(b *memory.Buffer, shown int64) {
	if b == nil || s.seen[b] {
		return
	}
	if s.seen != nil {
		s.seen[b] = true
	}
	size := int64(b.Cap())
	if size > 2*shown+256 {
		size = shown // a slice of something larger, not just room to spare
	}
	s.total += size
}

// add adds the rows [start, start+n) of an array, counted in its buffers.
func (s *sizing) add(data arrow.ArrayData, start, n int64) {
	buffers := data.Buffers()
	s.buffer(buffers[0], (n+7)/8)
	t := data.DataType()
	if extension, ok := t.(arrow.ExtensionType); ok {
		t = extension.StorageType()
	}
	switch t := t.(type) {
	case *arrow.NullType:
	case *arrow.BinaryType, *arrow.StringType:
		first, last := shownOffsets[int32](data, start, n)
		s.buffer(buffers[1], 4*(n+1))
		s.buffer(buffers[2], last-first)
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		first, last := shownOffsets[int64](data, start, n)
		s.buffer(buffers[1], 8*(n+1))
		s.buffer(buffers[2], last-first)
	case arrow.BinaryViewDataType:
		s.buffer(buffers[1], int64(arrow.ViewHeaderSizeBytes)*n)
		for _, b := range buffers[2:] {
			s.buffer(b, int64(b.Len()))
		}
	case *arrow.StructType:
		for _, child := range data.Children() {
			s.add(child, int64(child.Offset())+start, n)
		}
	case *arrow.ListType, *arrow.MapType:
		first, last := shownOffsets[int32](data, start, n)
		s.buffer(buffers[1], 4*(n+1))
		s.child(data, first, last)
	case *arrow.LargeListType:
		first, last := shownOffsets[int64](data, start, n)
		s.buffer(buffers[1], 8*(n+1))
		s.child(data, first, last)
	case *arrow.FixedSizeListType:
		s.child(data, start*int64(t.Len()), (start+n)*int64(t.Len()))
	case *arrow.DictionaryType:
		s.buffer(buffers[1], n*int64(t.IndexType.(arrow.FixedWidthDataType).Bytes()))
		if dictionary, ok := data.Dictionary().(*array.Data); ok && dictionary != nil {
			s.add(dictionary, int64(dictionary.Offset()), int64(dictionary.Len()))
		}
	case arrow.FixedWidthDataType:
		s.buffer(buffers[1], (n*int64(t.BitWidth())+7)/8)
	default:
		for _, b := range buffers[1:] {
			s.buffer(b, int64(b.Len()))
		}
	}
}

func (s *sizing) child(data arrow.ArrayData, first, last int64) {
	child := data.Children()[0]
	s.add(child, int64(child.Offset())+first, last-first)
}

// shownOffsets are the first and the last of the offsets of n rows.
func shownOffsets[O int32 | int64](data arrow.ArrayData, start, n int64) (first, last int64) {
	if n == 0 || data.Buffers()[1] == nil {
		return 0, 0
	}
	offsets := arrow.GetData[O](data.Buffers()[1].Bytes())
	return int64(offsets[start]), int64(offsets[start+n])
}
