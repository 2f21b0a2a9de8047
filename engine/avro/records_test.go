package avro

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/twmb/avro/ocf"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// The schema of rows like those of a manifest: in an order of its own, with
// fields that nobody reads, and with maps in both orders of key and value.
const recordSchema = `{"type":"record","name":"row","fields":[
	{"name":"before","type":["null",{"type":"array","items":"string"}],"field-id":90},
	{"name":"file","type":["null",{"type":"record","name":"r2","fields":[
		{"name":"sizes","type":["null",{"type":"array","logicalType":"map","items":{"type":"record","name":"kv1","fields":[
			{"name":"value","type":"long"},{"name":"key","type":"int"}]}}],"field-id":11},
		{"name":"lower","type":["null",{"type":"array","items":{"type":"record","name":"kv2","fields":[
			{"name":"key","type":"int"},{"name":"value","type":"bytes"}]}}],"field-id":12},
		{"name":"noise","type":["null","double","string"],"field-id":91},
		{"name":"path","type":"string","field-id":10},
		{"name":"partition","type":{"type":"record","name":"r102","fields":[
			{"name":"i","type":["null","int"],"field-id":1000},{"name":"d","type":["null",{"type":"int","logicalType":"date"}],"field-id":1001},
			{"name":"s","type":["string","null"],"field-id":1002},{"name":"u","type":["null",{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}],"field-id":1003},
			{"name":"dec","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}],"field-id":1004}]},"field-id":13},
		{"name":"offsets","type":["null",{"type":"array","items":"long"}],"field-id":14}]}],"field-id":2},
	{"name":"flag","type":["null","boolean"],"field-id":3},
	{"name":"status","type":"int"},
	{"name":"summaries","type":["null",{"type":"array","items":{"type":"record","name":"s","fields":[
		{"name":"contains_null","type":"boolean","field-id":21},{"name":"bound","type":["null","bytes"],"field-id":22}]}}],"field-id":20}]}`

// row is what recordSchema holds, read or to be written.
type row struct {
	Status    int64
	Flag      any // bool or nil
	HasFile   bool
	Path      string
	Sizes     map[int64]int64
	Lower     map[int64]string
	Partition map[int]any
	Offsets   []int64
	Summaries []string
}

func randomRow(r *rand.Rand, i int) (row, map[string]any) {
	out := row{Status: int64(r.IntN(3))}
	raw := map[string]any{"before": nil, "status": int(out.Status), "flag": nil, "file": nil, "summaries": nil}
	if r.IntN(2) == 0 {
		raw["before"] = []any{"x", strings.Repeat("y", r.IntN(200))}
	}
	if r.IntN(3) > 0 {
		out.Flag = r.IntN(2) == 0
		raw["flag"] = out.Flag
	}
	if r.IntN(5) > 0 {
		out.HasFile, out.Path = true, fmt.Sprint("s3://bucket/", i)
		file := map[string]any{"path": out.Path, "sizes": nil, "lower": nil, "noise": []any{nil, 1.5, "n"}[r.IntN(3)], "offsets": nil}
		if r.IntN(2) == 0 {
			out.Sizes, out.Lower = map[int64]int64{}, map[int64]string{}
			sizes, lower := []any{}, []any{}
			for k := range int64(r.IntN(4)) {
				out.Sizes[k], out.Lower[k] = k*1e12, fmt.Sprint("b", k)
				sizes = append(sizes, map[string]any{"key": int(k), "value": k * 1e12})
				lower = append(lower, map[string]any{"key": int(k), "value": []byte(out.Lower[k])})
			}
			file["sizes"], file["lower"] = sizes, lower
			out.Offsets = []int64{4, int64(i)}
			file["offsets"] = []any{int64(4), int64(i)}
		}
		partition := map[string]any{"i": nil, "d": nil, "s": nil, "u": nil, "dec": nil}
		out.Partition = map[int]any{1000: nil, 1001: nil, 1002: nil, 1003: nil, 1004: nil}
		if r.IntN(2) == 0 {
			partition["i"], out.Partition[1000] = i%4, int32(i%4)
			partition["d"], out.Partition[1001] = 19000+i%2, iceberg.Date(19000+i%2)
			partition["s"], out.Partition[1002] = "é", "é"
			partition["u"], out.Partition[1003] = [16]byte{1, 2}, uuid.UUID{1, 2}
		}
		file["partition"] = partition
		raw["file"] = file
	}
	if r.IntN(2) == 0 {
		var summaries []any
		for k := range r.IntN(3) {
			bound := any(nil)
			if k == 1 {
				bound = []byte("hi")
			}
			out.Summaries = append(out.Summaries, fmt.Sprint(k == 0, bound != nil))
			summaries = append(summaries, map[string]any{"contains_null": k == 0, "bound": bound})
		}
		raw["summaries"] = summaries
	}
	return out, raw
}

// readRows reads all rows with every field bound that row has.
func readRows(b []byte, pool *mem.Pool) (rows []row, err error) {
	r, err := OpenRecords(fileOf(b), pool)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var status Long
	var flag Bool
	var path Bytes
	var sizes LongMap
	var lower BytesMap
	var partition Tuple
	var offsets Longs
	var summaries List
	var containsNull Bool
	var bound Bytes
	var current []string
	root := r.Root()
	root.Long(&status, 99, "status")
	root.Bool(&flag, 3)
	file := root.Record(2)
	file.Bytes(&path, 10)
	file.LongMap(&sizes, 11)
	file.BytesMap(&lower, 12)
	file.Tuple(&partition, 13)
	file.Longs(&offsets, 14)
	element := root.List(&summaries, func() { current = append(current, fmt.Sprint(containsNull.Value, bound.Valid)) }, 20)
	element.Bool(&containsNull, 21)
	element.Bytes(&bound, 22)
	if root.Long(&status, 12345, "absent") || root.Record(12345, "absent").Long(&status, 1, "x") {
		return nil, errors.New("an absent field is bound")
	}
	for r.Next() {
		out := row{Status: status.Value, HasFile: path.Valid, Path: string(path.Value), Summaries: current}
		current = nil
		if len(out.Summaries) != summaries.Len {
			return nil, fmt.Errorf("%d summaries of %d", len(out.Summaries), summaries.Len)
		}
		if flag.Valid {
			out.Flag = flag.Value
		}
		if sizes.Valid {
			out.Sizes = map[int64]int64{}
			for i, k := range sizes.Keys {
				out.Sizes[k] = sizes.Values[i]
			}
		}
		if lower.Valid {
			out.Lower = map[int64]string{}
			for i, k := range lower.Keys {
				out.Lower[k] = string(lower.Values[i])
			}
		}
		if offsets.Valid {
			out.Offsets = slices.Clone(offsets.Values)
		}
		if partition.Bytes != nil {
			if out.Partition, err = partition.Values(); err != nil {
				return nil, err
			}
		}
		rows = append(rows, out)
	}
	return rows, r.Err()
}

func recordRows(n int) (want []row, raw []any) {
	r := rand.New(rand.NewPCG(8, 9))
	for i := range n {
		w, m := randomRow(r, i)
		want, raw = append(want, w), append(raw, m)
	}
	return want, raw
}

func TestRecords(t *testing.T) {
	want, raw := recordRows(500)
	for _, perBlock := range []int{1, 30, 500} {
		pool := mem.NewPool("test", 64<<20)
		got, err := readRows(writeFile(t, recordSchema, raw, ocf.WithBlockCount(perBlock), ocf.WithCodec(ocf.DeflateCodec(6))), pool)
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("row %d:\n got %+v\nwant %+v", i, got[i], want[i])
			}
		}
	}
}

func TestRecordsOfAnotherType(t *testing.T) {
	_, raw := recordRows(3)
	r, err := OpenRecords(fileOf(writeFile(t, recordSchema, raw)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var path Long
	r.Root().Record(2).Long(&path, 10, "file_path")
	if r.Next() || r.Err() == nil || r.Err().Error() != `its field "path", id 10, has the unexpected type string` {
		t.Error(r.Err())
	}
}

// TestRecordsDamaged expects an error or rows, and no more, of damaged files.
func TestRecordsDamaged(t *testing.T) {
	_, raw := recordRows(40)
	b := writeFile(t, recordSchema, raw, ocf.WithBlockCount(10))
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		damaged := slices.Clone(b)
		damaged[r.IntN(len(b))] ^= 1 << r.IntN(8)
		checkRecords(t, damaged[:len(b)-r.IntN(2)*r.IntN(len(b))])
	}
}

func checkRecords(t *testing.T, b []byte) {
	t.Helper()
	pool := mem.NewPool("test", 64<<20)
	_, err := readRows(b, pool)
	if code := errs.CodeOf(err); err != nil && code != errs.Corrupt && code != errs.Unsupported && code != errs.MemoryLimit {
		t.Errorf("code %s: %v", code, err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzRecords(f *testing.F) {
	_, raw := recordRows(5)
	f.Add(writeFile(f, recordSchema, raw))
	f.Fuzz(checkRecords)
}
