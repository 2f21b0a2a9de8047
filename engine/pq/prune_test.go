package pq

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// column reads some rows of one leaf of a column without nesting.
func column(t *testing.T, f *File, leaf int, rows batch.Range) arrow.Array {
	t.Helper()
	for i, n := range f.schema.columns {
		if n.firstLeaf != leaf {
			continue
		}
		r, err := f.NewReader(context.Background(), []batch.Column{{Index: i, Leaves: []int{leaf}}}, []batch.Range{rows})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		w, err := r.Next(context.Background())
		if err != nil || w != rows {
			t.Fatal(w, rows, err)
		}
		arrays, err := r.Read(context.Background(), []int{0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return arrays[0]
	}
	t.Fatal("no such column")
	return nil
}

// orderOf compares value i of an array with a serialised bound; a value that
// no bound covers is equal.
func orderOf(a arrow.Array, i int, bound []byte) int {
	wide := func() int64 {
		if len(bound) == 4 {
			return int64(int32(binary.LittleEndian.Uint32(bound)))
		}
		return int64(binary.LittleEndian.Uint64(bound))
	}
	compare := func(v int64) int {
		switch b := wide(); {
		case v < b:
			return -1
		case v > b:
			return 1
		}
		return 0
	}
	float := func(v, b float64) int {
		switch {
		case v != v:
			return 0
		case v < b || v == 0 && b == 0 && math.Signbit(v) && !math.Signbit(b):
			return -1
		case v > b || v == 0 && b == 0 && !math.Signbit(v) && math.Signbit(b):
			return 1
		}
		return 0
	}
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return bytes.Compare([]byte{1}, bound)
		}
		return bytes.Compare([]byte{0}, bound)
	case *array.Int8:
		return compare(int64(a.Value(i)))
	case *array.Int16:
		return compare(int64(a.Value(i)))
	case *array.Int32:
		return compare(int64(a.Value(i)))
	case *array.Int64:
		return compare(a.Value(i))
	case *array.Uint8:
		return compare(int64(a.Value(i)))
	case *array.Uint16:
		return compare(int64(a.Value(i)))
	case *array.Uint32:
		return compare(int64(a.Value(i)))
	case *array.Date32:
		return compare(int64(a.Value(i)))
	case *array.Time32:
		return compare(int64(a.Value(i)) * 1000)
	case *array.Time64:
		return compare(int64(a.Value(i)))
	case *array.Timestamp:
		if a.DataType().(*arrow.TimestampType).Unit == arrow.Millisecond {
			return compare(int64(a.Value(i)) * 1000)
		}
		return compare(int64(a.Value(i)))
	case *array.Float32:
		return float(float64(a.Value(i)), float64(math.Float32frombits(binary.LittleEndian.Uint32(bound))))
	case *array.Float64:
		return float(a.Value(i), math.Float64frombits(binary.LittleEndian.Uint64(bound)))
	case *array.Decimal128:
		b := new(big.Int).SetBytes(bound)
		if bound[0] >= 0x80 {
			b.Sub(b, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bound))))
		}
		return a.Value(i).BigInt().Cmp(b)
	case *array.String:
		return bytes.Compare([]byte(a.Value(i)), bound)
	case *array.Binary:
		return bytes.Compare(a.Value(i), bound)
	case *array.FixedSizeBinary:
		return bytes.Compare(a.Value(i), bound)
	}
	panic(fmt.Sprintf("a bound of a %s", a.DataType()))
}

// TestStatistics checks the statistics of every row group and page of the
// corpus against the values there.
func TestStatistics(t *testing.T) {
	bounds, pages := 0, 0
	for _, c := range corpus(t) {
		f, _ := openCase(t, c.File, Options{BatchRows: 1 << 20})
		check := func(leaf int, rows batch.Range, s Statistics) {
			if rows.Len() == 0 {
				return
			}
			a := column(t, f, leaf, rows)
			defer a.Release()
			if s.Rows != rows.Len() || s.NullCount >= 0 && s.NullCount != int64(a.NullN()) {
				t.Errorf("%s leaf %d rows %v: %d rows with %d nulls, want %d", c.File, leaf, rows, s.Rows, s.NullCount, a.NullN())
			}
			for i := range a.Len() {
				if a.IsNull(i) {
					continue
				}
				if s.Lower != nil && orderOf(a, i, s.Lower) < 0 || s.Upper != nil && orderOf(a, i, s.Upper) > 0 {
					t.Errorf("%s leaf %d: %s is not within [%x, %x]", c.File, leaf, a.ValueStr(i), s.Lower, s.Upper)
				}
			}
			if s.Lower != nil {
				bounds++
			}
		}
		for leaf, l := range f.schema.leaves {
			if !l.flat() || f.schema.columnOf(leaf).kind != leafNode {
				continue
			}
			for g, rows := range f.RowGroups() {
				check(leaf, rows, f.RowGroupStatistics(g, leaf))
				p, err := f.PageStatistics(context.Background(), g, leaf)
				if err != nil {
					t.Fatal(err)
				}
				for _, page := range p {
					check(leaf, page.Range, page.Statistics)
					pages++
				}
			}
		}
	}
	if bounds < 1500 || pages < 800 {
		t.Errorf("only %d bounds and %d pages seen", bounds, pages)
	}
}

// columnOf is the top-level column of a leaf.
func (s *schemaTree) columnOf(leaf int) *node {
	for _, n := range s.columns {
		if leaf < n.endLeaf {
			return n
		}
	}
	return nil
}

func long(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// equals is a MayMatch for one value of an integer column.
func equals(leaf int, v int64) MayMatch {
	return func(_ int64, column func(int) Statistics) bool {
		s := column(leaf)
		return (s.Lower == nil || int64(binary.LittleEndian.Uint64(s.Lower)) <= v) && (s.Upper == nil || int64(binary.LittleEndian.Uint64(s.Upper)) >= v)
	}
}

func TestPrune(t *testing.T) {
	for _, name := range []string{"ascending.parquet", "ascending_dictionary.parquet"} {
		f, source := openCase(t, name, Options{ReadSize: 64})
		for row := int64(0); row < f.NumRows(); row += 7 {
			ranges, err := f.Prune(context.Background(), nil, []int{0, 1}, equals(0, 4*row))
			if err != nil {
				t.Fatal(err)
			}
			if len(ranges) != 1 || ranges[0].Start > row || ranges[0].End <= row || ranges[0].Len() > 80 {
				t.Fatalf("%s row %d: %v", name, row, ranges)
			}
			// Only the pages of those rows are read, and what leads to them.
			source.reads = nil
			a := columnString(t, f, 2, ranges)
			bytesRead := int64(0)
			for _, r := range source.reads {
				bytesRead += r.Len()
			}
			if bytesRead > 8000 {
				t.Errorf("%s row %d: %d bytes read for %d rows", name, row, bytesRead, ranges[0].Len())
			}
			want := fmt.Sprintf("%040d", row)
			if row%50 == 0 {
				want = "(null)"
			}
			if got := a[row-ranges[0].Start]; got != want {
				t.Errorf("%s row %d is %q, want %q", name, row, got, want)
			}
		}
		if ranges, err := f.Prune(context.Background(), nil, []int{0}, equals(0, 5000)); err != nil || len(ranges) != 0 {
			t.Errorf("a value beyond all: %v %v", ranges, err)
		}
		given := []batch.Range{{Start: 3, End: 10}, {Start: 500, End: 900}}
		if ranges, err := f.Prune(context.Background(), given, nil, equals(0, 5)); err != nil || fmt.Sprint(ranges) != fmt.Sprint(given) {
			t.Errorf("no leaf known: %v %v", ranges, err)
		}
	}
}

func columnString(t *testing.T, f *File, column int, ranges []batch.Range) []string {
	n := f.schema.columns[column]
	r, err := f.NewReader(context.Background(), []batch.Column{{Index: column, Leaves: []int{n.firstLeaf}}}, ranges)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for {
		_, err := r.Next(context.Background())
		if err == io.EOF {
			return out
		}
		arrays, err := r.Read(context.Background(), []int{0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, render(arrays[0])...)
		arrays[0].Release()
	}
}

// TestRowGroupsOutsideRanges checks that nothing of them is read.
func TestRowGroupsOutsideRanges(t *testing.T) {
	f, source := openCase(t, "ascending.parquet", Options{})
	source.reads = nil
	if _, _, err := readAll(t, f, selection{ranges: []batch.Range{{Start: 400, End: 800}}}); err != nil {
		t.Fatal(err)
	}
	g := f.meta.rowGroups
	start, end := g[1].columns[0].dataPageOffset, g[2].columns[0].dataPageOffset
	for _, r := range source.reads {
		if r.Start < start || r.End > end {
			t.Errorf("bytes %v read, the row group is at [%d, %d)", r, start, end)
		}
	}
}

func TestBloomFilter(t *testing.T) {
	f, _ := openCase(t, "bloom.parquet", Options{BatchRows: 1000})
	ctx := context.Background()
	absent := 0
	for leaf, l := range f.schema.leaves {
		for g, rows := range f.RowGroups() {
			b, err := f.BloomFilter(ctx, g, leaf)
			if err != nil || b == nil {
				t.Fatal(l.path, b, err)
			}
			a := column(t, f, leaf, rows)
			for i := range a.Len() {
				if a.IsValid(i) && !b.MayContain(serialized(a, i)) {
					t.Errorf("%s: %s is missing", l.path, a.ValueStr(i))
				}
			}
			a.Release()
			for v := range 100 {
				probe := long(int64(v) + 1<<30)
				switch l.typ.ID() {
				case arrow.FLOAT32, arrow.FLOAT64:
					probe = long(int64(math.Float64bits(float64(v)*3 + 1e7)))
				case arrow.DATE32:
					probe = long(int64(v) + 1<<20)
				case arrow.FIXED_SIZE_BINARY:
					probe = append(probe, probe...)
				}
				if !b.MayContain(probe) {
					absent++
				}
			}
		}
	}
	if n := len(f.schema.leaves) * len(f.RowGroups()) * 100; absent < n*9/10 {
		t.Errorf("of %d absent values %d are known to be", n, absent)
	}
}

// serialized is a value in Iceberg's serialisation, integers as long and
// floats as double, as a wider column would give them.
func serialized(a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.Int32:
		return long(int64(a.Value(i)))
	case *array.Date32:
		return binary.LittleEndian.AppendUint32(nil, uint32(a.Value(i)))
	case *array.Int64:
		return long(a.Value(i))
	case *array.Timestamp:
		return long(int64(a.Value(i)))
	case *array.Float32:
		return long(int64(math.Float64bits(float64(a.Value(i)))))
	case *array.Float64:
		return long(int64(math.Float64bits(a.Value(i))))
	case *array.String:
		return []byte(a.Value(i))
	case *array.Binary:
		return a.Value(i)
	case *array.FixedSizeBinary:
		return a.Value(i)
	}
	panic(a.DataType().String())
}
