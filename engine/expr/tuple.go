package expr

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// tupleTest matches the rows in which several columns together have one of
// many combinations of values, none of them null or NaN:
//
//	a = 1 and b = 2 or a = 1 and b = 3 or a = 5 and b = 2 or ...
//
// Such filters come from upserts by a composite key. Row by row against every
// combination they would be quadratic; here a row is looked up once.
type tupleTest struct {
	columns []*column
	keys    map[string]struct{}
	// each holds, for every column by itself, the values that occur in a
	// combination. Rows that match meet all of them.
	each []*test
}

// minTuples is how many combinations are worth a hash table.
const minTuples = 8

// appendKey appends the part of a combination's key that one value makes.
func (k kind) appendKey(key []byte, d datum) []byte {
	switch k {
	case kindDecimal:
		key = binary.LittleEndian.AppendUint64(key, d.d.LowBits())
		return binary.LittleEndian.AppendUint64(key, uint64(d.d.HighBits()))
	case kindBytes:
		key = binary.AppendUvarint(key, uint64(len(d.b)))
		return append(key, d.b...)
	}
	return binary.LittleEndian.AppendUint64(key, uint64(d.n))
}

// mergeTuples replaces conjunctions of single values of the same columns, under
// an or, by one test.
func mergeTuples(args []*rule) []*rule {
	groups := map[string][]int{}
	for i, a := range args {
		if columns, ok := combination(a); ok {
			groups[columns] = append(groups[columns], i)
		}
	}
	for _, members := range groups {
		if len(members) < minTuples {
			continue
		}
		t := &tupleTest{keys: make(map[string]struct{}, len(members))}
		values := make([][]datum, len(args[members[0]].args))
		for _, i := range members {
			tests := sortedByColumn(args[i].args)
			var key []byte
			for j, r := range tests {
				d := r.test.values.in.lo
				key = r.test.col.kind.appendKey(key, d)
				values[j] = append(values[j], d)
			}
			t.keys[string(key)] = struct{}{}
			if i != members[0] {
				args[i] = nil
			}
		}
		for j, r := range sortedByColumn(args[members[0]].args) {
			each := *r.test
			each.values.set, each.values.in = newSet(each.col.kind, values[j]), interval{}
			t.columns, t.each = append(t.columns, each.col), append(t.each, &each)
		}
		args[members[0]] = &rule{op: opTuple, tuple: t}
	}
	return slices.DeleteFunc(args, func(r *rule) bool { return r == nil })
}

// combination reports whether a rule is a conjunction of single values of
// different columns, and names the columns.
func combination(r *rule) (columns string, ok bool) {
	if r.op != OpAnd {
		return "", false
	}
	for _, a := range r.args {
		if a.op != opTest {
			return "", false
		}
		t := a.test
		if t.null || t.absent || t.nan || t.values.inverted || t.values.set != nil || !t.values.in.point(t.values.kind) {
			return "", false
		}
	}
	var b strings.Builder
	last := -1
	for _, a := range sortedByColumn(r.args) {
		if a.test.col.id == last {
			return "", false
		}
		last = a.test.col.id
		b.WriteString(strconv.Itoa(last))
		b.WriteByte(' ')
	}
	return b.String(), true
}

func sortedByColumn(rules []*rule) []*rule {
	sorted := slices.Clone(rules)
	slices.SortStableFunc(sorted, func(a, b *rule) int { return a.test.col.id - b.test.col.id })
	return sorted
}
