package expr

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// TestTruthOfFloats writes down what every operation says of null, NaN, the two
// zeros and numbers, for a float and a double column.
func TestTruthOfFloats(t *testing.T) {
	rows := []float64{math.NaN(), math.Inf(-1), -1, math.Copysign(0, -1), 0, 1, math.Inf(1)} // and null in front
	const header = "null NaN -Inf -1 -0.0 0.0 1 +Inf"
	f := func(v float64) iceberg.Literal { return iceberg.Float64Literal(v) }
	minusZero := f(math.Copysign(0, -1))
	for _, c := range []struct {
		expr                  *Expr
		iceberg, scan, delete string // one digit a row, in the order of header
	}{
		{IsNull("x"), "10000000", "10000000", "10000000"},
		{NotNull("x"), "01111111", "01111111", "00111111"},
		{IsNaN("x"), "01000000", "01000000", "01000000"},
		{NotNaN("x"), "10111111", "00111111", "00111111"},
		{Compare(OpEq, "x", f(1)), "00000010", "00000010", "00000010"},
		{Compare(OpNotEq, "x", f(1)), "11111101", "01111101", "00111101"},
		{Compare(OpLt, "x", f(1)), "00111100", "00111100", "00111100"},
		{Compare(OpLtEq, "x", f(1)), "00111110", "00111110", "00111110"},
		{Compare(OpGt, "x", f(-1)), "01001111", "00001111", "00001111"},
		{Compare(OpGtEq, "x", f(-1)), "01011111", "00011111", "00011111"},
		{Compare(OpEq, "x", f(0)), "00000100", "00001100", "00001100"},
		{Compare(OpEq, "x", minusZero), "00001000", "00001100", "00001100"},
		{Compare(OpLt, "x", f(0)), "00111000", "00110000", "00110000"},
		{Compare(OpLtEq, "x", minusZero), "00111000", "00111100", "00111100"},
		{Compare(OpGt, "x", minusZero), "01000111", "00000011", "00000011"},
		{Compare(OpGtEq, "x", f(0)), "01000111", "00001111", "00001111"},
		{Compare(OpEq, "x", f(math.Inf(1))), "00000001", "00000001", "00000001"},
		{Compare(OpGt, "x", f(math.MaxFloat32)), "01000001", "00000001", "00000001"},
		{In("x", f(0), f(1)), "00000110", "00000110", "00000110"},
		{NotIn("x", f(0), f(1)), "11111001", "11111001", "00111001"},
		{In("x", f(1)), "00000010", "00000010", "00000010"},
		{NotIn("x", f(1)), "11111101", "01111101", "00111101"},
		{In("x"), "00000000", "00000000", "00000000"},
		{NotIn("x"), "11111111", "11111111", "11111111"},
		{Not(Compare(OpEq, "x", f(1))), "11111101", "01111101", "00111101"},
		{Not(Compare(OpLt, "x", f(1))), "01000011", "01000011", "00000011"},
		{Not(Compare(OpGt, "x", f(-1))), "00110000", "01110000", "00110000"},
		{Not(In("x", f(0), f(1))), "11111001", "11111001", "00111001"},
		{Not(NotIn("x", f(0), f(1))), "00000110", "00000110", "00000110"},
		{Not(IsNaN("x")), "10111111", "00111111", "00111111"},
		{Not(NotNull("x")), "10000000", "10000000", "10000000"},
		{And(Compare(OpGt, "x", f(0)), NotNaN("x")), "00000011", "00000011", "00000011"},
		{Or(Compare(OpEq, "x", f(1)), IsNull("x")), "10000010", "10000010", "10000010"},
		{Or(Compare(OpEq, "x", f(1)), IsNaN("x")), "01000010", "01000010", "01000010"},
		{Not(And(Compare(OpEq, "x", f(1)), IsNull("x"))), "11111111", "01111111", "10111111"},
	} {
		for _, typ := range []string{"float", "double"} {
			schema := iceberg.NewSchema(0, field(t, 1, "x", typ, false))
			b, err := c.expr.Bind(schema, true)
			if err != nil {
				t.Fatal(err)
			}
			values := []iceberg.Literal{nil}
			for _, v := range rows {
				lit := f(v)
				if typ == "float" {
					lit = iceberg.Float32Literal(v)
				}
				values = append(values, lit)
			}
			arr := arrayOf(memory.DefaultAllocator, arrowType(schema.Field(0).Type), values)
			for mode, want := range map[Mode]string{Iceberg: c.iceberg, PyIcebergScan: c.scan, PyIcebergDelete: c.delete} {
				got := strings.Repeat("0", len(values))
				for _, i := range matching(t, b, mode, len(values), map[int]arrow.Array{1: arr}) {
					got = got[:i] + "1" + got[i+1:]
				}
				if got != want {
					t.Errorf("%s, %s, mode %s:\n%s\ngot      %s\nexpected %s", typ, newBoundRule(b.rule(mode), mode), mode, header, got, want)
				}
			}
		}
	}
}

// TestTruthOfTypes does the same for null and three values of every other type.
func TestTruthOfTypes(t *testing.T) {
	three := map[string][3]iceberg.Literal{
		"int":            {iceberg.Int32Literal(-1), iceberg.Int32Literal(0), iceberg.Int32Literal(7)},
		"long":           {iceberg.Int64Literal(-1 << 40), iceberg.Int64Literal(0), iceberg.Int64Literal(1 << 40)},
		"decimal(10,2)":  {decimal(t, "-1.00"), decimal(t, "0.01"), decimal(t, "99999999.99")},
		"date":           {iceberg.DateLiteral(-1), iceberg.DateLiteral(0), iceberg.DateLiteral(20_000)},
		"time":           {iceberg.TimeLiteral(0), iceberg.TimeLiteral(1), iceberg.TimeLiteral(86_399_999_999)},
		"timestamp":      {iceberg.TimestampLiteral(-1), iceberg.TimestampLiteral(0), iceberg.TimestampLiteral(1 << 50)},
		"timestamptz":    {iceberg.TimestampLiteral(-1), iceberg.TimestampLiteral(0), iceberg.TimestampLiteral(1 << 50)},
		"timestamp_ns":   {iceberg.TimestampNsLiteral(-1), iceberg.TimestampNsLiteral(0), iceberg.TimestampNsLiteral(1 << 60)},
		"timestamptz_ns": {iceberg.TimestampNsLiteral(-1), iceberg.TimestampNsLiteral(0), iceberg.TimestampNsLiteral(1 << 60)},
		"string":         {iceberg.StringLiteral("a"), iceberg.StringLiteral("\uffff"), iceberg.StringLiteral("\U0001f600")}, // by UTF-8, not UTF-16
		"binary":         {iceberg.BinaryLiteral{}, iceberg.BinaryLiteral{0}, iceberg.BinaryLiteral{0xff}},
		"fixed[2]":       {iceberg.FixedLiteral{0, 0}, iceberg.FixedLiteral{0, 1}, iceberg.FixedLiteral{0x80, 0}},
		"uuid":           {iceberg.UUIDLiteral{}, iceberg.UUIDLiteral{15: 1}, iceberg.UUIDLiteral{0: 0xff}},
	}
	for typ, v := range three {
		schema := iceberg.NewSchema(0, field(t, 1, "x", typ, false))
		arr := arrayOf(memory.DefaultAllocator, arrowType(schema.Field(0).Type), []iceberg.Literal{nil, v[0], v[1], v[2]})
		for _, c := range []struct {
			expr                  *Expr
			iceberg, scan, delete string // null and the three values
		}{
			{IsNull("x"), "1000", "1000", "1000"},
			{NotNull("x"), "0111", "0111", "0111"},
			{IsNaN("x"), "0000", "0000", "0000"},
			{NotNaN("x"), "1111", "1111", "1111"},
			{Compare(OpEq, "x", v[1]), "0010", "0010", "0010"},
			{Compare(OpNotEq, "x", v[1]), "1101", "0101", "0101"},
			{Compare(OpLt, "x", v[1]), "0100", "0100", "0100"},
			{Compare(OpLtEq, "x", v[1]), "0110", "0110", "0110"},
			{Compare(OpGt, "x", v[1]), "0001", "0001", "0001"},
			{Compare(OpGtEq, "x", v[1]), "0011", "0011", "0011"},
			{In("x", v[0], v[2]), "0101", "0101", "0101"},
			{NotIn("x", v[0], v[2]), "1010", "1010", "0010"},
			{Not(Compare(OpLt, "x", v[1])), "0011", "0011", "0011"},
			{Not(In("x", v[0], v[2])), "1010", "1010", "0010"},
			{And(Compare(OpGtEq, "x", v[0]), Compare(OpLt, "x", v[2])), "0110", "0110", "0110"},
			{Or(Compare(OpEq, "x", v[0]), Compare(OpEq, "x", v[2]), IsNull("x")), "1101", "1101", "1101"},
		} {
			b, err := c.expr.Bind(schema, true)
			if err != nil {
				t.Fatal(err)
			}
			for mode, want := range map[Mode]string{Iceberg: c.iceberg, PyIcebergScan: c.scan, PyIcebergDelete: c.delete} {
				got := []byte("0000")
				for _, i := range matching(t, b, mode, 4, map[int]arrow.Array{1: arr}) {
					got[i] = '1'
				}
				if string(got) != want {
					t.Errorf("%s: %s, mode %s: %s, expected %s", typ, newBoundRule(b.rule(mode), mode), mode, got, want)
				}
			}
		}
	}
}

func decimal(t testing.TB, s string) iceberg.Literal {
	t.Helper()
	lit, err := wireTypeName{name: "decimal"}.read([]byte(`"` + s + `"`))
	if err != nil {
		t.Fatal(err)
	}
	return lit
}

// TestStartsWith covers prefixes at the edges of the order of bytes.
func TestStartsWith(t *testing.T) {
	schema := iceberg.NewSchema(0, field(t, 1, "b", "binary", false))
	arr := arrayOf(memory.DefaultAllocator, arrow.BinaryTypes.Binary, []iceberg.Literal{
		nil, iceberg.BinaryLiteral(""), iceberg.BinaryLiteral("a"), iceberg.BinaryLiteral("ab"), iceberg.BinaryLiteral("b"),
		iceberg.BinaryLiteral("\xff"), iceberg.BinaryLiteral("\xff\xff\x01"),
	})
	for _, c := range []struct {
		prefix string
		with   []int
	}{
		{"", []int{1, 2, 3, 4, 5, 6}}, {"a", []int{2, 3}}, {"ab", []int{3}}, {"abc", nil}, {"\xff", []int{5, 6}}, {"\xff\xff", []int{6}},
	} {
		for _, op := range []Op{OpStartsWith, OpNotStartsWith} {
			b, err := Compare(op, "b", iceberg.BinaryLiteral(c.prefix)).Bind(schema, true)
			if err != nil {
				t.Fatal(err)
			}
			want := batch.NewMask(7, op == OpNotStartsWith)
			for _, i := range c.with {
				if op == OpStartsWith {
					want.Set(i)
				} else {
					want.Clear(i)
				}
			}
			keep := batch.NewMask(7, true)
			if err := b.Evaluate(Iceberg, 7, func(int) (arrow.Array, error) { return arr, nil }, keep); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(keep.Words) != fmt.Sprint(want.Words) {
				t.Errorf("%s %q: %b, expected %b", op, c.prefix, keep.Words, want.Words)
			}
		}
	}
}
