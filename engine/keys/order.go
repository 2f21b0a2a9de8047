package keys

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// An ordering key is bytes that compare, as bytes.Compare does, like the rows
// they stand for. Each column adds:
//
//	null or not     1 byte that puts nulls first or last, whatever the direction
//	bool            1 byte
//	32-bit values   4 bytes big endian, made so that unsigned order is the values'
//	64-bit values   8 bytes, likewise
//	long decimals   16 bytes, likewise
//	uuid            16 bytes, likewise, as two signed 64-bit numbers
//	fixed           the bytes
//	string, binary  the bytes, each 0x00 as 0x00 0xff, then 0x00 0x01
//
// and all but the first byte inverted when the column is descending. A null has
// the first byte only. Floats are ordered as -inf ... -0.0 < 0.0 ... inf < NaN,
// with all NaNs equal.

// OrderColumn is one column of an ordering.
type OrderColumn struct {
	// Name appears in errors.
	Name string
	// Type is the Arrow type of the column's arrays.
	Type arrow.DataType
	// UUID says that the 16 bytes of fixed width are uuids; arrays of Arrow's
	// extension type for uuids say it themselves.
	UUID bool
	// Transform is applied to the values; nil is the identity.
	Transform             iceberg.Transform
	Descending, NullsLast bool
}

// Order makes ordering keys. It is immutable.
type Order struct{ columns []orderColumn }

type orderColumn struct {
	OrderColumn
	source iceberg.Type
	form   form // of the source
	// width is the encoded size of a value; 0 for string and binary.
	width int
	// word makes a word of the source into the one to order by.
	word func(uint64) uint64
	// pair does so for two words, text for bytes.
	pair func(low, high uint64) (uint64, uint64)
	text func(string) string
	// textWord and pairWord are the transforms to a word.
	textWord func(string) uint64
	pairWord func(low, high uint64) uint64
	void     bool
}

// NewOrder makes an ordering. A column that cannot be ordered by is Unsupported,
// a transform that does not fit its type InvalidArgument.
func NewOrder(columns []OrderColumn) (*Order, error) {
	o := &Order{}
	for _, c := range columns {
		column, err := newOrderColumn(c)
		if err != nil {
			return nil, err
		}
		o.columns = append(o.columns, column)
	}
	return o, nil
}

func newOrderColumn(c OrderColumn) (orderColumn, error) {
	source, ok := icebergType(c.Type)
	if !ok {
		return orderColumn{}, errs.New(errs.Unsupported, "column %q of the Arrow type %s cannot be a sort key", c.Name, c.Type)
	}
	if source == iceberg.Type(iceberg.FixedTypeOf(16)) && c.UUID {
		source = iceberg.UUIDType{}
	}
	column := orderColumn{OrderColumn: c, source: source}
	column.form, _ = formOf(source)
	if c.Transform == nil {
		column.Transform = iceberg.IdentityTransform{}
	}
	if !column.Transform.CanTransform(source) && source != (iceberg.UnknownType{}) {
		return orderColumn{}, errs.New(errs.InvalidArgument, "the transform %s of column %q does not apply to type %s", c.Transform, c.Name, source)
	}
	if err := column.setTransform(); err != nil {
		return orderColumn{}, err
	}
	return column, nil
}

// icebergType is the Iceberg type by which values of an Arrow type are ordered.
func icebergType(t arrow.DataType) (iceberg.Type, bool) {
	switch t := t.(type) {
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" {
			return iceberg.UUIDType{}, true
		}
		return icebergType(t.StorageType())
	case *arrow.DictionaryType:
		return icebergType(t.ValueType)
	case *arrow.NullType:
		return iceberg.UnknownType{}, true
	case *arrow.BooleanType:
		return iceberg.BooleanType{}, true
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Uint8Type, *arrow.Uint16Type:
		return iceberg.Int32Type{}, true
	case *arrow.Int64Type, *arrow.Uint32Type:
		return iceberg.Int64Type{}, true
	case *arrow.Float32Type:
		return iceberg.Float32Type{}, true
	case *arrow.Float64Type:
		return iceberg.Float64Type{}, true
	case *arrow.Date32Type, *arrow.Date64Type:
		return iceberg.DateType{}, true
	case *arrow.Time32Type, *arrow.Time64Type:
		return iceberg.TimeType{}, true
	case *arrow.TimestampType:
		if t.Unit == arrow.Nanosecond {
			return iceberg.TimestampTzNsType{}, true
		}
		return iceberg.TimestampTzType{}, true
	case arrow.DecimalType:
		return iceberg.DecimalTypeOf(int(t.GetPrecision()), int(t.GetScale())), t.GetPrecision() <= 38
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return iceberg.StringType{}, true
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return iceberg.BinaryType{}, true
	case *arrow.FixedSizeBinaryType:
		return iceberg.FixedTypeOf(t.ByteWidth), true
	}
	return nil, false
}

const signBit = uint64(1) << 63

// setIdentity orders by the values themselves.
func (c *orderColumn) setIdentity() {
	switch t := c.source.(type) {
	case iceberg.BooleanType:
		c.width, c.word = 1, func(w uint64) uint64 { return w }
	case iceberg.Float32Type:
		c.width, c.word = 4, func(w uint64) uint64 {
			if w>>31 == 1 {
				return uint64(^uint32(w))
			}
			return w | 1<<31
		}
	case iceberg.Float64Type:
		c.width, c.word = 8, func(w uint64) uint64 {
			if w&signBit != 0 {
				return ^w
			}
			return w | signBit
		}
	case iceberg.FixedType:
		c.width, c.text = t.Len(), func(s string) string { return s }
	case iceberg.StringType, iceberg.BinaryType:
		c.text = func(s string) string { return s }
	case iceberg.UUIDType:
		// As two signed numbers, which is how Java's UUIDs compare.
		c.width, c.pair = 16, func(first, second uint64) (uint64, uint64) {
			return bits.ReverseBytes64(second) ^ signBit, bits.ReverseBytes64(first) ^ signBit
		}
	case iceberg.DecimalType:
		if c.form == twoWords {
			c.width, c.pair = 16, func(low, high uint64) (uint64, uint64) { return low, high ^ signBit }
			return
		}
		c.width, c.word = 8, flipSign64
	case iceberg.Int32Type, iceberg.DateType:
		c.width, c.word = 4, flipSign32
	default:
		c.width, c.word = 8, flipSign64
	}
}

func flipSign64(w uint64) uint64 { return w ^ signBit }
func flipSign32(w uint64) uint64 { return uint64(uint32(w) ^ 1<<31) }
