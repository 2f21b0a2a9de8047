// Package errs defines the numbered errors that every layer of the engine
// returns and that the C ABI and the Python package translate.
//
//	cause (os, parquet, avro, ...)          errs.Error                    capi / python
//	fs.ErrNotExist  --Wrap("open", path)-->  NotFound "open path: ..."  -->  ENOENT / FileNotFoundError
//
// An error message reads "operation path: cause" and says what, where and what
// to do. Operation and path are added once, at the place that knows them best:
// Wrap leaves an error alone that already carries a path.
package errs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// Code is the kind of an error. The numbers are part of the C ABI: they are
// assigned by hand, never reused and never renumbered.
type Code int32

const (
	// OK is the code of a nil error.
	OK Code = 0
	// InvalidArgument: a request, option or expression is wrong; the caller must change it.
	InvalidArgument Code = 1
	// NotFound: a file, snapshot or reference does not exist.
	NotFound Code = 2
	// MemoryLimit: a reservation could not grow and nothing could spill.
	MemoryLimit Code = 3
	// SpillFull: the spill disk or its budget is exhausted. Never used for memory.
	SpillFull Code = 4
	// Cancelled: the caller cancelled the operation or closed its engine.
	Cancelled Code = 5
	// Corrupt: a file's bytes contradict themselves or the metadata that names them.
	Corrupt Code = 6
	// Unsupported: valid input that this engine cannot process.
	Unsupported Code = 7
	// PermissionDenied: storage refused access.
	PermissionDenied Code = 8
	// Internal: a defect of the engine, or an I/O failure without a better code.
	Internal Code = 9
	// Unusable: the engine handle met a panic before and refuses further work.
	Unusable Code = 10
)

var codeNames = map[Code]string{
	OK: "OK", InvalidArgument: "InvalidArgument", NotFound: "NotFound", MemoryLimit: "MemoryLimit",
	SpillFull: "SpillFull", Cancelled: "Cancelled", Corrupt: "Corrupt", Unsupported: "Unsupported",
	PermissionDenied: "PermissionDenied", Internal: "Internal", Unusable: "Unusable",
}

func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("Code(%d)", int32(c))
}

// Error is the engine's error type. Op and Path may be empty; Detail holds
// machine-readable facts (for example "needed_bytes") and may be nil.
type Error struct {
	Code   Code
	Op     string
	Path   string
	Msg    string
	Detail map[string]any
	Err    error
}

// Error renders "op path: message: cause", leaving out what is empty.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Path != "" {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if strings.ContainsFunc(e.Path, unicode.IsControl) {
			b.WriteString(strconv.Quote(e.Path)) // a NUL would end the message in C
		} else {
			b.WriteString(e.Path)
		}
	}
	for _, part := range []string{e.Msg, causeText(e.Err)} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	return b.String()
}

// causeText drops the operation and path that *fs.PathError repeats: the
// surrounding Error names them already.
func causeText(err error) string {
	if err == nil {
		return ""
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// New makes an error of the given code.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// At makes an error of the given code about one file or location.
func At(code Code, op, path, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Path: path, Msg: fmt.Sprintf(format, args...)}
}

// Wrap adds operation and path to a cause and derives the code from it. An
// error that already names a path is returned unchanged; nil stays nil.
func Wrap(err error, op, path string) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		if known.Path != "" || known.Code == Cancelled || known.Code == MemoryLimit {
			return err
		}
		return &Error{Code: known.Code, Op: op, Path: path, Detail: known.Detail, Err: err}
	}
	return &Error{Code: CodeOf(err), Op: op, Path: path, Err: err}
}

// WrapAs is Wrap with a code for causes that carry none of their own, such as
// a decoder's error about damaged bytes.
func WrapAs(code Code, err error, op, path string) error {
	if err == nil {
		return nil
	}
	if c := CodeOf(err); c != Internal {
		return Wrap(err, op, path)
	}
	return &Error{Code: code, Op: op, Path: path, Err: err}
}

// CodeOf finds the code of any error: its own, or the one that fits a
// standard-library cause. A nil error is OK; an unknown one Internal.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var known *Error
	switch {
	case errors.As(err, &known):
		return known.Code
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Cancelled
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return PermissionDenied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return SpillFull
	}
	return Internal
}

// Errno is the errno that an Arrow C stream callback returns for the code.
func (c Code) Errno() syscall.Errno {
	switch c {
	case OK:
		return 0
	case InvalidArgument:
		return syscall.EINVAL
	case NotFound:
		return syscall.ENOENT
	case MemoryLimit:
		return syscall.ENOMEM
	case SpillFull:
		return syscall.ENOSPC
	case Cancelled:
		return syscall.ECANCELED
	case Unsupported:
		return syscall.ENOSYS
	case PermissionDenied:
		return syscall.EACCES
	}
	return syscall.EIO
}

// Recovered turns the value of recover() into an Internal error. where names
// the goroutine or function that panicked; the stack belongs into Detail.
func Recovered(where string, value any, stack []byte) *Error {
	return &Error{
		Code:   Internal,
		Op:     where,
		Msg:    fmt.Sprintf("internal error (this is a defect of icebergexec, please report it): %v", value),
		Detail: map[string]any{"stack": string(stack)},
	}
}
