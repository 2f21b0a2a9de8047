package pq

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

// converter turns values as Parquet stores them into their Arrow layout: as
// many as dst holds.
type converter func(dst, src []byte) error

// layout says how a leaf's values lie in Arrow memory.
type layout struct {
	width   int       // bytes of a value; zero: variable length
	boolean bool      // a byte while decoding, a bit in the end
	stored  int       // bytes of a value in Parquet; zero: variable length or bits
	convert converter // nil: the bytes stay as they are
}

func (l *leaf) layout() layout {
	stored := l.physical.width(l.length)
	switch {
	case l.typ.ID() == arrow.DECIMAL128:
		switch l.physical {
		case physInt32:
			return layout{width: 16, stored: stored, convert: decimalFromInt32}
		case physInt64:
			return layout{width: 16, stored: stored, convert: decimalFromInt64}
		}
		if stored > 0 && stored <= 8 {
			return layout{width: 16, stored: stored, convert: decimalFromShortBytes(stored)}
		}
		return layout{width: 16, stored: stored, convert: decimalFromFixedBytes(stored)}
	case l.physical == physBoolean:
		return layout{width: 1, boolean: true}
	case l.physical == physByteArray:
		return layout{}
	case l.physical == physInt96:
		return layout{width: 8, stored: stored, convert: microsFromInt96}
	}
	switch l.typ.ID() {
	case arrow.INT8, arrow.UINT8:
		return layout{width: 1, stored: stored, convert: narrowTo8}
	case arrow.INT16, arrow.UINT16:
		return layout{width: 2, stored: stored, convert: narrowTo16}
	}
	return layout{width: stored, stored: stored}
}

// narrowTo8 and narrowTo16 keep the low bytes of 32-bit integers.
func narrowTo8(dst, src []byte) error {
	for i := range dst {
		dst[i] = src[4*i]
	}
	return nil
}

func narrowTo16(dst, src []byte) error {
	for i := 0; i < len(dst); i += 2 {
		dst[i], dst[i+1] = src[2*i], src[2*i+1]
	}
	return nil
}

func decimalFromInt32(dst, src []byte) error {
	for len(dst) >= 16 && len(src) >= 4 {
		putDecimal(dst, int64(int32(binary.LittleEndian.Uint32(src))))
		dst, src = dst[16:], src[4:]
	}
	return nil
}

func decimalFromInt64(dst, src []byte) error {
	for len(dst) >= 16 && len(src) >= 8 {
		putDecimal(dst, int64(binary.LittleEndian.Uint64(src)))
		dst, src = dst[16:], src[8:]
	}
	return nil
}

func putDecimal(dst []byte, v int64) {
	binary.LittleEndian.PutUint64(dst, uint64(v))
	binary.LittleEndian.PutUint64(dst[8:], uint64(v>>63))
}

// decimalFromShortBytes converts big-endian values of up to 8 bytes.
func decimalFromShortBytes(width int) converter {
	shift := uint(64-8*width) & 63
	return func(dst, src []byte) error {
		// Whole words are loaded while the source has them; the bytes behind
		// the value are shifted out.
		for len(dst) >= 16 && len(src) >= 8 {
			putDecimal(dst, int64(bits.ReverseBytes64(binary.LittleEndian.Uint64(src)))>>shift)
			dst, src = dst[16:], src[width:]
		}
		for len(dst) >= 16 && len(src) >= width {
			var word [8]byte
			copy(word[:], src[:width])
			putDecimal(dst, int64(binary.BigEndian.Uint64(word[:]))>>shift)
			dst, src = dst[16:], src[width:]
		}
		return nil
	}
}

func decimalFromFixedBytes(width int) converter {
	return func(dst, src []byte) error {
		for len(dst) >= 16 && len(src) >= width {
			if err := decimalFromBytes(dst, src[:width]); err != nil {
				return err
			}
			dst, src = dst[16:], src[width:]
		}
		return nil
	}
}

// decimalFromBytes converts a big-endian value of any length into the 16 bytes
// at dst.
func decimalFromBytes(dst, src []byte) error {
	if len(src) == 0 {
		return corrupt("a decimal value has no bytes")
	}
	sign := byte(int8(src[0]) >> 7)
	for len(src) > 16 { // bytes that only repeat the sign
		if src[0] != sign || int8(src[1]^sign) < 0 {
			return corrupt("a decimal value does not fit 128 bits")
		}
		src = src[1:]
	}
	var wide [16]byte
	for i := range wide[:16-len(src)] {
		wide[i] = sign
	}
	copy(wide[16-len(src):], src)
	binary.LittleEndian.PutUint64(dst, binary.BigEndian.Uint64(wide[8:]))
	binary.LittleEndian.PutUint64(dst[8:], binary.BigEndian.Uint64(wide[:8]))
	return nil
}

// julianEpoch is the Julian day number of 1970-01-01.
const julianEpoch = 2440588

// microsFromInt96 converts the nanoseconds of a day and a Julian day number.
func microsFromInt96(dst, src []byte) error {
	const microsPerDay = 24 * 60 * 60 * 1_000_000
	for len(dst) >= 8 && len(src) >= 12 {
		nanos := int64(binary.LittleEndian.Uint64(src))
		day := int64(int32(binary.LittleEndian.Uint32(src[8:])))
		binary.LittleEndian.PutUint64(dst, uint64((day-julianEpoch)*microsPerDay+nanos/1000))
		dst, src = dst[8:], src[12:]
	}
	return nil
}
