package keys

import (
	"encoding/binary"
	"math/bits"
)

// nullWord stands for a null in hashes and, beside a null mark, in keys held
// as words. Any constant serves: a value may share it.
const nullWord = 0x9ae16a3b2f90404f

// The hash of a key is mixed of its columns, word by word, beginning with the
// layout's seed; that of a text is one word more.
//
// fold is a multiplication to 128 bits whose halves are combined, so that every
// bit of the result depends on every bit of the input.
func fold(x uint64) uint64 {
	high, low := bits.Mul64(x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return high ^ low
}

// mix adds the next word of a key to the hash of those before it.
func mix(hash, word uint64) uint64 { return fold(bits.RotateLeft64(hash, 23) ^ word) }

// hashText is the word that stands for a text in a hash.
func hashText(s string, seed uint64) uint64 {
	b := []byte(s) // not copied: it does not escape
	n := len(b)
	hash := seed ^ uint64(n)
	if n > 16 {
		for len(b) > 16 {
			high, low := bits.Mul64(binary.LittleEndian.Uint64(b)^hash, binary.LittleEndian.Uint64(b[8:])^0xa0761d6478bd642f)
			hash = bits.RotateLeft64(hash, 29) ^ high ^ low
			b = b[16:]
		}
		b = []byte(s)[n-16:]
		n = 16
	}
	var first, last uint64
	switch {
	case n >= 8:
		first, last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		first, last = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		first, last = uint64(b[0])<<16|uint64(b[n>>1])<<8|uint64(b[n-1]), 0
	}
	return mix(fold(first^hash), last)
}

// Scatter derives the hash bits of one level of partitioning from a key's
// hash, so that keys that met in a partition part at the next level.
func Scatter(hash uint64, level int) uint64 {
	return fold(bits.RotateLeft64(hash, 41) + uint64(level)*0xa0761d6478bd642f)
}
