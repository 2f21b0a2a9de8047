package avro

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// Options configures Open. The zero value is usable.
type Options struct {
	// Alloc makes every buffer of the returned arrays; nil: the Go allocator.
	Alloc memory.Allocator
	// Pool is charged for what readers hold; nil: unlimited.
	Pool *mem.Pool
	// BatchRows is the most rows of a window; zero: 65536.
	BatchRows int
}

func (o Options) withDefaults() Options {
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	if o.Pool == nil {
		o.Pool = mem.NewPool("avro", mem.Unlimited)
	}
	if o.BatchRows <= 0 {
		o.BatchRows = 64 << 10
	}
	return o
}

// File is an open Avro file: its header and the means to read rows. It is safe
// for concurrent use, except that Close comes last.
type File struct {
	source fileio.File
	path   string
	opts   Options
	header *header
	codec  Codec
	record *node
	fields []*field
	schema *arrow.Schema
}

// Open reads the header of an Avro file. path names the file in errors. Open
// takes f over: File.Close closes it, and so does an Open that fails.
func Open(_ context.Context, f fileio.File, path string, opts Options) (*File, error) {
	a := &File{source: f, path: path, opts: opts.withDefaults()}
	if err := a.open(); err != nil {
		_ = f.Close() // the error of the read says more
		return nil, errs.Wrap(err, "read", path)
	}
	return a, nil
}

func (f *File) open() error {
	var err error
	if f.header, err = readHeader(&source{file: f.source}); err != nil {
		return err
	}
	if f.codec, err = codecByName(string(f.header.metadata["avro.codec"])); err != nil {
		return err
	}
	if f.record, err = parseSchema(f.header.metadata["avro.schema"]); err != nil {
		return err
	}
	if f.record.kind != kindRecord {
		return badSchema("its rows are of type %s, not records", f.record)
	}
	if f.fields, err = arrowFields(f.record); err != nil {
		return err
	}
	fields := make([]arrow.Field, len(f.fields))
	for i, field := range f.fields {
		fields[i] = field.arrow
	}
	f.schema = arrow.NewSchema(fields, nil)
	return nil
}

// Schema is the file's schema in Arrow types, with field ids under the
// metadata key PARQUET:field_id at every level where the file has them. A
// union of several types, which no Iceberg type is, has a union type that
// cannot be read.
func (f *File) Schema() *arrow.Schema { return f.schema }

// NumRows is -1: an Avro file does not say how many rows it has.
func (f *File) NumRows() int64 { return -1 }

// Close closes the underlying file.
func (f *File) Close() error { return f.source.Close() }
