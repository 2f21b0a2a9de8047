package avro

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
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
		rows[i] = enginetest.RenderValue(a, i)
	}
	return rows
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
