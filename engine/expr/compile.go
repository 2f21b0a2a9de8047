package expr

import (
	"slices"
)

// test is a predicate of one column in one mode: which of the rows match in
// which the column is null, absent from the file, NaN, or another value.
type test struct {
	col    *column
	null   bool
	absent bool
	nan    bool
	values values
}

// rule is a compiled expression in one mode: and, or, true, false, or a test,
// without negation.
type rule struct {
	op    Op
	args  []*rule
	test  *test
	tuple *tupleTest
}

// opTest and opTuple are the operations of a rule that looks at rows.
const (
	opTest Op = iota + OpNotIn + 1
	opTuple
)

var (
	ruleTrue  = &rule{op: OpTrue}
	ruleFalse = &rule{op: OpFalse}
)

// compile makes the rule that says which rows match in a mode.
func compile(root *node, mode Mode) *rule {
	if mode == Iceberg {
		return (&compiler{outcome: (*node).icebergOutcome}).rule(fold(root, (*node).nanConstant), false)
	}
	root = fold(root, (*node).pyIcebergConstant)
	if mode == PyIcebergScan {
		return (&compiler{outcome: (*node).pyIcebergOutcome}).rule(root, false)
	}
	return compileDelete(root)
}

// compileDelete makes the rule for the rows that a delete removes: all but
// those for which the filter is false, and but those in which a column that the
// filter compares, and does not itself test for null or NaN, is null or NaN.
func compileDelete(root *node) *rule {
	nulls, nans := map[int]bool{}, map[int]bool{} // by field id: tested for it
	var columns []*column
	root.visit(func(n *node) {
		if _, seen := nulls[n.col.id]; !seen {
			columns = append(columns, n.col)
		}
		nulls[n.col.id] = nulls[n.col.id] || n.op == OpIsNull || n.op == OpNotNull
		nans[n.col.id] = nans[n.col.id] || n.op == OpIsNaN || n.op == OpNotNaN
	})
	var keep []*rule
	for _, col := range columns {
		// pyiceberg takes is-null on a required column to be false.
		nulls[col.id] = nulls[col.id] || col.required
		null, nan := nulls[col.id], nans[col.id]
		keep = append(keep, newTest(&test{col: col, null: null, absent: null, nan: nan, values: values{kind: col.kind}}))
	}
	c := &compiler{outcome: (*node).pyIcebergOutcome, orUnknown: true, nulls: nulls, nans: nans}
	return combine(OpAnd, append([]*rule{c.rule(root, false)}, keep...))
}

// fold replaces the predicates that are constant in a mode, and simplifies.
func fold(n *node, constant func(*node) (truth, bool)) *node {
	switch n.op {
	case OpTrue, OpFalse:
		return n
	case OpNot:
		arg := fold(n.args[0], constant)
		switch arg.op {
		case OpTrue:
			return &node{op: OpFalse}
		case OpFalse:
			return &node{op: OpTrue}
		case OpNot:
			return arg.args[0]
		}
		return &node{op: OpNot, args: []*node{arg}}
	case OpAnd, OpOr:
		ends, skips := OpFalse, OpTrue
		if n.op == OpOr {
			ends, skips = skips, ends
		}
		folded := &node{op: n.op, args: make([]*node, 0, len(n.args))}
		for _, a := range n.args {
			switch a = fold(a, constant); a.op {
			case ends:
				return a
			case skips:
			default:
				folded.args = append(folded.args, a)
			}
		}
		switch len(folded.args) {
		case 0:
			return &node{op: skips}
		case 1:
			return folded.args[0]
		}
		return folded
	}
	if value, ok := constant(n); ok {
		if value == yes {
			return &node{op: OpTrue}
		}
		return &node{op: OpFalse}
	}
	return n
}

// visit calls f for every predicate.
func (n *node) visit(f func(*node)) {
	switch n.op {
	case OpTrue, OpFalse:
	case OpAnd, OpOr, OpNot:
		for _, a := range n.args {
			a.visit(f)
		}
	default:
		f(n)
	}
}

type compiler struct {
	outcome func(n *node, negate bool) outcome
	// orUnknown makes a rule of the rows for which the expression is not
	// false, rather than of those for which it is true.
	orUnknown bool
	// nulls and nans say, if not nil, for which columns null and NaN matter;
	// for others, such rows are sorted out apart from the rule.
	nulls, nans map[int]bool
}

// rule pushes negation down to the predicates, which both two- and
// three-valued logic allow.
func (c *compiler) rule(n *node, negate bool) *rule {
	switch n.op {
	case OpTrue, OpFalse:
		if (n.op == OpTrue) != negate {
			return ruleTrue
		}
		return ruleFalse
	case OpNot:
		return c.rule(n.args[0], !negate)
	case OpAnd, OpOr:
		op := n.op
		if negate {
			op = OpAnd + OpOr - op
		}
		args := make([]*rule, len(n.args))
		for i, a := range n.args {
			args[i] = c.rule(a, negate)
		}
		return combine(op, args)
	}
	o := c.outcome(n, negate)
	holds := func(t truth) bool { return t == yes || t == unknown && c.orUnknown }
	t := &test{col: n.col, null: holds(o.null), absent: holds(o.absent), nan: o.nan, values: o.values}
	if c.nulls != nil {
		t.null, t.nan = t.null && c.nulls[n.col.id], t.nan && c.nans[n.col.id]
		// A delete reads rows in the table's schema, where an absent column is null.
		t.absent = t.null
	}
	return newTest(t)
}

// newTest is the rule of a test, or a constant if the test is one.
func newTest(t *test) *rule {
	if t.col.kind != kindFloat {
		t.nan = t.null
	}
	if t.values.none() {
		t.values = values{kind: t.col.kind, in: interval{empty: true}}
	} else if t.values.all() {
		t.values = values{kind: t.col.kind}
	}
	switch {
	case !t.null && !t.absent && !t.nan && (t.values.none() || t.col.kind == kindNull):
		return ruleFalse
	case t.null && t.absent && t.nan && (t.values.all() || t.col.kind == kindNull):
		return ruleTrue
	}
	return &rule{op: opTest, test: t}
}

// combine makes the conjunction or disjunction of rules. It merges nested ones
// of the same kind, and tests of the same column where one test can say both:
// ranges under and, single values under or.
func combine(op Op, args []*rule) *rule {
	ends, skips := ruleFalse, ruleTrue
	if op == OpOr {
		ends, skips = skips, ends
	}
	flat := make([]*rule, 0, len(args))
	for _, a := range args {
		switch {
		case a == ends:
			return ends
		case a == skips:
		case a.op == op:
			flat = append(flat, a.args...)
		default:
			flat = append(flat, a)
		}
	}
	flat = mergeTests(op, mergeFlags(op, flat))
	if op == OpOr {
		flat = mergeTuples(flat)
	}
	if slices.Contains(flat, ends) {
		return ends
	}
	flat = slices.DeleteFunc(flat, func(r *rule) bool { return r == skips })
	switch len(flat) {
	case 0:
		return skips
	case 1:
		return flat[0]
	}
	return &rule{op: op, args: flat}
}

// join combines what another test of the column, under an and or an or, says of
// null, absent and NaN.
func (t *test) join(op Op, other *test) {
	if op == OpAnd {
		t.null, t.absent, t.nan = t.null && other.null, t.absent && other.absent, t.nan && other.nan
		return
	}
	t.null, t.absent, t.nan = t.null || other.null, t.absent || other.absent, t.nan || other.nan
}

// mergeFlags lets another test of the same column say what a test says that is
// only about null and NaN:
//
//	x not in (1, 2) and x is not null
//	x != 1 or x is null
func mergeFlags(op Op, args []*rule) []*rule {
	only := func(t *test) bool { return op == OpAnd && t.values.all() || op == OpOr && t.values.none() }
	flags := map[int]*test{}
	for _, a := range args {
		if a.op == opTest && only(a.test) {
			if joined := flags[a.test.col.id]; joined != nil {
				joined.join(op, a.test)
			} else {
				first := *a.test
				flags[first.col.id] = &first
			}
		}
	}
	if len(flags) == 0 {
		return args
	}
	taken := map[int]bool{}
	for i, a := range args {
		if a.op != opTest || only(a.test) || taken[a.test.col.id] {
			continue
		}
		if joined := flags[a.test.col.id]; joined != nil {
			taken[a.test.col.id] = true
			t := *a.test
			t.join(op, joined)
			args[i] = newTest(&t)
		}
	}
	return slices.DeleteFunc(args, func(a *rule) bool { return a.op == opTest && only(a.test) && taken[a.test.col.id] })
}

// merger collects the tests of one column and of one kind below an and or an
// or: single values, or ranges.
type merger struct {
	first  int // index of the first of them, which the merged test replaces
	count  int
	test   test
	points []datum
}

// mergeTests merges tests of the same column:
//
//	x = 1 or x in (2, 3)        x in (1, 2, 3)
//	x != 1 and x not in (2, 3)  x not in (1, 2, 3)
//	x >= 1 and x < 5            1 <= x < 5
func mergeTests(op Op, args []*rule) []*rule {
	type key struct {
		column int
		ranges bool
	}
	mergers := map[key]*merger{}
	for i, a := range args {
		if a.op != opTest {
			continue
		}
		t := a.test
		k := key{column: t.col.id}
		switch {
		case t.values.isPoints() && t.values.inverted == (op == OpAnd):
		case op == OpAnd && t.values.set == nil && !t.values.inverted:
			k.ranges = true
		default:
			continue
		}
		m := mergers[k]
		if m == nil {
			m = &merger{first: i, test: *t}
			mergers[k] = m
		}
		m.count++
		m.test.join(op, t)
		if k.ranges {
			m.test.values.in = m.test.values.in.intersect(t.col.kind, t.values.in)
		} else if m.count > 1 || t.values.set == nil {
			// The members of a first set are copied only if a second test joins it.
			if m.count == 2 && m.test.values.set != nil {
				m.test.values.points(func(d datum) { m.points = append(m.points, d) })
			}
			t.values.points(func(d datum) { m.points = append(m.points, d) })
		}
		if m.count > 1 {
			args[i] = nil
		}
	}
	for _, m := range mergers {
		if m.count < 2 {
			continue
		}
		if len(m.points) > 0 {
			m.test.values = values{kind: m.test.col.kind, set: newSet(m.test.col.kind, m.points), inverted: op == OpAnd}
		}
		args[m.first] = newTest(&m.test)
	}
	return slices.DeleteFunc(args, func(r *rule) bool { return r == nil })
}
