package pq

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// nestedColumn reads a struct, list or map, or a repeated primitive.
//
// Each leaf yields its values and, for each of them and for each place where
// one could be, a repetition and a definition level. The arrays above the
// leaves are made of those levels alone.
type nestedColumn struct {
	node  *node
	parts []*nestedLeaf // in the order of the schema's leaves
	alloc memory.Allocator
}

func newNestedColumn(f *File, r *reader, n *node) *nestedColumn {
	c := &nestedColumn{node: n, alloc: f.opts.Alloc}
	for _, l := range n.leaves(nil) {
		c.parts = append(c.parts, newNestedLeaf(f, r, l))
	}
	return c
}

func (c *nestedColumn) read(ctx context.Context, w *window) (arrow.Array, error) {
	defer func() {
		for _, l := range c.parts {
			l.builder.abort()
		}
	}()
	for _, l := range c.parts {
		if err := l.read(ctx, w); err != nil {
			return nil, err
		}
	}
	leaves := c.parts
	data, err := c.assemble(c.node, &leaves)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	if data.Len() != w.kept {
		return nil, corrupt("%d rows decode where %d are wanted", data.Len(), w.kept)
	}
	return array.MakeFromData(data), nil
}

func (c *nestedColumn) leaves() []*leafReader {
	var leaves []*leafReader
	for _, l := range c.parts {
		leaves = append(leaves, &l.leafReader)
	}
	return leaves
}

func (c *nestedColumn) close() {
	for _, l := range c.parts {
		l.close()
	}
}

// assemble makes the array of a node and takes its leaves off the front of
// leaves.
func (c *nestedColumn) assemble(n *node, leaves *[]*nestedLeaf) (arrow.ArrayData, error) {
	first := (*leaves)[0] // any leaf below tells the levels of a node
	if n.kind == leafNode {
		*leaves = (*leaves)[1:]
		a := first.builder.finish()
		defer a.Release()
		a.Data().Retain()
		return a.Data(), nil
	}
	shape, err := c.shape(n, first)
	if err != nil {
		return nil, err
	}
	defer shape.release()
	var children []arrow.ArrayData
	defer func() {
		for _, child := range children {
			child.Release()
		}
	}()
	for _, child := range n.children {
		data, err := c.assemble(child, leaves)
		if err != nil {
			return nil, err
		}
		children = append(children, data)
		if data.Len() != shape.children {
			return nil, corrupt("the leaves of column %q disagree: %d values where %d belong", n.field.Name, data.Len(), shape.children)
		}
	}
	buffers := []*memory.Buffer{shape.valid}
	switch n.kind {
	case listNode:
		buffers = append(buffers, shape.offsets)
	case mapNode:
		if children[0].NullN() > 0 {
			return nil, errs.New(errs.Unsupported, "the map %q has null keys", n.field.Name)
		}
		buffers = append(buffers, shape.offsets)
		entries := array.NewData(n.field.Type.(*arrow.MapType).Elem(), shape.children, []*memory.Buffer{nil}, children, 0, 0)
		defer entries.Release()
		return array.NewData(n.field.Type, shape.slots, buffers, []arrow.ArrayData{entries}, shape.nulls, 0), nil
	}
	return array.NewData(n.field.Type, shape.slots, buffers, children, shape.nulls, 0), nil
}

// shape is what the levels say of a struct, list or map.
type shape struct {
	slots    int
	nulls    int
	valid    *memory.Buffer // nil: no nulls
	offsets  *memory.Buffer // of a list or map
	children int            // slots of the children
}

func (s *shape) release() {
	for _, b := range []*memory.Buffer{s.valid, s.offsets} {
		if b != nil {
			b.Release()
		}
	}
}

func (c *nestedColumn) shape(n *node, l *nestedLeaf) (*shape, error) {
	bound := len(l.def) // there are no more slots than levels
	s := &shape{valid: memory.NewResizableBuffer(c.alloc)}
	s.valid.Reserve(max(bitmapSize(bound), 1))
	clear(s.valid.Buf())
	var err error
	if n.kind == structNode {
		s.ofStruct(n, l)
	} else {
		s.offsets = memory.NewResizableBuffer(c.alloc)
		s.offsets.Reserve(4 * (bound + 1))
		err = s.ofList(n, l)
		s.offsets.ResizeNoShrink(4 * (s.slots + 1))
	}
	if err != nil || s.nulls == 0 {
		s.valid.Release()
		s.valid = nil
	} else {
		s.valid.ResizeNoShrink(bitmapSize(s.slots))
	}
	if err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// ofStruct finds the slots of a struct. Levels that repeat something inside it
// belong to the slot before.
func (s *shape) ofStruct(n *node, l *nestedLeaf) {
	valid := s.valid.Buf()
	for i, def := range l.def {
		if def < n.slotDef || l.rep != nil && l.rep[i] > n.rep {
			continue
		}
		if def >= n.def {
			setBit(valid, s.slots)
		} else {
			s.nulls++
		}
		s.slots++
	}
	s.children = s.slots
}

// ofList finds the slots and elements of a list or map.
func (s *shape) ofList(n *node, l *nestedLeaf) error {
	valid := s.valid.Buf()
	offsets := arrow.Int32Traits.CastFromBytes(s.offsets.Buf())
	offsets[0] = 0
	for i, def := range l.def {
		if def < n.slotDef || l.rep[i] > n.rep {
			continue
		}
		if l.rep[i] < n.rep { // a new list
			if def >= n.def {
				setBit(valid, s.slots)
			} else {
				s.nulls++
			}
			s.slots++
			offsets[s.slots] = offsets[s.slots-1]
		} else if s.slots == 0 || def <= n.def {
			return corrupt("the levels of column %q continue a list that is not there", n.field.Name)
		}
		if def > n.def {
			offsets[s.slots]++
		}
	}
	s.children = int(offsets[s.slots])
	return nil
}
