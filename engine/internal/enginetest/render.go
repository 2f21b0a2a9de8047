package enginetest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// RenderValue gives value i of an array as text that tests compare: nested
// values in the order of their fields, times as the number that Arrow stores.
func RenderValue(a arrow.Array, i int) string {
	if a.DataType().ID() == arrow.NULL || a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Struct:
		var fields []string
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			fields = append(fields, f.Name+":"+RenderValue(a.Field(k), i))
		}
		return "{" + strings.Join(fields, ",") + "}"
	case *array.Map:
		start, end := a.ValueOffsets(i)
		var entries []string
		for j := int(start); j < int(end); j++ {
			entries = append(entries, RenderValue(a.Keys(), j)+"="+RenderValue(a.Items(), j))
		}
		return "{" + strings.Join(entries, ",") + "}"
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		var elements []string
		for j := int(start); j < int(end); j++ {
			elements = append(elements, RenderValue(a.ListValues(), j))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i))
	case *array.Int32:
		return fmt.Sprint(a.Value(i))
	case *array.Int64:
		return fmt.Sprint(a.Value(i))
	case *array.Float32:
		return fmt.Sprint(float64(a.Value(i)))
	case *array.Float64:
		return fmt.Sprint(a.Value(i))
	case *array.Date32:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Time32:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Time64:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Timestamp:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.LargeString:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("x%x", a.Value(i))
	case *array.LargeBinary:
		return fmt.Sprintf("x%x", a.Value(i))
	case *array.FixedSizeBinary:
		return fmt.Sprintf("x%x", a.Value(i))
	}
	panic(fmt.Sprintf("render %s", a.DataType()))
}
