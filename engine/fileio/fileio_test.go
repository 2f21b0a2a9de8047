package fileio_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
)

var ctx = context.Background()

func write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func wantError(tb testing.TB, err error, code errs.Code, parts ...string) {
	tb.Helper()
	if errs.CodeOf(err) != code {
		tb.Fatalf("got %v (%v), want code %v", err, errs.CodeOf(err), code)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			tb.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestLocalSpellings(t *testing.T) {
	enginetest.NoLeaks(t)
	dir := t.TempDir()
	write(t, dir+"/plain", "plain")
	write(t, dir+"/a b", "blank")
	write(t, dir+"/day=a%2Fb/f", "literal escape")
	write(t, dir+"/c%20d", "literal")
	write(t, dir+"/c d", "decoded")
	write(t, dir+"/q?x#y", "odd")
	write(t, dir+"/100%", "bad escape")
	tests := []struct{ location, content string }{
		{dir + "/plain", "plain"},
		{"file:" + dir + "/plain", "plain"},
		{"file://" + dir + "/plain", "plain"},
		{"file://localhost" + dir + "/plain", "plain"},
		{"FILE://LocalHost" + dir + "/plain", "plain"},
		{"file:///" + dir + "/plain", "plain"},
		{"file://" + dir + "/a%20b", "blank"},
		{"file://" + dir + "/a b", "blank"},
		{dir + "/a b", "blank"},
		{"file:" + dir + "/day=a%2Fb/f", "literal escape"},
		{dir + "/day=a%2Fb/f", "literal escape"},
		{"file:" + dir + "/c%20d", "literal"},
		{"file:" + dir + "/q?x#y", "odd"},
		{"file:" + dir + "/100%", "bad escape"},
	}
	for _, test := range tests {
		content, err := fileio.ReadAll(ctx, fileio.NewLocal(), test.location, 1<<20)
		if err != nil || string(content) != test.content {
			t.Errorf("%s: got %q, %v", test.location, content, err)
		}
	}
	if _, err := fileio.NewLocal().Open(ctx, dir+"/a%20b"); errs.CodeOf(err) != errs.NotFound {
		t.Errorf("a plain path is not decoded: got %v", err)
	}
}

func TestLocalOpenErrors(t *testing.T) {
	enginetest.NoLeaks(t)
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		location string
		code     errs.Code
		part     string
	}{
		{dir + "/none", errs.NotFound, "open " + dir + "/none: no such file"},
		{"file://" + dir + "/none%20", errs.NotFound, "no such file"},
		{dir, errs.InvalidArgument, "is a directory"},
		{dir + "/pipe", errs.InvalidArgument, "not a regular file"},
		{"file://elsewhere/x", errs.InvalidArgument, "not an absolute path on this machine"},
		{"file:x", errs.InvalidArgument, "not an absolute path on this machine"},
		{"file://", errs.InvalidArgument, "not an absolute path on this machine"},
		{"file:/x%00y", errs.NotFound, "no such file"},
		{"/x\x00y", errs.InvalidArgument, `open "/x\x00y": a path cannot contain a NUL character`},
		{"", errs.InvalidArgument, "empty"},
		{"s3://bucket/key", errs.Unsupported, "open s3://bucket/key: locations of scheme s3 cannot be opened: this engine opens local files only"},
	}
	for _, test := range tests {
		_, err := fileio.NewLocal().Open(ctx, test.location)
		wantError(t, err, test.code, test.part)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := fileio.NewLocal().Open(cancelled, dir+"/none")
	wantError(t, err, errs.Cancelled)
}

func TestLocalCreate(t *testing.T) {
	enginetest.NoLeaks(t)
	dir := t.TempDir()
	local := fileio.NewLocal()

	w, err := local.Create(ctx, "file://"+dir+"/new/day=a%2Fb/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "content"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatalf("Abort after Close: %v", err)
	}
	wantError(t, w.Close(), errs.InvalidArgument, "ended already")
	if content, err := os.ReadFile(dir + "/new/day=a%2Fb/f"); err != nil || string(content) != "content" {
		t.Fatalf("got %q, %v", content, err)
	}

	_, err = local.Create(ctx, dir+"/new/day=a%2Fb/f")
	wantError(t, err, errs.InvalidArgument, "exists already")

	aborted, err := local.Create(ctx, dir+"/aborted")
	if err != nil {
		t.Fatal(err)
	}
	if err := aborted.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/aborted"); !os.IsNotExist(err) {
		t.Fatalf("Abort left the file: %v", err)
	}

	if err := local.Remove(ctx, "file:"+dir+"/new/day=a%2Fb/f"); err != nil {
		t.Fatal(err)
	}
	wantError(t, local.Remove(ctx, dir+"/new/day=a%2Fb/f"), errs.NotFound, "remove")
	wantError(t, local.Remove(ctx, dir), errs.InvalidArgument, "is a directory")
}

func TestReadAllLimits(t *testing.T) {
	enginetest.NoLeaks(t)
	dir := t.TempDir()
	write(t, dir+"/f", "0123456789")
	write(t, dir+"/empty", "")
	if content, err := fileio.ReadAll(ctx, fileio.NewLocal(), dir+"/f", 10); err != nil || len(content) != 10 {
		t.Errorf("at the limit: %q, %v", content, err)
	}
	if content, err := fileio.ReadAll(ctx, fileio.NewLocal(), dir+"/empty", 0); err != nil || len(content) != 0 {
		t.Errorf("empty: %q, %v", content, err)
	}
	_, err := fileio.ReadAll(ctx, fileio.NewLocal(), dir+"/f", 9)
	wantError(t, err, errs.Unsupported, "read "+dir+"/f", "10 B", "9 B")

	shrunk := shrinkingFS{fileio.NewLocal()}
	_, err = fileio.ReadAll(ctx, shrunk, dir+"/f", 1<<20)
	wantError(t, err, errs.Corrupt, "ended after 10 of 11 bytes")
}

// shrinkingFS reports one byte more than a file has, as when it was cut after
// it was opened.
type shrinkingFS struct{ fileio.FS }

type shrunkFile struct{ fileio.File }

func (fs shrinkingFS) Open(ctx context.Context, location string) (fileio.File, error) {
	f, err := fs.FS.Open(ctx, location)
	return shrunkFile{f}, err
}

func (f shrunkFile) Size() int64 { return f.File.Size() + 1 }

func TestReadAllFaults(t *testing.T) {
	enginetest.NoLeaks(t)
	path := t.TempDir() + "/f"
	write(t, path, "0123456789")
	for k := int64(0); ; k++ {
		fs := enginetest.NewFaultFS(fileio.NewLocal(), k)
		_, err := fileio.ReadAll(ctx, fs, path, 10)
		if !fs.Failed() {
			if err != nil || k != 2 {
				t.Fatalf("without a fault after %d operations: %v", k, err)
			}
			return
		}
		if err == nil {
			t.Fatalf("operation %d failed and ReadAll did not", k)
		}
	}
}

func TestMux(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f", "x")
	local := fileio.NewLocal()
	fs := fileio.NewMux(map[string]fileio.FS{"": local, "file": local}, nil)
	for _, location := range []string{dir + "/f", "file:" + dir + "/f"} {
		if _, err := fileio.ReadAll(ctx, fs, location, 10); err != nil {
			t.Error(err)
		}
	}
	_, err := fs.Open(ctx, "GS://bucket/key")
	wantError(t, err, errs.Unsupported, "open GS://bucket/key: locations of scheme gs cannot be opened: this engine opens local files only")
	_, err = fs.Create(ctx, "s3a://b/k")
	wantError(t, err, errs.Unsupported, "scheme s3a")
	wantError(t, fs.Remove(ctx, "s3a://b/k"), errs.Unsupported, "scheme s3a")

	_, err = fileio.NewMux(map[string]fileio.FS{"file": local, "s3": local}, nil).Open(ctx, "gs://b/k")
	wantError(t, err, errs.Unsupported, "cannot be opened; this engine opens file:, s3:")

	_, err = fileio.NewMux(nil, local).Open(ctx, dir+"/none")
	wantError(t, err, errs.NotFound)
}

func TestScheme(t *testing.T) {
	for location, want := range map[string]string{
		"/a/b": "", "a:b": "", "/a://b": "", "file:/a": "file", "FILE:///a": "file", "s3://b/k": "s3",
		"abfss://c@a/k": "abfss", "1s://x": "", "hdfs:/x": "", "": "", ":": "", "custom+x-1.2://h/p": "custom+x-1.2",
	} {
		if got := fileio.Scheme(location); got != want {
			t.Errorf("Scheme(%q) = %q, want %q", location, got, want)
		}
	}
}

// openedFS records what was opened.
type openedFS struct {
	fileio.FS
	opened *string
}

func (fs openedFS) Open(_ context.Context, location string) (fileio.File, error) {
	*fs.opened = location
	return nil, errs.New(errs.NotFound, "not here")
}

func TestPrefixes(t *testing.T) {
	var opened string
	fs := fileio.WithPrefixes(openedFS{opened: &opened}, map[string]string{
		"s3://old":        "s3://new",
		"s3://old/table/": "/mnt/table/",
		"/tmp/fixtures":   "file:///srv/x",
		"file:/data":      "/disk2",
	})
	for location, want := range map[string]string{
		"s3://old/a":                        "s3://new/a",
		"s3://old/table/f":                  "/mnt/table/f",
		"s3://old/tables/f":                 "s3://new/tables/f",
		"s3://older/f":                      "s3://older/f",
		"/tmp/fixtures/f":                   "file:///srv/x/f",
		"file:/tmp/fixtures/f":              "file:///srv/x/f",
		"file:///tmp/fixtures/f":            "file:///srv/x/f",
		"file://localhost/tmp/fixtures/a%b": "file:///srv/x/a%b",
		"/tmp/fixtures2/f":                  "/tmp/fixtures2/f",
		"/data/f":                           "/disk2/f",
		"file:///other/f":                   "file:///other/f",
	} {
		opened = ""
		_, _ = fs.Open(ctx, location)
		if opened != want {
			t.Errorf("%s was opened as %s, want %s", location, opened, want)
		}
	}
}
