package sort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	// Rows are buffered in chunks of this size, so that a small sort holds
	// little and memory moves from one buffer to the next without copying.
	chunkBits = 18
	chunkSize = 1 << chunkBits // 256 KiB
	entrySize = 16
)

// buffer holds rows in the order of their arrival until they are sorted.
//
//	chunks   rows, one after the other; one larger than a chunk has its own,
//	         which takes the place of several
//	entries  made by sort: the beginning of the key, and where the row is
type buffer struct {
	chunks  [][]byte // nil where a large chunk goes on
	used    []int
	rows    int
	bytes   int64
	charged int64 // of the sort's reservation
	entries []entry
}

// entry stands for a row while it is sorted: mostly its first twelve bytes
// decide, without a look at the row.
type entry struct {
	first uint64
	next  uint32
	// row is the chunk's place << chunkBits + the place in the chunk; it grows
	// with arrival, which makes the sort stable.
	row uint32
}

// maxBufferBytes keeps row places within 32 bits, whatever the last row adds.
const maxBufferBytes = 1 << 31

func (b *buffer) at(row uint32) []byte { return b.chunks[row>>chunkBits][row&(chunkSize-1):] }

// room is how much of the current chunk is free.
func (b *buffer) room() []byte {
	last := len(b.chunks) - 1
	for last >= 0 && b.chunks[last] == nil {
		last--
	}
	if last < 0 {
		return nil
	}
	return b.chunks[last][b.used[last]:]
}

func (b *buffer) took(n, rows int) {
	last := len(b.chunks) - 1
	for b.chunks[last] == nil {
		last--
	}
	b.used[last] += n
	b.rows += rows
	b.bytes += int64(n)
}

func (b *buffer) add(chunk []byte) {
	for i := 0; i == 0 || i<<chunkBits < len(chunk); i++ {
		b.chunks, b.used = append(b.chunks, nil), append(b.used, 0)
		if i == 0 {
			b.chunks[len(b.chunks)-1] = chunk
		}
	}
}

// sort puts the entries into the order of their keys, and equal keys into the
// order of arrival.
func (b *buffer) sort(l *layout) {
	b.entries = make([]entry, 0, b.rows)
	for c, used := range b.used {
		for at := 0; at < used; {
			row := b.chunks[c][at:]
			key := l.key(row)
			e := entry{row: uint32(c<<chunkBits + at)}
			if len(key) >= 12 {
				e.first, e.next = binary.BigEndian.Uint64(key), binary.BigEndian.Uint32(key[8:])
			} else {
				var short [12]byte // no key is the beginning of another
				copy(short[:], key)
				e.first, e.next = binary.BigEndian.Uint64(short[:]), binary.BigEndian.Uint32(short[8:])
			}
			b.entries = append(b.entries, e)
			at += int(binary.LittleEndian.Uint32(row))
		}
	}
	slices.SortFunc(b.entries, func(x, y entry) int {
		switch {
		case x.first != y.first:
			if x.first < y.first {
				return -1
			}
			return 1
		case x.next != y.next:
			return cmp.Compare(x.next, y.next)
		}
		if order := bytes.Compare(l.key(b.at(x.row)), l.key(b.at(y.row))); order != 0 {
			return order
		}
		return cmp.Compare(x.row, y.row)
	})
}

// row is a row in sorted order.
func (b *buffer) row(i int) []byte {
	row := b.at(b.entries[i].row)
	return row[:binary.LittleEndian.Uint32(row)]
}

// free gives the chunks back to the allocator.
func (b *buffer) free(alloc memory.Allocator) {
	for _, c := range b.chunks {
		if c != nil {
			alloc.Free(c)
		}
	}
	b.chunks, b.used, b.entries = nil, nil, nil
}
