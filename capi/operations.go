package main

// #include "shim.h"
import "C"

import (
	"context"
	"io"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/bridge"
	"github.com/icebergexec/icebergexec/bridge/request"
	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// start makes a stream of the engine for the caller.
func (c *call) start(cell C.uintptr_t, out *C.uintptr_t, run func(h *engineHandle) (batch.Stream, error)) error {
	h, err := c.enter(uintptr(cell))
	if err != nil {
		return err
	}
	defer h.leave()
	rows, err := run(h)
	if err != nil {
		return err
	}
	s, err := h.open(testRows(rows))
	*out = C.uintptr_t(s)
	return err
}

//export iexgo_scan
func iexgo_scan(cell C.uintptr_t, text *C.char, size C.size_t, sets **C.struct_ArrowArrayStream, n C.size_t, out *C.uintptr_t, cerr *C.struct_iex_error) C.iex_status {
	inputs := inputsOf(sets, n)
	defer inputs.release()
	return do("iex_scan", cerr, func(c *call) error {
		return c.start(cell, out, func(h *engineHandle) (batch.Stream, error) {
			literals, err := inputs.sets(h.ctx)
			if err != nil {
				return nil, errs.Wrap(err, c.name, "")
			}
			defer releaseAll(literals)
			req, err := request.ParseScan(bytesOf(text, size), literals...)
			if err != nil {
				return nil, errs.Wrap(err, c.name, "")
			}
			return h.engine.Scan(h.ctx, req)
		})
	})
}

//export iexgo_plan
func iexgo_plan(cell C.uintptr_t, text *C.char, size C.size_t, sets **C.struct_ArrowArrayStream, n C.size_t, out *C.uintptr_t, cerr *C.struct_iex_error) C.iex_status {
	inputs := inputsOf(sets, n)
	defer inputs.release()
	return do("iex_plan", cerr, func(c *call) error {
		return c.start(cell, out, func(h *engineHandle) (batch.Stream, error) {
			literals, err := inputs.sets(h.ctx)
			if err != nil {
				return nil, errs.Wrap(err, c.name, "")
			}
			defer releaseAll(literals)
			req, err := request.ParsePlan(bytesOf(text, size), literals...)
			if err != nil {
				return nil, errs.Wrap(err, c.name, "")
			}
			p, err := h.engine.Plan(h.ctx, req)
			if err != nil {
				return nil, err
			}
			return p.Stream(), nil
		})
	})
}

//export iexgo_sort
func iexgo_sort(cell C.uintptr_t, input *C.struct_ArrowArrayStream, text *C.char, size C.size_t, out *C.uintptr_t, cerr *C.struct_iex_error) C.iex_status {
	inputs := inputsOf(&input, 1)
	defer inputs.release()
	return do("iex_sort", cerr, func(c *call) error {
		return c.start(cell, out, func(h *engineHandle) (batch.Stream, error) {
			keys, err := request.ParseSort(bytesOf(text, size))
			if err != nil {
				return nil, errs.Wrap(err, c.name, "")
			}
			rows, err := inputs.take(0, h.alloc)
			if err != nil {
				return nil, errs.Wrap(err, c.name, "")
			}
			return h.engine.Sort(h.ctx, rows, keys)
		})
	})
}

// inputs are the caller's streams. An operation takes over those that it
// imports; release ends the rest, whatever happened before.
type inputs []*C.struct_ArrowArrayStream

func inputsOf(streams **C.struct_ArrowArrayStream, n C.size_t) inputs {
	return append(inputs(nil), unsafe.Slice(streams, int(n))...)
}

func (in inputs) take(i int, alloc memory.Allocator) (batch.Stream, error) {
	return bridge.Import(unsafe.Pointer(in[i]), alloc)
}

func (in inputs) release() {
	for _, s := range in {
		C.iex_input_release(s)
	}
}

// sets reads each input into one array of literals. They are on the Go heap:
// the filter copies them into its own form at once.
func (in inputs) sets(ctx context.Context) (literals []arrow.Array, err error) {
	defer func() {
		if err != nil {
			releaseAll(literals)
		}
	}()
	for i := range in {
		one, err := in.set(ctx, i)
		if err != nil {
			return literals, err
		}
		literals = append(literals, one)
	}
	return literals, nil
}

func (in inputs) set(ctx context.Context, i int) (arrow.Array, error) {
	rows, err := in.take(i, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if n := rows.Schema().NumFields(); n != 1 {
		return nil, errs.New(errs.InvalidArgument, "set %d has %d columns; it must have one", i, n)
	}
	pieces := []arrow.Array{array.MakeArrayOfNull(memory.DefaultAllocator, rows.Schema().Field(0).Type, 0)}
	defer func() { releaseAll(pieces) }()
	for {
		b, err := rows.Next(ctx)
		if err == io.EOF {
			return array.Concatenate(pieces, memory.DefaultAllocator)
		}
		if err != nil {
			return nil, err
		}
		column := b.Column(0)
		column.Retain()
		pieces = append(pieces, column)
		b.Release()
	}
}

func releaseAll(arrays []arrow.Array) {
	for _, a := range arrays {
		a.Release()
	}
}
