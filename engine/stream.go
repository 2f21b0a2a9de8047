package engine

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// stream is a running operation of an engine: it keeps the contract of
// batch.Stream whatever runs inside, counts, and can be ended by Engine.Close
// while another goroutine is in Next.
type stream struct {
	engine  *Engine
	pool    *mem.Pool
	charged *mem.Reservation        // what lives as long as the stream
	cancel  context.CancelCauseFunc // of the context that inner's goroutines run in
	schema  *arrow.Schema

	mu     sync.Mutex   // held during Next and Close
	inner  batch.Stream // nil when opening failed
	err    error        // sticky; io.EOF too
	closed bool

	stopMu  sync.Mutex
	stopped error // why Next must not go on; set without mu
}

// Schema implements batch.Stream; it stays valid after Close.
func (s *stream) Schema() *arrow.Schema { return s.schema }

// Next implements batch.Stream. An error of ctx itself is not sticky: it ends
// the wait only, so that a caller can wait in slices of time.
func (s *stream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	var record arrow.RecordBatch
	err := s.step(ctx, func() (err error) {
		record, err = s.inner.Next(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.engine.counters.batches.Add(1)
	s.engine.counters.rows.Add(record.NumRows())
	return record, nil
}

// step runs one read of what the stream holds.
func (s *stream) step(ctx context.Context, read func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stopCause(); err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	if s.closed {
		return errStreamClosed
	}
	err := read()
	if err == nil {
		return nil
	}
	if cause := s.stopCause(); cause != nil {
		return cause
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	s.err = err
	if err != io.EOF {
		s.cancel(err)
	}
	return err
}

var errStreamClosed = errs.New(errs.Cancelled, "the stream is closed")

func (s *stream) stopCause() error {
	s.stopMu.Lock()
	defer s.stopMu.Unlock()
	return s.stopped
}

// stop makes a running Next return soon, and every later one fail.
func (s *stream) stop(cause error) {
	s.stopMu.Lock()
	if s.stopped == nil {
		s.stopped = cause
	}
	s.stopMu.Unlock()
	s.cancel(cause)
}

// Close implements batch.Stream. It returns an error only for a defect: memory
// that the operation did not give back.
func (s *stream) Close() error {
	s.cancel(errStreamClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.inner != nil {
		err = s.inner.Close()
	}
	s.charged.Free()
	s.engine.remove(s)
	if poolErr := s.pool.Close(); err == nil {
		err = poolErr
	}
	return err
}

// LargeFields are the field ids of texts, binaries and lists that pyiceberg
// would return with 64-bit offsets: see scan.Scan.
func (s *stream) LargeFields() []int {
	if origin, ok := s.inner.(interface{ LargeFields() []int }); ok {
		return origin.LargeFields()
	}
	return nil
}
