package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// ParseIcebergJSON reads an expression as Iceberg's REST catalog API writes it:
//
//	{"type": "and", "left": {"type": "eq", "term": "id", "value": 5}, "right": {"type": "not-null", "term": "ts"}}
//
// Literals have no type there: a number, a string or a boolean takes the type
// of its column when the expression is bound, so that "2024-01-31" is a date
// and "00ff" is two bytes.
//
// and, or and not nest in this form. They are read with a stack on the heap, so
// that a chain of any length is fine.
func ParseIcebergJSON(b []byte) (*Expr, error) {
	p := &restParser{dec: json.NewDecoder(bytes.NewReader(b))}
	p.dec.UseNumber()
	e, err := p.parse()
	if err == nil {
		if _, after := p.dec.Token(); after != io.EOF {
			err = errors.New("more after the expression")
		}
	}
	if err != nil {
		code := errs.CodeOf(err)
		if code == errs.Internal {
			code = errs.InvalidArgument
		}
		return nil, errs.New(code, "filter: %s", err.Error())
	}
	return e, nil
}

type restParser struct {
	dec *json.Decoder
	// open are the objects that have begun and not ended.
	open []*restNode
}

// restNode is an object of the JSON form.
type restNode struct {
	given              map[string]bool
	typ                string
	left, right, child *Expr
	// awaited is the field for the expression that is being read.
	awaited             **Expr
	term, value, values json.RawMessage
}

func (p *restParser) parse() (*Expr, error) {
	done, err := p.begin()
	for err == nil {
		if done != nil {
			if len(p.open) == 0 {
				return done, nil
			}
			*p.open[len(p.open)-1].awaited = done
		}
		top := p.open[len(p.open)-1]
		if p.dec.More() {
			done, err = p.field(top)
			continue
		}
		if _, err = p.dec.Token(); err != nil {
			break
		}
		p.open = p.open[:len(p.open)-1]
		done, err = top.expr()
	}
	var syntax *json.SyntaxError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &syntax) {
		return nil, errors.New(jsonError(err))
	}
	return nil, err
}

// begin reads a whole expression if it is a constant, or the beginning of one.
func (p *restParser) begin() (*Expr, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case true:
		return True(), nil
	case false:
		return False(), nil
	case json.Delim('{'):
		p.open = append(p.open, &restNode{given: map[string]bool{}})
		return nil, nil
	}
	return nil, errors.New("an expression is an object or a boolean")
}

// field reads a field of an object, or its beginning.
func (p *restParser) field(n *restNode) (*Expr, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	name := t.(string)
	if n.given[name] {
		return nil, errors.New("field " + strconv.Quote(name) + " is given twice")
	}
	n.given[name] = true
	switch name {
	case "left":
		n.awaited = &n.left
		return p.begin()
	case "right":
		n.awaited = &n.right
		return p.begin()
	case "child":
		n.awaited = &n.child
		return p.begin()
	case "type":
		if p.dec.Decode(&n.typ) != nil {
			return nil, errors.New(`field "type" is not a string`)
		}
		return nil, nil
	case "term":
		return nil, p.dec.Decode(&n.term)
	case "value":
		return nil, p.dec.Decode(&n.value)
	case "values":
		return nil, p.dec.Decode(&n.values)
	}
	return nil, errors.New("unknown field " + strconv.Quote(name))
}

// expr makes the expression of a complete object.
func (n *restNode) expr() (*Expr, error) {
	name := strings.ReplaceAll(strings.ToLower(n.typ), "_", "-")
	if name == "literal" {
		name = string(n.value) // true or false
	}
	op, ok := opByName[name]
	if !ok {
		return nil, errors.New("unknown operation " + strconv.Quote(n.typ))
	}
	missing := func(field string) error {
		return errors.New(name + ` without "` + field + `"`)
	}
	var e *Expr
	switch op {
	case OpTrue:
		return True(), nil
	case OpFalse:
		return False(), nil
	case OpAnd, OpOr:
		if n.left == nil || n.right == nil {
			return nil, missing("left\" and \"right")
		}
		e = nary(op, []*Expr{n.left, n.right})
	case OpNot:
		if n.child == nil {
			return nil, missing("child")
		}
		e = Not(n.child)
	default:
		return n.predicate(op, missing)
	}
	if e.depth > maxDepth {
		return nil, errors.New("operations nest more than " + strconv.Itoa(maxDepth) + " deep; write it with in, or with flat and/or")
	}
	return e, nil
}

func (n *restNode) predicate(op Op, missing func(string) error) (*Expr, error) {
	if n.term == nil {
		return nil, missing("term")
	}
	column, err := restTerm(n.term)
	if err != nil {
		return nil, err
	}
	e := &Expr{op: op, ref: ref{name: column}}
	switch {
	case op.isComparison():
		if n.value == nil {
			return nil, missing("value")
		}
		lit, err := restLiteral(n.value)
		if err != nil {
			return nil, err
		}
		e.values = literalsOf(lit)
	case op.isSet():
		var list []json.RawMessage
		if json.Unmarshal(n.values, &list) != nil {
			return nil, missing("values")
		}
		e.values = &literals{list: make([]iceberg.Literal, len(list))}
		for i, raw := range list {
			if e.values.list[i], err = restLiteral(raw); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

// restTerm reads the term of a predicate: a name, or a reference object.
func restTerm(raw json.RawMessage) (string, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name, nil
	}
	var term struct{ Type, Term, Transform string }
	if json.Unmarshal(raw, &term) != nil {
		return "", errors.New("a term is a column name or a reference")
	}
	if term.Type == "reference" && term.Term != "" {
		return term.Term, nil
	}
	return "", errs.New(errs.Unsupported, "a predicate on the transform %s of a column is not supported", term.Transform)
}

// restLiteral reads a literal: a JSON value, or an object that has it as "value".
func restLiteral(raw json.RawMessage) (iceberg.Literal, error) {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '{' {
		var object struct {
			Type  string
			Value json.RawMessage
		}
		if json.Unmarshal(raw, &object) != nil || object.Type != "literal" || object.Value == nil {
			return nil, errors.New("not a literal: " + cut(raw))
		}
		raw = bytes.TrimSpace(object.Value)
	}
	switch {
	case string(raw) == "true":
		return iceberg.BoolLiteral(true), nil
	case string(raw) == "false":
		return iceberg.BoolLiteral(false), nil
	case len(raw) > 0 && raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return textLiteral{iceberg.StringLiteral(s)}, nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return iceberg.Int64Literal(n), nil
	}
	if len(raw) <= maxDecimalText {
		if n, ok := new(big.Int).SetString(string(raw), 10); ok {
			return hugeLiteral{n}, nil
		}
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil {
			return iceberg.Float64Literal(f), nil
		}
	}
	return nil, errors.New("not a literal: " + cut(raw))
}

// cut shortens a piece of a request for a message.
func cut(raw []byte) string {
	const most = 60
	if len(raw) > most {
		return string(raw[:most]) + "..."
	}
	return string(raw)
}
