package bridge

// #include "import.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// maxDepth bounds the nesting of imported types, and with it every recursion
// over them.
const maxDepth = 128

// importSchema reads the schema of a stream of batches: a struct.
func importSchema(c *C.struct_ArrowSchema) (*arrow.Schema, error) {
	root, err := importField(c, 0)
	if err != nil {
		return nil, err
	}
	fields, ok := root.Type.(*arrow.StructType)
	if !ok {
		return nil, errs.New(errs.InvalidArgument, "the stream's batches are of type %s; they must be structs", root.Type)
	}
	return arrow.NewSchema(fields.Fields(), &root.Metadata), nil
}

func importField(c *C.struct_ArrowSchema, depth int) (arrow.Field, error) {
	field := arrow.Field{
		Name:     C.GoString(c.name),
		Nullable: c.flags&C.ARROW_FLAG_NULLABLE != 0,
		Metadata: importMetadata(unsafe.Pointer(c.metadata)),
	}
	if depth > maxDepth {
		return field, errs.New(errs.Unsupported, "column %q nests deeper than %d levels", field.Name, maxDepth)
	}
	var children []arrow.Field
	for _, child := range pointers(&c.children, c.n_children) {
		f, err := importField(child, depth+1)
		if err != nil {
			return field, err
		}
		children = append(children, f)
	}
	typ, err := typeOf(C.GoString(c.format), children, c.flags&C.ARROW_FLAG_MAP_KEYS_SORTED != 0)
	if err != nil {
		return field, errs.New(errs.Unsupported, "column %q: %v", field.Name, err)
	}
	field.Type = typ
	if c.dictionary != nil {
		values, err := importField(c.dictionary, depth+1)
		if err != nil {
			return field, err
		}
		if !arrow.IsInteger(typ.ID()) {
			return field, errs.New(errs.InvalidArgument, "column %q: a dictionary has indices of type %s", field.Name, typ)
		}
		field.Type = &arrow.DictionaryType{IndexType: typ, ValueType: values.Type, Ordered: c.flags&C.ARROW_FLAG_DICTIONARY_ORDERED != 0}
	}
	return field, nil
}

// pointers is a table of n pointers. An empty one begins nowhere (in Rust, for
// one, at address 8), and such an address must not get into a Go variable: the
// Go runtime ends the process when it finds one on a stack.
func pointers[T any](table **T, n C.int64_t) []T {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice(*table, int(n))
}

// importMetadata decodes what addMetadata encodes.
func importMetadata(at unsafe.Pointer) arrow.Metadata {
	if at == nil {
		return arrow.Metadata{}
	}
	next := func() int {
		n := int32(binary.NativeEndian.Uint32(unsafe.Slice((*byte)(at), 4)))
		at = unsafe.Add(at, 4)
		return int(n)
	}
	text := func() string {
		n := next()
		s := string(unsafe.Slice((*byte)(at), n))
		at = unsafe.Add(at, n)
		return s
	}
	var keys, values []string
	for range next() {
		keys = append(keys, text())
		values = append(values, text())
	}
	return arrow.NewMetadata(keys, values)
}

// simpleTypes is simpleFormats the other way round, where a format alone makes
// the type.
var simpleTypes = map[string]arrow.DataType{
	"n": arrow.Null, "b": arrow.FixedWidthTypes.Boolean,
	"c": arrow.PrimitiveTypes.Int8, "C": arrow.PrimitiveTypes.Uint8,
	"s": arrow.PrimitiveTypes.Int16, "S": arrow.PrimitiveTypes.Uint16,
	"i": arrow.PrimitiveTypes.Int32, "I": arrow.PrimitiveTypes.Uint32,
	"l": arrow.PrimitiveTypes.Int64, "L": arrow.PrimitiveTypes.Uint64,
	"e": arrow.FixedWidthTypes.Float16, "f": arrow.PrimitiveTypes.Float32, "g": arrow.PrimitiveTypes.Float64,
	"z": arrow.BinaryTypes.Binary, "Z": arrow.BinaryTypes.LargeBinary,
	"u": arrow.BinaryTypes.String, "U": arrow.BinaryTypes.LargeString,
	"vz": arrow.BinaryTypes.BinaryView, "vu": arrow.BinaryTypes.StringView,
	"tdD": arrow.FixedWidthTypes.Date32, "tdm": arrow.FixedWidthTypes.Date64,
	"tts": arrow.FixedWidthTypes.Time32s, "ttm": arrow.FixedWidthTypes.Time32ms,
	"ttu": arrow.FixedWidthTypes.Time64us, "ttn": arrow.FixedWidthTypes.Time64ns,
	"tDs": arrow.FixedWidthTypes.Duration_s, "tDm": arrow.FixedWidthTypes.Duration_ms,
	"tDu": arrow.FixedWidthTypes.Duration_us, "tDn": arrow.FixedWidthTypes.Duration_ns,
	"tiM": arrow.FixedWidthTypes.MonthInterval, "tiD": arrow.FixedWidthTypes.DayTimeInterval, "tin": arrow.FixedWidthTypes.MonthDayNanoInterval,
}

var timestampUnits = map[string]arrow.TimeUnit{"tss": arrow.Second, "tsm": arrow.Millisecond, "tsu": arrow.Microsecond, "tsn": arrow.Nanosecond}

// typeOf reads a format string of the C data interface.
func typeOf(format string, children []arrow.Field, keysSorted bool) (arrow.DataType, error) {
	if t, ok := simpleTypes[format]; ok {
		return t, nil
	}
	wrong := fmt.Errorf("format %q with %d children is none of the Arrow C data interface", format, len(children))
	if format == "+s" {
		return arrow.StructOf(children...), nil
	}
	if len(children) == 1 {
		child := children[0]
		switch format {
		case "+l":
			return arrow.ListOfField(child), nil
		case "+L":
			return arrow.LargeListOfField(child), nil
		case "+m":
			entries, ok := child.Type.(*arrow.StructType)
			if !ok || entries.NumFields() != 2 {
				return nil, wrong
			}
			key := entries.Field(0)
			key.Nullable = false // some producers do not say so
			m := arrow.MapOfFields(key, entries.Field(1))
			m.KeysSorted = keysSorted
			return m, nil
		}
	}
	kind, parameters, _ := strings.Cut(format, ":")
	if unit, ok := timestampUnits[kind]; ok {
		return &arrow.TimestampType{Unit: unit, TimeZone: parameters}, nil
	}
	numbers, err := integers(parameters)
	if err != nil {
		return nil, wrong
	}
	switch {
	case kind == "w" && len(numbers) == 1 && numbers[0] > 0:
		return &arrow.FixedSizeBinaryType{ByteWidth: int(numbers[0])}, nil
	case kind == "+w" && len(numbers) == 1 && numbers[0] > 0 && len(children) == 1:
		return arrow.FixedSizeListOfField(numbers[0], children[0]), nil
	case kind == "d" && (len(numbers) == 2 || len(numbers) == 3):
		bits := int32(128)
		if len(numbers) == 3 {
			bits = numbers[2]
		}
		return decimalType(bits, numbers[0], numbers[1])
	}
	return nil, fmt.Errorf("the Arrow format %q is not supported", format)
}

func decimalType(bits, precision, scale int32) (arrow.DataType, error) {
	switch bits {
	case 32:
		return &arrow.Decimal32Type{Precision: precision, Scale: scale}, nil
	case 64:
		return &arrow.Decimal64Type{Precision: precision, Scale: scale}, nil
	case 128:
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}, nil
	case 256:
		return &arrow.Decimal256Type{Precision: precision, Scale: scale}, nil
	}
	return nil, fmt.Errorf("decimals of %d bits are not supported", bits)
}

func integers(text string) ([]int32, error) {
	var out []int32
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return nil, err
		}
		out = append(out, int32(n))
	}
	return out, nil
}
