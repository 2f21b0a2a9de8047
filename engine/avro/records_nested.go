package avro

import (
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// recordTarget reads a record whose fields are bound.
type recordTarget struct {
	binder *Binder
	steps  []bindStep
}

func (t *recordTarget) read(c *cursor) { c.bind(t.steps) }
func (t *recordTarget) null() {
	for i := range t.steps {
		if k := t.steps[i].target; k != nil {
			k.null()
		}
	}
}

// Record binds the fields of a field that is a record. Where the file has no
// such field, nothing is bound.
func (b *Binder) Record(id int, names ...string) *Binder {
	inner := newBinder(&node{kind: kindRecord}, b.err)
	b.bind(id, names, func(n *node) target {
		if n.kind != kindRecord {
			return nil
		}
		inner = newBinder(n, b.err)
		return &recordTarget{binder: inner}
	})
	return inner
}

// List is the number of elements of an array; Valid is false for null.
type List struct {
	Len   int
	Valid bool
}

type listTarget struct {
	to     *List
	binder *Binder
	steps  []bindStep
	least  int
	each   func()
}

func (t *listTarget) null() { *t.to = List{} }
func (t *listTarget) read(c *cursor) {
	*t.to = List{Valid: true}
	for {
		// What each does with an element is its own affair; it gets as many as
		// the file has bytes.
		n, _ := c.block(t.least, expansion)
		if n == 0 {
			return
		}
		for ; n > 0 && c.err == nil; n-- {
			c.bind(t.steps)
			if c.err == nil {
				t.to.Len++
				t.each()
			}
		}
	}
}

// List binds the fields of the elements of a field that is an array of
// records. each is called when the bound variables hold an element.
func (b *Binder) List(to *List, each func(), id int, names ...string) *Binder {
	inner := newBinder(&node{kind: kindRecord}, b.err)
	b.bind(id, names, func(n *node) target {
		if n.kind != kindArray {
			return nil
		}
		item, null, ok := n.item.optional()
		if !ok || null >= 0 || item != n.item || item.kind != kindRecord {
			return nil
		}
		inner = newBinder(item, b.err)
		return &listTarget{to: to, binder: inner, least: item.minSize, each: each}
	})
	return inner
}

// Tuple is a record of primitives in encoded form: equal bytes in one file are
// equal values, so that a reader needs to decode few of them. It aliases the
// file's bytes.
type Tuple struct {
	Bytes  []byte
	record *node
	skip   []skipOp
}

func (t *Tuple) null() { t.Bytes = nil }
func (t *Tuple) read(c *cursor) {
	start := c.at
	c.skip(t.skip)
	t.Bytes = c.data[start:c.at]
}

// Tuple binds a field that is a record of primitives.
func (b *Binder) Tuple(to *Tuple, id int, names ...string) bool {
	return b.bind(id, names, func(n *node) target {
		if n.kind != kindRecord {
			return nil
		}
		to.record, to.skip = n, skips(nil, n)
		return to
	})
}

// Values decodes the tuple by field id: nil, bool, int32, int64, float32,
// float64, string, []byte, or iceberg-go's value of a logical type.
func (t *Tuple) Values() (map[int]any, error) {
	values := map[int]any{}
	if t.record == nil {
		return values, nil
	}
	c := newCursor(t.Bytes)
	for _, f := range t.record.fields {
		inner, nullBranch, ok := f.node.optional()
		if !ok {
			return nil, errs.New(errs.Corrupt, "its field %q has the unexpected type %s", f.name, f.node)
		}
		if f.node.kind == kindUnion && c.branch(len(f.node.branches)) == nullBranch {
			values[f.id] = nil
			continue
		}
		v, ok := c.primitive(inner)
		if !ok {
			return nil, errs.New(errs.Corrupt, "its field %q has the unexpected type %s", f.name, f.node)
		}
		values[f.id] = v
	}
	return values, c.err
}

// primitive reads a value of a primitive type.
func (c *cursor) primitive(n *node) (any, bool) {
	switch n.kind {
	case kindNull:
		return nil, true
	case kindBoolean:
		return c.boolean(), true
	case kindInt:
		if n.logical == "date" {
			return iceberg.Date(c.int()), true
		}
		return c.int(), true
	case kindLong:
		switch n.logical {
		case "time-micros":
			return iceberg.Time(c.long()), true
		case "timestamp-micros", "local-timestamp-micros":
			return iceberg.Timestamp(c.long()), true
		case "timestamp-nanos", "local-timestamp-nanos":
			return iceberg.TimestampNano(c.long()), true
		}
		return c.long(), true
	case kindFloat:
		return c.float(), true
	case kindDouble:
		return c.double(), true
	case kindString:
		return string(c.bytes()), true
	case kindBytes, kindFixed:
		var b []byte
		if n.kind == kindFixed {
			b = c.take(n.size)
		} else {
			b = c.bytes()
		}
		switch {
		case n.logical == "decimal":
			v, ok := decimalOf(b)
			if !ok {
				c.fail("a decimal of %d bytes has more than 128 bits", len(b))
			}
			return iceberg.DecimalLiteral{Val: v, Scale: n.scale}, true
		case n.logical == "uuid" && len(b) == 16:
			return uuid.UUID(b), true
		}
		return slices.Clone(b), true
	}
	return nil, false
}
