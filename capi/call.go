package main

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"unsafe"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Statuses of iex_stream_next that are neither a batch nor an error.
var (
	errPending = errors.New("pending")
	errEnd     = errors.New("end")
)

// call is one call of a public function.
type call struct {
	name  string
	owner *engineHandle // the engine it works for, as soon as that is known
}

// do runs the body of a public function behind the fence and turns its error
// into a status and the caller's error structure.
func do(name string, out *C.struct_iex_error, body func(c *call) error) C.iex_status {
	err := fenced(&call{name: name}, body)
	switch err {
	case nil:
		return C.IEX_OK
	case errPending:
		return C.IEX_PENDING
	case errEnd:
		return C.IEX_END
	}
	code := errs.CodeOf(err)
	if out != nil {
		message, detail := C.CString(err.Error()), C.CString(detailOf(err))
		C.iex_error_set(out, C.int32_t(code), message, detail)
		C.free(unsafe.Pointer(message))
		C.free(unsafe.Pointer(detail))
	}
	return C.iex_status(code)
}

// fenced runs body. A panic, here or in a goroutine that worked for the
// engine, makes that engine unusable and nothing else.
func fenced(c *call, body func(c *call) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errs.Recovered(c.name, v, debug.Stack())
		}
		if c.owner != nil && isDefect(err) {
			c.owner.poison(err)
		}
	}()
	testPanic(c.name)
	return body(c)
}

// isDefect tells the error of a recovered panic, which carries its stack.
func isDefect(err error) bool {
	var e *errs.Error
	return errors.As(err, &e) && e.Code == errs.Internal && e.Detail["stack"] != nil
}

// detailOf is the JSON object of what is known about an error beside its text.
func detailOf(err error) string {
	detail := map[string]any{"code": errs.CodeOf(err).String()}
	var e *errs.Error
	if errors.As(err, &e) {
		for k, v := range e.Detail {
			detail[k] = v
		}
		if e.Op != "" {
			detail["operation"] = e.Op
		}
		if e.Path != "" {
			detail["path"] = e.Path
		}
	}
	text, jsonErr := json.Marshal(detail)
	if jsonErr != nil {
		return "{}"
	}
	return string(text)
}

// isTimeout tells an error that only says that the caller's patience ended.
func isTimeout(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded)
}

// bytesOf is a request that stays in the caller's memory: it is read during
// the call only.
func bytesOf(text *C.char, size C.size_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(text)), int(size))
}

// writeJSON hands a document out.
func writeJSON(out **C.char, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return errs.WrapAs(errs.Internal, err, "encode", "")
	}
	*out = C.CString(string(text))
	return nil
}
