package avro

import (
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// bytesColumn is of bytes and strings.
type bytesColumn struct {
	validity
	dataType arrow.DataType
	text     bool // must be UTF-8
	offsets  offsetBuffer
	values   buffer
}

func (f *bytesColumn) put(b []byte) {
	f.offsets.start()
	copy(f.values.extend(len(b)), b)
	f.offsets.append(len(f.values.bytes))
}
func (f *bytesColumn) read(c *cursor) {
	b := c.bytes()
	if f.text && !utf8.Valid(b) {
		c.fail("a string is not valid UTF-8")
	}
	f.put(b)
	f.appendValid()
}
func (f *bytesColumn) null(*cursor)  { f.put(nil); f.appendNull() }
func (f *bytesColumn) width() int    { return 4 }
func (f *bytesColumn) reserve(n int) { f.offsets.reserve(n) }
func (f *bytesColumn) finish() arrow.ArrayData {
	return f.validity.finish(f.dataType, nil, f.offsets.finish(), f.values.finish())
}
func (f *bytesColumn) release() { f.offsets.release(); f.values.release(); f.validity.release() }

// enumColumn gives an enum's values as its symbols.
type enumColumn struct {
	bytesColumn
	symbols [][]byte
}

func (f *enumColumn) read(c *cursor) {
	i := c.long()
	if i < 0 || i >= int64(len(f.symbols)) {
		c.fail("an enum of %d symbols has symbol %d", len(f.symbols), i)
		return
	}
	// A symbol may be any number of times longer than its index in the file.
	if c.room -= int64(len(f.symbols[i])); c.room < 0 || len(f.values.bytes)+len(f.symbols[i]) > math.MaxInt32 {
		c.fail("its enum symbols take far more memory than the file")
		return
	}
	f.put(f.symbols[i])
	f.appendValid()
}

// recordStep reads one field of a record into a column, or passes over fields
// that are not wanted.
type recordStep struct {
	name   string
	column column // nil: skip
	skip   []skipOp
}

// recordColumn is a record of which some fields are wanted.
type recordColumn struct {
	validity
	dataType arrow.DataType
	steps    []recordStep
	kids     []column
}

func (f *recordColumn) read(c *cursor) {
	for i := range f.steps {
		if s := &f.steps[i]; s.column != nil {
			s.column.read(c)
		} else {
			c.skip(s.skip)
		}
	}
	f.appendValid()
}
func (f *recordColumn) null(c *cursor) {
	for _, k := range f.kids {
		k.null(c)
	}
	f.appendNull()
}
func (f *recordColumn) width() int {
	width := 1
	for _, k := range f.kids {
		width += k.width()
	}
	return width
}
func (f *recordColumn) reserve(n int) {
	for _, k := range f.kids {
		k.reserve(n)
	}
}
func (f *recordColumn) finish() arrow.ArrayData {
	kids := make([]arrow.ArrayData, len(f.kids))
	for i, k := range f.kids {
		kids[i] = k.finish()
	}
	return f.validity.finish(f.dataType, kids)
}
func (f *recordColumn) release() {
	for _, k := range f.kids {
		k.release()
	}
	f.validity.release()
}

// listColumn is an array, or a map in either of its forms: then the element is
// the struct of key and value, and the data type a map.
type listColumn struct {
	validity
	dataType arrow.DataType
	element  column
	// least is the least size of an element in the file, and elementWidth what
	// a null one takes in memory.
	least, elementWidth int
	offsets             offsetBuffer
	total               int // elements so far
}

func (f *listColumn) read(c *cursor) {
	f.offsets.start()
	for {
		n, _ := c.block(f.least, f.elementWidth)
		if n == 0 {
			break
		}
		if f.total+n > math.MaxInt32 {
			c.fail("an array of the window has more than 2^31 elements")
		}
		for ; n > 0 && c.err == nil; n-- {
			f.element.read(c)
			f.total++
		}
	}
	f.offsets.append(f.total)
	f.appendValid()
}
func (f *listColumn) null(*cursor) {
	f.offsets.start()
	f.offsets.append(f.total)
	f.appendNull()
}
func (f *listColumn) width() int    { return 4 }
func (f *listColumn) reserve(n int) { f.offsets.reserve(n) }
func (f *listColumn) finish() arrow.ArrayData {
	f.total = 0
	return f.validity.finish(f.dataType, []arrow.ArrayData{f.element.finish()}, f.offsets.finish())
}
func (f *listColumn) release() {
	f.element.release()
	f.offsets.release()
	f.validity.release()
	f.total = 0
}

// arrayOf turns finished data into an array.
func arrayOf(c column) arrow.Array {
	data := c.finish()
	defer data.Release()
	return array.MakeFromData(data)
}
