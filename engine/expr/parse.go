package expr

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Parse reads the wire form (see the package comment). sets are the Arrow
// arrays that "set" fields refer to by index; they are copied.
func Parse(wire []byte, sets ...arrow.Array) (*Expr, error) {
	dec := json.NewDecoder(bytes.NewReader(wire))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil, errs.New(errs.InvalidArgument, "filter: not a JSON array of nodes")
	}
	var nodes []*Expr
	var used []bool
	for dec.More() {
		w, err := readWireNode(dec)
		if err == nil {
			var e *Expr
			if e, err = w.expr(nodes, used, sets); err == nil {
				nodes, used = append(nodes, e), append(used, false)
			}
		}
		if err != nil {
			return nil, errs.New(errs.InvalidArgument, "filter: node %d: %s", len(nodes), err.Error())
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, errs.New(errs.InvalidArgument, "filter: %s", jsonError(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errs.New(errs.InvalidArgument, "filter: more after the array of nodes")
	}
	if len(nodes) == 0 {
		return nil, errs.New(errs.InvalidArgument, "filter is empty; leave it out to keep all rows")
	}
	root := len(nodes) - 1
	for i := range root {
		if !used[i] {
			return nil, errs.New(errs.InvalidArgument, "filter: node %d is not used by any other", i)
		}
	}
	return nodes[root], nil
}

func jsonError(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the JSON ends too early"
	}
	return "not valid JSON: " + err.Error()
}

// wireFields are the fields of a node.
var wireFields = [...]string{"op", "args", "ref", "id", "type", "value", "values", "set"}

// fieldSet is a set of fields, one bit for each.
type fieldSet uint8

const (
	fieldOp fieldSet = 1 << iota
	fieldArgs
	fieldRef
	fieldID
	fieldType
	fieldValue
	fieldValues
	fieldSetIndex
)

// wireNode is one node as written. A field that was not given is nil.
type wireNode struct {
	op     *string
	args   []int
	ref    *string
	id     *int
	typ    *string
	value  json.RawMessage
	values json.RawMessage
	set    *int
	given  fieldSet
}

func readWireNode(dec *json.Decoder) (*wireNode, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, errors.New(jsonError(err))
	}
	if t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	w := &wireNode{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, errors.New(jsonError(err))
		}
		name := t.(string)
		i := slices.Index(wireFields[:], name)
		if i < 0 {
			return nil, errors.New("unknown field " + strconv.Quote(name))
		}
		if w.given&(1<<i) != 0 {
			return nil, errors.New("field " + strconv.Quote(name) + " is given twice")
		}
		w.given |= 1 << i
		into := [...]any{&w.op, &w.args, &w.ref, &w.id, &w.typ, &w.value, &w.values, &w.set}[i]
		if err := dec.Decode(into); err != nil {
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) {
				return nil, errors.New("field " + strconv.Quote(name) + " must not be a JSON " + wrong.Value)
			}
			return nil, errors.New(jsonError(err))
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New(jsonError(err))
	}
	return w, nil
}

// fields are the fields that may be given with an operation.
func (o Op) fields() fieldSet {
	switch {
	case o == OpAnd || o == OpOr || o == OpNot:
		return fieldOp | fieldArgs
	case o.isUnary():
		return fieldOp | fieldRef | fieldID
	case o.isComparison():
		return fieldOp | fieldRef | fieldID | fieldType | fieldValue
	case o.isSet():
		return fieldOp | fieldRef | fieldID | fieldType | fieldValues | fieldSetIndex
	}
	return fieldOp
}

// expr checks a node and builds its expression from those before it.
func (w *wireNode) expr(nodes []*Expr, used []bool, sets []arrow.Array) (*Expr, error) {
	if w.op == nil {
		return nil, errors.New(`field "op" is missing`)
	}
	op, ok := opByName[*w.op]
	if !ok {
		return nil, errors.New("unknown operation " + strconv.Quote(*w.op))
	}
	if stray := w.given &^ op.fields(); stray != 0 {
		return nil, errors.New("field " + strconv.Quote(wireFields[bits.TrailingZeros8(uint8(stray))]) + " does not belong to " + *w.op)
	}
	switch op {
	case OpTrue:
		return True(), nil
	case OpFalse:
		return False(), nil
	case OpAnd, OpOr, OpNot:
		return w.combination(op, nodes, used)
	}

	if (w.ref == nil) == (w.id == nil) {
		return nil, errors.New(`one of "ref" and "id" must be given`)
	}
	e := &Expr{op: op}
	if w.ref != nil {
		e.ref.name = *w.ref
	} else {
		e.ref.id, e.ref.hasID = *w.id, true
	}
	var err error
	switch {
	case op.isComparison():
		e.values, err = w.literal()
	case op.isSet():
		e.values, err = w.literalSet(sets)
	}
	return e, err
}

func (w *wireNode) combination(op Op, nodes []*Expr, used []bool) (*Expr, error) {
	if w.args == nil {
		return nil, errors.New(`field "args" is missing`)
	}
	args := make([]*Expr, len(w.args))
	for i, a := range w.args {
		if a < 0 || a >= len(nodes) {
			return nil, errors.New("argument " + strconv.Itoa(a) + " is not the index of a node before it")
		}
		if used[a] {
			return nil, errors.New("node " + strconv.Itoa(a) + " is used twice")
		}
		used[a], args[i] = true, nodes[a]
	}
	var e *Expr
	if op == OpNot {
		if len(args) != 1 {
			return nil, errors.New("not takes one argument")
		}
		e = Not(args[0])
	} else {
		e = nary(op, args)
	}
	if e.depth > maxDepth {
		return nil, errors.New("operations nest more than " + strconv.Itoa(maxDepth) + " deep; write it with in, or with flat and/or")
	}
	return e, nil
}

func (w *wireNode) literal() (*literals, error) {
	if w.typ == nil || w.value == nil {
		return nil, errors.New(`"type" and "value" must be given`)
	}
	typ, err := wireType(*w.typ)
	if err != nil {
		return nil, err
	}
	lit, err := typ.read(w.value)
	if err != nil {
		return nil, err
	}
	return literalsOf(lit), nil
}

func (w *wireNode) literalSet(sets []arrow.Array) (*literals, error) {
	if w.set != nil {
		if w.typ != nil || w.values != nil {
			return nil, errors.New(`"set" stands in the place of "type" and "values"`)
		}
		if *w.set < 0 || *w.set >= len(sets) {
			return nil, errors.New("set " + strconv.Itoa(*w.set) + " was not given")
		}
		return literalsOfArray(sets[*w.set])
	}
	if w.typ == nil || w.values == nil {
		return nil, errors.New(`"type" and "values", or "set", must be given`)
	}
	typ, err := wireType(*w.typ)
	if err != nil {
		return nil, err
	}
	return typ.readAll(w.values)
}

// wireTypeName is a type of literals in the wire form.
type wireTypeName struct {
	name string
	typ  iceberg.Type // nil for decimal and fixed, whose types have parameters
}

var wireTypes = map[string]iceberg.Type{
	"boolean": iceberg.PrimitiveTypes.Bool, "int": iceberg.PrimitiveTypes.Int32, "long": iceberg.PrimitiveTypes.Int64,
	"float": iceberg.PrimitiveTypes.Float32, "double": iceberg.PrimitiveTypes.Float64, "decimal": nil,
	"date": iceberg.PrimitiveTypes.Date, "time": iceberg.PrimitiveTypes.Time,
	"timestamp": iceberg.PrimitiveTypes.Timestamp, "timestamptz": iceberg.PrimitiveTypes.TimestampTz,
	"timestamp_ns": iceberg.PrimitiveTypes.TimestampNs, "timestamptz_ns": iceberg.PrimitiveTypes.TimestampTzNs,
	"string": iceberg.PrimitiveTypes.String, "uuid": iceberg.PrimitiveTypes.UUID,
	"fixed": nil, "binary": iceberg.PrimitiveTypes.Binary,
}

func wireType(name string) (wireTypeName, error) {
	typ, ok := wireTypes[name]
	if !ok {
		return wireTypeName{}, errors.New("unknown literal type " + strconv.Quote(name))
	}
	return wireTypeName{name, typ}, nil
}

// readAll reads a JSON array of literals.
func (t wireTypeName) readAll(raw json.RawMessage) (*literals, error) {
	switch t.typ.(type) {
	case iceberg.StringType:
		// Through pointers, so that null can be told from "".
		var list []*string
		if json.Unmarshal(raw, &list) != nil || list == nil {
			return nil, t.wrong(raw)
		}
		l := &literals{typ: t.typ, strs: make([]string, len(list))}
		for i, s := range list {
			if s == nil {
				return nil, t.wrong([]byte("null"))
			}
			l.strs[i] = *s
		}
		return l, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, errors.New(`"values" is not an array`)
	}
	if t.isInteger() {
		l := &literals{typ: t.typ, ints: make([]int64, 0, len(list))}
		for _, v := range list {
			n, err := strconv.ParseInt(string(v), 10, 64)
			if err != nil {
				break // not an integer, or one beyond 64 bits
			}
			l.ints = append(l.ints, n)
		}
		if len(l.ints) == len(list) {
			return l, nil
		}
	}
	l := &literals{list: make([]iceberg.Literal, len(list))}
	for i, v := range list {
		var err error
		if l.list[i], err = t.read(v); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// isInteger: the literal is written as an integer.
func (t wireTypeName) isInteger() bool {
	k, ok := kindOf(t.typ)
	return ok && k == kindInt && t.name != "boolean"
}

// read reads one literal.
func (t wireTypeName) read(raw json.RawMessage) (iceberg.Literal, error) {
	raw = bytes.TrimSpace(raw)
	if t.isInteger() {
		return t.readInteger(raw)
	}
	switch t.name {
	case "boolean":
		switch string(raw) {
		case "true":
			return iceberg.BoolLiteral(true), nil
		case "false":
			return iceberg.BoolLiteral(false), nil
		}
		return nil, t.wrong(raw)
	case "float", "double":
		return t.readFloat(raw)
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return nil, t.wrong(raw)
	}
	switch t.name {
	case "string":
		return iceberg.StringLiteral(*s), nil
	case "decimal":
		if d, err := parseDecimal(*s); err == nil && d.unscaled.BitLen() <= 127 {
			return iceberg.DecimalLiteral{Val: decimal128.FromBigInt(d.unscaled), Scale: d.scale}, nil
		}
	case "uuid":
		if u, err := uuid.Parse(*s); err == nil && len(*s) == 36 {
			return iceberg.UUIDLiteral(u), nil
		}
	case "fixed":
		if b, err := hex.DecodeString(*s); err == nil {
			return iceberg.FixedLiteral(b), nil
		}
	case "binary":
		if b, err := hex.DecodeString(*s); err == nil {
			return iceberg.BinaryLiteral(b), nil
		}
	}
	return nil, t.wrong(raw)
}

func (t wireTypeName) readInteger(raw []byte) (iceberg.Literal, error) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		if t.name == "date" && (n < math.MinInt32 || n > math.MaxInt32) {
			return iceberg.Int64Literal(n), nil
		}
		return integerLiteral(t.typ, n), nil
	}
	if len(raw) <= maxDecimalText {
		if n, ok := new(big.Int).SetString(string(raw), 10); ok {
			return hugeLiteral{n}, nil
		}
	}
	return nil, t.wrong(raw)
}

func (t wireTypeName) readFloat(raw []byte) (iceberg.Literal, error) {
	text := string(raw)
	switch text {
	case `"NaN"`, `"Infinity"`, `"-Infinity"`:
		text = text[1 : len(text)-1]
	default:
		if len(raw) == 0 || raw[0] == '"' || raw[0] == 'n' {
			return nil, t.wrong(raw)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, t.wrong(raw)
	}
	if t.name == "float" && (math.IsInf(f, 0) || !math.IsInf(float64(float32(f)), 0)) {
		return iceberg.Float32Literal(f), nil // else it is beyond what a float rounds to
	}
	return iceberg.Float64Literal(f), nil
}

func (t wireTypeName) wrong(raw []byte) error {
	return errors.New(cut(raw) + " is not a literal of type " + t.name)
}
