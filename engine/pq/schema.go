package pq

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// fieldIDKey is the metadata key of a field's id.
const fieldIDKey = "PARQUET:field_id"

// maxSchemaDepth bounds the nesting of a schema, so that levels fit a byte and
// recursion over it stays shallow.
const maxSchemaDepth = 64

// node is a column or a part of a nested column: the Parquet schema as Arrow
// sees it, without the groups that only spell a list or map.
type node struct {
	field    arrow.Field
	kind     nodeKind
	children []*node // a list has one; a map has two, key and value
	leaf     *leaf   // of a leaf node

	// def is the definition level at which the node is not null. For a list or
	// map, def+1 is the level at which it has an element.
	def uint8
	// rep is the repetition level of the elements of a list or map, else that
	// of the nearest list around the node.
	rep uint8
	// slotDef is the definition level from which on the node has a slot in its
	// array: that of an element of the nearest list around it, or zero.
	slotDef uint8

	firstLeaf, endLeaf int // leaf ordinals below the node: [firstLeaf, endLeaf)
}

type nodeKind int8

const (
	leafNode nodeKind = iota
	structNode
	listNode
	mapNode
)

// leaf is a primitive column.
type leaf struct {
	index      int
	path       string // dotted names, for errors
	hasFieldID bool
	fieldID    int32
	physical   physicalType
	length     int32 // of FIXED_LEN_BYTE_ARRAY
	logical    logicalType
	typ        arrow.DataType
	// maxDef is the definition level of a value that is there, maxRep that of
	// its repetition.
	maxDef, maxRep uint8
	slotDef        uint8
	// unsupported says why the column cannot be read; empty: it can.
	unsupported string
}

// flat reports whether the column's levels say no more than null or not.
func (l *leaf) flat() bool { return l.maxRep == 0 && l.maxDef <= 1 }

// schemaTree is a file's schema.
type schemaTree struct {
	columns []*node
	leaves  []*leaf
}

func (s *schemaTree) arrowSchema() *arrow.Schema {
	fields := make([]arrow.Field, len(s.columns))
	for i, c := range s.columns {
		fields[i] = c.field
	}
	return arrow.NewSchema(fields, nil)
}

// schemaBuilder turns the footer's list of elements into a tree.
type schemaBuilder struct {
	elements []schemaElement
	next     int
	tree     schemaTree
	path     []string
}

// levels are those of the position in the tree that is being built.
type levels struct{ def, rep, slotDef uint8 }

func (l levels) optional() levels { l.def++; return l }

func (l levels) repeated() levels {
	l.def++
	l.rep++
	l.slotDef = l.def
	return l
}

func (l levels) of(e *schemaElement) levels {
	if e.repetition == optional {
		return l.optional()
	}
	return l
}

func buildSchema(elements []schemaElement) (*schemaTree, error) {
	if len(elements) == 0 {
		return nil, corrupt("the footer has no schema")
	}
	b := &schemaBuilder{elements: elements, next: 1}
	for range b.childCount(&elements[0]) {
		c, err := b.node(levels{})
		if err != nil {
			return nil, err
		}
		b.tree.columns = append(b.tree.columns, c)
	}
	if b.next != len(elements) {
		return nil, corrupt("the schema has %d elements more than its groups hold", len(elements)-b.next)
	}
	return &b.tree, nil
}

// childCount is the number of children, which damaged input may overstate:
// taking them fails then.
func (b *schemaBuilder) childCount(e *schemaElement) int { return max(int(e.numChildren), 0) }

// take returns the next element of the depth-first list.
func (b *schemaBuilder) take() (*schemaElement, error) {
	if b.next >= len(b.elements) {
		return nil, corrupt("the schema ends inside a group")
	}
	if len(b.path) >= maxSchemaDepth {
		return nil, errs.New(errs.Unsupported, "the schema nests deeper than %d groups", maxSchemaDepth)
	}
	e := &b.elements[b.next]
	b.next++
	if e.repetition < required || e.repetition > repeated {
		return nil, corrupt("schema element %q has the repetition %d", e.name, e.repetition)
	}
	return e, nil
}

// node builds the next element and what is below it. A repeated element that
// no list or map annotation explains is a list of itself.
func (b *schemaBuilder) node(at levels) (*node, error) {
	e, err := b.take()
	if err != nil {
		return nil, err
	}
	if e.repetition == repeated {
		elements := at.repeated()
		item, err := b.body(e, elements)
		if err != nil {
			return nil, err
		}
		item.field.Nullable = false
		item.field.Metadata = arrow.Metadata{}
		list := &node{kind: listNode, children: []*node{item}, def: at.def, rep: elements.rep, slotDef: at.slotDef,
			firstLeaf: item.firstLeaf, endLeaf: item.endLeaf}
		list.field = field(e, arrow.ListOfField(item.field))
		list.field.Nullable = false
		return list, nil
	}
	return b.body(e, at.of(e))
}

// body builds an element whose own levels are at.
func (b *schemaBuilder) body(e *schemaElement, at levels) (*node, error) {
	b.path = append(b.path, e.name)
	defer func() { b.path = b.path[:len(b.path)-1] }()
	if e.physical != noPhysical {
		return b.leaf(e, at)
	}
	switch e.annotation().kind {
	case logicalList:
		return b.list(e, at)
	case logicalMap:
		return b.mapOrList(e, at)
	}
	return b.group(e, at)
}

func (b *schemaBuilder) leaf(e *schemaElement, at levels) (*node, error) {
	if e.numChildren > 0 {
		return nil, corrupt("the primitive schema element %q has children", e.name)
	}
	l := &leaf{
		index: len(b.tree.leaves), path: strings.Join(b.path, "."), physical: e.physical, length: e.length,
		logical: e.annotation(), fieldID: e.fieldID, hasFieldID: e.hasFieldID, maxDef: at.def, maxRep: at.rep, slotDef: at.slotDef,
	}
	if err := l.chooseType(); err != nil {
		return nil, err
	}
	b.tree.leaves = append(b.tree.leaves, l)
	return &node{
		field: field(e, l.typ), kind: leafNode, leaf: l, def: at.def, rep: at.rep, slotDef: at.slotDef,
		firstLeaf: l.index, endLeaf: l.index + 1,
	}, nil
}

// group builds a struct.
func (b *schemaBuilder) group(e *schemaElement, at levels) (*node, error) {
	n := &node{kind: structNode, def: at.def, rep: at.rep, slotDef: at.slotDef, firstLeaf: len(b.tree.leaves)}
	var fields []arrow.Field
	for range b.childCount(e) {
		child, err := b.node(at)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
		fields = append(fields, child.field)
	}
	n.endLeaf = len(b.tree.leaves)
	n.field = field(e, arrow.StructOf(fields...))
	return n, nil
}

// list builds a group annotated as a list. In today's form a repeated group
// wraps the element; in older ones the repeated element is the element itself.
//
//	optional group tags (LIST) {          optional group tags (LIST) {
//	  repeated group list {                 repeated int32 array;
//	    optional int32 element;           }
//	  }
//	}
func (b *schemaBuilder) list(e *schemaElement, at levels) (*node, error) {
	if b.childCount(e) != 1 || b.next >= len(b.elements) || b.elements[b.next].repetition != repeated {
		return nil, corrupt("the list %q does not have one repeated element", e.name)
	}
	middle := &b.elements[b.next]
	elements := at.repeated()
	var item *node
	var err error
	wraps := middle.physical == noPhysical && middle.numChildren == 1 && middle.name != "array" &&
		middle.name != e.name+"_tuple" && middle.annotation().kind == logicalNone
	if wraps {
		if _, err = b.take(); err == nil {
			item, err = b.node(elements)
		}
	} else if middle, err = b.take(); err == nil {
		item, err = b.body(middle, elements)
		if err == nil {
			item.field.Nullable = false
		}
	}
	if err != nil {
		return nil, err
	}
	n := &node{kind: listNode, children: []*node{item}, def: at.def, rep: elements.rep, slotDef: at.slotDef,
		firstLeaf: item.firstLeaf, endLeaf: item.endLeaf}
	n.field = field(e, arrow.ListOfField(item.field))
	return n, nil
}

// mapOrList builds a group annotated as a map; one without values is a list of
// its keys.
//
//	optional group props (MAP) {
//	  repeated group key_value {
//	    required binary key (STRING);
//	    optional int32 value;
//	  }
//	}
func (b *schemaBuilder) mapOrList(e *schemaElement, at levels) (*node, error) {
	if b.childCount(e) != 1 || b.next >= len(b.elements) || b.elements[b.next].repetition != repeated ||
		b.elements[b.next].physical != noPhysical {
		return nil, corrupt("the map %q does not have one repeated group", e.name)
	}
	entries := &b.elements[b.next]
	if entries.numChildren == 1 {
		return b.list(e, at)
	}
	if entries.numChildren != 2 {
		return nil, corrupt("the map %q has entries of %d fields", e.name, entries.numChildren)
	}
	if _, err := b.take(); err != nil {
		return nil, err
	}
	elements := at.repeated()
	key, err := b.node(elements)
	if err != nil {
		return nil, err
	}
	value, err := b.node(elements)
	if err != nil {
		return nil, err
	}
	key.field.Nullable = false // Arrow knows no other; a null key is an error where it is read
	n := &node{kind: mapNode, children: []*node{key, value}, def: at.def, rep: elements.rep, slotDef: at.slotDef,
		firstLeaf: key.firstLeaf, endLeaf: value.endLeaf}
	n.field = field(e, arrow.MapOfFields(key.field, value.field))
	return n, nil
}

func field(e *schemaElement, t arrow.DataType) arrow.Field {
	f := arrow.Field{Name: e.name, Type: t, Nullable: e.repetition == optional}
	if e.hasFieldID {
		f.Metadata = arrow.NewMetadata([]string{fieldIDKey}, []string{strconv.Itoa(int(e.fieldID))})
	}
	return f
}

// prune keeps the parts of a node that hold selected leaves; nil when there
// are none. A map keeps its key, since no Arrow map can be without.
func (n *node) prune(selected map[int]bool) *node {
	if n.kind == leafNode {
		if !selected[n.leaf.index] {
			return nil
		}
		return n
	}
	pruned := *n
	pruned.children = nil
	var fields []arrow.Field
	for _, child := range n.children {
		if child = child.prune(selected); child != nil {
			pruned.children = append(pruned.children, child)
			fields = append(fields, child.field)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	switch n.kind {
	case structNode:
		pruned.field.Type = arrow.StructOf(fields...)
	case listNode:
		pruned.field.Type = arrow.ListOfField(fields[0])
	case mapNode:
		if len(fields) == 1 { // of an Arrow map neither key nor value can be missing
			pruned.children = n.children
			for i, child := range n.children {
				if part := child.prune(selected); part != nil {
					pruned.children = append([]*node(nil), pruned.children...)
					pruned.children[i] = part
				}
			}
		}
		pruned.field.Type = arrow.MapOfFields(pruned.children[0].field, pruned.children[1].field)
	}
	return &pruned
}
