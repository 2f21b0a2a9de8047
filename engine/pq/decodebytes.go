package pq

import (
	"encoding/binary"
	"math"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// bytesOut collects strings: the end of each in offsets, their bytes in data.
type bytesOut struct {
	memory  growable
	data    []byte  // memory's contents, all of it
	used    int     // bytes of data taken
	offsets []int32 // where the strings' ends go
	count   int     // strings so far, in offsets
}

// growable is memory that a bytesOut extends: an array's buffer or a scratch.
type growable interface {
	// resize returns memory of at least n bytes that starts with the first
	// keep bytes of what there was.
	resize(n, keep int) ([]byte, error)
}

// maxStringBytes is what 32-bit offsets address, and so the most that the
// strings of one array can have together.
const maxStringBytes = math.MaxInt32

// reserve makes room for n more bytes, and slack behind them.
func (b *bytesOut) reserve(n int) error {
	need := b.used + n + slack
	if need <= len(b.data) {
		return nil
	}
	if b.used+n > maxStringBytes {
		return errs.New(errs.Unsupported, "more than 2 GiB of strings in one batch; read fewer rows at a time")
	}
	data, err := b.memory.resize(max(need, min(len(b.data)*3/2, need+(16<<20))), b.used)
	if err != nil {
		return err
	}
	b.data = data
	return nil
}

// append adds one string.
func (b *bytesOut) append(v []byte) error {
	if err := b.reserve(len(v)); err != nil {
		return err
	}
	b.used += copy(b.data[b.used:], v)
	b.offsets[b.count] = int32(b.used)
	b.count++
	return nil
}

// scratchBytes is a bytesOut of a decoder's own, for values on their way to
// another form.
type scratchBytes struct {
	scratch scratch
	ends    []int32
	out     bytesOut
}

func (s *scratchBytes) resize(n, keep int) ([]byte, error) {
	err := s.scratch.grow(n, keep)
	return s.scratch.buf, err
}

// reset empties it and makes room for n strings.
func (s *scratchBytes) reset(n int) *bytesOut {
	if cap(s.ends) < n {
		s.ends = make([]int32, n)
	}
	s.out = bytesOut{memory: s, data: s.scratch.buf, offsets: s.ends[:n]}
	return &s.out
}

// get is string i of those collected since reset.
func (s *scratchBytes) get(i int) []byte {
	start := int32(0)
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.out.data[start:s.ends[i]]
}

func (s *scratchBytes) free() {
	s.scratch.free()
	s.ends = nil
}

// conversionBatch is how many strings are collected at a time to be converted.
const conversionBatch = 256

// decimalBytes reads decimals of variable length.
type decimalBytes struct {
	source bytesDecoder
	out    scratchBytes
}

func (d *decimalBytes) next(dst []byte, n int) error {
	for n > 0 {
		k := min(n, conversionBatch)
		if err := d.source.decode(d.out.reset(k), []span{{take: k}}); err != nil {
			return err
		}
		for i := range k {
			if err := decimalFromBytes(dst[16*i:], d.out.get(i)); err != nil {
				return err
			}
		}
		dst, n = dst[16*k:], n-k
	}
	return nil
}

func (d *decimalBytes) skip(n int) error { return d.source.decode(d.out.reset(0), []span{{skip: n}}) }

// fixedBytes reads values of a fixed length in an encoding of strings.
type fixedBytes struct {
	layout layout
	source bytesDecoder
	out    scratchBytes
}

func (f *fixedBytes) next(dst []byte, n int) error {
	for n > 0 {
		k := min(n, conversionBatch)
		if err := f.source.decode(f.out.reset(k), []span{{take: k}}); err != nil {
			return err
		}
		for i := range k {
			if v := f.out.get(i); len(v) != f.layout.stored {
				return corrupt("a value of %d bytes where all have %d", len(v), f.layout.stored)
			}
		}
		size := k * f.layout.width
		if f.layout.convert == nil {
			copy(dst[:size], f.out.out.data)
		} else if err := f.layout.convert(dst[:size], f.out.out.data[:k*f.layout.stored+8]); err != nil {
			return err
		}
		dst, n = dst[size:], n-k
	}
	return nil
}

func (f *fixedBytes) skip(n int) error { return f.source.decode(f.out.reset(0), []span{{skip: n}}) }

// plainBytes reads strings that each follow their length in four bytes.
type plainBytes struct {
	values []byte
	at     int // the next length's first byte
}

func (p *plainBytes) decode(out *bytesOut, spans []span) error {
	for _, s := range spans {
		if err := p.skip(s.skip); err != nil {
			return err
		}
		if err := p.take(out, s.take); err != nil {
			return err
		}
	}
	return nil
}

func (p *plainBytes) take(out *bytesOut, n int) error {
	src, pos := p.values, p.at
	padded := src[:len(src)+slack]
	data, used := out.data, out.used
	ends := out.offsets[out.count : out.count+n]
	for i := range ends {
		if len(src)-pos < 4 {
			return errTooFewValues
		}
		size := int(binary.LittleEndian.Uint32(src[pos:]))
		pos += 4
		if size > len(src)-pos {
			return errTooFewValues
		}
		if used+size+slack > len(data) {
			out.used = used
			if err := out.reserve(max(size, min(len(src)-pos, (n-i)*(size+1)))); err != nil {
				return err
			}
			data = out.data
		}
		// A short string is copied in pieces of 16 bytes, over its end into the
		// slack: one or two moves instead of a call.
		if size <= 32 {
			to, from := data[used:used+32:used+32], padded[pos:pos+32:pos+32]
			*(*[16]byte)(to) = *(*[16]byte)(from)
			if size > 16 {
				*(*[16]byte)(to[16:]) = *(*[16]byte)(from[16:])
			}
		} else {
			copy(data[used:], src[pos:pos+size])
		}
		used += size
		pos += size
		ends[i] = int32(used)
	}
	p.at = pos
	out.used = used
	out.count += n
	return nil
}

func (p *plainBytes) skip(n int) error {
	src, pos := p.values, p.at
	for range n {
		if len(src)-pos < 4 {
			return errTooFewValues
		}
		size := int(binary.LittleEndian.Uint32(src[pos:]))
		pos += 4
		if size > len(src)-pos {
			return errTooFewValues
		}
		pos += size
	}
	p.at = pos
	return nil
}
