package project

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// binder compiles fields of the wanted schema into nodes and marks the leaves
// of the file that they need.
type binder struct {
	options Options
	want    *iceberg.Schema
	file    *fileSchema
	// containers are the structs, lists and maps of the file whose own nulls
	// and lengths are needed: at least one leaf of each must be read.
	containers []*fileNode
	// absent are the fields of the wanted schema that the file does not have.
	absent []int
	// late runs when the selection is complete.
	late []func()
	// nullable is set while leaves are bound: nulls of a required field are for
	// their reader to judge.
	nullable bool
}

// bindTop binds a top-level field of the wanted schema. The returned file
// column is nil when the file does not matter to it.
func (b *binder) bindTop(field iceberg.NestedField, out arrow.Field) (*fileNode, node, error) {
	return b.bind(field, out, b.file.top, "")
}

func (b *binder) bind(field iceberg.NestedField, out arrow.Field, siblings []*fileNode, parent string) (*fileNode, node, error) {
	name := dotted(parent, field.Name)
	file, err := b.find(siblings, field)
	if err != nil {
		return nil, nil, err
	}
	if file == nil {
		n, err := b.missing(field, out, name)
		return nil, n, err
	}
	n, err := b.present(field, out, file, name)
	return file, n, err
}

// find looks a field up in the file. The partition's constant stands before
// what a name mapping finds, but after the field ids of the file itself; and a
// field of the unknown type has no values to look for.
func (b *binder) find(siblings []*fileNode, field iceberg.NestedField) (*fileNode, error) {
	if _, ok := field.Type.(iceberg.UnknownType); ok {
		return nil, nil
	}
	if _, ok := b.options.Constants[field.ID]; ok && !b.file.native {
		return nil, nil
	}
	return b.file.find(siblings, field.ID)
}

// present binds a field that the file has.
func (b *binder) present(field iceberg.NestedField, out arrow.Field, file *fileNode, name string) (node, error) {
	mismatch := func() error {
		return errs.New(errs.Corrupt, "column %s has type %s in the file, which cannot be read as %s; rewrite the file in the type of the table, or change the type only as Iceberg promotes it", name, file.field.Type, field.Type)
	}
	required := requirement{name: name, on: field.Required && file.field.Nullable && !b.nullable}
	switch t := field.Type.(type) {
	case *iceberg.StructType:
		if file.field.Type.ID() != arrow.STRUCT {
			return nil, mismatch()
		}
		outType := out.Type.(*arrow.StructType)
		n := &structNode{required: required, out: outType, kids: make([]structKid, len(t.FieldList))}
		for i, kid := range t.FieldList {
			kidFile, kidNode, err := b.bind(kid, outType.Field(i), file.kids, name)
			if err != nil {
				return nil, err
			}
			n.kids[i] = structKid{node: kidNode, index: absentKid}
			if kidFile != nil {
				b.late = append(b.late, func() { n.kids[i].index = kidFile.prunedIndex() })
			}
		}
		b.containers = append(b.containers, file)
		return n, nil

	case *iceberg.ListType:
		if id := file.field.Type.ID(); id != arrow.LIST && id != arrow.LARGE_LIST {
			return nil, mismatch()
		}
		element, err := b.present(t.ElementField(), out.Type.(arrow.ListLikeType).ElemField(), file.kids[0], dotted(name, "element"))
		if err != nil {
			return nil, err
		}
		b.containers = append(b.containers, file)
		return &listNode{required: required, out: out.Type, element: element}, nil

	case *iceberg.MapType:
		if file.field.Type.ID() != arrow.MAP {
			return nil, mismatch()
		}
		outType := out.Type.(*arrow.MapType)
		key, err := b.present(t.KeyField(), outType.KeyField(), file.kids[0], dotted(name, "key"))
		if err != nil {
			return nil, err
		}
		value, err := b.present(t.ValueField(), outType.ItemField(), file.kids[1], dotted(name, "value"))
		if err != nil {
			return nil, err
		}
		b.containers = append(b.containers, file, file.kids[0], file.kids[1])
		return &mapNode{required: required, out: outType, key: key, value: value}, nil
	}
	convert, ok := conversion(file.field.Type, field.Type, out.Type)
	if !ok {
		return nil, mismatch()
	}
	file.selectLeaf()
	return &leafNode{required: required, name: name, out: out.Type, convert: convert}, nil
}

// missing binds a field that the file does not have.
func (b *binder) missing(field iceberg.NestedField, out arrow.Field, name string) (node, error) {
	if !b.nullable {
		b.absent = appendIDs(b.absent, field)
	}
	if value, ok := b.options.Constants[field.ID]; ok {
		if value == nil && field.Required {
			return nil, errs.New(errs.Corrupt, "column %s is required but null in the file's partition", name)
		}
		return newConstant(value, field.Type, out.Type, name)
	}
	if t, ok := field.Type.(*iceberg.StructType); ok {
		fields, isStruct := field.InitialDefault.(map[string]any)
		if isStruct || b.constantBelow(t, 0) {
			return b.absentStruct(t, out, name, fields)
		}
	}
	if field.InitialDefault != nil || !field.Required {
		return newConstant(field.InitialDefault, field.Type, out.Type, name)
	}
	return nil, errs.New(errs.Corrupt, "column %s is required but the file does not have it and it has no initial default", name)
}

// appendIDs appends the ids of a field and of all fields inside it.
func appendIDs(ids []int, field iceberg.NestedField) []int {
	ids = append(ids, field.ID)
	if t, ok := field.Type.(iceberg.NestedType); ok {
		for _, inner := range t.Fields() {
			ids = appendIDs(ids, inner)
		}
	}
	return ids
}

// absentStruct makes a struct that the file does not have and that is not null
// out of its fields' own values. defaults holds values by field id that stand
// before the fields' defaults; usually it is empty.
func (b *binder) absentStruct(t *iceberg.StructType, out arrow.Field, name string, defaults map[string]any) (node, error) {
	outType := out.Type.(*arrow.StructType)
	n := &structNode{required: requirement{name: name}, out: outType, kids: make([]structKid, len(t.FieldList))}
	for i, kid := range t.FieldList {
		if value, ok := defaults[strconv.Itoa(kid.ID)]; ok {
			kid.InitialDefault = value
		}
		kidNode, err := b.missing(kid, outType.Field(i), dotted(name, kid.Name))
		if err != nil {
			return nil, err
		}
		n.kids[i] = structKid{node: kidNode, index: absentKid}
	}
	return n, nil
}

// constantBelow reports whether a partition constant lies in a struct, which
// then cannot be null.
func (b *binder) constantBelow(t *iceberg.StructType, depth int) bool {
	if len(b.options.Constants) == 0 || depth > maxDepth {
		return false
	}
	for _, kid := range t.FieldList {
		if b.options.Constants[kid.ID] != nil {
			return true
		}
		if s, ok := kid.Type.(*iceberg.StructType); ok && b.constantBelow(s, depth+1) {
			return true
		}
	}
	return false
}

// bindLeaf binds an extra field. Its value is built inside the chain of
// structs around it, reduced to the one field, and then taken out.
func (b *binder) bindLeaf(field iceberg.NestedField) (*leaf, error) {
	if _, nested := field.Type.(iceberg.NestedType); nested {
		return nil, errs.New(errs.InvalidArgument, "column %s is a %s; only a primitive can be a filter or key column", field.Name, field.Type.Type())
	}
	out, err := ArrowOptions{}.field(field, "", 0)
	if err != nil {
		return nil, err
	}
	parents, err := b.parents(field.ID)
	if err != nil {
		return nil, err
	}
	for i := len(parents) - 1; i >= 0; i-- {
		parent := parents[i]
		parent.Type = &iceberg.StructType{FieldList: []iceberg.NestedField{field}}
		out = arrow.Field{Name: parent.Name, Type: arrow.StructOf(out), Nullable: true}
		field = parent
	}
	b.nullable = true
	top, n, err := b.bindTop(field, out)
	b.nullable = false
	if err != nil {
		return nil, err
	}
	return &leaf{top: top, node: n, depth: len(parents)}, nil
}

// parents are the structs around a leaf, outermost first: as the file has
// them, else as the newest schema that knows the leaf.
func (b *binder) parents(id int) ([]iceberg.NestedField, error) {
	if n := b.file.byID[id]; n != nil && b.file.err == nil {
		var parents []iceberg.NestedField
		for p := n.parent; p != nil; p = p.parent {
			if p.field.Type.ID() != arrow.STRUCT || p.id == noID {
				return nil, errs.New(errs.InvalidArgument, "column %s is not a primitive inside structs and cannot be a filter or key column", n.name)
			}
			parents = append([]iceberg.NestedField{{ID: p.id, Name: p.field.Name}}, parents...)
		}
		return parents, nil
	}
	for _, schema := range append([]*iceberg.Schema{b.want}, b.options.Schemas...) {
		if parents, ok := parentsIn(schema.Fields(), id, 0); ok {
			return parents, nil
		}
	}
	return nil, nil
}

func parentsIn(fields []iceberg.NestedField, id, depth int) ([]iceberg.NestedField, bool) {
	for _, f := range fields {
		if f.ID == id {
			return nil, true
		}
		if t, ok := f.Type.(*iceberg.StructType); ok && depth < maxDepth {
			if parents, ok := parentsIn(t.FieldList, id, depth+1); ok {
				return append([]iceberg.NestedField{f}, parents...), true
			}
		}
	}
	return nil, false
}
