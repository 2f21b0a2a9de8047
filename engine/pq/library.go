package pq

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// libraryColumn reads a column through arrow-go's Arrow reader.
type libraryColumn struct {
	file     *File
	index    int
	leaves   map[int]bool
	typ      arrow.DataType
	library  *pqarrow.FileReader
	rowGroup int // of current
	current  *pqarrow.ColumnReader
	position int64 // next row of current
}

func newLibraryColumn(f *File, c batch.Column) (*libraryColumn, arrow.Field, error) {
	if c.Index < 0 || c.Index >= f.schema.NumFields() {
		return nil, arrow.Field{}, errs.New(errs.InvalidArgument, "column %d of %d", c.Index, f.schema.NumFields())
	}
	props := parquet.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled = true
	props.BufferSize = 1 << 20 // 1 MiB
	r, err := file.NewParquetReader(sectionOf(f), file.WithReadProps(props), file.WithMetadata(f.meta))
	if err != nil {
		return nil, arrow.Field{}, err
	}
	library, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, arrow.Field{}, err
	}
	l := &libraryColumn{file: f, index: c.Index, leaves: map[int]bool{}, library: library, rowGroup: -1}
	for _, leaf := range c.Leaves {
		l.leaves[leaf] = true
	}
	field, ok := l.prune(library.Manifest.Fields[c.Index])
	if !ok {
		return nil, arrow.Field{}, errs.New(errs.InvalidArgument, "none of the leaves %v belongs to column %q", c.Leaves, f.schema.Field(c.Index).Name)
	}
	field = normalField(field)
	if field.Type.ID() == arrow.TIMESTAMP && f.meta.Schema.Column(c.Leaves[0]).PhysicalType() == parquet.Types.Int96 {
		field.Type = &arrow.TimestampType{Unit: arrow.Microsecond}
	}
	l.typ = field.Type
	return l, field, nil
}

func sectionOf(f *File) *io.SectionReader { return io.NewSectionReader(f.source, 0, f.source.Size()) }

// prune keeps the selected leaves of a field; false when none is left. A map
// keeps its key and value whole.
func (l *libraryColumn) prune(f pqarrow.SchemaField) (arrow.Field, bool) {
	field := *f.Field
	if len(f.Children) == 0 {
		return field, l.leaves[f.ColIndex]
	}
	switch t := field.Type.(type) {
	case *arrow.StructType:
		var kept []arrow.Field
		for _, child := range f.Children {
			if c, ok := l.prune(child); ok {
				kept = append(kept, c)
			}
		}
		field.Type = arrow.StructOf(kept...)
		return field, len(kept) > 0
	case *arrow.ListType:
		c, ok := l.prune(f.Children[0])
		field.Type = arrow.ListOfField(c)
		return field, ok
	case *arrow.MapType:
		for _, child := range f.Children[0].Children {
			if _, ok := l.prune(child); ok {
				return field, true
			}
		}
		_ = t
		return field, false
	}
	return field, false
}

func (l *libraryColumn) read(ctx context.Context, rowGroup int, window batch.Range, keep *batch.Mask) (out arrow.Array, err error) {
	// The library panics on some damaged pages.
	defer func() {
		if v := recover(); v != nil {
			err = corrupt("cannot decode: %v", v)
		}
	}()
	if l.rowGroup != rowGroup {
		l.close()
		if l.current, err = l.library.GetFieldReader(ctx, l.index, l.leaves, []int{rowGroup}); err != nil {
			return nil, err
		}
		l.rowGroup, l.position = rowGroup, 0
	}
	for l.position < window.Start { // windows that nobody read
		n := min(window.Start-l.position, int64(l.file.opts.BatchRows))
		skipped, err := l.current.NextBatch(n)
		if err != nil {
			return nil, err
		}
		skipped.Release()
		l.position += n
	}
	chunked, err := l.current.NextBatch(window.Len())
	if err != nil {
		return nil, err
	}
	defer chunked.Release()
	l.position = window.End
	if int64(chunked.Len()) != window.Len() {
		return nil, corrupt("%d rows where the row group claims %d", chunked.Len(), window.Len())
	}
	return l.filter(chunked.Chunks(), keep)
}

// filter joins the kept runs of rows into one array from the file's allocator.
func (l *libraryColumn) filter(chunks []arrow.Array, keep *batch.Mask) (arrow.Array, error) {
	var runs []arrow.Array
	defer func() {
		for _, r := range runs {
			r.Release()
		}
	}()
	row := 0
	for _, chunk := range chunks {
		if ext, ok := chunk.(array.ExtensionArray); ok {
			chunk = ext.Storage()
		}
		for i := 0; i < chunk.Len(); {
			if keep != nil && !keep.Get(row+i) {
				i++
				continue
			}
			end := i + 1
			for end < chunk.Len() && (keep == nil || keep.Get(row+end)) {
				end++
			}
			runs = append(runs, array.NewSlice(chunk, int64(i), int64(end)))
			i = end
		}
		row += chunk.Len()
	}
	if len(runs) == 0 {
		return array.MakeArrayOfNull(l.file.opts.Alloc, l.typ, 0), nil
	}
	joined, err := array.Concatenate(runs, l.file.opts.Alloc)
	if err != nil {
		return nil, err
	}
	defer joined.Release()
	if l.library.ParquetReader().MetaData().Schema.Column(l.firstLeaf()).PhysicalType() == parquet.Types.Int96 {
		return microseconds(joined.(*array.Timestamp), l.file.opts.Alloc), nil
	}
	data := withType(joined.Data(), l.typ)
	defer data.Release()
	return array.MakeFromData(data), nil
}

func (l *libraryColumn) firstLeaf() int {
	first := -1
	for leaf := range l.leaves {
		if first < 0 || leaf < first {
			first = leaf
		}
	}
	return first
}

// withType gives array data the type t, which differs in names and metadata of
// nested fields only.
func withType(d arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, child := range d.Children() {
		switch t := t.(type) {
		case *arrow.StructType:
			children[i] = withType(child, t.Field(i).Type)
		case *arrow.ListType:
			children[i] = withType(child, t.Elem())
		case *arrow.MapType:
			children[i] = withType(child, t.Elem())
		}
		defer children[i].Release()
	}
	return array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
}

func microseconds(in *array.Timestamp, alloc memory.Allocator) arrow.Array {
	b := array.NewTimestampBuilder(alloc, &arrow.TimestampType{Unit: arrow.Microsecond})
	defer b.Release()
	b.Reserve(in.Len())
	for i, v := range in.Values() {
		if in.IsNull(i) {
			b.AppendNull()
			continue
		}
		b.Append(v / 1000)
	}
	return b.NewArray()
}

func (l *libraryColumn) close() {
	if l.current != nil {
		l.current.Release()
		l.current = nil
	}
	l.rowGroup = -1
}
