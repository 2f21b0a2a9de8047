package datafile

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/pq"
)

// Prune leaves out of the ranges (nil: all rows) the rows that cannot match a
// filter as the file's own statistics tell, where it has any. column gives the
// fields that the filter is bound to, by id.
func Prune(ctx context.Context, f File, ranges []batch.Range, filter *expr.Bound, mode expr.Mode, column func(id int) (iceberg.NestedField, bool)) ([]batch.Range, error) {
	file, ok := f.(*pq.File)
	if !ok || filter == nil {
		return ranges, nil
	}
	leafOf := map[int]int{}
	var leaves []int
	for _, id := range filter.FieldIDs() {
		field, known := column(id)
		leaf, found := file.LeafOf(id)
		if known && found && sameBounds(leafType(file.Schema().Fields(), leaf), field.Type) {
			leafOf[id] = leaf
			leaves = append(leaves, leaf)
		}
	}
	if len(leaves) == 0 {
		return ranges, nil
	}
	slices.Sort(leaves)
	return file.Prune(ctx, ranges, leaves, func(rows int64, statistics func(leaf int) pq.Statistics) bool {
		return filter.MayMatch(mode, expr.Metrics{RecordCount: expr.KnownCount(rows), Column: func(id int) expr.ColumnMetrics {
			leaf, ok := leafOf[id]
			if !ok {
				return expr.ColumnMetrics{}
			}
			s := statistics(leaf)
			m := expr.ColumnMetrics{ValueCount: expr.KnownCount(s.Rows), Lower: s.Lower, Upper: s.Upper}
			if s.NullCount >= 0 {
				m.NullCount = expr.KnownCount(s.NullCount)
			}
			return m
		}})
	})
}

// leafType is the type of the leaf with an ordinal.
func leafType(fields []arrow.Field, ordinal int) arrow.DataType {
	for _, f := range fields {
		n := leafCount(f.Type)
		if ordinal >= n {
			ordinal -= n
			continue
		}
		if nested, ok := f.Type.(arrow.NestedType); ok && nested.NumFields() > 0 {
			return leafType(nested.Fields(), ordinal)
		}
		return f.Type
	}
	return nil
}

// sameBounds reports whether the bounds of a stored column mean the same as
// bounds of the table's type, or of one that it was promoted from. Where a
// reader converts values, as between units of time, bounds are not used.
func sameBounds(stored arrow.DataType, t iceberg.Type) bool {
	if stored == nil {
		return false
	}
	id := stored.ID()
	switch t := t.(type) {
	case iceberg.BooleanType:
		return id == arrow.BOOL
	case iceberg.Int32Type:
		return id == arrow.INT32 || id == arrow.INT16 || id == arrow.INT8 || id == arrow.UINT8 || id == arrow.UINT16
	case iceberg.Int64Type:
		return id == arrow.INT64 || id == arrow.INT32 || id == arrow.INT16 || id == arrow.INT8 || id == arrow.UINT8 || id == arrow.UINT16
	case iceberg.Float32Type:
		return id == arrow.FLOAT32
	case iceberg.Float64Type:
		return id == arrow.FLOAT64 || id == arrow.FLOAT32
	case iceberg.DecimalType:
		decimal, ok := stored.(*arrow.Decimal128Type)
		return ok && int(decimal.Scale) == t.Scale()
	case iceberg.DateType:
		return id == arrow.DATE32
	case iceberg.TimeType:
		return id == arrow.TIME64 && stored.(*arrow.Time64Type).Unit == arrow.Microsecond
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return id == arrow.TIMESTAMP && stored.(*arrow.TimestampType).Unit == arrow.Microsecond
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return id == arrow.TIMESTAMP && stored.(*arrow.TimestampType).Unit == arrow.Nanosecond
	case iceberg.StringType:
		return id == arrow.STRING || id == arrow.BINARY
	case iceberg.BinaryType:
		return id == arrow.BINARY || id == arrow.STRING
	case iceberg.UUIDType:
		fixed, ok := stored.(*arrow.FixedSizeBinaryType)
		return ok && fixed.ByteWidth == 16
	case iceberg.FixedType:
		fixed, ok := stored.(*arrow.FixedSizeBinaryType)
		return ok && fixed.ByteWidth == t.Len()
	}
	return false
}
