package expr

import (
	"math"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// maxNodes bounds the size of an expression. One that shares its children many
// times over may be far larger than the memory it takes, until it is bound.
const maxNodes = 20_000_000

// node is a bound expression before a mode is chosen. Its depth is bounded.
type node struct {
	op   Op
	args []*node
	col  *column
	// lit and where are the literal of a comparison.
	lit   datum
	where place
	// set are the literals of in and not in that the column can hold.
	set *valueSet
}

// Bind resolves the columns of the expression in a schema and converts its
// literals to their types.
func (e *Expr) Bind(s *iceberg.Schema, caseSensitive bool) (*Bound, error) {
	if e.depth > maxDepth {
		return nil, errs.New(errs.InvalidArgument, "filter: operations nest more than %d deep; write it with in, or with flat and/or", maxDepth)
	}
	if e.below >= maxNodes {
		return nil, errs.New(errs.InvalidArgument, "filter: more than %d terms", maxNodes)
	}
	b := &binder{index: indexColumns(s, caseSensitive), columns: map[int]*column{}}
	root, err := b.bind(e)
	if err != nil {
		return nil, err
	}
	return newBound(root, b.columns), nil
}

type binder struct {
	index   *columnIndex
	columns map[int]*column
}

func (b *binder) bind(e *Expr) (*node, error) {
	if e.values != nil && !e.op.isComparison() && !e.op.isSet() {
		return nil, errs.New(errs.InvalidArgument, "filter: %s is not a comparison", e.op)
	}
	switch e.op {
	case OpTrue, OpFalse:
		return &node{op: e.op}, nil
	case OpAnd, OpOr, OpNot:
		return b.bindArgs(e)
	}
	col, err := b.index.find(e.ref)
	if err != nil {
		return nil, err
	}
	if known, ok := b.columns[col.id]; ok {
		col = known
	} else {
		b.columns[col.id] = col
	}
	n := &node{op: e.op, col: col}
	switch {
	case e.op.isUnary():
	case e.op.isComparison():
		err = n.bindComparison(e.values)
	default:
		err = n.bindSet(e.values)
	}
	return n, err
}

// bindArgs binds the children of and, or, not. Children with the same
// operation are merged without recursion: such chains may be millions long.
func (b *binder) bindArgs(e *Expr) (*node, error) {
	n := &node{op: e.op}
	pending := [][]*Expr{e.args}
	for len(pending) > 0 {
		last := len(pending) - 1
		if len(pending[last]) == 0 {
			pending = pending[:last]
			continue
		}
		arg := pending[last][0]
		pending[last] = pending[last][1:]
		if arg.op == e.op && e.op != OpNot {
			pending = append(pending, arg.args)
			continue
		}
		bound, err := b.bind(arg)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, bound)
	}
	return n, nil
}

func (n *node) bindComparison(values *literals) error {
	if values.len() != 1 {
		return errs.New(errs.InvalidArgument, "filter: %s on column %q takes one literal, not %d", n.op, n.col.name, values.len())
	}
	if n.op == OpStartsWith || n.op == OpNotStartsWith {
		switch n.col.typ.(type) {
		case iceberg.StringType, iceberg.BinaryType, iceberg.UnknownType:
		default:
			return errs.New(errs.InvalidArgument, "filter: %s on column %q, which is not a string but %s", n.op, n.col.name, n.col.typ)
		}
	}
	lit, where, err := n.col.convert(values.at(0))
	n.lit, n.where = lit, where
	return err
}

func (n *node) bindSet(values *literals) error {
	if n.col.kind == kindInt && values.ints != nil {
		if lo, hi, ok := integerRange(values.typ, n.col.typ); ok {
			ints := make([]int64, 0, len(values.ints))
			for _, v := range values.ints {
				if v >= lo && v <= hi {
					ints = append(ints, v)
				}
			}
			n.set = newIntSet(kindInt, ints)
			return nil
		}
	}
	if _, isString := n.col.typ.(iceberg.StringType); isString && values.strs != nil {
		n.set = newStringSet(append([]string(nil), values.strs...))
		return nil
	}
	data := make([]datum, 0, values.len())
	for i := range values.len() {
		d, where, err := n.col.convert(values.at(i))
		if err != nil {
			return err
		}
		if where == inRange {
			data = append(data, d)
		}
	}
	n.set = newSet(n.col.kind, data)
	return nil
}

// convert brings a literal to the column's type.
func (c *column) convert(lit iceberg.Literal) (datum, place, error) {
	switch {
	case lit == nil:
		return datum{}, 0, errs.New(errs.InvalidArgument, "filter: column %q is compared with null; use is-null or not-null", c.name)
	case isNaN(lit):
		return datum{}, 0, comparedWithNaN(c.name)
	}
	if c.kind == kindNull {
		return datum{}, inRange, nil
	}
	converted, where, err := convert(lit, c.typ)
	if err != nil {
		return datum{}, 0, errs.New(errs.InvalidArgument, "filter: column %q is of type %s and cannot be compared with the %s literal %.100q: %v",
			c.name, c.typ, literalType(lit), lit.String(), err)
	}
	if where != inRange {
		return datum{}, where, nil
	}
	d, ok := datumOf(converted)
	if !ok {
		return datum{}, 0, comparedWithNaN(c.name)
	}
	return d, inRange, nil
}

func isNaN(lit iceberg.Literal) bool {
	switch v := lit.(type) {
	case iceberg.Float32Literal:
		return math.IsNaN(float64(v))
	case iceberg.Float64Literal:
		return math.IsNaN(float64(v))
	}
	return false
}

func comparedWithNaN(column string) error {
	return errs.New(errs.InvalidArgument, "filter: column %q is compared with NaN, which has no order; use is-nan or not-nan", column)
}

func literalType(lit iceberg.Literal) string {
	if _, ok := lit.(iceberg.DecimalLiteral); ok {
		return "decimal"
	}
	return lit.Type().String()
}

// integerRange returns which integers of one type are values of another, if
// such a conversion leaves them as they are.
func integerRange(from, to iceberg.Type) (lo, hi int64, ok bool) {
	isLong := from.Equals(iceberg.PrimitiveTypes.Int64) || from.Equals(iceberg.PrimitiveTypes.Int32)
	switch to.(type) {
	case iceberg.BooleanType:
		return 0, 0, false
	case iceberg.Int32Type:
		return math.MinInt32, math.MaxInt32, isLong
	case iceberg.DateType:
		return math.MinInt32, math.MaxInt32, isLong || from.Equals(to)
	case iceberg.Int64Type:
		return math.MinInt64, math.MaxInt64, isLong
	}
	return math.MinInt64, math.MaxInt64, isLong || sameClock(from, to)
}

// sameClock: timestamps with and without a zone are written alike.
func sameClock(a, b iceberg.Type) bool {
	clock := func(t iceberg.Type) int {
		switch t.(type) {
		case iceberg.TimeType:
			return 1
		case iceberg.TimestampType, iceberg.TimestampTzType:
			return 2
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return 3
		}
		return 0
	}
	return clock(a) != 0 && clock(a) == clock(b)
}
