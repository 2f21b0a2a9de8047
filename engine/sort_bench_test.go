package engine_test

import (
	"context"
	"flag"
	"io"
	"syscall"
	"testing"

	"github.com/icebergexec/icebergexec/engine"
)

var (
	sortTable = flag.String("sort-table", "", "metadata location of a table with columns k and id, for BenchmarkSort")
	sortLimit = flag.Int64("sort-limit", 256<<20, "memory limit in bytes, for BenchmarkSort")
)

// BenchmarkSort scans a table and sorts it by (k, id descending).
// Besides time it reports CPU seconds and the process's peak memory.
//
//	go test ./engine -run - -bench Sort -benchtime 1x -sort-table .../metadata/v1.metadata.json
func BenchmarkSort(b *testing.B) {
	if *sortTable == "" {
		b.Skip("no -sort-table")
	}
	ctx := context.Background()
	for b.Loop() {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		eng, err := engine.Open(engine.Options{MemoryLimit: *sortLimit, SpillDir: b.TempDir(), Threads: 2})
		if err != nil {
			b.Fatal(err)
		}
		scan, err := eng.Scan(ctx, engine.ScanRequest{MetadataLocation: *sortTable, MemoryLimit: *sortLimit / 2})
		if err != nil {
			b.Fatal(err)
		}
		stream, err := eng.Sort(ctx, scan, []engine.SortKey{{Column: "k"}, {Column: "id", Descending: true}})
		if err != nil {
			b.Fatal(err)
		}
		rows := int64(0)
		for {
			record, err := stream.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			rows += record.NumRows()
			record.Release()
		}
		peak := eng.Stats().MemoryPeak
		if err := stream.Close(); err != nil {
			b.Fatal(err)
		}
		if err := eng.Close(); err != nil {
			b.Fatal(err)
		}
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		seconds := func(r syscall.Rusage) float64 { return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9 }
		b.ReportMetric(seconds(after)-seconds(before), "cpu-s")
		b.ReportMetric(float64(after.Maxrss)/1024, "rss-MB")
		b.ReportMetric(float64(peak)/(1<<20), "reserved-MB")
		b.ReportMetric(float64(rows), "rows")
	}
}
