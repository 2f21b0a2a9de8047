package keys

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

const (
	chunkBytes = 1 << 20 // 1 MiB: large against a key, small against any memory limit
	firstChunk = 4 << 10 // 4 KiB, since a table may be one of thousands with a few keys each
	entryAlign = 4       // of rank and length
	entryHead  = 8       // rank and length
	maxKey     = 1 << 30
)

// arena holds entries of (rank, length, key) in chunks. The place of an entry
// is one more than its offset / entryAlign in the sequence of chunks. An entry
// larger than a chunk has a chunk of its own, which takes up the numbers of as
// many chunks as it covers.
type arena struct {
	alloc  memory.Allocator
	charge *mem.Reservation
	chunks [][]byte
	used   int // bytes of the last chunk
}

func (a *arena) add(rank uint32, key []byte) (place uint32, err error) {
	if len(key) > maxKey {
		return 0, errs.New(errs.Unsupported, "a key has %s; keys of at most %s are supported", mem.FormatBytes(int64(len(key))), mem.FormatBytes(maxKey))
	}
	size := (entryHead + len(key) + entryAlign - 1) / entryAlign * entryAlign
	if err := a.room(size); err != nil {
		return 0, err
	}
	last := len(a.chunks) - 1
	entry := a.chunks[last][a.used : a.used+size]
	*(*uint32)(unsafe.Pointer(&entry[0])) = rank
	*(*uint32)(unsafe.Pointer(&entry[4])) = uint32(len(key))
	copy(entry[entryHead:], key)
	place = uint32((last*chunkBytes+a.used)/entryAlign + 1)
	a.used += size
	for covered := chunkBytes; covered < size; covered += chunkBytes {
		a.chunks = append(a.chunks, nil)
	}
	return place, nil
}

// room makes the last chunk hold size more bytes.
func (a *arena) room(size int) error {
	n := len(a.chunks)
	switch {
	case n == 0:
		return a.push(max(firstChunk, size))
	case a.used+size <= len(a.chunks[n-1]):
		return nil
	case n == 1 && a.used+size <= chunkBytes:
		return a.enlargeFirst(min(chunkBytes, max(2*len(a.chunks[0]), a.used+size)))
	}
	return a.push(max(chunkBytes, size))
}

func (a *arena) push(size int) error {
	if (len(a.chunks)*chunkBytes+size)/entryAlign >= math.MaxUint32 {
		return errs.New(errs.MemoryLimit, "a key table holds at most %s of keys", mem.FormatBytes(entryAlign<<32))
	}
	chunk, err := newSlice[byte](a.alloc, a.charge, uint64(size))
	if err != nil {
		return err
	}
	a.chunks = append(a.chunks, chunk)
	a.used = 0
	return nil
}

func (a *arena) enlargeFirst(size int) error {
	chunk, err := newSlice[byte](a.alloc, a.charge, uint64(size))
	if err != nil {
		return err
	}
	copy(chunk, a.chunks[0])
	freeSlice(a.alloc, a.charge, a.chunks[0])
	a.chunks[0] = chunk
	return nil
}

// entry is the rank and the key at a place.
func (a *arena) entry(place uint32) (rank *uint32, key []byte) {
	at := int(place-1) * entryAlign
	chunk := a.chunks[at/chunkBytes]
	at %= chunkBytes
	head := unsafe.Pointer(&chunk[at])
	length := *(*uint32)(unsafe.Add(head, 4))
	return (*uint32)(head), chunk[at+entryHead : at+entryHead+int(length)]
}

func (a *arena) free() {
	for _, chunk := range a.chunks {
		freeSlice(a.alloc, a.charge, chunk)
	}
	a.chunks, a.used = nil, 0
}
