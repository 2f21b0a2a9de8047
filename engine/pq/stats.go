package pq

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// Statistics say what the footer or a column index knows of one leaf's values
// in some rows. What it does not know, or cannot be trusted with, is left out.
type Statistics struct {
	// Rows is the number of rows.
	Rows int64
	// NullCount counts nulls, those of parents included; -1: unknown.
	NullCount int64
	// Lower and Upper bound all values that are neither null nor NaN, in
	// Iceberg's single-value serialisation of the type that fits the column:
	// int for the narrower integers too, long for unsigned 32-bit integers,
	// microseconds for times and timestamps, except that timestamps in
	// nanoseconds stay so. They may be truncated. nil: unknown.
	Lower, Upper []byte
}

// RowGroups are the rows of the row groups, empty ones too, ascending and
// together all rows.
func (f *File) RowGroups() []batch.Range {
	groups := make([]batch.Range, len(f.meta.rowGroups))
	start := int64(0)
	for i, g := range f.meta.rowGroups {
		groups[i] = batch.Range{Start: start, End: start + g.numRows}
		start += g.numRows
	}
	return groups
}

// LeafOf finds the leaf with a field id. A leaf below a list or map has no
// statistics of rows and is not found.
func (f *File) LeafOf(fieldID int) (leaf int, ok bool) {
	for _, l := range f.schema.leaves {
		if l.hasFieldID && int(l.fieldID) == fieldID {
			return l.index, l.maxRep == 0
		}
	}
	return 0, false
}

// KeyValue is a value of the footer's free metadata.
func (f *File) KeyValue(key string) (value string, ok bool) {
	for _, kv := range f.meta.keyValues {
		if kv.key == key {
			return kv.value, true
		}
	}
	return "", false
}

// RowGroupStatistics are those of a leaf in one row group.
func (f *File) RowGroupStatistics(rowGroup, leaf int) Statistics {
	g := &f.meta.rowGroups[rowGroup]
	s := Statistics{Rows: g.numRows, NullCount: -1}
	l, c := f.schema.leaves[leaf], &g.columns[leaf]
	if !c.hasColumnMetadata || c.encrypted || c.physical != l.physical || l.maxRep > 0 {
		return s
	}
	if n := c.stats.nullCount; n >= 0 && n <= g.numRows {
		s.NullCount = n
	}
	s.Lower, s.Upper = f.bounds(l, &c.stats)
	return s
}

// bounds converts the bounds that the statistics of a column chunk give.
func (f *File) bounds(l *leaf, s *statistics) (lower, upper []byte) {
	min, max := f.storedBounds(l, s)
	return f.convertBounds(l, min, max)
}

// storedBounds are those of the bounds that follow the order of the leaf's
// type.
func (f *File) storedBounds(l *leaf, s *statistics) (min, max []byte) {
	min, max = s.min, s.max
	if !f.typeOrdered(l) {
		min, max = nil, nil
	}
	if min == nil && max == nil && l.signedOrder() {
		min, max = s.oldMin, s.oldMax
	}
	return min, max
}

// typeOrdered reports whether the bounds of a leaf follow its type's order.
func (f *File) typeOrdered(l *leaf) bool {
	return l.index < len(f.meta.typeOrdered) && f.meta.typeOrdered[l.index]
}

// signedOrder reports whether the old kind of bounds, which compare signed
// numbers, is right for the leaf.
func (l *leaf) signedOrder() bool {
	switch l.physical {
	case physBoolean, physFloat, physDouble:
		return true
	case physInt32, physInt64:
		return l.logical.kind != logicalInteger || l.logical.signed
	}
	return false
}

// convertBounds turns a pair of bounds into Iceberg's serialisation.
func (f *File) convertBounds(l *leaf, min, max []byte) (lower, upper []byte) {
	if l.unsupported != "" || !f.ordersDecimals(l) {
		return nil, nil
	}
	return l.convertBound(min, true /* lower */), l.convertBound(max, false /* lower */)
}

// ordersDecimals reports whether the file's writer is known to compare the
// leaf's values as the format demands. Several compare decimals in bytes as if
// they had no sign.
func (f *File) ordersDecimals(l *leaf) bool {
	if l.logical.kind != logicalDecimal || l.physical != physByteArray && l.physical != physFixedLenArray {
		return true
	}
	writer, version, _ := strings.Cut(strings.ToLower(f.meta.createdBy), " version ")
	switch writer {
	case "parquet-mr", "icebergexec":
		return true
	case "parquet-cpp-arrow":
		major, _, _ := strings.Cut(version, ".")
		n, err := strconv.Atoi(major)
		return err == nil && n >= 4
	case "parquet-rs", "duckdb":
		return l.physical == physFixedLenArray
	}
	return false
}

// convertBound is nil for a bound that is missing or says nothing.
func (l *leaf) convertBound(b []byte, lower bool) []byte {
	if b == nil {
		return nil
	}
	if width := l.physical.width(l.length); width > 0 && len(b) != width {
		return nil
	}
	switch l.physical {
	case physBoolean:
		if len(b) != 1 {
			return nil
		}
		return b
	case physInt32:
		return l.convertInt(int64(int32(binary.LittleEndian.Uint32(b))))
	case physInt64:
		return l.convertInt(int64(binary.LittleEndian.Uint64(b)))
	case physFloat:
		v := math.Float32frombits(binary.LittleEndian.Uint32(b))
		if v != v {
			return nil
		}
		if v == 0 { // writers may take the zeros for equal: bound both
			v = float32(zeroBound(lower))
		}
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	case physDouble:
		v := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if v != v {
			return nil
		}
		if v == 0 {
			v = zeroBound(lower)
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case physInt96:
		return nil
	}
	switch l.logical.kind {
	case logicalDecimal:
		if len(b) == 0 {
			return nil
		}
	case logicalInterval, logicalFloat16, logicalUnknown:
		return nil
	}
	return b
}

func zeroBound(lower bool) float64 {
	if lower {
		return math.Copysign(0, -1)
	}
	return 0
}

// convertInt serialises an integer as the Iceberg type of its column.
func (l *leaf) convertInt(v int64) []byte {
	switch l.typ.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.DATE32, arrow.UINT8, arrow.UINT16:
		return binary.LittleEndian.AppendUint32(nil, uint32(v))
	case arrow.UINT32:
		return binary.LittleEndian.AppendUint64(nil, uint64(uint32(v)))
	case arrow.DECIMAL128:
		return binary.BigEndian.AppendUint64(nil, uint64(v))
	case arrow.INT64:
		return binary.LittleEndian.AppendUint64(nil, uint64(v))
	case arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP:
		switch {
		case l.logical.unit == millis:
			if v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
				return nil
			}
			v *= 1000
		case l.logical.unit == nanos && l.typ.ID() == arrow.TIME64:
			return nil // no Iceberg type has these
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(v))
	}
	return nil
}
