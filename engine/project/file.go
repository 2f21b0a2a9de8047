package project

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// fileSchema is a file's schema with the field id of every node, and the set
// of leaves that are to be read.
type fileSchema struct {
	top []*fileNode
	// byID has every field with an id.
	byID map[int]*fileNode
	// native says that ids are the file's own, not the name mapping's.
	native bool
	// err is why fields cannot be looked up; it matters only when one is.
	err      error
	selected []bool // by leaf ordinal
}

// fileNode is one field of the file's schema.
type fileNode struct {
	schema *fileSchema
	parent *fileNode
	index  int // among the parent's fields
	field  arrow.Field
	name   string // dotted, as the file has it
	id     int    // noID when it has none
	// kids are a struct's fields, a list's element, or a map's key and value.
	kids []*fileNode
	// The leaves below the node are [firstLeaf, endLeaf).
	firstLeaf, endLeaf int
}

const noID = -1

func indexFile(file *arrow.Schema, options Options) *fileSchema {
	s := &fileSchema{byID: map[int]*fileNode{}}
	for i, f := range file.Fields() {
		s.top = append(s.top, s.add(f, nil, i, 0))
	}
	if s.err != nil {
		return s
	}
	for _, n := range s.top {
		s.native = s.native || n.hasIDs()
	}
	if !s.native && len(s.top) > 0 {
		s.err = s.applyMapping(options)
	}
	for _, n := range s.top {
		s.collect(n)
	}
	return s
}

func (s *fileSchema) add(f arrow.Field, parent *fileNode, index, depth int) *fileNode {
	n := &fileNode{schema: s, parent: parent, index: index, field: f, name: f.Name, id: noID, firstLeaf: len(s.selected)}
	if parent != nil {
		n.name = dotted(parent.name, f.Name)
	}
	if text, ok := f.Metadata.GetValue(FieldIDKey); ok {
		if id, err := strconv.Atoi(text); err == nil && id >= 0 {
			n.id = id
		}
	}
	if depth > maxDepth {
		s.err = errs.New(errs.Unsupported, "the file's column %s is nested deeper than %d levels", n.name, maxDepth)
		return n
	}
	for i, kid := range childFields(f.Type) {
		n.kids = append(n.kids, s.add(kid, n, i, depth+1))
	}
	if len(n.kids) == 0 {
		s.selected = append(s.selected, false)
	}
	n.endLeaf = len(s.selected)
	return n
}

// childFields are the fields below a nested type; nil for a leaf.
func childFields(t arrow.DataType) []arrow.Field {
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Fields()
	case *arrow.MapType:
		return []arrow.Field{t.KeyField(), t.ItemField()}
	case arrow.ListLikeType:
		return []arrow.Field{t.ElemField()}
	}
	return nil
}

func (n *fileNode) hasIDs() bool {
	if n.id != noID {
		return true
	}
	for _, kid := range n.kids {
		if kid.hasIDs() {
			return true
		}
	}
	return false
}

// collect fills byID and finds ids that occur twice.
func (s *fileSchema) collect(n *fileNode) {
	if n.id != noID {
		if other, ok := s.byID[n.id]; ok && s.err == nil {
			s.err = errs.New(errs.Corrupt, "the file's columns %s and %s both have field id %d", other.name, n.name, n.id)
		}
		s.byID[n.id] = n
	}
	for _, kid := range n.kids {
		s.collect(kid)
	}
}

// applyMapping gives ids to the fields of a file that has none.
func (s *fileSchema) applyMapping(options Options) error {
	var mapping iceberg.NameMapping
	if options.NameMapping != nil {
		var err error
		if mapping, err = options.NameMapping(); err != nil {
			return err
		}
	}
	if len(mapping) == 0 {
		return errs.New(errs.Corrupt, "the file has no field ids and the table has no name mapping (property schema.name-mapping.default)")
	}
	return mapFields(s.top, mapping)
}

// mapFields matches sibling fields with the mapping of their level. A list's
// element and a map's key and value go by these names whatever the file calls
// them.
func mapFields(nodes []*fileNode, mapping []iceberg.MappedField) error {
	byName := map[string]*iceberg.MappedField{}
	for i := range mapping {
		for _, name := range mapping[i].Names {
			if _, twice := byName[name]; twice {
				return errs.New(errs.InvalidArgument, "the table's name mapping has the name %q twice on one level", name)
			}
			byName[name] = &mapping[i]
		}
	}
	seen := map[string]*fileNode{}
	for _, n := range nodes {
		name := n.mappingName()
		mapped := byName[name]
		if mapped == nil {
			continue
		}
		if other, twice := seen[name]; twice {
			return errs.New(errs.Corrupt, "the file has no field ids and two columns named %s", other.name)
		}
		seen[name] = n
		if mapped.FieldID != nil {
			n.id = *mapped.FieldID
		}
		if err := mapFields(n.kids, mapped.Fields); err != nil {
			return err
		}
	}
	return nil
}

func (n *fileNode) mappingName() string {
	if n.parent != nil {
		switch n.parent.field.Type.(type) {
		case *arrow.MapType:
			return [...]string{"key", "value"}[n.index]
		case arrow.ListLikeType:
			return "element"
		}
	}
	return n.field.Name
}

// find looks a field up among siblings.
func (s *fileSchema) find(siblings []*fileNode, id int) (*fileNode, error) {
	if s.err != nil {
		return nil, s.err
	}
	for _, n := range siblings {
		if n.id == id {
			return n, nil
		}
	}
	return nil, nil
}

// selectLeaf marks a leaf to be read.
func (n *fileNode) selectLeaf() { n.schema.selected[n.firstLeaf] = true }

// selectAny makes sure that at least one leaf below n is read, since the array
// of n is needed for its nulls or lengths alone: the cheapest leaf, unless one
// is selected anyway. It runs after all other selection.
func (n *fileNode) selectAny() {
	if n.isSelected() {
		return
	}
	best := n.cheapest()
	best.selectLeaf()
	// A map cannot be read without its keys, whichever leaf was chosen below it.
	for p := best; p != n.parent; p = p.parent {
		if _, ok := p.field.Type.(*arrow.MapType); ok {
			p.kids[0].selectAny()
			p.kids[1].selectAny()
		}
	}
}

// cheapest finds the leaf below n that costs least to decode.
func (n *fileNode) cheapest() *fileNode {
	best, bestCost := n, -1
	var walk func(k *fileNode, cost int)
	walk = func(k *fileNode, cost int) {
		switch t := k.field.Type.(type) {
		case *arrow.MapType, arrow.ListLikeType:
			cost += 1000 // repeated values
		case arrow.FixedWidthDataType:
			cost += t.BitWidth()
		case *arrow.StructType:
		default:
			cost += 500 // of unknown length
		}
		if len(k.kids) == 0 && (bestCost < 0 || cost < bestCost) {
			best, bestCost = k, cost
		}
		for _, kid := range k.kids {
			walk(kid, cost)
		}
	}
	walk(n, 0)
	return best
}

func (n *fileNode) isSelected() bool {
	for _, s := range n.schema.selected[n.firstLeaf:n.endLeaf] {
		if s {
			return true
		}
	}
	return false
}

// prunedIndex is n's place among its siblings once the type is pruned to the
// selected leaves.
func (n *fileNode) prunedIndex() int {
	index := 0
	for _, sibling := range n.parent.kids[:n.index] {
		if sibling.isSelected() {
			index++
		}
	}
	return index
}

// columns lists the top-level columns with selected leaves.
func (s *fileSchema) columns() []batch.Column {
	var columns []batch.Column
	for _, n := range s.top {
		var leaves []int
		for i := n.firstLeaf; i < n.endLeaf; i++ {
			if s.selected[i] {
				leaves = append(leaves, i)
			}
		}
		if leaves != nil {
			columns = append(columns, batch.Column{Index: n.index, Leaves: leaves})
		}
	}
	return columns
}
