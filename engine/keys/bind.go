package keys

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// bind gives access to the values of an array as values of a key type.
func bind(t iceberg.Type, f form, a arrow.Array) (column, error) {
	switch a := a.(type) {
	case array.ExtensionArray:
		return bind(t, f, a.Storage())
	case *array.Dictionary:
		return bindDictionary(t, f, a)
	case *array.Null:
		return bindNulls(f, a.Len()), nil
	}
	c := column{}
	if a.NullN() > 0 {
		c.validity, c.offset = a.NullBitmapBytes(), a.Data().Offset()
	}
	var ok bool
	switch f {
	case oneWord:
		c.words, ok = bindWords(t, a)
	case twoWords:
		c.words, ok = bindWordPairs(t, a)
	case text:
		ok = bindTexts(&c, t, a)
	}
	if !ok {
		return column{}, fmt.Errorf("values of Arrow type %s cannot be read as %s", a.DataType(), t)
	}
	return c, nil
}

func bindNulls(f form, n int) column {
	c := column{validity: make([]byte, (n+7)/8)}
	if f == text {
		c.setText(func(int) string { return "" })
	} else {
		c.words = func(dst []uint64, _, _ int) ([]uint64, error) { return dst, nil }
	}
	return c
}

type wordSource = func(dst []uint64, start, n int) ([]uint64, error)

// bindWords reads types that fit one word.
func bindWords(t iceberg.Type, a arrow.Array) (wordSource, bool) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		if a, ok := a.(*array.Boolean); ok {
			return each(func(i int) uint64 {
				if a.Value(i) {
					return 1
				}
				return 0
			}), true
		}
	case iceberg.Int32Type, iceberg.Int64Type:
		return bindIntegers(a)
	case iceberg.Float32Type:
		if a, ok := a.(*array.Float32); ok {
			return convert(a.Float32Values(), float32Word), true
		}
	case iceberg.Float64Type:
		switch a := a.(type) {
		case *array.Float64:
			return convert(a.Float64Values(), float64Word), true
		case *array.Float32:
			return convert(a.Float32Values(), func(v float32) uint64 { return float64Word(float64(v)) }), true
		}
	case iceberg.DateType:
		switch a := a.(type) {
		case *array.Date32:
			return convert(a.Date32Values(), func(v arrow.Date32) uint64 { return uint64(int64(v)) }), true
		case *array.Date64:
			return convert(a.Date64Values(), func(v arrow.Date64) uint64 { return uint64(floorDivide(int64(v), 86_400_000)) }), true
		}
	case iceberg.TimeType:
		switch a := a.(type) {
		case *array.Time64:
			return scale(a, int64s(a.Time64Values()), a.DataType().(*arrow.Time64Type).Unit, arrow.Microsecond), true
		case *array.Time32:
			unit := a.DataType().(*arrow.Time32Type).Unit
			return scale(a, a.Time32Values(), unit, arrow.Microsecond), true
		}
	case iceberg.TimestampType:
		return bindTimestamps(a, arrow.Microsecond, 86_400_000_000)
	case iceberg.TimestampNsType:
		return bindTimestamps(a, arrow.Nanosecond, 86_400_000_000_000)
	case iceberg.TimestampTzType:
		return bindTimestamps(a, arrow.Microsecond, 0)
	case iceberg.TimestampTzNsType:
		return bindTimestamps(a, arrow.Nanosecond, 0)
	case iceberg.DecimalType:
		if read, ok := decimals(t, a); ok {
			return func(dst []uint64, start, n int) ([]uint64, error) {
				for j := range n {
					v, ok := read(start + j)
					if (!ok || int64(v.LowBits())>>63 != v.HighBits()) && a.IsValid(start+j) {
						return nil, fmt.Errorf("a value has more digits than %s", t)
					}
					dst[j] = v.LowBits()
				}
				return dst, nil
			}, true
		}
	}
	return nil, false
}

func bindIntegers(a arrow.Array) (wordSource, bool) {
	switch a := a.(type) {
	case *array.Int64:
		return view(a.Int64Values()), true
	case *array.Int32:
		return convert(a.Int32Values(), func(v int32) uint64 { return uint64(int64(v)) }), true
	case *array.Int16:
		return convert(a.Int16Values(), func(v int16) uint64 { return uint64(int64(v)) }), true
	case *array.Int8:
		return convert(a.Int8Values(), func(v int8) uint64 { return uint64(int64(v)) }), true
	case *array.Uint32:
		return convert(a.Uint32Values(), func(v uint32) uint64 { return uint64(v) }), true
	case *array.Uint16:
		return convert(a.Uint16Values(), func(v uint16) uint64 { return uint64(v) }), true
	case *array.Uint8:
		return convert(a.Uint8Values(), func(v uint8) uint64 { return uint64(v) }), true
	}
	return nil, false
}

// bindTimestamps reads timestamps in the wanted unit. day is the length of a
// day in that unit where a date column may have become the timestamp.
func bindTimestamps(a arrow.Array, want arrow.TimeUnit, day int64) (wordSource, bool) {
	switch values := a.(type) {
	case *array.Timestamp:
		return scale(a, int64s(values.TimestampValues()), a.DataType().(*arrow.TimestampType).Unit, want), true
	case *array.Date32:
		return multiply(a, values.Date32Values(), day), day != 0
	}
	return nil, false
}

// scale reads times of one unit as times of another. A finer unit is cut off
// towards the past, as reading the column in the coarser type does.
func scale[T ~int32 | ~int64](a arrow.Array, values []T, have, want arrow.TimeUnit) wordSource {
	switch {
	case have < want:
		factor := int64(1)
		for u := have; u < want; u++ {
			factor *= 1000
		}
		return multiply(a, values, factor)
	case have > want:
		divisor := int64(1)
		for u := want; u < have; u++ {
			divisor *= 1000
		}
		return convert(values, func(v T) uint64 { return uint64(floorDivide(int64(v), divisor)) })
	}
	if whole, ok := any(values).([]int64); ok {
		return view(whole)
	}
	return convert(values, func(v T) uint64 { return uint64(int64(v)) })
}

func floorDivide(v, by int64) int64 {
	q := v / by
	if v%by < 0 {
		q--
	}
	return q
}

// multiply reads values times a factor.
func multiply[T ~int32 | ~int64](a arrow.Array, values []T, factor int64) wordSource {
	return func(dst []uint64, start, n int) ([]uint64, error) {
		for j, v := range values[start : start+n] {
			product := int64(v) * factor
			if product/factor != int64(v) && a.IsValid(start+j) {
				return nil, fmt.Errorf("the value %d is out of the range of the column's newest type", v)
			}
			dst[j] = uint64(product)
		}
		return dst, nil
	}
}

// bindWordPairs reads types that fit two words, the low one first.
func bindWordPairs(t iceberg.Type, a arrow.Array) (wordSource, bool) {
	switch t := t.(type) {
	case iceberg.DecimalType:
		if read, ok := decimals(t, a); ok {
			return func(dst []uint64, start, n int) ([]uint64, error) {
				for j := range n {
					v, ok := read(start + j)
					if !ok && a.IsValid(start+j) {
						return nil, fmt.Errorf("a value has more digits than %s", t)
					}
					dst[2*j], dst[2*j+1] = v.LowBits(), uint64(v.HighBits())
				}
				return dst, nil
			}, true
		}
	case iceberg.UUIDType:
		if a, ok := a.(*array.FixedSizeBinary); ok && a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth == 16 {
			return func(dst []uint64, start, n int) ([]uint64, error) {
				for j := range n {
					if a.IsValid(start + j) {
						v := a.Value(start + j)
						dst[2*j], dst[2*j+1] = binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
					}
				}
				return dst, nil
			}, true
		}
	}
	return nil, false
}

// decimals reads unscaled values, whatever width they are stored in; ok is
// false for one that does not fit 128 bits. Iceberg never changes the scale of
// a column.
func decimals(t iceberg.DecimalType, a arrow.Array) (read func(i int) (v decimal128.Num, ok bool), ok bool) {
	d, ok := a.DataType().(arrow.DecimalType)
	if !ok || int(d.GetScale()) != t.Scale() {
		return nil, false
	}
	switch a := a.(type) {
	case *array.Decimal32:
		return func(i int) (decimal128.Num, bool) { return decimal128.FromI64(int64(a.Value(i))), true }, true
	case *array.Decimal64:
		return func(i int) (decimal128.Num, bool) { return decimal128.FromI64(int64(a.Value(i))), true }, true
	case *array.Decimal128:
		return func(i int) (decimal128.Num, bool) { return a.Value(i), true }, true
	case *array.Decimal256:
		return func(i int) (decimal128.Num, bool) {
			words := a.Value(i).Array()
			sign := uint64(int64(words[1]) >> 63)
			return decimal128.New(int64(words[1]), words[0]), words[2] == sign && words[3] == sign
		}, true
	}
	return nil, false
}

// bindTexts reads types that are compared byte by byte.
func bindTexts(c *column, t iceberg.Type, a arrow.Array) (ok bool) {
	fixed, isFixed := t.(iceberg.FixedType)
	switch a := a.(type) {
	case *array.String:
		setSlices(c, a.ValueOffsets(), a.Data().Buffers()[2])
	case *array.Binary:
		setSlices(c, a.ValueOffsets(), a.Data().Buffers()[2])
	case *array.LargeString:
		setSlices(c, a.ValueOffsets(), a.Data().Buffers()[2])
	case *array.LargeBinary:
		setSlices(c, a.ValueOffsets(), a.Data().Buffers()[2])
	case *array.StringView:
		c.setText(a.Value)
	case *array.BinaryView:
		c.setText(func(i int) string { return stringOf(a.Value(i)) })
	case *array.FixedSizeBinary:
		c.setText(func(i int) string { return stringOf(a.Value(i)) })
		return !isFixed || a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth == fixed.Len()
	default:
		return false
	}
	return !isFixed
}

// setSlices cuts texts out of one data buffer.
func setSlices[O int32 | int64](c *column, offsets []O, buffer *memory.Buffer) {
	var data []byte
	if buffer != nil { // an array without bytes may have none
		data = buffer.Bytes()
	}
	c.text = func(i int) string { return stringOf(data[offsets[i]:offsets[i+1]]) }
	c.mixTexts = func(hash []uint64, start int, seed uint64, null *nullBits) {
		if len(hash) == 0 {
			return
		}
		at := offsets[start]
		for j, end := range offsets[start+1 : start+len(hash)+1] {
			word := uint64(nullWord)
			if null == nil || !null.isSet(j) {
				word = hashText(stringOf(data[at:end]), seed)
			}
			hash[j] = mix(hash[j], word)
			at = end
		}
	}
}

// setText reads texts one by one. The bytes of a null are never looked at:
// those of a view may point anywhere.
func (c *column) setText(text func(i int) string) {
	c.text = text
	c.mixTexts = func(hash []uint64, start int, seed uint64, null *nullBits) {
		for j := range hash {
			word := uint64(nullWord)
			if null == nil || !null.isSet(j) {
				word = hashText(text(start+j), seed)
			}
			hash[j] = mix(hash[j], word)
		}
	}
}

func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// view reads 64-bit values where they lie.
func view(values []int64) wordSource {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
	return func(_ []uint64, start, n int) ([]uint64, error) { return words[start : start+n], nil }
}

func int64s[T ~int64](values []T) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
}

func convert[T any](values []T, word func(T) uint64) wordSource {
	return func(dst []uint64, start, n int) ([]uint64, error) {
		for j, v := range values[start : start+n] {
			dst[j] = word(v)
		}
		return dst, nil
	}
}

func each(word func(i int) uint64) wordSource {
	return func(dst []uint64, start, n int) ([]uint64, error) {
		for j := range n {
			dst[j] = word(start + j)
		}
		return dst, nil
	}
}

// float32Word and float64Word are the IEEE bits with one pattern for all NaNs:
// equal exactly when Java's Float.compare and Double.compare say so.
func float32Word(v float32) uint64 {
	if v != v {
		return 0x7fc00000
	}
	return uint64(math.Float32bits(v))
}

func float64Word(v float64) uint64 {
	if v != v {
		return 0x7ff8000000000000
	}
	return math.Float64bits(v)
}

// bindDictionary reads the values that a dictionary array's indices point to.
func bindDictionary(t iceberg.Type, f form, a *array.Dictionary) (column, error) {
	values, err := bind(t, f, a.Dictionary())
	if err != nil {
		return column{}, err
	}
	n := a.Dictionary().Len()
	// indices are checked and not trusted, since they come from a file; those
	// of null rows become -1.
	indices := make([]int, a.Len())
	c := column{}
	if a.NullN() > 0 || values.validity != nil {
		c.validity = make([]byte, (a.Len()+7)/8)
	}
	for i := range indices {
		indices[i] = -1
		if a.IsNull(i) {
			continue
		}
		k := a.GetValueIndex(i)
		if k < 0 || k >= n {
			return column{}, fmt.Errorf("the dictionary has %d values, an index is %d", n, k)
		}
		if values.validity != nil && !bitutil.BitIsSet(values.validity, values.offset+k) {
			continue
		}
		indices[i] = k
		if c.validity != nil {
			bitutil.SetBit(c.validity, i)
		}
	}
	if f == text {
		c.setDictionary(values, n, indices)
		return c, nil
	}
	width := int(f) + 1
	words, err := values.words(make([]uint64, n*width), 0, n)
	if err != nil {
		return column{}, err
	}
	c.words = func(dst []uint64, start, n int) ([]uint64, error) {
		for j, k := range indices[start : start+n] {
			if k >= 0 {
				copy(dst[j*width:(j+1)*width], words[k*width:])
			}
		}
		return dst, nil
	}
	return c, nil
}

// setDictionary hashes each text of a dictionary once, unless few of them are used.
func (c *column) setDictionary(values column, n int, indices []int) {
	c.setText(func(i int) string { return values.text(indices[i]) })
	if n > len(indices) {
		return
	}
	var seed uint64
	var hashes []uint64
	c.mixTexts = func(hash []uint64, start int, with uint64, _ *nullBits) {
		if hashes == nil || seed != with {
			seed, hashes = with, make([]uint64, n)
			for k := range hashes {
				if values.validity == nil || bitutil.BitIsSet(values.validity, values.offset+k) {
					hashes[k] = hashText(values.text(k), seed)
				}
			}
		}
		for j, k := range indices[start : start+len(hash)] {
			word := uint64(nullWord)
			if k >= 0 {
				word = hashes[k]
			}
			hash[j] = mix(hash[j], word)
		}
	}
}
