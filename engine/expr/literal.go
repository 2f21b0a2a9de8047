package expr

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// literals are the literals of one predicate as they were given. Integers and
// strings, of which a set may have millions, are held compactly.
type literals struct {
	// typ is the type in which ints or strs are written; nil for list.
	typ  iceberg.Type
	ints []int64
	strs []string
	list []iceberg.Literal
}

func literalsOf(values ...iceberg.Literal) *literals { return &literals{list: values} }

func (l *literals) len() int { return len(l.ints) + len(l.strs) + len(l.list) }

func (l *literals) at(i int) iceberg.Literal {
	switch {
	case l.ints != nil:
		return integerLiteral(l.typ, l.ints[i])
	case l.strs != nil:
		return iceberg.StringLiteral(l.strs[i])
	}
	return l.list[i]
}

// integerLiteral is the literal of a type that is an integer in memory.
func integerLiteral(typ iceberg.Type, n int64) iceberg.Literal {
	switch typ.(type) {
	case iceberg.Int32Type:
		if n >= math.MinInt32 && n <= math.MaxInt32 {
			return iceberg.Int32Literal(n)
		}
	case iceberg.DateType:
		return iceberg.DateLiteral(n)
	case iceberg.TimeType:
		return iceberg.TimeLiteral(n)
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.TimestampLiteral(n)
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNsLiteral(n)
	}
	return iceberg.Int64Literal(n)
}

// hugeLiteral is an integer that no long holds.
type hugeLiteral struct{ value *big.Int }

func (h hugeLiteral) String() string     { return h.value.String() }
func (h hugeLiteral) Type() iceberg.Type { return iceberg.PrimitiveTypes.Int64 }
func (h hugeLiteral) Any() any           { return h.value }
func (h hugeLiteral) MarshalBinary() ([]byte, error) {
	return nil, iceberg.ErrInvalidBinSerialization
}

func (h hugeLiteral) Equals(other iceberg.Literal) bool {
	o, ok := other.(hugeLiteral)
	return ok && h.value.Cmp(o.value) == 0
}

func (h hugeLiteral) To(typ iceberg.Type) (iceberg.Literal, error) {
	above := h.value.Sign() > 0
	switch typ.(type) {
	case iceberg.Int32Type, iceberg.DateType:
		if above {
			return iceberg.Int32AboveMaxLiteral(), nil
		}
		return iceberg.Int32BelowMinLiteral(), nil
	case iceberg.Int64Type, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		if above {
			return iceberg.Int64AboveMaxLiteral(), nil
		}
		return iceberg.Int64BelowMinLiteral(), nil
	case iceberg.Float32Type, iceberg.Float64Type:
		f, _ := new(big.Float).SetInt(h.value).Float64()
		return iceberg.Float64Literal(f).To(typ)
	}
	return nil, errNotComparable
}

// textLiteral is a string of Iceberg's JSON form, in which binary values are
// written as hexadecimal digits.
type textLiteral struct{ iceberg.StringLiteral }

var errNotComparable = errors.New("these types do not compare")

// place says where a literal lies among the values that its column can hold.
type place int8

const (
	inRange place = iota
	aboveAll
	belowAll
)

// convert brings a literal to the type of a column by Iceberg's rules, which
// are those of Literal.To except where those lose a part of the value. The
// literal is nil when it lies above or below all values of the column.
func convert(lit iceberg.Literal, typ iceberg.Type) (iceberg.Literal, place, error) {
	if decimal, ok := typ.(iceberg.DecimalType); ok {
		return toDecimal(lit, decimal)
	}
	switch v := lit.(type) {
	case iceberg.Float64Literal:
		// An infinity, and what only a double can hold, is kept as it is:
		// a float column compares with it exactly.
		if _, ok := typ.(iceberg.Float32Type); ok && math.Abs(float64(v)) > math.MaxFloat32 {
			return v, inRange, nil
		}
	case iceberg.DecimalLiteral:
		return fromDecimal(v, typ)
	case textLiteral:
		return fromText(v, typ)
	case iceberg.StringLiteral:
		return fromString(string(v), typ)
	case iceberg.TimestampLiteral:
		switch typ.(type) {
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			if v > math.MaxInt64/1000 {
				return nil, aboveAll, nil
			}
			if v < math.MinInt64/1000 {
				return nil, belowAll, nil
			}
		}
	case iceberg.TimestampNsLiteral:
		switch typ.(type) {
		case iceberg.TimestampType, iceberg.TimestampTzType:
			if v%1000 != 0 {
				return nil, inRange, errors.New("the literal has nanoseconds, the column has only microseconds")
			}
		}
	}
	return viaTo(lit, typ)
}

// viaTo converts by Literal.To.
func viaTo(lit iceberg.Literal, typ iceberg.Type) (iceberg.Literal, place, error) {
	out, err := lit.To(typ)
	if err != nil {
		return nil, inRange, errNotComparable
	}
	switch out.(type) {
	case iceberg.AboveMaxLiteral:
		return nil, aboveAll, nil
	case iceberg.BelowMinLiteral:
		return nil, belowAll, nil
	}
	return out, inRange, nil
}

// toDecimal converts to a decimal column. Floats are rounded half up from
// their shortest decimal form; everything else must fit the scale exactly.
func toDecimal(lit iceberg.Literal, typ iceberg.DecimalType) (iceberg.Literal, place, error) {
	value := new(big.Rat)
	round := false
	switch v := lit.(type) {
	case iceberg.Int32Literal:
		value.SetInt64(int64(v))
	case iceberg.Int64Literal:
		value.SetInt64(int64(v))
	case hugeLiteral:
		value.SetInt(v.value)
	case iceberg.Float32Literal, iceberg.Float64Literal:
		if _, ok := value.SetString(v.String()); !ok {
			return nil, inRange, errNotComparable
		}
		round = true
	case iceberg.DecimalLiteral:
		value.SetFrac(v.Val.BigInt(), powerOfTen(v.Scale))
	case iceberg.StringLiteral, textLiteral:
		parsed, err := parseDecimal(v.String())
		if err != nil {
			return nil, inRange, err
		}
		value.SetFrac(parsed.unscaled, powerOfTen(parsed.scale))
	default:
		return nil, inRange, errNotComparable
	}

	value.Mul(value, new(big.Rat).SetInt(powerOfTen(typ.Scale())))
	unscaled := new(big.Int).Set(value.Num())
	if !value.IsInt() {
		if !round {
			return nil, inRange, fmt.Errorf("the column has only %d digits after the point", typ.Scale())
		}
		// Half up, away from zero: (2*|num| + den) / (2*den).
		den := value.Denom()
		unscaled.Abs(unscaled).Lsh(unscaled, 1).Add(unscaled, den)
		unscaled.Quo(unscaled, new(big.Int).Lsh(den, 1))
		if value.Sign() < 0 {
			unscaled.Neg(unscaled)
		}
	}
	if unscaled.BitLen() > 127 {
		if unscaled.Sign() > 0 {
			return nil, aboveAll, nil
		}
		return nil, belowAll, nil
	}
	return iceberg.DecimalLiteral{Val: decimal128.FromBigInt(unscaled), Scale: typ.Scale()}, inRange, nil
}

// fromDecimal converts a decimal to a column of another type.
func fromDecimal(lit iceberg.DecimalLiteral, typ iceberg.Type) (iceberg.Literal, place, error) {
	switch typ.(type) {
	case iceberg.Int32Type, iceberg.Int64Type:
		quotient, rest := new(big.Int).QuoRem(lit.Val.BigInt(), powerOfTen(lit.Scale), new(big.Int))
		if rest.Sign() != 0 {
			return nil, inRange, errors.New("the column holds whole numbers only")
		}
		if quotient.IsInt64() {
			return viaTo(iceberg.Int64Literal(quotient.Int64()), typ)
		}
		return viaTo(hugeLiteral{quotient}, typ)
	case iceberg.Float32Type, iceberg.Float64Type:
		f, err := strconv.ParseFloat(lit.String(), 64)
		if err != nil {
			return nil, inRange, errNotComparable
		}
		return convert(iceberg.Float64Literal(f), typ)
	}
	return nil, inRange, errNotComparable
}

func fromText(lit textLiteral, typ iceberg.Type) (iceberg.Literal, place, error) {
	switch typ.(type) {
	case iceberg.BinaryType, iceberg.FixedType:
		raw, err := hex.DecodeString(string(lit.StringLiteral))
		if err != nil {
			return nil, inRange, errors.New("not a string of hexadecimal digits")
		}
		return viaTo(iceberg.BinaryLiteral(raw), typ)
	}
	return fromString(string(lit.StringLiteral), typ)
}

func fromString(s string, typ iceberg.Type) (iceberg.Literal, place, error) {
	switch typ.(type) {
	case iceberg.Int32Type, iceberg.Int64Type:
		n, ok := new(big.Int).SetString(s, 10)
		if !ok {
			return nil, inRange, errors.New("not a whole number")
		}
		if n.IsInt64() {
			return viaTo(iceberg.Int64Literal(n.Int64()), typ)
		}
		return viaTo(hugeLiteral{n}, typ)
	case iceberg.Float32Type, iceberg.Float64Type:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, inRange, errors.New("not a number")
		}
		return convert(iceberg.Float64Literal(f), typ)
	case iceberg.BooleanType:
		switch {
		case strings.EqualFold(s, "true"):
			return iceberg.BoolLiteral(true), inRange, nil
		case strings.EqualFold(s, "false"):
			return iceberg.BoolLiteral(false), inRange, nil
		}
		return nil, inRange, errors.New("neither true nor false")
	}
	out, err := iceberg.StringLiteral(s).To(typ)
	if err != nil {
		return nil, inRange, fmt.Errorf("not a %s", typ)
	}
	return out, inRange, nil
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// bigDecimal is unscaled / 10^scale.
type bigDecimal struct {
	unscaled *big.Int
	scale    int
}

// maxDecimalText bounds the text of a decimal: far more than any column's 38
// digits, and little enough that an exponent cannot ask for gigabytes.
const maxDecimalText = 200

// parseDecimal reads a decimal number; its scale is the number of digits after
// the point. An exponent moves the point.
func parseDecimal(s string) (bigDecimal, error) {
	bad := errors.New("not a decimal number")
	digits, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	exp := 0
	if hasExponent {
		var err error
		if exp, err = strconv.Atoi(exponent); err != nil {
			return bigDecimal{}, bad
		}
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(s) > maxDecimalText || exp > maxDecimalText || exp < -maxDecimalText || strings.Contains(digits, "_") {
		return bigDecimal{}, bad
	}
	unscaled, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return bigDecimal{}, bad
	}
	scale := len(fraction) - exp
	if scale < 0 {
		unscaled.Mul(unscaled, powerOfTen(-scale))
		scale = 0
	}
	return bigDecimal{unscaled, scale}, nil
}
