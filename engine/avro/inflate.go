package avro

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// inflater decompresses raw deflate data (RFC 1951) from memory to memory.
//
// Manifests can be thousands of blocks of some hundred bytes. What counts then
// is how fast a block starts: there is no window to copy, the tables are only
// as large as the block's codes need, and the state is used again.
//
//	bits     next bits of the input, lowest first, refilled 8 bytes at a time
//	litlen   11 bits -> literal, length or end of block; longer codes through a second table
//	dist      8 bits -> distance
type inflater struct {
	litlen  decodeTable
	dist    decodeTable
	pre     decodeTable
	lengths [maxLitlen + maxDist]uint8

	in   []byte
	at   int    // next byte of in
	bits uint64 // the next nbits of the input; above them may be more of it
	n    uint   // number of valid bits
	over int    // zero bytes taken past the end of in
}

const (
	maxLitlen = 288
	maxDist   = 32

	// The lengths of first-level tables, and what all codes of that many
	// symbols need at most with second-level ones.
	litlenBits, litlenTable = 11, 2342
	distBits, distTable     = 8, 402
	preBits, preTable       = 7, 128

	// A copy may write up to this many bytes past its end, and a step of the
	// decoder puts out at most 3 literals and a copy of 258 bytes.
	outMargin = 3 + 258 + 16
)

var inflaters = sync.Pool{New: func() any { return newInflater() }}

func newInflater() *inflater {
	f := &inflater{}
	f.litlen.entries = make([]uint32, litlenTable)
	f.dist.entries = make([]uint32, distTable)
	f.pre.entries = make([]uint32, preTable)
	return f
}

// deflateCodec is the codec of blocks in raw deflate.
type deflateCodec struct{}

func (deflateCodec) Decompress(dst, block []byte, limit int) ([]byte, error) {
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	out, err := f.inflate(dst, block, limit)
	f.in = nil
	return out, err
}

var (
	errTruncated = errs.New(errs.Corrupt, "a block of deflate data is cut off")
	errDeflate   = errs.New(errs.Corrupt, "a block is not valid deflate")
)

// inflate appends the content of in to dst, limit bytes at most.
func (f *inflater) inflate(dst, in []byte, limit int) ([]byte, error) {
	f.in, f.at, f.bits, f.n, f.over = in, 0, 0, 0, 0
	start := len(dst)
	for {
		f.refill()
		final, kind := f.bits&1, f.bits>>1&3
		f.consume(3)
		var err error
		switch kind {
		case 0:
			dst, err = f.stored(dst, start, limit)
		case 1:
			dst, err = f.codes(dst, start, limit, &fixed.litlen, &fixed.dist)
		case 2:
			if err = f.readTables(); err == nil {
				dst, err = f.codes(dst, start, limit, &f.litlen, &f.dist)
			}
		default:
			err = errDeflate
		}
		if err != nil {
			return dst, err
		}
		if len(dst)-start > limit {
			return dst, tooLong(limit)
		}
		if f.over > 0 && uint(f.over)*8 > f.n {
			return dst, errTruncated
		}
		if final == 1 {
			return dst, nil
		}
	}
}

// refill makes at least 56 bits valid; past the end of the input they are 0.
func (f *inflater) refill() {
	if f.at+8 <= len(f.in) {
		f.bits |= binary.LittleEndian.Uint64(f.in[f.at:]) << f.n
		f.at += int((63 - f.n) >> 3)
		f.n |= 56
		return
	}
	// Bits above n may be left from a refill of 8 bytes: they are of the next
	// byte, so that adding it again changes nothing.
	for f.n < 56 {
		if f.at < len(f.in) {
			f.bits |= uint64(f.in[f.at]) << f.n
			f.at++
		} else {
			f.over++
		}
		f.n += 8
	}
}

func (f *inflater) consume(n uint) {
	f.bits >>= n
	f.n -= n
}

// stored copies an uncompressed block.
func (f *inflater) stored(dst []byte, start, limit int) ([]byte, error) {
	// Back to the byte after the header's.
	f.at -= int(f.n>>3) - f.over
	f.bits, f.n, f.over = 0, 0, 0
	if f.at < 0 || f.at+4 > len(f.in) {
		return dst, errTruncated
	}
	size := int(binary.LittleEndian.Uint16(f.in[f.at:]))
	if uint16(size) != ^binary.LittleEndian.Uint16(f.in[f.at+2:]) {
		return dst, errDeflate
	}
	f.at += 4
	if size > len(f.in)-f.at {
		return dst, errTruncated
	}
	if len(dst)-start+size > limit {
		return dst, tooLong(limit)
	}
	dst = append(dst, f.in[f.at:f.at+size]...)
	f.at += size
	return dst, nil
}

// preOrder is the order in which the lengths of the code length code come.
var preOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readTables reads the codes of a block that brings its own.
func (f *inflater) readTables() error {
	f.refill()
	litlens := int(f.bits&31) + 257
	dists := int(f.bits>>5&31) + 1
	pres := int(f.bits>>10&15) + 4
	f.consume(14)
	if litlens > 286 || dists > 30 {
		return errDeflate
	}
	lengths := f.lengths[:19]
	clear(lengths)
	for i := range pres {
		if i == 12 { // 42 bits are left of the 56
			f.refill()
		}
		lengths[preOrder[i]] = uint8(f.bits & 7)
		f.consume(3)
	}
	if !f.pre.build(lengths, preBits, preEntries[:]) {
		return errDeflate
	}
	total := litlens + dists
	lengths = f.lengths[:total]
	for i := 0; i < total; {
		if f.n < 14 {
			f.refill()
		}
		e := f.pre.entries[f.bits&f.pre.mask]
		if e&exceptional != 0 {
			return errDeflate
		}
		f.consume(uint(e & 0xff))
		symbol := e >> 16
		if symbol < 16 {
			lengths[i] = uint8(symbol)
			i++
			continue
		}
		var repeat int
		value := uint8(0)
		switch symbol {
		case 16:
			if i == 0 {
				return errDeflate
			}
			value = lengths[i-1]
			repeat = 3 + int(f.bits&3)
			f.consume(2)
		case 17:
			repeat = 3 + int(f.bits&7)
			f.consume(3)
		default:
			repeat = 11 + int(f.bits&127)
			f.consume(7)
		}
		if repeat > total-i {
			return errDeflate
		}
		for ; repeat > 0; repeat-- {
			lengths[i] = value
			i++
		}
	}
	if f.over > 8 {
		return errTruncated
	}
	if lengths[256] == 0 { // no end of block
		return errDeflate
	}
	if !f.dist.build(lengths[litlens:], distBits, distEntries[:]) || !f.litlen.build(lengths[:litlens], litlenBits, litlenEntries[:]) {
		return errDeflate
	}
	return nil
}

// codes decodes a block's literals and copies. Copies reach back to start.
func (f *inflater) codes(dst []byte, start, limit int, litlen, dist *decodeTable) ([]byte, error) {
	out := dst[:cap(dst)]
	at := len(dst)
	in, inAt, bits, n := f.in, f.at, f.bits, f.n
	litMask, distMask := litlen.mask, dist.mask
	lits, dists := litlen.entries, dist.entries
	for {
		if len(out)-at < outMargin {
			if at-start > limit {
				return out[:at], tooLong(limit)
			}
			out = slices.Grow(out[:at], max(at, 1024)+outMargin)
			out = out[:cap(out)]
		}
		if inAt+8 <= len(in) {
			bits |= binary.LittleEndian.Uint64(in[inAt:]) << n
			inAt += int((63 - n) >> 3)
			n |= 56
		} else {
			f.at, f.bits, f.n = inAt, bits, n
			f.refill()
			if f.over > 8 {
				return out[:at], errTruncated
			}
			inAt, bits, n = f.at, f.bits, f.n
		}
		e := lits[bits&litMask]
		// Up to two more literals from the same 56 bits: 11 each, and 34 stay.
		if e&literal != 0 {
			bits >>= e & 0x3f
			n -= uint(e & 0x3f)
			out[at] = byte(e >> 16)
			at++
			e = lits[bits&litMask]
			if e&literal != 0 {
				bits >>= e & 0x3f
				n -= uint(e & 0x3f)
				out[at] = byte(e >> 16)
				at++
				e = lits[bits&litMask]
				if e&literal != 0 {
					bits >>= e & 0x3f
					n -= uint(e & 0x3f)
					out[at] = byte(e >> 16)
					at++
					continue
				}
			}
		}
		if e&exceptional != 0 {
			if e&second != 0 {
				// The rest of a code that is longer than the table's bits.
				bits >>= e & 0x3f
				n -= uint(e & 0x3f)
				e = lits[uint64(e>>16)+bits&(1<<(e>>8&0xf)-1)]
				if e&literal != 0 {
					bits >>= e & 0x3f
					n -= uint(e & 0x3f)
					out[at] = byte(e >> 16)
					at++
					continue
				}
			}
			if e&exceptional != 0 {
				bits >>= e & 0x3f
				n -= uint(e & 0x3f)
				f.at, f.bits, f.n = inAt, bits, n
				if e&endOfBlock == 0 {
					return out[:at], errDeflate
				}
				return out[:at], nil
			}
		}
		length := int(e >> 16)
		length += int(bits & (1<<(e&0x3f) - 1) >> (e >> 8 & 0x1f))
		bits >>= e & 0x3f
		n -= uint(e & 0x3f)
		// A distance takes up to 15 + 13 bits.
		if n < 28 {
			if inAt+8 <= len(in) {
				bits |= binary.LittleEndian.Uint64(in[inAt:]) << n
				inAt += int((63 - n) >> 3)
				n |= 56
			} else {
				f.at, f.bits, f.n = inAt, bits, n
				f.refill()
				inAt, bits, n = f.at, f.bits, f.n
			}
		}
		e = dists[bits&distMask]
		if e&exceptional != 0 {
			if e&second == 0 {
				return out[:at], errDeflate
			}
			bits >>= e & 0x3f
			n -= uint(e & 0x3f)
			e = dists[uint64(e>>16)+bits&(1<<(e>>8&0xf)-1)]
			if e&exceptional != 0 {
				return out[:at], errDeflate
			}
		}
		distance := int(e >> 16)
		distance += int(bits & (1<<(e&0x3f) - 1) >> (e >> 8 & 0x1f))
		bits >>= e & 0x3f
		n -= uint(e & 0x3f)
		from := at - distance
		if from < start {
			return out[:at], errDeflate
		}
		copyMatch(out, at, from, length)
		at += length
	}
}

// copyMatch repeats length bytes from an earlier place of out at the place at,
// with up to 15 bytes more. The places may overlap.
func copyMatch(out []byte, at, from, length int) {
	switch distance := at - from; {
	case distance >= 8:
		for length > 0 {
			binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(out[from:]))
			at, from, length = at+8, from+8, length-8
		}
	case distance == 1:
		word := uint64(out[from]) * 0x0101010101010101
		for length > 0 {
			binary.LittleEndian.PutUint64(out[at:], word)
			at, length = at+8, length-8
		}
	default:
		for ; length > 0; length-- {
			out[at] = out[from]
			at, from = at+1, from+1
		}
	}
}
