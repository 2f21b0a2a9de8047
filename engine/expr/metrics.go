package expr

// Count is a statistic that may be unknown, as is the zero Count.
type Count struct {
	N     int64
	Known bool
}

// KnownCount is a known statistic.
func KnownCount(n int64) Count { return Count{N: n, Known: true} }

// is reports whether the count is known to be n.
func (c Count) is(n int64) bool { return c.Known && c.N == n }

// ColumnMetrics are the statistics of one column over some rows. The zero value
// means that nothing is known.
type ColumnMetrics struct {
	// ValueCount counts all values, nulls and NaNs too.
	ValueCount, NullCount, NaNCount Count
	// Lower and Upper bound all values that are neither null nor NaN, in
	// Iceberg's single-value serialisation of the column's type or of a type
	// it was promoted from. They may be truncated. nil is unknown.
	Lower, Upper []byte
}

// Metrics are the statistics of a file or of a part of it.
type Metrics struct {
	RecordCount Count
	// Column returns the statistics of a leaf column.
	Column func(fieldID int) ColumnMetrics
}

// MayMatch reports whether any row may match; if not, none does.
func (b *Bound) MayMatch(mode Mode, m Metrics) bool {
	return b.rule(mode).mayMatch(func(t *test) verdict { return t.judge(m.found(t.col)) })
}

// MustMatch reports whether every row is known to match.
func (b *Bound) MustMatch(mode Mode, m Metrics) bool {
	return b.rule(mode).mustMatch(func(t *test) verdict { return t.judge(m.found(t.col)) })
}

// verdict is what is known about some rows: whether any may match, and whether
// all do.
type verdict struct{ may, must bool }

func (r *rule) mayMatch(judge func(*test) verdict) bool {
	switch r.op {
	case OpTrue:
		return true
	case opTest:
		return judge(r.test).may
	case opTuple:
		for _, t := range r.tuple.each {
			if !judge(t).may {
				return false
			}
		}
		return true
	case OpAnd:
		for _, a := range r.args {
			if !a.mayMatch(judge) {
				return false
			}
		}
		return true
	case OpOr:
		for _, a := range r.args {
			if a.mayMatch(judge) {
				return true
			}
		}
	}
	return false
}

func (r *rule) mustMatch(judge func(*test) verdict) bool {
	switch r.op {
	case OpTrue:
		return true
	case opTest:
		return judge(r.test).must
	case OpAnd:
		for _, a := range r.args {
			if !a.mustMatch(judge) {
				return false
			}
		}
		return true
	case OpOr:
		for _, a := range r.args {
			if a.mustMatch(judge) {
				return true
			}
		}
	}
	return false
}

// found is what may be found in a column over some rows: nulls, NaNs, and other
// values, which lie in an interval.
type found struct {
	nulls, nans, values bool
	in                  interval
	// exact says that if the interval has one value, the values are that one.
	exact bool
}

// anything is what is found in a column of which nothing is known.
func anything(c *column) found { return found{nulls: true, nans: c.kind == kindFloat, values: true} }

// judge applies a test to what may be found. Metrics and partitions do not tell
// whether a column of nulls is in the file at all, so both outcomes count.
func (t *test) judge(f found) verdict {
	return verdict{
		may: f.nulls && (t.null || t.absent) || f.nans && t.nan ||
			f.values && t.values.mayMatch(f.in, f.exact),
		must: (!f.nulls || t.null && t.absent) && (!f.nans || t.nan) &&
			(!f.values || t.values.mustMatch(f.in, f.exact)),
	}
}

// found reads a column's metrics.
func (m Metrics) found(c *column) found {
	cm := m.Column(c.id)
	f := anything(c)
	f.exact = c.kind != kindBytes
	f.in = boundsOf(c, cm.Lower, cm.Upper)

	rows := m.RecordCount
	switch {
	case !rows.Known:
		rows = cm.ValueCount
	case cm.ValueCount.Known && cm.ValueCount.N != rows.N, c.nested && !cm.ValueCount.Known:
		// The counts do not cover every row, for example not those in which
		// the parent is null.
		return f
	}
	if rows.is(0) {
		return found{}
	}
	if cm.NullCount.is(0) {
		f.nulls = false
	}
	if cm.NaNCount.is(0) {
		f.nans = false
	}
	if !rows.Known {
		return f
	}
	switch {
	case cm.NullCount.is(rows.N):
		f.nans, f.values = false, false
	case c.kind == kindFloat && cm.NaNCount.is(rows.N):
		f.nulls, f.values = false, false
	case c.kind == kindFloat && cm.NullCount.Known && cm.NaNCount.is(rows.N-cm.NullCount.N):
		f.values = false
	}
	return f
}

// boundsOf is the interval between two serialised bounds. A NaN among them says
// that the writer compared NaN like any value, so neither bounds anything; the
// same goes for bounds in the wrong order.
func boundsOf(c *column, lower, upper []byte) (in interval) {
	var okLower, okUpper bool
	if lower != nil {
		in.lo, okLower = decodeBound(c.typ, lower)
	}
	if upper != nil {
		in.hi, okUpper = decodeBound(c.typ, upper)
	}
	in.hasLo, in.hasHi = okLower, okUpper
	if c.kind == kindFloat {
		if lower != nil && !okLower || upper != nil && !okUpper {
			return interval{}
		}
		in = in.withBothZeros()
	}
	if in.hasLo && in.hasHi && c.kind.compare(in.lo, in.hi) > 0 {
		return interval{}
	}
	return in
}

// withBothZeros widens an interval of floats that ends at one zero to the
// other: writers do not all tell them apart.
func (in interval) withBothZeros() interval {
	if in.hasLo && in.lo.n == 0 {
		in.lo.n = floatKeyOfMinusZero
	}
	if in.hasHi && in.hi.n == floatKeyOfMinusZero {
		in.hi.n = 0
	}
	return in
}
