package pq

import (
	"encoding/binary"
	"math/bits"
)

// appendHybrid encodes integers of up to width bits as the mix of runs and
// packed groups that hybrid decodes. Eight equal values or more that start at
// a group's end become a run.
func appendHybrid[T uint8 | uint32](dst []byte, values []T, width uint) []byte {
	start := 0 // the first value that is not encoded yet
	for i := 0; i < len(values); {
		v, end := values[i], i+1
		for end < len(values) && values[end] == v {
			end++
		}
		// The values before the run fill whole groups with its help.
		group := i + (start-i)&7
		if end-group >= 8 {
			dst = appendPacked(dst, values[start:group], width)
			dst = appendRun(dst, end-group, uint32(v), width)
			start = end
		}
		i = end
	}
	return appendPacked(dst, values[start:], width)
}

func appendRun(dst []byte, n int, value uint32, width uint) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for ; width > 0; width -= min(width, 8) {
		dst = append(dst, byte(value))
		value >>= 8
	}
	return dst
}

// appendPacked encodes values as groups of eight, the last one filled up with
// zeros.
func appendPacked[T uint8 | uint32](dst []byte, values []T, width uint) []byte {
	if len(values) == 0 {
		return dst
	}
	groups := (len(values) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	end := len(dst) + groups*int(width)
	word, filled := uint64(0), uint(0)
	for _, v := range values {
		word |= uint64(v) << filled
		filled += width
		if filled >= 64 {
			dst = binary.LittleEndian.AppendUint64(dst, word)
			filled -= 64
			word = uint64(v) >> (width - filled)
		}
	}
	for len(dst) < end {
		dst = append(dst, byte(word))
		word >>= 8
	}
	return dst
}

// widthOf is how many bits numbers up to most take.
func widthOf(most int) uint { return uint(bits.Len(uint(most))) }
