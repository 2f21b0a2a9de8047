package expr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

func bind(t testing.TB, schema *iceberg.Schema, e *Expr) *Bound {
	t.Helper()
	b, err := e.Bind(schema, true)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestColumnsAreLazy: a column is asked for once, and only while rows are left.
func TestColumnsAreLazy(t *testing.T) {
	schema := testSchema(t)
	ints := arrayOf(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, []iceberg.Literal{iceberg.Int32Literal(1), iceberg.Int32Literal(2), nil})
	one, two := Compare(OpEq, "int", iceberg.Int32Literal(1)), Compare(OpEq, "int", iceberg.Int32Literal(2))
	isNull := IsNull("string")
	for _, c := range []struct {
		expr  *Expr
		keep  uint64
		asked string
		want  uint64
	}{
		{one, 0b111, "[2]", 0b001},
		{one, 0b000, "[]", 0b000},
		{True(), 0b101, "[]", 0b101},
		{False(), 0b101, "[]", 0b000},
		{And(one, Compare(OpNotEq, "int", iceberg.Int32Literal(1)), isNull), 0b111, "[2]", 0b000},
		{Or(IsNull("int"), NotNull("int"), isNull), 0b111, "[]", 0b111},
		{Or(one, Compare(OpNotEq, "int", iceberg.Int32Literal(1)), isNull), 0b111, "[2]", 0b111},
		{Or(And(one, isNull), two), 0b110, "[2]", 0b010},
	} {
		var asked []int
		keep := &batch.Mask{Words: []uint64{c.keep}, Len: 3}
		err := bind(t, schema, c.expr).Evaluate(Iceberg, 3, func(id int) (arrow.Array, error) {
			asked = append(asked, id)
			if id != 2 {
				return nil, fmt.Errorf("column %d was asked for", id)
			}
			return ints, nil
		}, keep)
		if err != nil || fmt.Sprint(asked) != c.asked || keep.Words[0] != c.want {
			t.Errorf("%s of %b: %b %v, asked for %v; expected %b, %s", bind(t, schema, c.expr), c.keep, keep.Words[0], err, asked, c.want, c.asked)
		}
	}
}

func TestEvaluateErrors(t *testing.T) {
	schema := testSchema(t)
	cause := errors.New("cannot read")
	longs := arrayOf(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, []iceberg.Literal{iceberg.Int64Literal(1)})
	nanos := arrayOf(memory.DefaultAllocator, &arrow.TimestampType{Unit: arrow.Nanosecond}, []iceberg.Literal{iceberg.TimestampNsLiteral(1)})
	for _, c := range []struct {
		expr   *Expr
		rows   int
		arr    arrow.Array
		err    error
		want   string
		column string
	}{
		{expr: IsNull("int"), rows: 1, err: cause, want: "cannot read"},
		{expr: IsNull("int"), rows: 1, arr: longs, want: `column "int" of type int was read as Arrow int64`},
		{expr: IsNull("timestamp"), rows: 1, arr: nanos, want: `column "timestamp" of type timestamp was read as Arrow timestamp[ns]`},
		{expr: IsNull("long"), rows: 2, arr: longs, want: `column "long" has 1 rows in a window of 2`},
	} {
		err := bind(t, schema, c.expr).Evaluate(Iceberg, c.rows, func(int) (arrow.Array, error) { return c.arr, c.err }, batch.NewMask(c.rows, true))
		if err == nil || !strings.Contains(err.Error(), c.want) || errs.CodeOf(err) != errs.Internal {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
	if err := bind(t, schema, IsNull("int")).Evaluate(Iceberg, 2, nil, batch.NewMask(3, true)); err == nil {
		t.Error("a mask of another length was accepted")
	}
}

// TestLayouts covers arrays that the random tables do not have.
func TestLayouts(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	schema := testSchema(t)

	uuids := extensions.NewUUIDBuilder(alloc)
	defer uuids.Release()
	uuids.AppendBytes([16]byte{1})
	uuids.AppendNull()
	uuids.AppendBytes([16]byte{2})
	uuidArray := uuids.NewArray()
	defer uuidArray.Release()

	// A dictionary with a null among its values.
	values := arrayOf(alloc, arrow.BinaryTypes.String, []iceberg.Literal{iceberg.StringLiteral("a"), nil, iceberg.StringLiteral("b")})
	defer values.Release()
	codes, _, err := array.FromJSON(alloc, arrow.PrimitiveTypes.Int8, strings.NewReader("[0, 1, 2, null]"))
	if err != nil {
		t.Fatal(err)
	}
	defer codes.Release()
	dictionary := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: codes.DataType(), ValueType: values.DataType()}, codes, values)
	defer dictionary.Release()
	nulls := array.NewNull(3)
	defer nulls.Release()

	equal := func(column string, value iceberg.Literal) *Expr { return Compare(OpEq, column, value) }
	var pairs []*Expr
	for i := range minTuples {
		pairs = append(pairs, And(equal("string", iceberg.StringLiteral(string(rune('b'+i)))), NotNull("string"), In("string", iceberg.StringLiteral(string(rune('b'+i))))))
	}
	for _, c := range []struct {
		expr *Expr
		arr  arrow.Array
		want string
	}{
		{equal("uuid", iceberg.UUIDLiteral{2}), uuidArray, "[2]"},
		{Compare(OpLt, "uuid", iceberg.UUIDLiteral{2}), uuidArray, "[0]"},
		{Compare(OpNotEq, "uuid", iceberg.UUIDLiteral{2}), uuidArray, "[0 1]"},
		{equal("string", iceberg.StringLiteral("b")), dictionary, "[2]"},
		{Compare(OpNotEq, "string", iceberg.StringLiteral("b")), dictionary, "[0 1 3]"},
		{IsNull("string"), dictionary, "[1 3]"},
		{NotNull("string"), dictionary, "[0 2]"},
		{Or(pairs...), dictionary, "[2]"},
		{IsNull("nothing"), nulls, "[0 1 2]"},
		{IsNull("long"), nulls, "[0 1 2]"},
		{Compare(OpNotEq, "long", iceberg.Int64Literal(1)), nulls, "[0 1 2]"},
		{equal("long", iceberg.Int64Literal(1)), nulls, "[]"},
	} {
		b := bind(t, schema, c.expr)
		columns := map[int]arrow.Array{b.FieldIDs()[0]: c.arr}
		if got := fmt.Sprint(matching(t, b, Iceberg, c.arr.Len(), columns)); got != c.want {
			t.Errorf("%s: %s, expected %s", b, got, c.want)
		}
	}
}

// TestConstants: columns that a file does not have, or that are constant in it.
func TestConstants(t *testing.T) {
	schema := testSchema(t)
	five := iceberg.Int64Literal(5)
	var pairs []*Expr
	for i := range int64(10) {
		pairs = append(pairs, And(Compare(OpEq, "int", iceberg.Int64Literal(i)), Compare(OpEq, "long", five)))
	}
	constants := map[int]iceberg.Literal{3: five, 4: iceberg.Float32Literal(float32(math.NaN())), 13: nil}
	for _, c := range []struct {
		expr *Expr
		want string
	}{
		{Compare(OpEq, "long", five), "true"},
		{Compare(OpLt, "long", five), "false"},
		{IsNull("string"), "true"},
		{Compare(OpEq, "string", iceberg.StringLiteral("a")), "false"},
		{Compare(OpNotEq, "string", iceberg.StringLiteral("a")), "true"},
		{Compare(OpGt, "float", five), "true"},
		{NotNaN("float"), "false"},
		{Or(Compare(OpEq, "string", iceberg.StringLiteral("a")), IsNull("int")), "int is null"},
		{And(Compare(OpEq, "long", five), Or(IsNull("int"), IsNull("date"))), "int is null or date is null"},
		{Or(pairs...), "(int, long) in 10 combinations"},
		{Or(append([]*Expr{}, pairsOf("string", "int")...)...), "false"},
	} {
		got := bind(t, schema, c.expr).WithConstants(Iceberg, func(id int) (iceberg.Literal, bool) {
			lit, ok := constants[id]
			return lit, ok
		})
		if got.String() != c.want {
			t.Errorf("%s, expected %s", got, c.want)
		}
	}
}

func pairsOf(a, b string) []*Expr {
	var pairs []*Expr
	for i := range int64(10) {
		pairs = append(pairs, And(Compare(OpEq, a, iceberg.StringLiteral(fmt.Sprint(i))), Compare(OpEq, b, iceberg.StringLiteral(fmt.Sprint(i)))))
	}
	return pairs
}

// TestNilBound: no filter matches everything, at no cost.
func TestNilBound(t *testing.T) {
	var b *Bound
	keep := batch.NewMask(3, true)
	if err := b.Evaluate(Iceberg, 3, nil, keep); err != nil || !keep.All() {
		t.Error("a nil filter dropped rows")
	}
	spec := iceberg.NewPartitionSpec()
	p := b.Partition(Iceberg, &spec)
	if !b.MayMatch(Iceberg, Metrics{}) || !b.MustMatch(Iceberg, Metrics{}) || !p.MayMatch(nil) || !p.MustMatch(nil) || p.Residual(nil) != nil ||
		!p.MayMatchSummaries(nil) || b.FieldIDs() != nil || b.MemorySize() != 0 || b.String() != "true" || !b.AlwaysTrue(Iceberg) || b.AlwaysFalse(Iceberg) ||
		b.WithConstants(Iceberg, nil) != nil {
		t.Error("a nil filter is not true")
	}
}

// TestDeleteWithNulls is what deletes by pyiceberg keep of x = {1, 2, null}.
func TestDeleteWithNulls(t *testing.T) {
	schema := iceberg.NewSchema(0, field(t, 1, "x", "int", false), field(t, 2, "s", "string", false), field(t, 3, "y", "double", false))
	lit := func(s string) iceberg.Literal { return iceberg.StringLiteral(s) }
	columns := map[int]arrow.Array{
		1: arrayOf(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, []iceberg.Literal{iceberg.Int32Literal(1), iceberg.Int32Literal(2), nil, nil}),
		2: arrayOf(memory.DefaultAllocator, arrow.BinaryTypes.String, []iceberg.Literal{nil, lit("a"), lit("b"), lit("c")}),
		3: arrayOf(memory.DefaultAllocator, arrow.PrimitiveTypes.Float64, []iceberg.Literal{
			iceberg.Float64Literal(1), iceberg.Float64Literal(math.NaN()), nil, iceberg.Float64Literal(5)}),
	}
	for _, c := range []struct {
		expr *Expr
		want string // the rows that go
	}{
		{Compare(OpEq, "x", iceberg.Int32Literal(2)), "[1]"},
		{Compare(OpNotEq, "s", lit("a")), "[2 3]"},
		{NotIn("s", lit("a"), lit("b")), "[3]"},
		{Not(Compare(OpEq, "s", lit("a"))), "[2 3]"},
		{IsNull("s"), "[0]"},
		{Or(Compare(OpEq, "s", lit("a")), IsNull("s")), "[0 1]"},
		{And(Compare(OpGt, "x", iceberg.Int32Literal(1)), IsNaN("y")), "[1]"},
		{Or(Compare(OpEq, "x", iceberg.Int32Literal(1)), Compare(OpGt, "y", iceberg.Int32Literal(2))), "[0]"}, // x null, y 5 stays
	} {
		b := bind(t, schema, c.expr)
		if got := fmt.Sprint(matching(t, b, PyIcebergDelete, 4, columns)); got != c.want {
			t.Errorf("%s: %s go, expected %s", newBoundRule(b.rule(PyIcebergDelete), PyIcebergDelete), got, c.want)
		}
	}
}

// TestNaNBound: a writer that compares NaN like any number leaves bounds that
// say nothing.
func TestNaNBound(t *testing.T) {
	schema := iceberg.NewSchema(0, field(t, 1, "x", "double", false))
	double := func(f float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)) }
	notIn := bind(t, schema, NotIn("x", iceberg.Float64Literal(1), iceberg.Float64Literal(2)))
	in := bind(t, schema, In("x", iceberg.Float64Literal(1), iceberg.Float64Literal(2)))
	metrics := Metrics{RecordCount: KnownCount(2), Column: func(int) ColumnMetrics {
		return ColumnMetrics{ValueCount: KnownCount(2), NullCount: KnownCount(0), NaNCount: KnownCount(1), Lower: double(1), Upper: double(math.NaN())}
	}}
	values := map[int]arrow.Array{1: arrayOf(memory.DefaultAllocator, arrow.PrimitiveTypes.Float64,
		[]iceberg.Literal{iceberg.Float64Literal(1), iceberg.Float64Literal(math.NaN())})}
	for mode, want := range map[Mode]string{Iceberg: "[1]", PyIcebergScan: "[1]", PyIcebergDelete: "[]"} {
		if got := fmt.Sprint(matching(t, notIn, mode, 2, values)); got != want {
			t.Errorf("mode %s: rows %s match, expected %s", mode, got, want)
		}
		if notIn.MustMatch(mode, metrics) || !in.MayMatch(mode, metrics) || in.MustMatch(mode, metrics) {
			t.Errorf("mode %s: a NaN bound proves something", mode)
		}
	}
	if notIn.MayMatch(PyIcebergScan, metrics) != true || notIn.MayMatch(Iceberg, metrics) != true {
		t.Error("the NaN row matches, and the file was pruned")
	}
}

// TestBoundsProve writes down what metrics prove, and what they do not.
func TestBoundsProve(t *testing.T) {
	schema := testSchema(t)
	count := KnownCount
	bytesOf := func(l iceberg.Literal) []byte {
		b, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	number := func(lower, upper iceberg.Literal) ColumnMetrics {
		return ColumnMetrics{ValueCount: count(10), NullCount: count(0), NaNCount: count(0), Lower: bytesOf(lower), Upper: bytesOf(upper)}
	}
	long := func(n int64) iceberg.Literal { return iceberg.Int64Literal(n) }
	str := func(s string) iceberg.Literal { return iceberg.StringLiteral(s) }
	withNulls := number(long(3), long(5))
	withNulls.NullCount = count(2)
	noCounts := number(long(3), long(5))
	noCounts.NullCount = Count{}
	const never, may, must = "never", "may", "must"
	for _, c := range []struct {
		expr    *Expr
		metrics ColumnMetrics
		want    string
	}{
		{Compare(OpEq, "long", long(4)), number(long(3), long(5)), may},
		{Compare(OpEq, "long", long(6)), number(long(3), long(5)), never},
		{Compare(OpEq, "long", long(4)), number(long(4), long(4)), must},
		{Compare(OpGt, "long", long(2)), number(long(3), long(5)), must},
		{Compare(OpGt, "long", long(2)), withNulls, may},
		{Compare(OpGt, "long", long(2)), noCounts, may},
		{Compare(OpNotEq, "long", long(9)), withNulls, must},
		{Compare(OpNotEq, "long", long(4)), number(long(4), long(4)), never},
		{In("long", long(1), long(9)), number(long(3), long(5)), never},
		{In("long", long(1), long(4)), number(long(4), long(4)), must},
		{NotIn("long", long(1), long(9)), number(long(3), long(5)), must},
		{Compare(OpGt, "long", long(2)), number(iceberg.Int32Literal(3), iceberg.Int32Literal(5)), must}, // promoted since
		{Compare(OpGt, "double", long(2)), number(iceberg.Float32Literal(3), iceberg.Float32Literal(5)), must},
		{Compare(OpGt, "timestamp", iceberg.TimestampLiteral(0)), number(iceberg.DateLiteral(1), iceberg.DateLiteral(2)), must},
		{Compare(OpEq, "string", str("abc")), number(str("abc"), str("abc")), may}, // perhaps truncated
		{Compare(OpNotEq, "string", str("abc")), number(str("abc"), str("abc")), may},
		{Compare(OpEq, "string", str("b")), number(str("abc"), str("abd")), never},
		{Compare(OpStartsWith, "string", str("ab")), number(str("abc"), str("abd")), must},
		{Compare(OpStartsWith, "string", str("abc")), number(str("abc"), str("abd")), may},
		{Compare(OpNotStartsWith, "string", str("ab")), number(str("abc"), str("abd")), never},
		{IsNull("long"), number(long(3), long(5)), never},
		{IsNull("long"), ColumnMetrics{NullCount: count(10)}, must},
		{NotNull("long"), ColumnMetrics{NullCount: count(10)}, never},
		{Compare(OpLt, "long", long(9)), ColumnMetrics{NullCount: count(10)}, never},
		{Compare(OpNotEq, "long", long(9)), ColumnMetrics{NullCount: count(10)}, must},
		{IsNaN("double"), ColumnMetrics{ValueCount: count(10), NaNCount: count(10)}, must},
		{Compare(OpGt, "double", long(9)), ColumnMetrics{ValueCount: count(10), NaNCount: count(10)}, must},
		{Compare(OpLt, "double", long(9)), ColumnMetrics{ValueCount: count(10), NaNCount: count(10)}, never},
		{Compare(OpEq, "long", long(4)), ColumnMetrics{}, may},
		{Compare(OpEq, "long", long(4)), ColumnMetrics{ValueCount: count(7), NullCount: count(10), Lower: []byte{1}}, may}, // counts of something else
		{Compare(OpGt, "long", long(9)), number(long(8), long(3)), may},                                                    // bounds in the wrong order
		{Compare(OpEq, "double", iceberg.Float64Literal(math.Copysign(0, -1))), number(iceberg.Float64Literal(0), iceberg.Float64Literal(1)), may},
	} {
		b := bind(t, schema, c.expr)
		m := Metrics{RecordCount: count(10), Column: func(int) ColumnMetrics { return c.metrics }}
		got := never
		if b.MayMatch(Iceberg, m) {
			got = may
		}
		if b.MustMatch(Iceberg, m) {
			got = must
		}
		if got != c.want {
			t.Errorf("%s with %+v: %s, expected %s", b, c.metrics, got, c.want)
		}
	}
	empty := Metrics{RecordCount: count(0), Column: func(int) ColumnMetrics { return ColumnMetrics{} }}
	if b := bind(t, schema, IsNull("long")); b.MayMatch(Iceberg, empty) {
		t.Error("an empty file may match")
	}
	// A column of nulls may be one that the file does not have, for which a scan
	// by pyiceberg takes another way.
	nulls := Metrics{RecordCount: count(10), Column: func(int) ColumnMetrics { return ColumnMetrics{NullCount: count(10)} }}
	notEqual := bind(t, schema, Compare(OpNotEq, "long", long(4)))
	if !notEqual.MayMatch(PyIcebergScan, nulls) || notEqual.MustMatch(PyIcebergScan, nulls) || notEqual.MayMatch(PyIcebergDelete, nulls) {
		t.Error("a column of nulls was judged without regard to files that lack it")
	}
	// A nested column under an optional struct: only counts of every row count.
	label := bind(t, schema, IsNull("point.Label"))
	if !label.MayMatch(Iceberg, Metrics{RecordCount: count(10), Column: func(int) ColumnMetrics { return ColumnMetrics{NullCount: count(0)} }}) {
		t.Error("a null parent was overlooked")
	}
}

// TestSharedByGoroutines: compilation happens once, whoever comes first.
func TestSharedByGoroutines(t *testing.T) {
	b := bind(t, testSchema(t), In("long", iceberg.Int64Literal(1), iceberg.Int64Literal(2)))
	arr := arrayOf(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, []iceberg.Literal{iceberg.Int64Literal(1), nil, iceberg.Int64Literal(3)})
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			keep := batch.NewMask(3, true)
			err := b.Evaluate(modes[i%3], 3, func(int) (arrow.Array, error) { return arr, nil }, keep)
			if err != nil || keep.Words[0] != 1 {
				t.Errorf("%b %v", keep.Words[0], err)
			}
		})
	}
	wait.Wait()
}

// TestResidualsAreOfOneMode: a residual used in another mode is a defect.
func TestResidualsAreOfOneMode(t *testing.T) {
	residual := bind(t, testSchema(t), IsNull("long")).WithConstants(PyIcebergScan, func(int) (iceberg.Literal, bool) { return nil, false })
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	residual.MayMatch(Iceberg, Metrics{})
}

// TestText: what is written says what is meant, in every mode.
func TestText(t *testing.T) {
	schema := testSchema(t)
	one := iceberg.Int64Literal(1)
	for _, c := range []struct {
		expr                  *Expr
		iceberg, scan, delete string
	}{
		{Compare(OpNotEq, "double", one), "double != 1", "(double != 1 and double is not null or double is absent)",
			"double != 1 and double is not null and double is not nan"},
		{Compare(OpGt, "double", one), "double >= 1.0000000000000002", "double >= 1.0000000000000002 and double is not nan",
			"double >= 1.0000000000000002 and double is not nan"},
		{NotNaN("double"), "double is not nan", "(double is not null and double is not nan or double is absent)",
			"double is not null and double is not nan"},
		{And(NotNaN("double"), IsNull("double")), "double is null", "double is absent", "double is null"},
		{Not(NotNull("double")), "double is null", "double is null", "double is null"},
		{IsNaN("double"), "double is nan", "double is nan", "double is nan"},
		{NotIn("long", one, iceberg.Int64Literal(2)), "long not in (1, 2)", "long not in (1, 2)", "long not in (1, 2) and long is not null"},
	} {
		b := bind(t, schema, c.expr)
		for mode, want := range map[Mode]string{Iceberg: c.iceberg, PyIcebergScan: c.scan, PyIcebergDelete: c.delete} {
			if got := newBoundRule(b.rule(mode), mode).String(); got != want {
				t.Errorf("mode %s: %s, expected %s", mode, got, want)
			}
		}
	}
}

func TestModeNames(t *testing.T) {
	for _, m := range modes {
		if back, err := ParseMode(m.String()); err != nil || back != m {
			t.Errorf("%s: %v %v", m, back, err)
		}
	}
	if _, err := ParseMode("spark"); errs.CodeOf(err) != errs.InvalidArgument {
		t.Errorf("%v", err)
	}
}
