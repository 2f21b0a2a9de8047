package pq

import (
	"context"
	"slices"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// MayMatch decides from statistics whether any of some rows may be wanted.
// column gives those of a leaf in the rows; of a leaf that Prune was not told
// of, nothing is known.
type MayMatch func(rows int64, column func(leaf int) Statistics) bool

// Prune returns those parts of the ranges that may have wanted rows, in order.
// It asks first for each row group and then, where the file has a page index
// for any of the leaves, for the stretches of rows between page boundaries. nil
// ranges mean all rows.
func (f *File) Prune(ctx context.Context, ranges []batch.Range, leaves []int, mayMatch MayMatch) ([]batch.Range, error) {
	if ranges == nil {
		ranges = []batch.Range{{Start: 0, End: f.meta.numRows}}
	}
	kept := []batch.Range{}
	for rowGroup, rows := range f.RowGroups() {
		wanted := intersect(ranges, []batch.Range{rows})
		if len(wanted) == 0 {
			continue
		}
		known := func(leaf int) Statistics {
			if !slices.Contains(leaves, leaf) {
				return Statistics{Rows: rows.Len(), NullCount: -1}
			}
			return f.RowGroupStatistics(rowGroup, leaf)
		}
		if !mayMatch(rows.Len(), known) {
			continue
		}
		stretches, err := f.pruneByPages(ctx, rowGroup, rows, leaves, known, mayMatch)
		if err != nil {
			return nil, errs.Wrap(err, "read", f.path)
		}
		for _, r := range intersect(wanted, stretches) {
			if n := len(kept); n > 0 && kept[n-1].End == r.Start {
				kept[n-1].End = r.End
			} else {
				kept = append(kept, r)
			}
		}
	}
	return kept, nil
}

// intersect is what two ascending lists of ranges have in common.
func intersect(a, b []batch.Range) []batch.Range {
	var out []batch.Range
	for len(a) > 0 && len(b) > 0 {
		if r := (batch.Range{Start: max(a[0].Start, b[0].Start), End: min(a[0].End, b[0].End)}); r.Start < r.End {
			out = append(out, r)
		}
		if a[0].End < b[0].End {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// pruneByPages returns the rows of a row group that may match by its page
// indexes: all where it has none.
func (f *File) pruneByPages(ctx context.Context, rowGroup int, rows batch.Range, leaves []int, known func(int) Statistics, mayMatch MayMatch) ([]batch.Range, error) {
	pages := map[int][]PageStatistics{}
	cuts := []int64{rows.Start, rows.End}
	for _, leaf := range leaves {
		p, err := f.PageStatistics(ctx, rowGroup, leaf)
		if err != nil {
			return nil, err
		}
		if len(p) > 1 {
			pages[leaf] = p
			for _, page := range p {
				cuts = append(cuts, page.Range.Start)
			}
		}
	}
	if len(pages) == 0 {
		return []batch.Range{rows}, nil
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var kept []batch.Range
	for i := range len(cuts) - 1 {
		stretch := batch.Range{Start: cuts[i], End: cuts[i+1]}
		column := func(leaf int) Statistics {
			p, ok := pages[leaf]
			if !ok {
				s := known(leaf)
				if s.NullCount > 0 && s.NullCount < s.Rows {
					s.NullCount = -1 // some, but perhaps not here
				} else if s.NullCount > 0 {
					s.NullCount = stretch.Len()
				}
				s.Rows = stretch.Len()
				return s
			}
			for len(p) > 1 && p[1].Range.Start <= stretch.Start { // stretches come in order
				p = p[1:]
			}
			pages[leaf] = p
			s := p[0].Statistics
			if s.NullCount > 0 && s.NullCount < s.Rows {
				s.NullCount = -1
			} else if s.NullCount > 0 {
				s.NullCount = stretch.Len()
			}
			s.Rows = stretch.Len()
			return s
		}
		if mayMatch(stretch.Len(), column) {
			kept = append(kept, stretch)
		}
	}
	return kept, nil
}

// PageStatistics are those of a leaf in the rows of one page.
type PageStatistics struct {
	Range batch.Range // file positions
	Statistics
}

// PageStatistics reads the page index of a leaf in one row group; nil when the
// file has none. An index that contradicts the column chunk is of no use and
// counts as none.
func (f *File) PageStatistics(ctx context.Context, rowGroup, leaf int) ([]PageStatistics, error) {
	g := &f.meta.rowGroups[rowGroup]
	l, c := f.schema.leaves[leaf], &g.columns[leaf]
	if c.columnIndex.length == 0 || c.encrypted || l.maxRep > 0 || l.physical != c.physical {
		return nil, nil
	}
	charged := f.opts.Pool.ReserveWorkingSet("Parquet page indexes") // while they are decoded
	defer charged.Free()
	locations, err := f.offsetIndex(ctx, c, 0, f.dataEnd, g.numRows, charged)
	if err != nil || locations == nil {
		return nil, err
	}
	buf, err := f.readIndex(ctx, c.columnIndex, charged)
	if err != nil || buf == nil {
		return nil, err
	}
	index, ok := parseColumnIndex(buf)
	n := len(locations)
	if !ok || len(index.nullPages) != n || len(index.min) != n || len(index.max) != n ||
		len(index.nullCounts) != n && len(index.nullCounts) != 0 {
		return nil, nil
	}
	first := int64(0)
	for i := range rowGroup {
		first += f.meta.rowGroups[i].numRows
	}
	pages := make([]PageStatistics, n)
	for i := range pages {
		end := g.numRows
		if i+1 < n {
			end = locations[i+1].firstRow
		}
		rows := batch.Range{Start: first + locations[i].firstRow, End: first + end}
		s := Statistics{Rows: rows.Len(), NullCount: -1}
		if len(index.nullCounts) > 0 && index.nullCounts[i] >= 0 && index.nullCounts[i] <= s.Rows {
			s.NullCount = index.nullCounts[i]
		}
		if index.nullPages[i] {
			s.NullCount = s.Rows
		} else if f.typeOrdered(l) {
			s.Lower, s.Upper = f.convertBounds(l, index.min[i], index.max[i])
		}
		pages[i] = PageStatistics{Range: rows, Statistics: s}
	}
	return pages, nil
}

// columnIndex holds the statistics of a column chunk's pages.
type columnIndex struct {
	nullPages  []bool
	min, max   [][]byte
	nullCounts []int64
}

func parseColumnIndex(buf []byte) (columnIndex, bool) {
	var index columnIndex
	t := &thriftReader{buf: buf}
	for id, typ := range t.fields() {
		switch id {
		case 1:
			for range t.elements(typ, thriftTrue) {
				index.nullPages = append(index.nullPages, t.boolElement())
			}
		case 2:
			for range t.elements(typ, thriftBinary) {
				index.min = append(index.min, t.bytes(thriftBinary))
			}
		case 3:
			for range t.elements(typ, thriftBinary) {
				index.max = append(index.max, t.bytes(thriftBinary))
			}
		case 5:
			for range t.elements(typ, thriftI64) {
				index.nullCounts = append(index.nullCounts, t.int64(thriftI64))
			}
		default:
			t.skip(typ)
		}
	}
	return index, !t.failed
}
