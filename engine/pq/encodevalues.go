package pq

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/cespare/xxhash/v2"
)

// An encoder encodes the values of one leaf. Each call of load gives it some,
// of which add puts a part after the other into the open page:
//
//	load, add, add, endPage, add, load, add, ..., endPage, dictionaryPage, reset
type encoder interface {
	// load takes the picked values of an array, which stays untouched until
	// the next load, and returns their size in the encoding PLAIN.
	load(values arrow.Array, p picked) (size int, err error)
	// add encodes the loaded values [from, to) into the open page.
	add(from, to int)
	// pageBytes is the size of the open page's values, as far as it counts
	// against the limit; full says that the page must end.
	pageBytes() (n int, full bool)
	// endPage appends the open page's values to dst and starts a new page.
	// last says that it ends the column chunk.
	endPage(dst []byte, last bool) (out []byte, enc encoding, b bounds)
	// dictionaryPage appends the entries of the dictionary, in the encoding
	// PLAIN, when pages refer to one.
	dictionaryPage(dst []byte) (out []byte, entries int)
	// dictionaryBytes is the size of the dictionary that pages refer to.
	dictionaryBytes() int
	// nans counts the NaNs since reset.
	nans() int64
	// reset starts a column chunk.
	reset()
	// held is the memory that the encoder keeps.
	held() int
}

// newEncoder makes the encoder of a leaf. The filter may be nil.
func newEncoder(l *leaf, dictionaryBytes int, filter *bloomBuilder) encoder {
	switch l.physical {
	case physBoolean:
		return &boolEncoder{leaf: l}
	case physInt32:
		return newWordEncoder(l, dictionaryBytes, filter, signedBounds[uint32, int32])
	case physFloat:
		return newWordEncoder(l, dictionaryBytes, filter, floatBounds[uint32, float32])
	case physInt64:
		return newWordEncoder(l, dictionaryBytes, filter, signedBounds[uint64, int64])
	case physDouble:
		return newWordEncoder(l, dictionaryBytes, filter, floatBounds[uint64, float64])
	}
	return newBytesEncoder(l, dictionaryBytes, filter)
}

// boolEncoder encodes booleans as bits.
type boolEncoder struct {
	leaf      *leaf
	loaded    []bool
	bits      []byte
	n         int  // bits in the open page
	some, all bool // of the open page: there is a true, there is no false
}

func (e *boolEncoder) load(values arrow.Array, p picked) (int, error) {
	e.loaded = resized(e.loaded, p.len())
	v := storageOf(values).(*array.Boolean)
	p.each(func(i, at int) { e.loaded[i] = v.Value(at) })
	return (p.len() + 7) / 8, nil
}

func (e *boolEncoder) add(from, to int) {
	for _, v := range e.loaded[from:to] {
		if e.n&7 == 0 {
			e.bits = append(e.bits, 0)
		}
		if v {
			e.bits[e.n>>3] |= 1 << (e.n & 7)
		}
		e.some = e.some || v
		e.all = (e.all || e.n == 0) && v
		e.n++
	}
}

func (e *boolEncoder) pageBytes() (int, bool) { return len(e.bits), false }

func (e *boolEncoder) endPage(dst []byte, _ bool) ([]byte, encoding, bounds) {
	dst = append(dst, e.bits...)
	var b bounds
	if e.n > 0 {
		b = boundsOf(e.leaf, boolByte(e.all), boolByte(e.some))
	}
	e.reset()
	return dst, encPlain, b
}

func boolByte(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

func (e *boolEncoder) dictionaryPage(dst []byte) ([]byte, int) { return dst, 0 }
func (e *boolEncoder) dictionaryBytes() int                    { return 0 }
func (e *boolEncoder) nans() int64                             { return 0 }
func (e *boolEncoder) held() int                               { return cap(e.loaded) + cap(e.bits) }

func (e *boolEncoder) reset() {
	e.bits, e.n, e.some, e.all = e.bits[:0], 0, false, false
}

// wordEncoder encodes the types whose values are words of 32 or 64 bits.
type wordEncoder[T uint32 | uint64] struct {
	leaf    *leaf
	extrema func(values []T) extrema[T]
	filter  *bloomBuilder

	loaded, scratch []T

	pages dictionaryPages
	table wordTable[T]
	plain []byte // the open page in the encoding PLAIN

	page  extrema[T] // of the open page
	count int64      // NaNs since reset
}

// extrema are the least and the greatest of values as words, NaNs left out.
type extrema[T uint32 | uint64] struct {
	min, max T
	some     bool // there are any
	nans     int
}

func newWordEncoder[T uint32 | uint64](l *leaf, dictionaryBytes int, filter *bloomBuilder, find func([]T) extrema[T]) *wordEncoder[T] {
	return &wordEncoder[T]{leaf: l, extrema: find, filter: filter, pages: dictionaryPages{limit: dictionaryBytes}}
}

func (e *wordEncoder[T]) width() int { return int(unsafe.Sizeof(T(0))) }

func (e *wordEncoder[T]) load(values arrow.Array, p picked) (size int, err error) {
	values = storageOf(values)
	if d, ok := values.(*array.Decimal128); ok {
		e.scratch, err = gatherDecimals(e.scratch, e.leaf, fixedWidthBytes(d.Data(), 16), p)
		e.loaded = e.scratch
	} else {
		e.loaded, e.scratch = gatherWords(e.scratch, wordsOf[T](fixedWidthBytes(values.Data(), e.width())), p)
	}
	return len(e.loaded) * e.width(), err
}

// wordsOf and bytesOf reinterpret memory. Arrow's values are little-endian, as
// Parquet's are.
func wordsOf[T uint32 | uint64](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(T(0))))
}

func bytesOf[T uint32 | uint64](words []T) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*int(unsafe.Sizeof(words[0])))
}

func (e *wordEncoder[T]) add(from, to int) {
	values := e.loaded[from:to]
	found := e.extrema(values)
	e.count += int64(found.nans)
	e.page.merge(e.leaf, found)
	if e.pages.state == dictTrial {
		n := min(len(values), e.pages.trialLeft())
		e.addIndices(values[:n])
		values = values[n:]
		if e.pages.trialLeft() == 0 && !e.pages.decide(len(e.table.entries), e.entryBytes(), 0, false /* last */) {
			e.goPlain()
		}
	}
	if e.pages.state == dictPlain {
		e.addPlain(values)
	} else {
		e.addIndices(values)
	}
}

func (e *wordEncoder[T]) addIndices(values []T) {
	for _, v := range values {
		i, isNew := e.table.add(v)
		e.pages.indices = append(e.pages.indices, i)
		if isNew && e.filter != nil {
			e.filter.add(xxhash.Sum64(bytesOf([]T{v})))
		}
	}
}

// goPlain turns the open page's indices into values.
func (e *wordEncoder[T]) goPlain() {
	for _, i := range e.pages.indices {
		e.plain = append(e.plain, bytesOf(e.table.entries[i:i+1])...)
	}
	e.pages.indices = e.pages.indices[:0]
	if e.pages.state == dictPlain {
		e.table.reset()
	}
}

func (e *wordEncoder[T]) addPlain(values []T) {
	e.plain = append(e.plain, bytesOf(values)...)
	if e.filter != nil {
		for i := range values {
			e.filter.add(xxhash.Sum64(bytesOf(values[i : i+1])))
		}
	}
}

func (e *wordEncoder[T]) dictionaryBytes() int { return e.pages.dictionaryBytes(e.entryBytes()) }

func (e *wordEncoder[T]) entryBytes() int { return len(e.table.entries) * e.width() }

func (e *wordEncoder[T]) pageBytes() (int, bool) {
	full := e.entryBytes() > e.pages.limit
	switch e.pages.state {
	case dictTrial:
		return len(e.pages.indices) * e.width(), full
	case dictUsed:
		return len(e.pages.indices) * int(widthOf(len(e.table.entries))) / 8, full
	}
	return len(e.plain), false
}

func (e *wordEncoder[T]) endPage(dst []byte, last bool) ([]byte, encoding, bounds) {
	var b bounds
	if e.page.some {
		b = bounds{min: e.stored(e.page.min), max: e.stored(e.page.max)}
		e.page = extrema[T]{}
	}
	entries := len(e.table.entries)
	if e.pages.state == dictTrial && !e.pages.decide(entries, e.entryBytes(), len(e.pages.indices)*e.width(), last) {
		e.goPlain()
	}
	if e.pages.state == dictUsed {
		dst = e.pages.appendIndices(dst, entries)
		if e.entryBytes() > e.pages.limit {
			e.pages.state = dictPlain
		}
		return dst, encRLEDictionary, b
	}
	dst = append(dst, e.plain...)
	e.plain = e.plain[:0]
	return dst, encPlain, b
}

func (e *wordEncoder[T]) stored(v T) []byte {
	if e.width() == 4 {
		return binary.LittleEndian.AppendUint32(nil, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v))
}

func (e *wordEncoder[T]) dictionaryPage(dst []byte) ([]byte, int) {
	if !e.pages.written {
		return dst, 0
	}
	return append(dst, bytesOf(e.table.entries)...), len(e.table.entries)
}

func (e *wordEncoder[T]) nans() int64 { return e.count }

func (e *wordEncoder[T]) reset() {
	e.table.reset()
	e.pages.reset()
	e.plain, e.page, e.count = e.plain[:0], extrema[T]{}, 0
}

func (e *wordEncoder[T]) held() int {
	return (cap(e.scratch)+cap(e.table.entries))*e.width() + 4*len(e.table.slots) + 4*cap(e.pages.indices) + cap(e.plain)
}

// merge widens the extrema to those of more values.
func (x *extrema[T]) merge(l *leaf, more extrema[T]) {
	if !more.some {
		return
	}
	if !x.some || l.lessWord(uint64(more.min), uint64(x.min)) {
		x.min = more.min
	}
	if !x.some || l.lessWord(uint64(x.max), uint64(more.max)) {
		x.max = more.max
	}
	x.some = true
}

// lessWord orders words as the leaf's type does.
func (l *leaf) lessWord(a, b uint64) bool {
	switch l.physical {
	case physInt32:
		return int32(a) < int32(b)
	case physFloat:
		return compareFloats(float64(math.Float32frombits(uint32(a))), float64(math.Float32frombits(uint32(b)))) < 0
	case physDouble:
		return compareFloats(math.Float64frombits(a), math.Float64frombits(b)) < 0
	}
	return int64(a) < int64(b)
}

// signedBounds and floatBounds see words as numbers of type N.
func signedBounds[T uint32 | uint64, N int32 | int64](words []T) extrema[T] {
	if len(words) == 0 {
		return extrema[T]{}
	}
	low, high := N(words[0]), N(words[0])
	for _, w := range words[1:] {
		low, high = min(low, N(w)), max(high, N(w))
	}
	return extrema[T]{min: T(low), max: T(high), some: true}
}

func floatBounds[T uint32 | uint64, N float32 | float64](words []T) extrema[T] {
	var x extrema[T]
	if len(words) == 0 {
		return x
	}
	numbers := unsafe.Slice((*N)(unsafe.Pointer(&words[0])), len(words))
	low, high := N(math.Inf(1)), N(math.Inf(-1))
	for i, v := range numbers {
		if v != v {
			x.nans++
			continue
		}
		if v <= low && (v < low || v != 0 || words[i]>>(8*unsafe.Sizeof(v)-1) == 1) {
			low, x.min = v, words[i]
		}
		if v >= high && (v > high || v != 0 || words[i] == 0) {
			high, x.max = v, words[i]
		}
	}
	x.some = x.nans < len(words)
	return x
}
