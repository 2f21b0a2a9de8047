package enginetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/icebergexec/icebergexec/engine/fileio"
)

// ErrFault is the cause of every error that a FaultFS makes.
var ErrFault = errors.New("injected fault")

// FaultFS passes operations on to another FS and fails one of them, so that a
// test can fail operation 0, 1, 2, ... until what it does succeeds:
//
//	for k := int64(0); ; k++ {
//		fs := enginetest.NewFaultFS(inner, k)
//		... run; check that nothing leaked ...
//		if !fs.Failed() { break }
//	}
type FaultFS struct {
	inner fileio.FS
	left  atomic.Int64
}

// NewFaultFS fails the operation (open, read, create, write, close of a new
// file, remove) that comes after failAfter others.
func NewFaultFS(inner fileio.FS, failAfter int64) *FaultFS {
	fs := &FaultFS{inner: inner}
	fs.left.Store(failAfter)
	return fs
}

// Failed reports whether the fault has happened.
func (fs *FaultFS) Failed() bool { return fs.left.Load() < 0 }

func (fs *FaultFS) step() error {
	if fs.left.Add(-1) == -1 {
		return ErrFault
	}
	return nil
}

// Open implements fileio.FS.
func (fs *FaultFS) Open(ctx context.Context, location string) (fileio.File, error) {
	if err := fs.step(); err != nil {
		return nil, err
	}
	f, err := fs.inner.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: f, fs: fs}, nil
}

// Create implements fileio.FS.
func (fs *FaultFS) Create(ctx context.Context, location string) (fileio.Writer, error) {
	if err := fs.step(); err != nil {
		return nil, err
	}
	w, err := fs.inner.Create(ctx, location)
	if err != nil {
		return nil, err
	}
	return &faultWriter{Writer: w, fs: fs}, nil
}

// Remove implements fileio.FS.
func (fs *FaultFS) Remove(ctx context.Context, location string) error {
	if err := fs.step(); err != nil {
		return err
	}
	return fs.inner.Remove(ctx, location)
}

type faultFile struct {
	fileio.File
	fs *FaultFS
}

func (f *faultFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.fs.step(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

type faultWriter struct {
	fileio.Writer
	fs *FaultFS
}

func (w *faultWriter) Write(p []byte) (int, error) {
	if err := w.fs.step(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

func (w *faultWriter) Close() error {
	if err := w.fs.step(); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Writer.Close()
}
