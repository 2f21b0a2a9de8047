package bridge

// #include "import.h"
import "C"

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// cArrowArray is struct ArrowArray, under a name that tests may use.
type cArrowArray = C.struct_ArrowArray

// foreignArray is a producer's array that is released with the last buffer made
// of it. It is the allocator of those buffers: they only ever call Free.
type foreignArray struct {
	c    *C.struct_ArrowArray
	refs atomic.Int64
}

func (f *foreignArray) Free([]byte) {
	if f.refs.Add(-1) == 0 {
		C.iex_import_drop(f.c)
	}
}

// Allocate and Reallocate complete memory.Allocator; imported buffers are
// immutable, so nothing calls them.
func (f *foreignArray) Allocate(int) []byte           { panic("bridge: an imported buffer grows") }
func (f *foreignArray) Reallocate(int, []byte) []byte { panic("bridge: an imported buffer grows") }

// importBatch makes a batch of a producer's struct array, which it takes over.
// The producer is trusted as far as its memory goes, as the C data interface
// has it; what its structures say about themselves is checked.
func importBatch(from *C.struct_ArrowArray, foreign, schema *arrow.Schema, alloc memory.Allocator) (arrow.RecordBatch, error) {
	kept := C.iex_import_keep(from)
	if kept == nil {
		C.iex_import_release_array(from)
		return nil, errs.New(errs.MemoryLimit, "the system has no memory left")
	}
	owner := &foreignArray{c: kept}
	owner.refs.Store(1)
	defer owner.Free(nil)
	im := &arrayImporter{owner: owner, alloc: alloc}

	rows, offset := int(kept.length), int(kept.offset)
	if err := im.checkShape(kept, "the batch", 1, foreign.NumFields()); err != nil {
		return nil, err
	}
	if validity := buffersOf(kept, 1)[0]; validity != 0 && kept.null_count != 0 && rows > 0 &&
		bitutil.CountSetBits(bytesAt(validity, bitmapBytes(offset+rows)), offset, rows) != rows {
		return nil, errs.New(errs.InvalidArgument, "a batch has rows that are null as a whole; only their columns may be")
	}
	columns := make([]arrow.Array, 0, foreign.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, child := range pointers(&kept.children, kept.n_children) {
		name := foreign.Field(i).Name
		if int(child.length) < offset+rows {
			return nil, errs.New(errs.InvalidArgument, "column %q has %d rows of %d", name, child.length, offset+rows)
		}
		data, err := im.array(child, foreign.Field(i).Type, schema.Field(i).Type, name)
		if err != nil {
			return nil, err
		}
		whole := array.MakeFromData(data)
		data.Release()
		columns = append(columns, array.NewSlice(whole, int64(offset), int64(offset+rows)))
		whole.Release()
	}
	return array.NewRecordBatch(schema, columns, int64(rows)), nil
}

type arrayImporter struct {
	owner *foreignArray
	alloc memory.Allocator
}

func (im *arrayImporter) checkShape(c *C.struct_ArrowArray, name string, buffers, children int) error {
	if c.length < 0 || c.offset < 0 || c.length > math.MaxInt64-c.offset ||
		int(c.n_buffers) != buffers || int(c.n_children) != children {
		return errs.New(errs.InvalidArgument, "%s: the Arrow array has length %d, offset %d, %d buffers and %d children, which its type has not",
			name, c.length, c.offset, c.n_buffers, c.n_children)
	}
	return nil
}

// buffersOf are the addresses of an array's first n buffers. They stay numbers
// until there is something to read: see pointers.
func buffersOf(c *C.struct_ArrowArray, n int) []uintptr {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*uintptr)(unsafe.Pointer(c.buffers)), n)
}

// bytesAt is the memory at an address.
func bytesAt(at uintptr, size int) []byte {
	if size == 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size)
}

func bitmapBytes(bits int) int { return (bits + 7) / 8 }

// array imports one array and everything below it. plain is typ without views.
func (im *arrayImporter) array(c *C.struct_ArrowArray, typ, plain arrow.DataType, name string) (arrow.ArrayData, error) {
	wanted := layoutOf(typ)
	if wanted.variadic && c.n_buffers >= 3 {
		wanted.buffers = int(c.n_buffers)
	}
	if err := im.checkShape(c, name, wanted.buffers, wanted.children); err != nil {
		return nil, err
	}
	if (c.dictionary != nil) != (typ.ID() == arrow.DICTIONARY) {
		return nil, errs.New(errs.InvalidArgument, "%s: the Arrow array of type %s has, or lacks, a dictionary", name, typ)
	}
	raw := buffersOf(c, wanted.buffers)
	length, offset, end := int(c.length), int(c.offset), int(c.offset+c.length)

	buffers := make([]*memory.Buffer, 0, 3)
	var children []arrow.ArrayData
	defer func() {
		for _, b := range buffers {
			if b != nil {
				b.Release()
			}
		}
		for _, child := range children {
			child.Release()
		}
	}()
	nulls := int(c.null_count)
	if wanted.validity {
		if raw[0] == 0 {
			nulls = 0
		}
		if nulls == 0 {
			buffers = append(buffers, nil)
		} else {
			bits, err := im.buffer(raw[0], bitmapBytes(end), 1, name)
			if err != nil {
				return nil, err
			}
			buffers = append(buffers, bits)
		}
	} else {
		buffers, nulls = append(buffers, nil), length // the null type
	}

	lastOffset := 0 // of the elements or bytes that the array refers to
	switch {
	case wanted.variadic:
		offsets, values, err := im.plainViews(c, raw, buffers[0], name)
		if err != nil {
			return nil, err
		}
		buffers = append(buffers, offsets, values)
	case wanted.offsets > 0:
		offsets, err := im.offsets(raw[1], end, wanted.offsets, name)
		if err != nil {
			return nil, err
		}
		buffers = append(buffers, offsets)
		first := readOffset(offsets.Bytes(), offset, wanted.offsets)
		lastOffset = readOffset(offsets.Bytes(), end, wanted.offsets)
		if first < 0 || lastOffset < first {
			return nil, errs.New(errs.InvalidArgument, "%s: the offsets of the Arrow array run from %d to %d", name, first, lastOffset)
		}
		if wanted.children == 0 {
			values, err := im.buffer(raw[2], lastOffset, 1, name)
			if err != nil {
				return nil, err
			}
			buffers = append(buffers, values)
		}
	case wanted.bits > 0:
		values, err := im.buffer(raw[1], bitmapBytes(wanted.bits*end), wanted.align, name)
		if err != nil {
			return nil, err
		}
		buffers = append(buffers, values)
	}

	if wanted.children > 0 {
		fields, plainFields := typ.(arrow.NestedType).Fields(), plain.(arrow.NestedType).Fields()
		atLeast := lastOffset
		switch typ := typ.(type) {
		case *arrow.StructType:
			atLeast = end
		case *arrow.FixedSizeListType:
			atLeast = end * int(typ.Len())
		}
		for i, child := range pointers(&c.children, c.n_children) {
			if int(child.length) < atLeast {
				return nil, errs.New(errs.InvalidArgument, "%s.%s: the Arrow array has %d elements of %d", name, fields[i].Name, child.length, atLeast)
			}
			data, err := im.array(child, fields[i].Type, plainFields[i].Type, name+"."+fields[i].Name)
			if err != nil {
				return nil, err
			}
			children = append(children, data)
		}
	}
	if typ, ok := typ.(*arrow.DictionaryType); ok {
		values, err := im.array(c.dictionary, typ.ValueType, plain.(*arrow.DictionaryType).ValueType, name)
		if err != nil {
			return nil, err
		}
		defer values.Release()
		return array.NewDataWithDictionary(plain, length, buffers, nulls, offset, values.(*array.Data)), nil
	}
	return array.NewData(plain, length, buffers, children, nulls, offset), nil
}

// buffer shares a producer's buffer, or copies it when it is not aligned. An
// empty one may be NULL.
func (im *arrayImporter) buffer(at uintptr, size, align int, name string) (*memory.Buffer, error) {
	switch {
	case size == 0:
		return memory.NewBufferBytes([]byte{}), nil
	case at == 0:
		return nil, errs.New(errs.InvalidArgument, "%s: the Arrow array lacks a buffer of %d bytes", name, size)
	case at%uintptr(align) == 0:
		im.owner.refs.Add(1)
		return memory.NewBufferWithAllocator(bytesAt(at, size), im.owner), nil
	}
	copied := memory.NewResizableBuffer(im.alloc)
	copied.Resize(size)
	copy(copied.Bytes(), bytesAt(at, size))
	return copied, nil
}

// offsets is the offsets buffer, which of an empty array may be missing.
func (im *arrayImporter) offsets(at uintptr, end, width int, name string) (*memory.Buffer, error) {
	if end == 0 {
		return im.zeros(width), nil
	}
	return im.buffer(at, (end+1)*width, width, name)
}

func (im *arrayImporter) zeros(n int) *memory.Buffer {
	b := memory.NewResizableBuffer(im.alloc)
	b.Resize(n)
	clear(b.Bytes())
	return b
}

func readOffset(offsets []byte, i, width int) int {
	if width == 4 {
		return int(int32(binary.NativeEndian.Uint32(offsets[4*i:])))
	}
	return int(binary.NativeEndian.Uint64(offsets[8*i:]))
}

// plainViews turns the views of a string or binary view array into offsets and
// values. Rows before the array's offset come out empty.
func (im *arrayImporter) plainViews(c *C.struct_ArrowArray, raw []uintptr, validity *memory.Buffer, name string) (offsets, values *memory.Buffer, err error) {
	const viewBytes, inline = 16, 12
	offset, end := int(c.offset), int(c.offset+c.length)
	views := bytesAt(raw[1], viewBytes*end)
	data := raw[2 : len(raw)-1]
	lengths := bytesAt(raw[len(raw)-1], 8*len(data))

	// text is the value of row i; nil when the row's view points nowhere.
	text := func(i int) []byte {
		view := views[viewBytes*i : viewBytes*(i+1)]
		n := int(int32(binary.NativeEndian.Uint32(view)))
		if n >= 0 && n <= inline {
			return view[4 : 4+n]
		}
		b, at := int(int32(binary.NativeEndian.Uint32(view[8:]))), int(int32(binary.NativeEndian.Uint32(view[12:])))
		if n < 0 || b < 0 || b >= len(data) || at < 0 || at+n > int(binary.NativeEndian.Uint64(lengths[8*b:])) {
			return nil
		}
		return bytesAt(data[b]+uintptr(at), n)
	}
	isNull := func(i int) bool { return validity != nil && !bitutil.BitIsSet(validity.Bytes(), i) }

	offsets = im.zeros(4 * (end + 1))
	starts := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	total := 0
	for i := offset; i < end; i++ {
		if !isNull(i) {
			value := text(i)
			if value == nil {
				offsets.Release()
				return nil, nil, errs.New(errs.InvalidArgument, "%s: a view of the Arrow array points outside of its buffers", name)
			}
			if total += len(value); total > math.MaxInt32 {
				offsets.Release()
				return nil, nil, errs.New(errs.Unsupported, "%s: a batch holds more than 2 GiB of text; give smaller batches", name)
			}
		}
		starts[i+1] = int32(total)
	}
	values = memory.NewResizableBuffer(im.alloc)
	values.Resize(total)
	for i := offset; i < end; i++ {
		if !isNull(i) {
			copy(values.Bytes()[starts[i]:], text(i))
		}
	}
	return offsets, values, nil
}

// layout is what the C data interface prescribes for a type.
type layout struct {
	buffers, children int
	validity          bool
	offsets           int  // bytes of an offset; 0: none
	bits, align       int  // of a fixed-width value, and the bytes it must be aligned to
	variadic          bool // views: any number of data buffers, and their lengths
}

func layoutOf(t arrow.DataType) layout {
	switch t := t.(type) {
	case *arrow.NullType:
		return layout{}
	case *arrow.StringType, *arrow.BinaryType:
		return layout{buffers: 3, validity: true, offsets: 4}
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return layout{buffers: 3, validity: true, offsets: 8}
	case *arrow.StringViewType, *arrow.BinaryViewType:
		return layout{buffers: 3, validity: true, variadic: true}
	case *arrow.ListType, *arrow.MapType:
		return layout{buffers: 2, children: 1, validity: true, offsets: 4}
	case *arrow.LargeListType:
		return layout{buffers: 2, children: 1, validity: true, offsets: 8}
	case *arrow.FixedSizeListType:
		return layout{buffers: 1, children: 1, validity: true}
	case *arrow.StructType:
		return layout{buffers: 1, children: t.NumFields(), validity: true}
	case *arrow.DictionaryType:
		return layoutOf(t.IndexType)
	case *arrow.FixedSizeBinaryType:
		return layout{buffers: 2, validity: true, bits: 8 * t.ByteWidth, align: 1}
	case arrow.FixedWidthDataType:
		return layout{buffers: 2, validity: true, bits: t.BitWidth(), align: min(max(t.BitWidth()/8, 1), 8)}
	}
	panic("bridge: no layout for " + t.String()) // typeOf makes no other types
}

// plainSchema and plainType put string and binary in the place of their views.
func plainSchema(s *arrow.Schema) *arrow.Schema {
	metadata := s.Metadata()
	return arrow.NewSchema(plainFields(s.Fields()), &metadata)
}

func plainFields(fields []arrow.Field) []arrow.Field {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		f.Type = plainType(f.Type)
		out[i] = f
	}
	return out
}

func plainType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StringViewType:
		return arrow.BinaryTypes.String
	case *arrow.BinaryViewType:
		return arrow.BinaryTypes.Binary
	case *arrow.StructType:
		return arrow.StructOf(plainFields(t.Fields())...)
	case *arrow.MapType:
		fields := plainFields([]arrow.Field{t.KeyField(), t.ItemField()})
		m := arrow.MapOfFields(fields[0], fields[1])
		m.KeysSorted = t.KeysSorted
		return m
	case *arrow.ListType:
		return arrow.ListOfField(plainFields([]arrow.Field{t.ElemField()})[0])
	case *arrow.LargeListType:
		return arrow.LargeListOfField(plainFields([]arrow.Field{t.ElemField()})[0])
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), plainFields([]arrow.Field{t.ElemField()})[0])
	case *arrow.DictionaryType:
		return &arrow.DictionaryType{IndexType: t.IndexType, ValueType: plainType(t.ValueType), Ordered: t.Ordered}
	}
	return t
}
