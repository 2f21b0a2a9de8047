package plan

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// partitionTuple brings the partition values of an entry into the order of the
// spec and the types of the table, so that tuples written before and after a
// promotion of a source column compare equal.
func partitionTuple(spec *iceberg.PartitionSpec, types []iceberg.Type, values map[int]any) ([]iceberg.Literal, error) {
	tuple := make([]iceberg.Literal, len(types))
	for i, typ := range types {
		field := spec.Field(i)
		value, ok := values[field.FieldID]
		if !ok {
			return nil, errs.New(errs.Corrupt, "an entry has no value for the partition field %q, id %d", field.Name, field.FieldID)
		}
		lit, err := partitionLiteral(typ, value)
		if err != nil {
			return nil, errs.New(errs.Corrupt, "the value %v of the partition field %q is not a %s", value, field.Name, typ)
		}
		tuple[i] = lit
	}
	return tuple, nil
}

var errNotOfType = errs.New(errs.Corrupt, "value and type do not fit")

// partitionLiteral turns a partition value as a manifest reader gives it into
// a literal of the type, or of a type of its own when typ is unknown.
func partitionLiteral(typ iceberg.Type, value any) (iceberg.Literal, error) {
	var lit iceberg.Literal
	switch v := value.(type) {
	case nil:
		return nil, nil
	case bool:
		lit = iceberg.BoolLiteral(v)
	case int:
		lit = integerLiteral(typ, int64(v))
	case int32:
		lit = integerLiteral(typ, int64(v))
	case int64:
		lit = integerLiteral(typ, v)
	case float32:
		lit = iceberg.Float32Literal(v)
		if _, wide := typ.(iceberg.Float64Type); wide {
			lit = iceberg.Float64Literal(v)
		}
	case float64:
		lit = iceberg.Float64Literal(v)
	case iceberg.Date:
		lit = iceberg.DateLiteral(v)
		if microseconds, err := dateAsTimestamp(typ, int64(v)); err == nil {
			lit = microseconds
		}
	case iceberg.Time:
		lit = iceberg.TimeLiteral(v)
	case iceberg.Timestamp:
		lit = iceberg.TimestampLiteral(v)
	case iceberg.TimestampNano:
		lit = iceberg.TimestampNsLiteral(v)
	case string:
		lit = iceberg.StringLiteral(v)
	case uuid.UUID:
		lit = iceberg.UUIDLiteral(v)
	case iceberg.DecimalLiteral:
		lit = v
	case iceberg.Decimal:
		lit = iceberg.DecimalLiteral(v)
	case []byte:
		lit = bytesLiteral(typ, v)
	default:
		// Avro fixed values come as arrays.
		if rv := reflect.ValueOf(value); rv.Kind() == reflect.Array && rv.Type().Elem().Kind() == reflect.Uint8 {
			b := make([]byte, rv.Len())
			reflect.Copy(reflect.ValueOf(b), rv)
			lit = bytesLiteral(typ, b)
		}
	}
	if lit == nil || !fitsType(lit, typ) {
		return nil, errNotOfType
	}
	return lit, nil
}

// integerLiteral reads a number of any width as the type, nil when it cannot be one.
func integerLiteral(typ iceberg.Type, v int64) iceberg.Literal {
	switch typ.(type) {
	case iceberg.Int32Type:
		if v == int64(int32(v)) {
			return iceberg.Int32Literal(v)
		}
		return nil
	case iceberg.DateType:
		if v == int64(int32(v)) {
			return iceberg.DateLiteral(v)
		}
		return nil
	case iceberg.TimeType:
		return iceberg.TimeLiteral(v)
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.TimestampLiteral(v)
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNsLiteral(v)
	}
	return iceberg.Int64Literal(v)
}

// dateAsTimestamp promotes a date to a timestamp without zone.
func dateAsTimestamp(typ iceberg.Type, days int64) (iceberg.Literal, error) {
	const microsecondsPerDay = int64(24 * 60 * 60 * 1e6)
	switch typ.(type) {
	case iceberg.TimestampType:
		return iceberg.TimestampLiteral(days * microsecondsPerDay), nil
	case iceberg.TimestampNsType:
		if limit := math.MaxInt64 / (1000 * microsecondsPerDay); days > limit || days < -limit {
			return nil, errNotOfType
		}
		return iceberg.TimestampNsLiteral(days * microsecondsPerDay * 1000), nil
	}
	return nil, errNotOfType
}

func bytesLiteral(typ iceberg.Type, b []byte) iceberg.Literal {
	switch typ := typ.(type) {
	case iceberg.FixedType:
		return iceberg.FixedLiteral(b)
	case iceberg.UUIDType:
		if id, err := uuid.FromBytes(b); err == nil {
			return iceberg.UUIDLiteral(id)
		}
		return nil
	case iceberg.DecimalType:
		if len(b) == 0 || len(b) > 16 {
			return nil
		}
		return iceberg.DecimalLiteral{Val: decimalFromBytes(b), Scale: typ.Scale()}
	}
	return iceberg.BinaryLiteral(b)
}

// decimalFromBytes reads a big-endian two's complement number of 1 to 16 bytes.
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

// fitsType reports whether the literal's Go type is the one for typ. Decimals
// of one scale fit each other, and so do timestamps with and without zone.
func fitsType(lit iceberg.Literal, typ iceberg.Type) bool {
	switch typ := typ.(type) {
	case iceberg.UnknownType:
		return true // the source column is gone from every schema
	case iceberg.DecimalType:
		d, ok := lit.(iceberg.DecimalLiteral)
		return ok && d.Scale == typ.Scale()
	case iceberg.TimestampTzType:
		_, ok := lit.(iceberg.TimestampLiteral)
		return ok
	case iceberg.TimestampTzNsType:
		_, ok := lit.(iceberg.TimestampNsLiteral)
		return ok
	case iceberg.FixedType:
		f, ok := lit.(iceberg.FixedLiteral)
		return ok && len(f) == typ.Len()
	}
	return lit.Type().Equals(typ)
}

// appendTuple encodes a tuple so that equal tuples, and only those, have equal
// bytes. Floats compare by their bits, with one NaN: 0.0 and -0.0 are
// different partitions, as they have different values.
func appendTuple(key []byte, tuple []iceberg.Literal) []byte {
	for _, lit := range tuple {
		key = appendLiteral(key, lit)
	}
	return key
}

func appendLiteral(key []byte, lit iceberg.Literal) []byte {
	switch v := lit.(type) {
	case nil:
		return append(key, 0)
	case iceberg.BoolLiteral:
		if v {
			return append(key, 1, 1)
		}
		return append(key, 1, 0)
	case iceberg.Int32Literal:
		return binary.LittleEndian.AppendUint64(append(key, 2), uint64(v))
	case iceberg.Int64Literal:
		return binary.LittleEndian.AppendUint64(append(key, 2), uint64(v))
	case iceberg.DateLiteral:
		return binary.LittleEndian.AppendUint64(append(key, 3), uint64(v))
	case iceberg.TimeLiteral:
		return binary.LittleEndian.AppendUint64(append(key, 4), uint64(v))
	case iceberg.TimestampLiteral:
		return binary.LittleEndian.AppendUint64(append(key, 5), uint64(v))
	case iceberg.TimestampNsLiteral:
		return binary.LittleEndian.AppendUint64(append(key, 6), uint64(v))
	case iceberg.Float32Literal:
		return binary.LittleEndian.AppendUint64(append(key, 7), floatBits(float64(v)))
	case iceberg.Float64Literal:
		return binary.LittleEndian.AppendUint64(append(key, 7), floatBits(float64(v)))
	case iceberg.DecimalLiteral:
		key = binary.LittleEndian.AppendUint64(append(key, 8), v.Val.LowBits())
		return binary.LittleEndian.AppendUint64(key, uint64(v.Val.HighBits()))
	case iceberg.UUIDLiteral:
		return append(append(key, 9), v[:]...)
	case iceberg.StringLiteral:
		key = binary.AppendUvarint(append(key, 10), uint64(len(v)))
		return append(key, v...)
	case iceberg.BinaryLiteral:
		key = binary.AppendUvarint(append(key, 11), uint64(len(v)))
		return append(key, v...)
	case iceberg.FixedLiteral:
		key = binary.AppendUvarint(append(key, 11), uint64(len(v)))
		return append(key, v...)
	}
	// partitionLiteral makes no other.
	panic("plan: partition value of unexpected type " + lit.String())
}

func floatBits(f float64) uint64 {
	if math.IsNaN(f) {
		f = math.NaN()
	}
	return math.Float64bits(f)
}
