package plan

import (
	"cmp"
	"slices"
	"sort"
)

// group holds delete files of one scope that are judged by the same columns:
// equality deletes with the same equality ids, or position deletes by the
// paths that they name. It answers which of them may apply to a data file
// without looking at all of them.
//
//	open      delete files without useful bounds, by sequence number:
//	          a suffix applies
//	ranged    delete files within bounds of one column, by lower bound, as an
//	          implicit interval tree: the middle of a slice is its root
type group struct {
	columns []column // of equality deletes; none for position deletes
	// After: the data sequence number of a delete must be greater than the
	// data file's (equality deletes), or may also equal it (position deletes).
	after bool

	open   []candidate
	ranged []candidate
	// files are those of open. anyOpen: the ranges of none of them exclude
	// anything, so that a part of files can be handed out as it is.
	files   []*File
	anyOpen bool
	// by is the column that ranged is sorted by; maxima[i] are of the subtree
	// whose root is ranged[i].
	by     int
	maxima []maximum
}

// candidate is a delete file with the ranges of its key columns.
type candidate struct {
	file   *File
	ranges []keyRange
}

type maximum struct {
	upper    string
	sequence int64
}

func (g *group) add(f *File, ranges []keyRange) {
	g.open = append(g.open, candidate{f, ranges})
}

// build ends adding.
func (g *group) build() {
	best := 0
	for c := range g.width() {
		n := 0
		for _, d := range g.open {
			if d.ranges[c].onlyBounded() {
				n++
			}
		}
		if n > best {
			best, g.by = n, c
		}
	}
	if best > 0 {
		all := g.open
		g.open, g.ranged = make([]candidate, 0, len(all)-best), make([]candidate, 0, best)
		for _, d := range all {
			if d.ranges[g.by].onlyBounded() {
				g.ranged = append(g.ranged, d)
			} else {
				g.open = append(g.open, d)
			}
		}
	}
	slices.SortStableFunc(g.open, func(a, b candidate) int { return cmp.Compare(a.file.DataSequence, b.file.DataSequence) })
	slices.SortStableFunc(g.ranged, func(a, b candidate) int {
		return cmp.Compare(a.ranges[g.by].lower, b.ranges[g.by].lower)
	})
	g.files, g.anyOpen = make([]*File, len(g.open)), true
	for i, d := range g.open {
		g.files[i] = d.file
		for _, r := range d.ranges {
			g.anyOpen = g.anyOpen && r == anything
		}
	}
	g.maxima = make([]maximum, len(g.ranged))
	g.fillMaxima(0, len(g.ranged))
}

// width is the number of ranges of each candidate.
func (g *group) width() int {
	if len(g.columns) == 0 {
		return 1 // the path
	}
	return len(g.columns)
}

func (g *group) fillMaxima(lo, hi int) maximum {
	if lo == hi {
		return maximum{sequence: -1}
	}
	mid := int(uint(lo+hi) / 2)
	m := maximum{upper: g.ranged[mid].ranges[g.by].upper, sequence: g.ranged[mid].file.DataSequence}
	for _, sub := range []maximum{g.fillMaxima(lo, mid), g.fillMaxima(mid+1, hi)} {
		m.upper = max(m.upper, sub.upper)
		m.sequence = max(m.sequence, sub.sequence)
	}
	g.maxima[mid] = m
	return m
}

// collect returns the delete files that may apply to a data file with the given
// sequence number and ranges. shared says that the slice is the group's own.
func (g *group) collect(sequence int64, data []keyRange) (found []*File, shared bool) {
	if g.after {
		sequence++
	}
	from := sort.Search(len(g.open), func(i int) bool { return g.open[i].file.DataSequence >= sequence })
	if data[g.by].mayValue {
		found = g.search(found, 0, len(g.ranged), sequence, data)
	}
	if g.anyOpen && len(found) == 0 {
		return slices.Clip(g.files[from:]), true
	}
	for _, d := range g.open[from:] {
		if matchAll(d.ranges, data) {
			found = append(found, d.file)
		}
	}
	return found, false
}

func (g *group) search(found []*File, lo, hi int, sequence int64, data []keyRange) []*File {
	key := data[g.by]
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if g.maxima[mid].sequence < sequence || key.bounded && g.maxima[mid].upper < key.lower {
			break
		}
		found = g.search(found, lo, mid, sequence, data)
		d := g.ranged[mid]
		if key.bounded && d.ranges[g.by].lower > key.upper {
			break // and so are all to the right
		}
		if d.file.DataSequence >= sequence && matchAll(d.ranges, data) {
			found = append(found, d.file)
		}
		lo = mid + 1
	}
	return found
}

func matchAll(a, b []keyRange) bool {
	for i := range a {
		if !a[i].matches(b[i]) {
			return false
		}
	}
	return true
}
