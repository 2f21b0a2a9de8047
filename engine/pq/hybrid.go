package pq

import "encoding/binary"

// hybrid decodes Parquet's mix of run-length and bit-packed integers, which
// encodes levels, dictionary indices and booleans:
//
//	run    = varint(length << 1)       value in ceil(width/8) bytes
//	packed = varint(groups << 1 | 1)   groups of 8 values of width bits each
//
// Input that ends early or is damaged ends the values: the methods return how
// many there were.
type hybrid struct {
	buf   []byte
	width uint

	left   int    // values left in the current run
	packed []byte // the packed run's bytes; nil: a repeated value
	bit    int    // position in packed, in bits
	value  uint32 // the repeated value
}

// maxRun bounds the values of one run; a page has no more.
const maxRun = 1 << 31

func (h *hybrid) reset(buf []byte, width uint) { *h = hybrid{buf: buf, width: width} }

// nextRun loads the next run that is not empty; false at the end.
func (h *hybrid) nextRun() bool {
	for {
		header, n := binary.Uvarint(h.buf)
		if n <= 0 || header>>1 >= maxRun {
			return false
		}
		h.buf = h.buf[n:]
		if header&1 == 0 {
			bytes := int(h.width+7) / 8
			if bytes > len(h.buf) {
				return false
			}
			h.value = 0
			for i, b := range h.buf[:bytes] {
				h.value |= uint32(b) << (8 * i)
			}
			if h.width < 32 && h.value>>h.width != 0 {
				return false
			}
			h.buf, h.packed, h.left = h.buf[bytes:], nil, int(header>>1)
		} else {
			groups := int(header >> 1)
			// The last run may be cut where the page's values end.
			bytes := min(groups*int(h.width), len(h.buf))
			h.left = groups * 8
			if h.width > 0 {
				h.left = min(h.left, bytes*8/int(h.width))
			}
			h.packed, h.bit = h.buf[:bytes:bytes], 0
			h.buf = h.buf[bytes:]
			if h.packed == nil { // no bytes: the repeated value zero
				h.value = 0
			}
		}
		if h.left > 0 {
			return true
		}
	}
}

// bits decodes n values of width one into a bitmap at bit position at; the
// bits there are zero before.
func (h *hybrid) bits(dst []byte, at, n int) int {
	done := 0
	for done < n {
		if h.left == 0 && !h.nextRun() {
			break
		}
		k := min(h.left, n-done)
		if h.packed != nil {
			copyBits(dst, at+done, h.packed, h.bit, k)
			h.bit += k
		} else if h.value != 0 {
			setBits(dst, at+done, k)
		}
		h.left -= k
		done += k
	}
	return done
}

// allOnes reports whether the next n values are one run of ones, and passes
// over them when they are.
func (h *hybrid) allOnes(n int) bool {
	if h.left == 0 && !h.nextRun() {
		return false
	}
	if h.packed != nil || h.value != 1 || h.left < n {
		return false
	}
	h.left -= n
	return true
}

// levels decodes values of up to 8 bits.
func (h *hybrid) levels(dst []uint8) int {
	var scratch [256]uint32
	done := 0
	for done < len(dst) {
		if h.left == 0 && !h.nextRun() {
			break
		}
		k := min(h.left, len(dst)-done)
		if h.packed == nil {
			run := dst[done : done+k]
			for i := range run {
				run[i] = uint8(h.value)
			}
			h.left -= k
		} else {
			k = h.unpack(scratch[:min(k, len(scratch))])
			for i, v := range scratch[:k] {
				dst[done+i] = uint8(v)
			}
		}
		done += k
	}
	return done
}

// indices decodes values of up to 32 bits.
func (h *hybrid) indices(dst []uint32) int {
	done := 0
	for done < len(dst) {
		if h.left == 0 && !h.nextRun() {
			break
		}
		k := min(h.left, len(dst)-done)
		if h.packed == nil {
			run := dst[done : done+k]
			for i := range run {
				run[i] = h.value
			}
			h.left -= k
		} else {
			k = h.unpack(dst[done : done+k])
		}
		done += k
	}
	return done
}

// skip passes over n values.
func (h *hybrid) skip(n int) int {
	done := 0
	for done < n {
		if h.left == 0 && !h.nextRun() {
			break
		}
		k := min(h.left, n-done)
		if h.packed != nil {
			h.bit += k * int(h.width)
		}
		h.left -= k
		done += k
	}
	return done
}

// unpack decodes len(dst) values of the current packed run, which has them.
func (h *hybrid) unpack(dst []uint32) int {
	n := len(dst)
	unpackBits(dst, h.packed, h.bit, h.width)
	h.bit += n * int(h.width)
	h.left -= n
	return n
}

// unpackBits decodes len(dst) values of width bits each, from bit position at
// of src on, which holds them all.
func unpackBits(dst []uint32, src []byte, at int, width uint) {
	if width == 0 {
		clear(dst)
		return
	}
	mask := uint64(1)<<width - 1
	i := 0
	// Whole words of 64 bits are loaded as long as src has them; each yields
	// as many values as lie in it whatever the first one's position in its
	// byte, that is in 57 bits.
	switch {
	case width <= 7:
		w := width & 7
		for ; i+8 <= len(dst) && at>>3+8 <= len(src); i += 8 {
			v := binary.LittleEndian.Uint64(src[at>>3:]) >> (at & 7)
			d := dst[i : i+8 : i+8]
			d[0] = uint32(v & mask)
			d[1] = uint32(v >> w & mask)
			d[2] = uint32(v >> (2 * w & 63) & mask)
			d[3] = uint32(v >> (3 * w & 63) & mask)
			d[4] = uint32(v >> (4 * w & 63) & mask)
			d[5] = uint32(v >> (5 * w & 63) & mask)
			d[6] = uint32(v >> (6 * w & 63) & mask)
			d[7] = uint32(v >> (7 * w & 63) & mask)
			at += 8 * int(w)
		}
	case width <= 14:
		w := width & 15
		for ; i+4 <= len(dst) && at>>3+8 <= len(src); i += 4 {
			v := binary.LittleEndian.Uint64(src[at>>3:]) >> (at & 7)
			d := dst[i : i+4 : i+4]
			d[0] = uint32(v & mask)
			d[1] = uint32(v >> w & mask)
			d[2] = uint32(v >> (2 * w & 63) & mask)
			d[3] = uint32(v >> (3 * w & 63) & mask)
			at += 4 * int(w)
		}
	case width <= 28:
		w := width & 31
		for ; i+2 <= len(dst) && at>>3+8 <= len(src); i += 2 {
			v := binary.LittleEndian.Uint64(src[at>>3:]) >> (at & 7)
			d := dst[i : i+2 : i+2]
			d[0] = uint32(v & mask)
			d[1] = uint32(v >> w & mask)
			at += 2 * int(w)
		}
	}
	for ; i < len(dst); i++ {
		dst[i] = uint32(loadBits(src, at) & mask)
		at += int(width)
	}
}
