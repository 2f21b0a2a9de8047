// Command pqwrite measures the Parquet writer and the copying of row groups on
// the rows of a file of one's own: CPU seconds, wall time and bytes.
//
//	go run ./tests/bench/pqwrite -file base.parquet -codec zstd -level 1
//	go run ./tests/bench/pqwrite -file base.parquet -copy
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"github.com/DataDog/zstd"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/bridge"
	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/pq"
)

var (
	path    = flag.String("file", "", "the Parquet file whose rows are written; its columns are flat")
	out     = flag.String("out", "", "the file to write; empty: nowhere")
	codec   = flag.String("codec", "zstd", "the compression codec")
	level   = flag.String("level", "", "its level")
	threads = flag.Int("threads", 1, "columns that are encoded at a time")
	column  = flag.Int("column", -1, "write only this column")
	reps    = flag.Int("reps", 3, "how often to write the file")
	copying = flag.Bool("copy", false, "copy the file's row groups")
	limit   = flag.Int64("limit", mem.Unlimited, "the memory limit in bytes")
	profile = flag.String("cpuprofile", "", "write a CPU profile here")
)

func main() {
	flag.Parse()
	compress.RegisterCodec(compress.Codecs.Zstd, zstdCodec{})
	ctx := context.Background()
	file, err := fileio.NewLocal().Open(ctx, *path)
	check(err)
	source, err := pq.Open(ctx, file, *path, pq.Options{Alloc: bridge.NewAllocator()})
	check(err)
	defer source.Close()
	var batches []arrow.RecordBatch
	schema := source.Schema()
	if !*copying {
		batches = read(ctx, source)
		schema = batches[0].Schema()
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	for range *reps {
		before, start := cpu(), time.Now()
		written, peak := write(ctx, source, schema, batches)
		fmt.Printf("%d rows, %d bytes in %d row groups: %.3f CPU s, %.3f s, charged at most %s\n", written.Records, written.Size,
			len(written.SplitOffsets), (cpu() - before).Seconds(), time.Since(start).Seconds(), mem.FormatBytes(peak))
		if *column < 0 && !*copying {
			fmt.Println("  bytes of each column:", written.ColumnSizes)
		}
	}
}

func write(ctx context.Context, source *pq.File, schema *arrow.Schema, batches []arrow.RecordBatch) (*pq.Written, int64) {
	table := tableSchema(schema)
	options, err := pq.ParseWriterOptions(map[string]string{
		"write.parquet.compression-codec": *codec, "write.parquet.compression-level": *level,
	}, table)
	check(err)
	pool := mem.NewPool("bench", *limit)
	options.Threads, options.Pool, options.Alloc = *threads, pool, bridge.NewAllocator()
	var to io.Writer = io.Discard
	if *out != "" {
		f, err := os.Create(*out)
		check(err)
		defer f.Close()
		to = f
	}
	if *copying {
		options.Like = source
	}
	w, err := pq.NewWriter(ctx, to, schema, table, options)
	check(err)
	for _, b := range batches {
		check(w.Write(ctx, b))
	}
	if *copying {
		for g := range source.RowGroups() {
			check(w.CopyRowGroup(ctx, source, g, pq.CopyOptions{}))
		}
	}
	written, err := w.Close(ctx)
	check(err)
	return written, pool.Peak()
}

// read loads the file.
func read(ctx context.Context, source *pq.File) []arrow.RecordBatch {
	var columns []batch.Column
	var all []int
	for i := range source.Schema().Fields() {
		if *column < 0 || *column == i {
			all = append(all, len(columns))
			columns = append(columns, batch.Column{Index: i, Leaves: []int{i}})
		}
	}
	r, err := source.NewReader(ctx, columns, nil)
	check(err)
	defer r.Close()
	var batches []arrow.RecordBatch
	for {
		w, err := r.Next(ctx)
		if err == io.EOF {
			return batches
		}
		check(err)
		arrays, err := r.Read(ctx, all, nil)
		check(err)
		batches = append(batches, array.NewRecordBatch(r.Schema(), arrays, w.Len()))
	}
}

// tableSchema is an Iceberg schema for the file.
func tableSchema(schema *arrow.Schema) *iceberg.Schema {
	var fields []iceberg.NestedField
	for i, f := range schema.Fields() {
		id := i + 1
		if text, ok := f.Metadata.GetValue("PARQUET:field_id"); ok {
			var err error
			id, err = strconv.Atoi(text)
			check(err)
		}
		fields = append(fields, iceberg.NestedField{ID: id, Name: f.Name, Required: !f.Nullable, Type: tableType(f.Type)})
	}
	return iceberg.NewSchema(0, fields...)
}

func tableType(t arrow.DataType) iceberg.Type {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		return iceberg.DecimalTypeOf(int(t.Precision), int(t.Scale))
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return iceberg.PrimitiveTypes.TimestampTz
		}
		return iceberg.PrimitiveTypes.Timestamp
	}
	types := map[arrow.Type]iceberg.Type{
		arrow.BOOL: iceberg.PrimitiveTypes.Bool, arrow.INT32: iceberg.PrimitiveTypes.Int32, arrow.INT64: iceberg.PrimitiveTypes.Int64,
		arrow.FLOAT32: iceberg.PrimitiveTypes.Float32, arrow.FLOAT64: iceberg.PrimitiveTypes.Float64, arrow.DATE32: iceberg.PrimitiveTypes.Date,
		arrow.STRING: iceberg.PrimitiveTypes.String, arrow.BINARY: iceberg.PrimitiveTypes.Binary,
	}
	if types[t.ID()] == nil {
		check(fmt.Errorf("no column of the type %s", t))
	}
	return types[t.ID()]
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

// contexts are zstd's, each used by one goroutine at a time.
var contexts = make(chan zstd.Ctx, 16)

// zstdCodec is the C library's.
type zstdCodec struct{}

func with(use func(zstd.Ctx) ([]byte, error)) []byte {
	var c zstd.Ctx
	select {
	case c = <-contexts:
	default:
		c = zstd.NewCtx()
	}
	b, err := use(c)
	check(err)
	select {
	case contexts <- c:
	default:
	}
	return b
}

func (zstdCodec) Decode(dst, src []byte) []byte {
	return with(func(c zstd.Ctx) ([]byte, error) {
		n, err := c.DecompressInto(dst, src)
		return dst[:n], err
	})
}

func (z zstdCodec) Encode(dst, src []byte) []byte { return z.EncodeLevel(dst, src, -1) }

func (zstdCodec) EncodeLevel(dst, src []byte, level int) []byte {
	if level == compress.DefaultCompressionLevel {
		level = 3
	}
	return with(func(c zstd.Ctx) ([]byte, error) { return c.CompressLevel(dst, src, level) })
}

func (zstdCodec) CompressBound(n int64) int64 { return int64(zstd.CompressBound(int(n))) }
