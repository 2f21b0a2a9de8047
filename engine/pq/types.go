package pq

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// maxDecimalPrecision is what a 128-bit decimal holds, and the most that a
// table can ask for.
const maxDecimalPrecision = 38

// maxFixedLength bounds the length of fixed-length values, far above what a
// writer makes of it.
const maxFixedLength = 1 << 20 // 1 MiB

// chooseType gives the leaf the Arrow type of its annotation. An annotation
// that does not fit its physical type, or that has no Arrow type here, leaves
// the physical type and makes the column unsupported.
func (l *leaf) chooseType() error {
	if l.physical < physBoolean || l.physical > physFixedLenArray {
		return corrupt("column %s has the physical type %d", l.path, l.physical)
	}
	if l.physical == physFixedLenArray && (l.length <= 0 || l.length > maxFixedLength) {
		return corrupt("column %s has values of %d bytes", l.path, l.length)
	}
	if l.typ = l.annotatedType(); l.typ == nil {
		l.unsupported = fmt.Sprintf("the logical type %d on the physical type %d is not supported", l.logical.kind, l.physical)
		l.logical = logicalType{}
		l.typ = l.annotatedType()
	}
	if l.logical.kind == logicalDecimal {
		if p, s := l.logical.precision, l.logical.scale; p < 1 || s < 0 || s > p {
			return corrupt("column %s is a decimal of precision %d and scale %d", l.path, p, s)
		}
		if l.logical.precision > maxDecimalPrecision {
			l.unsupported = fmt.Sprintf("a decimal of %d digits is not supported", l.logical.precision)
		}
	}
	return nil
}

// annotatedType is nil when the annotation does not fit the physical type.
func (l *leaf) annotatedType() arrow.DataType {
	switch l.logical.kind {
	case logicalUnknown:
		return arrow.Null
	case logicalDecimal:
		switch l.physical {
		case physInt32, physInt64, physByteArray, physFixedLenArray:
			return &arrow.Decimal128Type{Precision: min(l.logical.precision, maxDecimalPrecision), Scale: l.logical.scale}
		}
		return nil
	}
	switch l.physical {
	case physBoolean:
		return l.unannotated(arrow.FixedWidthTypes.Boolean)
	case physInt32:
		return l.int32Type()
	case physInt64:
		return l.int64Type()
	case physInt96:
		return l.unannotated(&arrow.TimestampType{Unit: arrow.Microsecond})
	case physFloat:
		return l.unannotated(arrow.PrimitiveTypes.Float32)
	case physDouble:
		return l.unannotated(arrow.PrimitiveTypes.Float64)
	case physByteArray:
		switch l.logical.kind {
		case logicalString, logicalEnum, logicalJSON:
			return arrow.BinaryTypes.String
		case logicalNone, logicalBSON:
			return arrow.BinaryTypes.Binary
		}
		return nil
	}
	switch l.logical.kind {
	case logicalNone, logicalInterval:
	case logicalUUID:
		if l.length != 16 {
			return nil
		}
	case logicalFloat16:
		if l.length != 2 {
			return nil
		}
		return arrow.FixedWidthTypes.Float16
	default:
		return nil
	}
	return &arrow.FixedSizeBinaryType{ByteWidth: int(l.length)}
}

func (l *leaf) unannotated(t arrow.DataType) arrow.DataType {
	if l.logical.kind != logicalNone {
		return nil
	}
	return t
}

func (l *leaf) int32Type() arrow.DataType {
	switch l.logical.kind {
	case logicalNone:
		return arrow.PrimitiveTypes.Int32
	case logicalDate:
		return arrow.FixedWidthTypes.Date32
	case logicalTime:
		if l.logical.unit == millis {
			return arrow.FixedWidthTypes.Time32ms
		}
	case logicalInteger:
		switch bits, signed := l.logical.bitWidth, l.logical.signed; {
		case bits == 8 && signed:
			return arrow.PrimitiveTypes.Int8
		case bits == 8:
			return arrow.PrimitiveTypes.Uint8
		case bits == 16 && signed:
			return arrow.PrimitiveTypes.Int16
		case bits == 16:
			return arrow.PrimitiveTypes.Uint16
		case bits == 32 && signed:
			return arrow.PrimitiveTypes.Int32
		case bits == 32:
			return arrow.PrimitiveTypes.Uint32
		}
	}
	return nil
}

func (l *leaf) int64Type() arrow.DataType {
	switch l.logical.kind {
	case logicalNone:
		return arrow.PrimitiveTypes.Int64
	case logicalTime:
		switch l.logical.unit {
		case micros:
			return arrow.FixedWidthTypes.Time64us
		case nanos:
			return arrow.FixedWidthTypes.Time64ns
		}
	case logicalTimestamp:
		zone := ""
		if l.logical.utc {
			zone = "UTC"
		}
		switch l.logical.unit {
		case millis:
			return &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: zone}
		case micros:
			return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: zone}
		case nanos:
			return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: zone}
		}
	case logicalInteger:
		switch bits, signed := l.logical.bitWidth, l.logical.signed; {
		case bits == 64 && signed:
			return arrow.PrimitiveTypes.Int64
		case bits == 64:
			return arrow.PrimitiveTypes.Uint64
		}
	}
	return nil
}
