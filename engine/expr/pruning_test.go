package expr

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// tally counts how often pruning proved what was true, so that a test can tell
// that it proves anything.
type tally struct{ may, must int }

// check compares what pruning says of some rows with the rows that match.
func (c *tally) check(may, must bool, expected, rows []int, what string) error {
	switch {
	case !may && len(expected) > 0:
		return fmt.Errorf("%s says that no row matches, but %v do", what, expected)
	case must && len(expected) < len(rows):
		return fmt.Errorf("%s says that all rows %v match, but only %v do", what, rows, expected)
	}
	if !may {
		c.may++
	}
	if must {
		c.must++
	}
	return nil
}

func (c *tally) atLeast(t *testing.T, share float64) {
	t.Helper()
	least := int(share * float64(*rounds))
	if *oneSeed == 0 && (c.may < least || c.must < least) {
		t.Errorf("only %d and %d times was no row or every row proved to match, expected %d", c.may, c.must, least)
	}
}

// sample picks rows that are somewhat alike in a column, as in a file.
func (w *world) sample(by iceberg.NestedField) []int {
	rows := w.allRows()
	if w.IntN(2) == 0 {
		rows = slices.DeleteFunc(rows, func(int) bool { return w.IntN(3) > 0 })
	}
	var pivot iceberg.Literal
	side := w.IntN(5)
	for pivot == nil || isNaN(pivot) {
		pivot = w.value(by.Type, false)
	}
	return slices.DeleteFunc(rows, func(i int) bool {
		v := w.rows[i][by.Name]
		if v == nil {
			return w.IntN(2) == 0 || side == 3
		}
		if isNaN(v) {
			return w.IntN(2) == 0
		}
		c := totalOrder(v, pivot)
		return side == 0 && c < 0 || side == 1 && c > 0 || side == 2 && c != 0 || side == 4
	})
}

// metrics computes the metrics of some rows, with gaps and the shortcuts that
// writers take.
func (w *world) metrics(rows []int) Metrics {
	all := map[int]ColumnMetrics{}
	for _, f := range w.fields {
		var nulls, nans int64
		var lower, upper iceberg.Literal
		for _, i := range rows {
			v := w.rows[i][f.Name]
			switch {
			case v == nil:
				nulls++
			case isNaN(v):
				nans++
			default:
				if lower == nil || totalOrder(v, lower) < 0 {
					lower = v
				}
				if upper == nil || totalOrder(v, upper) > 0 {
					upper = v
				}
			}
		}
		m := ColumnMetrics{ValueCount: KnownCount(int64(len(rows))), NullCount: KnownCount(nulls), NaNCount: KnownCount(nans)}
		m.Lower, m.Upper = w.bound(f, lower, false), w.bound(f, upper, true)
		if nans > 0 && w.IntN(3) == 0 {
			nan, _ := iceberg.Float64Literal(math.NaN()).MarshalBinary()
			if f.Name == "float" {
				nan, _ = iceberg.Float32Literal(float32(math.NaN())).MarshalBinary()
			}
			if w.IntN(2) == 0 {
				m.Upper = nan
			} else {
				m.Lower = nan
			}
		}
		for _, c := range []*Count{&m.ValueCount, &m.NullCount, &m.NaNCount} {
			if w.IntN(8) == 0 {
				*c = Count{}
			}
		}
		for _, b := range []*[]byte{&m.Lower, &m.Upper} {
			if w.IntN(8) == 0 {
				*b = nil
			}
		}
		if w.IntN(8) > 0 {
			all[f.ID] = m
		}
	}
	m := Metrics{Column: func(id int) ColumnMetrics { return all[id] }}
	if w.IntN(8) > 0 {
		m.RecordCount = KnownCount(int64(len(rows)))
	}
	return m
}

// bound serialises a bound, perhaps truncated, perhaps in the type that the
// column had before it was promoted.
func (w *world) bound(f iceberg.NestedField, v iceberg.Literal, upper bool) []byte {
	if v == nil {
		return nil
	}
	if w.IntN(2) == 0 {
		switch x := v.(type) {
		case iceberg.Int64Literal:
			if x >= math.MinInt32 && x <= math.MaxInt32 {
				v = iceberg.Int32Literal(x)
			}
		case iceberg.Float64Literal:
			if float64(float32(x)) == float64(x) {
				v = iceberg.Float32Literal(x)
			}
			if x == 0 {
				// Writers differ in the sign that they give a zero.
				v = pick(w, iceberg.Float64Literal(0), iceberg.Float64Literal(math.Copysign(0, -1)))
			}
		}
	}
	b, err := v.MarshalBinary()
	if err != nil {
		panic(err)
	}
	b = slices.Clone(b)
	if f.Name != "string" && f.Name != "binary" {
		return b
	}
	width := 1 + w.IntN(3)
	if f.Name == "string" {
		truncated := string([]rune(string(b))[:min(width, len([]rune(string(b))))])
		width = len(truncated)
	}
	if width >= len(b) {
		return b
	}
	b = b[:width]
	if upper {
		next, ok := successor(b)
		if !ok {
			return nil
		}
		return next
	}
	return b
}

func TestMetricsNeverLie(t *testing.T) {
	var proved tally
	eachWorld(t, func(t *testing.T, w *world) error {
		fields := w.someFields()
		x := w.expr(fields, 2)
		b, err := x.Bind(w.schema, true)
		if err != nil {
			return err
		}
		for range 3 {
			rows := w.sample(fields[0])
			m := w.metrics(rows)
			for _, mode := range modes {
				err := proved.check(b.MayMatch(mode, m), b.MustMatch(mode, m), w.expected(x, mode, rows), rows, "metrics")
				if err != nil {
					return fmt.Errorf("mode %s, %s: %w", mode, newBoundRule(b.rule(mode), mode), err)
				}
			}
		}
		return nil
	})
	proved.atLeast(t, 0.5)
}

// transforms that may apply to a column, some of them in every spec.
var transforms = []iceberg.Transform{
	iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 3}, iceberg.BucketTransform{NumBuckets: 16},
	iceberg.TruncateTransform{Width: 1}, iceberg.TruncateTransform{Width: 2}, iceberg.TruncateTransform{Width: 10},
	iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.HourTransform{}, iceberg.VoidTransform{},
}

func (w *world) spec(fields []iceberg.NestedField) *iceberg.PartitionSpec {
	var parts []iceberg.PartitionField
	for range 1 + w.IntN(3) {
		f := pick(w, fields...)
		transform := pick(w, transforms...)
		if !transform.CanTransform(f.Type) {
			transform = iceberg.IdentityTransform{}
		}
		id := 1000 + len(parts)
		parts = append(parts, iceberg.PartitionField{SourceIDs: []int{f.ID}, FieldID: id, Name: fmt.Sprint("p", id), Transform: transform})
	}
	spec := iceberg.NewPartitionSpec(parts...)
	return &spec
}

// tuple transforms a row to its partition.
func (w *world) tuple(spec *iceberg.PartitionSpec, row int) (tuple []iceberg.Literal, key string) {
	for _, p := range spec.Fields() {
		value := w.rows[row][w.fields[p.SourceID()-1].Name]
		out := p.Transform.Apply(iceberg.Optional[iceberg.Literal]{Val: value, Valid: value != nil})
		if !out.Valid {
			out.Val = nil
		}
		tuple = append(tuple, out.Val)
		key += fmt.Sprintf("%T %v|", out.Val, out.Val)
	}
	return tuple, key
}

func TestPartitionsNeverLie(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	var proved, summarised tally
	eachWorld(t, func(t *testing.T, w *world) error {
		fields := w.someFields()
		x := w.expr(fields, 2)
		b, err := x.Bind(w.schema, true)
		if err != nil {
			return err
		}
		spec := w.spec(fields)
		groups, tuples := map[string][]int{}, map[string][]iceberg.Literal{}
		var keys []string
		for i := range w.rows {
			tuple, key := w.tuple(spec, i)
			if groups[key] == nil {
				keys = append(keys, key)
			}
			groups[key], tuples[key] = append(groups[key], i), tuple
		}
		columns := w.columns(alloc)
		defer func() {
			for _, c := range columns {
				c.Release()
			}
		}()
		for _, mode := range modes {
			p := b.Partition(mode, spec)
			for _, key := range keys {
				rows, tuple := groups[key], tuples[key]
				expected := w.expected(x, mode, rows)
				what := fmt.Sprintf("mode %s, %s, spec %s, partition %s", mode, newBoundRule(b.rule(mode), mode), spec, key)
				if err := proved.check(p.MayMatch(tuple), p.MustMatch(tuple), expected, rows, what); err != nil {
					return err
				}
				residual := p.Residual(tuple)
				got := slices.DeleteFunc(matching(t, residual, mode, len(w.rows), columns), func(i int) bool { return !slices.Contains(rows, i) })
				if !slices.Equal(got, expected) {
					return fmt.Errorf("%s: residual %s matches %v, expected %v", what, residual, got, expected)
				}
			}
			// A manifest of some of the partitions.
			some := slices.DeleteFunc(slices.Clone(keys), func(string) bool { return w.IntN(4) > 0 })
			var rows []int
			for _, key := range some {
				rows = append(rows, groups[key]...)
			}
			may := p.MayMatchSummaries(w.summaries(spec, some, tuples))
			what := fmt.Sprintf("mode %s, %s, spec %s, manifest of %v", mode, newBoundRule(b.rule(mode), mode), spec, some)
			if err := summarised.check(may, false, w.expected(x, mode, rows), rows, what); err != nil {
				return err
			}
		}
		return nil
	})
	proved.atLeast(t, 1)
	summarised.must = math.MaxInt
	summarised.atLeast(t, 0.3)
}

// summaries describes partitions as a manifest list does.
func (w *world) summaries(spec *iceberg.PartitionSpec, keys []string, tuples map[string][]iceberg.Literal) []FieldSummary {
	var out []FieldSummary
	for i, p := range spec.Fields() {
		var s FieldSummary
		var lower, upper iceberg.Literal
		nan := false
		for _, key := range keys {
			v := tuples[key][i]
			switch {
			case v == nil:
				s.ContainsNull = true
			case isNaN(v):
				nan = true
			default:
				if lower == nil || totalOrder(v, lower) < 0 {
					lower = v
				}
				if upper == nil || totalOrder(v, upper) > 0 {
					upper = v
				}
			}
		}
		if w.IntN(4) > 0 {
			s.ContainsNaN = &nan
		}
		source := w.fields[p.SourceID()-1]
		if _, ok := p.Transform.(iceberg.IdentityTransform); !ok {
			source.Name = "" // a transformed value is never truncated or promoted
		}
		if w.IntN(8) > 0 {
			s.Lower = w.bound(source, lower, false)
		}
		if w.IntN(8) > 0 {
			s.Upper = w.bound(source, upper, true)
		}
		out = append(out, s)
	}
	return out
}
