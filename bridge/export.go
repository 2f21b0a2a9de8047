package bridge

// #include "export.h"
import "C"

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Exporter writes record batches into C structures. It reuses its tables from
// batch to batch and is used by one goroutine at a time.
type Exporter struct {
	alloc    *Allocator
	arrays   []C.struct_iex_flat_array
	buffers  []C.struct_iex_flat_buffer
	children []C.int64_t
	columns  []int            // per buffer: the column it belongs to
	owned    []*memory.Buffer // made for this export: lengths of view buffers
}

// NewExporter makes an exporter that copies what it must into alloc's memory.
func NewExporter(alloc *Allocator) *Exporter { return &Exporter{alloc: alloc} }

// Batch writes a batch to out, which points to a struct ArrowArray. The batch
// stays the caller's: what C holds, it holds by references of its own. Columns
// whose memory is not aligned C memory are copied, the rest is shared.
func (e *Exporter) Batch(batch arrow.RecordBatch, out unsafe.Pointer) error {
	columns := append([]arrow.Array(nil), batch.Columns()...)
	defer func() {
		for i, c := range columns {
			if c != batch.Column(i) {
				c.Release()
			}
		}
	}()
	for {
		e.reset()
		root := e.addArray()
		first := e.addChildren(len(columns))
		for i, c := range columns {
			e.children[first+i] = C.int64_t(e.add(c.Data(), i))
		}
		e.buffers = append(e.buffers, C.struct_iex_flat_buffer{kind: C.IEX_BUFFER_ABSENT}) // no row is null
		e.columns = append(e.columns, -1)
		e.arrays[root] = C.struct_iex_flat_array{
			length: C.int64_t(batch.NumRows()), first_buffer: C.int64_t(len(e.buffers) - 1), buffers: 1,
			first_child: C.int64_t(first), children: C.int64_t(len(columns)),
		}
		unheld := C.iex_export_array(unsafe.SliceData(e.arrays), C.int64_t(len(e.arrays)),
			unsafe.SliceData(e.buffers), C.int64_t(len(e.buffers)),
			unsafe.SliceData(e.children), C.int64_t(len(e.children)), (*C.struct_ArrowArray)(out))
		e.releaseOwned()
		switch {
		case unheld == 0:
			return nil
		case unheld < 0:
			return errs.New(errs.MemoryLimit, "export a batch: the system has no memory left")
		}
		i := e.columns[unheld-1]
		if columns[i] != batch.Column(i) {
			return errs.New(errs.Internal, "export column %q: its copy of type %s is not in shared memory", batch.ColumnName(i), columns[i].DataType())
		}
		copied, err := e.copyHome(columns[i])
		if err != nil {
			return errs.WrapAs(errs.Internal, err, "export column", batch.ColumnName(i))
		}
		columns[i] = copied
	}
}

// copyHome copies the rows of an array, without what a slice leaves out, into
// the exporter's memory.
func (e *Exporter) copyHome(a arrow.Array) (arrow.Array, error) {
	rows, err := array.Concatenate([]arrow.Array{a}, e.alloc)
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	data, err := e.copyRest(rows.Data())
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

// copyRest copies what Concatenate shares with its input: dictionaries, and
// the data buffers of views, at any depth.
func (e *Exporter) copyRest(data arrow.ArrayData) (arrow.ArrayData, error) {
	var children []arrow.ArrayData
	var buffers []*memory.Buffer
	defer func() {
		for _, c := range children {
			c.Release()
		}
		for _, b := range buffers {
			if b != nil {
				b.Release()
			}
		}
	}()
	for _, c := range data.Children() {
		copied, err := e.copyRest(c)
		if err != nil {
			return nil, err
		}
		children = append(children, copied)
	}
	for _, b := range data.Buffers() {
		buffers = append(buffers, e.copyBuffer(b))
	}
	if storageID(data.DataType()) != arrow.DICTIONARY {
		return array.NewData(data.DataType(), data.Len(), buffers, children, data.NullN(), data.Offset()), nil
	}
	shared := array.MakeFromData(data.Dictionary())
	defer shared.Release()
	values, err := e.copyHome(shared)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	return array.NewDataWithDictionary(data.DataType(), data.Len(), buffers, data.NullN(), data.Offset(), values.Data().(*array.Data)), nil
}

// copyBuffer returns a reference to b when C may hold its memory, else a copy.
func (e *Exporter) copyBuffer(b *memory.Buffer) *memory.Buffer {
	if b == nil || b.Len() == 0 {
		return nil
	}
	at := blockOf(b)
	if block := C.iex_block_hold(at.allocation); block != nil {
		C.iex_block_release(block)
		if at.address%C.IEX_ALIGNMENT == 0 {
			b.Retain()
			return b
		}
	}
	copied := memory.NewResizableBuffer(e.alloc)
	copied.Resize(b.Len())
	copy(copied.Bytes(), b.Bytes())
	return copied
}

func (e *Exporter) reset() {
	e.arrays, e.buffers, e.children, e.columns = e.arrays[:0], e.buffers[:0], e.children[:0], e.columns[:0]
}

func (e *Exporter) releaseOwned() {
	for _, b := range e.owned {
		b.Release()
	}
	e.owned = e.owned[:0]
}

func (e *Exporter) addArray() int {
	e.arrays = append(e.arrays, C.struct_iex_flat_array{})
	return len(e.arrays) - 1
}

func (e *Exporter) addChildren(n int) int {
	first := len(e.children)
	for range n {
		e.children = append(e.children, 0)
	}
	return first
}

// add describes an array and everything below it.
func (e *Exporter) add(data arrow.ArrayData, column int) int {
	node := e.addArray()
	flat := C.struct_iex_flat_array{length: C.int64_t(data.Len()), offset: C.int64_t(data.Offset())}

	layout := storageID(data.DataType())
	buffers, hasValidity := data.Buffers(), true
	switch layout {
	case arrow.NULL:
		flat.null_count = flat.length
		buffers, hasValidity = nil, false
	case arrow.RUN_END_ENCODED:
		buffers, hasValidity = nil, false
	case arrow.SPARSE_UNION, arrow.DENSE_UNION:
		buffers, hasValidity = buffers[1:], false // arrow-go keeps an empty validity bitmap there
	}
	if hasValidity {
		flat.null_count = C.int64_t(nulls(data))
	}
	flat.first_buffer = C.int64_t(len(e.buffers))
	for i, b := range buffers {
		switch {
		case i == 0 && hasValidity && flat.null_count == 0:
			e.addBuffer(C.struct_iex_flat_buffer{kind: C.IEX_BUFFER_ABSENT}, column)
		case b == nil || b.Len() == 0:
			e.addBuffer(C.struct_iex_flat_buffer{kind: C.IEX_BUFFER_EMPTY}, column)
		default:
			e.addBuffer(blockOf(b), column)
		}
	}
	if layout == arrow.BINARY_VIEW || layout == arrow.STRING_VIEW {
		e.addViewLengths(buffers[2:], column)
	}
	flat.buffers = C.int64_t(len(e.buffers)) - flat.first_buffer

	if children := data.Children(); len(children) > 0 {
		first := e.addChildren(len(children))
		for i, c := range children {
			e.children[first+i] = C.int64_t(e.add(c, column))
		}
		flat.first_child, flat.children = C.int64_t(first), C.int64_t(len(children))
	}
	if layout == arrow.DICTIONARY {
		flat.dictionary = C.int64_t(e.add(data.Dictionary(), column))
	}
	e.arrays[node] = flat
	return node
}

func (e *Exporter) addBuffer(b C.struct_iex_flat_buffer, column int) {
	e.buffers = append(e.buffers, b)
	e.columns = append(e.columns, column)
}

// addViewLengths adds the buffer of a view array that tells how long its data
// buffers are; only the C interface has it.
func (e *Exporter) addViewLengths(data []*memory.Buffer, column int) {
	if len(data) == 0 {
		e.addBuffer(C.struct_iex_flat_buffer{kind: C.IEX_BUFFER_EMPTY}, column)
		return
	}
	lengths := memory.NewResizableBuffer(e.alloc)
	lengths.Resize(8 * len(data))
	for i, b := range data {
		if b != nil {
			binary.NativeEndian.PutUint64(lengths.Bytes()[8*i:], uint64(b.Len()))
		}
	}
	e.owned = append(e.owned, lengths)
	e.addBuffer(blockOf(lengths), column)
}

func blockOf(b *memory.Buffer) C.struct_iex_flat_buffer {
	whole := b
	for whole.Parent() != nil {
		whole = whole.Parent()
	}
	return C.struct_iex_flat_buffer{kind: C.IEX_BUFFER_BLOCK, address: addressOf(b.Bytes()), allocation: addressOf(whole.Buf())}
}

func addressOf(b []byte) C.uintptr_t {
	return C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// storageID is the type that decides an array's layout.
func storageID(t arrow.DataType) arrow.Type {
	for t.ID() == arrow.EXTENSION {
		t = t.(arrow.ExtensionType).StorageType()
	}
	return t.ID()
}

func nulls(data arrow.ArrayData) int {
	validity := data.Buffers()[0]
	if validity == nil || validity.Len() == 0 {
		return 0
	}
	if n := data.NullN(); n >= 0 {
		return n
	}
	return data.Len() - bitutil.CountSetBits(validity.Bytes(), data.Offset(), data.Len())
}
