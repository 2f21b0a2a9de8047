// Package spill keeps what does not fit in memory in files of a private
// directory, and makes sure that nothing of them is left behind.
//
//	spill_dir/                     chosen by the user, never removed
//	 └── icebergexec-spill-1f9c…/  Dir: mode 0700, made by OpenDir, gone after Close
//	      ├── lock                 held as long as the process lives
//	      ├── 1.blocks             File: blocks with magic, codec, lengths, CRC32C
//	      └── 2.blocks
//
//	records ──> Partitions ──┐ a buffer and extents of the file for each
//	bytes ─────────────────> File.Append ──> Ref ──> File.Read ──> the same bytes
//	                         disk budget first, then the write
//
// A File is closed by removing it, which gives its bytes back to the budget.
// Directories of processes that died are found by their lock, which can be
// taken then; OpenDir removes what this package made in them.
package spill

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/spill/vfs"
)

const (
	dirPrefix  = "icebergexec-spill-"
	lockName   = "lock"
	fileSuffix = ".blocks"
	// A directory is lost to a sweeping process only between its creation and
	// its lock, so that a second attempt hardly ever loses again.
	openAttempts = 10
)

// Dir is a private directory for spill files. It is safe for concurrent use.
type Dir struct {
	fs   vfs.FS
	path string
	lock io.Closer
	disk *DiskBudget

	mu     sync.Mutex
	next   int
	files  map[*File]struct{}
	closed bool
}

// SweepReport tells what OpenDir did about directories of dead processes.
type SweepReport struct {
	// Removed are the directories that were removed, Failed those that could
	// not be, with the reason.
	Removed []string
	Failed  map[string]error
}

// OpenDir makes a private directory in parent, which must exist, after
// removing those that dead processes left there.
func OpenDir(ctx context.Context, fs vfs.FS, parent string, disk *DiskBudget) (*Dir, SweepReport, error) {
	report, err := Sweep(ctx, fs, parent)
	if err != nil {
		return nil, report, err
	}
	for range openAttempts {
		var d *Dir
		if d, err = makeDir(fs, parent, disk); err == nil {
			return d, report, nil
		}
		if !lostToSweep(err) {
			break
		}
	}
	return nil, report, diskError(err, "make a spill directory in", parent, 0)
}

// lostToSweep reports whether another process has taken a new directory for a
// dead process's, which it was for a moment.
func lostToSweep(err error) bool {
	return errors.Is(err, vfs.ErrLocked) || errors.Is(err, vfs.ErrGone) || errors.Is(err, fs.ErrNotExist)
}

func makeDir(fs vfs.FS, parent string, disk *DiskBudget) (*Dir, error) {
	var name [12]byte
	rand.Read(name[:]) // never fails
	path := filepath.Join(parent, dirPrefix+hex.EncodeToString(name[:]))
	if err := fs.Mkdir(path); err != nil {
		return nil, err
	}
	lock, err := fs.Lock(filepath.Join(path, lockName))
	if err != nil {
		if !lostToSweep(err) {
			removeAll(fs, path)
		}
		return nil, err
	}
	return &Dir{fs: fs, path: path, lock: lock, disk: disk, files: map[*File]struct{}{}}, nil
}

// Path is the private directory.
func (d *Dir) Path() string { return d.path }

// Sweep removes the spill directories in parent whose processes are dead. A
// directory whose lock is held is in use and stays untouched, and so is
// everything that does not carry the names that this package gives.
func Sweep(ctx context.Context, fs vfs.FS, parent string) (SweepReport, error) {
	report := SweepReport{Failed: map[string]error{}}
	names, err := fs.List(parent)
	if err != nil {
		return report, &errs.Error{Code: errs.CodeOf(err), Op: "open spill_dir", Path: parent, Err: err}
	}
	for _, name := range names {
		if !isDirName(name) {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return report, err
		}
		path := filepath.Join(parent, name)
		lock, err := fs.Lock(filepath.Join(path, lockName))
		if lostToSweep(err) {
			continue // alive, or another process sweeps it
		}
		if err == nil {
			err = errors.Join(removeAll(fs, path), lock.Close())
		}
		if err != nil {
			report.Failed[path] = err
		} else {
			report.Removed = append(report.Removed, path)
		}
	}
	return report, nil
}

func isDirName(name string) bool {
	random, ok := strings.CutPrefix(name, dirPrefix)
	_, err := hex.DecodeString(random)
	return ok && err == nil && len(random) == 24
}

// removeAll removes a spill directory: the files that this package made in it,
// the lock last, and then the directory if nothing else is there. It goes on
// after an error, so that as little as possible stays.
func removeAll(fs vfs.FS, path string) error {
	names, err := fs.List(path)
	if err != nil {
		return err
	}
	var first error
	remove := func(path string) {
		if err := fs.Remove(path); first == nil && err != nil && !isNotExist(err) {
			first = err
		}
	}
	for _, name := range names {
		number, ok := strings.CutSuffix(name, fileSuffix)
		if _, err := strconv.Atoi(number); ok && err == nil {
			remove(filepath.Join(path, name))
		}
	}
	remove(filepath.Join(path, lockName))
	if err := fs.Remove(path); first == nil && err != nil && !isNotExist(err) && !sweptByOther(fs, path, err) {
		first = err
	}
	return first
}

// sweptByOther reports whether a directory could not be removed because nothing
// but a new lock is in it: a process that sweeps made it after the old one was
// gone, and removes both.
func sweptByOther(disk vfs.FS, path string, err error) bool {
	if !errors.Is(err, fs.ErrExist) { // the file system's "not empty"
		return false
	}
	names, err := disk.List(path)
	return isNotExist(err) || err == nil && (len(names) == 0 || len(names) == 1 && names[0] == lockName)
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// NewFile makes an empty file of blocks.
func (d *Dir) NewFile() (*File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errs.At(errs.Cancelled, "spill to", d.path, "the directory is closed")
	}
	d.next++
	path := filepath.Join(d.path, strconv.Itoa(d.next)+fileSuffix)
	f, err := d.fs.Create(path)
	if err != nil {
		return nil, diskError(err, "spill to", d.path, blockHeader)
	}
	file := &File{dir: d, path: path, file: f}
	d.files[file] = struct{}{}
	return file, nil
}

func (d *Dir) forget(f *File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, f)
}

// Close removes the directory with every file in it. Idempotent.
func (d *Dir) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	var files []*File
	for f := range d.files {
		files = append(files, f)
	}
	d.mu.Unlock()
	var first error
	for _, f := range files {
		if err := f.Close(); first == nil {
			first = err
		}
	}
	if err := removeAll(d.fs, d.path); first == nil && err != nil {
		first = errs.Wrap(err, "remove", d.path)
	}
	if err := d.lock.Close(); first == nil && err != nil {
		first = errs.Wrap(err, "unlock", d.path)
	}
	return first
}
