// Command pq measures the Parquet reader on a file of one's own: CPU seconds,
// wall time and peak memory.
//
//	go run ./tests/bench/pq -file base.parquet -columns 0,1 -keep 0.01 -runs 1
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/DataDog/zstd"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/icebergexec/icebergexec/bridge"
	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/pq"
)

var (
	path     = flag.String("file", "", "the Parquet file to read")
	columns  = flag.String("columns", "", "ordinals of the columns to read, comma-separated; empty: all")
	rows     = flag.Int("batch", 0, "rows of a batch; 0: the default")
	readSize = flag.Int("read", 0, "bytes of a read; 0: the default")
	keep     = flag.Float64("keep", 1, "the share of rows to keep")
	runs     = flag.Int("runs", 1, "the average length of a run of kept rows")
	reps     = flag.Int("reps", 3, "how often to read the file")
	limit    = flag.Int64("limit", mem.Unlimited, "the memory limit in bytes")
	goHeap   = flag.Bool("go-heap", false, "batches on the Go heap, not in C memory as in the library")
	goZstd   = flag.Bool("go-zstd", false, "decompress in Go, not by the C library as in the library")
	profile  = flag.String("cpuprofile", "", "write a CPU profile here")
)

func main() {
	flag.Parse()
	if *profile != "" {
		out, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(out))
		defer pprof.StopCPUProfile()
	}
	bridge.KeepMemory(32 << 20) // 32 MiB
	if !*goZstd {
		compress.RegisterCodec(compress.Codecs.Zstd, zstdCodec{zstd.NewCtx()})
	}
	for range *reps {
		before, start := cpu(), time.Now()
		n, kept, peak := read()
		var usage syscall.Rusage
		check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		fmt.Printf("%d rows, %d kept: %.3f CPU s, %.3f s, peak RSS %d MB, charged at most %s\n",
			n, kept, (cpu() - before).Seconds(), time.Since(start).Seconds(), usage.Maxrss>>10, mem.FormatBytes(peak))
	}
}

func read() (rowCount, kept, peak int64) {
	ctx := context.Background()
	source, err := fileio.NewLocal().Open(ctx, *path)
	check(err)
	pool := mem.NewPool("bench", *limit)
	var alloc memory.Allocator = bridge.NewAllocator()
	if *goHeap {
		alloc = memory.NewGoAllocator()
	}
	f, err := pq.Open(ctx, source, *path, pq.Options{Alloc: alloc, Pool: pool, BatchRows: *rows, ReadSize: *readSize})
	check(err)
	defer f.Close()
	var selected []batch.Column
	columns := allColumns(f.Schema())
	for _, i := range ordinals(len(columns)) {
		selected = append(selected, columns[i])
	}
	r, err := f.NewReader(ctx, selected, nil)
	check(err)
	defer r.Close()
	all := make([]int, len(selected))
	for i := range all {
		all[i] = i
	}
	rng := rand.New(rand.NewPCG(1, 1))
	mask := &batch.Mask{}
	for {
		w, err := r.Next(ctx)
		if err == io.EOF {
			return rowCount, kept, pool.Peak()
		}
		check(err)
		m := mask
		if *keep >= 1 {
			m = nil
			kept += w.Len()
		} else {
			choose(rng, m, int(w.Len()))
			kept += int64(m.Count())
		}
		arrays, err := r.Read(ctx, all, m)
		check(err)
		for _, a := range arrays {
			a.Release()
		}
		rowCount += w.Len()
	}
}

// choose keeps random runs of rows.
func choose(rng *rand.Rand, m *batch.Mask, n int) {
	m.Reset(n, false)
	gap := float64(*runs) * (1 - *keep) / *keep
	for i := int(rng.ExpFloat64() * gap); i < n; i += 1 + int(rng.ExpFloat64()*gap) {
		for end := min(n, i+*runs); i < end; i++ {
			m.Set(i)
		}
	}
}

// allColumns selects every leaf of every column.
func allColumns(schema *arrow.Schema) []batch.Column {
	var out []batch.Column
	leaf := 0
	for i, field := range schema.Fields() {
		c := batch.Column{Index: i}
		for range leaves(field.Type) {
			c.Leaves = append(c.Leaves, leaf)
			leaf++
		}
		out = append(out, c)
	}
	return out
}

// leaves counts the primitive columns of a type.
func leaves(t arrow.DataType) int {
	nested, ok := t.(arrow.NestedType)
	if !ok {
		return 1
	}
	n := 0
	for _, field := range nested.Fields() {
		n += leaves(field.Type)
	}
	return n
}

func ordinals(n int) []int {
	var out []int
	if *columns == "" {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for _, s := range strings.Split(*columns, ",") {
		i, err := strconv.Atoi(s)
		check(err)
		out = append(out, i)
	}
	return out
}

func cpu() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// zstdCodec decodes with the C library.
type zstdCodec struct{ zstd.Ctx }

func (z zstdCodec) DecodeWithError(dst, src []byte) ([]byte, error) {
	n, err := z.DecompressInto(dst, src)
	return dst[:n], err
}

func (z zstdCodec) Decode(dst, src []byte) []byte {
	out, err := z.DecodeWithError(dst, src)
	check(err)
	return out
}

func (z zstdCodec) Encode(dst, src []byte) []byte             { panic("not used") }
func (z zstdCodec) EncodeLevel(dst, src []byte, _ int) []byte { panic("not used") }
func (z zstdCodec) CompressBound(n int64) int64               { return n }
