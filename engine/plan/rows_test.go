package plan

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/expr"
)

// randomRow is a row of a random file; a nil is null.
type randomRow struct {
	id, k *int64
	x     *float64
}

// metricsOf computes honest metrics, some of them left out.
func metricsOf(r *rand.Rand, rows []randomRow) *Metrics {
	m := &Metrics{ValueCounts: map[int]int64{}, NullCounts: map[int]int64{}, NaNCounts: map[int]int64{}, LowerBounds: map[int][]byte{}, UpperBounds: map[int][]byte{}}
	if r.IntN(10) == 0 {
		return nil
	}
	long := func(id int, get func(randomRow) *int64) {
		lower, upper, n := int64(math.MaxInt64), int64(math.MinInt64), int64(0)
		for _, row := range rows {
			m.ValueCounts[id]++
			if v := get(row); v == nil {
				n++
			} else {
				lower, upper = min(lower, *v), max(upper, *v)
			}
		}
		m.NullCounts[id] = n
		if lower <= upper {
			m.LowerBounds[id] = binary.LittleEndian.AppendUint64(nil, uint64(lower))
			m.UpperBounds[id] = binary.LittleEndian.AppendUint64(nil, uint64(upper))
		}
	}
	long(1, func(row randomRow) *int64 { return row.id })
	long(5, func(row randomRow) *int64 { return row.k })
	lower, upper := math.Inf(1), math.Inf(-1)
	m.NullCounts[3], m.NaNCounts[3] = 0, 0
	for _, row := range rows {
		m.ValueCounts[3]++
		switch {
		case row.x == nil:
			m.NullCounts[3]++
		case math.IsNaN(*row.x):
			m.NaNCounts[3]++
		default:
			lower, upper = min(lower, *row.x), max(upper, *row.x)
		}
	}
	if lower <= upper {
		m.LowerBounds[3] = binary.LittleEndian.AppendUint64(nil, math.Float64bits(lower))
		m.UpperBounds[3] = binary.LittleEndian.AppendUint64(nil, math.Float64bits(upper))
	}
	for _, id := range []int{1, 3, 5} {
		if r.IntN(8) == 0 {
			delete(m.LowerBounds, id)
		}
		if r.IntN(8) == 0 {
			delete(m.NullCounts, id)
		}
		if r.IntN(8) == 0 {
			delete(m.NaNCounts, id)
		}
	}
	return m
}

func randomRows(r *rand.Rand) []randomRow {
	rows := make([]randomRow, 1+r.IntN(3))
	base := int64(r.IntN(20))
	for i := range rows {
		if id := base + int64(r.IntN(3)); r.IntN(6) > 0 {
			rows[i].id = &id
		}
		if k := base + int64(r.IntN(3)); r.IntN(6) > 0 {
			rows[i].k = &k
		}
		if x := []float64{-1.5, 0, 1, 2.5, math.NaN()}[r.IntN(5)]; r.IntN(6) > 0 {
			rows[i].x = &x
		}
	}
	return rows
}

// key renders the key of a row, in which nulls and NaNs equal themselves.
func (row randomRow) key(ids []int) string {
	var out []string
	for _, id := range ids {
		v := "null"
		switch {
		case id == 1 && row.id != nil:
			v = fmt.Sprint(*row.id)
		case id == 5 && row.k != nil:
			v = fmt.Sprint(*row.k)
		case id == 3 && row.x != nil:
			v = fmt.Sprint(*row.x)
		}
		out = append(out, v)
	}
	return strings.Join(out, ",")
}

// TestIndexAgainstRows checks random tables against their rows: a delete file
// that deletes a row must be found, and none may be found that the rules of
// scope and sequence exclude.
func TestIndexAgainstRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	table := indexTable(t)
	partitions := []option{spec(0), spec(1, "eu"), spec(1, "us"), spec(1, nil), spec(2, nil), spec(3, "eu")}
	idSets := [][]int{{1}, {3}, {5}, {1, 3}, {1, 5}, {3, 1}}
	pruned := 0
	for range 200 {
		var deletes []*File
		rows := map[*File][]randomRow{}
		for i := range 1 + r.IntN(40) {
			f := equality(fmt.Sprint("e", i), int64(r.IntN(10)), idSets[r.IntN(len(idSets))], partitions[r.IntN(len(partitions))])
			rows[f] = randomRows(r)
			f.Metrics = metricsOf(r, rows[f])
			deletes = append(deletes, f)
		}
		x, err := buildIndex(t, table, deletes...)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			data := dataFile("f", int64(r.IntN(10)), partitions[r.IntN(len(partitions))])
			dataRows := randomRows(r)
			data.Metrics = metricsOf(r, dataRows)
			found, _, err := x.findAll(data)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.IsSortedFunc(found, func(a, b *File) int { return int(a.DataSequence - b.DataSequence) }) {
				t.Errorf("not in order of sequence numbers: %s", names(found))
			}
			for _, d := range deletes {
				global := d.SpecID == 0 || d.SpecID == 2
				inScope := d.DataSequence > data.DataSequence &&
					(global || d.SpecID == data.SpecID && fmt.Sprint(d.Partition) == fmt.Sprint(data.Partition))
				deletesRow := slices.ContainsFunc(dataRows, func(a randomRow) bool {
					return slices.ContainsFunc(rows[d], func(b randomRow) bool { return a.key(d.EqualityIDs) == b.key(d.EqualityIDs) })
				})
				switch isFound := slices.Contains(found, d); {
				case isFound && !inScope:
					t.Errorf("%s is out of scope", d.Path)
				case !isFound && inScope && deletesRow:
					t.Errorf("%s deletes a row and is not found", d.Path)
				case !isFound && inScope:
					pruned++
				}
			}
		}
	}
	if pruned == 0 {
		t.Error("nothing was pruned: the test proves nothing")
	}
}

// predicate is a filter with its meaning in mode iceberg.
type predicate struct {
	expr    *expr.Expr
	matches func(randomRow) bool
}

// randomPredicate tests one column, or combines two tests.
func randomPredicate(r *rand.Rand, depth int) predicate {
	if depth > 0 && r.IntN(3) == 0 {
		a, b := randomPredicate(r, depth-1), randomPredicate(r, depth-1)
		if r.IntN(2) == 0 {
			return predicate{expr.And(a.expr, b.expr), func(row randomRow) bool { return a.matches(row) && b.matches(row) }}
		}
		return predicate{expr.Or(a.expr, b.expr), func(row randomRow) bool { return a.matches(row) || b.matches(row) }}
	}
	if r.IntN(4) == 0 {
		c := []float64{-1.5, 0, 1, 2.5}[r.IntN(4)]
		value := iceberg.Float64Literal(c)
		return []predicate{
			{expr.Compare(expr.OpEq, "x", value), func(row randomRow) bool { return row.x != nil && *row.x == c }},
			{expr.Compare(expr.OpLt, "x", value), func(row randomRow) bool { return row.x != nil && *row.x < c }},
			{expr.Compare(expr.OpGtEq, "x", value), func(row randomRow) bool { return row.x != nil && !(*row.x < c) }},
			{expr.IsNaN("x"), func(row randomRow) bool { return row.x != nil && math.IsNaN(*row.x) }},
			{expr.IsNull("x"), func(row randomRow) bool { return row.x == nil }},
		}[r.IntN(5)]
	}
	name, get := "id", func(row randomRow) *int64 { return row.id }
	if r.IntN(2) == 0 {
		name, get = "s.k", func(row randomRow) *int64 { return row.k }
	}
	c := int64(r.IntN(24))
	value := iceberg.Int64Literal(c)
	return []predicate{
		{expr.Compare(expr.OpEq, name, value), func(row randomRow) bool { v := get(row); return v != nil && *v == c }},
		{expr.Compare(expr.OpNotEq, name, value), func(row randomRow) bool { v := get(row); return v == nil || *v != c }},
		{expr.Compare(expr.OpLtEq, name, value), func(row randomRow) bool { v := get(row); return v != nil && *v <= c }},
		{expr.Compare(expr.OpGt, name, value), func(row randomRow) bool { v := get(row); return v != nil && *v > c }},
		{expr.IsNull(name), func(row randomRow) bool { return get(row) == nil }},
		{expr.NotNull(name), func(row randomRow) bool { return get(row) != nil }},
	}[r.IntN(6)]
}

// TestFilteredPlansAgainstRows: a data file with a matching row is planned, the
// delete files that delete such a row are with it, and a resolved residual
// means that every row matches.
func TestFilteredPlansAgainstRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	table := indexTable(t)
	partitions := []option{spec(0), spec(1, "eu"), spec(1, nil)}
	idSets := [][]int{{1}, {3}, {5}, {1, 3}}
	prunedData, prunedDeletes, resolved := 0, 0, 0
	for range 300 {
		filter := randomPredicate(r, 2)
		bound, err := filter.expr.Bind(table.CurrentSchema(), true)
		if err != nil {
			t.Fatal(err)
		}
		p := &planner{req: Request{Table: table, Filter: bound, Mode: expr.Iceberg}, filters: map[int]*expr.PartitionFilter{}}
		for _, s := range table.Specs() {
			p.filters[s.ID()] = bound.Partition(expr.Iceberg, &s)
		}
		rows := map[*File][]randomRow{}
		var all, kept []*File
		for i := range 1 + r.IntN(20) {
			f := equality(fmt.Sprint("e", i), int64(r.IntN(10)), idSets[r.IntN(len(idSets))], partitions[r.IntN(len(partitions))])
			rows[f] = randomRows(r)
			f.RecordCount = int64(len(rows[f]))
			f.Metrics = metricsOf(r, rows[f])
			all = append(all, f)
			if p.deleteMayMatch(f) {
				kept = append(kept, f)
			} else {
				prunedDeletes++
			}
		}
		if p.index, err = buildIndex(t, table, kept...); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			data := dataFile("f", int64(r.IntN(10)), partitions[r.IntN(len(partitions))])
			dataRows := randomRows(r)
			data.RecordCount = int64(len(dataRows))
			data.Metrics = metricsOf(r, dataRows)
			var matching []randomRow
			for _, row := range dataRows {
				if filter.matches(row) {
					matching = append(matching, row)
				}
			}
			task, _, err := p.task(data, p.facts(data))
			if err != nil {
				t.Fatal(err)
			}
			if task == nil {
				if prunedData++; len(matching) > 0 {
					t.Errorf("%s: a file with a matching row is pruned", bound)
				}
				continue
			}
			if task.Residual == nil {
				if resolved++; len(matching) != len(dataRows) {
					t.Errorf("%s: the residual is resolved but not every row matches", bound)
				}
			}
			for _, d := range all {
				inScope := d.DataSequence > data.DataSequence &&
					(d.SpecID == 0 || d.SpecID == data.SpecID && fmt.Sprint(d.Partition) == fmt.Sprint(data.Partition))
				deletesMatch := slices.ContainsFunc(matching, func(a randomRow) bool {
					return slices.ContainsFunc(rows[d], func(b randomRow) bool { return a.key(d.EqualityIDs) == b.key(d.EqualityIDs) })
				})
				if inScope && deletesMatch && !slices.Contains(task.Deletes, d) {
					t.Errorf("%s: %s deletes a matching row and is not found", bound, d.Path)
				}
			}
		}
	}
	if prunedData == 0 || prunedDeletes == 0 || resolved == 0 {
		t.Errorf("%d data and %d delete files were pruned, %d residuals resolved: the test proves too little", prunedData, prunedDeletes, resolved)
	}
}
