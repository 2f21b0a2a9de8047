package sort

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// A value that has no column of its own in a row (nested, dictionary-encoded or
// a view) is written as a tree that ends where its content does:
//
//	null            0x00
//	fixed width     0x01, the bytes
//	text            0x01, 4 bytes length, the bytes
//	list, map       0x01, 4 bytes count, the elements
//	struct          0x01, the fields
//	dictionary      what the index stands for
//
// Recursion follows the type, never the data.

// appendValue adds the value in row i of a to b.
func appendValue(b []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return append(b, 0)
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return appendValue(b, a.Storage(), i)
	case *array.Dictionary:
		return appendValue(b, a.Dictionary(), a.GetValueIndex(i))
	case *array.Boolean:
		if a.Value(i) {
			return append(b, 1, 1)
		}
		return append(b, 1, 0)
	case *array.Struct:
		b = append(b, 1)
		for f := range a.NumField() {
			b = appendValue(b, a.Field(f), i)
		}
		return b
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		b = binary.LittleEndian.AppendUint32(append(b, 1), uint32(end-start))
		for k := start; k < end; k++ {
			b = appendValue(b, a.ListValues(), int(k))
		}
		return b
	case interface{ Value(int) string }: // strings and their views
		return appendText(b, a.Value(i))
	case *array.Binary:
		return appendText(b, a.Value(i))
	case *array.LargeBinary:
		return appendText(b, a.Value(i))
	case *array.BinaryView:
		return appendText(b, a.Value(i))
	}
	width := a.DataType().(arrow.FixedWidthDataType).Bytes()
	at := (a.Data().Offset() + i) * width
	return append(append(b, 1), a.Data().Buffers()[1].Bytes()[at:at+width]...)
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.LittleEndian.AppendUint32(append(b, 1), uint32(len(s))), s...)
}

// supported refuses types that rows cannot hold.
func supported(t arrow.DataType) error {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return supported(t.StorageType())
	case *arrow.DictionaryType:
		return supported(t.ValueType)
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if err := supported(f.Type); err != nil {
				return err
			}
		}
		return nil
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType, *arrow.MapType:
		return supported(t.(arrow.ListLikeType).Elem())
	case *arrow.NullType, *arrow.StringType, *arrow.LargeStringType, *arrow.BinaryType, *arrow.LargeBinaryType,
		arrow.BinaryViewDataType, arrow.FixedWidthDataType:
		return nil
	}
	return errs.New(errs.Unsupported, "the Arrow type %s cannot be sorted", t)
}
