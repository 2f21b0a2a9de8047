package main

// #include "shim.h"
import "C"

import (
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// handles finds the object behind an address that a caller holds. The address
// is a number here and never followed, so that any value may be asked for.
type handles[T any] struct {
	kind string // for messages: "engine", "stream"
	mu   sync.RWMutex
	live map[uintptr]*T
}

var (
	engines = handles[engineHandle]{kind: "engine", live: map[uintptr]*engineHandle{}}
	streams = handles[streamHandle]{kind: "stream", live: map[uintptr]*streamHandle{}}
)

// add makes a handle for an object.
func (h *handles[T]) add(object *T) (uintptr, error) {
	cell := uintptr(C.iex_cell_new())
	if cell == 0 {
		return 0, errs.New(errs.MemoryLimit, "the system has no memory left for a handle")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[cell] = object
	return cell, nil
}

func (h *handles[T]) get(cell uintptr) (*T, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if object, ok := h.live[cell]; ok {
		return object, nil
	}
	if cell == 0 {
		return nil, errs.New(errs.InvalidArgument, "the %s is NULL", h.kind)
	}
	return nil, errs.New(errs.InvalidArgument, "%#x is not a live %s; it was released, or never was one", cell, h.kind)
}

// take removes a handle and returns its object.
func (h *handles[T]) take(cell uintptr) (*T, error) {
	object, err := h.get(cell)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live[cell] != object {
		return nil, errs.New(errs.InvalidArgument, "%#x is not a live %s; it was released", cell, h.kind)
	}
	delete(h.live, cell)
	return object, nil
}
