package project

import (
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// convertFunc turns an array of the file into one of type out.
type convertFunc func(alloc memory.Allocator, a arrow.Array, out arrow.DataType) (arrow.Array, error)

// conversion finds how values of a file's Arrow type become values of an
// Iceberg type in Arrow form out; nil when they are that already, false when
// they cannot.
func conversion(file arrow.DataType, to iceberg.Type, out arrow.DataType) (convertFunc, bool) {
	if file.ID() == arrow.NULL {
		return nullsOf, true
	}
	if extension, ok := file.(arrow.ExtensionType); ok {
		inner, ok := conversion(extension.StorageType(), to, out)
		if !ok || isVariant(extension) {
			return nil, false
		}
		return storageOf(inner), true
	}
	switch to := to.(type) {
	case iceberg.BooleanType:
		return nil, file.ID() == arrow.BOOL
	case iceberg.Int32Type:
		switch file.ID() {
		case arrow.INT32:
			return nil, true
		case arrow.INT8:
			return widen[int8, int32], true
		case arrow.INT16:
			return widen[int16, int32], true
		case arrow.UINT8:
			return widen[uint8, int32], true
		case arrow.UINT16:
			return widen[uint16, int32], true
		case arrow.UINT32:
			return checked(func(v uint32) (int32, bool) { return int32(v), v <= math.MaxInt32 }), true
		}
	case iceberg.Int64Type:
		switch file.ID() {
		case arrow.INT64:
			return nil, true
		case arrow.INT8:
			return widen[int8, int64], true
		case arrow.INT16:
			return widen[int16, int64], true
		case arrow.INT32:
			return widen[int32, int64], true
		case arrow.UINT8:
			return widen[uint8, int64], true
		case arrow.UINT16:
			return widen[uint16, int64], true
		case arrow.UINT32:
			return widen[uint32, int64], true
		case arrow.UINT64:
			return checked(func(v uint64) (int64, bool) { return int64(v), v <= math.MaxInt64 }), true
		}
	case iceberg.Float32Type:
		switch file.ID() {
		case arrow.FLOAT32:
			return nil, true
		case arrow.FLOAT16:
			return checked(func(v float16.Num) (float32, bool) { return v.Float32(), true }), true
		}
	case iceberg.Float64Type:
		switch file.ID() {
		case arrow.FLOAT64:
			return nil, true
		case arrow.FLOAT32:
			return widen[float32, float64], true
		case arrow.FLOAT16:
			return checked(func(v float16.Num) (float64, bool) { return float64(v.Float32()), true }), true
		}
	case iceberg.DecimalType:
		from, ok := file.(arrow.DecimalType)
		if !ok || int(from.GetScale()) != to.Scale() || int(from.GetPrecision()) > to.Precision() {
			return nil, false
		}
		switch file.ID() {
		case arrow.DECIMAL32:
			return checked(func(v decimal.Decimal32) (decimal128.Num, bool) { return decimal128.FromI64(int64(v)), true }), true
		case arrow.DECIMAL64:
			return checked(func(v decimal.Decimal64) (decimal128.Num, bool) { return decimal128.FromI64(int64(v)), true }), true
		case arrow.DECIMAL128:
			return sameUnless(arrow.TypeEqual(file, out)), true
		case arrow.DECIMAL256:
			return checked(func(v decimal256.Num) (decimal128.Num, bool) {
				words := v.Array() // lowest first; the upper half repeats the sign
				sign := uint64(int64(words[1]) >> 63)
				return decimal128.New(int64(words[1]), words[0]), words[2] == sign && words[3] == sign
			}), true
		}
	case iceberg.DateType:
		return nil, file.ID() == arrow.DATE32
	case iceberg.TimeType:
		switch from := file.(type) {
		case *arrow.Time32Type:
			return rescale[int32](from.Unit, arrow.Microsecond), true
		case *arrow.Time64Type:
			return rescale[int64](from.Unit, arrow.Microsecond), true
		}
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		target := out.(*arrow.TimestampType)
		if from, ok := file.(*arrow.TimestampType); ok {
			// Arrow stores an instant in UTC whatever the zone's name. Files
			// with and without a zone stand in for each other, as older
			// writers did not mark it.
			if from.Unit == target.Unit {
				return sameUnless(arrow.TypeEqual(file, out)), true
			}
			return rescale[int64](from.Unit, target.Unit), true
		}
		if file.ID() == arrow.DATE32 && target.TimeZone == "" {
			day := int64(24 * 60 * 60 * int64(arrow.Second.Multiplier()) / int64(target.Unit.Multiplier()))
			return checked(func(v int32) (int64, bool) {
				product := int64(v) * day
				return product, product/day == int64(v)
			}), true
		}
	case iceberg.StringType:
		switch file.ID() {
		case arrow.STRING, arrow.LARGE_STRING:
			return resized(file, out, false), true
		case arrow.BINARY, arrow.LARGE_BINARY:
			return resized(file, out, true), true
		}
	case iceberg.BinaryType:
		switch file.ID() {
		case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
			return resized(file, out, false), true
		}
	case iceberg.FixedType, iceberg.UUIDType:
		return nil, arrow.TypeEqual(file, out)
	}
	return nil, false
}

func isVariant(t arrow.ExtensionType) bool {
	name := t.ExtensionName()
	return name == "arrow.parquet.variant" || name == "parquet.variant"
}

// nullsOf reads a column of the null type, whatever it shall be.
func nullsOf(alloc memory.Allocator, a arrow.Array, out arrow.DataType) (arrow.Array, error) {
	return nullArray(alloc, out, a.Len()), nil
}

// storageOf converts an extension array by its storage.
func storageOf(inner convertFunc) convertFunc {
	return func(alloc memory.Allocator, a arrow.Array, out arrow.DataType) (arrow.Array, error) {
		extension, ok := a.(array.ExtensionArray)
		if !ok {
			return nil, unexpected("", a)
		}
		if inner == nil {
			return retyped(alloc, extension.Storage(), out)
		}
		return inner(alloc, extension.Storage(), out)
	}
}

// sameUnless is retyped, or nil where the type is the wanted one already.
func sameUnless(equal bool) convertFunc {
	if equal {
		return nil
	}
	return retyped
}

// retyped gives the same buffers another type.
func retyped(_ memory.Allocator, a arrow.Array, out arrow.DataType) (arrow.Array, error) {
	source := a.Data()
	data := array.NewData(out, source.Len(), append([]*memory.Buffer(nil), source.Buffers()...), nil, source.NullN(), source.Offset())
	defer data.Release()
	return array.MakeFromData(data), nil
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// widen converts numbers without loss.
func widen[From, To number](alloc memory.Allocator, a arrow.Array, out arrow.DataType) (arrow.Array, error) {
	return mapped(alloc, a, out, func(source []From, dest []To) error {
		for i, v := range source {
			dest[i] = To(v)
		}
		return nil
	})
}

// checked converts values one by one with a function that may refuse; what it
// says about the undefined values below nulls does not count.
func checked[From, To any](convert func(From) (To, bool)) convertFunc {
	return func(alloc memory.Allocator, a arrow.Array, out arrow.DataType) (arrow.Array, error) {
		return mapped(alloc, a, out, func(source []From, dest []To) error {
			for i, v := range source {
				var ok bool
				if dest[i], ok = convert(v); !ok && a.IsValid(i) {
					return errs.New(errs.Corrupt, "value %v of the file does not fit %s", v, out)
				}
			}
			return nil
		})
	}
}

// rescale converts between time units: exactly to a finer one, rounding down
// to a coarser one.
func rescale[From int32 | int64](from, to arrow.TimeUnit) convertFunc {
	f, t := int64(from.Multiplier()), int64(to.Multiplier())
	if f >= t {
		factor := f / t
		return checked(func(v From) (int64, bool) {
			product := int64(v) * factor
			return product, product/factor == int64(v)
		})
	}
	divisor := t / f
	return checked(func(v From) (int64, bool) {
		quotient := int64(v) / divisor
		if int64(v)%divisor < 0 {
			quotient--
		}
		return quotient, true
	})
}

// mapped makes a fixed-width array of type out from the values of another.
func mapped[From, To any](alloc memory.Allocator, a arrow.Array, out arrow.DataType, convert func(source []From, dest []To) error) (arrow.Array, error) {
	n, data := a.Len(), a.Data()
	bitmap, nulls := validity(alloc, a)
	values := newBuffer(alloc, n*sizeOf[To]())
	buffers := []*memory.Buffer{bitmap, values}
	defer releaseBuffers(buffers)
	if n > 0 {
		source := valuesOf[From](data.Buffers()[1].Bytes())[data.Offset() : data.Offset()+n]
		if err := convert(source, valuesOf[To](values.Bytes())); err != nil {
			return nil, err
		}
	}
	result := array.NewData(out, n, buffers, nil, nulls, 0)
	defer result.Release()
	return array.MakeFromData(result), nil
}

// resized converts between the forms of string and binary, checking that what
// becomes a string is UTF-8 when the file does not promise it.
func resized(file, out arrow.DataType, check bool) convertFunc {
	if arrow.TypeEqual(file, out) {
		return nil
	}
	from, to := isLarge(file), isLarge(out)
	return func(alloc memory.Allocator, a arrow.Array, out arrow.DataType) (arrow.Array, error) {
		if check {
			if err := checkUTF8(a); err != nil {
				return nil, err
			}
		}
		if from == to {
			return retyped(alloc, a, out)
		}
		offsets, first, last, err := rebaseOffsets(alloc, a.Data(), from, to)
		if err != nil {
			return nil, err
		}
		bitmap, nulls := validity(alloc, a)
		buffers := []*memory.Buffer{bitmap, offsets, nil}
		if bytes := a.Data().Buffers()[2]; bytes != nil {
			buffers[2] = memory.SliceBuffer(bytes, int(first), int(last-first))
		}
		defer releaseBuffers(buffers)
		data := array.NewData(out, a.Len(), buffers, nil, nulls, 0)
		defer data.Release()
		return array.MakeFromData(data), nil
	}
}

func isLarge(t arrow.DataType) bool {
	return t.ID() == arrow.LARGE_STRING || t.ID() == arrow.LARGE_BINARY
}

func checkUTF8(a arrow.Array) error {
	values, ok := a.(interface{ Value(int) []byte })
	if !ok {
		return unexpected("", a)
	}
	for i := range a.Len() {
		if a.IsValid(i) && !utf8.Valid(values.Value(i)) {
			return errs.New(errs.Corrupt, "row %d of a batch is not valid UTF-8", i)
		}
	}
	return nil
}

// rebaseOffsets are the offsets of a string, binary, list or map array as
// those of an array without offset, starting at zero, and the range of values
// that they cover.
func rebaseOffsets(alloc memory.Allocator, data arrow.ArrayData, fromLarge, toLarge bool) (offsets *memory.Buffer, first, last int64, err error) {
	switch {
	case fromLarge && toLarge:
		return rebase[int64, int64](alloc, data)
	case fromLarge:
		return rebase[int64, int32](alloc, data)
	case toLarge:
		return rebase[int32, int64](alloc, data)
	}
	return rebase[int32, int32](alloc, data)
}

func rebase[From, To int32 | int64](alloc memory.Allocator, data arrow.ArrayData) (*memory.Buffer, int64, int64, error) {
	n, source := data.Len(), data.Buffers()[1]
	if source == nil || source.Len() == 0 { // allowed for an empty array
		offsets := newBuffer(alloc, sizeOf[To]())
		clear(offsets.Bytes())
		return offsets, 0, 0, nil
	}
	from := valuesOf[From](source.Bytes())[data.Offset() : data.Offset()+n+1]
	first, last := int64(from[0]), int64(from[n])
	if sizeOf[From]() == sizeOf[To]() && data.Offset() == 0 && first == 0 {
		source.Retain()
		return source, first, last, nil
	}
	if sizeOf[To]() == 4 && last-first > math.MaxInt32 {
		return nil, 0, 0, errs.New(errs.Unsupported, "a batch holds more than 2 GiB of values; use smaller batches")
	}
	offsets := newBuffer(alloc, (n+1)*sizeOf[To]())
	to := valuesOf[To](offsets.Bytes())
	for i, v := range from {
		to[i] = To(int64(v) - first)
	}
	return offsets, first, last, nil
}
