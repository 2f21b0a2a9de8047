package avro

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/icebergexec/icebergexec/engine/errs"
)

const (
	// maxDepth bounds the nesting of a schema and with it every recursion here.
	maxDepth = 256
	// maxNodes bounds a schema whose named types are used again and again.
	maxNodes = 100_000
	// maxFixed bounds the size of a fixed type. A null of that type takes as
	// many bytes in Arrow as a value, and one byte in the file.
	maxFixed = 16 << 20 // 16 MiB
	// noID is the field id of a field that has none.
	noID = -1
)

// kind is an Avro type.
type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindFixed
	kindEnum
	kindArray
	kindMap
	kindRecord
	kindUnion
)

var primitives = map[string]kind{
	"null": kindNull, "boolean": kindBoolean, "int": kindInt, "long": kindLong,
	"float": kindFloat, "double": kindDouble, "bytes": kindBytes, "string": kindString,
}

// node is one type of a writer's schema. Named types that occur twice are one
// node; a type never contains itself.
type node struct {
	kind    kind
	name    string // of a record, enum or fixed
	logical string
	// adjustToUTC says that a timestamp is an instant.
	adjustToUTC      bool
	precision, scale int
	size             int          // of a fixed
	symbols          []string     // of an enum
	fields           []*fieldNode // of a record
	item             *node        // of an array or map
	branches         []*node      // of a union
	// The ids that Iceberg puts on an array's element, a map's key and value.
	elementID, keyID, valueID int
	// minSize is the least number of bytes that a value takes.
	minSize int
	// nodes is the number of nodes in the type, counting each use.
	nodes int
}

// fieldNode is one field of a record.
type fieldNode struct {
	name string
	id   int
	node *node
}

// optional sees through a union of null and one other type, in either order,
// or of one type alone. nullBranch is the union index that stands for null, or
// -1; ok is false for a union of several types.
func (n *node) optional() (inner *node, nullBranch int, ok bool) {
	if n.kind != kindUnion {
		return n, -1, true
	}
	switch b := n.branches; {
	case len(b) == 1:
		return b[0], -1, true
	case len(b) == 2 && b[0].kind == kindNull && b[1].kind != kindUnion:
		return b[1], 0, true
	case len(b) == 2 && b[1].kind == kindNull && b[0].kind != kindUnion:
		return b[0], 1, true
	}
	return n, -1, false
}

// mapEntry is the key-value record of an array that Iceberg means as a map.
func (n *node) mapEntry() (key, value *fieldNode, ok bool) {
	if n.kind != kindArray || n.logical != "map" || n.item.kind != kindRecord || len(n.item.fields) != 2 {
		return nil, nil, false
	}
	a, b := n.item.fields[0], n.item.fields[1]
	switch {
	case a.name == "key" && b.name == "value":
		return a, b, true
	case a.name == "value" && b.name == "key":
		return b, a, true
	}
	return nil, nil, false
}

// parseSchema reads the JSON of a writer's schema.
func parseSchema(text []byte) (*node, error) {
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, errs.New(errs.Corrupt, "its schema is not JSON: %v", err)
	}
	p := parser{named: map[string]*node{}}
	n, err := p.parse(raw, "", 0)
	if err != nil {
		return nil, err
	}
	if n.nodes > maxNodes {
		return nil, errs.New(errs.Unsupported, "its schema has more than %d fields", maxNodes)
	}
	return n, nil
}

type parser struct {
	// named holds the named types seen so far; nil while one is being parsed.
	named map[string]*node
}

func badSchema(format string, args ...any) error {
	return errs.New(errs.Corrupt, "its schema is invalid: "+format, args...)
}

func (p *parser) parse(raw any, namespace string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errs.New(errs.Unsupported, "its schema is nested deeper than %d levels", maxDepth)
	}
	switch raw := raw.(type) {
	case string:
		return p.reference(raw, namespace)
	case []any:
		return p.union(raw, namespace, depth)
	case map[string]any:
		return p.object(raw, namespace, depth)
	}
	return nil, badSchema("a type is %T", raw)
}

func (p *parser) reference(name, namespace string) (*node, error) {
	if k, ok := primitives[name]; ok {
		return finish(&node{kind: k})
	}
	full := fullName(name, namespace)
	n, ok := p.named[full]
	if !ok {
		n, ok = p.named[name] // a name without namespace may stand for the one without
	}
	switch {
	case !ok:
		return nil, badSchema("unknown type %q", name)
	case n == nil:
		return nil, errs.New(errs.Unsupported, "its schema's type %q contains itself", name)
	}
	return n, nil
}

func fullName(name, namespace string) string {
	if namespace == "" || slices.Contains([]byte(name), '.') {
		return name
	}
	return namespace + "." + name
}

func (p *parser) union(raw []any, namespace string, depth int) (*node, error) {
	if len(raw) == 0 {
		return nil, badSchema("a union has no branches")
	}
	n := &node{kind: kindUnion}
	for _, r := range raw {
		b, err := p.parse(r, namespace, depth+1)
		if err != nil {
			return nil, err
		}
		n.branches = append(n.branches, b)
	}
	return finish(n)
}

func (p *parser) object(o map[string]any, namespace string, depth int) (*node, error) {
	t, ok := o["type"].(string)
	if !ok {
		// {"type": {"type": ...}}: one level too many, which some writers make.
		return p.parse(o["type"], namespace, depth+1)
	}
	n := &node{elementID: intOf(o["element-id"]), keyID: intOf(o["key-id"]), valueID: intOf(o["value-id"])}
	n.logical, _ = o["logicalType"].(string)
	switch adjust := o["adjust-to-utc"].(type) {
	case bool:
		n.adjustToUTC = adjust
	case string:
		n.adjustToUTC = adjust == "true"
	}
	if n.logical == "decimal" {
		n.precision, n.scale = intOf(o["precision"]), max(intOf(o["scale"]), 0)
		if n.precision < 1 || n.scale > n.precision {
			return nil, badSchema("a decimal of precision %d and scale %d", n.precision, n.scale)
		}
	}
	var err error
	switch t {
	case "array", "map":
		n.kind = kindArray
		items := o["items"]
		if t == "map" {
			n.kind, items = kindMap, o["values"]
		}
		if n.item, err = p.parse(items, namespace, depth+1); err != nil {
			return nil, err
		}
		return finish(n)
	case "record", "error", "enum", "fixed":
		return p.define(n, t, o, namespace, depth)
	}
	k, ok := primitives[t]
	if !ok {
		return p.reference(t, namespace)
	}
	n.kind = k
	return finish(n)
}

// define parses the definition of a record, enum or fixed.
func (p *parser) define(n *node, t string, o map[string]any, namespace string, depth int) (*node, error) {
	n.name, _ = o["name"].(string)
	if n.name == "" {
		return nil, badSchema("a %s has no name", t)
	}
	if own, ok := o["namespace"].(string); ok {
		namespace = own
	}
	full := fullName(n.name, namespace)
	if i := lastDot(full); i >= 0 {
		namespace = full[:i]
	}
	if _, twice := p.named[full]; twice {
		return nil, badSchema("the name %q is defined twice", full)
	}
	p.named[full] = nil
	defer func() { p.named[full] = n }()
	switch t {
	case "enum":
		n.kind = kindEnum
		symbols, _ := o["symbols"].([]any)
		for _, s := range symbols {
			symbol, ok := s.(string)
			if !ok {
				return nil, badSchema("enum %s has a symbol that is no string", n.name)
			}
			n.symbols = append(n.symbols, symbol)
		}
	case "fixed":
		n.kind = kindFixed
		n.size = intOf(o["size"])
		if n.size < 0 {
			return nil, badSchema("fixed %s has no size", n.name)
		}
		if n.size > maxFixed {
			return nil, errs.New(errs.Unsupported, "its type %s has %d bytes; the most is %d", n.name, n.size, maxFixed)
		}
	default:
		n.kind = kindRecord
		fields, ok := o["fields"].([]any)
		if !ok {
			return nil, badSchema("record %s has no fields", n.name)
		}
		for _, raw := range fields {
			field, ok := raw.(map[string]any)
			if !ok {
				return nil, badSchema("record %s has a field that is no object", n.name)
			}
			f := &fieldNode{id: intOf(field["field-id"])}
			if f.name, ok = field["name"].(string); !ok {
				return nil, badSchema("record %s has a field without name", n.name)
			}
			var err error
			if f.node, err = p.parse(field["type"], namespace, depth+1); err != nil {
				return nil, err
			}
			n.fields = append(n.fields, f)
		}
	}
	return finish(n)
}

func lastDot(name string) int {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			return i
		}
	}
	return -1
}

// intOf is a non-negative whole number of JSON, or noID.
func intOf(raw any) int {
	f, ok := raw.(float64)
	if !ok || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return noID
	}
	return int(f)
}

// finish computes what follows from a node's parts.
func finish(n *node) (*node, error) {
	n.nodes = 1
	add := func(kid *node) { n.nodes = min(n.nodes+kid.nodes, maxNodes+1) }
	switch n.kind {
	case kindNull:
	case kindFixed:
		n.minSize = n.size
	case kindFloat:
		n.minSize = 4
	case kindDouble:
		n.minSize = 8
	case kindRecord:
		for _, f := range n.fields {
			add(f.node)
			n.minSize = min(n.minSize+f.node.minSize, math.MaxInt32)
		}
	case kindUnion:
		n.minSize = math.MaxInt32
		for _, b := range n.branches {
			add(b)
			n.minSize = min(n.minSize, 1+b.minSize)
		}
	case kindArray, kindMap:
		add(n.item)
		n.minSize = 1
	default:
		n.minSize = 1
	}
	return n, nil
}

func (n *node) String() string {
	switch n.kind {
	case kindRecord, kindEnum, kindFixed:
		return fmt.Sprintf("%s %s", [...]string{kindRecord: "record", kindEnum: "enum", kindFixed: "fixed"}[n.kind], n.name)
	case kindArray:
		return fmt.Sprintf("array of %s", n.item)
	case kindMap:
		return fmt.Sprintf("map of %s", n.item)
	case kindUnion:
		return fmt.Sprintf("union %s", n.branches)
	}
	for name, k := range primitives {
		if k == n.kind {
			return name
		}
	}
	return "unknown"
}
