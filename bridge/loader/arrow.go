package loader

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/ebitengine/purego"
)

// cSchema is struct ArrowSchema and cArray struct ArrowArray of the Arrow C
// data interface.
type cSchema struct {
	format, name, metadata unsafe.Pointer
	flags, nChildren       int64
	children               **cSchema
	dictionary             *cSchema
	release                uintptr
	private                unsafe.Pointer
}

type cArray struct {
	length, nullCount, offset, nBuffers, nChildren int64
	buffers                                        *unsafe.Pointer
	children                                       **cArray
	dictionary                                     *cArray
	release                                        uintptr
	private                                        unsafe.Pointer
}

const (
	flagDictionaryOrdered = 1
	flagNullable          = 2
	flagMapKeysSorted     = 4
)

func (c *cSchema) free() {
	if c.release != 0 {
		purego.SyscallN(c.release, uintptr(unsafe.Pointer(c)))
		runtime.KeepAlive(c)
	}
}

func (c *cSchema) schema() (*arrow.Schema, error) {
	root, err := c.field()
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema(root.Type.(*arrow.StructType).Fields(), &root.Metadata), nil
}

func (c *cSchema) field() (arrow.Field, error) {
	f := arrow.Field{Name: text(c.name), Nullable: c.flags&flagNullable != 0, Metadata: metadata(c.metadata)}
	var children []arrow.Field
	for _, child := range unsafe.Slice(c.children, c.nChildren) {
		field, err := child.field()
		if err != nil {
			return f, err
		}
		children = append(children, field)
	}
	var err error
	if f.Type, err = dataType(text(c.format), children, c.flags&flagMapKeysSorted != 0); err != nil {
		return f, fmt.Errorf("column %q: %w", f.Name, err)
	}
	if c.dictionary != nil {
		values, err := c.dictionary.field()
		if err != nil {
			return f, err
		}
		f.Type = &arrow.DictionaryType{IndexType: f.Type, ValueType: values.Type, Ordered: c.flags&flagDictionaryOrdered != 0}
	}
	return f, nil
}

func metadata(at unsafe.Pointer) arrow.Metadata {
	if at == nil {
		return arrow.Metadata{}
	}
	number := func() int {
		n := binary.NativeEndian.Uint32(unsafe.Slice((*byte)(at), 4))
		at = unsafe.Add(at, 4)
		return int(n)
	}
	value := func() string {
		n := number()
		s := string(unsafe.Slice((*byte)(at), n))
		at = unsafe.Add(at, n)
		return s
	}
	var keys, values []string
	for range number() {
		keys, values = append(keys, value()), append(values, value())
	}
	return arrow.NewMetadata(keys, values)
}

var simpleTypes = map[string]arrow.DataType{
	"n": arrow.Null, "b": arrow.FixedWidthTypes.Boolean,
	"c": arrow.PrimitiveTypes.Int8, "C": arrow.PrimitiveTypes.Uint8, "s": arrow.PrimitiveTypes.Int16, "S": arrow.PrimitiveTypes.Uint16,
	"i": arrow.PrimitiveTypes.Int32, "I": arrow.PrimitiveTypes.Uint32, "l": arrow.PrimitiveTypes.Int64, "L": arrow.PrimitiveTypes.Uint64,
	"e": arrow.FixedWidthTypes.Float16, "f": arrow.PrimitiveTypes.Float32, "g": arrow.PrimitiveTypes.Float64,
	"z": arrow.BinaryTypes.Binary, "Z": arrow.BinaryTypes.LargeBinary, "u": arrow.BinaryTypes.String, "U": arrow.BinaryTypes.LargeString,
	"tdD": arrow.FixedWidthTypes.Date32, "ttu": arrow.FixedWidthTypes.Time64us, "ttn": arrow.FixedWidthTypes.Time64ns,
}

// dataType reads a format of the types that the engine returns.
func dataType(format string, children []arrow.Field, keysSorted bool) (arrow.DataType, error) {
	if t, ok := simpleTypes[format]; ok {
		return t, nil
	}
	kind, parameters, _ := strings.Cut(format, ":")
	switch kind {
	case "tsu":
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: parameters}, nil
	case "tsn":
		return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: parameters}, nil
	case "w":
		n, err := strconv.Atoi(parameters)
		return &arrow.FixedSizeBinaryType{ByteWidth: n}, err
	case "d":
		precision, scale, _ := strings.Cut(parameters, ",")
		p, err := strconv.ParseInt(precision, 10, 32)
		if err != nil {
			return nil, err
		}
		s, err := strconv.ParseInt(scale, 10, 32)
		return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)}, err
	case "+s":
		return arrow.StructOf(children...), nil
	case "+l":
		return arrow.ListOfField(children[0]), nil
	case "+L":
		return arrow.LargeListOfField(children[0]), nil
	case "+m":
		entries := children[0].Type.(*arrow.StructType)
		m := arrow.MapOfFields(entries.Field(0), entries.Field(1))
		m.KeysSorted = keysSorted
		return m, nil
	}
	return nil, fmt.Errorf("the Arrow format %q is not known to this program", format)
}

// owned is an array that is released with the last buffer made of it. It is
// the allocator of those buffers, which only ever call Free.
type owned struct {
	array *cArray
	refs  atomic.Int64
}

func (o *owned) Free([]byte) {
	if o.refs.Add(-1) == 0 {
		purego.SyscallN(o.array.release, uintptr(unsafe.Pointer(o.array)))
		runtime.KeepAlive(o.array)
	}
}

func (o *owned) Allocate(int) []byte           { panic("loader: a buffer of the library grows") }
func (o *owned) Reallocate(int, []byte) []byte { panic("loader: a buffer of the library grows") }

// batch makes a record batch that owns the array.
func (c *cArray) batch(schema *arrow.Schema) (arrow.RecordBatch, error) {
	o := &owned{array: c}
	o.refs.Store(1)
	defer o.Free(nil)
	columns := make([]arrow.Array, 0, schema.NumFields())
	defer func() {
		for _, column := range columns {
			column.Release()
		}
	}()
	for i, child := range unsafe.Slice(c.children, c.nChildren) {
		data := o.data(child, schema.Field(i).Type)
		columns = append(columns, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecordBatch(schema, columns, c.length), nil
}

// data shares one array and everything below it. The library's buffers are
// aligned and complete.
func (o *owned) data(c *cArray, t arrow.DataType) arrow.ArrayData {
	raw := unsafe.Slice(c.buffers, c.nBuffers)
	end := int(c.offset + c.length)
	buffers := []*memory.Buffer{nil}
	if len(raw) > 0 && raw[0] != nil {
		buffers[0] = o.buffer(raw[0], (end+7)/8)
	}
	layout := t
	if d, ok := t.(*arrow.DictionaryType); ok {
		layout = d.IndexType
	}
	switch layout := layout.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		buffers = append(buffers, o.buffer(raw[1], 4*(end+1)), o.buffer(raw[2], int(*(*int32)(unsafe.Add(raw[1], 4*end)))))
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		buffers = append(buffers, o.buffer(raw[1], 8*(end+1)), o.buffer(raw[2], int(*(*int64)(unsafe.Add(raw[1], 8*end)))))
	case *arrow.ListType, *arrow.MapType:
		buffers = append(buffers, o.buffer(raw[1], 4*(end+1)))
	case *arrow.LargeListType:
		buffers = append(buffers, o.buffer(raw[1], 8*(end+1)))
	case arrow.FixedWidthDataType:
		buffers = append(buffers, o.buffer(raw[1], (layout.BitWidth()*end+7)/8))
	}
	var children []arrow.ArrayData
	if nested, ok := t.(arrow.NestedType); ok {
		for i, child := range unsafe.Slice(c.children, c.nChildren) {
			children = append(children, o.data(child, nested.Fields()[i].Type))
		}
	}
	var data *array.Data
	if d, ok := t.(*arrow.DictionaryType); ok {
		values := o.data(c.dictionary, d.ValueType)
		defer values.Release()
		data = array.NewDataWithDictionary(t, int(c.length), buffers, int(c.nullCount), int(c.offset), values.(*array.Data))
	} else {
		data = array.NewData(t, int(c.length), buffers, children, int(c.nullCount), int(c.offset))
	}
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, child := range children {
		child.Release()
	}
	return data
}

func (o *owned) buffer(at unsafe.Pointer, size int) *memory.Buffer {
	o.refs.Add(1)
	return memory.NewBufferWithAllocator(unsafe.Slice((*byte)(at), size), o)
}
