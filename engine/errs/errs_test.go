package errs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/icebergexec/icebergexec/engine/errs"
)

func TestText(t *testing.T) {
	_, missing := os.Open("/nowhere/at/all")
	for _, test := range []struct {
		err  error
		code errs.Code
		text string
	}{
		{errs.New(errs.InvalidArgument, "limit is %d", -1), errs.InvalidArgument, "limit is -1"},
		{errs.At(errs.Corrupt, "read", "/f", "bad magic"), errs.Corrupt, "read /f: bad magic"},
		{errs.Wrap(missing, "open", "s3://moved/f"), errs.NotFound, "open s3://moved/f: no such file or directory"},
		{errs.Wrap(errs.New(errs.Unsupported, "codec LZO"), "read", "/f"), errs.Unsupported, "read /f: codec LZO"},
		{errs.Wrap(errs.Wrap(missing, "open", "/f"), "scan", "/t"), errs.NotFound, "open /f: no such file or directory"},
		{errs.Wrap(errs.New(errs.MemoryLimit, "keys need more"), "read", "/f"), errs.MemoryLimit, "keys need more"},
		{errs.Wrap(context.Canceled, "read", "/f"), errs.Cancelled, "read /f: context canceled"},
		{errs.WrapAs(errs.Corrupt, errors.New("short page"), "read", "/f"), errs.Corrupt, "read /f: short page"},
		{errs.WrapAs(errs.Corrupt, fs.ErrPermission, "read", "/f"), errs.PermissionDenied, "read /f: permission denied"},
		{errs.Wrap(fmt.Errorf("block 3: %w", errs.At(errs.Corrupt, "read", "/f", "bad")), "scan", "/t"), errs.Corrupt, "block 3: read /f: bad"},
		{&errs.Error{Code: errs.Internal, Op: "scan"}, errs.Internal, "scan"},
	} {
		if test.err.Error() != test.text || errs.CodeOf(test.err) != test.code {
			t.Errorf("got %v %q, want %v %q", errs.CodeOf(test.err), test.err, test.code, test.text)
		}
	}
}

func TestNilStaysNil(t *testing.T) {
	if errs.Wrap(nil, "read", "/f") != nil || errs.WrapAs(errs.Corrupt, nil, "read", "/f") != nil || errs.CodeOf(nil) != errs.OK {
		t.Error("nil became an error")
	}
}

func TestCodeOfCauses(t *testing.T) {
	for _, test := range []struct {
		err  error
		code errs.Code
	}{
		{errors.New("anything"), errs.Internal},
		{context.DeadlineExceeded, errs.Cancelled},
		{&fs.PathError{Op: "open", Path: "/f", Err: syscall.EACCES}, errs.PermissionDenied},
		{&fs.PathError{Op: "write", Path: "/f", Err: syscall.ENOSPC}, errs.SpillFull},
		{syscall.EDQUOT, errs.SpillFull},
		{fmt.Errorf("wrapped: %w", fs.ErrNotExist), errs.NotFound},
	} {
		if got := errs.CodeOf(test.err); got != test.code {
			t.Errorf("%v: got %v, want %v", test.err, got, test.code)
		}
	}
}

// TestNumbers pins the codes, the names and the errnos that the C ABI promises.
func TestNumbers(t *testing.T) {
	for _, test := range []struct {
		code  errs.Code
		n     int32
		name  string
		errno syscall.Errno
	}{
		{errs.OK, 0, "OK", 0},
		{errs.InvalidArgument, 1, "InvalidArgument", syscall.EINVAL},
		{errs.NotFound, 2, "NotFound", syscall.ENOENT},
		{errs.MemoryLimit, 3, "MemoryLimit", syscall.ENOMEM},
		{errs.SpillFull, 4, "SpillFull", syscall.ENOSPC},
		{errs.Cancelled, 5, "Cancelled", syscall.ECANCELED},
		{errs.Corrupt, 6, "Corrupt", syscall.EIO},
		{errs.Unsupported, 7, "Unsupported", syscall.ENOSYS},
		{errs.PermissionDenied, 8, "PermissionDenied", syscall.EACCES},
		{errs.Internal, 9, "Internal", syscall.EIO},
		{errs.Unusable, 10, "Unusable", syscall.EIO},
		{errs.Code(99), 99, "Code(99)", syscall.EIO},
	} {
		if int32(test.code) != test.n || test.code.String() != test.name || test.code.Errno() != test.errno {
			t.Errorf("%v: number %d, errno %v", test.code, int32(test.code), test.code.Errno())
		}
	}
}

func TestRecovered(t *testing.T) {
	err := errs.Recovered("scan", "index out of range", []byte("stack"))
	if err.Code != errs.Internal || err.Detail["stack"] != "stack" || !strings.Contains(err.Error(), "scan: internal error") {
		t.Errorf("got %v", err)
	}
}
