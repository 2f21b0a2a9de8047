package batch

import (
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Select returns the rows of values that keep keeps, as an array of the same
// type in new buffers from alloc, with one reference owned by the caller. When
// keep is nil or keeps all rows it is values itself, retained.
//
// It works on every nested type without recursion over rows: the mask of a list
// becomes one mask over the elements of its rows.
func Select(alloc memory.Allocator, values arrow.Array, keep *Mask) (arrow.Array, error) {
	if keep == nil || keep.All() {
		values.Retain()
		return values, nil
	}
	data, err := selectData(alloc, values.Data(), keep)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

func selectData(alloc memory.Allocator, data arrow.ArrayData, keep *Mask) (arrow.ArrayData, error) {
	s := selection{alloc: alloc, in: data, keep: keep, kept: keep.Count()}
	defer s.release()
	if err := s.run(data.DataType()); err != nil {
		return nil, err
	}
	nulls := 0
	if s.buffers[0] != nil {
		nulls = s.kept - bitutil.CountSetBits(s.buffers[0].Bytes(), 0, s.kept)
	}
	if data.DataType().ID() == arrow.NULL {
		nulls = s.kept
	}
	if dictionary := data.Dictionary(); dictionary != nil && data.DataType().ID() == arrow.DICTIONARY {
		return array.NewDataWithDictionary(data.DataType(), s.kept, s.buffers, nulls, 0, dictionary.(*array.Data)), nil
	}
	return array.NewData(data.DataType(), s.kept, s.buffers, s.children, nulls, 0), nil
}

// selection builds the buffers of one array; release drops its own references
// to them.
type selection struct {
	alloc    memory.Allocator
	in       arrow.ArrayData
	keep     *Mask
	kept     int
	buffers  []*memory.Buffer
	children []arrow.ArrayData
}

func (s *selection) release() {
	for _, b := range s.buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range s.children {
		c.Release()
	}
}

func (s *selection) newBuffer(size int) *memory.Buffer {
	b := memory.NewResizableBuffer(s.alloc)
	b.Resize(size)
	s.buffers = append(s.buffers, b)
	return b
}

func (s *selection) run(t arrow.DataType) error {
	if extension, ok := t.(arrow.ExtensionType); ok {
		return s.run(extension.StorageType())
	}
	s.selectValidity()
	switch t := t.(type) {
	case *arrow.NullType:
	case *arrow.BooleanType:
		s.selectBits(s.in.Buffers()[1])
	case *arrow.BinaryType, *arrow.StringType:
		return selectBytes[int32](s)
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		return selectBytes[int64](s)
	case arrow.BinaryViewDataType:
		s.selectFixed(arrow.ViewHeaderSizeBytes)
		for _, b := range s.in.Buffers()[2:] { // views keep pointing into them
			b.Retain()
			s.buffers = append(s.buffers, b)
		}
	case *arrow.StructType:
		return s.selectStruct()
	case *arrow.ListType, *arrow.MapType:
		return selectLists[int32](s)
	case *arrow.LargeListType:
		return selectLists[int64](s)
	case *arrow.FixedSizeListType:
		return s.selectFixedSizeList(int(t.Len()))
	case *arrow.DictionaryType:
		s.selectFixed(t.IndexType.(arrow.FixedWidthDataType).Bytes())
	case arrow.FixedWidthDataType:
		s.selectFixed(t.Bytes())
	default:
		return errs.New(errs.Unsupported, "rows of the Arrow type %s cannot be selected", t)
	}
	return nil
}

// eachRun calls visit with every maximal run of kept rows inside a mask word.
func (m *Mask) eachRun(visit func(start, length int)) {
	for i, w := range m.Words {
		for w != 0 {
			start := bits.TrailingZeros64(w)
			length := bits.TrailingZeros64(^(w >> start))
			visit(i<<6+start, length)
			if start+length == 64 {
				break
			}
			w &^= (1<<length - 1) << start
		}
	}
}

func (s *selection) selectValidity() {
	if len(s.in.Buffers()) == 0 || s.in.Buffers()[0] == nil || s.in.NullN() == 0 {
		s.buffers = append(s.buffers, nil)
		return
	}
	s.selectBits(s.in.Buffers()[0])
}

func (s *selection) selectBits(in *memory.Buffer) {
	out := s.newBuffer(int(bitutil.BytesForBits(int64(s.kept))))
	clear(out.Bytes())
	from, to, offset, at := in.Bytes(), out.Bytes(), s.in.Offset(), 0
	s.keep.eachRun(func(start, length int) {
		if length < 8 {
			for i := range length {
				if bitutil.BitIsSet(from, offset+start+i) {
					bitutil.SetBit(to, at+i)
				}
			}
		} else {
			bitutil.CopyBitmap(from, offset+start, length, to, at)
		}
		at += length
	})
}

func (s *selection) selectFixed(width int) {
	out := s.newBuffer(s.kept * width)
	in := s.in.Buffers()[1]
	if in == nil || s.kept == 0 {
		return
	}
	from, to := in.Bytes()[s.in.Offset()*width:], out.Bytes()
	switch width {
	case 4:
		copyKept(castBytes[uint32](to), castBytes[uint32](from), s.keep)
	case 8:
		copyKept(castBytes[uint64](to), castBytes[uint64](from), s.keep)
	case 16:
		copyKept(castBytes[[2]uint64](to), castBytes[[2]uint64](from), s.keep)
	default:
		at := 0
		s.keep.eachRun(func(start, length int) {
			at += copy(to[at:], from[start*width:(start+length)*width])
		})
	}
}

// castBytes views a buffer as values; a tail shorter than a value is left out.
// Buffers of hosts may be misaligned, which the architectures we build for allow.
func castBytes[T any](b []byte) []T {
	var value T
	n := len(b) / int(unsafe.Sizeof(value))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func copyKept[T any](to, from []T, keep *Mask) {
	at := 0
	for i, w := range keep.Words {
		if w == ^uint64(0) {
			at += copy(to[at:], from[i<<6:i<<6+64])
			continue
		}
		for ; w != 0; w &= w - 1 {
			to[at] = from[i<<6+bits.TrailingZeros64(w)]
			at++
		}
	}
}

type offset interface{ int32 | int64 }

// offsetsOf are the Len()+1 offsets of a list or binary array. An array without
// rows may come without an offsets buffer.
func offsetsOf[O offset](data arrow.ArrayData) []O {
	b := data.Buffers()[1]
	if b == nil || data.Len() == 0 {
		return make([]O, data.Len()+1)
	}
	return castBytes[O](b.Bytes())[data.Offset() : data.Offset()+data.Len()+1]
}

func selectBytes[O offset](s *selection) error {
	from := offsetsOf[O](s.in)
	var width O
	offsets := s.newBuffer((s.kept + 1) * int(unsafe.Sizeof(width)))
	to := castBytes[O](offsets.Bytes())
	to[0] = 0
	at := 0
	s.keep.eachRun(func(start, length int) {
		shift := to[at] - from[start]
		for i := 1; i <= length; i++ {
			to[at+i] = from[start+i] + shift
		}
		at += length
	})
	values := s.newBuffer(int(to[s.kept]))
	if values.Len() == 0 {
		return nil
	}
	fromBytes, toBytes := s.in.Buffers()[2].Bytes(), values.Bytes()
	s.keep.eachRun(func(start, length int) {
		n := copy(toBytes, fromBytes[from[start]:from[start+length]])
		toBytes = toBytes[n:]
	})
	return nil
}

func (s *selection) selectStruct() error {
	start := int64(s.in.Offset())
	for _, child := range s.in.Children() {
		if err := s.selectChild(child, start, start+int64(s.in.Len()), s.keep); err != nil {
			return err
		}
	}
	return nil
}

func (s *selection) selectChild(child arrow.ArrayData, start, end int64, keep *Mask) error {
	rows := array.NewSliceData(child, start, end)
	defer rows.Release()
	if keep.All() {
		// A slice would carry its offset into buffers that others expect to
		// start at row 0; only an exact child is passed on.
		if start == 0 && end == int64(child.Len()) {
			child.Retain()
			s.children = append(s.children, child)
			return nil
		}
	}
	kept, err := selectData(s.alloc, rows, keep)
	if err != nil {
		return err
	}
	s.children = append(s.children, kept)
	return nil
}

func selectLists[O offset](s *selection) error {
	from := offsetsOf[O](s.in)
	var width O
	to := castBytes[O](s.newBuffer((s.kept + 1) * int(unsafe.Sizeof(width))).Bytes())
	to[0] = 0
	first, last := from[0], from[len(from)-1]
	elements := NewMask(int(last-first), false)
	at := 0
	s.keep.eachRun(func(start, length int) {
		elements.setRange(int(from[start]-first), int(from[start+length]-first))
		shift := to[at] - from[start]
		for i := 1; i <= length; i++ {
			to[at+i] = from[start+i] + shift
		}
		at += length
	})
	return s.selectChild(s.in.Children()[0], int64(first), int64(last), elements)
}

func (s *selection) selectFixedSizeList(n int) error {
	elements := NewMask(s.in.Len()*n, false)
	s.keep.eachRun(func(start, length int) {
		elements.setRange(start*n, (start+length)*n)
	})
	start := int64(s.in.Offset() * n)
	return s.selectChild(s.in.Children()[0], start, start+int64(elements.Len), elements)
}

// setRange keeps the rows [start, end).
func (m *Mask) setRange(start, end int) {
	for start < end {
		word, bit := start>>6, start&63
		n := min(64-bit, end-start)
		m.Words[word] |= (^uint64(0) >> (64 - n)) << bit
		start += n
	}
}
