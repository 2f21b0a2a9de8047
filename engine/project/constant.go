package project

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// constantNode gives every row the same value.
type constantNode struct {
	out arrow.DataType
	row arrow.Array // the value, once; nil for null
}

// newConstant makes a node of a partition value, an initial default or null.
func newConstant(value any, t iceberg.Type, out arrow.DataType, name string) (node, error) {
	if value == nil || out.ID() == arrow.NULL {
		return &constantNode{out: out}, nil
	}
	if raw, ok := value.(json.RawMessage); ok { // the default of a list or map
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			return nil, errs.New(errs.Corrupt, "column %s: its default is not JSON: %v", name, err)
		}
	}
	// One row that lives as long as the projection, on the Go heap.
	b := array.NewBuilder(memory.DefaultAllocator, out)
	defer b.Release()
	if err := appendValue(b, t, value); err != nil {
		return nil, errs.New(errs.Corrupt, "column %s: %v is not a value of type %s: %v", name, value, t, err)
	}
	return &constantNode{out: out, row: b.NewArray()}, nil
}

func (c *constantNode) build(alloc memory.Allocator, _ arrow.Array, n int) (arrow.Array, error) {
	if c.row == nil {
		return nullArray(alloc, c.out, n), nil
	}
	return repeat(alloc, c.row, n)
}

// appendValue appends a value in any of the forms in which one is known: an
// iceberg-go literal value, or the JSON single-value form of the spec.
func appendValue(b array.Builder, t iceberg.Type, value any) error {
	if value == nil {
		b.AppendNull()
		return nil
	}
	switch t := t.(type) {
	case *iceberg.StructType:
		fields, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("a struct's default is an object by field id")
		}
		sb := b.(*array.StructBuilder)
		sb.Append(true)
		for i, f := range t.FieldList {
			kid, ok := fields[strconv.Itoa(f.ID)]
			if !ok {
				kid = f.InitialDefault
			}
			if err := appendValue(sb.FieldBuilder(i), f.Type, kid); err != nil {
				return err
			}
		}
		return nil
	case *iceberg.ListType:
		elements, ok := value.([]any)
		if !ok {
			return fmt.Errorf("a list's default is an array")
		}
		lb := b.(array.ListLikeBuilder)
		lb.Append(true)
		for _, e := range elements {
			if err := appendValue(lb.ValueBuilder(), t.Element, e); err != nil {
				return err
			}
		}
		return nil
	case *iceberg.MapType:
		object, _ := value.(map[string]any)
		keys, ok := object["keys"].([]any)
		values, ok2 := object["values"].([]any)
		if !(ok && ok2) && len(object) > 0 || len(keys) != len(values) {
			return fmt.Errorf("a map's default is an object of as many keys as values")
		}
		mb := b.(*array.MapBuilder)
		mb.Append(true)
		for i := range keys {
			if err := appendValue(mb.KeyBuilder(), t.KeyType, keys[i]); err != nil {
				return err
			}
			if err := appendValue(mb.ItemBuilder(), t.ValueType, values[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return appendScalar(b, t, value)
}

func appendScalar(b array.Builder, t iceberg.Type, value any) error {
	if l, ok := value.(iceberg.Literal); ok {
		value = l.Any()
	}
	text, isText := value.(string)
	switch t := t.(type) {
	case iceberg.StringType:
		if !isText {
			return fmt.Errorf("not a string")
		}
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(text)
		case *array.LargeStringBuilder:
			b.Append(text)
		}
		return nil
	case iceberg.BinaryType, iceberg.FixedType:
		content, ok := value.([]byte)
		if isText {
			var err error
			if content, err = hex.DecodeString(text); err != nil {
				return err
			}
		} else if !ok {
			return fmt.Errorf("not bytes")
		}
		if f, ok := t.(iceberg.FixedType); ok {
			if len(content) != f.Len() {
				return fmt.Errorf("it has %d bytes", len(content))
			}
			b.(*array.FixedSizeBinaryBuilder).Append(content)
			return nil
		}
		b.(*array.BinaryBuilder).Append(content) // also of large binary
		return nil
	}
	if isText {
		// Dates, times, timestamps, decimals and uuids in JSON form.
		literal, err := iceberg.StringLiteral(text).To(t)
		if err != nil {
			return err
		}
		value = literal.Any()
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		v, ok := value.(bool)
		if !ok {
			return fmt.Errorf("not a boolean")
		}
		b.Append(v)
	case *array.Float32Builder:
		v, ok := float64Of(value)
		if !ok {
			return fmt.Errorf("not a number")
		}
		b.Append(float32(v))
	case *array.Float64Builder:
		v, ok := float64Of(value)
		if !ok {
			return fmt.Errorf("not a number")
		}
		b.Append(v)
	case *array.Decimal128Builder:
		v, ok := value.(iceberg.Decimal)
		if !ok || v.Scale != t.(iceberg.DecimalType).Scale() {
			return fmt.Errorf("not a decimal of that scale")
		}
		b.Append(decimal128.Num(v.Val))
	case *array.FixedSizeBinaryBuilder: // uuid
		switch v := value.(type) {
		case uuid.UUID:
			b.Append(v[:])
		case []byte:
			if len(v) != 16 {
				return fmt.Errorf("it has %d bytes", len(v))
			}
			b.Append(v)
		default:
			return fmt.Errorf("not a uuid")
		}
	default:
		v, ok := int64Of(value, t)
		if !ok {
			return fmt.Errorf("not a whole number in range")
		}
		switch b := b.(type) {
		case *array.Int32Builder:
			if int64(int32(v)) != v {
				return fmt.Errorf("out of range")
			}
			b.Append(int32(v))
		case *array.Date32Builder:
			if int64(int32(v)) != v {
				return fmt.Errorf("out of range")
			}
			b.Append(arrow.Date32(v))
		case *array.Int64Builder:
			b.Append(v)
		case *array.Time64Builder:
			b.Append(arrow.Time64(v))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(v))
		default:
			return fmt.Errorf("unexpected type")
		}
	}
	return nil
}

func float64Of(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case float32:
		return float64(v), true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	if v, ok := int64Of(value, nil); ok {
		return float64(v), true
	}
	return 0, false
}

// int64Of is a whole number, or a date or time as the number that stands for
// it in type t. A date becomes a timestamp as promotion makes it one.
func int64Of(value any, t iceberg.Type) (int64, bool) {
	const day = 24 * 60 * 60 * 1_000_000
	switch v := value.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case json.Number:
		i, err := v.Int64()
		return i, err == nil
	case float64:
		// JSON decoded without json.Number: exact up to 2^53.
		return int64(v), v == math.Trunc(v) && math.Abs(v) <= 1<<53
	case iceberg.Date:
		switch t.(type) {
		case iceberg.TimestampType:
			return int64(v) * day, true
		case iceberg.TimestampNsType:
			return int64(v) * day * 1000, true
		}
		return int64(v), true
	case iceberg.Time:
		return int64(v), true
	case iceberg.Timestamp:
		switch t.(type) {
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return int64(v) * 1000, true
		}
		return int64(v), true
	case iceberg.TimestampNano:
		return int64(v), true
	}
	return 0, false
}

// nullArray makes n nulls of any type.
func nullArray(alloc memory.Allocator, t arrow.DataType, n int) arrow.Array {
	data := nullData(alloc, t, n)
	defer data.Release()
	return array.MakeFromData(data)
}

func nullData(alloc memory.Allocator, t arrow.DataType, n int) arrow.ArrayData {
	if t.ID() == arrow.NULL {
		return array.NewData(t, n, []*memory.Buffer{nil}, nil, n, 0)
	}
	buffers := []*memory.Buffer{zeros(alloc, (n+7)/8)}
	var kids []arrow.ArrayData
	switch t := t.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			kids = append(kids, nullData(alloc, f.Type, n))
		}
	case *arrow.MapType:
		entry := t.Elem().(*arrow.StructType)
		entries := []arrow.ArrayData{nullData(alloc, entry.Field(0).Type, 0), nullData(alloc, entry.Field(1).Type, 0)}
		kids = append(kids, array.NewData(entry, 0, []*memory.Buffer{nil}, entries, 0, 0))
		release(entries)
		buffers = append(buffers, zeros(alloc, (n+1)*4))
	case *arrow.ListType:
		kids = append(kids, nullData(alloc, t.Elem(), 0))
		buffers = append(buffers, zeros(alloc, (n+1)*4))
	case *arrow.LargeListType:
		kids = append(kids, nullData(alloc, t.Elem(), 0))
		buffers = append(buffers, zeros(alloc, (n+1)*8))
	case *arrow.StringType, *arrow.BinaryType:
		buffers = append(buffers, zeros(alloc, (n+1)*4), zeros(alloc, 0))
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		buffers = append(buffers, zeros(alloc, (n+1)*8), zeros(alloc, 0))
	case arrow.FixedWidthDataType:
		buffers = append(buffers, zeros(alloc, (n*t.BitWidth()+7)/8))
	}
	data := array.NewData(t, n, buffers, kids, n, 0)
	release(kids)
	releaseBuffers(buffers)
	return data
}

func release(data []arrow.ArrayData) {
	for _, d := range data {
		d.Release()
	}
}

func zeros(alloc memory.Allocator, n int) *memory.Buffer {
	b := newBuffer(alloc, n)
	clear(b.Bytes())
	return b
}
