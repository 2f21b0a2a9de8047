package sort

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// builder makes an array of any type out of rows or trees of values.
type builder struct {
	alloc    memory.Allocator
	typ      arrow.DataType // as the input has it
	storage  arrow.DataType
	kind     kind
	width    int
	n, nulls int

	validity, values, texts *memory.Buffer // values: fixed-width ones, offsets, views or indices
	children                []*builder
	// of a dictionary: the tree of each value to its index
	indices map[string]int
}

func newBuilder(alloc memory.Allocator, typ arrow.DataType) *builder {
	b := &builder{alloc: alloc, typ: typ, storage: typ}
	if extension, ok := typ.(arrow.ExtensionType); ok {
		b.storage = extension.StorageType()
	}
	b.kind, b.width = kindOf(b.storage)
	buffer := func() *memory.Buffer { return memory.NewResizableBuffer(alloc) }
	b.validity, b.values, b.texts = buffer(), buffer(), buffer()
	switch t := b.storage.(type) {
	case *arrow.DictionaryType:
		b.width = t.IndexType.(arrow.FixedWidthDataType).Bytes()
		b.children = []*builder{newBuilder(alloc, t.ValueType)}
		b.indices = map[string]int{}
	case *arrow.StructType:
		for _, f := range t.Fields() {
			b.children = append(b.children, newBuilder(alloc, f.Type))
		}
	case arrow.ListLikeType:
		b.children = []*builder{newBuilder(alloc, t.Elem())}
	}
	if b.hasOffsets() {
		b.width = 4
		switch b.storage.(type) {
		case *arrow.LargeStringType, *arrow.LargeBinaryType, *arrow.LargeListType:
			b.width = 8
		}
		clear(extend(b.values, b.width))
	}
	return b
}

func (b *builder) hasOffsets() bool {
	switch b.storage.(type) {
	case *arrow.StringType, *arrow.BinaryType, *arrow.LargeStringType, *arrow.LargeBinaryType,
		*arrow.ListType, *arrow.LargeListType, *arrow.MapType:
		return true
	}
	return false
}

func (b *builder) release() {
	for _, buffer := range []*memory.Buffer{b.validity, b.values, b.texts} {
		buffer.Release()
	}
	for _, c := range b.children {
		c.release()
	}
}

// extend makes a buffer n bytes longer, at least by half when it must move, and
// returns the new part.
func extend(b *memory.Buffer, n int) []byte {
	size := b.Len()
	if size+n > b.Cap() {
		b.Reserve(max(size+n, size+size/2, 1<<10))
	}
	b.ResizeNoShrink(size + n)
	return b.Bytes()[size:]
}

// mark adds n rows that are null or not.
func (b *builder) mark(n int, valid bool) {
	grown := int(bitutil.BytesForBits(int64(b.n+n))) - b.validity.Len()
	if grown > 0 {
		clear(extend(b.validity, grown))
	}
	bitutil.SetBitsTo(b.validity.Bytes(), int64(b.n), int64(n), valid)
	b.n += n
	if !valid {
		b.nulls += n
	}
}

// rows adds column i, which f describes, of rows.
func (b *builder) rows(rows [][]byte, f *field, i int) error {
	if f.kind == nothing {
		b.n, b.nulls = b.n+len(rows), b.nulls+len(rows)
		return nil
	}
	if f.kind == tree {
		for _, row := range rows {
			if rest, err := b.tree(f.value(row)); err != nil {
				return err
			} else if len(rest) != 0 {
				return errDamaged
			}
		}
		return nil
	}
	first := b.n
	b.mark(len(rows), true)
	at, bit := rowHeader+i/8, byte(1)<<(i%8)
	for j, row := range rows {
		if row[at]&bit == 0 {
			bitutil.ClearBit(b.validity.Bytes(), first+j)
			b.nulls++
		}
	}
	switch f.kind {
	case boolean:
		if grown := int(bitutil.BytesForBits(int64(b.n))) - b.values.Len(); grown > 0 {
			clear(extend(b.values, grown))
		}
		for j, row := range rows {
			if row[f.at] != 0 {
				bitutil.SetBit(b.values.Bytes(), first+j)
			}
		}
	case fixed:
		readFixed(extend(b.values, len(rows)*f.width), rows, f)
	default:
		return b.readTexts(rows, f)
	}
	return nil
}

var errDamaged = errs.New(errs.Internal, "a sorted row contradicts its layout")

// value is a value without fixed width.
func (f *field) value(row []byte) []byte {
	return row[binary.LittleEndian.Uint32(row[f.last:]):binary.LittleEndian.Uint32(row[f.at:])]
}

func readFixed(to []byte, rows [][]byte, f *field) {
	switch f.width {
	case 8:
		for j, row := range rows {
			binary.LittleEndian.PutUint64(to[8*j:], binary.LittleEndian.Uint64(row[f.at:]))
		}
	case 4:
		for j, row := range rows {
			binary.LittleEndian.PutUint32(to[4*j:], binary.LittleEndian.Uint32(row[f.at:]))
		}
	default:
		for j, row := range rows {
			copy(to[j*f.width:(j+1)*f.width], row[f.at:])
		}
	}
}

func (b *builder) readTexts(rows [][]byte, f *field) error {
	size := 0
	for _, row := range rows {
		size += len(f.value(row))
	}
	end := b.texts.Len()
	to := extend(b.texts, size)
	offsets := extend(b.values, len(rows)*b.width)
	for j, row := range rows {
		n := copy(to, f.value(row))
		to, end = to[n:], end+n
		if err := b.putOffset(offsets[j*b.width:], end); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) putOffset(to []byte, end int) error {
	if b.width == 8 {
		binary.LittleEndian.PutUint64(to, uint64(end))
		return nil
	}
	if end > math.MaxInt32 {
		return errs.New(errs.Unsupported, "a value of the Arrow type %s has more than 2 GiB", b.storage)
	}
	binary.LittleEndian.PutUint32(to, uint32(end))
	return nil
}

// errDictionaryFull says that a batch has more distinct values than its type of
// index can number, so that it must have fewer rows.
var errDictionaryFull = errs.New(errs.Unsupported, "a row has more distinct values than its dictionary can number")

// tree adds one value and returns what follows it.
func (b *builder) tree(value []byte) ([]byte, error) {
	if t, ok := b.storage.(*arrow.DictionaryType); ok {
		return b.dictionaryValue(value, t)
	}
	valid := value[0] == 1
	value = value[1:]
	if b.kind == nothing {
		b.n, b.nulls = b.n+1, b.nulls+1
		return value, nil
	}
	b.mark(1, valid)
	var err error
	switch t := b.storage.(type) {
	case *arrow.BooleanType:
		if grown := int(bitutil.BytesForBits(int64(b.n))) - b.values.Len(); grown > 0 {
			clear(extend(b.values, grown))
		}
		if valid {
			bitutil.SetBitTo(b.values.Bytes(), b.n-1, value[0] == 1)
			value = value[1:]
		}
		return value, nil
	case *arrow.StructType:
		for _, child := range b.children {
			if !valid {
				child.null()
			} else if value, err = child.tree(value); err != nil {
				return nil, err
			}
		}
		return value, nil
	case *arrow.FixedSizeListType:
		if valid {
			value = value[4:]
		}
		for range t.Len() {
			if !valid {
				b.children[0].null()
			} else if value, err = b.children[0].tree(value); err != nil {
				return nil, err
			}
		}
		return value, nil
	case arrow.ListLikeType:
		if valid {
			count := binary.LittleEndian.Uint32(value)
			value = value[4:]
			for range count {
				if value, err = b.children[0].tree(value); err != nil {
					return nil, err
				}
			}
		}
		return value, b.putOffset(extend(b.values, b.width), b.children[0].n)
	case arrow.BinaryViewDataType:
		view := extend(b.values, arrow.ViewHeaderSizeBytes)
		clear(view)
		if !valid {
			return value, nil
		}
		n := binary.LittleEndian.Uint32(value)
		content := value[4 : 4+n]
		copy(view, value[:4])
		if n <= 12 {
			copy(view[4:], content)
		} else {
			copy(view[4:8], content)
			binary.LittleEndian.PutUint32(view[12:], uint32(b.texts.Len())) // in buffer 0
			copy(extend(b.texts, int(n)), content)
		}
		return value[4+n:], nil
	}
	if b.hasOffsets() {
		if valid {
			n := binary.LittleEndian.Uint32(value)
			copy(extend(b.texts, int(n)), value[4:4+n])
			value = value[4+n:]
		}
		return value, b.putOffset(extend(b.values, b.width), b.texts.Len())
	}
	to := extend(b.values, b.width)
	if !valid {
		clear(to)
		return value, nil
	}
	copy(to, value[:b.width])
	return value[b.width:], nil
}

// null adds a null below a null.
func (b *builder) null() {
	_, _ = b.tree([]byte{0}) // fails only for what has content
}

func (b *builder) dictionaryValue(value []byte, t *arrow.DictionaryType) ([]byte, error) {
	rest, index := value[1:], 0
	b.mark(1, value[0] == 1)
	if value[0] == 1 {
		dictionary := b.children[0]
		size, err := treeSize(value, t.ValueType)
		if err != nil {
			return nil, err
		}
		var known bool
		if index, known = b.indices[string(value[:size])]; !known {
			index = dictionary.n
			if bits := t.IndexType.(arrow.FixedWidthDataType).BitWidth() - 1; bits < 32 && index>>bits != 0 {
				return nil, errDictionaryFull
			}
			if _, err := dictionary.tree(value); err != nil {
				return nil, err
			}
			b.indices[string(value[:size])] = index
		}
		rest = value[size:]
	}
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], uint64(index))
	copy(extend(b.values, b.width), bytes[:])
	return rest, nil
}

// treeSize is the size of a value that is not null and that a dictionary holds.
func treeSize(value []byte, t arrow.DataType) (int, error) {
	switch kind, width := kindOf(t); {
	case kind == boolean:
		return 2, nil
	case kind == fixed:
		return 1 + width, nil
	case kind == text, kind == textLarge, isView(t):
		return 5 + int(binary.LittleEndian.Uint32(value[1:])), nil
	}
	return 0, errs.New(errs.Unsupported, "dictionaries of the Arrow type %s cannot be sorted", t)
}

func isView(t arrow.DataType) bool {
	_, ok := t.(arrow.BinaryViewDataType)
	return ok
}

// finish makes the array; the builder is released and not used any more.
func (b *builder) finish() arrow.ArrayData {
	defer b.releaseOwn()
	var children []arrow.ArrayData
	for _, c := range b.children {
		children = append(children, c.finish())
	}
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	validity := b.validity
	if b.nulls == 0 {
		validity = nil
	}
	switch b.storage.(type) {
	case *arrow.NullType:
		return array.NewData(b.typ, b.n, []*memory.Buffer{nil}, nil, b.nulls, 0)
	case *arrow.DictionaryType:
		return array.NewDataWithDictionary(b.typ, b.n, []*memory.Buffer{validity, b.values}, b.nulls, 0, children[0].(*array.Data))
	case *arrow.StructType, *arrow.FixedSizeListType:
		return array.NewData(b.typ, b.n, []*memory.Buffer{validity}, children, b.nulls, 0)
	case arrow.ListLikeType:
		return array.NewData(b.typ, b.n, []*memory.Buffer{validity, b.values}, children, b.nulls, 0)
	}
	buffers := []*memory.Buffer{validity, b.values}
	if b.hasOffsets() || isView(b.storage) {
		buffers = append(buffers, b.texts)
	}
	return array.NewData(b.typ, b.n, buffers, nil, b.nulls, 0)
}

func (b *builder) releaseOwn() {
	for _, buffer := range []*memory.Buffer{b.validity, b.values, b.texts} {
		buffer.Release()
	}
}
