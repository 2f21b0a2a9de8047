// Package vfs is the little of a file system that spilling needs, so that
// tests can make it fail.
//
//	spill.Dir ──> FS ──┬── OS()            the machine's disk
//	                   └── Faulty{Inner}   fails the k-th operation, or is full
package vfs

import (
	"errors"
	"io"
)

// FS creates private files and directories and takes locks on them. Its methods
// are safe for concurrent use. Errors match fs.ErrNotExist, fs.ErrExist and so on.
type FS interface {
	// Mkdir makes a directory that only the user may enter and that does not
	// exist yet.
	Mkdir(path string) error
	// Create makes a file that only the user may read and that does not exist yet.
	Create(path string) (File, error)
	// Remove removes a file or an empty directory.
	Remove(path string) error
	// List returns the names in a directory.
	List(path string) ([]string, error)
	// Lock takes the lock that a file stands for, creating the file if need
	// be. It fails with ErrLocked while another holder, of this process or
	// another, has it, and with ErrGone when the file was removed meanwhile.
	// Closing gives the lock up, and so does the end of the process.
	Lock(path string) (io.Closer, error)
}

// File is an open file, for use by several goroutines at a time.
type File interface {
	io.WriterAt
	io.ReaderAt
	io.Closer
}

var (
	// ErrLocked is the error of a lock that another holder has.
	ErrLocked = errors.New("the lock is held by another process")
	// ErrGone is the error of a lock whose file was removed while it was taken.
	ErrGone = errors.New("the lock file was removed")
)
