package avro

import (
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// fieldIDKey is the Arrow metadata key of an Iceberg field id.
const fieldIDKey = "PARQUET:field_id"

// field is one field of the file in Arrow terms: a node of the writer's schema
// without the unions that only make it optional, and without the records that
// only hold a map's key and value.
type field struct {
	arrow arrow.Field
	node  *node
	// A field in a union has a branch index before its value.
	branches, nullBranch int // branches 0: no union
	// kids are a record's fields, an array's element, or a map's key and value.
	kids []*field
	// The leaves below are [firstLeaf, endLeaf), in depth-first order.
	firstLeaf, endLeaf int
}

// arrowFields gives a record's fields their Arrow form.
func arrowFields(record *node) ([]*field, error) {
	leaves := 0
	return fieldsOf(record, &leaves)
}

func fieldsOf(record *node, leaves *int) ([]*field, error) {
	fields := make([]*field, len(record.fields))
	for i, f := range record.fields {
		var err error
		if fields[i], err = newField(f.name, f.id, f.node, leaves); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func newField(name string, id int, n *node, leaves *int) (*field, error) {
	f := &field{node: n, nullBranch: -1, firstLeaf: *leaves}
	if n.kind == kindUnion {
		f.branches = len(n.branches)
		f.node, f.nullBranch, _ = n.optional()
	}
	var err error
	f.arrow = arrow.Field{Name: name, Nullable: f.nullBranch >= 0 || f.node.kind == kindNull}
	if id != noID {
		f.arrow.Metadata = arrow.NewMetadata([]string{fieldIDKey}, []string{strconv.Itoa(id)})
	}
	switch key, value, isMap := f.node.mapEntry(); {
	case isMap:
		err = f.addKids(leaves, key, value)
	case f.node.kind == kindMap:
		err = f.addKids(leaves, &fieldNode{name: "key", id: f.node.keyID, node: &node{kind: kindString}}, &fieldNode{name: "value", id: f.node.valueID, node: f.node.item})
	case f.node.kind == kindArray:
		err = f.addKids(leaves, &fieldNode{name: "element", id: f.node.elementID, node: f.node.item})
	case f.node.kind == kindRecord:
		err = f.addKids(leaves, f.node.fields...)
	}
	if err != nil {
		return nil, err
	}
	if f.arrow.Type, err = f.dataType(f.kids); err != nil {
		return nil, err
	}
	if len(f.kids) == 0 {
		*leaves++
	}
	f.endLeaf = *leaves
	return f, nil
}

func (f *field) addKids(leaves *int, kids ...*fieldNode) error {
	for _, k := range kids {
		kid, err := newField(k.name, k.id, k.node, leaves)
		if err != nil {
			return err
		}
		f.kids = append(f.kids, kid)
	}
	return nil
}

func (f *field) isMap() bool {
	_, _, ok := f.node.mapEntry()
	return ok || f.node.kind == kindMap
}

// dataType is the Arrow type of the field with some of its kids.
func (f *field) dataType(kids []*field) (arrow.DataType, error) {
	n := f.node
	if n.logical == "decimal" && (n.kind == kindBytes || n.kind == kindFixed) {
		if n.precision > 38 {
			return nil, errs.New(errs.Unsupported, "field %s is a decimal of %d digits; the most is 38", f.arrow.Name, n.precision)
		}
		return &arrow.Decimal128Type{Precision: int32(n.precision), Scale: int32(n.scale)}, nil
	}
	if f.isMap() {
		// A null key is an error when it is met.
		key := kids[0].arrow
		key.Nullable = false
		return arrow.MapOfFields(key, kids[1].arrow), nil
	}
	switch n.kind {
	case kindNull:
		return arrow.Null, nil
	case kindBoolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case kindInt:
		switch n.logical {
		case "date":
			return arrow.FixedWidthTypes.Date32, nil
		case "time-millis":
			return arrow.FixedWidthTypes.Time32ms, nil
		}
		return arrow.PrimitiveTypes.Int32, nil
	case kindLong:
		zone := ""
		if n.adjustToUTC {
			zone = "UTC"
		}
		switch n.logical {
		case "time-micros":
			return arrow.FixedWidthTypes.Time64us, nil
		case "timestamp-millis", "local-timestamp-millis":
			return &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: zone}, nil
		case "timestamp-micros", "local-timestamp-micros":
			return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: zone}, nil
		case "timestamp-nanos", "local-timestamp-nanos":
			return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: zone}, nil
		}
		return arrow.PrimitiveTypes.Int64, nil
	case kindFloat:
		return arrow.PrimitiveTypes.Float32, nil
	case kindDouble:
		return arrow.PrimitiveTypes.Float64, nil
	case kindBytes:
		return arrow.BinaryTypes.Binary, nil
	case kindString:
		if n.logical == "uuid" {
			return &arrow.FixedSizeBinaryType{ByteWidth: 16}, nil
		}
		return arrow.BinaryTypes.String, nil
	case kindFixed:
		return &arrow.FixedSizeBinaryType{ByteWidth: n.size}, nil
	case kindEnum:
		return arrow.BinaryTypes.String, nil
	case kindArray:
		return arrow.ListOfField(kids[0].arrow), nil
	case kindRecord:
		fields := make([]arrow.Field, len(kids))
		for i, k := range kids {
			fields[i] = k.arrow
		}
		return arrow.StructOf(fields...), nil
	}
	// A union of several types. Nothing of Iceberg reads one; the type stands
	// in the schema so that the other columns can be read.
	branches := make([]arrow.Field, len(n.branches))
	codes := make([]arrow.UnionTypeCode, len(n.branches))
	for i := range branches {
		branches[i], codes[i] = arrow.Field{Name: strconv.Itoa(i), Type: arrow.Null, Nullable: true}, arrow.UnionTypeCode(i&0x7f)
	}
	if len(branches) > 127 {
		return nil, errs.New(errs.Unsupported, "field %s is a union of %d types", f.arrow.Name, len(branches))
	}
	return arrow.SparseUnionOf(branches, codes), nil
}

// columnBuilder makes columns of the selected leaves.
type columnBuilder struct {
	alloc    memory.Allocator
	selected map[int]bool
}

func (b *columnBuilder) wants(f *field) bool {
	for leaf := f.firstLeaf; leaf < f.endLeaf; leaf++ {
		if b.selected[leaf] {
			return true
		}
	}
	return false
}

// build makes the column of a field with a selected leaf, and the field as the
// column returns it. It is nil for a field without one.
func (b *columnBuilder) build(f *field) (column, *field, error) {
	if !b.wants(f) {
		return nil, nil, nil
	}
	pruned := *f
	pruned.kids = nil
	kids := make([]column, len(f.kids)) // nil: not wanted
	for i, k := range f.kids {
		c, kid, err := b.build(k)
		if err != nil {
			return nil, nil, err
		}
		if c != nil {
			kids[i], pruned.kids = c, append(pruned.kids, kid)
		}
	}
	if f.isMap() && len(pruned.kids) != 2 {
		return nil, nil, errs.New(errs.Internal, "the map %s is read without its keys or values", f.arrow.Name)
	}
	var err error
	if pruned.arrow.Type, err = f.dataType(pruned.kids); err != nil {
		return nil, nil, err
	}
	c, err := b.column(f, pruned.arrow.Type, kids)
	if err != nil {
		return nil, nil, err
	}
	if f.branches > 0 {
		c = &optionalColumn{column: c, branches: f.branches, nullBranch: f.nullBranch}
	}
	return c, &pruned, nil
}

// column makes the column of a field that is not null. kids has an entry for
// every kid of the field.
func (b *columnBuilder) column(f *field, t arrow.DataType, kids []column) (column, error) {
	buf := buffer{alloc: b.alloc}
	valid := validity{bits: buf}
	offsets := offsetBuffer{buf}
	fixed := func(size int) fixedColumn {
		return fixedColumn{validity: valid, dataType: t, size: size, values: buf}
	}
	list := func(element column, least int) column {
		return &listColumn{validity: valid, dataType: t, element: element, least: least, elementWidth: 1 + element.width(), offsets: offsets}
	}
	n := f.node
	switch t.ID() {
	case arrow.NULL:
		return &nullColumn{}, nil
	case arrow.BOOL:
		return &booleanColumn{validity: valid, values: buf}, nil
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		return &intColumn{fixed(4)}, nil
	case arrow.INT64, arrow.TIME64, arrow.TIMESTAMP:
		return &longColumn{fixed(8)}, nil
	case arrow.FLOAT32:
		return &floatColumn{fixed(4)}, nil
	case arrow.FLOAT64:
		return &doubleColumn{fixed(8)}, nil
	case arrow.DECIMAL128:
		length := -1
		if n.kind == kindFixed {
			length = n.size
		}
		return &decimalColumn{fixedColumn: fixed(16), length: length}, nil
	case arrow.FIXED_SIZE_BINARY:
		if n.kind == kindString {
			return &uuidTextColumn{fixed(16)}, nil
		}
		return &fixedBytesColumn{fixed(n.size)}, nil
	case arrow.STRING, arrow.BINARY:
		text := bytesColumn{validity: valid, dataType: t, text: n.kind == kindString, offsets: offsets, values: buf}
		if n.kind != kindEnum {
			return &text, nil
		}
		e := &enumColumn{bytesColumn: text}
		for _, s := range n.symbols {
			e.symbols = append(e.symbols, []byte(s))
		}
		return e, nil
	case arrow.STRUCT:
		r := &recordColumn{validity: valid, dataType: t, steps: recordSteps(f.kids, kids)}
		for _, k := range kids {
			if k != nil {
				r.kids = append(r.kids, k)
			}
		}
		return r, nil
	case arrow.LIST:
		return list(kids[0], n.item.minSize), nil
	case arrow.MAP:
		// The entries' struct; a record of value and key is read in that order.
		entry := &recordColumn{validity: valid, dataType: t.(*arrow.MapType).Elem(), kids: kids}
		entry.steps = recordSteps(f.kids, kids)
		least := n.item.minSize
		if n.kind == kindMap {
			least++
		} else if n.item.fields[0].name == "value" {
			slices.Reverse(entry.steps)
		}
		if o, ok := kids[0].(*optionalColumn); ok && o.nullBranch >= 0 {
			entry.steps[slices.IndexFunc(entry.steps, func(s recordStep) bool { return s.column == kids[0] })].column = &keyColumn{*o}
		}
		return list(entry, least), nil
	}
	return nil, errs.New(errs.Unsupported, "field %s is a %s, which is not an Iceberg type", f.arrow.Name, n)
}

// recordSteps are the steps that read the fields of a record in their order.
func recordSteps(fields []*field, columns []column) []recordStep {
	var steps []recordStep
	for i, f := range fields {
		if columns[i] != nil {
			steps = append(steps, recordStep{name: f.arrow.Name, column: columns[i]})
			continue
		}
		if last := len(steps) - 1; last < 0 || steps[last].column != nil {
			steps = append(steps, recordStep{})
		}
		last := &steps[len(steps)-1]
		last.skip = f.skips(last.skip)
	}
	return steps
}

// skips appends the operations that pass over the field.
func (f *field) skips(ops []skipOp) []skipOp {
	if f.branches == 0 {
		return skips(ops, f.node)
	}
	if f.nullBranch >= 0 {
		return append(ops, skipOp{kind: skipOptional, inner: skips(nil, f.node), null: f.nullBranch})
	}
	if f.node.kind == kindUnion {
		return skips(ops, f.node)
	}
	return append(ops, skipOp{kind: skipUnion, each: [][]skipOp{skips(nil, f.node)}})
}

// keyColumn is of a map's keys that may be null by the schema and must not be.
type keyColumn struct{ optionalColumn }

func (k *keyColumn) read(c *cursor) {
	if c.branch(k.branches) == k.nullBranch {
		c.fail("a map has a null key")
		return
	}
	k.column.read(c)
}
