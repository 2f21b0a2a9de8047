// Package datafile opens data and delete files of every format behind one
// interface.
//
//	format "parquet" --> pq                \
//	format "avro"    --> avro               > File --NewReader--> batch.FileReader
//	format "orc"     --> HostReader stream /
//
// The engine decodes Parquet and Avro. A format that it does not decode is read
// by the host through a HostReader; without one it is Unsupported.
package datafile

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/avro"
	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/pq"
)

// File is an open data or delete file. It is safe for concurrent use, except
// that Close comes last, after every reader is closed.
type File interface {
	// Schema is the file's whole schema with field ids under the metadata key
	// PARQUET:field_id at every level where the file has them.
	Schema() *arrow.Schema
	// NewReader reads some columns of some row ranges, ascending and disjoint;
	// nil ranges mean all rows.
	NewReader(ctx context.Context, columns []batch.Column, ranges []batch.Range) (batch.FileReader, error)
	Close() error
}

// Splitter is a File that can be read in parts at a cost in proportion to their
// sizes.
type Splitter interface {
	// Parts are the row ranges of the parts, ascending, together all rows.
	Parts() []batch.Range
}

// Options configure Open.
type Options struct {
	FS fileio.FS
	// Alloc makes every buffer of the returned arrays.
	Alloc memory.Allocator
	// Pool is charged for what files and readers hold.
	Pool *mem.Pool
	// BatchRows is the most rows of a window.
	BatchRows int
	// ReadSize is how many bytes of a column are read at a time, where the
	// format keeps columns apart; zero: the format's default.
	ReadSize int
	// Host reads the formats that the engine does not decode; may be nil.
	Host HostReader
}

// The file formats by their names in manifests, in upper case.
const (
	formatParquet = "PARQUET"
	formatAvro    = "AVRO"
	formatORC     = "ORC"
)

// Open opens the file at a location in the given format, whose name is compared
// without case.
func Open(ctx context.Context, location, format string, options Options) (File, error) {
	switch strings.ToUpper(format) {
	case formatParquet:
		f, err := options.FS.Open(ctx, location)
		if err != nil {
			return nil, errs.Wrap(err, "open", location)
		}
		return opened(pq.Open(ctx, f, location, pq.Options{Alloc: options.Alloc, Pool: options.Pool, BatchRows: options.BatchRows, ReadSize: options.ReadSize}))
	case formatAvro:
		f, err := options.FS.Open(ctx, location)
		if err != nil {
			return nil, errs.Wrap(err, "open", location)
		}
		return opened(avro.Open(ctx, f, location, avro.Options{Alloc: options.Alloc, Pool: options.Pool, BatchRows: options.BatchRows}))
	case formatORC:
		if options.Host != nil {
			return openHost(ctx, location, strings.ToUpper(format), options)
		}
		return nil, errs.At(errs.Unsupported, "open", location, "ORC files are decoded by the host, and this one has not given a reader")
	}
	return nil, errs.At(errs.Unsupported, "open", location, "the file format %q cannot be read; known are parquet, avro and, with a reader of the host, orc", format)
}

// opened keeps a nil pointer from becoming a non-nil File.
func opened[F File](f F, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}
