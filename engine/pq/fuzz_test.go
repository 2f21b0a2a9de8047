package pq

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// FuzzPageHeader checks that any bytes give a header or an error, and that a
// header does not depend on what follows it.
func FuzzPageHeader(f *testing.F) {
	for _, c := range corpus(f) {
		file, source := openCase(f, c.File, Options{})
		for _, g := range file.meta.rowGroups {
			for _, chunk := range g.columns {
				start := chunk.dataPageOffset
				f.Add(source.content[start:min(start+64, int64(len(source.content)))])
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, n, short, err := parsePageHeader(data)
		if err != nil || short {
			return
		}
		if n <= 0 || n > len(data) {
			t.Fatalf("a header of %d bytes in %d", n, len(data))
		}
		again, m, short, err := parsePageHeader(data[:n])
		if err != nil || short || m != n || again != h {
			t.Fatalf("%+v, alone %+v (%d, %v, %v)", h, again, m, short, err)
		}
	})
}

// FuzzFooter checks that any footer gives a file or an error; of a file, all
// statistics can be asked for and every column read.
func FuzzFooter(f *testing.F) {
	for _, c := range corpus(f) {
		file, source := openCase(f, c.File, Options{})
		f.Add(source.content[file.dataEnd : len(source.content)-trailerSize])
	}
	pages, err := os.ReadFile(filepath.Join("testdata", "ascending_dictionary.parquet"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, footer []byte) {
		content := append([]byte(nil), pages[:len(pages)-trailerSize]...)
		content = append(content, footer...)
		content = binary.LittleEndian.AppendUint32(content, uint32(len(footer)))
		content = append(content, magicPlain...)
		readFuzzed(t, content)
	})
}

// FuzzFile mutates whole files.
func FuzzFile(f *testing.F) {
	for _, c := range corpus(f) {
		content, err := os.ReadFile(filepath.Join("testdata", c.File))
		if err != nil {
			f.Fatal(err)
		}
		if len(content) < 20_000 {
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) { readFuzzed(t, content) })
}

func readFuzzed(t *testing.T, content []byte) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	ctx := context.Background()
	f, err := Open(ctx, &memoryFile{content: content}, "fuzzed", Options{Alloc: alloc, Pool: mem.NewPool("fuzz", 8<<20), BatchRows: 100, ReadSize: 512})
	if err != nil {
		return
	}
	defer f.Close()
	for g := range min(len(f.meta.rowGroups), 3) {
		for leaf := range f.schema.leaves {
			f.RowGroupStatistics(g, leaf)
			if _, err := f.PageStatistics(ctx, g, leaf); err != nil {
				t.Fatal(err) // a page index that is wrong is no index
			}
			if b, _ := f.BloomFilter(ctx, g, leaf); b != nil {
				b.MayContain([]byte{1, 2, 3, 4})
			}
		}
	}
	for _, c := range allColumns(f) {
		r, err := f.NewReader(ctx, allColumns(f)[c.Index:c.Index+1], nil)
		if err != nil {
			continue
		}
		for range 20 {
			if _, err := r.Next(ctx); err == io.EOF {
				break
			}
			arrays, err := r.Read(ctx, []int{0}, nil)
			if err != nil {
				if errs.CodeOf(err) == errs.Internal {
					t.Fatal(err)
				}
				break
			}
			if err := checkArray(arrays[0]); err != nil {
				t.Fatal(err)
			}
			arrays[0].Release()
		}
		r.Close()
	}
}
