package avro

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	klauspost "github.com/klauspost/compress/flate"
)

func deflated(t testing.TB, b []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// deflateSamples are texts of many kinds and lengths.
func deflateSamples() map[string][]byte {
	r := rand.New(rand.NewPCG(3, 4))
	samples := map[string][]byte{"empty": nil, "one byte": {7}, "zeros": make([]byte, 100_000)}
	random := make([]byte, 70_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	samples["random"] = random
	for _, n := range []int{2, 10, 100, 1000, 10_000, 300_000} {
		skewed := make([]byte, n)
		for i := range skewed {
			skewed[i] = byte(min(r.ExpFloat64()*20, 255))
		}
		samples[fmt.Sprint("skewed ", n)] = skewed
		var words strings.Builder
		for words.Len() < n {
			fmt.Fprintf(&words, "s3://bucket/table/data/part-%05d.parquet;", r.IntN(n))
		}
		samples[fmt.Sprint("words ", n)] = []byte(words.String())
		var runs []byte
		for len(runs) < n {
			runs = append(runs, bytes.Repeat([]byte{byte(r.IntN(4))}, r.IntN(300))...)
			runs = append(runs, bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}[:1+r.IntN(7)], r.IntN(50))...)
		}
		samples[fmt.Sprint("runs ", n)] = runs
	}
	if source, err := os.ReadFile("inflate.go"); err == nil {
		samples["source"] = source
	}
	return samples
}

func TestInflate(t *testing.T) {
	for name, b := range deflateSamples() {
		for level := flate.HuffmanOnly; level <= 9; level++ {
			compressed := deflated(t, b, level)
			before := []byte("what was there before")
			got, err := deflateCodec{}.Decompress(bytes.Clone(before), compressed, len(b))
			if err != nil || !bytes.Equal(got, append(before, b...)) {
				t.Fatalf("%s, level %d: %v, %d bytes of %d", name, level, err, len(got)-len(before), len(b))
			}
			if len(b) > 0 {
				if _, err := (deflateCodec{}).Decompress(nil, compressed, len(b)-1); err == nil {
					t.Errorf("%s, level %d: the limit is ignored", name, level)
				}
			}
			for cut := 0; cut < len(compressed); cut += 1 + len(compressed)/50 {
				if out, err := (deflateCodec{}).Decompress(nil, compressed[:cut], len(b)); err == nil {
					t.Errorf("%s, level %d: %d of %d bytes give %d bytes without error", name, level, cut, len(compressed), len(out))
				}
			}
		}
	}
}

// agree checks that damaged data is refused exactly when the standard library
// refuses it, and else gives the same bytes.
func agree(t *testing.T, compressed []byte) {
	t.Helper()
	const limit = 1 << 20
	want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(compressed)), limit+1))
	if len(want) > limit {
		return
	}
	got, err := deflateCodec{}.Decompress(nil, compressed, limit)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: error %v, want %v", compressed, err, wantErr)
	}
	if err == nil && !bytes.Equal(got, want) {
		t.Fatalf("%x: wrong bytes", compressed)
	}
}

func TestInflateDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	samples := deflateSamples()
	for _, name := range []string{"words 100", "words 1000", "skewed 1000", "runs 1000", "words 10000", "one byte"} {
		for _, level := range []int{flate.HuffmanOnly, 0, 1, 6} {
			compressed := deflated(t, samples[name], level)
			for range 300 {
				damaged := bytes.Clone(compressed)
				for range 1 + r.IntN(3) {
					damaged[r.IntN(min(len(damaged), 200))] ^= 1 << r.IntN(8)
				}
				agree(t, damaged)
			}
		}
	}
}

func FuzzInflate(f *testing.F) {
	for name, b := range deflateSamples() {
		if len(b) <= 1000 {
			f.Add(deflated(f, b, 6))
			f.Add(deflated(f, b, flate.HuffmanOnly))
			_ = name
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { agree(t, b) })
}

func BenchmarkInflate(b *testing.B) {
	samples := deflateSamples()
	for _, name := range []string{"words 100", "words 1000", "words 10000", "source", "skewed 10000", "skewed 300000"} {
		compressed := deflated(b, samples[name], 6)
		run := func(kind string, decompress func(dst []byte) []byte) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				var dst []byte
				b.SetBytes(int64(len(samples[name])))
				for b.Loop() {
					dst = decompress(dst[:0])
				}
			})
		}
		run("ours", func(dst []byte) []byte {
			dst, _ = deflateCodec{}.Decompress(dst, compressed, 1<<30)
			return dst
		})
		streaming := func(r io.ReadCloser, source *bytes.Reader, reset func() error) func([]byte) []byte {
			return func(dst []byte) []byte {
				source.Reset(compressed)
				_ = reset()
				out := bytes.NewBuffer(dst)
				_, _ = out.ReadFrom(r)
				return out.Bytes()
			}
		}
		var source bytes.Reader
		r := flate.NewReader(&source)
		run("standard", streaming(r, &source, func() error { return r.(flate.Resetter).Reset(&source, nil) }))
		k := klauspost.NewReader(&source)
		run("klauspost", streaming(k, &source, func() error { return k.(klauspost.Resetter).Reset(&source, nil) }))
	}
}
