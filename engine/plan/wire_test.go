package plan

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

func TestLiteralWireForm(t *testing.T) {
	for _, test := range []struct {
		typ  iceberg.Type
		lit  iceberg.Literal
		want string
	}{
		{iceberg.PrimitiveTypes.Int32, nil, "null"},
		{iceberg.PrimitiveTypes.Bool, iceberg.BoolLiteral(true), "true"},
		{iceberg.PrimitiveTypes.Int32, iceberg.Int32Literal(-7), "-7"},
		{iceberg.PrimitiveTypes.Int64, iceberg.Int64Literal(math.MinInt64), "-9223372036854775808"},
		{iceberg.PrimitiveTypes.Float32, iceberg.Float32Literal(0.1), "0.1"},
		{iceberg.PrimitiveTypes.Float64, iceberg.Float64Literal(1e300), "1e+300"},
		{iceberg.PrimitiveTypes.Float64, iceberg.Float64Literal(math.Copysign(0, -1)), "-0"},
		{iceberg.PrimitiveTypes.Float64, iceberg.Float64Literal(math.Inf(-1)), `"-Infinity"`},
		{iceberg.PrimitiveTypes.Float64, iceberg.Float64Literal(math.NaN()), `"NaN"`},
		{iceberg.PrimitiveTypes.Date, iceberg.DateLiteral(-1), "-1"},
		{iceberg.PrimitiveTypes.Time, iceberg.TimeLiteral(5), "5"},
		{iceberg.PrimitiveTypes.Timestamp, iceberg.TimestampLiteral(6), "6"},
		{iceberg.PrimitiveTypes.TimestampTz, iceberg.TimestampLiteral(7), "7"},
		{iceberg.PrimitiveTypes.TimestampNs, iceberg.TimestampNsLiteral(8), "8"},
		{iceberg.PrimitiveTypes.String, iceberg.StringLiteral("a<\"ö"), `"a<\"ö"`},
		{iceberg.PrimitiveTypes.String, iceberg.StringLiteral("7"), `"7"`},
		{iceberg.PrimitiveTypes.Binary, iceberg.BinaryLiteral{0, 255}, `"00ff"`},
		{iceberg.FixedTypeOf(2), iceberg.FixedLiteral{1, 2}, `"0102"`},
		{iceberg.DecimalTypeOf(9, 2), iceberg.DecimalLiteral{Val: decimal128.FromI64(-1205), Scale: 2}, `"-12.05"`},
		{iceberg.DecimalTypeOf(9, 0), iceberg.DecimalLiteral{Val: decimal128.FromI64(12), Scale: 0}, `"12"`},
		{iceberg.PrimitiveTypes.UUID, iceberg.UUIDLiteral(uuid.Nil), `"00000000-0000-0000-0000-000000000000"`},
	} {
		text := EncodeLiteral(test.lit)
		if string(text) != test.want {
			t.Errorf("%s: %s, want %s", test.typ, text, test.want)
		}
		back, err := decodeLiteral(test.typ, text)
		if err != nil {
			t.Errorf("%s %s: %v", test.typ, text, err)
			continue
		}
		if string(appendLiteral(nil, back)) != string(appendLiteral(nil, test.lit)) {
			t.Errorf("%s %s comes back as %v", test.typ, text, back)
		}
	}
	for _, test := range []struct {
		typ  iceberg.Type
		text string
	}{
		{iceberg.PrimitiveTypes.Int32, "2147483648"},
		{iceberg.PrimitiveTypes.Int32, `"1"`},
		{iceberg.PrimitiveTypes.Int64, "1.5"},
		{iceberg.PrimitiveTypes.String, "1"},
		{iceberg.PrimitiveTypes.String, "true"},
		{iceberg.PrimitiveTypes.Bool, "1"},
		{iceberg.PrimitiveTypes.Binary, `"0"`},
		{iceberg.FixedTypeOf(2), `"010203"`},
		{iceberg.DecimalTypeOf(9, 2), `"1.5"`},
		{iceberg.PrimitiveTypes.Int32, "[1]"},
		{iceberg.PrimitiveTypes.Float64, "{}"},
	} {
		if lit, err := decodeLiteral(test.typ, []byte(test.text)); err == nil {
			t.Errorf("%s is accepted as the %s %v", test.text, test.typ, lit)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		sizes []int64
		n     int
		want  []int // tasks of each run
	}{
		{nil, 3, nil},
		{[]int64{0, 0}, 3, []int{2}},
		{[]int64{1, 1, 1, 1}, 2, []int{2, 2}},
		{[]int64{1, 1, 1, 1, 1}, 1, []int{5}},
		{[]int64{10, 1, 1}, 3, []int{1, 2}},
		{[]int64{1, 1, 1}, 10, []int{1, 1, 1}},
	} {
		var tasks []*Task
		for _, size := range test.sizes {
			// Half of it are deletes: a file, and a vector that is a part of one.
			blob := size - size/2 - size/4
			tasks = append(tasks, &Task{Data: &File{Size: size / 2}, Deletes: []*File{{Size: size / 4}, {Size: 1 << 40, ContentSize: &blob}}})
		}
		var got []int
		for _, run := range Split(tasks, test.n) {
			got = append(got, len(run))
		}
		if len(got) != len(test.want) {
			t.Errorf("%v in %d: %v, want %v", test.sizes, test.n, got, test.want)
			continue
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%v in %d: %v, want %v", test.sizes, test.n, got, test.want)
			}
		}
	}
}
