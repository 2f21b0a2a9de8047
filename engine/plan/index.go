package plan

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
)

// deleteIndex finds the delete files that may apply to a data file:
//
//	delete file                                applies to data files               found by
//	deletion vector                            the one it references               path
//	position deletes with a referenced file    the one it references               path
//	other position deletes                     of the same spec and partition      partition, then range of paths
//	equality deletes                           of the same spec and partition      partition, then ranges of keys
//	equality deletes, unpartitioned spec       all                                 ranges of keys
//
// It is filled by add and build, and read-only afterwards.
type deleteIndex struct {
	table *meta.Table
	held  *mem.Reservation

	scopes map[string]*scope // by scopeKey
	byID   []*scope
	global []*group // equality deletes
	byPath *fileScoped

	keyIDs map[int]bool // every equality id seen
}

// scope is the data files of one partition spec and partition.
type scope struct {
	id        uint32
	partition []iceberg.Literal
	positions *group
	equality  []*group
}

func newDeleteIndex(table *meta.Table, held *mem.Reservation) *deleteIndex {
	return &deleteIndex{table: table, held: held, scopes: map[string]*scope{}, byPath: newFileScoped(), keyIDs: map[int]bool{}}
}

// scopeKey encodes a partition spec and partition.
func scopeKey(key []byte, f *File) []byte {
	return appendTuple(binary.LittleEndian.AppendUint32(key, uint32(f.SpecID)), f.Partition)
}

// scope finds the scope of a data file, nil when no delete file has the same.
func (x *deleteIndex) scope(f *File) *scope {
	var buf [64]byte
	return x.scopes[string(scopeKey(buf[:0], f))]
}

// addScope finds or makes the scope of a delete file.
func (x *deleteIndex) addScope(f *File) (*scope, error) {
	var buf [64]byte
	key := scopeKey(buf[:0], f)
	if s, ok := x.scopes[string(key)]; ok {
		return s, nil
	}
	const literal = 48 // an interface and what it points to, roughly
	if err := x.held.TryGrow(int64(unsafe.Sizeof(scope{})) + 2*int64(len(key)) + literal*int64(len(f.Partition)) + 64); err != nil {
		return nil, err
	}
	s := &scope{id: uint32(len(x.byID)), partition: f.Partition}
	x.scopes[string(key)] = s
	x.byID = append(x.byID, s)
	return s, nil
}

// add takes a delete file over.
func (x *deleteIndex) add(f *File) error {
	s, err := x.addScope(f)
	if err != nil {
		return err
	}
	f.Partition = s.partition // one tuple for all files of a partition
	if f.Content == EqualityDeletes {
		return x.addEquality(f, s)
	}
	if f.IsDV() {
		if err := x.checkDV(f); err != nil {
			return err
		}
	}
	if _, known := formatNumber(f.Format); known && f.ReferencedDataFile != nil {
		if err := x.held.TryGrow(scopedSize(f)); err != nil {
			return err
		}
		x.byPath.add(f, s.id)
		return nil
	}
	if s.positions == nil {
		s.positions = &group{}
	}
	return x.addToGroup(s.positions, f, []keyRange{pathRange(f.Metrics)})
}

func (x *deleteIndex) checkDV(f *File) error {
	switch {
	case f.ReferencedDataFile == nil:
		return errs.New(errs.Corrupt, "the deletion vector in %s does not name its data file", f.Path)
	case f.ContentOffset == nil || f.ContentSize == nil:
		return errs.New(errs.Corrupt, "the deletion vector in %s for %s has no offset or size", f.Path, *f.ReferencedDataFile)
	}
	var err error
	x.byPath.of(*f.ReferencedDataFile, func(r *scopedRecord) {
		if r.isDV() {
			err = errs.New(errs.Corrupt, "the data file %s has two deletion vectors, in %s and %s",
				*f.ReferencedDataFile, x.byPath.strings.get(r.path), f.Path)
		}
	})
	return err
}

func (x *deleteIndex) addEquality(f *File, s *scope) error {
	if len(f.EqualityIDs) == 0 {
		return errs.New(errs.Corrupt, "the equality-delete file %s has no equality ids", f.Path)
	}
	groups := &s.equality
	if spec, ok := x.table.SpecByID(f.SpecID); ok && spec.IsUnpartitioned() {
		groups = &x.global
	}
	ids := slices.Clone(f.EqualityIDs)
	slices.Sort(ids)
	g := groupOf(*groups, ids)
	if g == nil {
		g = &group{columns: keyColumns(x.table, ids), after: true}
		*groups = append(*groups, g)
		for _, id := range ids {
			x.keyIDs[id] = true
		}
	}
	ranges := make([]keyRange, len(ids))
	for i, c := range g.columns {
		ranges[i] = rangeOf(f.Metrics, c)
	}
	return x.addToGroup(g, f, ranges)
}

// groupOf finds the group of a set of equality ids. A scope has few of them.
func groupOf(groups []*group, ids []int) *group {
	for _, g := range groups {
		if slices.EqualFunc(g.columns, ids, func(c column, id int) bool { return c.id == id }) {
			return g
		}
	}
	return nil
}

func (x *deleteIndex) addToGroup(g *group, f *File, ranges []keyRange) error {
	f.Metrics, f.SplitOffsets, f.SortOrderID = nil, nil, nil // used up, and of no use to anyone
	size := fileSize(f) + int64(unsafe.Sizeof(candidate{})) + int64(unsafe.Sizeof(maximum{}))
	for _, r := range ranges {
		size += int64(unsafe.Sizeof(r)) + int64(len(r.lower)+len(r.upper))
	}
	if err := x.held.TryGrow(size); err != nil {
		return err
	}
	g.add(f, ranges)
	return nil
}

// build ends adding.
func (x *deleteIndex) build() {
	for _, s := range x.byID {
		if s.positions != nil {
			s.positions.build()
		}
		for _, g := range s.equality {
			g.build()
		}
	}
	for _, g := range x.global {
		g.build()
	}
}

// empty reports whether there are no delete files at all.
func (x *deleteIndex) empty() bool { return len(x.byID) == 0 }

// find returns the delete files that may apply to a data file, in the order of
// their data sequence numbers, and the memory that the answer takes. s is the
// file's scope.
func (x *deleteIndex) find(data *File, s *scope) ([]*File, int64, error) {
	if x.empty() {
		return nil, 0, nil
	}
	var found answer
	hasDV, err := x.findByPath(&found, data, s)
	if err != nil {
		return nil, 0, err
	}
	ranges := dataRanges{file: data}
	if s != nil {
		if s.positions != nil && !hasDV {
			path := []keyRange{{lower: data.Path, upper: data.Path, bounded: true, mayValue: true}}
			found.add(s.positions.collect(data.DataSequence, path))
		}
		for _, g := range s.equality {
			found.add(g.collect(data.DataSequence, ranges.of(g.columns)))
		}
	}
	for _, g := range x.global {
		found.add(g.collect(data.DataSequence, ranges.of(g.columns)))
	}
	return found.files, found.size, nil
}

// findByPath looks for the deletion vector of a data file or, without one, for
// the position-delete files that reference it.
func (x *deleteIndex) findByPath(found *answer, data *File, s *scope) (hasDV bool, err error) {
	var vector *scopedRecord
	var positions []*scopedRecord
	x.byPath.of(data.Path, func(r *scopedRecord) {
		switch same := s != nil && r.scope == s.id; {
		case r.dataSequence < data.DataSequence:
		case r.isDV() && !same:
			err = errs.New(errs.Corrupt, "the deletion vector in %s for %s is of another partition than its data file",
				x.byPath.strings.get(r.path), data.Path)
		case r.isDV():
			vector = r
		case same:
			positions = append(positions, r)
		}
	})
	if vector != nil {
		positions = []*scopedRecord{vector}
	}
	if err != nil || len(positions) == 0 {
		return false, err
	}
	files := make([]*File, len(positions))
	for i, r := range positions {
		f := x.byPath.file(r, s)
		files[len(files)-1-i] = f // the newest is first in its chain
		found.size += fileSize(f)
	}
	found.add(files, false)
	return vector != nil, nil
}

// answer gathers delete files in the order of their sequence numbers. size is
// what it takes beyond what the index holds.
type answer struct {
	files []*File
	size  int64
}

func (a *answer) add(files []*File, shared bool) {
	bySequence := func(a, b *File) int { return cmp.Compare(a.DataSequence, b.DataSequence) }
	switch {
	case len(files) == 0:
		return
	case !shared:
		slices.SortStableFunc(files, bySequence)
	}
	if len(a.files) == 0 {
		a.files = files
		if !shared {
			a.size += 8 * int64(len(files))
		}
		return
	}
	a.files = append(slices.Clip(a.files), files...) // which copies: a shared slice is not the answer's
	slices.SortStableFunc(a.files, bySequence)
	a.size += 8 * int64(len(a.files))
}

// dataRanges computes the ranges of a data file's columns once for all groups.
type dataRanges struct {
	file  *File
	known []struct {
		id int
		r  keyRange
	}
}

func (d *dataRanges) of(columns []column) []keyRange {
	out := make([]keyRange, len(columns))
next:
	for i, c := range columns {
		for _, k := range d.known {
			if k.id == c.id {
				out[i] = k.r
				continue next
			}
		}
		out[i] = rangeOf(d.file.Metrics, c)
		d.known = append(d.known, struct {
			id int
			r  keyRange
		}{c.id, out[i]})
	}
	return out
}

// fileSize is roughly how much memory a File takes.
func fileSize(f *File) int64 {
	n := int64(unsafe.Sizeof(*f)) + int64(len(f.Path)) + 8*int64(len(f.EqualityIDs)+len(f.SplitOffsets)) + 32*int64(len(f.Partition))
	if f.ReferencedDataFile != nil {
		n += 16 + int64(len(*f.ReferencedDataFile))
	}
	if m := f.Metrics; m != nil {
		const mapEntry = 32
		n += mapEntry * int64(len(m.ColumnSizes)+len(m.ValueCounts)+len(m.NullCounts)+len(m.NaNCounts))
		for _, bounds := range []map[int][]byte{m.LowerBounds, m.UpperBounds} {
			for _, b := range bounds {
				n += mapEntry + 24 + int64(len(b))
			}
		}
	}
	return n
}

// MemorySize is about what the task takes, as if no other shared its deletes.
func (t *Task) MemorySize() int64 {
	size := int64(unsafe.Sizeof(*t)) + fileSize(t.Data) + int64(len(t.Deletes))*int64(unsafe.Sizeof(t.Data))
	for _, f := range t.Deletes {
		size += fileSize(f)
	}
	return size
}
