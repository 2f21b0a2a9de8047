package pq

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
)

const (
	// defaultBatchRows keeps a batch of ten ordinary columns at a few MiB.
	defaultBatchRows = 64 << 10
	// defaultFooterGuess is enough for most footers, and one read of it costs
	// a remote store no more than a read of 8 bytes.
	defaultFooterGuess = 64 << 10 // 64 KiB
	defaultReadSize    = 1 << 20  // 1 MiB
)

// Options configures Open. The zero value is usable.
type Options struct {
	// Alloc makes every buffer of the returned arrays; nil: the Go allocator.
	Alloc memory.Allocator
	// Pool is charged for what the file and its readers hold; nil: unlimited.
	Pool *mem.Pool
	// BatchRows is the most rows of a window; zero: 65536.
	BatchRows int
	// FooterGuess is how many bytes of the file's end the first read takes;
	// zero: 64 KiB. A longer footer costs a second read.
	FooterGuess int
	// ReadSize is how many bytes of a column chunk are read at a time; zero:
	// 1 MiB. A page that is larger is read whole.
	ReadSize int
	// ReadAhead reads the next piece of each column while one is decoded: of
	// use where reading takes long, at the cost of twice the memory.
	ReadAhead bool
	// DictionaryFields are the field ids of the top-level string and binary
	// columns that readers return dictionary-encoded, with 32-bit indices. A
	// batch's dictionary may have values without a row, and has a value twice
	// only if the file's own dictionary has.
	DictionaryFields map[int]bool
}

func (o Options) withDefaults() Options {
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	if o.Pool == nil {
		o.Pool = mem.NewPool("parquet", mem.Unlimited)
	}
	if o.BatchRows <= 0 {
		o.BatchRows = defaultBatchRows
	}
	if o.FooterGuess <= 0 {
		o.FooterGuess = defaultFooterGuess
	}
	if o.ReadSize <= 0 {
		o.ReadSize = defaultReadSize
	}
	return o
}

// File is an open Parquet file: its footer, and the means to read rows. It is
// safe for concurrent use, except that Close comes last.
type File struct {
	source  fileio.File
	path    string
	opts    Options
	charged *mem.Reservation // the footer
	dataEnd int64            // where the footer starts: everything else lies before
	meta    *fileMetadata
	schema  *schemaTree
	arrow   *arrow.Schema
}

// Open reads the footer of a Parquet file. path names the file in errors. Open
// takes f over: File.Close closes it, and so does an Open that fails.
func Open(ctx context.Context, f fileio.File, path string, opts Options) (*File, error) {
	opts = opts.withDefaults()
	p := &File{source: f, path: path, opts: opts, charged: opts.Pool.ReserveWorkingSet("Parquet footers")}
	if err := p.open(ctx); err != nil {
		p.charged.Free()
		_ = f.Close() // the error of the read says more
		return nil, errs.Wrap(err, "read", path)
	}
	return p, nil
}

// Schema is the file's schema in Arrow types, with field ids under the
// metadata key PARQUET:field_id at every level where the file has them.
func (f *File) Schema() *arrow.Schema { return f.arrow }

// NumRows is the number of rows in the file.
func (f *File) NumRows() int64 { return f.meta.numRows }

// Close closes the underlying file. Readers must be closed before.
func (f *File) Close() error {
	f.charged.Free()
	return errs.Wrap(f.source.Close(), "close", f.path)
}
