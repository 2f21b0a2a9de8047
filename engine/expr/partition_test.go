package expr

import (
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"
)

// TestResiduals writes down what partitions leave to test, by transform.
func TestResiduals(t *testing.T) {
	schema := testSchema(t)
	ids := map[string]int{}
	for _, f := range schema.Fields() {
		ids[f.Name] = f.ID
	}
	str := func(s string) iceberg.Literal { return iceberg.StringLiteral(s) }
	long := func(n int64) iceberg.Literal { return iceberg.Int64Literal(n) }
	i32 := func(n int32) iceberg.Literal { return iceberg.Int32Literal(n) }
	micros := func(n int64) iceberg.Literal { return iceberg.TimestampLiteral(n) }
	identity, void := iceberg.IdentityTransform{}, iceberg.VoidTransform{}
	unknown, _ := iceberg.ParseTransform("zorder")
	truncate := iceberg.TruncateTransform{Width: 3}
	bucket := iceberg.BucketTransform{NumBuckets: 16} // long 34 is in bucket 3
	const all, none = "true", "false"
	for _, c := range []struct {
		expr      *Expr
		column    string
		transform iceberg.Transform
		value     iceberg.Literal
		want      string
	}{
		{Compare(OpEq, "long", long(4)), "long", identity, long(4), all},
		{Compare(OpEq, "long", long(4)), "long", identity, long(5), none},
		{Compare(OpEq, "long", long(4)), "long", identity, nil, none},
		{Compare(OpNotEq, "long", long(4)), "long", identity, nil, all},
		{IsNull("long"), "long", identity, nil, all},
		{IsNull("long"), "long", identity, long(1), none},
		{Compare(OpEq, "string", str("ab")), "string", identity, str("ab"), all},
		{Compare(OpLt, "string", str("b")), "string", identity, str("ab"), all},
		{Compare(OpEq, "double", iceberg.Float64Literal(0)), "double", identity, iceberg.Float64Literal(0), "double = 0"}, // either zero
		{Compare(OpLt, "double", iceberg.Float64Literal(1)), "double", identity, iceberg.Float64Literal(0), all},
		{And(Compare(OpEq, "long", long(4)), IsNull("int")), "long", identity, long(4), "int is null"},
		{Or(Compare(OpEq, "long", long(4)), IsNull("int")), "long", identity, long(5), "int is null"},

		{Compare(OpEq, "long", long(34)), "long", bucket, i32(3), "long = 34"},
		{Compare(OpEq, "long", long(34)), "long", bucket, i32(4), none},
		{Compare(OpNotEq, "long", long(34)), "long", bucket, i32(4), all},
		{Compare(OpNotEq, "long", long(34)), "long", bucket, nil, all},
		{NotIn("long", long(34), long(35)), "long", bucket, i32(3), "long not in (34, 35)"},
		{Compare(OpGt, "long", long(34)), "long", bucket, i32(4), "long >= 35"},
		{NotNull("long"), "long", bucket, i32(4), all},

		{Compare(OpLt, "long", long(6)), "long", truncate, long(3), all},
		{Compare(OpLt, "long", long(5)), "long", truncate, long(3), "long <= 4"},
		{Compare(OpLt, "long", long(3)), "long", truncate, long(3), none},
		{Compare(OpGt, "decimal", decimal(t, "0.02")), "decimal", truncate, decimal(t, "0.03"), all},
		{Compare(OpGt, "decimal", decimal(t, "0.05")), "decimal", truncate, decimal(t, "0.03"), none},
		{Compare(OpEq, "string", str("ab")), "string", truncate, str("ab"), all}, // shorter than the width: the whole value
		{Compare(OpEq, "string", str("abc")), "string", truncate, str("abc"), `string = "abc"`},
		{Compare(OpStartsWith, "string", str("ab")), "string", truncate, str("abc"), all},
		{Compare(OpStartsWith, "string", str("abcd")), "string", truncate, str("abc"), `"abcd" <= string < "abce"`},
		{Compare(OpNotStartsWith, "string", str("b")), "string", truncate, str("abc"), all},
		{Compare(OpLt, "string", str("abd")), "string", truncate, str("abc"), all},
		{Compare(OpLt, "string", str("éééx")), "string", truncate, str("ééé"), `string < "éééx"`}, // characters, not bytes
		{Compare(OpLt, "string", str("éé\x00")), "string", truncate, str("éé"), all},

		{Compare(OpGtEq, "timestamp", micros(microsPerDay)), "timestamp", iceberg.DayTransform{}, iceberg.DateLiteral(1), all},
		{Compare(OpGtEq, "timestamp", micros(microsPerDay+1)), "timestamp", iceberg.DayTransform{}, iceberg.DateLiteral(1), "timestamp >= 1970-01-02 00:00:00.000001"},
		{Compare(OpLt, "timestamp", micros(2*microsPerDay)), "timestamp", iceberg.DayTransform{}, iceberg.DateLiteral(1), all},
		{Compare(OpEq, "timestamp", micros(0)), "timestamp", iceberg.HourTransform{}, i32(1), none},
		{Compare(OpEq, "timestamp_ns", iceberg.TimestampNsLiteral(0)), "timestamp_ns", iceberg.MonthTransform{}, i32(1), none},
		{Compare(OpLt, "date", iceberg.DateLiteral(365)), "date", iceberg.YearTransform{}, i32(1), none},
		{Compare(OpLt, "date", iceberg.DateLiteral(730)), "date", iceberg.YearTransform{}, i32(1), all},
		{Compare(OpEq, "date", iceberg.DateLiteral(-1)), "date", iceberg.DayTransform{}, iceberg.DateLiteral(-1), all},
		// Old writers put the last hour of 1969 into hour 0.
		{Compare(OpLt, "timestamp", micros(0)), "timestamp", iceberg.HourTransform{}, i32(0), "timestamp <= 1969-12-31 23:59:59.999999"},
		{Compare(OpLt, "timestamp", micros(-microsPerHour)), "timestamp", iceberg.HourTransform{}, i32(0), none},

		{IsNull("long"), "long", void, nil, "long is null"},
		{IsNull("long"), "long", unknown, nil, "long is null"},
		{IsNull("int"), "long", identity, long(1), "int is null"},
	} {
		spec := iceberg.NewPartitionSpec(
			iceberg.PartitionField{SourceIDs: []int{ids["boolean"]}, FieldID: 1000, Name: "other", Transform: identity},
			iceberg.PartitionField{SourceIDs: []int{ids[c.column]}, FieldID: 1001, Name: "p", Transform: c.transform})
		p := bind(t, schema, c.expr).Partition(Iceberg, &spec)
		tuple := []iceberg.Literal{nil, c.value}
		residual := p.Residual(tuple)
		if residual.String() != c.want {
			t.Errorf("%s of %s = %v: %s, expected %s", c.transform, bind(t, schema, c.expr), c.value, residual, c.want)
		}
		if p.MayMatch(tuple) != (c.want != none) || p.MustMatch(tuple) != (c.want == all) {
			t.Errorf("%s of %s = %v: may %v, must %v, but the residual is %s", c.transform, bind(t, schema, c.expr), c.value, p.MayMatch(tuple), p.MustMatch(tuple), residual)
		}
	}
}

// TestSummaries writes down which manifests are left out.
func TestSummaries(t *testing.T) {
	schema := testSchema(t)
	long := func(n int64) iceberg.Literal { return iceberg.Int64Literal(n) }
	bytesOf := func(l iceberg.Literal) []byte {
		if l == nil {
			return nil
		}
		b, _ := l.MarshalBinary()
		return b
	}
	yes, no := true, false
	for i, c := range []struct {
		expr         *Expr
		column       int
		transform    iceberg.Transform
		lower, upper iceberg.Literal
		nulls        bool
		nans         *bool
		want         bool
	}{
		{Compare(OpEq, "long", long(4)), 3, iceberg.IdentityTransform{}, long(1), long(3), false, nil, false},
		{Compare(OpEq, "long", long(4)), 3, iceberg.IdentityTransform{}, long(1), long(3), true, nil, false},
		{Compare(OpNotEq, "long", long(4)), 3, iceberg.IdentityTransform{}, long(1), long(3), true, nil, true},
		{Compare(OpEq, "long", long(4)), 3, iceberg.IdentityTransform{}, iceberg.Int32Literal(1), iceberg.Int32Literal(3), false, nil, false},
		{Compare(OpEq, "long", long(4)), 3, iceberg.IdentityTransform{}, nil, nil, false, nil, true},
		{IsNull("long"), 3, iceberg.IdentityTransform{}, long(1), long(3), false, nil, false},
		{IsNull("long"), 3, iceberg.BucketTransform{NumBuckets: 16}, iceberg.Int32Literal(1), iceberg.Int32Literal(3), true, nil, true},
		{Compare(OpEq, "long", long(34)), 3, iceberg.BucketTransform{NumBuckets: 16}, iceberg.Int32Literal(4), iceberg.Int32Literal(9), true, nil, false},
		{Compare(OpEq, "long", long(34)), 3, iceberg.BucketTransform{NumBuckets: 16}, iceberg.Int32Literal(2), iceberg.Int32Literal(9), false, nil, true},
		{Compare(OpGt, "double", long(4)), 5, iceberg.IdentityTransform{}, iceberg.Float64Literal(1), iceberg.Float64Literal(2), false, nil, true},
		{Compare(OpGt, "double", long(4)), 5, iceberg.IdentityTransform{}, iceberg.Float64Literal(1), iceberg.Float64Literal(2), false, &yes, true},
		{Compare(OpGt, "double", long(4)), 5, iceberg.IdentityTransform{}, iceberg.Float64Literal(1), iceberg.Float64Literal(2), false, &no, false},
		{Compare(OpLt, "timestamp", iceberg.TimestampLiteral(microsPerDay)), 9, iceberg.DayTransform{}, iceberg.DateLiteral(1), iceberg.DateLiteral(9), false, nil, false},
		{Compare(OpGtEq, "timestamp", iceberg.TimestampLiteral(10*microsPerDay-1)), 9, iceberg.DayTransform{}, iceberg.DateLiteral(1), iceberg.DateLiteral(9), false, nil, true},
		{Compare(OpGtEq, "timestamp", iceberg.TimestampLiteral(10*microsPerDay)), 9, iceberg.DayTransform{}, iceberg.DateLiteral(1), iceberg.DateLiteral(9), false, nil, false},
		{Compare(OpGt, "string", iceberg.StringLiteral("abz")), 13, iceberg.TruncateTransform{Width: 2}, iceberg.StringLiteral("aa"), iceberg.StringLiteral("ab"), false, nil, true},
		{Compare(OpGtEq, "string", iceberg.StringLiteral("ac")), 13, iceberg.TruncateTransform{Width: 2}, iceberg.StringLiteral("aa"), iceberg.StringLiteral("ab"), false, nil, false},
		{Compare(OpGt, "string", iceberg.StringLiteral("ac")), 13, iceberg.TruncateTransform{Width: 2}, iceberg.StringLiteral("aa"), iceberg.StringLiteral("ab"), false, nil, false},
	} {
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{c.column}, FieldID: 1000, Name: "p", Transform: c.transform})
		p := bind(t, schema, c.expr).Partition(Iceberg, &spec)
		s := FieldSummary{ContainsNull: c.nulls, ContainsNaN: c.nans, Lower: bytesOf(c.lower), Upper: bytesOf(c.upper)}
		if got := p.MayMatchSummaries([]FieldSummary{s}); got != c.want {
			t.Errorf("%d: %s of %s, %s: %v, expected %v", i, c.transform, bind(t, schema, c.expr), fmt.Sprintf("%+v", s), got, c.want)
		}
	}
}
