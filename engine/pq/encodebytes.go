package pq

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"
)

// bytesEncoder encodes strings, binaries and the values of fixed length:
// uuids, fixed and large decimals.
type bytesEncoder struct {
	leaf   *leaf
	filter *bloomBuilder
	prefix int    // bytes of the length in front of each plain value
	sign   uint64 // the bit of a value's head that orders the other way round

	loaded bytesSource

	pages dictionaryPages
	table bytesTable
	// stamps tells of each entry the last page that has it, so that the
	// extrema of a page compare each of its entries once.
	stamps []uint32
	stamp  uint32
	plain  []byte // the open page in the encoding PLAIN
	raw    int    // what the values of the trial page take in it

	min, max         []byte // of the open page; reused
	minHead, maxHead uint64
	some             bool
}

const lengthPrefix = 4

func newBytesEncoder(l *leaf, dictionaryBytes int, filter *bloomBuilder) *bytesEncoder {
	e := &bytesEncoder{leaf: l, filter: filter, pages: dictionaryPages{limit: dictionaryBytes}}
	if l.physical == physByteArray {
		e.prefix = lengthPrefix
	}
	if l.logical.kind == logicalDecimal {
		e.sign = 1 << 63
	}
	return e
}

func (e *bytesEncoder) load(values arrow.Array, p picked) (int, error) {
	err := e.loaded.load(e.leaf, values, p)
	return e.loaded.size() + p.len()*e.prefix, err
}

func (e *bytesEncoder) add(from, to int) {
	if e.pages.state == dictTrial {
		n := min(to-from, e.pages.trialLeft())
		e.addIndices(from, from+n)
		from += n
		if e.pages.trialLeft() == 0 && !e.pages.decide(e.table.len(), e.entryBytes(), 0, false /* last */) {
			e.goPlain()
		}
	}
	if e.pages.state == dictPlain {
		e.addPlain(from, to)
	} else {
		e.addIndices(from, to)
	}
}

// goPlain turns the open page's indices into values.
func (e *bytesEncoder) goPlain() {
	for _, i := range e.pages.indices {
		e.plain = e.appendPlain(e.plain, e.table.entry(i))
	}
	e.pages.indices, e.raw = e.pages.indices[:0], 0
	if e.pages.state == dictPlain {
		e.table.reset()
		e.stamps = e.stamps[:0]
	}
}

func (e *bytesEncoder) addIndices(from, to int) {
	for i := from; i < to; i++ {
		v := e.loaded.at(i)
		n, isNew := e.table.add(v)
		e.pages.indices = append(e.pages.indices, n)
		e.raw += len(v) + e.prefix
		if isNew {
			e.stamps = append(e.stamps, 0)
			if e.filter != nil {
				e.filter.add(xxhash.Sum64(v))
			}
		}
		if e.stamps[n] != e.stamp+1 {
			e.stamps[n] = e.stamp + 1
			e.bound(v, head(v, 0, len(v))^e.sign)
		}
	}
}

func (e *bytesEncoder) addPlain(from, to int) {
	buf, ranges := e.loaded.buf, e.loaded.ranges[from:to]
	size := len(ranges) * e.prefix
	for _, r := range ranges {
		size += r.end - r.start
	}
	at := len(e.plain)
	e.plain = extended(e.plain, size)
	for _, r := range ranges {
		v := buf[r.start:r.end]
		if e.prefix > 0 {
			binary.LittleEndian.PutUint32(e.plain[at:], uint32(len(v)))
			at += lengthPrefix
		}
		at += copy(e.plain[at:], v)
		h := head(buf, r.start, r.end) ^ e.sign
		if !e.some || h <= e.minHead || h >= e.maxHead {
			e.bound(v, h)
		}
	}
	if e.filter != nil {
		for _, r := range ranges {
			e.filter.add(xxhash.Sum64(buf[r.start:r.end]))
		}
	}
}

// extended appends n bytes whose contents are unspecified.
func extended(b []byte, n int) []byte {
	if need := len(b) + n; need <= cap(b) {
		return b[:need]
	}
	bigger := make([]byte, len(b)+n, max(len(b)+n, 2*cap(b)))
	copy(bigger, b)
	return bigger
}

// head is the start of a value as a number: of two values with different heads
// the one with the smaller head is the smaller one by its bytes.
func head(buf []byte, start, end int) uint64 {
	if start+8 <= len(buf) {
		h := binary.BigEndian.Uint64(buf[start:])
		if n := end - start; n < 8 {
			h &= ^uint64(0) << (64 - 8*n) // no bytes: a shift by 64, which gives 0
		}
		return h
	}
	h := uint64(0)
	for i, b := range buf[start:end] {
		h |= uint64(b) << (56 - 8*i)
	}
	return h
}

// bound widens the open page's extrema to a value.
func (e *bytesEncoder) bound(v []byte, h uint64) {
	if !e.some || h < e.minHead || h == e.minHead && e.leaf.compare(v, e.min) < 0 {
		e.min, e.minHead = append(e.min[:0], v...), h
	}
	if !e.some || h > e.maxHead || h == e.maxHead && e.leaf.compare(v, e.max) > 0 {
		e.max, e.maxHead = append(e.max[:0], v...), h
	}
	e.some = true
}

func (e *bytesEncoder) dictionaryBytes() int { return e.pages.dictionaryBytes(e.entryBytes()) }

func (e *bytesEncoder) entryBytes() int { return len(e.table.buf) + e.table.len()*e.prefix }

func (e *bytesEncoder) pageBytes() (int, bool) {
	full := e.entryBytes() > e.pages.limit
	switch e.pages.state {
	case dictTrial:
		return e.raw, full
	case dictUsed:
		return len(e.pages.indices) * int(widthOf(e.table.len())) / 8, full
	}
	return len(e.plain), false
}

func (e *bytesEncoder) endPage(dst []byte, last bool) ([]byte, encoding, bounds) {
	var b bounds
	if e.some {
		b = boundsOf(e.leaf, e.min, e.max)
		e.some = false
	}
	e.stamp++
	if e.pages.state == dictTrial && !e.pages.decide(e.table.len(), e.entryBytes(), e.raw, last) {
		e.goPlain()
	}
	if e.pages.state == dictUsed {
		dst = e.pages.appendIndices(dst, e.table.len())
		if e.entryBytes() > e.pages.limit {
			e.pages.state = dictPlain
		}
		return dst, encRLEDictionary, b
	}
	dst = append(dst, e.plain...)
	e.plain = e.plain[:0]
	return dst, encPlain, b
}

func (e *bytesEncoder) appendPlain(dst, v []byte) []byte {
	if e.prefix > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
	}
	return append(dst, v...)
}

func (e *bytesEncoder) dictionaryPage(dst []byte) ([]byte, int) {
	if !e.pages.written {
		return dst, 0
	}
	for i := range e.table.len() {
		dst = e.appendPlain(dst, e.table.entry(uint32(i)))
	}
	return dst, e.table.len()
}

func (e *bytesEncoder) nans() int64 { return 0 }

func (e *bytesEncoder) reset() {
	e.table.reset()
	e.pages.reset()
	e.stamps, e.stamp = e.stamps[:0], 0
	e.plain, e.raw, e.some = e.plain[:0], 0, false
}

func (e *bytesEncoder) held() int {
	return 16*cap(e.loaded.ranges) + cap(e.loaded.own) + e.table.held() + 4*cap(e.stamps) +
		4*cap(e.pages.indices) + cap(e.plain) + cap(e.min) + cap(e.max)
}
