package pq

import (
	"encoding/binary"
)

// deltaStream decodes DELTA_BINARY_PACKED: a header, then blocks of
// miniblocks whose values are differences above a least difference, packed in
// a width of each miniblock's own.
type deltaStream struct {
	buf []byte

	perMini   int // values of a miniblock
	miniBlock int // miniblocks of a block
	left      int // values that the stream still claims, the first included
	first     bool
	last      int64 // the value handed out last

	minDelta int64
	widths   []byte // of the block's miniblocks that are left
	packed   []byte // the current miniblock
	bit      int
	width    uint
	inMini   int // values left in the miniblock
}

// maxDeltaBlock bounds the values of a block; writers use 128 to 1024.
const maxDeltaBlock = 1 << 20

func (d *deltaStream) reset(buf []byte) error {
	*d = deltaStream{first: true}
	block, n1 := binary.Uvarint(buf)
	if n1 <= 0 {
		return errTooFewValues
	}
	minis, n2 := binary.Uvarint(buf[n1:])
	if n2 <= 0 {
		return errTooFewValues
	}
	total, n3 := binary.Uvarint(buf[n1+n2:])
	if n3 <= 0 {
		return errTooFewValues
	}
	first, n4 := binary.Varint(buf[n1+n2+n3:])
	if n4 <= 0 {
		return errTooFewValues
	}
	if minis == 0 || block == 0 || block > maxDeltaBlock || block%minis != 0 || block/minis%8 != 0 || total > maxRun {
		return corrupt("a delta-encoded page of %d values in blocks of %d in %d parts", total, block, minis)
	}
	d.perMini, d.miniBlock, d.left = int(block/minis), int(minis), int(total)
	d.last = first
	d.buf = buf[n1+n2+n3+n4:]
	return nil
}

// next decodes up to len(dst) values and returns how many there were.
func (d *deltaStream) next(dst []int64) int {
	done := 0
	if d.first && d.left > 0 && len(dst) > 0 {
		dst[0] = d.last
		d.first = false
		d.left--
		done = 1
	}
	for done < len(dst) && d.left > 0 {
		if d.inMini == 0 && !d.nextMini() {
			break
		}
		k := min(d.inMini, d.left, len(dst)-done)
		if d.bit+k*int(d.width) > 8*len(d.packed) {
			break
		}
		d.unpack(dst[done : done+k])
		d.inMini -= k
		d.left -= k
		done += k
	}
	return done
}

// unpack decodes values of the current miniblock, which has them.
func (d *deltaStream) unpack(dst []int64) {
	last, minDelta, width, at := d.last, d.minDelta, d.width, d.bit
	switch {
	case width == 0:
		for i := range dst {
			last += minDelta
			dst[i] = last
		}
	case width <= 57:
		mask := uint64(1)<<width - 1
		i := 0
		for ; i < len(dst) && at>>3+8 <= len(d.packed); i++ {
			v := binary.LittleEndian.Uint64(d.packed[at>>3:]) >> (at & 7)
			at += int(width)
			last += minDelta + int64(v&mask)
			dst[i] = last
		}
		for ; i < len(dst); i++ {
			last += minDelta + int64(loadBits(d.packed, at)&mask)
			at += int(width)
			dst[i] = last
		}
	default:
		for i := range dst {
			low := loadBits(d.packed, at) & (1<<32 - 1)
			high := loadBits(d.packed, at+32) & (1<<(width-32) - 1)
			at += int(width)
			last += minDelta + int64(low|high<<32)
			dst[i] = last
		}
	}
	d.last, d.bit = last, at
}

func (d *deltaStream) nextMini() bool {
	if len(d.widths) == 0 {
		minDelta, n := binary.Varint(d.buf)
		if n <= 0 || len(d.buf)-n < d.miniBlock {
			return false
		}
		d.minDelta = minDelta
		d.widths = d.buf[n : n+d.miniBlock]
		d.buf = d.buf[n+d.miniBlock:]
	}
	d.width = uint(d.widths[0])
	d.widths = d.widths[1:]
	if d.width > 64 {
		return false
	}
	// The last miniblock may be cut where its values end.
	size := min(d.perMini/8*int(d.width), len(d.buf))
	d.packed, d.buf = d.buf[:size:size], d.buf[size:]
	d.bit, d.inMini = 0, d.perMini
	return true
}

// rest passes over the values that are left and returns what follows them.
func (d *deltaStream) rest() ([]byte, bool) {
	var drop [256]int64
	for d.left > 0 {
		if d.next(drop[:min(d.left, len(drop))]) == 0 {
			return nil, false
		}
	}
	return d.buf, true
}

// deltaBatch is how many values are decoded at a time.
const deltaBatch = 256

// deltaDecoder reads integers in DELTA_BINARY_PACKED.
type deltaDecoder struct {
	layout layout
	stream deltaStream
	values [deltaBatch]int64
	stored [8*deltaBatch + slack]byte
}

func (d *deltaDecoder) next(dst []byte, n int) error {
	for n > 0 {
		k := min(n, deltaBatch)
		if d.stream.next(d.values[:k]) < k {
			return errTooFewValues
		}
		out := dst[:k*d.layout.width]
		if d.layout.convert == nil {
			d.put(out, k)
		} else {
			d.put(d.stored[:], k)
			if err := d.layout.convert(out, d.stored[:k*d.layout.stored+8]); err != nil {
				return err
			}
		}
		dst, n = dst[len(out):], n-k
	}
	return nil
}

// put writes the first k values in their stored width.
func (d *deltaDecoder) put(dst []byte, k int) {
	if d.layout.stored == 4 {
		for i, v := range d.values[:k] {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
		}
		return
	}
	for i, v := range d.values[:k] {
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(v))
	}
}

func (d *deltaDecoder) skip(n int) error {
	for n > 0 {
		k := min(n, deltaBatch)
		if d.stream.next(d.values[:k]) < k {
			return errTooFewValues
		}
		n -= k
	}
	return nil
}

// decodeSteps collects strings that next yields one by one.
func decodeSteps(next func() ([]byte, error), out *bytesOut, spans []span) error {
	for _, s := range spans {
		for range s.skip {
			if _, err := next(); err != nil {
				return err
			}
		}
		for range s.take {
			v, err := next()
			if err != nil {
				return err
			}
			if err := out.append(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// deltaLengthBytes reads DELTA_LENGTH_BYTE_ARRAY: all lengths in
// DELTA_BINARY_PACKED, then all bytes.
type deltaLengthBytes struct {
	lengths deltaStream
	bytes   []byte
	buf     [deltaBatch]int64
	ready   []int64 // lengths decoded, not used
}

// reset prepares a page of at most n values. The lengths are walked over once
// to find the bytes, and decoded again while reading.
func (d *deltaLengthBytes) reset(values []byte, n int) error {
	if err := d.lengths.reset(values); err != nil {
		return err
	}
	if d.lengths.left > n {
		return corrupt("a page of %d values has %d lengths", n, d.lengths.left)
	}
	walk := d.lengths
	var ok bool
	if d.bytes, ok = walk.rest(); !ok {
		return errTooFewValues
	}
	d.ready = nil
	return nil
}

// next is the next value.
func (d *deltaLengthBytes) next() ([]byte, error) {
	if len(d.ready) == 0 {
		d.ready = d.buf[:d.lengths.next(d.buf[:])]
		if len(d.ready) == 0 {
			return nil, errTooFewValues
		}
	}
	size := d.ready[0]
	d.ready = d.ready[1:]
	if size < 0 || size > int64(len(d.bytes)) {
		return nil, errTooFewValues
	}
	v := d.bytes[:size]
	d.bytes = d.bytes[size:]
	return v, nil
}

func (d *deltaLengthBytes) decode(out *bytesOut, spans []span) error {
	return decodeSteps(d.next, out, spans)
}

// deltaBytes reads DELTA_BYTE_ARRAY: for each value the length of the prefix
// that it shares with the one before, and the rest of it.
type deltaBytes struct {
	prefixes deltaStream
	suffixes deltaLengthBytes
	buf      [deltaBatch]int64
	ready    []int64 // prefix lengths decoded, not used
	last     scratch // the value before
	size     int     // of it
}

func (d *deltaBytes) reset(values []byte, n int) error {
	if err := d.prefixes.reset(values); err != nil {
		return err
	}
	if d.prefixes.left > n {
		return corrupt("a page of %d values has %d prefixes", n, d.prefixes.left)
	}
	walk := d.prefixes
	rest, ok := walk.rest()
	if !ok {
		return errTooFewValues
	}
	d.ready, d.size = nil, 0
	return d.suffixes.reset(rest, n)
}

// next is the next value, valid until the one after it.
func (d *deltaBytes) next() ([]byte, error) {
	if len(d.ready) == 0 {
		d.ready = d.buf[:d.prefixes.next(d.buf[:])]
		if len(d.ready) == 0 {
			return nil, errTooFewValues
		}
	}
	prefix := d.ready[0]
	d.ready = d.ready[1:]
	suffix, err := d.suffixes.next()
	if err != nil {
		return nil, err
	}
	if prefix < 0 || prefix > int64(d.size) {
		return nil, corrupt("a value shares %d bytes with one of %d", prefix, d.size)
	}
	size := int(prefix) + len(suffix)
	if size > maxStringBytes {
		return nil, corrupt("a value of %d bytes", size)
	}
	if err := d.last.grow(size, int(prefix)); err != nil {
		return nil, err
	}
	copy(d.last.buf[prefix:], suffix)
	d.size = size
	return d.last.buf[:size], nil
}

func (d *deltaBytes) decode(out *bytesOut, spans []span) error {
	return decodeSteps(d.next, out, spans)
}

func (d *deltaBytes) free() { d.last.free() }
