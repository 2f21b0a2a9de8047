package pq

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// The schema of a new file: first the elements of its footer, made from the
// Iceberg schema, then for each leaf the way to its values in a batch.

// schemaElements spells an Iceberg schema as Parquet does. Columns of the type
// unknown are not stored.
func schemaElements(schema *iceberg.Schema) ([]schemaElement, error) {
	s := &schemaSpeller{}
	s.add(schemaElement{name: "table", physical: noPhysical, converted: -1})
	n, err := s.fields(schema.Fields(), "")
	s.elements[0].numChildren = n
	return s.elements, err
}

type schemaSpeller struct{ elements []schemaElement }

func (s *schemaSpeller) add(e schemaElement) int {
	s.elements = append(s.elements, e)
	return len(s.elements) - 1
}

func dotted(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// fields adds the fields of a struct and returns how many are stored.
func (s *schemaSpeller) fields(fields []iceberg.NestedField, parent string) (stored int32, err error) {
	for _, f := range fields {
		if _, ok := f.Type.(iceberg.UnknownType); ok {
			continue
		}
		if err := s.field(f, f.Name, dotted(parent, f.Name)); err != nil {
			return 0, err
		}
		stored++
	}
	return stored, nil
}

// field adds a field under the name that it has in the file.
func (s *schemaSpeller) field(f iceberg.NestedField, name, path string) error {
	e := schemaElement{
		name: name, physical: noPhysical, converted: -1, repetition: optional,
		fieldID: int32(f.ID), hasFieldID: true,
	}
	if f.Required {
		e.repetition = required
	}
	group := schemaElement{physical: noPhysical, converted: -1, repetition: repeated}
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		at := s.add(e)
		n, err := s.fields(t.FieldList, path)
		if err == nil && n == 0 {
			err = errs.New(errs.Unsupported, "column %s is a struct without stored fields, which Parquet cannot hold", path)
		}
		s.elements[at].numChildren = n
		return err
	case *iceberg.ListType:
		e.numChildren, e.converted = 1, convertedList
		e.logical, e.hasLogical = logicalType{kind: logicalList}, true
		s.add(e)
		group.name, group.numChildren = "list", 1
		s.add(group)
		return s.field(t.ElementField(), "element", dotted(path, "element"))
	case *iceberg.MapType:
		e.numChildren, e.converted = 1, convertedMap
		e.logical, e.hasLogical = logicalType{kind: logicalMap}, true
		s.add(e)
		group.name, group.numChildren = "key_value", 2
		s.add(group)
		if err := s.field(t.KeyField(), "key", dotted(path, "key")); err != nil {
			return err
		}
		return s.field(t.ValueField(), "value", dotted(path, "value"))
	}
	if !e.setPrimitive(f.Type) {
		return errs.New(errs.Unsupported, "column %s has the type %s, which is not written", path, f.Type)
	}
	s.add(e)
	return nil
}

// Numbers of converted types, the older annotations.
const (
	convertedUTF8            = 0
	convertedMap             = 1
	convertedList            = 3
	convertedDecimal         = 5
	convertedDate            = 6
	convertedTimestampMicros = 10
)

// setPrimitive gives the element a primitive type; false when Parquet or this
// version has none for it. The older annotation is given where it says the
// same: a converted time or timestamp is always one in UTC.
func (e *schemaElement) setPrimitive(t iceberg.Type) bool {
	annotate := func(physical physicalType, converted int32, logical logicalType) {
		e.physical, e.converted = physical, converted
		e.logical, e.hasLogical = logical, true
	}
	switch t := t.(type) {
	case iceberg.BooleanType:
		e.physical = physBoolean
	case iceberg.Int32Type:
		e.physical = physInt32
	case iceberg.Int64Type:
		e.physical = physInt64
	case iceberg.Float32Type:
		e.physical = physFloat
	case iceberg.Float64Type:
		e.physical = physDouble
	case iceberg.DateType:
		annotate(physInt32, convertedDate, logicalType{kind: logicalDate})
	case iceberg.TimeType:
		annotate(physInt64, -1, logicalType{kind: logicalTime, unit: micros})
	case iceberg.TimestampType:
		annotate(physInt64, -1, logicalType{kind: logicalTimestamp, unit: micros})
	case iceberg.TimestampTzType:
		annotate(physInt64, convertedTimestampMicros, logicalType{kind: logicalTimestamp, unit: micros, utc: true})
	case iceberg.TimestampNsType:
		annotate(physInt64, -1, logicalType{kind: logicalTimestamp, unit: nanos})
	case iceberg.TimestampTzNsType:
		annotate(physInt64, -1, logicalType{kind: logicalTimestamp, unit: nanos, utc: true})
	case iceberg.StringType:
		annotate(physByteArray, convertedUTF8, logicalType{kind: logicalString})
	case iceberg.BinaryType:
		e.physical = physByteArray
	case iceberg.UUIDType:
		annotate(physFixedLenArray, -1, logicalType{kind: logicalUUID})
		e.length = 16
	case iceberg.FixedType:
		e.physical, e.length = physFixedLenArray, int32(t.Len())
		return t.Len() > 0 && t.Len() <= maxFixedLength
	case iceberg.DecimalType:
		e.precision, e.scale = int32(t.Precision()), int32(t.Scale())
		logical := logicalType{kind: logicalDecimal, precision: e.precision, scale: e.scale}
		switch {
		case e.precision <= 9:
			annotate(physInt32, convertedDecimal, logical)
		case e.precision <= 18:
			annotate(physInt64, convertedDecimal, logical)
		default:
			annotate(physFixedLenArray, convertedDecimal, logical)
			e.length = int32(decimalWidth(t.Precision()))
		}
	default:
		return false
	}
	return true
}

// decimalWidth is the least number of bytes that hold every decimal of a
// precision up to 38 in two's complement.
func decimalWidth(precision int) int {
	// A digit takes log2(10) = 3.32193 bits; the sign takes one.
	return (precision*332193/100000+1)/8 + 1
}

// storeDecimalsLike gives decimals the physical types that they have in a file
// for the same decimal type.
func storeDecimalsLike(elements []schemaElement, file *File) {
	stored := map[int32]*leaf{}
	for _, l := range file.schema.leaves {
		if l.hasFieldID {
			stored[l.fieldID] = l
		}
	}
	for i := range elements {
		e := &elements[i]
		l := stored[e.fieldID]
		if e.physical == noPhysical || e.logical.kind != logicalDecimal || l == nil || l.logical != e.logical {
			continue
		}
		needed := int32(decimalWidth(int(e.precision)))
		switch l.physical {
		case physInt32, physInt64:
			if int(needed) > l.physical.width(0) {
				continue
			}
		case physFixedLenArray:
			if needed > l.length || l.length > 16 {
				continue
			}
		default:
			continue
		}
		e.physical, e.length = l.physical, l.length
	}
}

// write encodes a schema element.
func (e *schemaElement) write(t *thriftEncoder, isRoot bool) {
	t.element(func() {
		if e.physical != noPhysical {
			t.int32(1, int32(e.physical))
		}
		if e.physical == physFixedLenArray {
			t.int32(2, e.length)
		}
		if !isRoot {
			t.int32(3, int32(e.repetition))
		}
		t.string(4, e.name)
		if e.physical == noPhysical {
			t.int32(5, e.numChildren)
		}
		if e.converted >= 0 {
			t.int32(6, e.converted)
		}
		if e.logical.kind == logicalDecimal {
			t.int32(7, e.scale)
			t.int32(8, e.precision)
		}
		if e.hasFieldID {
			t.int32(9, e.fieldID)
		}
		if e.hasLogical {
			t.structure(10, func() { e.logical.write(t) })
		}
	})
}

func (l *logicalType) write(t *thriftEncoder) {
	t.structure(int16(l.kind), func() {
		switch l.kind {
		case logicalDecimal:
			t.int32(1, l.scale)
			t.int32(2, l.precision)
		case logicalTime, logicalTimestamp:
			t.bool(1, l.utc)
			t.structure(2, func() { t.empty(int16(l.unit)) })
		}
	})
}

// leafPaths are the names on the way to each leaf.
func leafPaths(elements []schemaElement) [][]string {
	var paths [][]string
	next := 1
	var visit func(n int32, above []string)
	visit = func(n int32, above []string) {
		for range n {
			e := &elements[next]
			next++
			path := append(above[:len(above):len(above)], e.name)
			if e.physical != noPhysical {
				paths = append(paths, path)
			} else {
				visit(e.numChildren, path)
			}
		}
	}
	visit(elements[0].numChildren, nil)
	return paths
}

// step leads from an array to one of its parts on the way to a leaf.
type step struct {
	kind  nodeKind
	child int // which child of the step before; first: which column of the batch
	// def and rep are the node's levels; nullable says that def-1 means null.
	def, rep uint8
	nullable bool
}

// binder checks that batches of an Arrow schema hold what an Iceberg schema
// wants and finds the way to each leaf.
type binder struct{ paths [][]step }

func bindBatches(schema *arrow.Schema, want *iceberg.Schema, tree *schemaTree) ([][]step, error) {
	b := &binder{}
	fields := want.Fields()
	if schema.NumFields() != len(fields) {
		return nil, errs.New(errs.InvalidArgument, "batches have %d columns, the table schema %d", schema.NumFields(), len(fields))
	}
	return b.paths, b.fields(schema.Fields(), fields, tree.columns, nil, "")
}

// fields binds the fields of a struct; nodes are those of its stored fields.
func (b *binder) fields(have []arrow.Field, want []iceberg.NestedField, nodes []*node, path []step, parent string) error {
	for i, f := range want {
		name := dotted(parent, f.Name)
		if id, ok := have[i].Metadata.GetValue(fieldIDKey); ok && id != strconv.Itoa(f.ID) {
			return errs.New(errs.InvalidArgument, "column %s has the field id %d in the table, %s in the batches", name, f.ID, id)
		} else if !ok && have[i].Name != f.Name {
			return errs.New(errs.InvalidArgument, "the batches have a column %s where the table has %s", have[i].Name, name)
		}
		if _, ok := f.Type.(iceberg.UnknownType); ok {
			continue
		}
		if err := b.node(have[i].Type, f.Type, nodes[0], i, path, name); err != nil {
			return err
		}
		nodes = nodes[1:]
	}
	return nil
}

func (b *binder) node(have arrow.DataType, want iceberg.Type, n *node, child int, path []step, name string) error {
	at := step{kind: n.kind, child: child, def: n.def, rep: n.rep, nullable: n.field.Nullable}
	path = append(path[:len(path):len(path)], at)
	mismatch := errs.New(errs.InvalidArgument, "column %s has the type %s, the batches have %s", name, want, have)
	switch n.kind {
	case structNode:
		s, ok := have.(*arrow.StructType)
		fields := want.(*iceberg.StructType).FieldList
		if !ok || s.NumFields() != len(fields) {
			return mismatch
		}
		return b.fields(s.Fields(), fields, n.children, path, name)
	case listNode:
		l, ok := have.(arrow.ListLikeType)
		if _, isMap := have.(*arrow.MapType); !ok || isMap {
			return mismatch
		}
		return b.node(l.Elem(), want.(*iceberg.ListType).Element, n.children[0], 0, path, dotted(name, "element"))
	case mapNode:
		m, ok := have.(*arrow.MapType)
		if !ok {
			return mismatch
		}
		types := want.(*iceberg.MapType)
		if err := b.node(m.KeyType(), types.KeyType, n.children[0], 0, path, dotted(name, "key")); err != nil {
			return err
		}
		return b.node(m.ItemType(), types.ValueType, n.children[1], 1, path, dotted(name, "value"))
	}
	if !n.leaf.accepts(have) {
		return mismatch
	}
	b.paths = append(b.paths, path)
	return nil
}

// accepts reports whether arrays of a type hold the leaf's values.
func (l *leaf) accepts(have arrow.DataType) bool {
	if extension, ok := have.(arrow.ExtensionType); ok {
		have = extension.StorageType()
	}
	if d, ok := have.(*arrow.DictionaryType); ok {
		have = d.ValueType
		if l.physical != physByteArray {
			return false
		}
	}
	switch want := l.typ.(type) {
	case *arrow.StringType:
		switch have.ID() {
		case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
			return true
		}
		return false
	case *arrow.BinaryType:
		switch have.ID() {
		case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
			return true
		}
		return false
	case *arrow.TimestampType:
		t, ok := have.(*arrow.TimestampType)
		return ok && t.Unit == want.Unit && (t.TimeZone != "") == (want.TimeZone != "")
	case *arrow.Decimal128Type:
		t, ok := have.(*arrow.Decimal128Type)
		return ok && t.Scale == want.Scale && t.Precision <= want.Precision
	}
	return arrow.TypeEqual(have, l.typ)
}
