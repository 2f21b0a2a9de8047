// Package fileio opens, creates and removes the files that table metadata
// names, wherever they are stored.
//
//	location, as stored in metadata        "s3://old/t/data/f.parquet"
//	   |
//	WithPrefixes    configured moves       "/mnt/t/data/f.parquet"
//	   |
//	NewMux          one FS for a scheme    "" and "file" --> NewLocal
//	   |
//	File (ReadAt) / Writer (durable Close)
//
// A location is opened by whatever normalisation its storage wants, and stays
// in plans and comparisons exactly as the metadata spells it. Errors name the
// location that was opened.
package fileio

import (
	"context"
	"io"
	"strings"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// File is an immutable file open for reading. ReadAt is safe for concurrent
// use; Close is called once, after every ReadAt has returned.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Writer is a new file. The file exists for readers once Close has returned
// without error: then it is durable. After Close, Abort does nothing, so that
// a deferred Abort covers every error path.
type Writer interface {
	io.Writer
	// Close makes the file durable; on an error it removes the file.
	Close() error
	// Abort closes and removes a file that is not closed yet.
	Abort() error
}

// FS is one kind of storage. Every method is safe for concurrent use and
// returns errors that name the operation and the location.
type FS interface {
	Open(ctx context.Context, location string) (File, error)
	// Create makes a file that must not exist yet.
	Create(ctx context.Context, location string) (Writer, error)
	Remove(ctx context.Context, location string) error
}

// ReadAll reads a whole file that may hold at most limit bytes. For metadata
// documents and other files whose use needs them in one piece.
func ReadAll(ctx context.Context, fs FS, location string, limit int64) (content []byte, err error) {
	f, err := fs.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := f.Close(); err == nil && closeErr != nil {
			content, err = nil, errs.Wrap(closeErr, "close", location)
		}
	}()
	size := f.Size()
	if size > limit {
		return nil, errs.At(errs.Unsupported, "read", location, "the file has %s; at most %s are read at once",
			mem.FormatBytes(size), mem.FormatBytes(limit))
	}
	content = make([]byte, size)
	n, err := f.ReadAt(content, 0)
	if int64(n) == size {
		return content, nil // io.EOF may come with the last byte
	}
	if err == nil || err == io.EOF {
		return nil, errs.At(errs.Corrupt, "read", location, "the file ended after %d of %d bytes", n, size)
	}
	return nil, errs.Wrap(err, "read", location)
}

// Scheme is the lower-case URI scheme of a location, or "" for a plain path. A
// scheme is followed by "//", except that "file:/x" is a URI too; so relative
// paths may hold colons.
func Scheme(location string) string {
	colon := strings.IndexByte(location, ':')
	if colon <= 0 {
		return ""
	}
	for i := range colon {
		c := location[i] | 0x20
		letter := 'a' <= c && c <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(location[i]))) {
			return ""
		}
	}
	scheme := strings.ToLower(location[:colon])
	if scheme != "file" && !strings.HasPrefix(location[colon+1:], "//") {
		return ""
	}
	return scheme
}
