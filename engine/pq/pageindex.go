package pq

import (
	"context"
	"sort"

	"github.com/icebergexec/icebergexec/engine/mem"
)

// pageLocation is an entry of an offset index: where a data page lies.
type pageLocation struct {
	offset   int64 // of the page's header in the file
	size     int32 // header and body
	firstRow int64 // counted in the row group
}

// maxIndex bounds an index that is read whole. A million pages take less.
const maxIndex = 64 << 20 // 64 MiB

// indexInMemory is how many bytes a decoded index may take for each of its
// bytes in the file.
const indexInMemory = 8

// readIndex reads an index in one piece; nil when there is none, or none that
// can be used: one that lies outside the file, or for which the pool has no
// room, as charged finds out.
func (f *File) readIndex(ctx context.Context, s section, charged *mem.Reservation) ([]byte, error) {
	if s.length <= 0 || s.length > maxIndex || s.offset < 0 || s.offset > f.dataEnd-int64(s.length) ||
		charged.TryGrow(indexInMemory*int64(s.length)) != nil {
		return nil, nil
	}
	return readRange(ctx, f.source, s.offset, s.offset+int64(s.length))
}

// parseOffsetIndex decodes an offset index; false when it is damaged.
func parseOffsetIndex(buf []byte) ([]pageLocation, bool) {
	var pages []pageLocation
	t := &thriftReader{buf: buf}
	for id, typ := range t.fields() {
		if id != 1 {
			t.skip(typ)
			continue
		}
		for range t.elements(typ, thriftStruct) {
			p := pageLocation{firstRow: -1}
			for id, typ := range t.fields() {
				switch id {
				case 1:
					p.offset = t.int64(typ)
				case 2:
					p.size = t.int32(typ)
				case 3:
					p.firstRow = t.int64(typ)
				default:
					t.skip(typ)
				}
			}
			pages = append(pages, p)
		}
	}
	return pages, !t.failed
}

// offsetIndex is the offset index of a column chunk whose pages lie in
// [start, end) of the file and have the given number of rows; nil when the
// file has none, or one that contradicts the column chunk: an index only
// saves reading.
func (f *File) offsetIndex(ctx context.Context, c *columnChunk, start, end, rows int64, charged *mem.Reservation) ([]pageLocation, error) {
	buf, err := f.readIndex(ctx, c.offsetIndex, charged)
	if err != nil || buf == nil {
		return nil, err
	}
	pages, ok := parseOffsetIndex(buf)
	if !ok || len(pages) == 0 || pages[0].firstRow != 0 {
		return nil, nil
	}
	for i, p := range pages {
		if p.size <= 0 || p.offset < start || p.offset > end-int64(p.size) || p.firstRow >= max(rows, 1) ||
			i > 0 && (p.firstRow <= pages[i-1].firstRow || p.offset < pages[i-1].offset+int64(pages[i-1].size)) {
			return nil, nil
		}
	}
	return pages, nil
}

// pageOf is the ordinal of the page that has a row.
func pageOf(pages []pageLocation, row int64) int {
	return sort.Search(len(pages), func(i int) bool { return pages[i].firstRow > row }) - 1
}
