package expr

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// field makes a field of a type named as in table metadata.
func field(t testing.TB, id int, name, typ string, required bool) iceberg.NestedField {
	t.Helper()
	var f iceberg.NestedField
	text := fmt.Sprintf(`{"id":%d,"name":%q,"type":%q,"required":%v}`, id, name, typ, required)
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// arrowType is the Arrow form of an Iceberg type.
func arrowType(typ iceberg.Type) arrow.DataType {
	switch t := typ.(type) {
	case iceberg.BooleanType:
		return arrow.FixedWidthTypes.Boolean
	case iceberg.Int32Type:
		return arrow.PrimitiveTypes.Int32
	case iceberg.Int64Type:
		return arrow.PrimitiveTypes.Int64
	case iceberg.Float32Type:
		return arrow.PrimitiveTypes.Float32
	case iceberg.Float64Type:
		return arrow.PrimitiveTypes.Float64
	case iceberg.DecimalType:
		return &arrow.Decimal128Type{Precision: int32(t.Precision()), Scale: int32(t.Scale())}
	case iceberg.DateType:
		return arrow.FixedWidthTypes.Date32
	case iceberg.TimeType:
		return arrow.FixedWidthTypes.Time64us
	case iceberg.TimestampType:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case iceberg.TimestampTzType:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case iceberg.TimestampNsType:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}
	case iceberg.TimestampTzNsType:
		return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	case iceberg.StringType:
		return arrow.BinaryTypes.String
	case iceberg.BinaryType:
		return arrow.BinaryTypes.Binary
	case iceberg.FixedType:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Len()}
	case iceberg.UUIDType:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	}
	panic(typ)
}

// arrayOf builds an array from literals of its type, nil for null.
func arrayOf(alloc memory.Allocator, typ arrow.DataType, values []iceberg.Literal) arrow.Array {
	b := array.NewBuilder(alloc, typ)
	defer b.Release()
	for _, v := range values {
		appendLiteral(b, v)
	}
	return b.NewArray()
}

func appendLiteral(b array.Builder, v iceberg.Literal) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(bool(v.(iceberg.BoolLiteral)))
	case *array.Int32Builder:
		b.Append(int32(v.(iceberg.Int32Literal)))
	case *array.Int64Builder:
		b.Append(int64(v.(iceberg.Int64Literal)))
	case *array.Float32Builder:
		b.Append(float32(v.(iceberg.Float32Literal)))
	case *array.Float64Builder:
		b.Append(float64(v.(iceberg.Float64Literal)))
	case *array.Decimal128Builder:
		b.Append(v.(iceberg.DecimalLiteral).Val)
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(iceberg.DateLiteral)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(iceberg.TimeLiteral)))
	case *array.TimestampBuilder:
		switch v := v.(type) {
		case iceberg.TimestampLiteral:
			b.Append(arrow.Timestamp(v))
		case iceberg.TimestampNsLiteral:
			b.Append(arrow.Timestamp(v))
		}
	case *array.StringBuilder:
		b.Append(string(v.(iceberg.StringLiteral)))
	case *array.LargeStringBuilder:
		b.Append(string(v.(iceberg.StringLiteral)))
	case *array.StringViewBuilder:
		b.Append(string(v.(iceberg.StringLiteral)))
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(string(v.(iceberg.StringLiteral))); err != nil {
			panic(err)
		}
	case *array.BinaryBuilder: // large binary, too
		b.Append(v.(iceberg.BinaryLiteral))
	case *array.BinaryViewBuilder:
		b.Append(v.(iceberg.BinaryLiteral))
	case *array.FixedSizeBinaryBuilder:
		switch v := v.(type) {
		case iceberg.FixedLiteral:
			b.Append(v)
		case iceberg.UUIDLiteral:
			u := uuid.UUID(v)
			b.Append(u[:])
		}
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// matching lists the rows that a bound expression matches.
func matching(t testing.TB, b *Bound, mode Mode, n int, columns map[int]arrow.Array) []int {
	t.Helper()
	keep := batch.NewMask(n, true)
	err := b.Evaluate(mode, n, func(id int) (arrow.Array, error) {
		if columns[id] == nil {
			return nil, fmt.Errorf("column %d is not there", id)
		}
		return columns[id], nil
	}, keep)
	if err != nil {
		t.Fatalf("%s in mode %s: %v", b, mode, err)
	}
	rows := []int{}
	for i := range n {
		if keep.Get(i) {
			rows = append(rows, i)
		}
	}
	return rows
}
