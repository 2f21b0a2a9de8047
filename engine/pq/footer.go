package pq

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

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

func corrupt(format string, args ...any) error { return errs.New(errs.Corrupt, format, args...) }

func (f *File) open(ctx context.Context) error {
	footer, err := f.readFooter(ctx)
	if err != nil {
		return err
	}
	return f.parseFooter(footer)
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
		return nil, corrupt("not a Parquet file, or one that was cut off: it ends without the word %s", magicPlain)
	}
	length := int64(binary.LittleEndian.Uint32(tail[len(tail)-trailerSize:]))
	if length > size-int64(smallestFile) {
		return nil, corrupt("the footer claims %d bytes in a file of %d", length, size)
	}
	// The decoded footer takes a few times its length on disk.
	if err := f.charged.TryGrow(4 * length); err != nil {
		return nil, err
	}
	if missing := length + trailerSize - int64(len(tail)); missing > 0 {
		start := size - trailerSize - length
		head, err := readRange(ctx, f.source, start, start+missing)
		if err != nil {
			return nil, err
		}
		tail = append(head, tail...)
	}
	end := int64(len(tail)) - trailerSize
	return tail[end-length : end], nil
}

// readRange reads the bytes [start, end).
func readRange(ctx context.Context, source fileio.File, start, end int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	buf := make([]byte, end-start)
	n, err := source.ReadAt(buf, start)
	if n == len(buf) {
		return buf, nil
	}
	if err == nil || err == io.EOF {
		return nil, corrupt("the file ended at byte %d; bytes up to %d were expected", start+int64(n), end)
	}
	return nil, err
}

// parseFooter decodes the footer and checks what the readers rely on.
func (f *File) parseFooter(footer []byte) (err error) {
	// The library's decoder panics on some damaged footers.
	defer func() {
		if v := recover(); v != nil {
			err = corrupt("the footer cannot be decoded: %v", v)
		}
	}()
	if f.meta, err = metadata.NewFileMetaData(footer, nil); err != nil {
		return corrupt("the footer cannot be decoded: %v", err)
	}
	f.meta.SetSourceFileSize(f.source.Size())
	rows := int64(0)
	for i, group := range f.meta.RowGroups {
		if group.NumRows < 0 || rows+group.NumRows < rows {
			return corrupt("row group %d claims %d rows", i, group.NumRows)
		}
		rows += group.NumRows
		if len(group.Columns) != f.meta.Schema.NumColumns() {
			return corrupt("row group %d has %d columns, the schema %d", i, len(group.Columns), f.meta.Schema.NumColumns())
		}
	}
	if rows != f.meta.NumRows {
		return corrupt("the row groups have %d rows, the file claims %d", rows, f.meta.NumRows)
	}
	// The types come from the Parquet schema alone: an Arrow schema that the
	// writer left behind would ask for types that no table has.
	f.meta.FileMetaData.KeyValueMetadata = nil
	schema, err := pqarrow.FromParquet(f.meta.Schema, nil, nil)
	if err != nil {
		return errs.New(errs.Unsupported, "%v", err)
	}
	fields := make([]arrow.Field, schema.NumFields())
	for i, field := range schema.Fields() {
		fields[i] = normalField(field)
	}
	f.schema = arrow.NewSchema(fields, nil)
	return nil
}

// normalField gives a field the types that this package returns: extension
// types become their storage, INT96 timestamps microseconds, and an absent
// field id leaves no metadata behind.
func normalField(field arrow.Field) arrow.Field {
	if i := field.Metadata.FindKey(fieldIDKey); i >= 0 && field.Metadata.Values()[i] == "-1" {
		field.Metadata = arrow.Metadata{}
	}
	field.Type = normalType(field.Type)
	return field
}

// fieldIDKey is the metadata key of a field's id.
const fieldIDKey = "PARQUET:field_id"

func normalType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return normalType(t.StorageType())
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, field := range t.Fields() {
			fields[i] = normalField(field)
		}
		return arrow.StructOf(fields...)
	case *arrow.ListType:
		return arrow.ListOfField(normalField(t.ElemField()))
	case *arrow.MapType:
		return arrow.MapOfFields(normalField(t.KeyField()), normalField(t.ItemField()))
	case *arrow.DictionaryType:
		panic(fmt.Sprintf("pq: unrequested type %s", t))
	}
	return t
}
