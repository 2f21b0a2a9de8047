package avro

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// memoryFile is a fileio.File of bytes.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error  { return nil }
func (f memoryFile) Size() int64 { return f.Reader.Size() }

func fileOf(b []byte) memoryFile { return memoryFile{bytes.NewReader(b)} }

const testPath = "s3://b/t/data/f.avro"

// writeFile writes rows with another Avro library.
func writeFile(t testing.TB, schema string, rows []any, options ...ocf.WriterOpt) []byte {
	t.Helper()
	s, err := avro.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, s, append([]ocf.WriterOpt{ocf.WithSchema(schema)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// allColumns selects every leaf of every column.
func allColumns(f *File) []batch.Column {
	var columns []batch.Column
	for i, field := range f.fields {
		c := batch.Column{Index: i}
		for leaf := field.firstLeaf; leaf < field.endLeaf; leaf++ {
			c.Leaves = append(c.Leaves, leaf)
		}
		columns = append(columns, c)
	}
	return columns
}

// readAll reads the rows of all windows of some columns and renders them, each
// as the list of its columns. split reads the columns one by one, and keep
// masks the rows of all but the first.
func readAll(f *File, columns []batch.Column, ranges []batch.Range, split bool, keep func(position int64) bool) (rows []string, err error) {
	ctx := context.Background()
	r, err := f.NewReader(ctx, columns, ranges)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		window, err := r.Next(ctx)
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		var mask *batch.Mask
		if keep != nil {
			mask = batch.NewMask(int(window.Len()), false)
			for i := range mask.Len {
				if keep(window.Start + int64(i)) {
					mask.Set(i)
				}
			}
		}
		var groups [][]int
		for i := range columns {
			if split || i == 0 {
				groups = append(groups, nil)
			}
			groups[len(groups)-1] = append(groups[len(groups)-1], i)
		}
		var texts [][]string
		for _, group := range groups {
			arrays, err := r.Read(ctx, group, mask)
			if err != nil {
				return nil, err
			}
			for i, a := range arrays {
				if want := r.Schema().Field(group[i]).Type; !arrow.TypeEqual(a.DataType(), want, arrow.CheckMetadata()) {
					return nil, fmt.Errorf("array of type %s, the schema says %s", a.DataType(), want)
				}
				texts = append(texts, renderRows(a))
				a.Release()
			}
		}
		if len(texts) > 0 {
			for i := range texts[0] {
				var parts []string
				for _, t := range texts {
					parts = append(parts, t[i])
				}
				rows = append(rows, strings.Join(parts, " "))
			}
		}
	}
}

func renderRows(a arrow.Array) []string {
	rows := make([]string, a.Len())
	for i := range rows {
		rows[i] = renderValue(a, i)
	}
	return rows
}

// renderValue gives a value as text: times as the number that Arrow stores.
func renderValue(a arrow.Array, i int) string {
	if a.DataType().ID() == arrow.NULL || a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Struct:
		var fields []string
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			fields = append(fields, f.Name+":"+renderValue(a.Field(k), i))
		}
		return "{" + strings.Join(fields, ",") + "}"
	case *array.Map:
		start, end := a.ValueOffsets(i)
		var entries []string
		for j := int(start); j < int(end); j++ {
			entries = append(entries, renderValue(a.Keys(), j)+"="+renderValue(a.Items(), j))
		}
		return "{" + strings.Join(entries, ",") + "}"
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		var elements []string
		for j := int(start); j < int(end); j++ {
			elements = append(elements, renderValue(a.ListValues(), j))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i))
	case *array.Int32:
		return fmt.Sprint(a.Value(i))
	case *array.Int64:
		return fmt.Sprint(a.Value(i))
	case *array.Float32:
		return fmt.Sprint(a.Value(i))
	case *array.Float64:
		return fmt.Sprint(a.Value(i))
	case *array.Date32:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Time32:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Time64:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Timestamp:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("x%x", a.Value(i))
	case *array.FixedSizeBinary:
		return fmt.Sprintf("x%x", a.Value(i))
	}
	panic(fmt.Sprintf("render %s", a.DataType()))
}

// open opens bytes with a checked allocator that the test's end inspects.
func open(t testing.TB, b []byte, batchRows int) (*File, error) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() {
		if n := alloc.CurrentAlloc(); n != 0 {
			t.Errorf("%d bytes are not released", n)
		}
	})
	return Open(context.Background(), fileOf(b), testPath, Options{Alloc: alloc, BatchRows: batchRows})
}
