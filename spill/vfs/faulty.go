package vfs

import (
	"io"
	"sync/atomic"
	"syscall"
)

// Faulty passes operations on to another FS and makes some of them fail. A
// test can fail operation 0, 1, 2, ... until what it does succeeds:
//
//	for k := int64(0); ; k++ {
//		fs := &vfs.Faulty{Inner: vfs.OS(), Err: syscall.EIO}
//		fs.FailAfter(k)
//		... run; check that nothing is left ...
//		if !fs.Failed() { break }
//	}
type Faulty struct {
	Inner FS
	// Err is what the chosen operation fails with.
	Err error
	// Capacity is how many bytes fit in all files together before writes fail
	// with ENOSPC, having written what still fitted; 0 means any number.
	Capacity int64

	countdown atomic.Int64 // operations that still succeed, plus one; 0: no fault chosen
	failed    atomic.Bool
	used      atomic.Int64
	files     atomic.Int64
}

// FailAfter chooses the operation that fails: the one after n others.
func (f *Faulty) FailAfter(n int64) { f.countdown.Store(n + 1) }

// Failed reports whether the chosen operation was reached.
func (f *Faulty) Failed() bool { return f.failed.Load() }

// OpenFiles is the number of files and locks that are not closed.
func (f *Faulty) OpenFiles() int64 { return f.files.Load() }

func (f *Faulty) step() error {
	if f.countdown.Load() > 0 && f.countdown.Add(-1) == 0 {
		f.failed.Store(true)
		return f.Err
	}
	return nil
}

// Mkdir implements FS.
func (f *Faulty) Mkdir(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Inner.Mkdir(path)
}

// Create implements FS.
func (f *Faulty) Create(path string) (File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.Inner.Create(path)
	if err != nil {
		return nil, err
	}
	f.files.Add(1)
	return &faultyFile{File: file, fs: f}, nil
}

// Remove implements FS.
func (f *Faulty) Remove(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Inner.Remove(path)
}

// List implements FS.
func (f *Faulty) List(path string) ([]string, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	return f.Inner.List(path)
}

// Lock implements FS.
func (f *Faulty) Lock(path string) (io.Closer, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	lock, err := f.Inner.Lock(path)
	if err != nil {
		return nil, err
	}
	f.files.Add(1)
	return faultyLock{lock, f}, nil
}

type faultyLock struct {
	io.Closer
	fs *Faulty
}

func (l faultyLock) Close() error {
	l.fs.files.Add(-1)
	return l.Closer.Close()
}

type faultyFile struct {
	File
	fs      *Faulty
	written atomic.Int64
}

func (f *faultyFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.fs.step(); err != nil {
		return 0, err
	}
	fits := int64(len(p))
	if f.fs.Capacity > 0 {
		if over := f.fs.used.Add(fits) - f.fs.Capacity; over > 0 {
			f.fs.used.Add(-min(over, fits))
			fits = max(0, fits-over)
		}
	}
	n, err := f.File.WriteAt(p[:fits], offset)
	f.written.Add(int64(n))
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *faultyFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.fs.step(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

func (f *faultyFile) Close() error {
	f.fs.files.Add(-1)
	if f.fs.Capacity > 0 {
		f.fs.used.Add(-f.written.Load()) // a spill file is closed when it is removed
	}
	err := f.fs.step()
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	return err
}
