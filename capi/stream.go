package main

// #include "shim.h"
import "C"

import (
	"context"
	"io"
	"sync"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/bridge"
	"github.com/icebergexec/icebergexec/bridge/request"
	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// streamHandle is what an iex_stream and an ArrowArrayStream over it name.
type streamHandle struct {
	owner  *engineHandle
	schema *arrow.Schema
	source batch.Stream    // rows, and after the end still what tells about them
	ctx    context.Context // ended by cancel, release, and the engine's close
	cancel context.CancelCauseFunc

	reading  chan struct{} // holds one token while nobody reads; reading and ending need it
	rows     batch.Stream  // nil once ended
	exporter *bridge.Exporter
	last     error // what every further read gives: errEnd or an error

	mu       sync.Mutex
	exported bool  // the rows come out of an ArrowArrayStream
	handles  int   // of the iex_stream and the ArrowArrayStream, those that are not released
	started  bool  // a batch was asked for
	failure  error // of the last callback of the ArrowArrayStream that failed
	stats    request.StreamStats
}

// open registers a stream of the engine; on an error it closes rows.
func (h *engineHandle) open(rows batch.Stream) (uintptr, error) {
	s := &streamHandle{
		owner: h, schema: rows.Schema(), source: rows, rows: rows, exporter: bridge.NewExporter(h.alloc),
		reading: make(chan struct{}, 1), handles: 1,
	}
	s.ctx, s.cancel = context.WithCancelCause(h.ctx)
	s.reading <- struct{}{}
	err := h.add(s)
	if err == nil {
		var cell uintptr
		if cell, err = streams.add(s); err == nil {
			return cell, nil
		}
	}
	_ = s.end(err)
	return 0, err
}

// lookup finds the stream of a call.
func (c *call) lookup(cell uintptr) (*streamHandle, error) {
	s, err := streams.get(cell)
	if err != nil {
		return nil, errs.Wrap(err, c.name, "")
	}
	c.owner = s.owner
	return s, nil
}

// next exports the next batch to out, waiting at most timeout; a negative one
// is no limit.
func (s *streamHandle) next(timeout time.Duration, out unsafe.Pointer) error {
	ctx := s.ctx
	if timeout >= 0 {
		// At least a moment: a batch that is ready is found after a look at
		// the clock.
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(s.ctx, max(timeout, time.Millisecond))
		defer stop()
	}
	select {
	case <-s.reading:
	case <-ctx.Done():
		return s.waited(ctx)
	}
	defer func() { s.reading <- struct{}{} }()
	if s.last != nil {
		return s.last
	}
	if s.ctx.Err() != nil {
		return s.waited(ctx)
	}
	if err := s.owner.refusal(); err != nil {
		return err
	}
	record, err := s.rows.Next(ctx)
	if err != nil {
		if s.ctx.Err() != nil || isTimeout(ctx, err) {
			return s.waited(ctx)
		}
		if err == io.EOF {
			err = errEnd
		}
		s.last = err
		return err
	}
	defer record.Release()
	process.batchTaken()
	if err := s.exporter.Batch(record, out); err != nil {
		s.last = err
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Batches++
	s.stats.Rows += record.NumRows()
	return nil
}

// waited is the outcome of a read whose context has ended: what ended the
// stream, or else just the time.
func (s *streamHandle) waited(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return asCancelled(context.Cause(s.ctx))
	}
	return errPending
}

func asCancelled(cause error) error {
	if errs.CodeOf(cause) == errs.Cancelled && cause != context.Canceled {
		return cause
	}
	return &errs.Error{Code: errs.Cancelled, Msg: "the stream was cancelled", Err: cause}
}

var (
	errCancelled = errs.New(errs.Cancelled, "the stream was cancelled")
	errReleased  = errs.New(errs.Cancelled, "the stream was released")
)

// end stops the work of the stream and returns when it has ended; idempotent.
func (s *streamHandle) end(cause error) error {
	s.cancel(cause)
	<-s.reading
	defer func() { s.reading <- struct{}{} }()
	if s.rows == nil {
		return nil
	}
	err := s.rows.Close()
	s.rows, s.exporter = nil, nil
	if s.last == nil {
		s.last = asCancelled(cause)
	}
	s.owner.remove(s)
	process.streamEnded()
	return err
}

// release gives up one of the stream's handles; the last one ends it, and so
// does the one that the rows come out of.
func (s *streamHandle) release(ofRows bool) error {
	s.mu.Lock()
	s.handles--
	ends := s.handles == 0 || ofRows || !s.exported
	s.mu.Unlock()
	if !ends {
		return nil
	}
	return s.end(errReleased)
}

//export iexgo_stream_schema
func iexgo_stream_schema(cell C.uintptr_t, out *C.struct_ArrowSchema, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_stream_schema", cerr, func(c *call) error {
		s, err := c.lookup(uintptr(cell))
		if err != nil {
			return err
		}
		return bridge.ExportSchema(s.schema, unsafe.Pointer(out))
	})
}

//export iexgo_stream_next
func iexgo_stream_next(cell C.uintptr_t, timeout C.int64_t, out *C.struct_ArrowArray, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_stream_next", cerr, func(c *call) error {
		s, err := c.lookup(uintptr(cell))
		if err != nil {
			return err
		}
		s.mu.Lock()
		exported := s.exported
		s.started = true
		s.mu.Unlock()
		if exported {
			return errs.New(errs.InvalidArgument, "%s: the stream was exported; its batches come out of the ArrowArrayStream", c.name)
		}
		return s.next(milliseconds(timeout), unsafe.Pointer(out))
	})
}

// milliseconds keeps a timeout of many years from overflowing into the past.
func milliseconds(n C.int64_t) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(int64(n), most)) * time.Millisecond
}

//export iexgo_stream_cancel
func iexgo_stream_cancel(cell C.uintptr_t, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_stream_cancel", cerr, func(c *call) error {
		s, err := c.lookup(uintptr(cell))
		if err != nil {
			return err
		}
		s.cancel(errCancelled)
		process.background("cancel a stream", func() error { return s.end(errCancelled) })
		return nil
	})
}

//export iexgo_stream_stats
func iexgo_stream_stats(cell C.uintptr_t, out **C.char, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_stream_stats", cerr, func(c *call) error {
		s, err := c.lookup(uintptr(cell))
		if err != nil {
			return err
		}
		s.mu.Lock()
		stats := s.stats
		s.mu.Unlock()
		stats.ExportedBytes = s.owner.alloc.Exported()
		if origin, ok := s.source.(interface{ LargeFields() []int }); ok {
			stats.LargeFields = origin.LargeFields()
		}
		return writeJSON(out, stats)
	})
}

//export iexgo_stream_release
func iexgo_stream_release(cell C.uintptr_t, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_stream_release", cerr, func(c *call) error {
		s, err := streams.take(uintptr(cell))
		if err != nil {
			return errs.Wrap(err, c.name, "")
		}
		c.owner = s.owner
		return s.release(false)
	})
}
