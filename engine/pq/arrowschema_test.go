package pq

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// storedSchema is the footer's text for an Arrow schema.
func storedSchema(t *testing.T, schema *arrow.Schema) string {
	t.Helper()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestLargeFields(t *testing.T) {
	id := func(n int, name string, of arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: of, Nullable: true, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(n)})}
	}
	required := func(f arrow.Field) arrow.Field { f.Nullable = false; return f }
	// shape makes the same schema with either width of offsets.
	shape := func(text, binary arrow.DataType, list func(arrow.Field) arrow.DataType) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{
			id(1, "id", arrow.PrimitiveTypes.Int64),
			id(2, "s", text),
			id(3, "b", binary),
			id(4, "l", list(id(5, "element", text))),
			id(6, "m", arrow.MapOfFields(required(id(7, "key", text)), id(8, "value", arrow.PrimitiveTypes.Int32))),
			id(9, "st", arrow.StructOf(id(10, "x", arrow.PrimitiveTypes.Int32), id(11, "y", list(id(12, "element", arrow.StructOf(id(13, "z", binary))))))),
			{Name: "no id", Type: text},
		}, nil)
	}
	small := shape(arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, func(f arrow.Field) arrow.DataType { return arrow.ListOfField(f) })
	large := shape(arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary, func(f arrow.Field) arrow.DataType { return arrow.LargeListOfField(f) })
	file := func(text string) *File {
		return &File{meta: &fileMetadata{keyValues: []keyValue{{arrowSchemaKey, text}}}, arrow: small}
	}
	if got := file(storedSchema(t, small)).LargeFields(); len(got) != 0 {
		t.Errorf("small: %v", got)
	}
	text := storedSchema(t, large)
	if got, want := file(text).LargeFields(), []int{2, 3, 4, 5, 7, 11, 13}; !slices.Equal(got, want) {
		t.Errorf("large: %v, want %v", got, want)
	}
	if got := (&File{meta: &fileMetadata{}, arrow: small}).LargeFields(); got != nil {
		t.Errorf("without a stored schema: %v", got)
	}
	// Damage may change the answer and nothing else.
	raw, _ := base64.StdEncoding.DecodeString(text)
	for i := range raw {
		file(base64.StdEncoding.EncodeToString(raw[:i])).LargeFields()
		for _, value := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			damaged := slices.Clone(raw)
			damaged[i] = value
			file(base64.StdEncoding.EncodeToString(damaged)).LargeFields()
		}
	}
	file("not base64").LargeFields()
}
