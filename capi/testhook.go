//go:build iextest

package main

// #include <stdlib.h>
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/task"
)

// A library built with the tag iextest misbehaves as the environment says, so
// that C programs can test what must hold when the engine has a defect:
//
//	IEX_TEST_PANIC=iex_stream_next   panic in this function, or callback (get_next)
//	IEX_TEST_PANIC=goroutine         panic in a goroutine that works for a stream
//	IEX_TEST_SLOW=300ms              each batch takes this long
//
// The variables are read at each call, from C's environment, which a program
// can change while it runs.
func setting(name string) string {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return C.GoString(C.getenv(cname))
}

func testPanic(name string) {
	if setting("IEX_TEST_PANIC") == name {
		panic("a test asked for a panic in " + name)
	}
}

func testRows(rows batch.Stream) batch.Stream { return &testStream{Stream: rows} }

// testStream is a stream that is slow or defect on demand. A wait that the
// caller gives up goes on at its next call.
type testStream struct {
	batch.Stream
	ready time.Time
}

func (s *testStream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if setting("IEX_TEST_PANIC") == "goroutine" {
		group := task.NewGroup(ctx)
		group.Go("test goroutine", func(context.Context) error { panic("a test asked for a panic in a goroutine") })
		return nil, group.Wait()
	}
	if slow, err := time.ParseDuration(setting("IEX_TEST_SLOW")); err == nil {
		if s.ready.IsZero() {
			s.ready = time.Now().Add(slow)
		}
		select {
		case <-time.After(time.Until(s.ready)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		s.ready = time.Time{}
	}
	return s.Stream.Next(ctx)
}
