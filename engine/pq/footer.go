package pq

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
)

// A Parquet file ends with the footer, its length in four bytes, and a magic
// word that says whether the footer is encrypted.
const (
	magicPlain     = "PAR1"
	magicEncrypted = "PARE"
	trailerSize    = 8
	smallestFile   = len(magicPlain) + trailerSize
)

// footerInMemory is how many bytes a decoded footer may take for each of its
// bytes in the file: a column chunk's structure is about four times as large
// as what encodes it.
const footerInMemory = 5

func corrupt(format string, args ...any) error { return errs.New(errs.Corrupt, format, args...) }

func (f *File) open(ctx context.Context) error {
	footer, err := f.readFooter(ctx)
	if err != nil {
		return err
	}
	if f.meta, err = parseFileMetadata(footer); err != nil {
		return err
	}
	if f.meta.encrypted {
		return errs.New(errs.Unsupported, "the file is encrypted")
	}
	if f.schema, err = buildSchema(f.meta.schema); err != nil {
		return err
	}
	f.arrow = f.schema.arrowSchema()
	return f.checkRowGroups()
}

// readFooter returns the footer's bytes: one read when the guess was enough.
func (f *File) readFooter(ctx context.Context) ([]byte, error) {
	size := f.source.Size()
	if size < int64(smallestFile) {
		return nil, corrupt("%d bytes are too few for a Parquet file", size)
	}
	tail, err := readRange(ctx, f.source, max(0, size-int64(f.opts.FooterGuess)), size)
	if err != nil {
		return nil, err
	}
	switch trailer := tail[len(tail)-trailerSize:]; string(trailer[4:]) {
	case magicPlain:
	case magicEncrypted:
		return nil, errs.New(errs.Unsupported, "the footer is encrypted")
	default:
		return nil, corrupt("not a Parquet file, or one that was cut off: it does not end with the word %s", magicPlain)
	}
	length := int64(binary.LittleEndian.Uint32(tail[len(tail)-trailerSize:]))
	if length > size-int64(smallestFile) {
		return nil, corrupt("the footer claims %d bytes in a file of %d", length, size)
	}
	f.dataEnd = size - trailerSize - length
	if err := f.charged.TryGrow(footerInMemory * length); err != nil {
		return nil, err
	}
	missing := length + trailerSize - int64(len(tail))
	if missing <= 0 {
		// A copy, since the footer is kept and the guess may be far larger.
		end := int64(len(tail)) - trailerSize
		return append([]byte(nil), tail[end-length:end]...), nil
	}
	footer := make([]byte, length)
	if err := readInto(ctx, f.source, footer[:missing], f.dataEnd); err != nil {
		return nil, err
	}
	copy(footer[missing:], tail)
	return footer, nil
}

// readRange reads the bytes [start, end).
func readRange(ctx context.Context, source fileio.File, start, end int64) ([]byte, error) {
	buf := make([]byte, end-start)
	return buf, readInto(ctx, source, buf, start)
}

// readInto fills buf with the bytes from start on.
func readInto(ctx context.Context, source fileio.File, buf []byte, start int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := source.ReadAt(buf, start)
	if n == len(buf) {
		return nil // io.EOF may come with the last byte
	}
	if err == nil || err == io.EOF {
		return corrupt("the file ended at byte %d; bytes up to %d were expected", start+int64(n), start+int64(len(buf)))
	}
	return err
}

// checkRowGroups checks the counts on which positions rest. What a column
// chunk claims is checked when the chunk is read.
func (f *File) checkRowGroups() error {
	rows := int64(0)
	for i := range f.meta.rowGroups {
		g := &f.meta.rowGroups[i]
		if g.numRows < 0 || rows+g.numRows < rows {
			return corrupt("row group %d claims %d rows", i, g.numRows)
		}
		rows += g.numRows
		if len(g.columns) != len(f.schema.leaves) {
			return corrupt("row group %d has %d columns, the schema %d", i, len(g.columns), len(f.schema.leaves))
		}
	}
	if rows != f.meta.numRows {
		return corrupt("the row groups have %d rows, the file claims %d", rows, f.meta.numRows)
	}
	return nil
}
