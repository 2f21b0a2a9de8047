package loader

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/ebitengine/purego"
)

// The version of the C interface that this package is a client of.
const (
	abiMajor = 1
	abiMinor = 0
)

// Statuses of iex_stream_next that are neither a batch nor an error.
const (
	statusOK      = 0
	statusPending = -1
	statusEnd     = -2
)

// Code is the kind of an Error; the numbers are those of icebergexec.h.
type Code int32

const (
	InvalidArgument  Code = 1
	NotFound         Code = 2
	MemoryLimit      Code = 3
	SpillFull        Code = 4
	Cancelled        Code = 5
	Corrupt          Code = 6
	Unsupported      Code = 7
	PermissionDenied Code = 8
	Internal         Code = 9
	Unusable         Code = 10
)

// Error is what a call of the library reported.
type Error struct {
	Code    Code
	Message string
	// Detail is a JSON object of machine-readable facts, or empty.
	Detail string
}

func (e *Error) Error() string { return e.Message }

// cError is struct iex_error.
type cError struct {
	size            uintptr
	code            int32
	message, detail unsafe.Pointer
	release         uintptr
	private         unsafe.Pointer
}

// Library is a loaded library. There is no way to unload it.
type Library struct {
	path string

	abiVersion    func() int32
	version       func() unsafe.Pointer
	stringFree    func(text unsafe.Pointer)
	engineOpen    func(options *byte, size uintptr, out *unsafe.Pointer, err *cError) int32
	engineClose   func(engine *unsafe.Pointer, err *cError) int32
	engineStats   func(engine unsafe.Pointer, json *unsafe.Pointer, err *cError) int32
	scan          func(engine unsafe.Pointer, request *byte, size uintptr, out *unsafe.Pointer, err *cError) int32
	plan          func(engine unsafe.Pointer, request *byte, size uintptr, out *unsafe.Pointer, err *cError) int32
	streamSchema  func(stream unsafe.Pointer, out *cSchema, err *cError) int32
	streamNext    func(stream unsafe.Pointer, timeout int64, out *cArray, err *cError) int32
	streamCancel  func(stream unsafe.Pointer, err *cError) int32
	streamStats   func(stream unsafe.Pointer, json *unsafe.Pointer, err *cError) int32
	streamRelease func(stream *unsafe.Pointer, err *cError) int32
}

// Load loads the library at path, or the one that the system's loader finds
// under a plain name such as "libicebergexec.so.1", and checks its version.
func Load(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	l := &Library{path: path}
	for name, function := range map[string]any{
		"iex_abi_version": &l.abiVersion, "iex_version": &l.version, "iex_string_free": &l.stringFree,
		"iex_engine_open": &l.engineOpen, "iex_engine_close": &l.engineClose, "iex_engine_stats": &l.engineStats,
		"iex_scan": &l.scan, "iex_plan": &l.plan,
		"iex_stream_schema": &l.streamSchema, "iex_stream_next": &l.streamNext, "iex_stream_cancel": &l.streamCancel,
		"iex_stream_stats": &l.streamStats, "iex_stream_release": &l.streamRelease,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("load %s: it has no function %s: %w", path, name, err)
		}
		purego.RegisterFunc(function, symbol)
	}
	if abi := l.abiVersion(); abi>>16 != abiMajor || abi&0xffff < abiMinor {
		return nil, fmt.Errorf("load %s: the library has interface version %d.%d, this program needs %d.%d or a later %d.x",
			path, abi>>16, abi&0xffff, abiMajor, abiMinor, abiMajor)
	}
	return l, nil
}

// Version is the release of the library, such as "0.1.0".
func (l *Library) Version() string { return text(l.version()) }

// check turns a status into an error; negative statuses are none.
func (l *Library) check(status int32, e *cError) error {
	if status <= statusOK {
		return nil
	}
	err := &Error{Code: Code(status), Message: text(e.message), Detail: text(e.detail)}
	if e.release != 0 {
		purego.SyscallN(e.release, uintptr(unsafe.Pointer(e)))
		runtime.KeepAlive(e)
	}
	return err
}

func newError() *cError { return &cError{size: unsafe.Sizeof(cError{})} }

// document is a call that hands out a JSON text.
func (l *Library) document(call func(json *unsafe.Pointer, e *cError) int32) (string, error) {
	var json unsafe.Pointer
	e := newError()
	if err := l.check(call(&json, e), e); err != nil {
		return "", err
	}
	defer l.stringFree(json)
	return text(json), nil
}

// Engine runs operations within one memory limit. It is safe for concurrent
// use.
type Engine struct {
	library *Library
	handle  unsafe.Pointer
}

// OpenEngine makes an engine; options are the JSON "Engine options", or empty.
func (l *Library) OpenEngine(options string) (*Engine, error) {
	engine := &Engine{library: l}
	e := newError()
	if err := l.check(l.engineOpen(unsafe.StringData(options), uintptr(len(options)), &engine.handle, e), e); err != nil {
		return nil, err
	}
	return engine, nil
}

// Close cancels what runs and returns when it has ended. Batches stay valid
// until they are released. Idempotent.
func (e *Engine) Close() error {
	handle, cerr := e.handle, newError()
	return e.library.check(e.library.engineClose(&handle, cerr), cerr)
}

// Stats is the JSON "Engine statistics".
func (e *Engine) Stats() (string, error) {
	return e.library.document(func(json *unsafe.Pointer, cerr *cError) int32 { return e.library.engineStats(e.handle, json, cerr) })
}

// Scan reads a table; request is the JSON "Scan".
func (e *Engine) Scan(request string) (*Stream, error) { return e.start(e.library.scan, request) }

// Plan lists the files of a table; request is the JSON "Plan".
func (e *Engine) Plan(request string) (*Stream, error) { return e.start(e.library.plan, request) }

func (e *Engine) start(operation func(unsafe.Pointer, *byte, uintptr, *unsafe.Pointer, *cError) int32, request string) (*Stream, error) {
	s := &Stream{library: e.library}
	cerr := newError()
	size := uintptr(len(request))
	if err := e.library.check(operation(e.handle, unsafe.StringData(request+"\x00"), size, &s.handle, cerr), cerr); err != nil {
		return nil, err
	}
	schema := new(cSchema)
	err := e.library.check(e.library.streamSchema(s.handle, schema, cerr), cerr)
	if err == nil {
		s.schema, err = schema.schema()
		schema.free()
	}
	if err != nil {
		_ = s.Close() // the error that counts is the schema's
		return nil, err
	}
	return s, nil
}

// Stream is a pull iterator of record batches with one schema. Next is called
// by one goroutine at a time; Cancel and Stats by any.
type Stream struct {
	library *Library
	handle  unsafe.Pointer
	schema  *arrow.Schema
	close   sync.Once
}

// Schema is the schema of the batches.
func (s *Stream) Schema() *arrow.Schema { return s.schema }

// slice is how long one call of the library waits, so that a context that ends
// is seen soon.
const slice = 50 * time.Millisecond

// Next returns the next batch, which the caller releases, or io.EOF. When ctx
// ends the wait ends, and the stream can be read on.
func (s *Stream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	array, cerr := new(cArray), newError()
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch status := s.library.streamNext(s.handle, slice.Milliseconds(), array, cerr); status {
		case statusPending:
		case statusEnd:
			return nil, io.EOF
		case statusOK:
			return array.batch(s.schema)
		default:
			return nil, s.library.check(status, cerr)
		}
	}
}

// Cancel makes a running Next, and every later one, return Cancelled soon.
func (s *Stream) Cancel() error {
	cerr := newError()
	return s.library.check(s.library.streamCancel(s.handle, cerr), cerr)
}

// Stats is the JSON "Stream statistics".
func (s *Stream) Stats() (string, error) {
	return s.library.document(func(json *unsafe.Pointer, cerr *cError) int32 { return s.library.streamStats(s.handle, json, cerr) })
}

// Close ends the stream. Idempotent.
func (s *Stream) Close() (err error) {
	s.close.Do(func() {
		handle, cerr := s.handle, newError()
		err = s.library.check(s.library.streamRelease(&handle, cerr), cerr)
	})
	return err
}

// text copies a C string; NULL is empty.
func text(at unsafe.Pointer) string {
	if at == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(at, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(at), n))
}
