package expr

import (
	"bytes"
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// valueSet is an immutable set of values of one kind: sorted, to be compared
// with bounds, and hashed, to be probed by rows.
type valueSet struct {
	kind     kind
	ints     []int64
	decimals []decimal128.Num
	strings  []string

	intTable     intTable
	decimalTable map[decimal128.Num]struct{}
	stringTable  map[string]struct{}
}

// newIntSet takes ownership of values.
func newIntSet(k kind, values []int64) *valueSet {
	slices.Sort(values)
	s := &valueSet{kind: k, ints: slices.Compact(values)}
	s.intTable = newIntTable(s.ints)
	return s
}

func newDecimalSet(values []decimal128.Num) *valueSet {
	slices.SortFunc(values, decimal128.Num.Cmp)
	s := &valueSet{kind: kindDecimal, decimals: slices.Compact(values)}
	s.decimalTable = make(map[decimal128.Num]struct{}, len(s.decimals))
	for _, v := range s.decimals {
		s.decimalTable[v] = struct{}{}
	}
	return s
}

func newStringSet(values []string) *valueSet {
	slices.Sort(values)
	s := &valueSet{kind: kindBytes, strings: slices.Compact(values)}
	s.stringTable = make(map[string]struct{}, len(s.strings))
	for _, v := range s.strings {
		s.stringTable[v] = struct{}{}
	}
	return s
}

func newSet(k kind, values []datum) *valueSet {
	switch k {
	case kindDecimal:
		list := make([]decimal128.Num, len(values))
		for i, v := range values {
			list[i] = v.d
		}
		return newDecimalSet(list)
	case kindBytes:
		list := make([]string, len(values))
		for i, v := range values {
			list[i] = string(v.b)
		}
		return newStringSet(list)
	}
	list := make([]int64, len(values))
	for i, v := range values {
		list[i] = v.n
	}
	return newIntSet(k, list)
}

func (s *valueSet) len() int { return len(s.ints) + len(s.decimals) + len(s.strings) }

func (s *valueSet) at(i int) datum {
	switch s.kind {
	case kindDecimal:
		return datum{d: s.decimals[i]}
	case kindBytes:
		v := s.strings[i]
		return datum{b: unsafe.Slice(unsafe.StringData(v), len(v))}
	}
	return datum{n: s.ints[i]}
}

func (s *valueSet) contains(d datum) bool {
	switch s.kind {
	case kindDecimal:
		_, ok := s.decimalTable[d.d]
		return ok
	case kindBytes:
		_, ok := s.stringTable[string(d.b)]
		return ok
	}
	return s.intTable.contains(d.n)
}

// meets reports whether any member lies in the interval.
func (s *valueSet) meets(in interval) bool {
	if in.empty {
		return false
	}
	i := 0
	if in.hasLo {
		i = sort.Search(s.len(), func(i int) bool { return s.kind.compare(s.at(i), in.lo) >= 0 })
	}
	return i < s.len() && in.holdsBelow(s.kind, s.at(i))
}

func (s *valueSet) memorySize() int64 {
	// A Go map of n keys takes up to about twice their size.
	n := int64(len(s.ints))*8 + int64(len(s.intTable.slots)+len(s.intTable.sieve))*8 + int64(len(s.decimals))*(16+32)
	for _, v := range s.strings {
		n += int64(len(v)) + 16 + 32
	}
	return n
}

// intTable is a hash table of int64 with open addressing. Zero marks a free
// slot and is itself remembered apart.
type intTable struct {
	slots   []int64
	shift   uint8
	hasZero bool
	// sieve is a Bloom filter of one word a probe; nil for small tables. It is
	// an eighth of the slots and spares most absent values the cache miss.
	sieve      []uint64
	sieveShift uint8
}

// minSieve is how many values no longer fit in a nearby cache.
const minSieve = 4 << 10

func newIntTable(values []int64) intTable {
	// At most half full: a probe for an absent value ends after about 1.5 slots.
	log := max(bits.Len(uint(len(values)))+1, 3)
	t := intTable{slots: make([]int64, 1<<log), shift: uint8(64 - log)}
	if len(values) >= minSieve {
		// 16 to 32 bits for a value.
		t.sieve, t.sieveShift = make([]uint64, 1<<(log-3)), uint8(64-(log-3))
	}
	mask := len(t.slots) - 1
	for _, v := range values {
		if t.sieve != nil {
			h := hashInt(v)
			t.sieve[h>>t.sieveShift] |= sieveBits(h)
		}
		if v == 0 {
			t.hasZero = true
			continue
		}
		i := int(hashInt(v) >> t.shift)
		for t.slots[i] != 0 && t.slots[i] != v {
			i = (i + 1) & mask
		}
		t.slots[i] = v
	}
	return t
}

// hashInt is a Fibonacci hash, whose top bits are the best.
func hashInt(v int64) uint64 {
	h := uint64(v) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// sieveBits are the two bits of a value in its word of the sieve.
func sieveBits(h uint64) uint64 { return 1<<(h&63) | 1<<(h>>6&63) }

func (t *intTable) contains(v int64) bool {
	return (t.sieve == nil || t.mayContain(hashInt(v))) && t.lookup(v)
}

// mayContain asks the sieve.
func (t *intTable) mayContain(hash uint64) bool {
	b := sieveBits(hash)
	return t.sieve[hash>>t.sieveShift]&b == b
}

func (t *intTable) lookup(v int64) bool {
	if v == 0 {
		return t.hasZero
	}
	mask := len(t.slots) - 1
	for i := int(hashInt(v) >> t.shift); ; i = (i + 1) & mask {
		switch t.slots[i] {
		case v:
			return true
		case 0:
			return false
		}
	}
}

// interval is a range of values of one kind. lo belongs to it; hi does unless
// hiOpen. The zero interval holds all values.
type interval struct {
	lo, hi       datum
	hasLo, hasHi bool
	hiOpen       bool
	empty        bool
}

// holdsBelow reports whether d is not above the interval.
func (in interval) holdsBelow(k kind, d datum) bool {
	if !in.hasHi {
		return true
	}
	c := k.compare(d, in.hi)
	return c < 0 || c == 0 && !in.hiOpen
}

func (in interval) contains(k kind, d datum) bool {
	return !in.empty && (!in.hasLo || k.compare(d, in.lo) >= 0) && in.holdsBelow(k, d)
}

// all reports whether the interval holds every value.
func (in interval) all() bool { return !in.empty && !in.hasLo && !in.hasHi }

// prefix returns p if the interval holds exactly what starts with p.
func (in interval) prefix() (p []byte, ok bool) {
	if in.empty || !in.hasLo || !in.hasHi || !in.hiOpen {
		return nil, false
	}
	next, ok := successor(in.lo.b)
	return in.lo.b, ok && bytes.Equal(next, in.hi.b)
}

// point reports whether the interval holds exactly one value, lo.
func (in interval) point(k kind) bool {
	if in.empty || !in.hasLo || !in.hasHi {
		return false
	}
	if in.hiOpen {
		n := len(in.lo.b)
		return len(in.hi.b) == n+1 && in.hi.b[n] == 0 && bytes.Equal(in.hi.b[:n], in.lo.b)
	}
	return k.compare(in.lo, in.hi) == 0
}

// disjoint reports whether two intervals share no value.
func (in interval) disjoint(k kind, other interval) bool {
	return in.empty || other.empty || in.below(k, other) || other.below(k, in)
}

// below reports whether every value of in is less than every value of other.
func (in interval) below(k kind, other interval) bool {
	if !in.hasHi || !other.hasLo {
		return false
	}
	c := k.compare(in.hi, other.lo)
	return c < 0 || c == 0 && in.hiOpen
}

// within reports whether every value of in is one of other.
func (in interval) within(k kind, other interval) bool {
	if in.empty {
		return true
	}
	if other.empty {
		return false
	}
	if other.hasLo && !(in.hasLo && k.compare(in.lo, other.lo) >= 0) {
		return false
	}
	if !other.hasHi {
		return true
	}
	if !in.hasHi {
		return false
	}
	c := k.compare(in.hi, other.hi)
	return c < 0 || c == 0 && (in.hiOpen || !other.hiOpen)
}

// intersect is the interval of the values that are in both.
func (in interval) intersect(k kind, other interval) interval {
	if in.disjoint(k, other) {
		return interval{empty: true}
	}
	if other.hasLo && (!in.hasLo || k.compare(other.lo, in.lo) > 0) {
		in.lo, in.hasLo = other.lo, true
	}
	if other.hasHi {
		c := -1
		if in.hasHi {
			c = k.compare(other.hi, in.hi)
		}
		if c < 0 || c == 0 && other.hiOpen {
			in.hi, in.hasHi, in.hiOpen = other.hi, true, other.hiOpen
		}
	}
	return in
}

// only holds d alone.
func only(k kind, d datum) interval {
	if k == kindBytes {
		return interval{lo: d, hi: justAbove(d), hasLo: true, hasHi: true, hiOpen: true}
	}
	return interval{lo: d, hi: d, hasLo: true, hasHi: true}
}

// justAbove is the least byte string greater than d.
func justAbove(d datum) datum {
	b := make([]byte, len(d.b)+1)
	copy(b, d.b)
	return datum{b: b}
}

// lessThan holds the values less than d, and d itself if orEqual.
func lessThan(k kind, d datum, orEqual bool) interval {
	switch {
	case k == kindBytes:
		if orEqual {
			d = justAbove(d)
		}
		return interval{hi: d, hasHi: true, hiOpen: true, empty: len(d.b) == 0}
	case orEqual:
		return interval{hi: d, hasHi: true}
	case k == kindDecimal:
		below, ok := addDecimal(d.d, -1)
		return interval{hi: datum{d: below}, hasHi: true, empty: !ok}
	}
	return interval{hi: datum{n: d.n - 1}, hasHi: true, empty: d.n-1 > d.n}
}

// greaterThan holds the values greater than d, and d itself if orEqual.
func greaterThan(k kind, d datum, orEqual bool) interval {
	switch {
	case orEqual:
		return interval{lo: d, hasLo: true}
	case k == kindBytes:
		return interval{lo: justAbove(d), hasLo: true}
	case k == kindDecimal:
		above, ok := addDecimal(d.d, 1)
		return interval{lo: datum{d: above}, hasLo: true, empty: !ok}
	}
	return interval{lo: datum{n: d.n + 1}, hasLo: true, empty: d.n+1 < d.n}
}

// startingWith holds the byte strings that start with prefix.
func startingWith(prefix []byte) interval {
	in := interval{lo: datum{b: prefix}, hasLo: true}
	if next, ok := successor(prefix); ok {
		in.hi, in.hasHi, in.hiOpen = datum{b: next}, true, true
	}
	return in
}

// values says which of a column's values that are neither null nor NaN match:
// those of an interval, or of a set if set is not nil, or all others if
// inverted.
type values struct {
	kind     kind
	in       interval
	set      *valueSet
	inverted bool
}

func (v values) contains(d datum) bool {
	if v.set != nil {
		return v.set.contains(d) != v.inverted
	}
	return v.in.contains(v.kind, d) != v.inverted
}

// none and all report whether no value, or every value, matches.
func (v values) none() bool {
	if v.inverted {
		return v.set == nil && v.in.all()
	}
	return v.set == nil && v.in.empty || v.set != nil && v.set.len() == 0
}

func (v values) all() bool {
	v.inverted = !v.inverted
	return v.none()
}

// mayMatch reports whether any value of the interval, and mustMatch whether
// each, may match. exact says that an interval of one value means that this
// value occurs; the interval of a truncated bound does not.
func (v values) mayMatch(found interval, exact bool) bool {
	if v.inverted {
		v.inverted = false
		return !v.mustMatch(found, exact)
	}
	if v.set != nil {
		return v.set.meets(found)
	}
	return !v.in.disjoint(v.kind, found)
}

func (v values) mustMatch(found interval, exact bool) bool {
	if v.inverted {
		v.inverted = false
		return !v.mayMatch(found, exact)
	}
	if v.set != nil {
		return exact && found.point(v.kind) && v.set.contains(found.lo)
	}
	if !exact && v.in.point(v.kind) {
		return false
	}
	return found.within(v.kind, v.in)
}

// points lists the values if they are finitely many single ones, inverted or
// not; false otherwise.
func (v values) points(add func(datum)) bool {
	if v.set != nil {
		for i := range v.set.len() {
			add(v.set.at(i))
		}
		return true
	}
	if v.in.point(v.kind) {
		add(v.in.lo)
		return true
	}
	return v.in.empty
}

// isPoints reports whether points would succeed.
func (v values) isPoints() bool { return v.set != nil || v.in.empty || v.in.point(v.kind) }
