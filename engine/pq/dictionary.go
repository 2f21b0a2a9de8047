package pq

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
)

// dictionary holds the distinct values of a column chunk: in their Arrow
// layout if that has a fixed width, else as views into the page's bytes.
type dictionary struct {
	loaded bool
	count  int
	memory scratch // the values; of strings, the page
	views  scratch // of strings, a stringView each
	widest int     // of strings, the longest
}

// stringView is where a string lies in the dictionary's memory.
type stringView struct{ offset, size uint32 }

const stringViewSize = 8

// load decodes a dictionary page of n values.
func (d *dictionary) load(l *leaf, layout layout, values []byte, n int) error {
	d.loaded, d.count = false, n
	var err error
	switch {
	case l.physical == physBoolean:
		return corrupt("booleans with a dictionary")
	case l.physical != physByteArray:
		err = d.loadFixed(layout, values, n)
	case layout.width > 0:
		err = d.loadDecimals(layout, values, n)
	default:
		err = d.loadStrings(values, n)
	}
	d.loaded = err == nil
	return err
}

func (d *dictionary) loadFixed(layout layout, values []byte, n int) error {
	if int64(n)*int64(layout.stored) > int64(len(values)) {
		return corrupt("a dictionary of %d values has %d bytes", n, len(values))
	}
	if err := d.memory.grow(n*layout.width, 0); err != nil {
		return err
	}
	plain := plainDecoder{layout: layout, values: withSlack(values)}
	return plain.decode(d.memory.buf, []span{{take: n}})
}

func (d *dictionary) loadDecimals(layout layout, values []byte, n int) error {
	if int64(n)*4 > int64(len(values)) {
		return corrupt("a dictionary of %d values has %d bytes", n, len(values))
	}
	if err := d.memory.grow(n*layout.width, 0); err != nil {
		return err
	}
	decimals := decimalBytes{source: &plainBytes{values: withSlack(values)}, out: scratchBytes{scratch: scratch{alloc: d.memory.alloc, charged: d.memory.charged}}}
	defer decimals.out.free()
	return decimals.next(d.memory.buf, n)
}

func (d *dictionary) loadStrings(values []byte, n int) error {
	if int64(n)*4 > int64(len(values)) {
		return corrupt("a dictionary of %d values has %d bytes", n, len(values))
	}
	if err := d.memory.grow(len(values), 0); err != nil {
		return err
	}
	if err := d.views.grow(n*stringViewSize, 0); err != nil {
		return err
	}
	copy(d.memory.buf, values)
	views := d.stringViews()
	pos := 0
	d.widest = 0
	for i := range views {
		if len(values)-pos < 4 {
			return errTooFewValues
		}
		size := binary.LittleEndian.Uint32(values[pos:])
		pos += 4
		if uint64(size) > uint64(len(values)-pos) {
			return errTooFewValues
		}
		views[i] = stringView{offset: uint32(pos), size: size}
		d.widest = max(d.widest, int(size))
		pos += int(size)
	}
	return nil
}

// stringViews is the views' memory as what it holds.
func (d *dictionary) stringViews() []stringView {
	if d.count == 0 {
		return nil
	}
	// The scratch holds at least count views (grow), is 64-byte aligned, and a
	// stringView is two plain integers: the cast stays inside its memory.
	_ = d.views.buf[d.count*stringViewSize-1]
	return unsafe.Slice((*stringView)(unsafe.Pointer(unsafe.SliceData(d.views.buf))), d.count)
}

func (d *dictionary) free() {
	d.memory.free()
	d.views.free()
	d.loaded = false
}

// indexBuffer is how many dictionary indices are unpacked at a time: enough to
// keep the unpacking loop busy, little enough for the first-level cache.
const indexBuffer = 1024

// indexReader hands out dictionary indices in pieces. Buffering makes short
// runs between skipped rows cheap.
type indexReader struct {
	hybrid     hybrid
	buf        [indexBuffer]uint32
	at, filled int // the indices buf[at:filled] are unpacked and not taken
}

func (r *indexReader) reset(buf []byte, width uint) {
	r.hybrid.reset(buf, width)
	r.at, r.filled = 0, 0
}

// take returns between one and n of the next indices; none at the end.
func (r *indexReader) take(n int) []uint32 {
	if r.at == r.filled {
		r.at, r.filled = 0, r.hybrid.indices(r.buf[:])
	}
	first := r.at
	r.at = min(r.at+n, r.filled)
	return r.buf[first:r.at]
}

func (r *indexReader) skip(n int) bool {
	if n <= r.filled-r.at {
		r.at += n
		return true
	}
	n -= r.filled - r.at
	r.at = r.filled
	return r.hybrid.skip(n) == n
}

// dictDecoder reads values of a fixed width through a dictionary.
type dictDecoder struct {
	indices    indexReader
	width      int
	dictionary *dictionary
}

func (d *dictDecoder) decode(dst []byte, spans []span) error {
	dict := d.dictionary.memory.buf[:d.dictionary.count*d.width]
	switch d.width {
	case 1:
		return lookUp(d, dst, dict, spans)
	case 2:
		return lookUp(d, arrow.Uint16Traits.CastFromBytes(dst), arrow.Uint16Traits.CastFromBytes(dict), spans)
	case 4:
		return lookUp(d, arrow.Uint32Traits.CastFromBytes(dst), arrow.Uint32Traits.CastFromBytes(dict), spans)
	case 8:
		return lookUp(d, arrow.Uint64Traits.CastFromBytes(dst), arrow.Uint64Traits.CastFromBytes(dict), spans)
	case 16:
		return lookUp(d, arrow.Decimal128Traits.CastFromBytes(dst), arrow.Decimal128Traits.CastFromBytes(dict), spans)
	}
	return d.lookUpWide(dst, dict, spans)
}

// lookUp decodes values of one width.
func lookUp[T any](d *dictDecoder, dst, dict []T, spans []span) error {
	for _, s := range spans {
		if !d.indices.skip(s.skip) {
			return errTooFewValues
		}
		for left := s.take; left > 0; {
			indices := d.indices.take(left)
			if len(indices) == 0 {
				return errTooFewValues
			}
			out := dst[:len(indices)]
			for i, x := range indices {
				if uint(x) >= uint(len(dict)) {
					return d.dictionary.beyond()
				}
				out[i] = dict[x]
			}
			dst, left = dst[len(indices):], left-len(indices)
		}
	}
	return nil
}

func (d *dictDecoder) lookUpWide(dst, dict []byte, spans []span) error {
	for _, s := range spans {
		if !d.indices.skip(s.skip) {
			return errTooFewValues
		}
		for left := s.take; left > 0; {
			indices := d.indices.take(left)
			if len(indices) == 0 {
				return errTooFewValues
			}
			for _, x := range indices {
				if int(x) >= d.dictionary.count {
					return d.dictionary.beyond()
				}
				dst = dst[copy(dst[:d.width], dict[int(x)*d.width:]):]
			}
			left -= len(indices)
		}
	}
	return nil
}

func (d *dictionary) beyond() error {
	return corrupt("a dictionary index is beyond the %d values", d.count)
}

// dictBytes reads strings through a dictionary.
type dictBytes struct {
	indices    indexReader
	dictionary *dictionary
}

func (d *dictBytes) decode(out *bytesOut, spans []span) error {
	views, src := d.dictionary.stringViews(), d.dictionary.memory.buf
	for _, s := range spans {
		if !d.indices.skip(s.skip) {
			return errTooFewValues
		}
		for left := s.take; left > 0; {
			indices := d.indices.take(left)
			if len(indices) == 0 {
				return errTooFewValues
			}
			most := len(indices) * d.dictionary.widest
			if most > exactReserve {
				if most = sizeOf(indices, views); most < 0 {
					return d.dictionary.beyond()
				}
			}
			if err := out.reserve(most); err != nil {
				return err
			}
			if !out.lookUp(indices, views, src) {
				return d.dictionary.beyond()
			}
			left -= len(indices)
		}
	}
	return nil
}

// exactReserve is the room that may be made for strings as if all were as long
// as the longest. For more, their sizes are added up.
const exactReserve = 64 << 10 // 64 KiB

// sizeOf is the size of all strings of some indices; -1 when one is beyond
// views.
func sizeOf(indices []uint32, views []stringView) int {
	total := 0
	for _, x := range indices {
		if uint(x) >= uint(len(views)) {
			return -1
		}
		total += int(views[x].size)
	}
	return total
}

// lookUp appends the strings of indices, for which there is room; false when
// an index is beyond views.
func (b *bytesOut) lookUp(indices []uint32, views []stringView, src []byte) bool {
	data, used := b.data, b.used
	ends := b.offsets[b.count : b.count+len(indices)]
	for i, x := range indices {
		if uint(x) >= uint(len(views)) {
			return false
		}
		v := views[x]
		size := int(v.size)
		if size <= slack {
			// In pieces of 16 bytes, over the end into the slack, which both
			// the dictionary and the output have.
			to, from := data[used:used+slack], src[v.offset:v.offset+slack]
			*(*[16]byte)(to) = *(*[16]byte)(from)
			if size > 16 {
				*(*[16]byte)(to[16:]) = *(*[16]byte)(from[16:])
			}
			if size > 32 {
				*(*[32]byte)(to[32:]) = *(*[32]byte)(from[32:])
			}
		} else {
			copy(data[used:], src[v.offset:int(v.offset)+size])
		}
		used += size
		ends[i] = int32(used)
	}
	b.used = used
	b.count += len(indices)
	return true
}
