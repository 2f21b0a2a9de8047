package avro

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/twmb/avro/ocf"
)

// BenchmarkRead reads all columns of a file of ordinary rows, and one of them.
func BenchmarkRead(b *testing.B) {
	const schema = `{"type":"record","name":"r","fields":[
		{"name":"id","type":"long"},{"name":"name","type":["null","string"]},{"name":"price","type":["null","double"]},
		{"name":"day","type":["null",{"type":"int","logicalType":"date"}]},
		{"name":"tags","type":["null",{"type":"array","items":"string"}]}]}`
	const n = 100_000
	rows := make([]any, n)
	for i := range rows {
		rows[i] = map[string]any{"id": int64(i), "name": fmt.Sprintf("name of %08d", i), "price": float64(i) / 3, "day": i % 20000, "tags": []any{"a", fmt.Sprint(i % 10)}}
	}
	file := writeFile(b, schema, rows, ocf.WithBlockBytes(64<<10))
	f, err := Open(context.Background(), fileOf(file), testPath, Options{})
	if err != nil {
		b.Fatal(err)
	}
	all := allColumns(f)
	for name, columns := range map[string][]int{"all": {0, 1, 2, 3, 4}, "one": {2}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				selected := all[:0:0]
				var indices []int
				for i, c := range columns {
					selected, indices = append(selected, all[c]), append(indices, i)
				}
				r, err := f.NewReader(context.Background(), selected, nil)
				if err != nil {
					b.Fatal(err)
				}
				for {
					if _, err := r.Next(context.Background()); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
					arrays, err := r.Read(context.Background(), indices, nil)
					if err != nil {
						b.Fatal(err)
					}
					for _, a := range arrays {
						a.Release()
					}
				}
				_ = r.Close()
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
