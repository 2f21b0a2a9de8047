package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// reader is a producer's stream: some batches, then an error or the end.
type reader struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	current arrow.RecordBatch
	err     error
	delay   time.Duration
	refs    atomic.Int64
}

func newReader(batches ...arrow.RecordBatch) *reader {
	r := &reader{schema: batches[0].Schema(), batches: batches}
	r.refs.Store(1)
	return r
}

func (r *reader) Retain()                        { r.refs.Add(1) }
func (r *reader) Release()                       { r.refs.Add(-1) }
func (r *reader) Schema() *arrow.Schema          { return r.schema }
func (r *reader) RecordBatch() arrow.RecordBatch { return r.current }
func (r *reader) Record() arrow.RecordBatch      { return r.current }

func (r *reader) Next() bool {
	time.Sleep(r.delay)
	if len(r.batches) == 0 {
		return false
	}
	r.current, r.batches = r.batches[0], r.batches[1:]
	return true
}

func (r *reader) Err() error {
	if len(r.batches) == 0 {
		return r.err
	}
	return nil
}

// exported puts a reader behind an ArrowArrayStream with arrow-go's exporter,
// which is not ours.
func exported(t *testing.T, r array.RecordReader) unsafe.Pointer {
	t.Helper()
	stream := cStruct(t)
	cdata.ExportRecordReader(r, (*cdata.CArrowArrayStream)(stream))
	return stream
}

// importOne imports a stream of one batch and ends it.
func importOne(t *testing.T, alloc *Allocator, stream unsafe.Pointer) (arrow.RecordBatch, error) {
	t.Helper()
	s, err := Import(stream, alloc)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Next(context.Background())
}

// importOurs sends a batch through our own exporter.
func importOurs(t *testing.T, alloc *Allocator, batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	t.Helper()
	out := cStruct(t)
	if err := NewExporter(alloc).Batch(batch, out); err != nil {
		return nil, err
	}
	return importBatch((*cArrowArray)(out), batch.Schema(), plainSchema(batch.Schema()), alloc)
}

// plainCopy is the batch as Import gives it: views come as plain types, and an
// extension column as its storage with the extension in its metadata.
func plainCopy(t *testing.T, batch arrow.RecordBatch) arrow.RecordBatch {
	t.Helper()
	batch = asImported(t, batch)
	view, ok := batch.Column(0).(*array.StringView)
	if !ok {
		return batch
	}
	b := array.NewStringBuilder(mallocator.NewMallocator())
	for i := range view.Len() {
		if view.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(view.Value(i))
		}
	}
	metadata := batch.Schema().Metadata()
	return array.NewRecordBatch(arrow.NewSchema(plainFields(batch.Schema().Fields()), &metadata), []arrow.Array{b.NewArray()}, batch.NumRows())
}

func TestImportedBatchesAreEqual(t *testing.T) {
	for _, s := range samples {
		for _, cut := range [][2]int64{{0, 5}, {0, 0}, {2, 2}, {1, 4}, {4, 5}} {
			t.Run(fmt.Sprintf("%s/%d-%d", s.name, cut[0], cut[1]), func(t *testing.T) {
				foreign, alloc := mallocator.NewMallocator(), NewAllocator()
				whole := build(t, foreign, s.typ, s.json)
				slice := array.NewSlice(whole, cut[0], cut[1])
				batch := record(s.name, slice)
				whole.Release()
				slice.Release()
				var got arrow.RecordBatch
				var err error
				if _, isStruct := s.typ.(*arrow.StructType); isStruct && cut[0] > 0 {
					// arrow-go exports the fields of a sliced struct without the
					// rows before the slice, and its offset all the same.
					got, err = importOurs(t, alloc, batch)
				} else {
					got, err = importOne(t, alloc, exported(t, newReader(batch)))
				}
				if err != nil {
					t.Fatal(err)
				}
				want := plainCopy(t, batch)
				if !got.Schema().Equal(want.Schema()) || !got.Schema().Metadata().Equal(want.Schema().Metadata()) {
					t.Errorf("schema\n%v, want\n%v", got.Schema(), want.Schema())
				}
				if !array.RecordEqual(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
				got.Release()
				if want == batch {
					batch.Release()
					if n := foreign.AllocatedBytes(); n != 0 {
						t.Errorf("%d bytes of the producer are not released", n)
					}
				}
				if alloc.Live() != 0 {
					t.Errorf("%d bytes of copies leaked", alloc.Live())
				}
			})
		}
	}
}

// TestImportOfOddBuffers moves every buffer of an exported batch to an odd
// address, and drops the ones that may be NULL.
func TestImportOfOddBuffers(t *testing.T) {
	for _, s := range samples {
		for _, shift := range []uintptr{1, 4} {
			t.Run(fmt.Sprintf("%s/%d", s.name, shift), func(t *testing.T) {
				foreign, alloc := mallocator.NewMallocator(), NewAllocator()
				a := build(t, foreign, s.typ, s.json)
				batch := record(s.name, a)
				defer batch.Release()
				a.Release()
				carray, cschema := cStruct(t), cStruct(t)
				cdata.ExportArrowRecordBatch(batch, (*cdata.CArrowArray)(carray), (*cdata.CArrowSchema)(cschema))
				shiftBuffers(*(*cArray)(carray).children, a.Data(), shift)
				cdata.ReleaseCArrowSchema((*cdata.CArrowSchema)(cschema))
				foreignSchema := asImported(t, batch).Schema()
				got, err := importBatch((*cArrowArray)(carray), foreignSchema, plainSchema(foreignSchema), alloc)
				if err != nil {
					t.Fatal(err)
				}
				if want := plainCopy(t, batch); !array.RecordEqual(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
				got.Release()
				if alloc.Live() != 0 {
					t.Errorf("%d bytes of copies leaked", alloc.Live())
				}
			})
		}
	}
}

// moved keeps the shifted copies alive as long as the test binary: they are
// lent to C, which must not see them move.
var moved [][]byte

func shiftBuffers(c *cArray, data arrow.ArrayData, shift uintptr) {
	if c.nBuffers > 0 {
		buffers := unsafe.Slice((*unsafe.Pointer)(c.buffers), c.nBuffers)
		for i, b := range data.Buffers()[max(0, len(data.Buffers())-len(buffers)):] {
			if i >= len(buffers) || b == nil || b.Len() == 0 {
				continue
			}
			scratch := mallocator.NewMallocator().Allocate(b.Len() + 64)
			moved = append(moved, scratch)
			at := unsafe.Pointer(unsafe.SliceData(scratch))
			at = unsafe.Add(at, shift)
			copy(unsafe.Slice((*byte)(at), b.Len()), b.Bytes())
			buffers[i] = at
		}
	}
	if c.nChildren == 0 {
		return
	}
	children := unsafe.Slice(c.children, c.nChildren)
	for i, child := range data.Children() {
		shiftBuffers(children[i], child, shift)
	}
}

func TestImportOfStreams(t *testing.T) {
	foreign := mallocator.NewMallocator()
	one := func() arrow.RecordBatch {
		a := build(t, foreign, arrow.PrimitiveTypes.Int64, `[1, 2, 3]`)
		defer a.Release()
		return record("x", a)
	}

	t.Run("ends", func(t *testing.T) {
		r := newReader(one(), one())
		s, err := Import(exported(t, r), NewAllocator())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			b, err := s.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		for range 2 {
			if _, err := s.Next(context.Background()); err != io.EOF {
				t.Errorf("after the last batch: %v", err)
			}
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if r.refs.Load() != 1 {
			t.Errorf("the producer's stream is not released")
		}
		if _, err := s.Next(context.Background()); errs.CodeOf(err) != errs.Cancelled {
			t.Errorf("after Close: %v", err)
		}
	})
	t.Run("fails", func(t *testing.T) {
		r := newReader(one())
		r.batches, r.err = nil, errors.New("the disk is gone")
		s, err := Import(exported(t, r), NewAllocator())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 2 {
			if _, err := s.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "read an Arrow stream: the disk is gone") {
				t.Errorf("error %v", err)
			}
		}
	})
	t.Run("waits in slices", func(t *testing.T) {
		r := newReader(one())
		r.delay = 200 * time.Millisecond
		s, err := Import(exported(t, r), NewAllocator())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start, timeouts := time.Now(), 0
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			b, err := s.Next(ctx)
			cancel()
			if err == nil {
				b.Release()
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			timeouts++
		}
		if timeouts < 3 || time.Since(start) > time.Second {
			t.Errorf("%d timeouts in %v", timeouts, time.Since(start))
		}
	})
	t.Run("is closed while it waits", func(t *testing.T) {
		r := newReader(one())
		r.delay = 50 * time.Millisecond
		s, err := Import(exported(t, r), NewAllocator())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("was released", func(t *testing.T) {
		if _, err := Import(cStruct(t), NewAllocator()); errs.CodeOf(err) != errs.InvalidArgument {
			t.Errorf("error %v", err)
		}
	})
}

// TestImportChecksStructures damages what a producer's structures say.
func TestImportChecksStructures(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	for _, test := range []struct {
		name   string
		typ    arrow.DataType
		json   string
		damage func(column *cArray)
		says   string
	}{
		{"negative length", arrow.PrimitiveTypes.Int64, `[1]`, func(c *cArray) { c.length = -1 }, "has -1 rows"},
		{"negative offset", arrow.PrimitiveTypes.Int64, `[1]`, func(c *cArray) { c.offset = -1 }, "offset -1"},
		{"too few rows", arrow.PrimitiveTypes.Int64, `[1]`, func(c *cArray) { c.length = 0 }, "0 rows of 1"},
		{"buffers", arrow.PrimitiveTypes.Int64, `[1]`, func(c *cArray) { c.nBuffers = 3 }, "3 buffers"},
		{"children", list, `[[1]]`, func(c *cArray) { c.nChildren = 0 }, "0 children"},
		{"short child", list, `[[1, 2, 3]]`, func(c *cArray) { (*c.children).length = 1 }, "1 elements of 3"},
		{"missing values", arrow.PrimitiveTypes.Int64, `[1]`, func(c *cArray) { unsafe.Slice((*unsafe.Pointer)(c.buffers), 2)[1] = nil }, "lacks a buffer of 8 bytes"},
		{"missing dictionary", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["a"]`,
			func(c *cArray) { c.dictionary = nil }, "dictionary"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := build(t, mallocator.NewMallocator(), test.typ, test.json)
			batch := record("x", a)
			carray, cschema := cStruct(t), cStruct(t)
			cdata.ExportArrowRecordBatch(batch, (*cdata.CArrowArray)(carray), (*cdata.CArrowSchema)(cschema))
			test.damage(*(*cArray)(carray).children)
			alloc := NewAllocator()
			got, err := importBatch((*cArrowArray)(carray), batch.Schema(), batch.Schema(), alloc)
			if err == nil {
				got.Release()
				t.Fatal("no error")
			}
			if errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v", err)
			}
			if alloc.Live() != 0 {
				t.Errorf("%d bytes leaked", alloc.Live())
			}
		})
	}
}
