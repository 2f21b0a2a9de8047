package keys

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// The model of a column: its key type, an Arrow type that holds it, values as
// plain Go values (nil, bool, int64, float64, string, *big.Int), and how the
// Arrow array is built of them. The generic encoder below knows only the plain
// values, so it shares no code with the columnar one.
type model struct {
	name  string
	key   iceberg.Type
	arrow arrow.DataType
	// scale is what one unit of the Arrow value is in units of the key.
	scale int64
	draw  func(r *rand.Rand) any
}

func ints(limit int64) func(*rand.Rand) any {
	return func(r *rand.Rand) any {
		if r.IntN(4) == 0 {
			return []any{int64(0), limit, -limit - 1, int64(-1)}[r.IntN(4)]
		}
		return r.Int64N(40) - 20
	}
}

func floats(r *rand.Rand) any {
	return []any{0.0, math.Copysign(0, -1), 1.5, -1.5, math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(0xfff8000000000001)}[r.IntN(8)]
}

func texts(r *rand.Rand) any {
	return strings.Repeat(string(rune('a'+r.IntN(3))), r.IntN(20))
}

func decimals18(r *rand.Rand) any { return big.NewInt(r.Int64N(60) - 30) }

func decimals38(r *rand.Rand) any {
	v := big.NewInt(r.Int64N(6) - 3)
	return v.Mul(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(r.IntN(37))), nil))
}

func sixteen(r *rand.Rand) any {
	b := make([]byte, 16)
	b[r.IntN(16)] = byte(r.IntN(3))
	return string(b)
}

var models = []model{
	{"bool", iceberg.BooleanType{}, arrow.FixedWidthTypes.Boolean, 0, func(r *rand.Rand) any { return r.IntN(2) == 0 }},
	{"int", iceberg.Int32Type{}, arrow.PrimitiveTypes.Int32, 1, ints(math.MaxInt32)},
	{"int as int8", iceberg.Int32Type{}, arrow.PrimitiveTypes.Int8, 1, ints(math.MaxInt8)},
	{"int as int16", iceberg.Int32Type{}, arrow.PrimitiveTypes.Int16, 1, ints(math.MaxInt16)},
	{"long", iceberg.Int64Type{}, arrow.PrimitiveTypes.Int64, 1, ints(math.MaxInt64)},
	{"long as int32", iceberg.Int64Type{}, arrow.PrimitiveTypes.Int32, 1, ints(math.MaxInt32)},
	{"float", iceberg.Float32Type{}, arrow.PrimitiveTypes.Float32, 0, floats},
	{"double", iceberg.Float64Type{}, arrow.PrimitiveTypes.Float64, 0, floats},
	{"double as float32", iceberg.Float64Type{}, arrow.PrimitiveTypes.Float32, 0, floats},
	{"date", iceberg.DateType{}, arrow.FixedWidthTypes.Date32, 1, ints(math.MaxInt32)},
	{"time", iceberg.TimeType{}, arrow.FixedWidthTypes.Time64us, 1, ints(1 << 36)},
	{"time as ms", iceberg.TimeType{}, arrow.FixedWidthTypes.Time32ms, 1000, ints(1 << 25)},
	{"timestamp", iceberg.TimestampType{}, &arrow.TimestampType{Unit: arrow.Microsecond}, 1, ints(math.MaxInt64)},
	{"timestamptz", iceberg.TimestampTzType{}, arrow.FixedWidthTypes.Timestamp_us, 1, ints(math.MaxInt64)},
	{"timestamp as ms", iceberg.TimestampType{}, &arrow.TimestampType{Unit: arrow.Millisecond}, 1000, ints(1 << 50)},
	{"timestamp as date", iceberg.TimestampType{}, arrow.FixedWidthTypes.Date32, 86_400_000_000, ints(1 << 20)},
	{"timestamp_ns", iceberg.TimestampNsType{}, &arrow.TimestampType{Unit: arrow.Nanosecond}, 1, ints(math.MaxInt64)},
	{"timestamp_ns as us", iceberg.TimestampNsType{}, &arrow.TimestampType{Unit: arrow.Microsecond}, 1000, ints(1 << 50)},
	{"timestamp_ns as date", iceberg.TimestampNsType{}, arrow.FixedWidthTypes.Date32, 86_400_000_000_000, ints(1 << 16)},
	{"decimal9", iceberg.DecimalTypeOf(9, 2), &arrow.Decimal32Type{Precision: 9, Scale: 2}, 0, decimals18},
	{"decimal18", iceberg.DecimalTypeOf(18, 2), &arrow.Decimal64Type{Precision: 18, Scale: 2}, 0, decimals18},
	{"decimal18 as 128", iceberg.DecimalTypeOf(18, 2), &arrow.Decimal128Type{Precision: 9, Scale: 2}, 0, decimals18},
	{"decimal38", iceberg.DecimalTypeOf(38, 2), &arrow.Decimal128Type{Precision: 38, Scale: 2}, 0, decimals38},
	{"decimal38 as 32", iceberg.DecimalTypeOf(38, 2), &arrow.Decimal32Type{Precision: 9, Scale: 2}, 0, decimals18},
	{"decimal38 as 256", iceberg.DecimalTypeOf(38, 2), &arrow.Decimal256Type{Precision: 38, Scale: 2}, 0, decimals38},
	{"uuid", iceberg.UUIDType{}, &arrow.FixedSizeBinaryType{ByteWidth: 16}, 0, sixteen},
	{"fixed", iceberg.FixedTypeOf(16), &arrow.FixedSizeBinaryType{ByteWidth: 16}, 0, sixteen},
	{"string", iceberg.StringType{}, arrow.BinaryTypes.String, 0, texts},
	{"large string", iceberg.StringType{}, arrow.BinaryTypes.LargeString, 0, texts},
	{"string view", iceberg.StringType{}, arrow.BinaryTypes.StringView, 0, texts},
	{"binary", iceberg.BinaryType{}, arrow.BinaryTypes.Binary, 0, texts},
	{"large binary", iceberg.BinaryType{}, arrow.BinaryTypes.LargeBinary, 0, texts},
	{"binary view", iceberg.BinaryType{}, arrow.BinaryTypes.BinaryView, 0, texts},
	{"unknown", iceberg.UnknownType{}, arrow.Null, 0, func(*rand.Rand) any { return nil }},
}

// build makes an array of plain values: sliced, so that offsets are not zero,
// and of dictionary type if asked.
func build(tb testing.TB, alloc memory.Allocator, dt arrow.DataType, values []any, dictionary bool, lead int) arrow.Array {
	tb.Helper()
	if dt.ID() == arrow.NULL {
		return array.NewNull(len(values))
	}
	b := array.NewBuilder(alloc, dt)
	defer b.Release()
	padded := append(make([]any, lead), values...)
	for _, v := range padded {
		appendValue(tb, b, v)
	}
	a := b.NewArray()
	defer a.Release()
	if !dictionary {
		return array.NewSlice(a, int64(lead), int64(len(padded)))
	}
	indices := array.NewInt32Builder(alloc)
	defer indices.Release()
	for i := range padded {
		if i%5 == 3 && padded[i] == nil {
			indices.AppendNull() // else null by the dictionary's own null
		} else {
			indices.Append(int32(i))
		}
	}
	ia := indices.NewArray()
	defer ia.Release()
	d := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: dt}, ia, a)
	defer d.Release()
	return array.NewSlice(d, int64(lead), int64(len(padded)))
}

func appendValue(tb testing.TB, b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int8Builder:
		b.Append(int8(v.(int64)))
	case *array.Int16Builder:
		b.Append(int16(v.(int64)))
	case *array.Int32Builder:
		b.Append(int32(v.(int64)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int64)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v.(int64)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.Float32Builder:
		b.Append(float32(v.(float64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Decimal32Builder:
		b.Append(decimal.Decimal32(v.(*big.Int).Int64()))
	case *array.Decimal64Builder:
		b.Append(decimal.Decimal64(v.(*big.Int).Int64()))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(v.(*big.Int)))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(v.(*big.Int)))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.LargeStringBuilder:
		b.Append(v.(string))
	case *array.StringViewBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.BinaryViewBuilder:
		b.Append([]byte(v.(string)))
	default:
		tb.Fatalf("no builder %T", b)
	}
}

// generic is the canonical encoding of one plain value.
func generic(dst []byte, m model, v any) []byte {
	if v == nil {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	switch v := v.(type) {
	case bool:
		if v {
			return binary.LittleEndian.AppendUint64(dst, 1)
		}
		return binary.LittleEndian.AppendUint64(dst, 0)
	case int64:
		return binary.LittleEndian.AppendUint64(dst, uint64(v*m.scale))
	case float64:
		if m.key.Equals(iceberg.Float32Type{}) {
			if math.IsNaN(v) {
				return binary.LittleEndian.AppendUint64(dst, 0x7fc00000)
			}
			return binary.LittleEndian.AppendUint64(dst, uint64(math.Float32bits(float32(v))))
		}
		if math.IsNaN(v) {
			return binary.LittleEndian.AppendUint64(dst, 0x7ff8000000000000)
		}
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	case *big.Int:
		words := 1
		if m.key.(iceberg.DecimalType).Precision() > 18 {
			words = 2
		}
		two := new(big.Int).Lsh(big.NewInt(1), uint(64*words))
		be := new(big.Int).Mod(v, two).FillBytes(make([]byte, 8*words))
		for i := range be {
			dst = append(dst, be[len(be)-1-i])
		}
		return dst
	case string:
		if !m.key.Equals(iceberg.UUIDType{}) {
			dst = binary.AppendUvarint(dst, uint64(len(v)))
		}
		return append(dst, v...)
	}
	panic(fmt.Sprintf("no encoding of %T", v))
}

type keyColumns struct {
	models []model
	arrays []arrow.Array
	keys   []string // by the generic encoder
}

func (k *keyColumns) release() {
	for _, a := range k.arrays {
		a.Release()
	}
}

func draw(tb testing.TB, r *rand.Rand, alloc memory.Allocator, n int, nullShare float64, ms ...model) *keyColumns {
	k := &keyColumns{models: ms, keys: make([]string, n)}
	values := make([]any, n)
	for _, m := range ms {
		for i := range values {
			values[i] = nil
			if r.Float64() >= nullShare {
				values[i] = m.draw(r)
			}
			k.keys[i] += string(generic(nil, m, values[i]))
		}
		k.arrays = append(k.arrays, build(tb, alloc, m.arrow, values, r.IntN(3) == 0, r.IntN(70)))
	}
	return k
}

func layoutOf(tb testing.TB, ms ...model) *Layout {
	tb.Helper()
	var fields []iceberg.NestedField
	for i, m := range ms {
		fields = append(fields, iceberg.NestedField{ID: i + 1, Name: m.name, Type: m.key})
	}
	l, err := NewLayout(fields)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func checkEncoding(t *testing.T, r *rand.Rand, n int, nullShare float64, ms ...model) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	k := draw(t, r, alloc, n, nullShare, ms...)
	defer k.release()
	l := layoutOf(t, ms...)
	rows := l.NewRows()
	if err := rows.Bind(k.arrays); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := rows.Encode(&Workspace{}, 0, func(row int, key []byte, hash uint64) error {
		seen++
		if string(key) != k.keys[row] {
			t.Fatalf("row %d: encoded as % x, expected % x", row, key, k.keys[row])
		}
		if again, ok := l.Hash(key); !ok || again != hash {
			t.Fatalf("row %d: hash %x of the row, %x (%v) of its encoding", row, hash, again, ok)
		}
		return nil
	})
	if err != nil || seen != n {
		t.Fatalf("%d of %d rows, error %v", seen, n, err)
	}
}

// Every Arrow form of every type encodes as the generic encoder says.
func TestEncodingOfEveryType(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(6) {
				r := rand.New(rand.NewPCG(seed, 1))
				checkEncoding(t, r, 1+r.IntN(2500), float64(seed)*0.2, m)
			}
		})
	}
}

func FuzzEncoding(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed), uint8(3*seed), uint8(7*seed), uint16(100*seed), uint8(seed*10))
	}
	f.Fuzz(func(t *testing.T, seed uint64, a, b, c uint8, n uint16, nulls uint8) {
		r := rand.New(rand.NewPCG(seed, 2))
		ms := []model{models[int(a)%len(models)], models[int(b)%len(models)], models[int(c)%len(models)]}
		checkEncoding(t, r, int(n)%3000+1, float64(nulls)/255, ms[:1+r.IntN(3)]...)
	})
}

// A table agrees with a Go map over the generic encoding, for every
// combination of key columns, under duplicates, growth and nulls.
func TestTableAgainstMap(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		ms := make([]model, 1+r.IntN(3))
		for i := range ms {
			ms[i] = models[r.IntN(len(models))]
		}
		var names []string
		for _, m := range ms {
			names = append(names, m.name)
		}
		t.Run(fmt.Sprintf("%d %s", seed, strings.Join(names, ",")), func(t *testing.T) { checkTable(t, r, ms) })
	}
}

func checkTable(t *testing.T, r *rand.Rand, ms []model) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	pool := mem.NewPool("test", 1<<30)
	charge := pool.Reserve("keys")
	l := layoutOf(t, ms...)
	table, rows, w := NewTable(l, alloc, charge), l.NewRows(), &Workspace{}
	want := map[string]int64{}
	nulls := r.Float64() * 0.5
	for range 1 + r.IntN(6) {
		k := draw(t, r, alloc, 1+r.IntN(3000), nulls, ms...)
		sequence := r.Int64N(10)
		if err := rows.Bind(k.arrays); err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 {
			if err := table.Reserve(int64(len(k.keys))); err != nil {
				t.Fatal(err)
			}
		}
		if r.IntN(4) == 0 {
			for _, key := range k.keys {
				if err := table.AddEncoded([]byte(key), sequence); err != nil {
					t.Fatal(err)
				}
			}
		} else if added, err := table.Add(w, rows, sequence); err != nil || added != len(k.keys) {
			t.Fatal(added, err)
		}
		for _, key := range k.keys {
			if old, ok := want[key]; !ok || old < sequence {
				want[key] = sequence
			}
		}
		k.release()
	}
	if table.Len() != len(want) {
		t.Fatalf("%d keys, expected %d", table.Len(), len(want))
	}
	each := 0
	if err := table.Each(func(key []byte, hash uint64, sequence int64) error {
		each++
		if s, ok := want[string(key)]; !ok || s != sequence {
			t.Fatalf("key % x has sequence number %d, expected %d (%v)", key, sequence, s, ok)
		}
		if again, ok := l.Hash(key); !ok || again != hash {
			t.Fatalf("key % x has hash %x, expected %x", key, hash, again)
		}
		return nil
	}); err != nil || each != len(want) {
		t.Fatalf("%d of %d keys, error %v", each, len(want), err)
	}
	for range 4 {
		k := draw(t, r, alloc, 1+r.IntN(5000), nulls, ms...)
		if err := rows.Bind(k.arrays); err != nil {
			t.Fatal(err)
		}
		sequence := r.Int64N(12) - 1
		keep := batch.NewMask(len(k.keys), true)
		for i := range keep.Len {
			if r.IntN(3) == 0 {
				keep.Clear(i)
			}
		}
		expected := append([]uint64(nil), keep.Words...)
		for i, key := range k.keys {
			if s, ok := want[key]; ok && s > sequence {
				expected[i>>6] &^= 1 << (i & 63)
			}
		}
		if err := table.Exclude(w, rows, sequence, keep); err != nil {
			t.Fatal(err)
		}
		for i, word := range expected {
			if word != keep.Words[i] {
				t.Fatalf("word %d of the mask is %x, expected %x", i, keep.Words[i], word)
			}
		}
		k.release()
	}
	if charge.Size() != int64(alloc.CurrentAlloc()) {
		t.Errorf("%d bytes charged, %d allocated", charge.Size(), alloc.CurrentAlloc())
	}
	table.Free()
	if charge.Size() != 0 {
		t.Errorf("%d bytes charged after Free", charge.Size())
	}
	charge.Free()
}

// A key column may be any two of these: the same key must result.
func TestEqualAcrossArrowTypes(t *testing.T) {
	decimals := []arrow.DataType{
		&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: 2},
		&arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 38, Scale: 2},
	}
	strs := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, arrow.BinaryTypes.Binary}
	for _, c := range []struct {
		key   iceberg.Type
		types []arrow.DataType
		value any
	}{
		{iceberg.DecimalTypeOf(9, 2), decimals, big.NewInt(1234)},
		{iceberg.DecimalTypeOf(18, 2), decimals, big.NewInt(1234)},
		{iceberg.DecimalTypeOf(38, 2), decimals, big.NewInt(1234)},
		{iceberg.StringType{}, strs, "a string longer than a view holds inline"},
		{iceberg.Int64Type{}, []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8}, int64(7)},
		{iceberg.Float64Type{}, []arrow.DataType{arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Float32}, math.NaN()},
	} {
		l := layoutOf(t, model{name: "k", key: c.key})
		var first []byte
		for _, dt := range c.types {
			for _, dictionary := range []bool{false, true} {
				a := build(t, memory.DefaultAllocator, dt, []any{c.value}, dictionary, 3)
				rows := l.NewRows()
				if err := rows.Bind([]arrow.Array{a}); err != nil {
					t.Fatal(err)
				}
				if err := rows.Encode(&Workspace{}, 0, func(_ int, key []byte, _ uint64) error {
					if first == nil {
						first = bytes.Clone(key)
					} else if !bytes.Equal(first, key) {
						t.Errorf("%s as %s (dictionary %v): % x, expected % x", c.key, dt, dictionary, key, first)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestBadKeys(t *testing.T) {
	long := model{name: "k", key: iceberg.Int64Type{}}
	a := build(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Float64, []any{1.0}, false, 0)
	if err := layoutOf(t, long).NewRows().Bind([]arrow.Array{a}); errs.CodeOf(err) != errs.Corrupt ||
		err.Error() != `key column "k" (field id 1): values of Arrow type float64 cannot be read as long` {
		t.Errorf("double for long: %v", err)
	}
	if _, err := NewLayout([]iceberg.NestedField{{ID: 5, Name: "l", Type: &iceberg.ListType{ElementID: 6, Element: iceberg.Int32Type{}}}}); errs.CodeOf(err) != errs.Unsupported {
		t.Errorf("list key: %v", err)
	}
	// The newest type does not hold the value, but a null's bytes do not count.
	ns := model{name: "k", key: iceberg.TimestampNsType{}}
	for _, null := range []bool{false, true} {
		values := array.NewData(&arrow.TimestampType{Unit: arrow.Microsecond}, 1, []*memory.Buffer{
			memory.NewBufferBytes([]byte{map[bool]byte{false: 1, true: 0}[null]}),
			memory.NewBufferBytes(binary.LittleEndian.AppendUint64(nil, math.MaxInt64)),
		}, nil, array.UnknownNullCount, 0)
		rows := layoutOf(t, ns).NewRows()
		if err := rows.Bind([]arrow.Array{array.MakeFromData(values)}); err != nil {
			t.Fatal(err)
		}
		err := rows.Encode(&Workspace{}, 0, func(int, []byte, uint64) error { return nil })
		if null != (err == nil) {
			t.Errorf("overflow, null %v: %v", null, err)
		}
	}
	for _, key := range []string{"", "\x02", "\x01", "\x01\x00", "\x00\x00", "\x01123456789"} {
		if _, ok := layoutOf(t, long).Hash([]byte(key)); ok {
			t.Errorf("%q passes for an encoded long", key)
		}
	}
	for _, key := range []string{"\x01\x05abc", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, ok := layoutOf(t, model{name: "k", key: iceberg.StringType{}}).Hash([]byte(key)); ok {
			t.Errorf("%q passes for an encoded string", key)
		}
	}
}

// A table that may not grow says so, keeps what it has and stays usable.
func TestTableOverBudget(t *testing.T) {
	for _, m := range []model{models[4], models[27]} {
		t.Run(m.name, func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			charge := mem.NewPool("test", 64<<10).Reserve("keys")
			l := layoutOf(t, m)
			table, rows, w := NewTable(l, alloc, charge), l.NewRows(), &Workspace{}
			values := make([]any, 1000)
			total := 0
			var err error
			for i := 0; err == nil; i++ {
				for j := range values {
					if m.name == "long" {
						values[j] = int64(i*1000 + j)
					} else {
						values[j] = fmt.Sprint(i*1000 + j)
					}
				}
				a := build(t, alloc, m.arrow, values, false, 0)
				if err := rows.Bind([]arrow.Array{a}); err != nil {
					t.Fatal(err)
				}
				var added int
				added, err = table.Add(w, rows, 1)
				total += added
				a.Release()
			}
			if errs.CodeOf(err) != errs.MemoryLimit || total == 0 || table.Len() != total {
				t.Errorf("%d keys of %d added, error %v", table.Len(), total, err)
			}
			table.Free()
		})
	}
}

// Entries larger than a chunk, and many small ones between them.
func TestArenaLargeKeys(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	a := arena{alloc: alloc, charge: mem.NewPool("test", 1<<30).Reserve("keys")}
	var places []uint32
	r := rand.New(rand.NewPCG(1, 1))
	size := func(i int) int {
		return []int{0, 1, 100, 5000, chunkBytes - entryHead, chunkBytes, 3*chunkBytes + 1}[i%7]
	}
	start := r.IntN(7)
	for i := range 40 {
		place, err := a.add(uint32(i), bytes.Repeat([]byte{byte(i)}, size(start+i)))
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, place)
	}
	for i, place := range places {
		rank, key := a.entry(place)
		if *rank != uint32(i) || !bytes.Equal(key, bytes.Repeat([]byte{byte(i)}, size(start+i))) {
			t.Errorf("entry %d has rank %d and %d bytes", i, *rank, len(key))
		}
	}
	a.free()
}
