package expr

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// clearRows drops the rows of keep that do not match.
func clearRows(keep *batch.Mask, matches func(i int) bool) {
	for i, w := range keep.Words {
		var match uint64
		for m := w; m != 0; m &= m - 1 {
			j := bits.TrailingZeros64(m)
			match |= bit(matches(i<<6+j)) << j
		}
		keep.Words[i] = match
	}
}

// reader reads the values of one column's array.
type reader struct {
	col   *column
	n     int
	valid bitmap
	// vector tests values; nil if all values are null.
	vector vector
}

// vector is the values of an array of some Arrow type.
type vector interface {
	// clear drops the rows of keep whose value a test does not match. It may
	// judge rows that are null as it likes.
	clear(t *test, keep *batch.Mask)
	// at is the value of a row that is neither null nor NaN.
	at(i int) datum
}

func (r *reader) at(i int) datum { return r.vector.at(i) }

// clear drops the rows of keep that a test does not match.
func (r *reader) clear(t *test, keep *batch.Mask) {
	if r.vector == nil {
		if !t.null {
			keep.Reset(keep.Len, false)
		}
		return
	}
	if r.valid.bits == nil {
		r.vector.clear(t, keep)
		return
	}
	// Nulls are decided here, so a vector never looks at them.
	var nulls []uint64
	if t.null {
		nulls = make([]uint64, len(keep.Words))
	}
	for i, w := range keep.Words {
		if w == 0 {
			continue
		}
		valid := r.valid.word(i << 6)
		if t.null {
			nulls[i] = w &^ valid
		}
		keep.Words[i] = w & valid
	}
	r.vector.clear(t, keep)
	if t.null {
		for i, w := range nulls {
			keep.Words[i] |= w
		}
	}
}

// newReader looks at the layout of an array.
func newReader(c *column, arr arrow.Array) (*reader, error) {
	if ext, ok := arr.(array.ExtensionArray); ok {
		arr = ext.Storage()
	}
	r := &reader{col: c, n: arr.Len()}
	if arr.NullN() == arr.Len() {
		return r, nil
	}
	if arr.NullN() > 0 {
		r.valid = bitmap{bits: arr.NullBitmapBytes(), offset: arr.Data().Offset(), n: arr.Len()}
	}
	if dictionary, ok := arr.(*array.Dictionary); ok {
		values, err := newReader(c, dictionary.Dictionary())
		if err != nil {
			return nil, err
		}
		r.vector = dictionaryVector{values: values, codes: codesOf(dictionary)}
		return r, nil
	}
	if r.vector = vectorOf(c.typ, arr); r.vector == nil {
		return nil, errs.New(errs.Internal, "filter: column %q of type %s was read as Arrow %s", c.name, c.typ, arr.DataType())
	}
	return r, nil
}

// vectorOf wraps an array in the form of an Iceberg type; nil for another form.
func vectorOf(typ iceberg.Type, arr arrow.Array) vector {
	switch t := typ.(type) {
	case iceberg.BooleanType:
		if a, ok := arr.(*array.Boolean); ok {
			return boolVector{bitmap{bits: a.Data().Buffers()[1].Bytes(), offset: a.Data().Offset(), n: a.Len()}}
		}
	case iceberg.Int32Type:
		if a, ok := arr.(*array.Int32); ok {
			return intVector[int32](a.Int32Values())
		}
	case iceberg.Int64Type:
		if a, ok := arr.(*array.Int64); ok {
			return intVector[int64](a.Int64Values())
		}
	case iceberg.Float32Type:
		if a, ok := arr.(*array.Float32); ok {
			return floatVector[float32](a.Float32Values())
		}
	case iceberg.Float64Type:
		if a, ok := arr.(*array.Float64); ok {
			return floatVector[float64](a.Float64Values())
		}
	case iceberg.DecimalType:
		if a, ok := arr.(*array.Decimal128); ok && a.DataType().(*arrow.Decimal128Type).Scale == int32(t.Scale()) {
			return decimalVector(a.Values())
		}
	case iceberg.DateType:
		if a, ok := arr.(*array.Date32); ok {
			return intVector[arrow.Date32](a.Date32Values())
		}
	case iceberg.TimeType:
		if a, ok := arr.(*array.Time64); ok && a.DataType().(*arrow.Time64Type).Unit == arrow.Microsecond {
			return intVector[arrow.Time64](a.Time64Values())
		}
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		unit := arrow.Microsecond
		if unitOf(typ) == 1000 {
			unit = arrow.Nanosecond
		}
		if a, ok := arr.(*array.Timestamp); ok && a.DataType().(*arrow.TimestampType).Unit == unit {
			return intVector[arrow.Timestamp](a.TimestampValues())
		}
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType, iceberg.UUIDType:
		return byteVectorOf(arr)
	}
	return nil
}

func byteVectorOf(arr arrow.Array) vector {
	switch a := arr.(type) {
	case *array.String:
		return bytesVector[int32]{a.ValueOffsets(), bytesOf(a)}
	case *array.Binary:
		return bytesVector[int32]{a.ValueOffsets(), bytesOf(a)}
	case *array.LargeString:
		return bytesVector[int64]{a.ValueOffsets(), bytesOf(a)}
	case *array.LargeBinary:
		return bytesVector[int64]{a.ValueOffsets(), bytesOf(a)}
	case *array.StringView:
		return viewVector{func(i int) []byte { s := a.Value(i); return unsafe.Slice(unsafe.StringData(s), len(s)) }}
	case *array.BinaryView:
		return viewVector{a.Value}
	case *array.FixedSizeBinary:
		return viewVector{a.Value}
	}
	return nil
}

// bytesOf is the whole value buffer of an array, to which its offsets refer.
func bytesOf(a arrow.Array) []byte {
	if buf := a.Data().Buffers()[2]; buf != nil {
		return buf.Bytes()
	}
	return nil
}

// bitmap is a slice of an Arrow bitmap.
type bitmap struct {
	bits   []byte
	offset int
	n      int
}

// word returns the 64 bits from bit i on, or those that there are.
func (b bitmap) word(i int) uint64 {
	at, shift := (b.offset+i)>>3, uint(b.offset+i)&7
	if at+9 <= len(b.bits) {
		w := binary.LittleEndian.Uint64(b.bits[at:]) >> shift
		if shift > 0 {
			w |= uint64(b.bits[at+8]) << (64 - shift)
		}
		return w
	}
	var tail [16]byte
	copy(tail[:], b.bits[at:])
	w := binary.LittleEndian.Uint64(tail[:]) >> shift
	if shift > 0 {
		w |= uint64(tail[8]) << (64 - shift)
	}
	return w
}

func (b bitmap) get(i int) bool {
	i += b.offset
	return b.bits[i>>3]>>(uint(i)&7)&1 == 1
}

type boolVector struct{ bitmap }

func (v boolVector) clear(t *test, keep *batch.Mask) {
	var ifTrue, ifFalse uint64
	if t.values.contains(datum{n: 1}) {
		ifTrue = ^uint64(0)
	}
	if t.values.contains(datum{n: 0}) {
		ifFalse = ^uint64(0)
	}
	for i, w := range keep.Words {
		if w != 0 {
			bits := v.word(i << 6)
			keep.Words[i] = w & (bits&ifTrue | ^bits&ifFalse)
		}
	}
}

func (v boolVector) at(i int) datum {
	if v.get(i) {
		return datum{n: 1}
	}
	return datum{}
}

type intVector[T ~int32 | ~int64] []T

func (v intVector[T]) at(i int) datum { return datum{n: int64(v[i])} }

func (v intVector[T]) clear(t *test, keep *batch.Mask) {
	lo, span, flip := t.values.span()
	if t.values.set != nil {
		for i, w := range keep.Words {
			if w != 0 {
				keep.Words[i] = w & (members(&t.values.set.intTable, v[i<<6:], w) ^ flip)
			}
		}
		return
	}
	for i, w := range keep.Words {
		if w == 0 {
			continue
		}
		block := v[i<<6 : min(i<<6+64, len(v))]
		var match uint64
		for j, x := range block {
			match |= bit(uint64(int64(x)-lo) <= span) << (j & 63)
		}
		keep.Words[i] = w & (match ^ flip)
	}
}

// members returns those of up to 64 rows whose values are in a table. All are
// sieved before any is looked up, so that the cache misses of many overlap.
func members[T ~int32 | ~int64](t *intTable, v []T, rows uint64) uint64 {
	if t.sieve != nil {
		sieved := uint64(0)
		for m := rows; m != 0; m &= m - 1 {
			j := bits.TrailingZeros64(m)
			sieved |= bit(t.mayContain(hashInt(int64(v[j])))) << j
		}
		rows = sieved
	}
	found := uint64(0)
	for m := rows; m != 0; m &= m - 1 {
		j := bits.TrailingZeros64(m)
		found |= bit(t.lookup(int64(v[j]))) << j
	}
	return found
}

// bit is 1 for true; the compiler makes it a flag, not a jump.
func bit(b bool) uint64 {
	var x uint64
	if b {
		x = 1
	}
	return x
}

// span describes an interval of integers such that x is inside if
// uint64(x-lo) <= span, which one comparison tells; flip is what to change in
// the outcome of 64 rows.
func (v values) span() (lo int64, span uint64, flip uint64) {
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	if v.in.hasLo {
		lo = v.in.lo.n
	}
	if v.in.hasHi {
		hi = v.in.hi.n
	}
	inverted := v.inverted
	if v.in.empty || lo > hi {
		lo, hi, inverted = math.MinInt64, math.MaxInt64, !inverted
	}
	if inverted {
		flip = ^uint64(0)
	}
	return lo, uint64(hi) - uint64(lo), flip
}

type floatVector[T ~float32 | ~float64] []T

func (v floatVector[T]) at(i int) datum { return datum{n: floatKey(float64(v[i]))} }

func (v floatVector[T]) clear(t *test, keep *batch.Mask) {
	lo, span, flip := t.values.span()
	var ifNaN uint64
	if t.nan {
		ifNaN = ^uint64(0)
	}
	for i, w := range keep.Words {
		if w == 0 {
			continue
		}
		block := v[i<<6 : min(i<<6+64, len(v))]
		var match, nan uint64
		if t.values.set != nil {
			for m := w; m != 0; m &= m - 1 {
				j := bits.TrailingZeros64(m)
				match |= bit(t.values.set.intTable.contains(floatKey(float64(block[j])))) << j
				nan |= bit(block[j] != block[j]) << j
			}
		} else {
			for j, x := range block {
				match |= bit(uint64(floatKey(float64(x))-lo) <= span) << (j & 63)
				nan |= bit(x != x) << (j & 63)
			}
		}
		match ^= flip
		keep.Words[i] = w & (match&^nan | nan&ifNaN)
	}
}

type decimalVector []decimal128.Num

func (v decimalVector) at(i int) datum { return datum{d: v[i]} }

func (v decimalVector) clear(t *test, keep *batch.Mask) {
	inverted := t.values.inverted
	if t.values.set != nil {
		table := t.values.set.decimalTable
		clearRows(keep, func(i int) bool {
			_, ok := table[v[i]]
			return ok != inverted
		})
		return
	}
	in := t.values.in
	lo, hi := leastDecimal, greatestDecimal
	if in.hasLo {
		lo = in.lo.d
	}
	if in.hasHi {
		hi = in.hi.d
	}
	if in.empty {
		lo, hi = greatestDecimal, leastDecimal
	}
	clearRows(keep, func(i int) bool { return (atMost(lo, v[i]) && atMost(v[i], hi)) != inverted })
}

var leastDecimal, greatestDecimal = decimal128.New(math.MinInt64, 0), decimal128.New(math.MaxInt64, math.MaxUint64)

func atMost(a, b decimal128.Num) bool {
	return a.HighBits() < b.HighBits() || a.HighBits() == b.HighBits() && a.LowBits() <= b.LowBits()
}

// bytesVector is strings or binary values with offsets of some width.
type bytesVector[O ~int32 | ~int64] struct {
	offsets []O
	data    []byte
}

func (v bytesVector[O]) value(i int) []byte { return v.data[v.offsets[i]:v.offsets[i+1]] }

func (v bytesVector[O]) at(i int) datum { return datum{b: v.value(i)} }

func (v bytesVector[O]) clear(t *test, keep *batch.Mask) {
	inverted := t.values.inverted
	if t.values.set == nil && t.values.in.point(kindBytes) {
		// Most strings differ in length, which the offsets tell.
		lit := t.values.in.lo.b
		clearRows(keep, func(i int) bool { return bytes.Equal(v.value(i), lit) != inverted })
		return
	}
	matches := t.values.bytesMatcher()
	clearRows(keep, func(i int) bool { return matches(v.value(i)) })
}

// bytesMatcher prepares the values for many byte strings.
func (v values) bytesMatcher() func(b []byte) bool {
	in, inverted := v.in, v.inverted
	if v.set != nil {
		table := v.set.stringTable
		return func(b []byte) bool {
			_, ok := table[string(b)]
			return ok != inverted
		}
	}
	if prefix, ok := in.prefix(); ok {
		return func(b []byte) bool { return bytes.HasPrefix(b, prefix) != inverted }
	}
	return func(b []byte) bool { return in.contains(kindBytes, datum{b: b}) != inverted }
}

// viewVector is byte strings in another layout.
type viewVector struct{ value func(i int) []byte }

func (v viewVector) at(i int) datum { return datum{b: v.value(i)} }

func (v viewVector) clear(t *test, keep *batch.Mask) {
	matches := t.values.bytesMatcher()
	clearRows(keep, func(i int) bool { return matches(v.value(i)) })
}

// dictionaryVector is codes into the values of a dictionary.
type dictionaryVector struct {
	values *reader
	codes  func(i int) int
}

func (v dictionaryVector) at(i int) datum { return v.values.at(v.codes(i)) }

// clear tests every value of the dictionary once.
func (v dictionaryVector) clear(t *test, keep *batch.Mask) {
	match := batch.NewMask(v.values.n, true)
	v.values.clear(t, match)
	clearRows(keep, func(i int) bool { return match.Get(v.codes(i)) })
}

func codesOf(d *array.Dictionary) func(i int) int {
	if codes, ok := d.Indices().(*array.Int32); ok {
		values := codes.Int32Values()
		return func(i int) int { return int(values[i]) }
	}
	return d.GetValueIndex
}
