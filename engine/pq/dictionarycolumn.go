package pq

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine/mem"
)

// dictionaryEncoder makes a flat column of strings come out dictionary-encoded:
// the builder collects indices, of the column chunk's own dictionary where a
// page has them. Strings of a page without are looked up, and those that the
// dictionary lacks are added to the one of the window's array.
type dictionaryEncoder struct {
	typ     *arrow.DictionaryType
	values  leafBuilder // makes the dictionaries
	charged *mem.Reservation

	rowGroup int         // whose dictionary own and known are of
	own      arrow.Array // the column chunk's dictionary; nil: not made yet
	// known finds the values of own, and added those of the window that own
	// lacks. Both are nil until a page without indices comes.
	known, added map[string]uint32
	order        []string // of added
	memory       int64    // charged for the maps
}

// indexWidth is the bytes of an index.
const indexWidth = 4

// memoEntry is about what a value takes in a map, beside its bytes.
const memoEntry = 64

func newDictionaryEncoder(l *leaf, f *File, charged *mem.Reservation) *dictionaryEncoder {
	return &dictionaryEncoder{
		typ:    &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: l.typ},
		values: newLeafBuilder(l, f, charged), charged: charged, rowGroup: -1,
	}
}

// indicesOf turns the decoder of a page's strings into one of indices.
func (e *dictionaryEncoder) indicesOf(d *decoders, rowGroup int, bytes bytesDecoder) (fixedDecoder, error) {
	if e.rowGroup != rowGroup {
		e.forget()
		e.rowGroup = rowGroup
	}
	if d.dictionary.loaded && e.own == nil {
		if err := e.begin(&d.dictionary, 0); err != nil {
			return nil, err
		}
		e.own = e.values.finish()
	}
	if indexed, ok := bytes.(*dictBytes); ok {
		return &plainIndices{indexed}, nil
	}
	if e.known == nil {
		e.known, e.added = map[string]uint32{}, map[string]uint32{}
		if e.own != nil {
			for i, v := range stringsOf(e.own) {
				if err := e.charge(len(v)); err != nil {
					return nil, err
				}
				e.known[string(v)] = uint32(i)
			}
		}
	}
	d.memo.encoder, d.memo.source = e, bytes
	d.steps = fixedSteps{stepDecoder: &d.memo, width: indexWidth}
	return &d.steps, nil
}

// begin fills the values builder with a dictionary and makes room for more.
func (e *dictionaryEncoder) begin(d *dictionary, more int) error {
	b := &e.values
	if err := b.begin(d.count + more); err != nil {
		b.abort()
		return err
	}
	var all [indexBuffer]uint32
	b.bytes.offsets, b.bytes.count = b.offsets()[1:], 0
	views := d.stringViews()
	for first := 0; first < len(views); first += len(all) {
		n := min(len(all), len(views)-first)
		total := 0
		for i := range n {
			all[i] = uint32(first + i)
			total += int(views[first+i].size)
		}
		if err := b.bytes.reserve(total); err != nil {
			b.abort()
			return err
		}
		b.bytes.lookUp(all[:n], views, d.memory.buf)
	}
	b.fill(len(views))
	return nil
}

func (e *dictionaryEncoder) charge(size int) error {
	n := int64(size + memoEntry)
	if err := e.charged.TryGrow(n); err != nil {
		return err
	}
	e.memory += n
	return nil
}

// index is the index of a value, which is added when it is new.
func (e *dictionaryEncoder) index(v []byte) (uint32, error) {
	if i, ok := e.known[string(v)]; ok {
		return i, nil
	}
	if i, ok := e.added[string(v)]; ok {
		return i, nil
	}
	if err := e.charge(len(v)); err != nil {
		return 0, err
	}
	i := uint32(len(e.added))
	if e.own != nil {
		i += uint32(e.own.Len())
	}
	own := string(v)
	e.added[own] = i
	e.order = append(e.order, own)
	return i, nil
}

// finish puts the window's indices and their dictionary together.
func (e *dictionaryEncoder) finish(d *dictionary, indices arrow.Array) (arrow.Array, error) {
	defer indices.Release()
	values, err := e.dictionary(d)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	in := indices.Data()
	data := array.NewDataWithDictionary(e.typ, in.Len(), in.Buffers(), in.NullN(), 0, values.Data().(*array.Data))
	defer data.Release()
	return array.MakeFromData(data), nil
}

// dictionary is that of the window's array.
func (e *dictionaryEncoder) dictionary(d *dictionary) (arrow.Array, error) {
	if len(e.order) == 0 && e.own != nil {
		e.own.Retain()
		return e.own, nil
	}
	none := &dictionary{}
	if e.own == nil {
		d = none
	}
	if err := e.begin(d, len(e.order)); err != nil {
		return nil, err
	}
	b := &e.values
	for _, v := range e.order {
		if err := b.bytes.append([]byte(v)); err != nil {
			b.abort()
			return nil, err
		}
		e.memory -= int64(len(v) + memoEntry)
		e.charged.Shrink(int64(len(v) + memoEntry))
	}
	b.fill(len(e.order))
	clear(e.added)
	e.order = e.order[:0]
	return b.finish(), nil
}

func (e *dictionaryEncoder) forget() {
	if e.own != nil {
		e.own.Release()
		e.own = nil
	}
	e.known, e.added, e.order = nil, nil, nil
	e.charged.Shrink(e.memory)
	e.memory, e.rowGroup = 0, -1
}

func (e *dictionaryEncoder) free() {
	e.forget()
	e.values.free()
}

// stringsOf lists the values of an array of strings or binaries.
func stringsOf(a arrow.Array) [][]byte {
	out := make([][]byte, a.Len())
	for i := range out {
		switch a := a.(type) {
		case *array.String:
			out[i] = []byte(a.Value(i))
		case *array.Binary:
			out[i] = a.Value(i)
		}
	}
	return out
}

// plainIndices reads a page's indices for what they are.
type plainIndices struct{ page *dictBytes }

func (p *plainIndices) decode(dst []byte, spans []span) error {
	out := arrow.Uint32Traits.CastFromBytes(dst)
	for _, s := range spans {
		if !p.page.indices.skip(s.skip) {
			return errTooFewValues
		}
		for left := s.take; left > 0; {
			indices := p.page.indices.take(left)
			if len(indices) == 0 {
				return errTooFewValues
			}
			for _, x := range indices {
				if int(x) >= p.page.dictionary.count {
					return p.page.dictionary.beyond()
				}
			}
			out = out[copy(out, indices):]
			left -= len(indices)
		}
	}
	return nil
}

// memoIndices looks up the strings of a page that has no indices.
type memoIndices struct {
	encoder *dictionaryEncoder
	source  bytesDecoder
	out     scratchBytes
}

func (m *memoIndices) next(dst []byte, n int) error {
	indices := arrow.Uint32Traits.CastFromBytes(dst)
	for n > 0 {
		k := min(n, conversionBatch)
		if err := m.source.decode(m.out.reset(k), []span{{take: k}}); err != nil {
			return err
		}
		for i := range k {
			x, err := m.encoder.index(m.out.get(i))
			if err != nil {
				return err
			}
			indices[i] = x
		}
		indices, n = indices[k:], n-k
	}
	return nil
}

func (m *memoIndices) skip(n int) error {
	return m.source.decode(m.out.reset(0), []span{{skip: n}})
}
