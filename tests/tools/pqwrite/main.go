// Command pqwrite writes Parquet files for tests that read them with other
// programs:
//
//	pqwrite DIR
//
// DIR/cases.json lists the files. Each is written to DIR as NAME.parquet, what
// the writer says of it to NAME.json.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/pq"
)

// file is an element of cases.json.
type file struct {
	Name string
	// Batches is an Arrow IPC stream that starts with the schema of the batches.
	Batches    string
	Schema     *iceberg.Schema
	Properties map[string]string
	Threads    int
	Memory     int64  // a limit; zero: none
	Like       string // a file to copy from; empty: none
	Steps      []step
}

// step is a part of a file: a stream of batches, or row groups of another file.
type step struct {
	Write  string
	Copy   string
	Groups []int
}

// report is what NAME.json holds.
type report struct {
	*pq.Written
	// Refused is why row groups could not be copied.
	Refused string
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	document, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		return err
	}
	var files []file
	if err := json.Unmarshal(document, &files); err != nil {
		return err
	}
	for _, f := range files {
		r, err := f.write(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		document, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name+".json"), document, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) write(ctx context.Context, dir string) (*report, error) {
	out, err := os.Create(filepath.Join(dir, f.Name+".parquet"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	options, err := pq.ParseWriterOptions(f.Properties, f.Schema)
	if err != nil {
		return nil, err
	}
	options.Path, options.Threads = out.Name(), f.Threads
	if f.Memory > 0 {
		options.Pool = mem.NewPool("test", f.Memory)
	}
	if f.Like != "" {
		if options.Like, err = open(ctx, filepath.Join(dir, f.Like)); err != nil {
			return nil, err
		}
		defer options.Like.Close()
	}
	schema, err := schemaOf(filepath.Join(dir, f.Batches))
	if err != nil {
		return nil, err
	}
	w, err := pq.NewWriter(ctx, out, schema, f.Schema, options)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	r := &report{}
	for _, s := range f.Steps {
		if s.Write != "" {
			err = writeStream(ctx, w, filepath.Join(dir, s.Write))
		} else {
			err = copyGroups(ctx, w, filepath.Join(dir, s.Copy), s.Groups)
		}
		if errors.Is(err, pq.ErrCannotCopy) {
			r.Refused, err = err.Error(), nil
		}
		if err != nil {
			return nil, err
		}
	}
	if r.Written, err = w.Close(ctx); err != nil {
		return nil, err
	}
	return r, out.Close()
}

func schemaOf(path string) (*arrow.Schema, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := ipc.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return r.Schema(), nil
}

func writeStream(ctx context.Context, w *pq.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := ipc.NewReader(bufio.NewReader(f))
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		if err := w.Write(ctx, r.RecordBatch()); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil && err != io.EOF {
		return err
	}
	return nil
}

func copyGroups(ctx context.Context, w *pq.Writer, path string, groups []int) error {
	source, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer source.Close()
	return w.CopyRowGroups(ctx, source, groups)
}

func open(ctx context.Context, path string) (*pq.File, error) {
	f, err := fileio.NewLocal().Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return pq.Open(ctx, f, path, pq.Options{})
}
