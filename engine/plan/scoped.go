package plan

import (
	"hash/maphash"
	"unsafe"
)

// fileScoped holds the delete files that name the one data file they apply to:
// deletion vectors, and position deletes with a referenced data file. There
// may be one for each data file of a table, so they are held without pointers:
// fixed-size records, and strings in an arena.
type fileScoped struct {
	seed    maphash.Seed
	first   map[uint64]uint32 // hash of the referenced path -> record number + 1
	records [][]scopedRecord  // in blocks
	n       int
	strings arena
}

const scopedBlock = 1 << 10 // records

// scopedRecord is one delete file. next chains the records of one hash.
type scopedRecord struct {
	referenced, path               arenaString
	recordCount, size              int64
	snapshotID                     int64
	dataSequence, fileSequence     int64
	contentOffset, contentSize     int64
	next, scope                    uint32
	specID                         int32
	format                         uint8 // index into scopedFormats
	hasContentOffset, hasContentSz bool
}

var scopedFormats = []string{FormatParquet, FormatAvro, FormatORC, FormatPuffin}

func (r *scopedRecord) isDV() bool { return scopedFormats[r.format] == FormatPuffin }

func newFileScoped() *fileScoped {
	return &fileScoped{seed: maphash.MakeSeed(), first: map[uint64]uint32{}}
}

// scopedSize is what adding f will take.
func scopedSize(f *File) int64 {
	const mapEntry = 32 // key, value and the map's slack
	return int64(unsafe.Sizeof(scopedRecord{})) + mapEntry + int64(len(f.Path)+len(*f.ReferencedDataFile))
}

func formatNumber(format string) (uint8, bool) {
	for i, f := range scopedFormats {
		if f == format {
			return uint8(i), true
		}
	}
	return 0, false
}

// add appends a delete file of a format that formatNumber knows.
func (s *fileScoped) add(f *File, scope uint32) {
	if s.n%scopedBlock == 0 {
		s.records = append(s.records, make([]scopedRecord, 0, scopedBlock))
	}
	r := scopedRecord{
		referenced: s.strings.add(*f.ReferencedDataFile), path: s.strings.add(f.Path),
		recordCount: f.RecordCount, size: f.Size, snapshotID: f.SnapshotID,
		dataSequence: f.DataSequence, fileSequence: f.FileSequence, scope: scope, specID: int32(f.SpecID),
	}
	r.format, _ = formatNumber(f.Format)
	if f.ContentOffset != nil {
		r.contentOffset, r.hasContentOffset = *f.ContentOffset, true
	}
	if f.ContentSize != nil {
		r.contentSize, r.hasContentSz = *f.ContentSize, true
	}
	hash := maphash.String(s.seed, *f.ReferencedDataFile)
	r.next = s.first[hash]
	block := &s.records[len(s.records)-1]
	*block = append(*block, r)
	s.n++
	s.first[hash] = uint32(s.n)
}

// of calls visit with the records that reference a path.
func (s *fileScoped) of(path string, visit func(*scopedRecord)) {
	for i := s.first[maphash.String(s.seed, path)]; i != 0; {
		r := &s.records[(i-1)/scopedBlock][(i-1)%scopedBlock]
		if s.strings.equal(r.referenced, path) {
			visit(r)
		}
		i = r.next
	}
}

// file makes the File of a record, whose scope is given.
func (s *fileScoped) file(r *scopedRecord, sc *scope) *File {
	referenced := s.strings.get(r.referenced)
	f := &File{
		Content: PositionDeletes, Path: s.strings.get(r.path), Format: scopedFormats[r.format],
		RecordCount: r.recordCount, Size: r.size, SpecID: int(r.specID), Partition: sc.partition,
		SnapshotID: r.snapshotID, DataSequence: r.dataSequence, FileSequence: r.fileSequence,
		ReferencedDataFile: &referenced,
	}
	if r.hasContentOffset {
		offset := r.contentOffset
		f.ContentOffset = &offset
	}
	if r.hasContentSz {
		size := r.contentSize
		f.ContentSize = &size
	}
	return f
}

// arena holds strings one after the other.
type arena struct{ chunks [][]byte }

const arenaChunk = 64 << 10 // 64 KiB

type arenaString struct{ chunk, start, length uint32 }

func (a *arena) add(s string) arenaString {
	last := len(a.chunks) - 1
	if last < 0 || cap(a.chunks[last])-len(a.chunks[last]) < len(s) {
		a.chunks = append(a.chunks, make([]byte, 0, max(arenaChunk, len(s))))
		last++
	}
	start := len(a.chunks[last])
	a.chunks[last] = append(a.chunks[last], s...)
	return arenaString{uint32(last), uint32(start), uint32(len(s))}
}

func (a *arena) bytes(s arenaString) []byte {
	return a.chunks[s.chunk][s.start : s.start+s.length]
}

func (a *arena) get(s arenaString) string { return string(a.bytes(s)) }

func (a *arena) equal(s arenaString, other string) bool { return string(a.bytes(s)) == other }
