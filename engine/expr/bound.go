package expr

import (
	"maps"
	"slices"
	"sync"

	"github.com/apache/iceberg-go"
)

// Bound is an expression bound to the columns of a schema by field id. It is
// immutable and may be shared by goroutines. A nil *Bound matches every row.
//
// A Bound that Residual or WithConstants returned is for the mode in which it
// was made, and panics in another.
type Bound struct {
	// rules has the compiled expression of every mode.
	rules [len(modeNames)]func() *rule
	ids   []int
	// written is the mode whose rule String renders.
	written Mode
	// size is the memory held before compilation.
	size int64
}

func newBound(root *node, columns map[int]*column) *Bound {
	b := &Bound{ids: slices.Sorted(maps.Keys(columns))}
	for mode := range b.rules {
		b.rules[mode] = sync.OnceValue(func() *rule { return compile(root, Mode(mode)) })
	}
	root.visit(func(n *node) {
		if n.set != nil {
			b.size += n.set.memorySize()
		}
		b.size += nodeSize
	})
	return b
}

// nodeSize is about what one predicate takes, bound and compiled.
const nodeSize = 512

// newBoundRule wraps a rule of one mode; nil if it is always true.
func newBoundRule(r *rule, mode Mode) *Bound {
	if r == ruleTrue {
		return nil
	}
	b := &Bound{written: mode}
	columns := map[int]bool{}
	r.visit(func(r *rule) {
		switch r.op {
		case opTest:
			columns[r.test.col.id] = true
		case opTuple:
			for _, c := range r.tuple.columns {
				columns[c.id] = true
			}
		}
	})
	b.ids = slices.Sorted(maps.Keys(columns))
	for m := range b.rules {
		b.rules[m] = func() *rule { panic("filter of mode " + mode.String() + " used in mode " + Mode(m).String()) }
	}
	b.rules[mode] = func() *rule { return r }
	return b
}

func (b *Bound) rule(mode Mode) *rule {
	if b == nil {
		return ruleTrue
	}
	return b.rules[mode]()
}

// visit calls f for every rule that looks at rows.
func (r *rule) visit(f func(*rule)) {
	if r.op == opTest || r.op == opTuple {
		f(r)
	}
	for _, a := range r.args {
		a.visit(f)
	}
}

// FieldIDs are the field ids of the columns that Evaluate may ask for,
// ascending.
func (b *Bound) FieldIDs() []int {
	if b == nil {
		return nil
	}
	return slices.Clone(b.ids)
}

// MemorySize is about how many bytes the expression holds, mostly literals. A
// residual shares them with the expression that it was made from.
func (b *Bound) MemorySize() int64 {
	if b == nil {
		return 0
	}
	return b.size
}

// AlwaysTrue reports whether every row matches whatever its values.
func (b *Bound) AlwaysTrue(mode Mode) bool { return b.rule(mode) == ruleTrue }

// AlwaysFalse reports whether no row matches whatever its values.
func (b *Bound) AlwaysFalse(mode Mode) bool { return b.rule(mode) == ruleFalse }

// WithConstants replaces the tests of columns that a file does not have by
// their outcome. constant returns the value of such a column in every row, nil
// for null, and false for a column that the file has. The result is for the
// same mode only; nil when every row matches.
func (b *Bound) WithConstants(mode Mode, constant func(fieldID int) (iceberg.Literal, bool)) *Bound {
	return newBoundRule(b.rule(mode).replace(func(r *rule) *rule {
		switch r.op {
		case opTest:
			if lit, ok := constant(r.test.col.id); ok {
				return r.test.ofConstant(lit)
			}
		case opTuple:
			return r.tuple.withConstants(constant, r)
		}
		return r
	}), mode)
}

// ofConstant is the outcome of a test on a column that has one value; the test
// itself if the value is none of the column's type.
func (t *test) ofConstant(lit iceberg.Literal) *rule {
	if lit == nil {
		return constantRule(t.absent)
	}
	if isNaN(lit) {
		return constantRule(t.nan)
	}
	d, where, err := t.col.convert(lit)
	if err != nil || where != inRange {
		return &rule{op: opTest, test: t}
	}
	return constantRule(t.values.contains(d))
}

// withConstants drops the combinations that the constant columns rule out. What
// is left still asks for all columns, so the outcome is false or r itself
// unless all are constant.
func (t *tupleTest) withConstants(constant func(fieldID int) (iceberg.Literal, bool), r *rule) *rule {
	var key []byte
	constants := 0
	for i, c := range t.columns {
		lit, ok := constant(c.id)
		if !ok {
			continue
		}
		if t.each[i].ofConstant(lit) == ruleFalse {
			return ruleFalse
		}
		d, where, err := c.convert(lit)
		if err != nil || where != inRange {
			return r
		}
		constants++
		key = c.kind.appendKey(key, d)
	}
	if constants < len(t.columns) {
		return r
	}
	_, ok := t.keys[string(key)]
	return constantRule(ok)
}

func constantRule(value bool) *rule {
	if value {
		return ruleTrue
	}
	return ruleFalse
}

// replace rebuilds a rule with other tests.
func (r *rule) replace(f func(*rule) *rule) *rule {
	switch r.op {
	case OpAnd, OpOr:
		ends, skips := ruleFalse, ruleTrue
		if r.op == OpOr {
			ends, skips = skips, ends
		}
		var args []*rule
		for _, a := range r.args {
			switch a = a.replace(f); a {
			case ends:
				return ends
			case skips:
			default:
				args = append(args, a)
			}
		}
		switch len(args) {
		case 0:
			return skips
		case 1:
			return args[0]
		}
		return &rule{op: r.op, args: args}
	case opTest, opTuple:
		return f(r)
	}
	return r
}
