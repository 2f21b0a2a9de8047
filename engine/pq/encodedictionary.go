package pq

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// A column chunk starts out with a dictionary and goes on without when that
// does not pay:
//
//	trial ── its values are enough ──> dictionary ── dictionary full ──> plain
//	  └── nearly every one is new: they are written plain ──────────────^
type dictionaryState int8

const (
	dictTrial dictionaryState = iota
	dictUsed
	dictPlain
)

// dictionaryPages is the part of an encoder that decides about the dictionary
// and holds the open page's indices into it.
type dictionaryPages struct {
	state   dictionaryState
	indices []uint32
	seen    int  // values since the chunk's start, while on trial
	limit   int  // the dictionary's bytes
	written bool // pages refer to the dictionary
}

const (
	// trialValues end the trial: enough to see whether a dictionary of the
	// default size will do.
	trialValues = 4 << 10
	// fewValues are too few to tell from them that values do not repeat.
	fewValues = 1000
)

// trialLeft is how many more values of the open page belong to the trial.
func (d *dictionaryPages) trialLeft() int { return max(trialValues-len(d.indices), 0) }

// decide ends the trial, or a page of it, and says whether the page refers to
// the dictionary. Of the values so far, entries are distinct and take dictBytes
// in a dictionary; plain is what the page's values take without one. The last
// page of a chunk is often the only one: its sizes decide.
func (d *dictionaryPages) decide(entries, dictBytes, plain int, last bool) bool {
	d.seen += len(d.indices)
	repeats := d.seen - entries
	switch {
	case last:
		d.state = dictPlain
		if dictBytes+len(d.indices)*int(widthOf(entries-1))/8 < plain {
			d.state = dictUsed
		}
	case repeats == 0 && d.seen < fewValues && dictBytes <= d.limit:
		return false // the trial goes on
	case repeats > 0 && population(d.seen, repeats)*float64(dictBytes) <= float64(d.limit)*float64(entries):
		d.state = dictUsed // all that will come fit
	default:
		d.state = dictPlain
	}
	return d.state == dictUsed
}

// population estimates from how many different values a sample was drawn: of
// N, as long as n is small against N, n draws repeat n*n/2N times.
func population(n, repeats int) float64 {
	return float64(n) * float64(n) / float64(2*repeats)
}

// appendIndices encodes the open page's indices.
func (d *dictionaryPages) appendIndices(dst []byte, entries int) []byte {
	width := widthOf(max(entries-1, 0))
	dst = append(dst, byte(width))
	dst = appendHybrid(dst, d.indices, width)
	d.indices = d.indices[:0]
	d.written = true
	return dst
}

// dictionaryBytes is the size of entries as far as pages refer to them.
func (d *dictionaryPages) dictionaryBytes(entries int) int {
	if d.state == dictUsed || d.written {
		return entries
	}
	return 0
}

// reset starts a column chunk.
func (d *dictionaryPages) reset() {
	d.state, d.indices, d.seen, d.written = dictTrial, d.indices[:0], 0, false
}

// wordTable numbers distinct words in the order in which they come.
type wordTable[T uint32 | uint64] struct {
	entries []T
	slots   []uint32 // an entry's number plus one; a power of two in size
	shift   uint
}

// hashFactor spreads words over the high bits: 2^64 divided by the golden ratio.
const hashFactor = 0x9e3779b97f4a7c15

// add returns the number of a word, and whether it is new.
func (w *wordTable[T]) add(v T) (index uint32, isNew bool) {
	if 2*len(w.entries) >= len(w.slots) {
		w.grow()
	}
	mask := len(w.slots) - 1
	for at := int(uint64(v) * hashFactor >> w.shift); ; at = (at + 1) & mask {
		slot := w.slots[at]
		if slot == 0 {
			w.entries = append(w.entries, v)
			w.slots[at] = uint32(len(w.entries))
			return uint32(len(w.entries) - 1), true
		}
		if w.entries[slot-1] == v {
			return slot - 1, false
		}
	}
}

const firstSlots = 1024

func (w *wordTable[T]) grow() {
	w.slots = make([]uint32, max(2*len(w.slots), firstSlots))
	w.shift = uint(64 - bits.TrailingZeros(uint(len(w.slots))))
	mask := len(w.slots) - 1
	for i, v := range w.entries {
		at := int(uint64(v) * hashFactor >> w.shift)
		for w.slots[at] != 0 {
			at = (at + 1) & mask
		}
		w.slots[at] = uint32(i + 1)
	}
}

func (w *wordTable[T]) reset() {
	w.entries = w.entries[:0]
	clear(w.slots)
}

// bytesTable numbers distinct values of bytes in the order in which they come.
type bytesTable struct {
	seed  maphash.Seed
	buf   []byte // the entries, one behind the other
	ends  []int
	slots []uint64 // an entry's number plus one, below the high half of its hash
	hash  []uint32 // of each entry: the high half
}

func (b *bytesTable) len() int { return len(b.ends) }

func (b *bytesTable) entry(i uint32) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.buf[start:b.ends[i]]
}

// add returns the number of a value, and whether it is new.
func (b *bytesTable) add(v []byte) (index uint32, isNew bool) {
	if 2*len(b.ends) >= len(b.slots) {
		b.grow()
	}
	hash := uint32(maphash.Bytes(b.seed, v) >> 32)
	mask := len(b.slots) - 1
	for at := int(hash) & mask; ; at = (at + 1) & mask {
		slot := b.slots[at]
		if slot == 0 {
			b.buf = append(b.buf, v...)
			b.ends = append(b.ends, len(b.buf))
			b.hash = append(b.hash, hash)
			b.slots[at] = uint64(hash)<<32 | uint64(len(b.ends))
			return uint32(len(b.ends) - 1), true
		}
		if uint32(slot>>32) == hash && bytes.Equal(b.entry(uint32(slot)-1), v) {
			return uint32(slot) - 1, false
		}
	}
}

func (b *bytesTable) grow() {
	if b.slots == nil {
		b.seed = maphash.MakeSeed()
	}
	b.slots = make([]uint64, max(2*len(b.slots), firstSlots))
	mask := len(b.slots) - 1
	for i, hash := range b.hash {
		at := int(hash) & mask
		for b.slots[at] != 0 {
			at = (at + 1) & mask
		}
		b.slots[at] = uint64(hash)<<32 | uint64(i+1)
	}
}

func (b *bytesTable) reset() {
	b.buf, b.ends, b.hash = b.buf[:0], b.ends[:0], b.hash[:0]
	clear(b.slots)
}

func (b *bytesTable) held() int {
	return cap(b.buf) + 8*cap(b.ends) + 4*cap(b.hash) + 8*len(b.slots)
}
