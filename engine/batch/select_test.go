package batch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// randomValue appends one value, or null one time in five.
func randomValue(r *rand.Rand, b array.Builder) {
	if r.IntN(5) == 0 {
		b.AppendNull()
		return
	}
	text := fmt.Sprint(r.IntN(1000), "-----------------"[:r.IntN(17)])
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(r.Int()))
	case *array.Int32Builder:
		b.Append(r.Int32())
	case *array.Int64Builder:
		b.Append(r.Int64())
	case *array.Float64Builder:
		b.Append(r.Float64())
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(r.Int64()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(r.Int64()))
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.BinaryBuilder:
		b.Append([]byte(text))
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(text + "----------------")[:b.Type().(*arrow.FixedSizeBinaryType).ByteWidth])
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(text); err != nil {
			panic(err)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			randomValue(r, b.FieldBuilder(i))
		}
	case *array.MapBuilder:
		b.Append(true)
		for range r.IntN(4) {
			b.KeyBuilder().(*array.StringBuilder).Append(text)
			randomValue(r, b.ItemBuilder())
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range 3 {
			randomValue(r, b.ValueBuilder())
		}
	case *extensions.UUIDBuilder:
		b.AppendBytes([16]byte([]byte(text + "----------------")[:16]))
	case array.ListLikeBuilder:
		b.Append(true)
		for range r.IntN(4) {
			randomValue(r, b.ValueBuilder())
		}
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

var selectTypes = []arrow.DataType{
	arrow.Null,
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8,
	arrow.PrimitiveTypes.Int32,
	arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Float64,
	&arrow.Decimal128Type{Precision: 20, Scale: 2},
	arrow.FixedWidthTypes.Timestamp_us,
	arrow.BinaryTypes.String,
	arrow.BinaryTypes.LargeString,
	arrow.BinaryTypes.Binary,
	arrow.BinaryTypes.StringView,
	&arrow.FixedSizeBinaryType{ByteWidth: 5},
	&arrow.FixedSizeBinaryType{ByteWidth: 16},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
	arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.StructOf(arrow.Field{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true}),
	arrow.ListOf(arrow.BinaryTypes.String),
	arrow.LargeListOf(arrow.PrimitiveTypes.Int64),
	arrow.ListOf(arrow.ListOf(arrow.StructOf(arrow.Field{Name: "a", Type: &arrow.Decimal128Type{Precision: 9, Scale: 0}, Nullable: true}))),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int32)),
	arrow.FixedSizeListOf(3, arrow.FixedWidthTypes.Boolean),
	extensions.NewUUIDType(),
}

// naive selects row by row with the library's slices and concatenation.
func naive(t *testing.T, values arrow.Array, keep *batch.Mask) arrow.Array {
	t.Helper()
	var rows []arrow.Array
	rows = append(rows, array.NewSlice(values, 0, 0))
	for i := range keep.Len {
		if keep.Get(i) {
			rows = append(rows, array.NewSlice(values, int64(i), int64(i+1)))
		}
	}
	defer func() {
		for _, row := range rows {
			row.Release()
		}
	}()
	all, err := array.Concatenate(rows, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSelect(t *testing.T) {
	for _, typ := range selectTypes {
		t.Run(typ.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			b := array.NewBuilder(alloc, typ)
			defer b.Release()
			for range 300 {
				randomValue(r, b)
			}
			whole := b.NewArray()
			defer whole.Release()
			for _, bounds := range [][2]int64{{0, 300}, {0, 64}, {7, 200}, {64, 129}, {5, 5}, {299, 300}} {
				values := array.NewSlice(whole, bounds[0], bounds[1])
				for _, share := range []float64{0, 0.02, 0.5, 0.97, 1} {
					keep := batch.NewMask(values.Len(), false)
					for i := range keep.Len {
						if r.Float64() < share {
							keep.Set(i)
						}
					}
					got, err := batch.Select(alloc, values, keep)
					if err != nil {
						t.Fatal(err)
					}
					want := naive(t, values, keep)
					if !array.Equal(got, want) || got.NullN() != want.NullN() || !arrow.TypeEqual(got.DataType(), typ) {
						t.Errorf("rows %v, kept %v: got %v, want %v", bounds, share, got, want)
					}
					want.Release()
					got.Release()
				}
				values.Release()
			}
		})
	}
}

func TestSelectUnsupported(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	b := array.NewRunEndEncodedBuilder(alloc, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32)
	defer b.Release()
	b.Append(2)
	b.ValueBuilder().(*array.Int32Builder).Append(7)
	values := b.NewArray()
	defer values.Release()
	if _, err := batch.Select(alloc, values, batch.NewMask(2, false)); errs.CodeOf(err) != errs.Unsupported {
		t.Errorf("got %v", err)
	}
}
