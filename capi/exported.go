package main

// #include <errno.h>
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/icebergexec/icebergexec/bridge"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// exports are the streams behind ArrowArrayStreams, by the cell in their
// private data.
var exports = handles[streamHandle]{kind: "exported stream", live: map[uintptr]*streamHandle{}}

// watchReleases starts the goroutine that ends the streams whose
// ArrowArrayStream was released. It runs until the process ends.
var watchReleases = sync.OnceFunc(func() {
	process.background("end released streams", func() error {
		for {
			left := C.iex_released_wait()
			// The outcome has nobody to go to; a defect poisons the engine.
			s, err := exports.take(uintptr(left.cell))
			C.iex_exported_free(left)
			if err == nil {
				_ = fenced(&call{name: "release", owner: s.owner}, func(*call) error { return s.release(true) })
			}
		}
	})
})

//export iexgo_stream_export
func iexgo_stream_export(cell C.uintptr_t, out *C.struct_ArrowArrayStream, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_stream_export", cerr, func(c *call) error {
		s, err := c.lookup(uintptr(cell))
		if err != nil {
			return err
		}
		watchReleases()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.exported || s.started {
			return errs.New(errs.InvalidArgument, "%s: a stream can be exported once, and only before its first iex_stream_next", c.name)
		}
		exportCell, err := exports.add(s)
		if err != nil {
			return err
		}
		if C.iex_stream_wrap(C.uintptr_t(exportCell), out) != 0 {
			_, _ = exports.take(exportCell)
			return errs.New(errs.MemoryLimit, "%s: the system has no memory left", c.name)
		}
		s.exported = true
		s.handles++
		return nil
	})
}

//export iexgo_exported_schema
func iexgo_exported_schema(exported unsafe.Pointer, out *C.struct_ArrowSchema) C.int {
	return callback("get_schema", exported, func(s *streamHandle) error {
		return bridge.ExportSchema(s.schema, unsafe.Pointer(out))
	})
}

//export iexgo_exported_next
func iexgo_exported_next(exported unsafe.Pointer, out *C.struct_ArrowArray) C.int {
	return callback("get_next", exported, func(s *streamHandle) error {
		if err := s.next(-1, unsafe.Pointer(out)); err != errEnd {
			return err
		}
		return nil // out stays released, which is the end
	})
}

// callback runs a callback of an ArrowArrayStream behind the fence, keeps its
// error for get_last_error and iex_stream_error, and returns its errno.
func callback(name string, exported unsafe.Pointer, body func(*streamHandle) error) C.int {
	x := (*C.struct_iex_exported)(exported)
	s, err := exports.get(uintptr(x.cell))
	if err == nil {
		err = fenced(&call{name: name, owner: s.owner}, func(*call) error { return body(s) })
	}
	if err == nil {
		return 0
	}
	message := C.CString(err.Error())
	C.iex_exported_fail(x, message)
	C.free(unsafe.Pointer(message))
	if s != nil {
		s.mu.Lock()
		s.failure = err
		s.mu.Unlock()
	}
	return C.int(errs.CodeOf(err).Errno())
}

//export iexgo_exported_error
func iexgo_exported_error(exported unsafe.Pointer, cerr *C.struct_iex_error) C.iex_status {
	return do("iex_stream_error", cerr, func(c *call) error {
		s, err := exports.get(uintptr((*C.struct_iex_exported)(exported).cell))
		if err != nil {
			return errs.Wrap(err, c.name, "")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.failure
	})
}
