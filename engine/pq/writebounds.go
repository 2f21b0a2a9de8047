package pq

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// bounds are the least and the greatest of some values that are neither null
// nor NaN, each as a leaf stores it: in the encoding PLAIN, without a length.
type bounds struct {
	min, max []byte // nil: there is no value, or the bound is lost
	// cutMin and cutMax say that a bound lies beyond the values: it was
	// truncated.
	cutMin, cutMax bool
	// lostMin and lostMax say that there are values and no bound of them.
	lostMin, lostMax bool
}

// maxBound is the longest value that bounds hold whole: what bounds take stays
// small whatever the values are.
const maxBound = 4 << 10 // 4 KiB

// boundsOf are the bounds of values of which the least and the greatest are
// given. They copy what they keep.
func boundsOf(l *leaf, min, max []byte) bounds {
	b := bounds{min: append([]byte{}, min...), max: append([]byte{}, max...)}
	return b.truncate(l, maxBound)
}

// merge widens the bounds to those of more values.
func (b *bounds) merge(l *leaf, more bounds) {
	if b.lostMin || more.lostMin {
		b.min, b.lostMin = nil, true
	} else if more.min != nil && (b.min == nil || l.compare(more.min, b.min) < 0) {
		b.min, b.cutMin = more.min, more.cutMin
	}
	if b.lostMax || more.lostMax {
		b.max, b.lostMax = nil, true
	} else if more.max != nil && (b.max == nil || l.compare(more.max, b.max) > 0) {
		b.max, b.cutMax = more.max, more.cutMax
	}
}

// known reports whether there are values and both bounds of them.
func (b *bounds) known() bool { return b.min != nil && b.max != nil }

// truncate cuts bounds of strings to so many bytes. A greatest value that
// cannot be rounded up is lost.
func (b bounds) truncate(l *leaf, length int) bounds {
	if l.physical != physByteArray || l.logical.kind == logicalDecimal {
		return b
	}
	if len(b.min) > length {
		b.min, b.cutMin = cutString(b.min, length), true
	}
	if len(b.max) > length {
		cut := cutString(b.max, length)
		if l.logical.kind == logicalString {
			b.max = roundUpString(cut)
		} else {
			b.max = roundUpBytes(cut)
		}
		b.cutMax, b.lostMax = true, b.max == nil
	}
	return b
}

// cutString cuts at most length bytes off a longer value, at the end of a
// code point where it has one.
func cutString(v []byte, length int) []byte {
	end := length
	for end > length-utf8.UTFMax && end > 0 && !utf8.RuneStart(v[end]) {
		end--
	}
	if end == 0 || !utf8.RuneStart(v[end]) {
		end = length
	}
	return bytes.Clone(v[:end])
}

// cutPoints keeps the first n code points.
func cutPoints(v []byte, n int) []byte {
	end := 0
	for ; n > 0 && end < len(v); n-- {
		_, size := utf8.DecodeRune(v[end:])
		end += size
	}
	return v[:end]
}

// roundUpString returns a string of whole code points that is greater than
// every string with the prefix v: its last code point that can be raised is
// raised, what follows is dropped. nil: there is none.
func roundUpString(v []byte) []byte {
	if !utf8.Valid(v) {
		return nil
	}
	for len(v) > 0 {
		r, size := utf8.DecodeLastRune(v)
		v = v[:len(v)-size]
		if r < utf8.MaxRune {
			r++
			if r == 0xd800 { // the surrogates are no code points of UTF-8
				r = 0xe000
			}
			return utf8.AppendRune(bytes.Clone(v), r)
		}
	}
	return nil
}

// roundUpBytes is roundUpString for bytes.
func roundUpBytes(v []byte) []byte {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i] < 0xff {
			up := bytes.Clone(v[:i+1])
			up[i]++
			return up
		}
	}
	return nil
}

// compare orders stored values as Iceberg does, which is the order that
// Parquet's types define too: floats in their total order.
func (l *leaf) compare(a, b []byte) int {
	switch l.physical {
	case physInt32:
		return cmp.Compare(int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)))
	case physInt64:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	case physFloat:
		return compareFloats(float64(math.Float32frombits(binary.LittleEndian.Uint32(a))),
			float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case physDouble:
		return compareFloats(math.Float64frombits(binary.LittleEndian.Uint64(a)),
			math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	if l.logical.kind == logicalDecimal && len(a) > 0 && len(b) > 0 {
		if c := cmp.Compare(int8(a[0]), int8(b[0])); c != 0 {
			return c
		}
	}
	return bytes.Compare(a, b)
}

// compareFloats orders numbers: -0.0 before 0.0.
func compareFloats(a, b float64) int {
	if a == 0 && b == 0 {
		return cmp.Compare(math.Copysign(1, a), math.Copysign(1, b))
	}
	return cmp.Compare(a, b)
}

// parquetBound is a bound as Parquet's statistics want it: readers may take
// the zeros for equal, so that a bound of zero includes both.
func (l *leaf) parquetBound(v []byte, lower bool) []byte {
	if v == nil || l.physical != physFloat && l.physical != physDouble {
		return v
	}
	return l.convertBound(v, lower)
}

// icebergBound is a bound in Iceberg's single-value serialisation.
func (l *leaf) icebergBound(v []byte) []byte {
	if v == nil || l.logical.kind != logicalDecimal {
		return v
	}
	switch l.physical {
	case physInt32:
		v = binary.BigEndian.AppendUint32(nil, binary.LittleEndian.Uint32(v))
	case physInt64:
		v = binary.BigEndian.AppendUint64(nil, binary.LittleEndian.Uint64(v))
	}
	// The fewest bytes whose first bit is the sign.
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:]
	}
	return v
}

// truncateBounds cuts bounds as a metrics mode asks for: strings to so many
// code points, binaries to so many bytes. Other types stay whole.
func (l *leaf) truncateBounds(b bounds, length int) (lower, upper []byte) {
	lower, upper = b.min, b.max
	switch {
	case l.logical.kind == logicalString:
		lower = cutPoints(lower, length)
		if cut := cutPoints(upper, length); len(cut) < len(upper) {
			upper = roundUpString(cut)
		}
	case l.typ.ID() == arrow.BINARY:
		lower = lower[:min(len(lower), length)]
		if len(upper) > length {
			upper = roundUpBytes(upper[:length])
		}
	}
	return lower, upper
}
