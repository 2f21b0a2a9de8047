package project

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// node builds one field of the wanted schema from the array of its file field,
// which is nil when the file has none. The result has n rows and one reference.
type node interface {
	build(alloc memory.Allocator, file arrow.Array, n int) (arrow.Array, error)
}

// requirement refuses nulls in a field that is required by the table and
// optional in the file.
type requirement struct {
	name string
	on   bool
}

// check looks for nulls in a that are not nulls of the struct around it.
func (r requirement) check(a, parent arrow.Array) error {
	if !r.on || a.NullN() == 0 {
		return nil
	}
	for i := range a.Len() {
		if a.IsNull(i) && (parent == nil || parent.IsValid(i)) {
			return errs.New(errs.Corrupt, "column %s is required but null in row %d of a batch", r.name, i)
		}
	}
	return nil
}

// checkElements looks for nulls among the elements of lists that are not null.
// elements starts at value first of the lists.
func (r requirement) checkElements(elements arrow.Array, lists array.ListLike, first int64) error {
	if !r.on || elements.NullN() == 0 {
		return nil
	}
	for row := range lists.Len() {
		start, end := lists.ValueOffsets(row)
		for i := start; i < end && lists.IsValid(row); i++ {
			if elements.IsNull(int(i - first)) {
				return errs.New(errs.Corrupt, "column %s is required but null in row %d of a batch", r.name, row)
			}
		}
	}
	return nil
}

// unexpected is the error for an array of another kind than the schema of its
// reader had.
func unexpected(name string, a arrow.Array) error {
	return errs.New(errs.Internal, "a reader returned column %s as %s, unlike the file's schema", name, a.DataType())
}

// leafNode passes a primitive on, converted where types differ.
type leafNode struct {
	required requirement
	name     string
	out      arrow.DataType
	convert  convertFunc // nil: as it is
}

func (l *leafNode) build(alloc memory.Allocator, file arrow.Array, _ int) (arrow.Array, error) {
	if l.convert == nil {
		if file.DataType().ID() != l.out.ID() {
			return nil, unexpected(l.name, file)
		}
		file.Retain()
		return file, nil
	}
	a, err := l.convert(alloc, file, l.out)
	if err != nil {
		return nil, errs.New(errs.CodeOf(err), "column %s: %v", l.name, err)
	}
	return a, nil
}

// absentKid is the index of a field that the file's struct does not have.
const absentKid = -1

type structKid struct {
	node  node
	index int // among the fields of the file's struct, as read
}

// structNode rebuilds a struct field by field. Without a file array it makes a
// struct that is never null.
type structNode struct {
	required requirement
	out      *arrow.StructType
	kids     []structKid
}

func (s *structNode) build(alloc memory.Allocator, file arrow.Array, n int) (arrow.Array, error) {
	var source *array.Struct
	buffers := []*memory.Buffer{nil}
	nulls := 0
	if file != nil {
		var ok bool
		if source, ok = file.(*array.Struct); !ok {
			return nil, unexpected(s.required.name, file)
		}
		buffers[0], nulls = validity(alloc, source)
		defer releaseBuffers(buffers)
	}
	kids := make([]arrow.ArrayData, 0, len(s.kids))
	for _, kid := range s.kids {
		var kidFile arrow.Array
		if kid.index != absentKid {
			if kid.index >= source.NumField() {
				return nil, unexpected(s.required.name, file)
			}
			kidFile = source.Field(kid.index)
		}
		built, err := kid.node.build(alloc, kidFile, n)
		if err != nil {
			return nil, err
		}
		defer built.Release()
		kids = append(kids, built.Data())
		if err := requirementOf(kid.node).check(built, file); err != nil {
			return nil, err
		}
	}
	data := array.NewData(s.out, n, buffers, kids, nulls, 0)
	defer data.Release()
	return array.NewStructData(data), nil
}

// listNode rebuilds a list around its element, and mapNode a map.
type listNode struct {
	required requirement
	out      arrow.DataType
	element  node
}

func (l *listNode) build(alloc memory.Allocator, file arrow.Array, n int) (arrow.Array, error) {
	source, ok := file.(array.ListLike)
	if id := file.DataType().ID(); !ok || id != arrow.LIST && id != arrow.LARGE_LIST {
		return nil, unexpected(l.required.name, file)
	}
	buffers, nulls, first, last, err := listBuffers(alloc, file, l.out.ID() == arrow.LARGE_LIST)
	if err != nil {
		return nil, err
	}
	defer releaseBuffers(buffers)
	values := array.NewSlice(source.ListValues(), first, last)
	defer values.Release()
	element, err := l.element.build(alloc, values, values.Len())
	if err != nil {
		return nil, err
	}
	defer element.Release()
	if err := requirementOf(l.element).checkElements(element, source, first); err != nil {
		return nil, err
	}
	data := array.NewData(l.out, n, buffers, []arrow.ArrayData{element.Data()}, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

type mapNode struct {
	required   requirement
	out        *arrow.MapType
	key, value node
}

func (m *mapNode) build(alloc memory.Allocator, file arrow.Array, n int) (arrow.Array, error) {
	source, ok := file.(*array.Map)
	if !ok {
		return nil, unexpected(m.required.name, file)
	}
	buffers, nulls, first, last, err := listBuffers(alloc, file, false)
	if err != nil {
		return nil, err
	}
	defer releaseBuffers(buffers)
	size := int(last - first)
	entry := [2]arrow.ArrayData{}
	for i, part := range []struct {
		node node
		file arrow.Array
	}{{m.key, source.Keys()}, {m.value, source.Items()}} {
		values := array.NewSlice(part.file, first, last)
		built, err := part.node.build(alloc, values, size)
		values.Release()
		if err != nil {
			return nil, err
		}
		defer built.Release()
		if err := requirementOf(part.node).checkElements(built, source, first); err != nil {
			return nil, err
		}
		entry[i] = built.Data()
	}
	entries := array.NewData(m.out.Elem(), size, []*memory.Buffer{nil}, entry[:], 0, 0)
	defer entries.Release()
	data := array.NewData(m.out, n, buffers, []arrow.ArrayData{entries}, nulls, 0)
	defer data.Release()
	return array.NewMapData(data), nil
}

// requirementOf is the requirement of a node that reads the file.
func requirementOf(n node) requirement {
	switch n := n.(type) {
	case *leafNode:
		return n.required
	case *structNode:
		return n.required
	case *listNode:
		return n.required
	case *mapNode:
		return n.required
	}
	return requirement{}
}

// validity is the null bitmap of an array as one of an array without offset,
// and the number of nulls. It is nil without nulls.
func validity(alloc memory.Allocator, a arrow.Array) (*memory.Buffer, int) {
	nulls := a.NullN()
	if nulls == 0 {
		return nil, 0
	}
	source, offset := a.Data().Buffers()[0], a.Data().Offset()
	if offset == 0 {
		source.Retain()
		return source, nulls
	}
	bitmap := newBuffer(alloc, int(bitutil.BytesForBits(int64(a.Len()))))
	copyBits(bitmap.Bytes(), source.Bytes(), offset, a.Len())
	return bitmap, nulls
}

// copyBits copies n bits that start at bit offset of source to bit 0 of dest,
// whose last byte is padded with zeros.
func copyBits(dest, source []byte, offset, n int) {
	clear(dest)
	bitutil.CopyBitmap(source, offset, n, dest, 0)
}

// listBuffers are the null bitmap and offsets of a list or map as those of an
// array without offset whose values are [first, last) of the file's values.
func listBuffers(alloc memory.Allocator, file arrow.Array, large bool) (buffers []*memory.Buffer, nulls int, first, last int64, err error) {
	bitmap, nulls := validity(alloc, file)
	offsets, first, last, err := rebaseOffsets(alloc, file.Data(), file.DataType().ID() == arrow.LARGE_LIST, large)
	if err != nil {
		releaseBuffers([]*memory.Buffer{bitmap})
		return nil, 0, 0, 0, err
	}
	return []*memory.Buffer{bitmap, offsets}, nulls, first, last, nil
}

// newBuffer allocates n bytes with undefined content.
func newBuffer(alloc memory.Allocator, n int) *memory.Buffer {
	b := memory.NewResizableBuffer(alloc)
	b.Resize(n)
	return b
}

func releaseBuffers(buffers []*memory.Buffer) {
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
}

// leaf is an extra field: the node builds it inside depth structs of one field.
type leaf struct {
	top    *fileNode
	column int
	node   node
	depth  int
}

func (l *leaf) build(alloc memory.Allocator, file arrow.Array, n int) (arrow.Array, error) {
	a, err := l.node.build(alloc, file, n)
	if err != nil || l.depth == 0 {
		return a, err
	}
	defer a.Release()
	value := a
	var parents []arrow.Array // those with nulls
	for range l.depth {
		if value.NullN() > 0 {
			parents = append(parents, value)
		}
		s, ok := value.(*array.Struct)
		if !ok { // an absent struct of the null kind
			return nil, unexpected("", value)
		}
		value = s.Field(0)
	}
	if len(parents) == 0 || value.DataType().ID() == arrow.NULL {
		value.Retain()
		return value, nil
	}
	data := value.Data()
	buffers := append([]*memory.Buffer(nil), data.Buffers()...)
	buffers[0] = newBuffer(alloc, int(bitutil.BytesForBits(int64(data.Offset()+n))))
	defer buffers[0].Release()
	bits := buffers[0].Bytes()
	clear(bits)
	for i := range n {
		if value.IsNull(i) {
			continue
		}
		valid := true
		for _, p := range parents {
			valid = valid && p.IsValid(i)
		}
		if valid {
			bitutil.SetBit(bits, data.Offset()+i)
		}
	}
	folded := array.NewData(data.DataType(), n, buffers, nil, array.UnknownNullCount, data.Offset())
	defer folded.Release()
	return array.MakeFromData(folded), nil
}
