package expr

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// kind is how the values of a column are compared.
type kind int8

const (
	// kindInt: booleans, integers, dates, times and timestamps, as int64.
	kindInt kind = iota
	// kindFloat: floats and doubles, as floatKey.
	kindFloat
	// kindDecimal: by unscaled value; a column has one scale.
	kindDecimal
	// kindBytes: strings, binary, fixed, uuid.
	kindBytes
	// kindNull: the type unknown, whose values are all null.
	kindNull
)

// kindOf is the kind of a primitive type; false for types without an order.
func kindOf(typ iceberg.Type) (kind, bool) {
	switch typ.(type) {
	case iceberg.BooleanType, iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType,
		iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return kindInt, true
	case iceberg.Float32Type, iceberg.Float64Type:
		return kindFloat, true
	case iceberg.DecimalType:
		return kindDecimal, true
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType, iceberg.UUIDType:
		return kindBytes, true
	case iceberg.UnknownType:
		return kindNull, true
	}
	return 0, false
}

// datum is one value in the form of its kind: n, d or b.
type datum struct {
	n int64
	d decimal128.Num
	b []byte
}

func (k kind) compare(x, y datum) int {
	switch k {
	case kindInt, kindFloat:
		switch {
		case x.n < y.n:
			return -1
		case x.n > y.n:
			return 1
		}
		return 0
	case kindDecimal:
		return x.d.Cmp(y.d)
	}
	return bytes.Compare(x.b, y.b)
}

// floatKey maps floats that are not NaN to integers in the order
// -Inf … -0.0 < 0.0 … +Inf. -0.0 becomes -1, 0.0 becomes 0.
func floatKey(f float64) int64 {
	b := int64(math.Float64bits(f))
	return b ^ int64(uint64(b>>63)>>1)
}

func keyFloat(key int64) float64 {
	return math.Float64frombits(uint64(key ^ int64(uint64(key>>63)>>1)))
}

// datumOf is the value of a literal. The literal has the column's type, or,
// for floats, a wider one; NaN has no datum.
func datumOf(lit iceberg.Literal) (d datum, ok bool) {
	switch v := lit.(type) {
	case iceberg.BoolLiteral:
		if v {
			d.n = 1
		}
	case iceberg.Int32Literal:
		d.n = int64(v)
	case iceberg.Int64Literal:
		d.n = int64(v)
	case iceberg.DateLiteral:
		d.n = int64(v)
	case iceberg.TimeLiteral:
		d.n = int64(v)
	case iceberg.TimestampLiteral:
		d.n = int64(v)
	case iceberg.TimestampNsLiteral:
		d.n = int64(v)
	case iceberg.Float32Literal:
		d.n = floatKey(float64(v))
		return d, !math.IsNaN(float64(v))
	case iceberg.Float64Literal:
		d.n = floatKey(float64(v))
		return d, !math.IsNaN(float64(v))
	case iceberg.DecimalLiteral:
		d.d = v.Val
	case iceberg.StringLiteral:
		d.b = []byte(v)
	case iceberg.BinaryLiteral:
		d.b = v
	case iceberg.FixedLiteral:
		d.b = v
	case iceberg.UUIDLiteral:
		d.b = v[:]
	default:
		return d, false
	}
	return d, true
}

// literalOf is the inverse of datumOf for a column's type.
func literalOf(typ iceberg.Type, d datum) iceberg.Literal {
	switch t := typ.(type) {
	case iceberg.BooleanType:
		return iceberg.BoolLiteral(d.n != 0)
	case iceberg.Float32Type, iceberg.Float64Type:
		return iceberg.Float64Literal(keyFloat(d.n))
	case iceberg.DecimalType:
		return iceberg.DecimalLiteral{Val: d.d, Scale: t.Scale()}
	case iceberg.StringType:
		return iceberg.StringLiteral(d.b)
	case iceberg.BinaryType:
		return iceberg.BinaryLiteral(d.b)
	case iceberg.FixedType:
		return iceberg.FixedLiteral(d.b)
	case iceberg.UUIDType:
		return iceberg.UUIDLiteral(uuid.UUID(d.b))
	}
	return integerLiteral(typ, d.n)
}

// text renders a value for messages.
func text(typ iceberg.Type, d datum) string {
	switch typ.(type) {
	case iceberg.StringType:
		return strconv.Quote(string(d.b))
	case iceberg.BinaryType, iceberg.FixedType:
		return "0x" + hex.EncodeToString(d.b)
	}
	return literalOf(typ, d).String()
}

const (
	microsPerDay  = 86_400_000_000
	microsPerHour = 3_600_000_000
)

// decodeBound reads a bound in Iceberg's single-value serialisation. The bytes
// may be of a type that was promoted to typ since; their length tells. What
// cannot be a value, and NaN, is unknown. The datum may share b's memory.
func decodeBound(typ iceberg.Type, b []byte) (d datum, ok bool) {
	switch t := typ.(type) {
	case iceberg.BooleanType:
		if len(b) != 1 {
			return d, false
		}
		if b[0] != 0 {
			d.n = 1
		}
	case iceberg.Int32Type, iceberg.DateType:
		if len(b) != 4 {
			return d, false
		}
		d.n = int64(int32(binary.LittleEndian.Uint32(b)))
	case iceberg.Int64Type, iceberg.TimeType:
		switch len(b) {
		case 4:
			d.n = int64(int32(binary.LittleEndian.Uint32(b)))
		case 8:
			d.n = int64(binary.LittleEndian.Uint64(b))
		default:
			return d, false
		}
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		switch len(b) {
		case 4: // a date
			return inUnits(int64(int32(binary.LittleEndian.Uint32(b))), microsPerDay, unitOf(typ))
		case 8:
			d.n = int64(binary.LittleEndian.Uint64(b))
		default:
			return d, false
		}
	case iceberg.Float32Type, iceberg.Float64Type:
		var f float64
		switch len(b) {
		case 4:
			f = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case 8:
			f = math.Float64frombits(binary.LittleEndian.Uint64(b))
		default:
			return d, false
		}
		d.n = floatKey(f)
		return d, !math.IsNaN(f)
	case iceberg.DecimalType:
		if len(b) == 0 || len(b) > 16 {
			return d, false
		}
		d.d = decimalFromBytes(b)
	case iceberg.UUIDType:
		if len(b) != 16 {
			return d, false
		}
		d.b = b
	case iceberg.FixedType:
		if len(b) > t.Len() {
			return d, false
		}
		d.b = b
	case iceberg.StringType, iceberg.BinaryType:
		d.b = b
	default:
		return d, false
	}
	return d, true
}

// decimalFromBytes reads at most 16 bytes of big-endian two's complement.
func decimalFromBytes(b []byte) decimal128.Num {
	var full [16]byte
	if b[0]&0x80 != 0 {
		for i := range full {
			full[i] = 0xff
		}
	}
	copy(full[16-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(full[:8])), binary.BigEndian.Uint64(full[8:]))
}

// unitOf is the number of units of a timestamp type in a microsecond.
func unitOf(typ iceberg.Type) int64 {
	switch typ.(type) {
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return 1000
	}
	return 1
}

// inUnits is count * micros in units of a timestamp type; false on overflow.
func inUnits(count, micros, unit int64) (datum, bool) {
	step := micros * unit
	if count > math.MaxInt64/step || count < math.MinInt64/step {
		return datum{}, false
	}
	return datum{n: count * step}, true
}

// successor is the least byte string above every string that starts with b;
// false when there is none.
func successor(b []byte) ([]byte, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			next := bytes.Clone(b[:i+1])
			next[i]++
			return next, true
		}
	}
	return nil, false
}

// characters counts the units in which the truncate transform counts.
func characters(typ iceberg.Type, b []byte) int {
	if _, ok := typ.(iceberg.StringType); ok {
		return utf8.RuneCount(b)
	}
	return len(b)
}

// addDecimal is d + n; false on overflow.
func addDecimal(d decimal128.Num, n int64) (decimal128.Num, bool) {
	sum := new(big.Int).Add(d.BigInt(), big.NewInt(n))
	if sum.BitLen() > 127 {
		return d, false
	}
	return decimal128.FromBigInt(sum), true
}
