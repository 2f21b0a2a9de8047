//go:build unix

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

type osFS struct{}

// OS is the machine's file system.
func OS() FS { return osFS{} }

func (osFS) Mkdir(path string) error { return os.Mkdir(path, 0o700) }

func (osFS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err // not a File that holds a nil *os.File
	}
	return f, nil
}

func (osFS) Remove(path string) error { return os.Remove(path) }

func (osFS) List(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

func (osFS) Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := takeLock(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func takeLock(f *os.File, path string) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	if err := raw.Control(func(fd uintptr) { lockErr = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) }); err != nil {
		return err
	}
	if errors.Is(lockErr, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	if lockErr != nil {
		return &fs.PathError{Op: "lock", Path: path, Err: lockErr}
	}
	// Whoever held the lock before may have removed the file: then the lock is
	// on something that nobody else can find.
	held, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(held, found) {
		return ErrGone
	}
	return err
}
