package main

// #include "shim.h"
import "C"

import (
	"context"
	"sync"
	"unsafe"

	"github.com/icebergexec/icebergexec/bridge"
	"github.com/icebergexec/icebergexec/bridge/request"
	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// engineHandle is what an iex_engine names. It stays registered after close,
// so that a call on a closed engine can say what is wrong.
type engineHandle struct {
	engine *engine.Engine
	alloc  *bridge.Allocator
	host   *bridge.Host

	ctx    context.Context // of everything that runs for the engine
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup // running calls other than those on streams

	mu      sync.Mutex
	closed  bool
	defect  error // of the panic that made the engine unusable
	streams map[*streamHandle]struct{}
}

var errClosed = errs.New(errs.Cancelled, "the engine is closed")

// enter begins a call on the engine; the caller runs leave at its end. close
// waits for every call that has entered.
func (c *call) enter(cell uintptr) (*engineHandle, error) {
	h, err := engines.get(cell)
	if err != nil {
		return nil, errs.Wrap(err, c.name, "")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refusalLocked(); err != nil {
		return nil, errs.Wrap(err, c.name, "")
	}
	c.owner = h
	h.calls.Add(1)
	return h, nil
}

func (h *engineHandle) leave() { h.calls.Done() }

// refusal is why the engine does no more work, or nil.
func (h *engineHandle) refusal() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refusalLocked()
}

func (h *engineHandle) refusalLocked() error {
	switch {
	case h.closed:
		return errClosed
	case h.defect != nil:
		return &errs.Error{Code: errs.Unusable, Msg: "the engine met a defect before and must be closed", Err: h.defect}
	}
	return nil
}

// poison makes the engine refuse further work.
func (h *engineHandle) poison(defect error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.defect == nil {
		h.defect = defect
	}
}

func (h *engineHandle) add(s *streamHandle) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refusalLocked(); err != nil {
		return err
	}
	h.streams[s] = struct{}{}
	return nil
}

func (h *engineHandle) remove(s *streamHandle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

//export iexgo_engine_open
func iexgo_engine_open(options *C.char, size C.size_t, storage, reader unsafe.Pointer, out *C.uintptr_t, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_engine_open", cerr, func(c *call) (err error) {
		h := &engineHandle{alloc: bridge.NewAllocator(), streams: map[*streamHandle]struct{}{}}
		h.host, err = bridge.NewHost(storage, reader)
		defer func() {
			if *out == 0 {
				h.host.Release()
			}
		}()
		if err != nil {
			return errs.Wrap(err, c.name, "")
		}
		opts, err := request.ParseEngineOptions(bytesOf(options, size))
		if err != nil {
			return errs.Wrap(err, c.name, "")
		}
		opts.Allocator, opts.FS, opts.HostReader = h.alloc, h.host.FS(), h.host.Reader(h.alloc)
		if h.engine, err = engine.Open(opts); err != nil {
			return err
		}
		h.ctx, h.cancel = context.WithCancelCause(context.Background())
		cell, err := engines.add(h)
		if err != nil {
			_ = h.engine.Close()
			return err
		}
		process.opened(h.engine, h.engine.Stats().MemoryLimit)
		*out = C.uintptr_t(cell)
		return nil
	})
}

//export iexgo_engine_close
func iexgo_engine_close(cell C.uintptr_t, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_engine_close", cerr, func(c *call) error {
		h, err := engines.get(uintptr(cell))
		if err != nil {
			return errs.Wrap(err, c.name, "")
		}
		return errs.Wrap(h.close(), c.name, "")
	})
}

// close ends everything that runs for the engine. Only the first call does.
func (h *engineHandle) close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	open := make([]*streamHandle, 0, len(h.streams))
	for s := range h.streams {
		open = append(open, s)
	}
	h.mu.Unlock()

	defer process.closed(h.engine)
	h.cancel(errClosed)
	var first error
	for _, s := range open {
		if err := s.end(errClosed); err != nil && first == nil {
			first = err
		}
	}
	h.calls.Wait()
	if err := h.engine.Close(); err != nil && first == nil {
		first = err
	}
	h.host.Release()
	h.engine, h.host = nil, nil // the handle stays; what it held does not
	return first
}

//export iexgo_engine_stats
func iexgo_engine_stats(cell C.uintptr_t, out **C.char, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_engine_stats", cerr, func(c *call) error {
		h, err := c.enter(uintptr(cell))
		if err != nil {
			return err
		}
		defer h.leave()
		s := h.engine.Stats()
		return writeJSON(out, request.EngineStats{
			MemoryLimit: s.MemoryLimit, MemoryUsed: s.MemoryUsed, MemoryPeak: s.MemoryPeak,
			ExportedBytes: h.alloc.Exported(), AllocatedBytes: h.alloc.Live(),
			OpenStreams: s.OpenStreams, Batches: s.Batches, Rows: s.Rows,
			FilesOpened: s.FilesOpened, BytesRead: s.BytesRead, Handles: int64(C.iex_cells()),
		})
	})
}
