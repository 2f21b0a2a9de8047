package bridge

// #include <stdlib.h>
// #include "host.h"
import "C"

import (
	"context"
	"io"
	"strings"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
)

// Host is what a host brings along: storage, a reader of formats, both or
// none. The callback tables are copied into C memory, which callbacks get.
type Host struct {
	storage *C.struct_iex_storage
	reader  *C.struct_iex_reader
	release sync.Once
}

// NewHost copies a host's tables, either of which may be nil: storage points to
// a struct iex_storage, reader to a struct iex_reader, both of the full size.
// The caller releases the host, also after an error.
func NewHost(storage, reader unsafe.Pointer) (*Host, error) {
	h := &Host{}
	if s := (*C.struct_iex_storage)(storage); s != nil {
		h.storage = (*C.struct_iex_storage)(C.malloc(C.sizeof_struct_iex_storage))
		*h.storage = *s
	}
	if r := (*C.struct_iex_reader)(reader); r != nil {
		h.reader = (*C.struct_iex_reader)(C.malloc(C.sizeof_struct_iex_reader))
		*h.reader = *r
	}
	if s := h.storage; s != nil && (s.open == nil || s.size == nil || s.read_at == nil || s.close == nil) {
		return h, errs.New(errs.InvalidArgument, "storage needs the callbacks open, size, read_at and close")
	}
	if r := h.reader; r != nil && r.read == nil {
		return h, errs.New(errs.InvalidArgument, "reader needs the callback read")
	}
	return h, nil
}

// Release tells the host that its tables are not used any more. Idempotent.
func (h *Host) Release() {
	h.release.Do(func() {
		if h.storage != nil {
			C.iex_host_release_storage(h.storage)
			C.free(unsafe.Pointer(h.storage))
		}
		if h.reader != nil {
			C.iex_host_release_reader(h.reader)
			C.free(unsafe.Pointer(h.reader))
		}
	})
}

// FS is the storage that an engine with this host uses: the host's for the
// schemes that it serves, the engine's own for the rest; nil when the host
// brings none.
func (h *Host) FS() fileio.FS {
	if h.storage == nil {
		return nil
	}
	fs := &hostFS{storage: h.storage}
	if h.storage.schemes == nil {
		return fs
	}
	local := fileio.NewLocal()
	byScheme := map[string]fileio.FS{"": local, "file": local}
	for _, scheme := range strings.Split(C.GoString(h.storage.schemes), ",") {
		byScheme[strings.ToLower(strings.TrimSpace(scheme))] = fs
	}
	return fileio.NewMux(byScheme, nil)
}

// Reader is the host's reader of formats, nil when it brings none. What the
// host's batches do not share is copied into alloc's memory.
func (h *Host) Reader(alloc memory.Allocator) func(ctx context.Context, location, format string, fieldIDs []int) (batch.Stream, error) {
	if h.reader == nil {
		return nil
	}
	return func(ctx context.Context, location, format string, fieldIDs []int) (batch.Stream, error) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		clocation, cformat := C.CString(location), C.CString(strings.ToLower(format))
		defer C.free(unsafe.Pointer(clocation))
		defer C.free(unsafe.Pointer(cformat))
		var ids *C.int32_t
		if fieldIDs != nil {
			table := make([]C.int32_t, len(fieldIDs)+1) // not NULL, which would ask for all
			for i, id := range fieldIDs {
				table[i] = C.int32_t(id)
			}
			ids = unsafe.SliceData(table)
		}
		var out C.struct_ArrowArrayStream
		var cerr C.struct_iex_error
		if err := hostError(C.iex_host_read(h.reader, clocation, cformat, ids, C.size_t(len(fieldIDs)), &out, &cerr), &cerr); err != nil {
			return nil, errs.Wrap(err, "read", location)
		}
		stream, err := Import(unsafe.Pointer(&out), alloc)
		return stream, errs.Wrap(err, "read", location)
	}
}

// hostError turns the outcome of a callback into an error, nil for IEX_OK.
func hostError(status C.iex_status, cerr *C.struct_iex_error) error {
	defer C.iex_host_release_error(cerr)
	if status == C.IEX_OK {
		return nil
	}
	code := errs.Code(status)
	if code < errs.InvalidArgument || code > errs.Unusable {
		code = errs.Internal
	}
	if cerr.message == nil || *cerr.message == 0 {
		return errs.New(code, "the host's callback gave status %d and no message", status)
	}
	return errs.New(code, "%s", C.GoString(cerr.message))
}

// hostFS is fileio.FS over the host's callbacks.
type hostFS struct{ storage *C.struct_iex_storage }

func (fs *hostFS) Open(ctx context.Context, location string) (fileio.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	clocation := C.CString(location)
	defer C.free(unsafe.Pointer(clocation))
	f := &hostFile{storage: fs.storage, location: location}
	var cerr C.struct_iex_error
	if err := hostError(C.iex_host_open(fs.storage, clocation, &f.file, &cerr), &cerr); err != nil {
		return nil, errs.Wrap(err, "open", location)
	}
	var size C.int64_t
	err := hostError(C.iex_host_size(fs.storage, f.file, &size, &cerr), &cerr)
	if err == nil && size < 0 {
		err = errs.New(errs.Internal, "the host says that the file has %d bytes", size)
	}
	if err != nil {
		C.iex_host_close(fs.storage, f.file)
		return nil, errs.Wrap(err, "open", location)
	}
	f.size = int64(size)
	return f, nil
}

func (fs *hostFS) Create(ctx context.Context, location string) (fileio.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s := fs.storage
	if s.create == nil || s.write == nil || s.finish == nil || s.abort == nil {
		return nil, errs.At(errs.Unsupported, "create", location, "the host's storage can only be read")
	}
	clocation := C.CString(location)
	defer C.free(unsafe.Pointer(clocation))
	w := &hostWriter{storage: s, location: location}
	var cerr C.struct_iex_error
	if err := hostError(C.iex_host_create(s, clocation, &w.file, &cerr), &cerr); err != nil {
		return nil, errs.Wrap(err, "create", location)
	}
	return w, nil
}

func (fs *hostFS) Remove(ctx context.Context, location string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if fs.storage.remove == nil {
		return errs.At(errs.Unsupported, "remove", location, "the host's storage can only be read")
	}
	clocation := C.CString(location)
	defer C.free(unsafe.Pointer(clocation))
	var cerr C.struct_iex_error
	return errs.Wrap(hostError(C.iex_host_remove(fs.storage, clocation, &cerr), &cerr), "remove", location)
}

type hostFile struct {
	storage  *C.struct_iex_storage
	location string
	file     C.uintptr_t
	size     int64
}

func (f *hostFile) Size() int64 { return f.size }

// ReadAt asks again after a short read, as io.ReaderAt promises.
func (f *hostFile) ReadAt(p []byte, offset int64) (int, error) {
	done := 0
	for done < len(p) {
		var n C.size_t
		var cerr C.struct_iex_error
		rest := p[done:]
		err := hostError(C.iex_host_read_at(f.storage, f.file, C.int64_t(offset+int64(done)),
			unsafe.Pointer(unsafe.SliceData(rest)), C.size_t(len(rest)), &n, &cerr), &cerr)
		switch {
		case err != nil:
			return done, errs.Wrap(err, "read", f.location)
		case n == 0:
			return done, io.EOF
		case int(n) > len(rest):
			return done, errs.At(errs.Internal, "read", f.location, "the host says that it has read %d bytes of %d", n, len(rest))
		}
		done += int(n)
	}
	return done, nil
}

func (f *hostFile) Close() error {
	C.iex_host_close(f.storage, f.file)
	return nil
}

type hostWriter struct {
	storage  *C.struct_iex_storage
	location string
	file     C.uintptr_t
	ended    bool
}

func (w *hostWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var cerr C.struct_iex_error
	err := hostError(C.iex_host_write(w.storage, w.file, unsafe.Pointer(unsafe.SliceData(p)), C.size_t(len(p)), &cerr), &cerr)
	if err != nil {
		return 0, errs.Wrap(err, "write", w.location)
	}
	return len(p), nil
}

func (w *hostWriter) Close() error {
	w.ended = true
	var cerr C.struct_iex_error
	return errs.Wrap(hostError(C.iex_host_finish(w.storage, w.file, &cerr), &cerr), "write", w.location)
}

func (w *hostWriter) Abort() error {
	if !w.ended {
		w.ended = true
		C.iex_host_abort(w.storage, w.file)
	}
	return nil
}
