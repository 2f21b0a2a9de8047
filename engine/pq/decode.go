package pq

import (
	"encoding/binary"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// A fixedDecoder yields the values of one page whose Arrow layout has a fixed
// width, booleans as a byte each.
type fixedDecoder interface {
	// decode writes the values of the spans to the start of dst, one behind
	// the other.
	decode(dst []byte, spans []span) error
}

// A bytesDecoder yields the strings of one page.
type bytesDecoder interface {
	decode(out *bytesOut, spans []span) error
}

// A stepDecoder yields values of a fixed width a few at a time.
type stepDecoder interface {
	next(dst []byte, n int) error
	skip(n int) error
}

// fixedSteps makes a fixedDecoder of a stepDecoder.
type fixedSteps struct {
	stepDecoder
	width int
}

func (f *fixedSteps) decode(dst []byte, spans []span) error {
	for _, s := range spans {
		if err := f.skip(s.skip); err != nil {
			return err
		}
		if err := f.next(dst, s.take); err != nil {
			return err
		}
		dst = dst[s.take*f.width:]
	}
	return nil
}

var errTooFewValues = errs.New(errs.Corrupt, "a page ends before its last value")

// decoders are those of one column, kept from page to page with their memory.
type decoders struct {
	layout layout

	plain      plainDecoder
	bits       plainBools
	runs       runBools
	dict       dictDecoder
	delta      deltaDecoder
	split      splitDecoder
	plainBytes plainBytes
	dictBytes  dictBytes
	lengths    deltaLengthBytes
	prefixes   deltaBytes
	decimals   decimalBytes
	sized      fixedBytes
	memo       memoIndices

	dictionary dictionary

	steps fixedSteps // of the encodings that have no decode of their own
}

// start makes the decoder of a page of at most n values; exactly one of the
// results is not nil.
func (d *decoders) start(l *leaf, enc encoding, values []byte, n int) (fixedDecoder, bytesDecoder, error) {
	values = withSlack(values)
	if enc.dictionary() {
		return d.startDictionary(l, values)
	}
	if l.physical == physByteArray {
		bytes, err := d.startBytes(l, enc, values, n)
		if err != nil || d.layout.width == 0 {
			return nil, bytes, err
		}
		d.decimals.source = bytes
		return d.stepwise(&d.decimals), nil, nil
	}
	switch {
	case enc == encPlain && l.physical == physBoolean:
		d.bits = plainBools{bits: values}
		return d.stepwise(&d.bits), nil, nil
	case enc == encRLE && l.physical == physBoolean:
		if len(values) < 4 || uint64(binary.LittleEndian.Uint32(values)) > uint64(len(values)-4) {
			return nil, nil, corrupt("a page of booleans is cut off")
		}
		d.runs.hybrid.reset(values[4:4+binary.LittleEndian.Uint32(values)], 1)
		return d.stepwise(&d.runs), nil, nil
	case enc == encPlain:
		d.plain = plainDecoder{layout: d.layout, values: values}
		return &d.plain, nil, nil
	case enc == encDeltaBinaryPacked && (l.physical == physInt32 || l.physical == physInt64):
		d.delta.layout = d.layout
		return d.stepwise(&d.delta), nil, d.delta.stream.reset(values)
	case enc == encByteStreamSplit && l.physical != physInt96 && l.physical != physBoolean:
		d.split = splitDecoder{layout: d.layout, values: values, count: len(values) / d.layout.stored}
		return d.stepwise(&d.split), nil, nil
	case enc == encDeltaBytes && l.physical == physFixedLenArray:
		d.sized.layout, d.sized.source = d.layout, &d.prefixes
		return d.stepwise(&d.sized), nil, d.prefixes.reset(values, n)
	}
	return nil, nil, d.unsupported(l, enc)
}

// stepwise is the decoder of an encoding that is decoded a span at a time.
func (d *decoders) stepwise(steps stepDecoder) fixedDecoder {
	d.steps = fixedSteps{width: d.layout.width, stepDecoder: steps}
	return &d.steps
}

func (d *decoders) startBytes(l *leaf, enc encoding, values []byte, n int) (bytesDecoder, error) {
	switch enc {
	case encPlain:
		d.plainBytes = plainBytes{values: values}
		return &d.plainBytes, nil
	case encDeltaLengthBytes:
		return &d.lengths, d.lengths.reset(values, n)
	case encDeltaBytes:
		return &d.prefixes, d.prefixes.reset(values, n)
	}
	return nil, d.unsupported(l, enc)
}

func (d *decoders) unsupported(l *leaf, enc encoding) error {
	return errs.New(errs.Unsupported, "the encoding %d of the physical type %d is not supported", enc, l.physical)
}

func (d *decoders) startDictionary(l *leaf, values []byte) (fixedDecoder, bytesDecoder, error) {
	if !d.dictionary.loaded {
		return nil, nil, corrupt("a page refers to a dictionary that the column chunk lacks")
	}
	width := uint(0)
	if len(values) > 0 { // a page of nulls only may have no bytes
		width = uint(values[0])
		values = values[1:]
	}
	if width > 32 {
		return nil, nil, corrupt("dictionary indices of %d bits", width)
	}
	if d.layout.width == 0 {
		d.dictBytes.indices.reset(values, width)
		d.dictBytes.dictionary = &d.dictionary
		return nil, &d.dictBytes, nil
	}
	d.dict.indices.reset(values, width)
	d.dict.width, d.dict.dictionary = d.layout.width, &d.dictionary
	return &d.dict, nil, nil
}

func (d *decoders) free() {
	d.dictionary.free()
	d.prefixes.free()
	d.decimals.out.free()
	d.sized.out.free()
	d.memo.out.free()
}

// withSlack returns values with slack readable bytes behind them.
func withSlack(values []byte) []byte {
	if cap(values)-len(values) >= slack {
		return values
	}
	padded := make([]byte, len(values)+slack)
	copy(padded, values)
	return padded[:len(values)]
}

// plainDecoder reads values of a fixed width that lie one behind the other.
type plainDecoder struct {
	layout layout
	values []byte
	at     int // the next value's first byte
}

func (p *plainDecoder) decode(dst []byte, spans []span) error {
	stored := p.layout.stored
	for _, s := range spans {
		if (s.skip+s.take)*stored > len(p.values)-p.at {
			return errTooFewValues
		}
		from := p.at + s.skip*stored
		p.at = from + s.take*stored
		src := p.values[from:p.at]
		if p.layout.convert != nil {
			size := s.take * p.layout.width
			// The converter may load whole words, up to the slack behind the page.
			if err := p.layout.convert(dst[:size], p.values[from:p.at+8]); err != nil {
				return err
			}
			dst = dst[size:]
			continue
		}
		switch len(src) { // single values cost less without the call of copy
		case 4:
			binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
		case 8:
			binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
		default:
			copy(dst, src)
		}
		dst = dst[len(src):]
	}
	return nil
}

// plainBools reads one bit a value.
type plainBools struct {
	bits []byte
	at   int
}

func (p *plainBools) next(dst []byte, n int) error {
	if p.at+n > 8*len(p.bits) {
		return errTooFewValues
	}
	for i := range dst[:n] {
		dst[i] = p.bits[p.at>>3] >> (p.at & 7) & 1
		p.at++
	}
	return nil
}

func (p *plainBools) skip(n int) error {
	if p.at+n > 8*len(p.bits) {
		return errTooFewValues
	}
	p.at += n
	return nil
}

// runBools reads booleans in the hybrid encoding.
type runBools struct{ hybrid hybrid }

func (r *runBools) next(dst []byte, n int) error {
	if r.hybrid.levels(dst[:n]) < n {
		return errTooFewValues
	}
	return nil
}

func (r *runBools) skip(n int) error {
	if r.hybrid.skip(n) < n {
		return errTooFewValues
	}
	return nil
}

// splitDecoder reads BYTE_STREAM_SPLIT: the first bytes of all values, then
// the second bytes, and so on.
type splitDecoder struct {
	layout layout
	values []byte
	count  int // values in the page
	at     int
}

func (s *splitDecoder) next(dst []byte, n int) error {
	if s.at+n > s.count {
		return errTooFewValues
	}
	stored := s.layout.stored
	if s.layout.convert == nil {
		s.gather(dst[:n*stored], n)
		return nil
	}
	// Values that change their layout go through a small buffer.
	var buf [4096]byte
	per := len(buf)/stored - 1
	if per < 1 {
		return errs.New(errs.Unsupported, "split values of %d bytes are not supported", stored)
	}
	for n > 0 {
		k := min(n, per)
		s.gather(buf[:k*stored], k)
		if err := s.layout.convert(dst[:k*s.layout.width], buf[:(k+1)*stored]); err != nil {
			return err
		}
		dst, n = dst[k*s.layout.width:], n-k
	}
	return nil
}

// gather puts the bytes of the next n values together.
func (s *splitDecoder) gather(dst []byte, n int) {
	stored := s.layout.stored
	switch stored {
	case 4:
		b0, b1, b2, b3 := s.stream(0, n), s.stream(1, n), s.stream(2, n), s.stream(3, n)
		for i := range b0 {
			v := uint32(b0[i]) | uint32(b1[i])<<8 | uint32(b2[i])<<16 | uint32(b3[i])<<24
			binary.LittleEndian.PutUint32(dst[4*i:], v)
		}
	case 8:
		b0, b1, b2, b3 := s.stream(0, n), s.stream(1, n), s.stream(2, n), s.stream(3, n)
		b4, b5, b6, b7 := s.stream(4, n), s.stream(5, n), s.stream(6, n), s.stream(7, n)
		for i := range b0 {
			low := uint32(b0[i]) | uint32(b1[i])<<8 | uint32(b2[i])<<16 | uint32(b3[i])<<24
			high := uint32(b4[i]) | uint32(b5[i])<<8 | uint32(b6[i])<<16 | uint32(b7[i])<<24
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(low)|uint64(high)<<32)
		}
	default:
		for b := range stored {
			for i, v := range s.stream(b, n) {
				dst[i*stored+b] = v
			}
		}
	}
	s.at += n
}

// stream is the byte b of the next n values.
func (s *splitDecoder) stream(b, n int) []byte {
	start := b*s.count + s.at
	return s.values[start : start+n : start+n]
}

func (s *splitDecoder) skip(n int) error {
	if s.at+n > s.count {
		return errTooFewValues
	}
	s.at += n
	return nil
}
