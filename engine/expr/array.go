package expr

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// InArray is In with the values of an Arrow array, which is copied. A null in
// it is an error.
func InArray(column string, values arrow.Array) (*Expr, error) {
	l, err := literalsOfArray(values)
	if err != nil {
		return nil, errs.New(errs.InvalidArgument, "filter: %s", err)
	}
	return &Expr{op: OpIn, ref: ref{name: column}, values: l}, nil
}

// NotInArray is NotIn with the values of an Arrow array.
func NotInArray(column string, values arrow.Array) (*Expr, error) {
	e, err := InArray(column, values)
	if err != nil {
		return nil, err
	}
	return &Expr{op: OpNotIn, ref: e.ref, values: e.values}, nil
}

// literalsOfArray copies an array of literals.
func literalsOfArray(arr arrow.Array) (*literals, error) {
	if ext, ok := arr.(array.ExtensionArray); ok {
		arr = ext.Storage()
	}
	if arr.NullN() > 0 {
		return nil, errs.New(errs.InvalidArgument, "a set of literals has a null; use is-null or not-null")
	}
	types := iceberg.PrimitiveTypes
	n := arr.Len()
	switch a := arr.(type) {
	case *array.Int64:
		return &literals{typ: types.Int64, ints: slices.Clone(a.Int64Values())}, nil
	case *array.Int8:
		return integers(types.Int64, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Int16:
		return integers(types.Int64, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Int32:
		return integers(types.Int64, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Uint8:
		return integers(types.Int64, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Uint16:
		return integers(types.Int64, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Uint32:
		return integers(types.Int64, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Uint64:
		for _, v := range a.Uint64Values() {
			if v > math.MaxInt64 {
				return nil, errs.New(errs.InvalidArgument, "a set of literals has %d, which is beyond 64 bits with a sign", v)
			}
		}
		return integers(types.Int64, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Date32:
		return integers(types.Date, n, func(i int) int64 { return int64(a.Value(i)) }), nil
	case *array.Time32:
		perSecond := int64(1_000_000)
		if a.DataType().(*arrow.Time32Type).Unit == arrow.Millisecond {
			perSecond = 1000
		}
		return integers(types.Time, n, func(i int) int64 { return int64(a.Value(i)) * perSecond }), nil
	case *array.Time64:
		if a.DataType().(*arrow.Time64Type).Unit == arrow.Microsecond {
			return integers(types.Time, n, func(i int) int64 { return int64(a.Value(i)) }), nil
		}
	case *array.Timestamp:
		return timestamps(a)
	case *array.Boolean:
		return listed(n, func(i int) iceberg.Literal { return iceberg.BoolLiteral(a.Value(i)) }), nil
	case *array.Float32:
		return listed(n, func(i int) iceberg.Literal { return iceberg.Float32Literal(a.Value(i)) }), nil
	case *array.Float64:
		return listed(n, func(i int) iceberg.Literal { return iceberg.Float64Literal(a.Value(i)) }), nil
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		if scale >= 0 {
			return listed(n, func(i int) iceberg.Literal { return iceberg.DecimalLiteral{Val: a.Value(i), Scale: scale} }), nil
		}
	case *array.FixedSizeBinary:
		// A literal of this length; the next case would make one of any.
		return listed(n, func(i int) iceberg.Literal { return iceberg.FixedLiteral(slices.Clone(a.Value(i))) }), nil
	case array.StringLike:
		l := &literals{typ: types.String, strs: make([]string, n)}
		for i := range l.strs {
			l.strs[i] = string([]byte(a.Value(i)))
		}
		return l, nil
	case interface{ Value(int) []byte }: // binary of any layout
		return listed(n, func(i int) iceberg.Literal { return iceberg.BinaryLiteral(slices.Clone(a.Value(i))) }), nil
	case *array.Dictionary:
		return dictionaryLiterals(a)
	case *array.Null:
		return &literals{}, nil
	}
	return nil, errs.New(errs.InvalidArgument, "a set of literals cannot be of Arrow type %s", arr.DataType())
}

func integers(typ iceberg.Type, n int, value func(i int) int64) *literals {
	l := &literals{typ: typ, ints: make([]int64, n)}
	for i := range l.ints {
		l.ints[i] = value(i)
	}
	return l
}

func listed(n int, value func(i int) iceberg.Literal) *literals {
	l := &literals{list: make([]iceberg.Literal, n)}
	for i := range l.list {
		l.list[i] = value(i)
	}
	return l
}

func timestamps(a *array.Timestamp) (*literals, error) {
	typ, scale := iceberg.Type(iceberg.PrimitiveTypes.Timestamp), int64(1)
	switch a.DataType().(*arrow.TimestampType).Unit {
	case arrow.Second:
		scale = 1_000_000
	case arrow.Millisecond:
		scale = 1000
	case arrow.Nanosecond:
		typ = iceberg.PrimitiveTypes.TimestampNs
	}
	for _, v := range a.TimestampValues() {
		if int64(v) > math.MaxInt64/scale || int64(v) < math.MinInt64/scale {
			return nil, errs.New(errs.InvalidArgument, "a set of literals has a timestamp beyond the range of microseconds")
		}
	}
	return integers(typ, a.Len(), func(i int) int64 { return int64(a.Value(i)) * scale }), nil
}

func dictionaryLiterals(a *array.Dictionary) (*literals, error) {
	all, err := literalsOfArray(a.Dictionary())
	if err != nil {
		return nil, err
	}
	// Only what the codes refer to, each once.
	seen := make([]bool, a.Dictionary().Len())
	l := &literals{}
	for i := range a.Len() {
		if code := a.GetValueIndex(i); !seen[code] {
			seen[code] = true
			l.list = append(l.list, all.at(code))
		}
	}
	return l, nil
}
