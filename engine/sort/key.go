package sort

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/keys"
)

// Key is one column to sort by.
type Key struct {
	// Column is a name, dotted for a field of a struct.
	Column string
	// Transform is applied to the values; nil is the identity.
	Transform  iceberg.Transform
	Descending bool
	// NullsLast puts nulls at the end, whatever the direction.
	NullsLast bool
}

// resolve finds the columns of keys: the place of each in the schema, then of
// the field in each struct on the way.
func resolve(schema *arrow.Schema, sortKeys []Key) ([][]int, *keys.Order, error) {
	if len(sortKeys) == 0 {
		return nil, nil, errs.New(errs.InvalidArgument, "a sort needs at least one key")
	}
	paths := make([][]int, len(sortKeys))
	columns := make([]keys.OrderColumn, len(sortKeys))
	for i, k := range sortKeys {
		path, field, err := find(schema.Fields(), k.Column)
		if err != nil {
			return nil, nil, err
		}
		paths[i] = path
		extension, _ := field.Metadata.GetValue("ARROW:extension:name")
		columns[i] = keys.OrderColumn{Name: k.Column, Type: field.Type, UUID: extension == "arrow.uuid", Transform: k.Transform, Descending: k.Descending, NullsLast: k.NullsLast}
	}
	order, err := keys.NewOrder(columns)
	return paths, order, err
}

// find resolves a dotted name. A column whose own name has dots comes before a
// field of a struct.
func find(fields []arrow.Field, name string) ([]int, arrow.Field, error) {
	var path []int
	rest := name
	for {
		index, after, err := findOne(fields, rest)
		if err != nil {
			return nil, arrow.Field{}, errs.New(errs.InvalidArgument, "sort key %q: %s", name, err)
		}
		path = append(path, index)
		if after == "" {
			return path, fields[index], nil
		}
		rest, fields = after, fields[index].Type.(*arrow.StructType).Fields()
	}
}

func findOne(fields []arrow.Field, name string) (index int, after string, err error) {
	match := func(part string) (found int, err error) {
		found = -1
		for i, f := range fields {
			if f.Name == part && found >= 0 {
				return 0, errs.New(errs.InvalidArgument, "several columns have the name %q", part)
			} else if f.Name == part {
				found = i
			}
		}
		return found, nil
	}
	if index, err = match(name); index >= 0 || err != nil {
		return index, "", err
	}
	for at, c := range name {
		if c != '.' {
			continue
		}
		if index, err = match(name[:at]); err != nil {
			return 0, "", err
		}
		if index >= 0 && fields[index].Type.ID() == arrow.STRUCT && at+1 < len(name) {
			return index, name[at+1:], nil
		}
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return 0, "", errs.New(errs.InvalidArgument, "no column %q (there are: %s)", name, strings.Join(names, ", "))
}

// keyArray is the array at a path, with the nulls of the structs around it as
// its own. The caller releases it.
func keyArray(record arrow.RecordBatch, path []int) arrow.Array {
	a := record.Column(path[0])
	var validity []byte // of the structs so far, bit 0 is row 0
	for _, i := range path[1:] {
		if a.NullN() > 0 {
			validity = intersect(validity, a)
		}
		a = a.(*array.Struct).Field(i)
	}
	if validity == nil || a.DataType().ID() == arrow.NULL {
		a.Retain()
		return a
	}
	if a.NullN() > 0 {
		validity = intersect(validity, a)
	}
	// The buffers start at the array's offset, so the bitmap must too.
	data := a.Data()
	shifted := make([]byte, bitutil.BytesForBits(int64(data.Offset()+a.Len())))
	bitutil.CopyBitmap(validity, 0, a.Len(), shifted, data.Offset())
	buffers := append([]*memory.Buffer{memory.NewBufferBytes(shifted)}, data.Buffers()[1:]...)
	var folded arrow.ArrayData
	if dictionary, ok := data.Dictionary().(*array.Data); ok && dictionary != nil {
		folded = array.NewDataWithDictionary(a.DataType(), a.Len(), buffers, array.UnknownNullCount, data.Offset(), dictionary)
	} else {
		folded = array.NewData(a.DataType(), a.Len(), buffers, data.Children(), array.UnknownNullCount, data.Offset())
	}
	defer folded.Release()
	return array.MakeFromData(folded)
}

// intersect clears the bits of rows that are null in a.
func intersect(validity []byte, a arrow.Array) []byte {
	own := make([]byte, bitutil.BytesForBits(int64(a.Len())))
	bitutil.CopyBitmap(a.NullBitmapBytes(), a.Data().Offset(), a.Len(), own, 0)
	for i, b := range validity {
		own[i] &= b
	}
	return own
}
