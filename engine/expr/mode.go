package expr

import (
	"github.com/icebergexec/icebergexec/engine/errs"
)

// Mode says which rows a comparison with null, NaN or -0.0 matches; see the
// package comment.
type Mode int

const (
	// Iceberg is the mode of the engine's own interfaces.
	Iceberg Mode = iota
	// PyIcebergScan matches the rows that a pyiceberg scan returns.
	PyIcebergScan
	// PyIcebergDelete matches the rows that a pyiceberg delete removes.
	PyIcebergDelete
)

var modeNames = [...]string{Iceberg: "iceberg", PyIcebergScan: "pyiceberg-scan", PyIcebergDelete: "pyiceberg-delete"}

func (m Mode) String() string {
	if m >= 0 && int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// ParseMode reads the name of a mode: iceberg, pyiceberg-scan or
// pyiceberg-delete.
func ParseMode(name string) (Mode, error) {
	for m, n := range modeNames {
		if n == name {
			return Mode(m), nil
		}
	}
	return 0, errs.New(errs.InvalidArgument, `filter mode %q; known are "iceberg", "pyiceberg-scan" and "pyiceberg-delete"`, name)
}

// truth is the outcome of a comparison in three-valued logic.
type truth int8

const (
	no truth = iota
	yes
	unknown
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func (t truth) not() truth {
	switch t {
	case no:
		return yes
	case yes:
		return no
	}
	return unknown
}

// outcome is what a predicate says of each class of rows.
type outcome struct {
	// null is for rows in which the column is null, absent for those of files
	// that do not have the column and no default for it.
	null, absent truth
	nan          bool
	values       values
}

func (o outcome) not() outcome {
	o.null, o.absent, o.nan = o.null.not(), o.absent.not(), !o.nan
	o.values.inverted = !o.values.inverted
	return o
}

// negated are the operations that Iceberg puts in the place of a negation.
var negated = map[Op]Op{
	OpIsNull: OpNotNull, OpNotNull: OpIsNull, OpIsNaN: OpNotNaN, OpNotNaN: OpIsNaN,
	OpEq: OpNotEq, OpNotEq: OpEq, OpLt: OpGtEq, OpGtEq: OpLt, OpGt: OpLtEq, OpLtEq: OpGt,
	OpStartsWith: OpNotStartsWith, OpNotStartsWith: OpStartsWith, OpIn: OpNotIn, OpNotIn: OpIn,
}

// icebergOutcome is the outcome in Iceberg mode of a predicate, or of the one
// that Iceberg puts in its place if it is negated.
func (n *node) icebergOutcome(negate bool) outcome {
	op := n.op
	if negate {
		op = negated[op]
	}
	null, nan := false, false
	switch op {
	case OpIsNull:
		null = true
	case OpNotNull:
		nan = true
	case OpIsNaN:
		nan = true
	case OpNotNaN:
		null = true
	case OpGt, OpGtEq:
		nan = true
	case OpNotEq, OpNotIn, OpNotStartsWith:
		null, nan = true, true
	}
	return outcome{null: truthOf(null), absent: truthOf(null), nan: nan, values: n.matching(op, false)}
}

// pyIcebergOutcome is the outcome of a predicate in the row filter of
// pyiceberg, which compares by Arrow's kernels.
func (n *node) pyIcebergOutcome(negate bool) outcome {
	op := n.op
	if op.isSet() && n.set.len() == 1 {
		// pyiceberg makes a comparison of it.
		op = map[Op]Op{OpIn: OpEq, OpNotIn: OpNotEq}[op]
	}
	o := outcome{null: unknown, absent: no, values: n.matching(op, true)}
	switch op {
	case OpIsNull:
		o.null, o.absent = yes, yes
	case OpNotNull:
		o.null, o.nan = no, true
	case OpIsNaN:
		o.nan = true
	case OpNotNaN:
		o.absent = yes
	case OpNotEq:
		o.absent, o.nan = yes, true
	case OpNotStartsWith:
		o.absent = yes
	case OpIn:
		o.null = no
	case OpNotIn:
		o.null, o.absent, o.nan = yes, yes, true
	}
	if negate {
		return o.not()
	}
	return o
}

// pyIcebergConstant folds the predicates that pyiceberg decides when it binds
// them.
func (n *node) pyIcebergConstant() (truth, bool) {
	switch n.op {
	case OpIsNull, OpNotNull:
		if n.col.required {
			return truthOf(n.op == OpNotNull), true
		}
	case OpIn, OpNotIn:
		if n.set.len() == 0 {
			return truthOf(n.op == OpNotIn), true
		}
	case OpNotEq:
		return yes, n.where != inRange
	case OpEq:
		return no, n.where != inRange
	case OpLt, OpLtEq:
		return truthOf(n.where == aboveAll), n.where != inRange
	case OpGt, OpGtEq:
		return truthOf(n.where == belowAll), n.where != inRange
	}
	return n.nanConstant()
}

// nanConstant folds is-nan and not-nan on columns that are not floats.
func (n *node) nanConstant() (truth, bool) {
	if n.col.kind != kindFloat && (n.op == OpIsNaN || n.op == OpNotNaN) {
		return truthOf(n.op == OpNotNaN), true
	}
	return no, false
}

// matching is the set of values, neither null nor NaN, that an operation on
// the node's column and literals matches. In ieee, 0.0 and -0.0 are one value.
func (n *node) matching(op Op, ieee bool) values {
	v := values{kind: n.col.kind}
	switch op {
	case OpIsNull, OpIsNaN:
		v.in.empty = true
		return v
	case OpNotNull, OpNotNaN:
		return v
	case OpIn, OpNotIn:
		v.set, v.inverted = n.set, op == OpNotIn
		return v
	case OpStartsWith, OpNotStartsWith:
		v.in, v.inverted = startingWith(n.lit.b), op == OpNotStartsWith
		return v
	}

	lit := n.lit
	if n.op.isSet() {
		lit = n.set.at(0)
	}
	if n.where != inRange {
		// Nothing equals the literal, and all values are on one side of it.
		matchAll := op == OpNotEq || n.where == aboveAll && (op == OpLt || op == OpLtEq) ||
			n.where == belowAll && (op == OpGt || op == OpGtEq)
		v.in.empty = !matchAll
		return v
	}
	low, high := lit, lit
	if ieee && n.col.kind == kindFloat && (lit.n == 0 || lit.n == floatKeyOfMinusZero) {
		low.n, high.n = floatKeyOfMinusZero, 0
	}
	switch op {
	case OpEq, OpNotEq:
		v.in, v.inverted = only(v.kind, low), op == OpNotEq
		if low.n != high.n {
			v.in = interval{lo: low, hi: high, hasLo: true, hasHi: true}
		}
	case OpLt:
		v.in = lessThan(v.kind, low, false)
	case OpLtEq:
		v.in = lessThan(v.kind, high, true)
	case OpGt:
		v.in = greaterThan(v.kind, high, false)
	case OpGtEq:
		v.in = greaterThan(v.kind, low, true)
	}
	return v
}

// floatKeyOfMinusZero is floatKey(-0.0).
const floatKeyOfMinusZero = -1
