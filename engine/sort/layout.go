package sort

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/keys"
)

// A row, all numbers little endian:
//
//	4 bytes             length of the row
//	4 bytes             where the key ends
//	a bit each column   set when the value is not null
//	fixed-width values  a boolean as one byte
//	4 bytes each        where the value of a column without fixed width ends
//	the ordering key
//	the values without fixed width, in order
//
// so that everything up to the key is at the same place in every row.
const rowHeader = 8

// maxRow bounds the length of a row, far below what its four bytes could tell.
const maxRow = 1 << 30 // 1 GiB

type kind int

const (
	nothing   kind = iota // of type null
	boolean               // one byte
	fixed                 // fixed width
	text                  // string or binary with offsets
	textLarge             // with 64-bit offsets
	tree                  // see appendValue
)

// layout says where the columns of a schema are in a row.
type layout struct {
	fields []field
	texts  int // columns without fixed width
	head   int // bytes before the key
}

type field struct {
	name  string
	kind  kind
	typ   arrow.DataType
	width int
	at    int // of the fixed-width value, or of the place that tells where the value ends
	last  int // where the place is that tells where the value before ends
}

func kindOf(t arrow.DataType) (kind, int) {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return kindOf(t.StorageType())
	case *arrow.NullType:
		return nothing, 0
	case *arrow.BooleanType:
		return boolean, 1
	case *arrow.StringType, *arrow.BinaryType:
		return text, 4
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return textLarge, 4
	case *arrow.DictionaryType, *arrow.FixedSizeListType, arrow.BinaryViewDataType:
		return tree, 4
	case arrow.FixedWidthDataType:
		return fixed, t.Bytes()
	}
	return tree, 4
}

func newLayout(schema *arrow.Schema) (*layout, error) {
	l := &layout{head: rowHeader + (schema.NumFields()+7)/8}
	for _, f := range schema.Fields() {
		if err := supported(f.Type); err != nil {
			return nil, errs.New(errs.CodeOf(err), "column %q: %s", f.Name, err)
		}
		kind, width := kindOf(f.Type)
		l.fields = append(l.fields, field{name: f.Name, kind: kind, typ: f.Type, width: width})
	}
	last := 4 // the first value begins where the key ends
	for _, placed := range []bool{false, true} {
		for i := range l.fields {
			f := &l.fields[i]
			if (f.kind >= text) != placed {
				continue
			}
			f.at = l.head
			l.head += f.width
			if placed {
				f.last, last = last, f.at
				l.texts++
			}
		}
	}
	return l, nil
}

// key is the ordering key of a row.
func (l *layout) key(row []byte) []byte {
	return row[l.head:binary.LittleEndian.Uint32(row[4:])]
}

// encoder writes the rows of batches.
type encoder struct {
	layout  *layout
	order   *keys.OrderEncoder
	columns []values
	sizes   [keys.OrderBlock]int
	at      [keys.OrderBlock]int
	start   int // of the loaded block
}

// values are those of one column of a batch.
type values struct {
	array     arrow.Array
	validity  []byte
	offset    int
	bytes     []byte // of fixed width, or all texts
	offsets32 []int32
	offsets64 []int64
	// Trees of the block, one after the other, and where each ends.
	trees []byte
	ends  [keys.OrderBlock]int
}

func newEncoder(l *layout, order *keys.Order) *encoder {
	return &encoder{layout: l, order: order.NewEncoder(), columns: make([]values, len(l.fields))}
}

// bind reads a batch from now on, and the arrays of its keys.
func (e *encoder) bind(record arrow.RecordBatch, keyArrays []arrow.Array) error {
	for i, f := range e.layout.fields {
		c, a := &e.columns[i], record.Column(i)
		if !arrow.TypeEqual(a.DataType(), f.typ) {
			return errs.New(errs.InvalidArgument, "column %q of a batch has the type %s, the stream's schema says %s", f.name, a.DataType(), f.typ)
		}
		data := a.Data()
		*c = values{array: a, offset: data.Offset(), trees: c.trees}
		if f.kind == nothing {
			continue
		}
		if a.NullN() > 0 {
			c.validity = a.NullBitmapBytes()
		}
		if f.kind == tree || a.Len() == 0 {
			continue
		}
		buffers := data.Buffers()
		switch f.kind {
		case boolean, fixed:
			c.bytes = buffers[1].Bytes()
		case text:
			c.offsets32 = arrow.GetData[int32](buffers[1].Bytes())[data.Offset():]
		case textLarge:
			c.offsets64 = arrow.GetData[int64](buffers[1].Bytes())[data.Offset():]
		}
		if f.kind >= text && buffers[2] != nil {
			c.bytes = buffers[2].Bytes()
		}
	}
	return e.order.Bind(keyArrays)
}

func (c *values) isNull(i int) bool {
	return c.validity != nil && !bitutil.BitIsSet(c.validity, c.offset+i)
}

// load measures n rows from start on; their sizes are valid until the next load.
func (e *encoder) load(start, n int) ([]int, error) {
	e.start = start
	if err := e.order.Load(start, n); err != nil {
		return nil, err
	}
	sizes := e.sizes[:n]
	for j := range sizes {
		sizes[j] = e.layout.head
	}
	e.order.AddSizes(sizes)
	for i := range e.layout.fields {
		c := &e.columns[i]
		switch e.layout.fields[i].kind {
		case text, textLarge:
			for j := range sizes {
				sizes[j] += len(c.text(start + j))
			}
		case tree:
			c.trees = c.trees[:0]
			for j := range sizes {
				before := len(c.trees)
				c.trees = appendValue(c.trees, c.array, start+j)
				c.ends[j] = len(c.trees)
				sizes[j] += c.ends[j] - before
			}
		}
	}
	for _, size := range sizes {
		if size > maxRow {
			return nil, errs.New(errs.Unsupported, "a row of %d bytes cannot be sorted; at most 1 GiB can", size)
		}
	}
	return sizes, nil
}

func (c *values) text(i int) []byte {
	if c.isNull(i) {
		return nil
	}
	if c.offsets32 != nil {
		return c.bytes[c.offsets32[i]:c.offsets32[i+1]]
	}
	return c.bytes[c.offsets64[i]:c.offsets64[i+1]]
}

// write puts the loaded rows [from, from+n) into buffer, one after the other
// from its beginning.
func (e *encoder) write(buffer []byte, from, n int) {
	l := e.layout
	starts, at, p := e.sizes[from:from+n], e.at[:n], 0
	for j, size := range starts {
		row := buffer[p:]
		binary.LittleEndian.PutUint32(row, uint32(size))
		for i := rowHeader; i < rowHeader+(len(l.fields)+7)/8; i++ {
			row[i] = 0xff
		}
		at[j] = p + l.head
		p, starts[j] = p+size, p // sizes are not needed any more
	}
	e.order.Write(buffer, at, from)
	for j, start := range starts {
		binary.LittleEndian.PutUint32(buffer[start+4:], uint32(at[j]-start))
	}
	for i := range l.fields {
		f, c := &l.fields[i], &e.columns[i]
		first := e.start + from
		switch f.kind {
		case boolean:
			for j, start := range starts {
				buffer[start+f.at] = 0
				if bitutil.BitIsSet(c.bytes, c.offset+first+j) {
					buffer[start+f.at] = 1
				}
			}
		case fixed:
			writeFixed(buffer, starts, f, c.bytes[(c.offset+first)*f.width:])
		case text, textLarge:
			for j, start := range starts {
				at[j] += copy(buffer[at[j]:], c.text(first+j))
				binary.LittleEndian.PutUint32(buffer[start+f.at:], uint32(at[j]-start))
			}
		case tree:
			for j, start := range starts {
				before := 0
				if from+j > 0 {
					before = c.ends[from+j-1]
				}
				at[j] += copy(buffer[at[j]:], c.trees[before:c.ends[from+j]])
				binary.LittleEndian.PutUint32(buffer[start+f.at:], uint32(at[j]-start))
			}
		}
		if c.validity == nil {
			continue
		}
		for j, start := range starts {
			if c.isNull(first + j) {
				bitutil.ClearBit(buffer[start+rowHeader:], i)
			}
		}
	}
}

func writeFixed(buffer []byte, starts []int, f *field, values []byte) {
	switch f.width {
	case 8:
		for j, start := range starts {
			binary.LittleEndian.PutUint64(buffer[start+f.at:], binary.LittleEndian.Uint64(values[8*j:]))
		}
	case 4:
		for j, start := range starts {
			binary.LittleEndian.PutUint32(buffer[start+f.at:], binary.LittleEndian.Uint32(values[4*j:]))
		}
	default:
		for j, start := range starts {
			copy(buffer[start+f.at:start+f.at+f.width], values[j*f.width:])
		}
	}
}
