package avro

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/avro/ocf"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// readDamaged opens and reads bytes that may be damaged. Anything but rows or
// an error that names the file fails the test.
func readDamaged(t *testing.T, b []byte) error {
	t.Helper()
	f, err := open(t, b, 16)
	if err == nil {
		for _, split := range []bool{false, true} {
			_, err = readAll(f, allColumns(f), nil, split, nil)
		}
	}
	if err != nil && !strings.Contains(err.Error(), testPath) {
		t.Errorf("an error without the path: %v", err)
	}
	if code := errs.CodeOf(err); err != nil && code != errs.Corrupt && code != errs.Unsupported {
		t.Errorf("code %s: %v", code, err)
	}
	return err
}

func damageSamples(t *testing.T) map[string][]byte {
	encoded, _ := everyRows(12)
	samples := map[string][]byte{"every type": container(everyType, encoded, 5)}
	const schema = `{"type":"record","name":"r","fields":[{"name":"i","type":"long"},{"name":"s","type":["null","string"]}]}`
	var rows []any
	for i := range 60 {
		rows = append(rows, map[string]any{"i": int64(i), "s": fmt.Sprint("abcabc", i)})
	}
	for name, codec := range map[string]ocf.Codec{"deflate": ocf.DeflateCodec(6), "snappy": ocf.SnappyCodec(), "zstandard": ocf.MustZstdCodec(nil, nil)} {
		samples[name] = writeFile(t, schema, rows, ocf.WithCodec(codec), ocf.WithBlockCount(25))
	}
	return samples
}

func TestTruncated(t *testing.T) {
	for name, b := range damageSamples(t) {
		t.Run(name, func(t *testing.T) {
			blocks := 0
			for n := range len(b) {
				if readDamaged(t, b[:n]) == nil {
					blocks++ // cut between two blocks, which nothing can notice
				}
			}
			if blocks > 4 {
				t.Errorf("%d truncated files read without error", blocks)
			}
		})
	}
}

func TestFlippedBits(t *testing.T) {
	for name, b := range damageSamples(t) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 1500 {
				damaged := append([]byte(nil), b...)
				for range 1 + r.IntN(3) {
					damaged[r.IntN(len(b))] ^= 1 << r.IntN(8)
				}
				_ = readDamaged(t, damaged)
			}
		})
	}
}

// TestHostile reads files that ask for far more than they hold.
func TestHostile(t *testing.T) {
	long := func(values ...int64) (b []byte) {
		for _, v := range values {
			b = binary.AppendVarint(b, v)
		}
		return b
	}
	record := func(fieldType string) string {
		return `{"type":"record","name":"r","fields":[{"name":"a","type":` + fieldType + `}]}`
	}
	block := func(rows int64, content []byte) []byte {
		return append(append(long(rows, int64(len(content))), content...), "0123456789abcdef"...)
	}
	nested := strings.Repeat(`{"type":"array","items":`, 300) + `"int"` + strings.Repeat("}", 300)
	wide := `{"type":"record","name":"w0","fields":[{"name":"a","type":"int"}]}`
	for i := 1; i < 30; i++ {
		wide = fmt.Sprintf(`{"type":"record","name":"w%d","fields":[{"name":"a","type":%s},{"name":"b","type":"w%d"}]}`, i, wide, i-1)
	}
	for _, test := range []struct {
		name, schema string
		blocks       []byte
		err          string
	}{
		{"more rows than bytes", record(`"int"`), block(1000, []byte{2}), "has 1000 rows in 1 bytes"},
		{"rows of no bytes", record(`"null"`), block(1<<60, nil), "rows in 0 bytes"},
		{"a block longer than the file", record(`"int"`), long(1, 1<<40), "is cut off"},
		{"a negative block", record(`"int"`), long(1, -5), "damaged header"},
		{"a long string", record(`"string"`), block(1, long(1<<50)), "a value ends after its block"},
		{"a negative string", record(`"string"`), block(1, long(-1)), "a length is -1"},
		{"a long array", record(`{"type":"array","items":"long"}`), block(1, long(1<<50)), "does not fit"},
		{"an array of nothing", record(`{"type":"array","items":"null"}`), block(1, long(1<<50)), "far more memory than the file"},
		{"an array of least size", record(`{"type":"array","items":"long"}`), block(1, long(-1<<63)), "a block has"},
		{"an array of wide nulls", record(`{"type":"array","items":["null",{"type":"fixed","name":"f","size":10000000}]}`), block(1, append(long(1000), make([]byte, 1001)...)), "far more memory than the file"},
		{"an array with a wrong size", record(`{"type":"array","items":"long"}`), block(1, long(-1, 100)), "has a size of 100 bytes"},
		{"an unknown branch", record(`["null","int"]`), block(1, long(2)), "a union of 2 types has branch 2"},
		{"an unknown symbol", record(`{"type":"enum","name":"e","symbols":["A"]}`), block(1, long(1)), "an enum of 1 symbols has symbol 1"},
		{"a wide int", record(`"int"`), block(1, long(1<<40)), "has more than 32 bits"},
		{"an endless integer", record(`"long"`), block(1, []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}), "longer than 10 bytes"},
		{"a boolean of two", record(`"boolean"`), block(1, []byte{2}), "a boolean is the byte 0x2"},
		{"a bad uuid", record(`{"type":"string","logicalType":"uuid"}`), block(1, append(long(3), "xyz"...)), "is not a uuid"},
		{"a wide decimal", record(`{"type":"bytes","logicalType":"decimal","precision":38}`), block(1, append(long(17), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), "more than 128 bits"},
		{"text that is none", record(`"string"`), block(1, append(long(1), 0xff)), "not valid UTF-8"},
		{"bytes after the rows", record(`"int"`), block(1, []byte{2, 2}), "have 1 bytes more or less"},
		{"a null key", record(`{"type":"array","logicalType":"map","items":{"type":"record","name":"kv","fields":[{"name":"key","type":["null","int"]},{"name":"value","type":"int"}]}}`),
			block(1, long(1, 0, 3, 0)), "a map has a null key"},
		{"deep", record(nested), nil, "nested deeper than 256 levels"},
		{"a type that contains itself", record(`["null","r"]`), nil, `type "r" contains itself`},
		{"a billion fields", record(wide), nil, "has more than 100000 fields"},
		{"a giant fixed", record(`{"type":"fixed","name":"f","size":2000000000}`), nil, "the most is"},
		{"an unknown type", record(`"uint"`), nil, `unknown type "uint"`},
		{"no record", `"int"`, nil, "not records"},
		{"no JSON", `{`, nil, "not JSON"},
		{"a union of types", record(`["int","string"]`), nil, "union [int string]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := append(container(test.schema, nil, 1), test.blocks...)
			err := readDamaged(t, b)
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want one with %q", err, test.err)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	encoded, _ := everyRows(6)
	f.Add(container(everyType, encoded, 4))
	f.Add(container(`{"type":"record","name":"r","fields":[{"name":"i","type":"long"}]}`, [][]byte{{2}, {4}}, 1))
	f.Fuzz(func(t *testing.T, b []byte) { _ = readDamaged(t, b) })
}
