package expr

import (
	"math"

	"github.com/apache/iceberg-go"
)

// Op is the operation of an expression.
type Op int

const (
	OpTrue Op = iota
	OpFalse
	OpAnd
	OpOr
	OpNot
	OpIsNull
	OpNotNull
	OpIsNaN
	OpNotNaN
	OpEq
	OpNotEq
	OpLt
	OpLtEq
	OpGt
	OpGtEq
	OpStartsWith
	OpNotStartsWith
	OpIn
	OpNotIn
)

// opNames are the names of the wire form and of Iceberg's REST expressions.
var opNames = [...]string{
	OpTrue: "true", OpFalse: "false", OpAnd: "and", OpOr: "or", OpNot: "not",
	OpIsNull: "is-null", OpNotNull: "not-null", OpIsNaN: "is-nan", OpNotNaN: "not-nan",
	OpEq: "eq", OpNotEq: "not-eq", OpLt: "lt", OpLtEq: "lt-eq", OpGt: "gt", OpGtEq: "gt-eq",
	OpStartsWith: "starts-with", OpNotStartsWith: "not-starts-with", OpIn: "in", OpNotIn: "not-in",
}

var opByName = func() map[string]Op {
	m := make(map[string]Op, len(opNames))
	for op, name := range opNames {
		m[name] = Op(op)
	}
	return m
}()

func (o Op) String() string {
	if o >= 0 && int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

// isUnary: an operation on a column without a literal.
func (o Op) isUnary() bool { return o >= OpIsNull && o <= OpNotNaN }

// isComparison: an operation on a column and one literal.
func (o Op) isComparison() bool { return o >= OpEq && o <= OpNotStartsWith }

// isSet: an operation on a column and a set of literals.
func (o Op) isSet() bool { return o == OpIn || o == OpNotIn }

// maxDepth bounds the nesting of an expression, and with it every recursion
// of this package. Merged operations count once.
const maxDepth = 500

// Expr is an immutable predicate whose columns are names or field ids and
// whose literals are as they were given. It may be shared by goroutines.
type Expr struct {
	op Op
	// args are the children of and, or, not.
	args []*Expr
	ref  ref
	// values are the literals: one for a comparison, any number for a set.
	values *literals
	// depth is how deep the expression nests, and-in-and and or-in-or counted
	// once.
	depth int
	// below is how many nodes are below this one; one that is shared counts
	// each time.
	below int64
}

// ref names a column: by field id if hasID, else by name.
type ref struct {
	name  string
	id    int
	hasID bool
}

var (
	exprTrue  = &Expr{op: OpTrue}
	exprFalse = &Expr{op: OpFalse}
)

// True matches every row.
func True() *Expr { return exprTrue }

// False matches no row.
func False() *Expr { return exprFalse }

// And matches the rows that all args match; without args, every row.
func And(args ...*Expr) *Expr { return nary(OpAnd, args) }

// Or matches the rows that any of args matches; without args, none.
func Or(args ...*Expr) *Expr { return nary(OpOr, args) }

func nary(op Op, args []*Expr) *Expr {
	switch len(args) {
	case 0:
		if op == OpAnd {
			return exprTrue
		}
		return exprFalse
	case 1:
		return args[0]
	}
	e := &Expr{op: op, args: append([]*Expr(nil), args...)}
	for _, a := range args {
		e.below = min(e.below+1+a.below, math.MaxInt32)
		depth := a.depth
		if a.op != op {
			depth++
		}
		e.depth = max(e.depth, depth)
	}
	return e
}

// Not negates by the rules of the mode in which the expression is used, which
// in no mode is the complement for rows with nulls.
func Not(arg *Expr) *Expr {
	switch arg.op {
	case OpTrue:
		return exprFalse
	case OpFalse:
		return exprTrue
	case OpNot:
		return arg.args[0]
	}
	return &Expr{op: OpNot, args: []*Expr{arg}, depth: arg.depth + 1, below: arg.below + 1}
}

// IsNull matches rows in which the column is null.
func IsNull(column string) *Expr { return &Expr{op: OpIsNull, ref: ref{name: column}} }

// NotNull matches rows in which the column is not null.
func NotNull(column string) *Expr { return &Expr{op: OpNotNull, ref: ref{name: column}} }

// IsNaN matches rows in which the column is NaN; none if it is no float column.
func IsNaN(column string) *Expr { return &Expr{op: OpIsNaN, ref: ref{name: column}} }

// NotNaN matches rows in which the column is not NaN.
func NotNaN(column string) *Expr { return &Expr{op: OpNotNaN, ref: ref{name: column}} }

// Compare matches rows by comparing a column with a literal; op is one of OpEq
// to OpNotStartsWith. Bind reports any other op, and a nil literal.
func Compare(op Op, column string, value iceberg.Literal) *Expr {
	return &Expr{op: op, ref: ref{name: column}, values: literalsOf(value)}
}

// In matches rows in which the column is one of values.
func In(column string, values ...iceberg.Literal) *Expr {
	return &Expr{op: OpIn, ref: ref{name: column}, values: literalsOf(values...)}
}

// NotIn matches rows in which the column is none of values.
func NotIn(column string, values ...iceberg.Literal) *Expr {
	return &Expr{op: OpNotIn, ref: ref{name: column}, values: literalsOf(values...)}
}
