package bridge

// #include "import.h"
import "C"

import (
	"context"
	"io"
	"syscall"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/task"
)

// Import takes a stream of any producer over; from points to a struct
// ArrowArrayStream, which is left released, also after an error. Batches share
// the producer's memory, which is released with them. What arrow-go cannot
// read in place (misaligned buffers) and what the engine has no use for (views,
// which come as the plain types) is copied into alloc's memory.
//
// A producer cannot be interrupted: Next gives up waiting when its context
// ends, and the next one goes on waiting for the same batch.
func Import(from unsafe.Pointer, alloc memory.Allocator) (batch.Stream, error) {
	c := C.iex_import_stream((*C.struct_ArrowArrayStream)(from))
	if c == nil {
		return nil, errs.New(errs.InvalidArgument, "the Arrow stream is released already")
	}
	s := &importedStream{c: c, alloc: alloc, tasks: task.NewGroup(context.Background())}
	var schema C.struct_ArrowSchema
	err := s.check("get_schema", C.iex_import_schema(c, &schema))
	if err == nil {
		s.foreign, err = importSchema(&schema)
		C.iex_import_release_schema(&schema)
	}
	if err != nil {
		C.iex_import_end(c)
		return nil, errs.Wrap(err, "import an Arrow stream", "")
	}
	s.schema = plainSchema(s.foreign)
	return s, nil
}

type importedStream struct {
	c       *C.struct_ArrowArrayStream // nil once closed
	alloc   memory.Allocator
	foreign *arrow.Schema // as the producer has it
	schema  *arrow.Schema // with plain types for views
	tasks   *task.Group

	pending chan pulled // of the get_next that runs; nil: none does
	err     error       // sticky
}

type pulled struct {
	batch arrow.RecordBatch
	err   error
}

// Schema implements batch.Stream.
func (s *importedStream) Schema() *arrow.Schema { return s.schema }

// Next implements batch.Stream.
func (s *importedStream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.pending == nil {
		pending := make(chan pulled, 1)
		s.pending = pending
		s.tasks.Go("read an Arrow stream", func(context.Context) error {
			var p pulled
			p.err = task.Call("read an Arrow stream", func() (err error) { p.batch, err = s.pull(); return err })
			pending <- p
			return nil
		})
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case p := <-s.pending:
		s.pending = nil
		if p.err != nil && p.err != io.EOF {
			p.err = errs.Wrap(p.err, "read an Arrow stream", "")
		}
		s.err = p.err
		return p.batch, p.err
	}
}

func (s *importedStream) pull() (arrow.RecordBatch, error) {
	var array C.struct_ArrowArray
	if err := s.check("get_next", C.iex_import_next(s.c, &array)); err != nil {
		return nil, err
	}
	if array.release == nil {
		return nil, io.EOF
	}
	return importBatch(&array, s.foreign, s.schema, s.alloc)
}

// check turns the errno of a callback into an error with the producer's words.
func (s *importedStream) check(callback string, errno C.int) error {
	if errno == 0 {
		return nil
	}
	code := codeOfErrno(syscall.Errno(errno))
	if text := C.iex_import_error(s.c); text != nil && *text != 0 {
		return errs.New(code, "%s", C.GoString(text))
	}
	return errs.New(code, "%s failed: %v", callback, syscall.Errno(errno))
}

// codeOfErrno is errs.Code.Errno the other way round.
func codeOfErrno(errno syscall.Errno) errs.Code {
	for code := errs.InvalidArgument; code < errs.Internal; code++ {
		if code != errs.Corrupt && code.Errno() == errno {
			return code
		}
	}
	return errs.Internal
}

// Close implements batch.Stream. It waits for a get_next that runs.
func (s *importedStream) Close() error {
	if s.c == nil {
		return nil
	}
	_ = s.tasks.Wait() // its tasks deliver their errors themselves
	if s.pending != nil {
		if p := <-s.pending; p.batch != nil {
			p.batch.Release()
		}
		s.pending = nil
	}
	s.err = errs.New(errs.Cancelled, "the stream is closed")
	C.iex_import_end(s.c)
	s.c = nil
	return nil
}
