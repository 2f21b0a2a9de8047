package tables

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"sort"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"
)

// render turns row i of a column into the rendering of README.md: a string, a
// map, a list, or nil for null.
func render(field arrow.Field, a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i))
	case *array.Int32:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Int64:
		return strconv.FormatInt(a.Value(i), 10)
	case *array.Float32:
		v := a.Value(i)
		if v != v {
			return "0x7fc00000"
		}
		return fmt.Sprintf("0x%08x", math.Float32bits(v))
	case *array.Float64:
		v := a.Value(i)
		if v != v {
			return "0x7ff8000000000000"
		}
		return fmt.Sprintf("0x%016x", math.Float64bits(v))
	case *array.Decimal128:
		return decimalText(a.Value(i).BigInt(), int(a.DataType().(*arrow.Decimal128Type).Scale))
	case *array.Date32:
		return a.Value(i).ToTime().Format("2006-01-02")
	case *array.Time64:
		return time.UnixMicro(int64(a.Value(i))).UTC().Format("15:04:05.000000")
	case *array.Timestamp:
		return timestampText(a, i)
	case array.StringLike:
		return a.Value(i)
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.LargeBinary:
		return hex.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		if extension, _ := field.Metadata.GetValue("ARROW:extension:name"); extension == "arrow.uuid" {
			return uuid.UUID(a.Value(i)).String()
		}
		return hex.EncodeToString(a.Value(i))
	case *array.Struct:
		row := map[string]any{}
		for f, child := range a.DataType().(*arrow.StructType).Fields() {
			row[child.Name] = render(child, a.Field(f), i)
		}
		return row
	case *array.Map:
		start, end := a.ValueOffsets(i)
		typ := a.DataType().(*arrow.MapType)
		entries := []any{}
		for j := start; j < end; j++ {
			entries = append(entries, []any{render(typ.KeyField(), a.Keys(), int(j)), render(typ.ItemField(), a.Items(), int(j))})
		}
		sort.Slice(entries, func(x, y int) bool {
			return jsonText(entries[x].([]any)[0]) < jsonText(entries[y].([]any)[0])
		})
		return entries
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		element := a.DataType().(arrow.ListLikeType).ElemField()
		items := []any{}
		for j := start; j < end; j++ {
			items = append(items, render(element, a.ListValues(), int(j)))
		}
		return items
	}
	panic(fmt.Sprintf("no rendering for %s", a.DataType()))
}

func decimalText(unscaled *big.Int, scale int) string {
	text := new(big.Int).Abs(unscaled).String()
	if scale > 0 {
		for len(text) <= scale {
			text = "0" + text
		}
		text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	}
	if unscaled.Sign() < 0 {
		text = "-" + text
	}
	return text
}

func timestampText(a *array.Timestamp, i int) string {
	typ := a.DataType().(*arrow.TimestampType)
	layout := "2006-01-02T15:04:05.000000"
	if typ.Unit == arrow.Nanosecond {
		layout += "000"
	}
	if typ.TimeZone != "" {
		layout += "Z"
	}
	return a.Value(i).ToTime(typ.Unit).UTC().Format(layout)
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
