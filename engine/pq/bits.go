package pq

import (
	"encoding/binary"
	"math/bits"
)

// Bitmaps here are Arrow's: bit i is bit i&7 of byte i>>3.

// bitmapSize is the bytes of a bitmap of n bits.
func bitmapSize(n int) int { return (n + 7) / 8 }

func setBit(bitmap []byte, i int) { bitmap[i>>3] |= 1 << (i & 7) }

// copyBits copies n bits of src, from srcAt on, to dst at dstAt, where bits are
// zero before.
func copyBits(dst []byte, dstAt int, src []byte, srcAt, n int) {
	// 56 bits at a time: what a word holds whatever the first bit's position.
	for n > 0 {
		k := min(n, 56)
		v := loadBits(src, srcAt) & (1<<k - 1) << (dstAt & 7)
		if rest := dst[dstAt>>3:]; len(rest) >= 8 {
			binary.LittleEndian.PutUint64(rest, binary.LittleEndian.Uint64(rest)|v)
		} else {
			for i := 0; v != 0; i++ {
				rest[i] |= byte(v)
				v >>= 8
			}
		}
		dstAt, srcAt, n = dstAt+k, srcAt+k, n-k
	}
}

// loadBits returns the bits from position at on, at least 57 of them, or as
// many as src has.
func loadBits(src []byte, at int) uint64 {
	rest := src[at>>3:]
	if len(rest) >= 8 {
		return binary.LittleEndian.Uint64(rest) >> (at & 7)
	}
	var v uint64
	for i, b := range rest {
		v |= uint64(b) << (8 * i)
	}
	return v >> (at & 7)
}

// setBits sets n bits from position at on.
func setBits(bitmap []byte, at, n int) {
	end := at + n
	for ; at < end && at&7 != 0; at++ {
		setBit(bitmap, at)
	}
	for ; end-at >= 8; at += 8 {
		bitmap[at>>3] = 0xff
	}
	for ; at < end; at++ {
		setBit(bitmap, at)
	}
}

// onesIn counts the bits of a bitmap in [from, to).
func onesIn(bitmap []byte, from, to int) int {
	n := 0
	for from < to && from&7 != 0 {
		n += int(bitmap[from>>3] >> (from & 7) & 1)
		from++
	}
	for ; to-from >= 64; from += 64 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap[from>>3:]))
	}
	for ; to-from >= 8; from += 8 {
		n += bits.OnesCount8(bitmap[from>>3])
	}
	for ; from < to; from++ {
		n += int(bitmap[from>>3] >> (from & 7) & 1)
	}
	return n
}

// packBools turns a byte a value into a bit a value.
func packBools(dst, src []byte) {
	for len(src) >= 8 {
		// The product moves bit 8*i of the word to bit 56+i.
		word := binary.LittleEndian.Uint64(src)
		dst[0] = byte(word * 0x0102040810204080 >> 56)
		dst, src = dst[1:], src[8:]
	}
	if len(src) > 0 {
		dst[0] = 0
		for i, v := range src {
			dst[0] |= v << i
		}
	}
}
