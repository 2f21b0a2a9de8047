package expr

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

var rounds = flag.Int("expr.rounds", 1000, "rounds of the property tests")

// seeds for the property tests; a failure prints the one to rerun.
var oneSeed = flag.Uint64("expr.seed", 0, "run only this seed")

var allTypes = []string{
	"boolean", "int", "long", "float", "double", "decimal(10,2)", "date", "time", "timestamp", "timestamptz",
	"timestamp_ns", "timestamptz_ns", "string", "binary", "fixed[3]", "uuid",
}

// world is a random table of a few rows with one column of every type.
type world struct {
	*rand.Rand
	schema *iceberg.Schema
	fields []iceberg.NestedField
	// rows by column name.
	rows []map[string]iceberg.Literal
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7))}
	for i, typ := range allTypes {
		name := typ
		if typ == "decimal(10,2)" {
			name = "decimal"
		}
		w.fields = append(w.fields, field(t, i+1, name, typ, false))
	}
	w.schema = iceberg.NewSchema(0, w.fields...)
	for range 1 + w.IntN(150) {
		row := map[string]iceberg.Literal{}
		for _, f := range w.fields {
			if w.IntN(5) > 0 {
				row[f.Name] = w.value(f.Type, true)
			}
		}
		w.rows = append(w.rows, row)
	}
	return w
}

func pick[T any](w *world, list ...T) T { return list[w.IntN(len(list))] }

// value is a random value of few, so that rows and literals often meet.
func (w *world) value(typ iceberg.Type, withNaN bool) iceberg.Literal {
	small := int64(w.IntN(9) - 4)
	float := func() float64 {
		if withNaN && w.IntN(6) == 0 {
			return math.NaN()
		}
		return pick(w, 0, math.Copysign(0, -1), 1, -1, 2.5, 0.1, math.Inf(1), math.Inf(-1), math.MaxFloat32)
	}
	text := func() string {
		s := ""
		for range w.IntN(5) {
			s += pick(w, "a", "b", "\xff", "\x00", "c")
		}
		return s
	}
	micros := pick(w, small, small*microsPerHour, small*microsPerDay, small*31*microsPerDay+1, small*365*microsPerDay-1)
	switch typ.(type) {
	case iceberg.BooleanType:
		return iceberg.BoolLiteral(w.IntN(2) == 0)
	case iceberg.Int32Type:
		return iceberg.Int32Literal(pick(w, small, small, small*10, math.MaxInt32, math.MinInt32))
	case iceberg.Int64Type:
		return iceberg.Int64Literal(pick(w, small, small, small*10, math.MaxInt64, math.MinInt64))
	case iceberg.Float32Type:
		return iceberg.Float32Literal(float())
	case iceberg.Float64Type:
		return iceberg.Float64Literal(float())
	case iceberg.DecimalType:
		return iceberg.DecimalLiteral{Val: decimal128.FromI64(pick(w, small, small*10)), Scale: 2}
	case iceberg.DateType:
		return iceberg.DateLiteral(pick(w, small, small*31, small*365))
	case iceberg.TimeType:
		return iceberg.TimeLiteral(small + 4)
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.TimestampLiteral(micros)
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNsLiteral(micros*1000 + small)
	case iceberg.StringType:
		s := ""
		for range w.IntN(5) {
			s += pick(w, "a", "b", "é", "\U0001f600", "\x00")
		}
		return iceberg.StringLiteral(s)
	case iceberg.BinaryType:
		return iceberg.BinaryLiteral(text())
	case iceberg.FixedType:
		return iceberg.FixedLiteral((text() + "aaa")[:3])
	case iceberg.UUIDType:
		return iceberg.UUIDLiteral(uuid.UUID{byte(w.IntN(3)), 15: byte(w.IntN(3))})
	}
	panic(typ)
}

// expr is a random expression over some of the columns.
func (w *world) expr(fields []iceberg.NestedField, depth int) *Expr {
	if depth > 0 && w.IntN(3) > 0 {
		var args []*Expr
		for range 1 + w.IntN(4) {
			args = append(args, w.expr(fields, depth-1))
		}
		switch w.IntN(5) {
		case 0:
			return Not(args[0])
		case 1, 2:
			return And(args...)
		case 3:
			// Combinations of equal columns, as an upsert makes them.
			if len(fields) > 1 {
				a, b := fields[0], fields[1]
				for range 10 {
					args = append(args, And(Compare(OpEq, a.Name, w.value(a.Type, false)), Compare(OpEq, b.Name, w.value(b.Type, false))))
				}
			}
		}
		return Or(args...)
	}
	f := pick(w, fields...)
	op := pick(w, OpIsNull, OpNotNull, OpIsNaN, OpNotNaN, OpEq, OpNotEq, OpLt, OpLtEq, OpGt, OpGtEq, OpIn, OpNotIn, OpStartsWith, OpNotStartsWith)
	if op == OpStartsWith || op == OpNotStartsWith {
		if f.Name != "string" && f.Name != "binary" {
			op = OpEq
		}
	}
	switch {
	case op.isUnary():
		return &Expr{op: op, ref: ref{name: f.Name}}
	case op.isSet():
		var list []iceberg.Literal
		for range w.IntN(6) {
			list = append(list, w.value(f.Type, false))
		}
		return &Expr{op: op, ref: ref{name: f.Name}, values: literalsOf(list...)}
	}
	return Compare(op, f.Name, w.value(f.Type, false))
}

// columns builds the arrays of the table, each in a random layout.
func (w *world) columns(alloc memory.Allocator) map[int]arrow.Array {
	out := map[int]arrow.Array{}
	for _, f := range w.fields {
		typ := arrowType(f.Type)
		switch f.Name {
		case "string":
			typ = pick[arrow.DataType](w, typ, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
				&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
				&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String})
		case "binary":
			typ = pick[arrow.DataType](w, typ, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView)
		}
		skip := w.IntN(3) * w.IntN(70)
		values := make([]iceberg.Literal, skip, skip+len(w.rows))
		for _, row := range w.rows {
			values = append(values, row[f.Name])
		}
		whole := arrayOf(alloc, typ, values)
		out[f.ID] = array.NewSlice(whole, int64(skip), int64(len(values)))
		whole.Release()
	}
	return out
}

// eachWorld runs a property on many random worlds.
func eachWorld(t *testing.T, property func(t *testing.T, w *world) error) {
	for seed := uint64(1); seed <= uint64(*rounds); seed++ {
		if *oneSeed != 0 && seed != *oneSeed {
			continue
		}
		if err := property(t, newWorld(t, seed)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// someFields picks the columns that an expression uses.
func (w *world) someFields() []iceberg.NestedField {
	fields := slices.Clone(w.fields)
	w.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return fields[:1+w.IntN(3)]
}

// expected lists the rows among those given that match by the naive rules.
func (w *world) expected(x *Expr, mode Mode, rows []int) []int {
	out := []int{}
	for _, i := range rows {
		if (naive{mode: mode, row: w.rows[i]}).matches(x) {
			out = append(out, i)
		}
	}
	return out
}

func (w *world) allRows() []int {
	rows := make([]int, len(w.rows))
	for i := range rows {
		rows[i] = i
	}
	return rows
}

var modes = []Mode{Iceberg, PyIcebergScan, PyIcebergDelete}

func TestRowsLikeNaive(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	eachWorld(t, func(t *testing.T, w *world) error {
		x := w.expr(w.someFields(), 3)
		b, err := x.Bind(w.schema, true)
		if err != nil {
			return err
		}
		columns := w.columns(alloc)
		defer func() {
			for _, c := range columns {
				c.Release()
			}
		}()
		for _, mode := range modes {
			got, want := matching(t, b, mode, len(w.rows), columns), w.expected(x, mode, w.allRows())
			if !slices.Equal(got, want) {
				return fmt.Errorf("mode %s, %s: rows %v, expected %v", mode, newBoundRule(b.rule(mode), mode), got, want)
			}
		}
		return nil
	})
}
