package expr

import (
	"math"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
)

// PartitionFilter judges partitions of one spec. It may be shared by
// goroutines.
//
// It does not translate predicates into ones about partition values. It goes
// the other way: a partition value says which source values its rows may have,
// and that is judged like column metrics.
type PartitionFilter struct {
	rule   *rule
	mode   Mode
	fields []partitionField
	// buckets are, by test and field, the buckets of the test's single values.
	buckets map[bucketsOf][]int32
}

type bucketsOf struct {
	test  *test
	field int
}

// partitionField is a field of a spec that says something about a column that
// the expression tests.
type partitionField struct {
	position  int
	transform iceberg.Transform
	col       *column
}

// Partition prepares the expression for the partitions of one spec.
func (b *Bound) Partition(mode Mode, spec *iceberg.PartitionSpec) *PartitionFilter {
	p := &PartitionFilter{rule: b.rule(mode), mode: mode, buckets: map[bucketsOf][]int32{}}
	columns := map[int]*column{}
	p.rule.visitTests(func(t *test) { columns[t.col.id] = t.col })
	position := 0
	for _, f := range spec.Fields() {
		col := columns[f.SourceID()]
		if col != nil && len(f.SourceIDs) == 1 && f.Transform.CanTransform(col.typ) {
			switch f.Transform.(type) {
			case iceberg.IdentityTransform, iceberg.BucketTransform, iceberg.TruncateTransform,
				iceberg.YearTransform, iceberg.MonthTransform, iceberg.DayTransform, iceberg.HourTransform:
				p.fields = append(p.fields, partitionField{position: position, transform: f.Transform, col: col})
			}
		}
		position++
	}
	p.rule.visitTests(func(t *test) {
		for i, f := range p.fields {
			if bucket, ok := f.transform.(iceberg.BucketTransform); ok && f.col.id == t.col.id && t.values.isPoints() {
				p.buckets[bucketsOf{t, i}] = bucketsOfPoints(t, bucket)
			}
		}
	})
	return p
}

// visitTests calls f for every test, those of combinations too.
func (r *rule) visitTests(f func(*test)) {
	r.visit(func(r *rule) {
		if r.op == opTest {
			f(r.test)
			return
		}
		for _, t := range r.tuple.each {
			f(t)
		}
	})
}

// bucketsOfPoints lists the buckets of a test's single values, sorted.
func bucketsOfPoints(t *test, transform iceberg.BucketTransform) []int32 {
	var buckets []int32
	t.values.points(func(d datum) {
		value := iceberg.Optional[iceberg.Literal]{Val: literalOf(t.col.typ, d), Valid: true}
		if b, ok := transform.Apply(value).Val.(iceberg.Int32Literal); ok {
			buckets = append(buckets, int32(b))
		}
	})
	slices.Sort(buckets)
	return slices.Compact(buckets)
}

// MayMatch reports whether any row of a partition may match. tuple has the
// transformed values in the order of the spec's fields, nil for null.
func (p *PartitionFilter) MayMatch(tuple []iceberg.Literal) bool {
	return p.rule.mayMatch(func(t *test) verdict { return p.judge(t, tuple) })
}

// MustMatch reports whether every row of a partition is known to match.
func (p *PartitionFilter) MustMatch(tuple []iceberg.Literal) bool {
	return p.rule.mustMatch(func(t *test) verdict { return p.judge(t, tuple) })
}

// Residual is what is left to test on the rows of a partition, for the same
// mode only; nil when every row matches.
func (p *PartitionFilter) Residual(tuple []iceberg.Literal) *Bound {
	return newBoundRule(p.rule.replace(func(r *rule) *rule {
		tests := []*test{r.test}
		if r.op == opTuple {
			tests = r.tuple.each
		}
		for _, t := range tests {
			switch v := p.judge(t, tuple); {
			case !v.may:
				return ruleFalse
			case v.must && r.op == opTest:
				return ruleTrue
			}
		}
		return r
	}), p.mode)
}

// judge combines what all fields of the spec say about a test's column.
func (p *PartitionFilter) judge(t *test, tuple []iceberg.Literal) verdict {
	v := verdict{may: true}
	for i, f := range p.fields {
		if f.col.id != t.col.id || f.position >= len(tuple) {
			continue
		}
		var w verdict
		if value := tuple[f.position]; value == nil {
			w = t.judge(found{nulls: true})
		} else if _, ok := f.transform.(iceberg.BucketTransform); ok {
			w = p.judgeBuckets(t, i, value, value)
		} else {
			w = t.judge(f.sources(value))
		}
		v.may, v.must = v.may && w.may, v.must || w.must
	}
	return v
}

// judgeBuckets judges rows that are not null and whose buckets lie in a range.
func (p *PartitionFilter) judgeBuckets(t *test, field int, lower, upper iceberg.Literal) verdict {
	lo, okLo := lower.(iceberg.Int32Literal)
	hi, okHi := upper.(iceberg.Int32Literal)
	if !okLo || !okHi || !t.values.isPoints() {
		return t.judge(found{values: true})
	}
	buckets := p.buckets[bucketsOf{t, field}]
	i, _ := slices.BinarySearch(buckets, int32(lo))
	if i < len(buckets) && buckets[i] <= int32(hi) {
		return t.judge(found{values: true})
	}
	// None of the single values is in these buckets.
	return verdict{may: t.values.inverted, must: t.values.inverted}
}

// FieldSummary describes the values of one partition field over the files of
// a manifest.
type FieldSummary struct {
	ContainsNull bool
	// ContainsNaN is nil when unknown.
	ContainsNaN *bool
	// Lower and Upper are in Iceberg's single-value serialisation; nil is unknown.
	Lower, Upper []byte
}

// MayMatchSummaries reports whether any file of a manifest may have a matching
// row. summaries are in the order of the spec's fields; none means unknown.
func (p *PartitionFilter) MayMatchSummaries(summaries []FieldSummary) bool {
	return p.rule.mayMatch(func(t *test) verdict {
		v := verdict{may: true}
		for i, f := range p.fields {
			if f.col.id == t.col.id && f.position < len(summaries) {
				v.may = v.may && p.judgeSummary(t, i, summaries[f.position]).may
			}
		}
		return v
	})
}

func (p *PartitionFilter) judgeSummary(t *test, field int, s FieldSummary) verdict {
	f := p.fields[field]
	nans := f.col.kind == kindFloat && (s.ContainsNaN == nil || *s.ContainsNaN)
	if _, ok := f.transform.(iceberg.BucketTransform); ok {
		lo, okLo := decodeBound(iceberg.PrimitiveTypes.Int32, s.Lower)
		hi, okHi := decodeBound(iceberg.PrimitiveTypes.Int32, s.Upper)
		if !okLo || !okHi {
			return verdict{may: true}
		}
		v := p.judgeBuckets(t, field, iceberg.Int32Literal(lo.n), iceberg.Int32Literal(hi.n))
		v.may = v.may || s.ContainsNull && (t.null || t.absent)
		return v
	}
	return t.judge(found{nulls: s.ContainsNull, nans: nans, values: true, in: f.sourcesBetween(s.Lower, s.Upper)})
}

// sources is what is found in the source column of the rows of a partition
// whose value for the field is not null.
func (f partitionField) sources(value iceberg.Literal) found {
	all := found{values: true, nans: f.col.kind == kindFloat}
	switch f.transform.(type) {
	case iceberg.IdentityTransform, iceberg.TruncateTransform:
		if isNaN(value) {
			return found{nans: true}
		}
		d, where, err := f.col.convert(value)
		if err != nil || where != inRange {
			return all
		}
		return found{values: true, in: f.preimage(d), exact: true}
	}
	// The result of a time transform: an integer, or a date.
	d, ok := datumOf(value)
	if !ok {
		return all
	}
	return found{values: true, in: f.preimage(d), exact: true}
}

// sourcesBetween is the interval of the source values whose transformed values
// lie between two serialised bounds.
func (f partitionField) sourcesBetween(lower, upper []byte) (in interval) {
	switch f.transform.(type) {
	case iceberg.IdentityTransform, iceberg.TruncateTransform:
		bounds := boundsOf(f.col, lower, upper)
		if bounds.hasLo {
			low := f.preimage(bounds.lo)
			in.lo, in.hasLo = low.lo, low.hasLo
		}
		if bounds.hasHi {
			high := f.preimage(bounds.hi)
			in.hi, in.hasHi, in.hiOpen = high.hi, high.hasHi, high.hiOpen
		}
		if _, ok := f.transform.(iceberg.TruncateTransform); ok && f.col.kind == kindInt && !in.hasHi {
			return interval{} // see truncatedTo
		}
		return in
	}
	if d, ok := decodeBound(iceberg.PrimitiveTypes.Int32, lower); ok {
		low := f.preimage(d)
		in.lo, in.hasLo = low.lo, low.hasLo
	}
	if d, ok := decodeBound(iceberg.PrimitiveTypes.Int32, upper); ok {
		high := f.preimage(d)
		in.hi, in.hasHi = high.hi, high.hasHi
	}
	return in
}

// preimage is the interval of the source values that a transform maps to d.
func (f partitionField) preimage(d datum) interval {
	switch t := f.transform.(type) {
	case iceberg.IdentityTransform:
		in := only(f.col.kind, d)
		if f.col.kind == kindFloat {
			in = in.withBothZeros()
		}
		return in
	case iceberg.TruncateTransform:
		return f.truncatedTo(d, t.Width)
	}
	return f.timesIn(d.n)
}

// truncatedTo is the interval of the values that truncate to d.
func (f partitionField) truncatedTo(d datum, width int) interval {
	in := interval{lo: d, hasLo: true}
	switch f.col.kind {
	case kindInt:
		in.hi, in.hasHi = datum{n: d.n + int64(width) - 1}, true
		if in.hi.n < d.n || d.n <= math.MaxInt32 && in.hi.n > math.MaxInt32 {
			// The least values of a type have no multiple of the width below
			// them, and truncate to one that has overflown to here.
			return interval{}
		}
	case kindDecimal:
		in.hi.d, in.hasHi = addDecimal(d.d, int64(width)-1)
	case kindBytes:
		if characters(f.col.typ, d.b) < width {
			return only(kindBytes, d)
		}
		return startingWith(d.b)
	}
	return in
}

// timesIn is the interval of the times whose year, month, day or hour since
// 1970 is n. Iceberg writers up to 0.10 rounded times before 1970 towards it,
// so the interval of n <= 0 includes that of n - 1.
func (f partitionField) timesIn(n int64) interval {
	first := n
	if _, isDate := f.col.typ.(iceberg.DateType); n <= 0 && !(isDate && f.isDay()) {
		first = n - 1
	}
	in := interval{}
	in.lo, in.hasLo = f.startOf(first)
	in.hi, in.hasHi = f.startOf(n + 1)
	in.hi.n--
	return in
}

func (f partitionField) isDay() bool {
	_, ok := f.transform.(iceberg.DayTransform)
	return ok
}

// startOf is the first time of a year, month, day or hour in the units of the
// source column; false if the column cannot hold it.
func (f partitionField) startOf(n int64) (datum, bool) {
	// No timestamp of 64 bits reaches farther than 300,000 years from 1970.
	const farthest = 300_000
	days, limit := n, int64(farthest*366)
	switch f.transform.(type) {
	case iceberg.YearTransform:
		limit = farthest
	case iceberg.MonthTransform:
		limit = farthest * 12
	case iceberg.HourTransform:
		if n < -limit*24 || n > limit*24 {
			return datum{}, false
		}
		return inUnits(n, microsPerHour, unitOf(f.col.typ))
	}
	if n < -limit || n > limit {
		return datum{}, false
	}
	switch f.transform.(type) {
	case iceberg.YearTransform:
		days = time.Date(1970+int(n), 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 86_400
	case iceberg.MonthTransform:
		days = time.Date(1970, 1+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Unix() / 86_400
	}
	if _, ok := f.col.typ.(iceberg.DateType); ok {
		return datum{n: days}, true
	}
	return inUnits(days, microsPerDay, unitOf(f.col.typ))
}
