package fileio

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// NewLocal gives access to the local file system by plain paths and by file:
// URIs in the spellings file:/x, file:///x and file://localhost/x.
//
// The path of a file: URI is first taken literally, since Java and pyiceberg
// write partition folders such as "day=a%2Fb" under that very name; only when
// nothing has the literal name are percent-escapes decoded. New files get the
// literal name.
func NewLocal() FS { return local{} }

type local struct{}

var errNUL = errs.New(errs.InvalidArgument, "a path cannot contain a NUL character")

// localPaths lists the paths that a location may mean, the likeliest first.
func localPaths(location string) ([]string, error) {
	switch scheme := Scheme(location); scheme {
	case "":
		if location == "" {
			return nil, errs.New(errs.InvalidArgument, "the location is empty")
		}
		if strings.IndexByte(location, 0) >= 0 {
			return nil, errNUL
		}
		return []string{location}, nil
	case "file":
	default:
		return nil, unsupportedScheme(scheme, []string{"", "file"})
	}
	path, ok := filePath(location)
	if !ok {
		return nil, errs.New(errs.InvalidArgument, "the location %q is not an absolute path on this machine (file:/path, file:///path or file://localhost/path)", location)
	}
	if strings.IndexByte(path, 0) >= 0 {
		return nil, errNUL
	}
	paths := []string{path}
	if decoded, err := url.PathUnescape(path); err == nil && decoded != path && strings.IndexByte(decoded, 0) < 0 {
		paths = append(paths, decoded)
	}
	return paths, nil
}

// filePath is the undecoded path of a file: URI; false when the URI names
// another host or no absolute path.
func filePath(location string) (string, bool) {
	path := location[len("file:"):]
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return "", false
		}
		if host := rest[:slash]; host != "" && !strings.EqualFold(host, "localhost") {
			return "", false
		}
		path = rest[slash:]
	}
	return path, strings.HasPrefix(path, "/")
}

func (local) Open(ctx context.Context, location string) (File, error) {
	if err := ctx.Err(); err != nil {
		return nil, errs.Wrap(context.Cause(ctx), "open", location)
	}
	paths, err := localPaths(location)
	if err != nil {
		return nil, errs.Wrap(err, "open", location)
	}
	var first error
	for _, path := range paths {
		f, err := openRegular(path)
		if err == nil {
			f.location = location
			return f, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, errs.Wrap(first, "open", location)
}

// openRegular asks for the kind of the file before it opens it: opening a pipe
// would wait for a writer.
func openRegular(path string) (*localFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errs.New(errs.InvalidArgument, "is a directory, not a file")
	}
	if !info.Mode().IsRegular() {
		return nil, errs.New(errs.InvalidArgument, "is not a regular file (%s)", info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err != nil {
		_ = f.Close() // the error that counts is Stat's
		return nil, err
	}
	return &localFile{file: f, size: info.Size()}, nil
}

type localFile struct {
	file     *os.File
	size     int64
	location string
}

func (f *localFile) Size() int64 { return f.size }

func (f *localFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.file.ReadAt(p, offset)
	if err != nil && err != io.EOF {
		err = errs.Wrap(err, "read", f.location)
	}
	return n, err
}

func (f *localFile) Close() error { return errs.Wrap(f.file.Close(), "close", f.location) }

// Create makes missing parent folders, as tables on other storage need none.
func (local) Create(ctx context.Context, location string) (Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, errs.Wrap(context.Cause(ctx), "create", location)
	}
	paths, err := localPaths(location)
	if err != nil {
		return nil, errs.Wrap(err, "create", location)
	}
	path := paths[0]
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, errs.Wrap(err, "create", location)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, errs.At(errs.InvalidArgument, "create", location, "the file exists already")
	}
	if err != nil {
		return nil, errs.Wrap(err, "create", location)
	}
	return &localWriter{file: f, path: path, location: location}, nil
}

type localWriter struct {
	file     *os.File
	path     string
	location string
	ended    bool
}

func (w *localWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	return n, errs.Wrap(err, "write", w.location)
}

// Close syncs the file and the folder that names it.
func (w *localWriter) Close() error {
	if w.ended {
		return errs.At(errs.InvalidArgument, "close", w.location, "the writer has ended already")
	}
	w.ended = true
	err := w.file.Sync()
	if closeErr := w.file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = syncFolder(filepath.Dir(w.path))
	}
	if err != nil {
		_ = os.Remove(w.path) // the error that counts is the first
		return errs.Wrap(err, "close", w.location)
	}
	return nil
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if closeErr := folder.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (w *localWriter) Abort() error {
	if w.ended {
		return nil
	}
	w.ended = true
	err := w.file.Close()
	if removeErr := os.Remove(w.path); removeErr != nil {
		err = removeErr
	}
	return errs.Wrap(err, "abort", w.location)
}

func (local) Remove(ctx context.Context, location string) error {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(context.Cause(ctx), "remove", location)
	}
	paths, err := localPaths(location)
	if err != nil {
		return errs.Wrap(err, "remove", location)
	}
	var first error
	for _, path := range paths {
		err := removeFile(path)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return errs.Wrap(first, "remove", location)
}

// removeFile refuses folders, which os.Remove deletes when they are empty.
func removeFile(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errs.New(errs.InvalidArgument, "is a directory, not a file")
	}
	return os.Remove(path)
}
