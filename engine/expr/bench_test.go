package expr

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
)

const benchRows = 64 << 10 // one window

// BenchmarkEvaluate measures one test over one window of rows, a tenth null.
func BenchmarkEvaluate(b *testing.B) {
	schema := iceberg.NewSchema(0,
		field(b, 1, "id", "long", false), field(b, 2, "price", "double", false), field(b, 3, "amount", "decimal(12,2)", false),
		field(b, 4, "name", "string", false))
	r := rand.New(rand.NewPCG(1, 2))
	value := map[int]func() iceberg.Literal{
		1: func() iceberg.Literal { return iceberg.Int64Literal(r.IntN(10_000_000)) },
		2: func() iceberg.Literal { return iceberg.Float64Literal(r.NormFloat64()) },
		3: func() iceberg.Literal {
			l, _, _ := convert(iceberg.Int64Literal(r.IntN(1000)), iceberg.DecimalTypeOf(12, 2))
			return l
		},
		4: func() iceberg.Literal {
			return iceberg.StringLiteral("customer-" + string(rune('a'+r.IntN(26))) + "-long")
		},
	}
	columns := map[int]arrow.Array{}
	for id, f := range value {
		list := make([]iceberg.Literal, benchRows)
		for i := range list {
			if r.IntN(10) > 0 {
				list[i] = f()
			}
		}
		columns[id] = arrayOf(memory.DefaultAllocator, arrowType(schema.Field(id-1).Type), list)
	}
	million := array.NewInt64Builder(memory.DefaultAllocator)
	for range 1_000_000 {
		million.Append(r.Int64N(20_000_000))
	}
	inMillion, _ := InArray("id", million.NewInt64Array())
	var pairs []*Expr
	for range 100_000 {
		pairs = append(pairs, And(Compare(OpEq, "id", value[1]()), Compare(OpEq, "name", value[4]())))
	}
	for _, c := range []struct {
		name string
		expr *Expr
	}{
		{"long =", Compare(OpEq, "id", iceberg.Int64Literal(5))},
		{"long <", Compare(OpLt, "id", iceberg.Int64Literal(5_000_000))},
		{"long in 1M", inMillion},
		{"double <", Compare(OpLt, "price", iceberg.Float64Literal(0))},
		{"decimal <", Compare(OpLt, "amount", iceberg.Int64Literal(500))},
		{"string =", Compare(OpEq, "name", iceberg.StringLiteral("customer-e-long"))},
		{"string starts with", Compare(OpStartsWith, "name", iceberg.StringLiteral("customer-e"))},
		{"string in 3", In("name", iceberg.StringLiteral("customer-e-long"), iceberg.StringLiteral("customer-f-long"), iceberg.StringLiteral("x"))},
		{"or of 100k pairs", Or(pairs...)},
		{"and", And(Compare(OpLt, "id", iceberg.Int64Literal(100)), Compare(OpEq, "name", iceberg.StringLiteral("customer-e-long")))},
		{"or", Or(Compare(OpLt, "id", iceberg.Int64Literal(5_000_000)), Compare(OpGt, "price", iceberg.Float64Literal(0)))},
	} {
		bound, err := c.expr.Bind(schema, true)
		if err != nil {
			b.Fatal(err)
		}
		bound.AlwaysTrue(Iceberg) // compiles
		b.Run(c.name, func(b *testing.B) {
			keep := batch.NewMask(benchRows, true)
			for b.Loop() {
				keep.Reset(benchRows, true)
				if err := bound.Evaluate(Iceberg, benchRows, func(id int) (arrow.Array, error) { return columns[id], nil }, keep); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}

// BenchmarkFilter measures what comes before the first row: parsing, binding
// and compiling large filters.
func BenchmarkFilter(b *testing.B) {
	schema := iceberg.NewSchema(0, field(b, 1, "id", "long", false), field(b, 2, "name", "string", false))
	var set, pairs strings.Builder
	set.WriteString(`[{"op":"in","ref":"id","type":"long","values":[0`)
	for i := range 1_000_000 {
		fmt.Fprintf(&set, ",%d", i*7)
	}
	set.WriteString("]}]")
	pairs.WriteString("[")
	var args []string
	for i := range 100_000 {
		fmt.Fprintf(&pairs, `{"op":"eq","ref":"id","type":"long","value":%d},{"op":"eq","ref":"name","type":"string","value":"n%d"},{"op":"and","args":[%d,%d]},`, i, i, 3*i, 3*i+1)
		args = append(args, strconv.Itoa(3*i+2))
	}
	pairs.WriteString(`{"op":"or","args":[` + strings.Join(args, ",") + `]}]`)
	for name, wire := range map[string]string{"in 1M": set.String(), "or of 100k pairs": pairs.String()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(wire)))
			for b.Loop() {
				e, err := Parse([]byte(wire))
				if err != nil {
					b.Fatal(err)
				}
				bound, err := e.Bind(schema, true)
				if err != nil {
					b.Fatal(err)
				}
				bound.AlwaysTrue(Iceberg)
			}
		})
	}
}
