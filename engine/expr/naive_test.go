package expr

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// naive is a second evaluator, row by row and straight from the rules: the
// modes of the package comment, literals by Iceberg's order of values. It
// shares nothing with the compiled form.
type naive struct {
	mode Mode
	// row has the values by column name, nil for null.
	row map[string]iceberg.Literal
}

func (e naive) matches(x *Expr) bool {
	switch e.mode {
	case Iceberg:
		return e.iceberg(x, false)
	case PyIcebergScan:
		return e.kleene(x) == yes
	}
	// The rows a delete keeps: the filter is false, or a column is null or NaN
	// that no is-null or is-nan mentions. Only what is left of the filter after
	// constants are folded counts.
	x = simplified(x)
	tested := map[string]map[Op]bool{}
	predicates(x, func(p *Expr) {
		if tested[p.ref.name] == nil {
			tested[p.ref.name] = map[Op]bool{}
		}
		tested[p.ref.name][p.op] = true
	})
	for name, ops := range tested {
		value := e.row[name]
		if value == nil && !ops[OpIsNull] && !ops[OpNotNull] {
			return false
		}
		if isNaN(value) && !ops[OpIsNaN] && !ops[OpNotNaN] {
			return false
		}
	}
	return e.kleene(x) != no
}

// simplified folds constants as pyiceberg's constructors do.
func simplified(x *Expr) *Expr {
	switch x.op {
	case OpNot:
		return Not(simplified(x.args[0]))
	case OpAnd, OpOr:
		var args []*Expr
		for _, a := range x.args {
			a = simplified(a)
			if a.op == OpFalse && x.op == OpAnd || a.op == OpTrue && x.op == OpOr {
				return a
			}
			if a.op != OpTrue && a.op != OpFalse {
				args = append(args, a)
			}
		}
		return nary(x.op, args)
	case OpIn, OpNotIn:
		if x.values.len() == 0 {
			return map[Op]*Expr{OpIn: False(), OpNotIn: True()}[x.op]
		}
	case OpIsNaN, OpNotNaN:
		if !isFloat[x.ref.name] {
			return map[Op]*Expr{OpIsNaN: False(), OpNotNaN: True()}[x.op]
		}
	}
	return x
}

func predicates(x *Expr, f func(*Expr)) {
	for _, a := range x.args {
		predicates(a, f)
	}
	if x.op > OpNot {
		f(x)
	}
}

func (e naive) iceberg(x *Expr, negate bool) bool {
	switch x.op {
	case OpTrue, OpFalse:
		return (x.op == OpTrue) != negate
	case OpNot:
		return e.iceberg(x.args[0], !negate)
	case OpAnd, OpOr:
		any := (x.op == OpOr) != negate
		for _, a := range x.args {
			if e.iceberg(a, negate) == any {
				return any
			}
		}
		return !any
	}
	op, value := x.op, e.row[x.ref.name]
	if negate {
		op = map[Op]Op{
			OpIsNull: OpNotNull, OpNotNull: OpIsNull, OpIsNaN: OpNotNaN, OpNotNaN: OpIsNaN, OpEq: OpNotEq, OpNotEq: OpEq,
			OpLt: OpGtEq, OpGtEq: OpLt, OpLtEq: OpGt, OpGt: OpLtEq, OpIn: OpNotIn, OpNotIn: OpIn,
			OpStartsWith: OpNotStartsWith, OpNotStartsWith: OpStartsWith,
		}[op]
	}
	switch op {
	case OpIsNull:
		return value == nil
	case OpNotNull:
		return value != nil
	case OpIsNaN:
		return isNaN(value)
	case OpNotNaN:
		return !isNaN(value)
	}
	if value == nil {
		return op == OpNotEq || op == OpNotIn || op == OpNotStartsWith
	}
	if isNaN(value) {
		return op == OpNotEq || op == OpNotIn || op == OpGt || op == OpGtEq
	}
	return compareByOp(op, value, x.values.list, totalOrder)
}

func (e naive) kleene(x *Expr) truth {
	switch x.op {
	case OpTrue:
		return yes
	case OpFalse:
		return no
	case OpNot:
		return e.kleene(x.args[0]).not()
	case OpAnd, OpOr:
		out, ends := yes, no
		if x.op == OpOr {
			out, ends = no, yes
		}
		for _, a := range x.args {
			switch t := e.kleene(a); t {
			case ends:
				return ends
			case unknown:
				out = unknown
			}
		}
		return out
	}
	value := e.row[x.ref.name]
	switch x.op {
	case OpIsNull:
		return truthOf(value == nil)
	case OpNotNull:
		return truthOf(value != nil)
	case OpIsNaN, OpNotNaN:
		if value == nil && isFloat[x.ref.name] {
			return unknown
		}
		return truthOf(isNaN(value) == (x.op == OpIsNaN))
	case OpIn, OpNotIn:
		distinct := map[string]bool{}
		for _, l := range x.values.list {
			distinct[l.String()] = true
		}
		if len(distinct) == 0 {
			return truthOf(x.op == OpNotIn)
		}
		if len(distinct) > 1 {
			if value == nil || isNaN(value) {
				return truthOf(x.op == OpNotIn)
			}
			return truthOf(compareByOp(x.op, value, x.values.list, totalOrder))
		}
	}
	if value == nil {
		return unknown
	}
	if isNaN(value) {
		return truthOf(x.op == OpNotEq || x.op == OpNotIn)
	}
	return truthOf(compareByOp(x.op, value, x.values.list, ieeeOrder))
}

// isFloat names the float columns of the tests.
var isFloat = map[string]bool{"float": true, "double": true}

func compareByOp(op Op, value iceberg.Literal, literals []iceberg.Literal, order func(a, b iceberg.Literal) int) bool {
	in := false
	for _, l := range literals {
		in = in || order(value, l) == 0
	}
	switch op {
	case OpIn:
		return in
	case OpNotIn:
		return !in
	}
	c := order(value, literals[0])
	switch op {
	case OpEq:
		return c == 0
	case OpNotEq:
		return c != 0
	case OpLt:
		return c < 0
	case OpLtEq:
		return c <= 0
	case OpGt:
		return c > 0
	case OpGtEq:
		return c >= 0
	}
	starts := strings.HasPrefix(value.String(), literals[0].String())
	return starts == (op == OpStartsWith)
}

// totalOrder is Java's order of values.
func totalOrder(a, b iceberg.Literal) int {
	if x, ok := a.(iceberg.Float32Literal); ok {
		a = iceberg.Float64Literal(x)
	}
	if y, ok := b.(iceberg.Float32Literal); ok {
		b = iceberg.Float64Literal(y)
	}
	if x, ok := a.(iceberg.Float64Literal); ok {
		y := b.(iceberg.Float64Literal)
		if x == 0 && y == 0 {
			sign := func(f iceberg.Float64Literal) int {
				if math.Signbit(float64(f)) {
					return 0
				}
				return 1
			}
			return sign(x) - sign(y)
		}
	}
	return ieeeOrder(a, b)
}

func ieeeOrder(a, b iceberg.Literal) int {
	if x, ok := a.(iceberg.Float32Literal); ok {
		a = iceberg.Float64Literal(x)
	}
	if y, ok := b.(iceberg.Float32Literal); ok {
		b = iceberg.Float64Literal(y)
	}
	switch x := a.(type) {
	case iceberg.BoolLiteral:
		n := map[bool]int{true: 1}
		return n[bool(x)] - n[bool(b.(iceberg.BoolLiteral))]
	case iceberg.Int32Literal:
		return cmp.Compare(x, b.(iceberg.Int32Literal))
	case iceberg.Int64Literal:
		return cmp.Compare(x, b.(iceberg.Int64Literal))
	case iceberg.Float64Literal:
		return cmp.Compare(x, b.(iceberg.Float64Literal))
	case iceberg.DateLiteral:
		return cmp.Compare(x, b.(iceberg.DateLiteral))
	case iceberg.TimeLiteral:
		return cmp.Compare(x, b.(iceberg.TimeLiteral))
	case iceberg.TimestampLiteral:
		return cmp.Compare(x, b.(iceberg.TimestampLiteral))
	case iceberg.TimestampNsLiteral:
		return cmp.Compare(x, b.(iceberg.TimestampNsLiteral))
	case iceberg.DecimalLiteral:
		return decimal128.Num(x.Val).Cmp(b.(iceberg.DecimalLiteral).Val)
	case iceberg.StringLiteral:
		return cmp.Compare(x, b.(iceberg.StringLiteral))
	case iceberg.BinaryLiteral:
		return bytes.Compare(x, b.(iceberg.BinaryLiteral))
	case iceberg.FixedLiteral:
		return bytes.Compare(x, b.(iceberg.FixedLiteral))
	case iceberg.UUIDLiteral:
		y := b.(iceberg.UUIDLiteral)
		return bytes.Compare(x[:], y[:])
	}
	panic(a)
}
