package bridge

// #include "export.h"
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

// ExportSchema writes a schema, as the struct that its batches are, to out,
// which points to a struct ArrowSchema.
func ExportSchema(schema *arrow.Schema, out unsafe.Pointer) error {
	var s flatSchema
	if _, err := s.add(arrow.Field{Type: arrow.StructOf(schema.Fields()...), Metadata: schema.Metadata()}); err != nil {
		return err
	}
	if C.iex_export_schema(unsafe.SliceData(s.fields), C.int64_t(len(s.fields)),
		unsafe.SliceData(s.children), C.int64_t(len(s.children)),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(s.text))), C.int64_t(len(s.text)), (*C.struct_ArrowSchema)(out)) != 0 {
		return errs.New(errs.MemoryLimit, "export a schema: the system has no memory left")
	}
	return nil
}

// flatSchema is the form of a schema that crosses to C.
type flatSchema struct {
	fields   []C.struct_iex_flat_field
	children []C.int64_t
	text     []byte
}

// Names under which the C data interface carries extension types.
const (
	extensionName     = "ARROW:extension:name"
	extensionMetadata = "ARROW:extension:metadata"
)

func (s *flatSchema) add(f arrow.Field) (int, error) {
	node := len(s.fields)
	s.fields = append(s.fields, C.struct_iex_flat_field{})
	keys, values := f.Metadata.Keys(), f.Metadata.Values()

	typ := f.Type
	for typ.ID() == arrow.EXTENSION {
		ext := typ.(arrow.ExtensionType)
		if f.Metadata.FindKey(extensionName) < 0 {
			keys = append(keys[:len(keys):len(keys)], extensionName, extensionMetadata)
			values = append(values[:len(values):len(values)], ext.ExtensionName(), ext.Serialize())
		}
		typ = ext.StorageType()
	}
	format, err := formatOf(typ)
	if err != nil {
		return 0, errs.WrapAs(errs.Unsupported, err, "export column", f.Name)
	}
	flat := C.struct_iex_flat_field{format: s.addText(format), name: s.addText(f.Name), metadata: -1}
	if len(keys) > 0 {
		flat.metadata = s.addMetadata(keys, values)
	}
	if f.Nullable {
		flat.flags |= C.ARROW_FLAG_NULLABLE
	}

	var children []arrow.Field
	switch typ := typ.(type) {
	case *arrow.DictionaryType:
		if typ.Ordered {
			flat.flags |= C.ARROW_FLAG_DICTIONARY_ORDERED
		}
		values, err := s.add(arrow.Field{Type: typ.ValueType, Nullable: true})
		if err != nil {
			return 0, err
		}
		flat.dictionary = C.int64_t(values)
	case *arrow.MapType:
		if typ.KeysSorted {
			flat.flags |= C.ARROW_FLAG_MAP_KEYS_SORTED
		}
		children = typ.Fields()
	case arrow.NestedType:
		children = typ.Fields()
	}
	flat.first_child, flat.children = C.int64_t(len(s.children)), C.int64_t(len(children))
	s.children = append(s.children, make([]C.int64_t, len(children))...)
	for i, child := range children {
		n, err := s.add(child)
		if err != nil {
			return 0, err
		}
		s.children[int(flat.first_child)+i] = C.int64_t(n)
	}
	s.fields[node] = flat
	return node, nil
}

func (s *flatSchema) addText(text string) C.int64_t {
	at := len(s.text)
	s.text = append(append(s.text, text...), 0)
	return C.int64_t(at)
}

// addMetadata encodes pairs as the C data interface wants them: their number,
// then each key and value after its length, as native 32-bit integers.
func (s *flatSchema) addMetadata(keys, values []string) C.int64_t {
	for len(s.text)%4 != 0 {
		s.text = append(s.text, 0)
	}
	at := len(s.text)
	s.text = binary.NativeEndian.AppendUint32(s.text, uint32(len(keys)))
	for i := range keys {
		for _, text := range []string{keys[i], values[i]} {
			s.text = append(binary.NativeEndian.AppendUint32(s.text, uint32(len(text))), text...)
		}
	}
	return C.int64_t(at)
}

var simpleFormats = map[arrow.Type]string{
	arrow.NULL: "n", arrow.BOOL: "b",
	arrow.INT8: "c", arrow.UINT8: "C", arrow.INT16: "s", arrow.UINT16: "S",
	arrow.INT32: "i", arrow.UINT32: "I", arrow.INT64: "l", arrow.UINT64: "L",
	arrow.FLOAT16: "e", arrow.FLOAT32: "f", arrow.FLOAT64: "g",
	arrow.BINARY: "z", arrow.LARGE_BINARY: "Z", arrow.STRING: "u", arrow.LARGE_STRING: "U",
	arrow.BINARY_VIEW: "vz", arrow.STRING_VIEW: "vu",
	arrow.DATE32: "tdD", arrow.DATE64: "tdm",
	arrow.INTERVAL_MONTHS: "tiM", arrow.INTERVAL_DAY_TIME: "tiD", arrow.INTERVAL_MONTH_DAY_NANO: "tin",
	arrow.LIST: "+l", arrow.LARGE_LIST: "+L", arrow.LIST_VIEW: "+vl", arrow.LARGE_LIST_VIEW: "+vL",
	arrow.STRUCT: "+s", arrow.MAP: "+m", arrow.RUN_END_ENCODED: "+r",
}

// unitLetters are the C data interface's letters for arrow.TimeUnit.
var unitLetters = map[arrow.TimeUnit]string{
	arrow.Second: "s", arrow.Millisecond: "m", arrow.Microsecond: "u", arrow.Nanosecond: "n",
}

func formatOf(t arrow.DataType) (string, error) {
	if format, ok := simpleFormats[t.ID()]; ok {
		return format, nil
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return formatOf(t.IndexType)
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("w:%d", t.ByteWidth), nil
	case *arrow.FixedSizeListType:
		return fmt.Sprintf("+w:%d", t.Len()), nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("d:%d,%d", t.Precision, t.Scale), nil
	case arrow.DecimalType:
		return fmt.Sprintf("d:%d,%d,%d", t.GetPrecision(), t.GetScale(), t.BitWidth()), nil
	case *arrow.Time32Type:
		return "tt" + unitLetters[t.Unit], nil
	case *arrow.Time64Type:
		return "tt" + unitLetters[t.Unit], nil
	case *arrow.DurationType:
		return "tD" + unitLetters[t.Unit], nil
	case *arrow.TimestampType:
		return "ts" + unitLetters[t.Unit] + ":" + t.TimeZone, nil
	case arrow.UnionType:
		codes := make([]string, len(t.TypeCodes()))
		for i, c := range t.TypeCodes() {
			codes[i] = strconv.Itoa(int(c))
		}
		mode := "+ud:"
		if t.Mode() == arrow.SparseMode {
			mode = "+us:"
		}
		return mode + strings.Join(codes, ","), nil
	}
	return "", fmt.Errorf("type %s has no form in the Arrow C data interface", t)
}
