package pq

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

// arrowSchemaKey is where writers that work on Arrow leave their schema: base64
// of an IPC message, which is a flatbuffer.
const arrowSchemaKey = "ARROW:schema"

// LargeFields are the field ids of texts, binaries and lists that the file's
// writer held with 64-bit offsets, by the Arrow schema that it left in the
// footer. Readers that restore that schema return them so. A schema that cannot
// be understood counts as none: no value depends on it.
func (f *File) LargeFields() []int {
	text, ok := f.KeyValue(arrowSchemaKey)
	if !ok {
		return nil
	}
	message, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	// Since version 0.15 of Arrow's format a marker stands before the length.
	if len(message) >= 8 && binary.LittleEndian.Uint32(message) == 0xFFFFFFFF {
		message = message[4:]
	}
	if len(message) < 8 {
		return nil
	}
	root := flatTable{buf: message[4:]}.follow(0)
	var ids []int
	walkLarge(root.table(messageHeader).vector(schemaFields), f.arrow.Fields(), 0, func(field arrow.Field) {
		if value, ok := field.Metadata.GetValue("PARQUET:field_id"); ok {
			if id, err := strconv.Atoi(value); err == nil {
				ids = append(ids, id)
			}
		}
	})
	return ids
}

// Members of the flatbuffers of a message, a schema and a field, and the types
// with 64-bit offsets, by their numbers in Arrow's Message.fbs and Schema.fbs.
const (
	messageHeader = 2
	schemaFields  = 1
	fieldType     = 2
	fieldChildren = 5

	typeLargeBinary = 19
	typeLargeUtf8   = 20
	typeLargeList   = 21

	maxStoredDepth = 100 // as deep as any schema that is read
)

// walkLarge goes through the stored fields beside those of the file, which have
// the same shape and the ids.
func walkLarge(stored []flatTable, fields []arrow.Field, depth int, found func(arrow.Field)) {
	if depth > maxStoredDepth || len(stored) != len(fields) {
		return
	}
	for i, field := range fields {
		switch stored[i].byte(fieldType) {
		case typeLargeBinary, typeLargeUtf8, typeLargeList:
			found(field)
		}
		var children []arrow.Field
		switch t := field.Type.(type) {
		case *arrow.MapType: // stored as a list of structs, too
			children = []arrow.Field{t.ElemField()}
		case arrow.NestedType:
			children = t.Fields()
		}
		walkLarge(stored[i].vector(fieldChildren), children, depth+1, found)
	}
}

// flatTable is a table of a flatbuffer, the zero value an absent one. Whatever
// would lie outside of the buffer counts as absent.
type flatTable struct {
	buf []byte
	pos int
	ok  bool
}

func (t flatTable) int32(at int) (int, bool) {
	if at < 0 || at+4 > len(t.buf) {
		return 0, false
	}
	return int(int32(binary.LittleEndian.Uint32(t.buf[at:]))), true
}

// follow is the table that the offset at a position points to.
func (t flatTable) follow(at int) flatTable {
	offset, ok := t.int32(at)
	return flatTable{buf: t.buf, pos: at + offset, ok: ok && offset > 0 && at+offset < len(t.buf)}
}

// member is where a member of the table lies, 0 if it has its default value.
func (t flatTable) member(i int) int {
	if !t.ok {
		return 0
	}
	back, ok := t.int32(t.pos) // to the list of where members lie
	start := t.pos - back
	if !ok || start < 0 || start+2 > len(t.buf) {
		return 0
	}
	entry := 4 + 2*i
	if entry+2 > int(binary.LittleEndian.Uint16(t.buf[start:])) || start+entry+2 > len(t.buf) {
		return 0
	}
	offset := int(binary.LittleEndian.Uint16(t.buf[start+entry:]))
	if offset == 0 || t.pos+offset >= len(t.buf) {
		return 0
	}
	return t.pos + offset
}

func (t flatTable) byte(i int) byte {
	if at := t.member(i); at != 0 {
		return t.buf[at]
	}
	return 0
}

func (t flatTable) table(i int) flatTable {
	if at := t.member(i); at != 0 {
		return t.follow(at)
	}
	return flatTable{}
}

func (t flatTable) vector(i int) []flatTable {
	v := t.table(i)
	n, ok := v.int32(v.pos)
	if !v.ok || !ok || n < 0 || n > (len(v.buf)-v.pos)/4 {
		return nil
	}
	tables := make([]flatTable, n)
	for j := range tables {
		tables[j] = v.follow(v.pos + 4 + 4*j)
	}
	return tables
}
