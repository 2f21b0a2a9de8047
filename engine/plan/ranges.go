package plan

import (
	"encoding/binary"
	"math"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/meta"
)

// filePathID is the reserved field id of a position-delete file's file_path.
const filePathID = 2147483546

// keyRange is what a file's metrics prove about one of its columns. Two files
// cannot share a value in a column when their ranges do not match.
type keyRange struct {
	// lower and upper are in an encoding whose byte order is the order of the
	// values; they mean nothing unless bounded.
	lower, upper string
	bounded      bool
	// What the column may hold. A value is neither null nor NaN.
	mayNull, mayNaN, mayValue bool
}

// anything is the range of a column of which nothing is known.
var anything = keyRange{mayNull: true, mayNaN: true, mayValue: true}

// matches reports whether a null, a NaN or a value may be in both columns.
func (r keyRange) matches(other keyRange) bool {
	if r.mayNull && other.mayNull || r.mayNaN && other.mayNaN {
		return true
	}
	if !r.mayValue || !other.mayValue {
		return false
	}
	return !r.bounded || !other.bounded || r.lower <= other.upper && other.lower <= r.upper
}

// onlyBounded reports whether the column holds nothing outside its bounds.
func (r keyRange) onlyBounded() bool {
	return !r.mayNull && !r.mayNaN && (r.bounded || !r.mayValue)
}

// column is a key column as the table has it.
type column struct {
	id  int
	typ iceberg.Type
	// topLevel columns have counts that mean rows. Inside structs, writers
	// differ in whether a null parent counts as a null.
	topLevel bool
}

// keyColumns looks the columns up in the table's schema history; one that no
// schema has is of unknown type, of which nothing can be proved.
func keyColumns(table *meta.Table, ids []int) []column {
	columns := make([]column, len(ids))
	for i, id := range ids {
		columns[i] = column{id: id, typ: iceberg.UnknownType{}}
		schema, ok := table.SchemaWithField(id)
		if !ok {
			continue
		}
		f, _ := table.Field(id)
		columns[i].typ = f.Type
		for _, top := range schema.Fields() {
			columns[i].topLevel = columns[i].topLevel || top.ID == id
		}
	}
	return columns
}

// rangeOf reads a column's range from a file's metrics.
func rangeOf(m *Metrics, c column) keyRange {
	if m == nil {
		return anything
	}
	r := anything
	switch c.typ.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		if nans, known := m.NaNCounts[c.id]; known && nans == 0 {
			r.mayNaN = false
		}
	default:
		r.mayNaN = false
	}
	if nulls, known := m.NullCounts[c.id]; known && c.topLevel {
		r.mayNull = nulls != 0
		if values, known := m.ValueCounts[c.id]; known {
			nans := m.NaNCounts[c.id]
			r.mayValue = values != nulls+nans
		}
	}
	lower, lowerOK := orderedBound(c.typ, m.LowerBounds[c.id])
	upper, upperOK := orderedBound(c.typ, m.UpperBounds[c.id])
	if lowerOK && upperOK && lower <= upper {
		r.lower, r.upper, r.bounded = lower, upper, true
	}
	return r
}

// pathRange is the range of data file paths that a position-delete file
// names. An upper bound may be cut short without having been rounded up, so
// that paths that it begins are in the range too: 0xff is above every byte of
// a path.
func pathRange(m *Metrics) keyRange {
	if m == nil {
		return anything
	}
	lower, lowerOK := m.LowerBounds[filePathID]
	upper, upperOK := m.UpperBounds[filePathID]
	if !lowerOK || !upperOK {
		return anything
	}
	return keyRange{lower: string(lower), upper: string(upper) + "\xff", bounded: true, mayValue: true}
}

// orderedBound turns a bound in Iceberg's single-value serialisation into
// bytes that sort like the values. The bound may be of a type that the column
// was promoted from since, which its length tells. Bounds that prove nothing
// (absent, NaN, of an unknown type) are false.
func orderedBound(typ iceberg.Type, b []byte) (string, bool) {
	if b == nil {
		return "", false
	}
	switch typ := typ.(type) {
	case iceberg.BooleanType:
		return string(b), len(b) == 1
	case iceberg.Int32Type, iceberg.DateType:
		if len(b) == 4 {
			return orderedInt(int64(int32(binary.LittleEndian.Uint32(b)))), true
		}
	case iceberg.Int64Type, iceberg.TimeType, iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		switch len(b) {
		case 4:
			return orderedInt(int64(int32(binary.LittleEndian.Uint32(b)))), true
		case 8:
			return orderedInt(int64(binary.LittleEndian.Uint64(b))), true
		}
	case iceberg.TimestampType, iceberg.TimestampNsType:
		switch len(b) {
		case 4: // a date
			if lit, err := dateAsTimestamp(typ, int64(int32(binary.LittleEndian.Uint32(b)))); err == nil {
				switch v := lit.(type) {
				case iceberg.TimestampLiteral:
					return orderedInt(int64(v)), true
				case iceberg.TimestampNsLiteral:
					return orderedInt(int64(v)), true
				}
			}
		case 8:
			return orderedInt(int64(binary.LittleEndian.Uint64(b))), true
		}
	case iceberg.Float32Type:
		if len(b) == 4 {
			return orderedFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	case iceberg.Float64Type:
		switch len(b) {
		case 4:
			return orderedFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		case 8:
			return orderedFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	case iceberg.DecimalType:
		if len(b) > 0 && len(b) <= 16 {
			n := decimalFromBytes(b)
			out := binary.BigEndian.AppendUint64(nil, uint64(n.HighBits())^1<<63)
			return string(binary.BigEndian.AppendUint64(out, n.LowBits())), true
		}
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType, iceberg.UUIDType:
		return string(b), true
	}
	return "", false
}

func orderedInt(n int64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)^1<<63)
	return string(b[:])
}

// orderedFloat takes both zeros for one value: writers do not agree on which
// of them bounds a column that has both.
func orderedFloat(f float64) (string, bool) {
	if math.IsNaN(f) {
		return "", false
	}
	if f == 0 {
		f = 0 // and not -0.0
	}
	n := math.Float64bits(f)
	if n>>63 == 1 {
		n = ^n
	} else {
		n |= 1 << 63
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return string(b[:]), true
}
