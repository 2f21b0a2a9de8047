package plan

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
)

// planShape is a table to plan, for benchmarks and tests of growth.
type planShape struct {
	name          string
	data, deletes int
	partitions    int // 0 is unpartitioned
	version       int // of the manifests; 0 is 2
	// delete makes delete file i.
	delete   func(b *shapeBuilder, i int) *iceberg.DataFileBuilder
	perEntry int  // manifest entries
	columns  int  // with metrics
	filtered bool // to one data file, by the first column
}

type shapeBuilder struct {
	shape  planShape
	spec   iceberg.PartitionSpec
	schema *iceberg.Schema
}

func (b *shapeBuilder) partition(i int) map[int]any {
	if b.shape.partitions == 0 {
		return nil
	}
	return map[int]any{1000: int32(i % b.shape.partitions)}
}

func (b *shapeBuilder) path(kind string, i int) string {
	return fmt.Sprintf("s3://warehouse/database.db/table/data/bucket=%d/00000-%d-7d3a1c52-88d0-4d8e-9c55-%012d-%s.parquet", i%max(b.shape.partitions, 1), i%1000, i, kind)
}

func (b *shapeBuilder) file(content iceberg.ManifestEntryContent, kind string, i int) *iceberg.DataFileBuilder {
	f, err := iceberg.NewDataFileBuilder(b.spec, content, b.path(kind, i), iceberg.ParquetFile, b.partition(i), nil, nil, 100_000, 10<<20)
	if err != nil {
		panic(err)
	}
	return f
}

func longBytes(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// dataEntry has metrics of all columns; column 1 grows with i.
func (b *shapeBuilder) dataEntry(i int) *iceberg.DataFileBuilder {
	counts, nulls, lower, upper := map[int]int64{}, map[int]int64{}, map[int][]byte{}, map[int][]byte{}
	for c := 1; c <= b.shape.columns; c++ {
		counts[c], nulls[c] = 100_000, 0
		lower[c], upper[c] = longBytes(int64(i)*10), longBytes(int64(i)*10+9)
	}
	return b.file(iceberg.EntryContentData, "data", i).ValueCounts(counts).NullValueCounts(nulls).
		ColumnSizes(counts).LowerBoundValues(lower).UpperBoundValues(upper).SplitOffsets([]int64{4})
}

// write makes the table's manifests in dir and returns its metadata document.
func (b *shapeBuilder) write(dir string) ([]byte, error) {
	fields := make([]iceberg.NestedField, b.shape.columns)
	for i := range fields {
		fields[i] = iceberg.NestedField{ID: i + 1, Name: fmt.Sprint("c", i+1), Type: iceberg.Int64Type{}}
	}
	b.schema = iceberg.NewSchema(0, fields...)
	b.spec = *iceberg.UnpartitionedSpec
	if b.shape.partitions > 0 {
		b.spec = iceberg.NewPartitionSpecID(0, iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "bucket", Transform: iceberg.BucketTransform{NumBuckets: b.shape.partitions}})
	}
	version := max(b.shape.version, 2)
	var files []iceberg.ManifestFile
	manifest := func(content iceberg.ManifestContent, sequence int64, from, to int, entry func(int) *iceberg.DataFileBuilder) error {
		var buf bytes.Buffer
		out, err := iceberg.NewManifestWriter(version, &buf, b.spec, b.schema, 1, iceberg.WithManifestWriterContent(content))
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			if err := out.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, ptr(int64(1)), &sequence, &sequence, entry(i).Build())); err != nil {
				return err
			}
		}
		if err := out.Close(); err != nil {
			return err
		}
		path := filepath.Join(dir, fmt.Sprintf("m%d.avro", len(files)))
		m, err := out.ToManifestFile(path, int64(buf.Len()), iceberg.WithManifestFileContent(content))
		if err != nil {
			return err
		}
		files = append(files, m)
		return os.WriteFile(path, buf.Bytes(), 0o600)
	}
	for i := 0; i < b.shape.data; i += b.shape.perEntry {
		if err := manifest(iceberg.ManifestContentData, 1, i, min(i+b.shape.perEntry, b.shape.data), b.dataEntry); err != nil {
			return nil, err
		}
	}
	for i := 0; i < b.shape.deletes; i += b.shape.perEntry {
		err := manifest(iceberg.ManifestContentDeletes, 2, i, min(i+b.shape.perEntry, b.shape.deletes), func(i int) *iceberg.DataFileBuilder { return b.shape.delete(b, i) })
		if err != nil {
			return nil, err
		}
	}
	var buf bytes.Buffer
	if err := iceberg.WriteManifestList(version, &buf, 1, nil, ptr(int64(2)), 0, files); err != nil {
		return nil, err
	}
	list := filepath.Join(dir, "snap.avro")
	if err := os.WriteFile(list, buf.Bytes(), 0o600); err != nil {
		return nil, err
	}
	schema, err := b.schema.MarshalJSON()
	if err != nil {
		return nil, err
	}
	spec, err := b.spec.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"format-version": %d, "location": "/t", "current-schema-id": 0, "schemas": [%s], "default-spec-id": 0, "partition-specs": [%s],
		"current-snapshot-id": 1, "snapshots": [{"snapshot-id": 1, "sequence-number": 2, "manifest-list": %q}]}`, version, schema, spec, list), nil
}

// partitionPositions are position deletes that name data files of their
// partition within bounds.
func partitionPositions(b *shapeBuilder, i int) *iceberg.DataFileBuilder {
	path := []byte(b.path("data", i%b.shape.data))
	return b.file(iceberg.EntryContentPosDeletes, "pos", i).LowerBoundValues(map[int][]byte{filePathID: path}).UpperBoundValues(map[int][]byte{filePathID: path})
}

// referencedPositions name their one data file.
func referencedPositions(b *shapeBuilder, i int) *iceberg.DataFileBuilder {
	return b.file(iceberg.EntryContentPosDeletes, "pos", i).ReferencedDataFile(b.path("data", i%b.shape.data))
}

// rangeKeys are equality deletes in 100 ranges of keys.
func rangeKeys(b *shapeBuilder, i int) *iceberg.DataFileBuilder {
	width := int64(b.shape.data) * 10 / 100
	lower := int64(i%100) * width
	f, err := iceberg.NewDataFileBuilder(b.spec, iceberg.EntryContentEqDeletes, b.path("eq", i), iceberg.ParquetFile, b.partition(0), nil, nil, 1000, 10<<10)
	if err != nil {
		panic(err)
	}
	return f.EqualityFieldIDs([]int{1}).ValueCounts(map[int]int64{1: 1000}).NullValueCounts(map[int]int64{1: 0}).
		LowerBoundValues(map[int][]byte{1: longBytes(lower)}).UpperBoundValues(map[int][]byte{1: longBytes(lower + width - 1)})
}

var (
	scale  = flag.Int("scale", 10, "make the tables of benchmarks this many times smaller")
	tables = flag.String("tables", "", "keep the tables of benchmarks in this folder, and use those that are there")
)

var benchShapes = []planShape{
	{name: "20k data 100k position deletes partitioned", data: 20_000, deletes: 100_000, partitions: 100, delete: partitionPositions, perEntry: 5_000, columns: 20},
	{name: "100k data 100k referenced position deletes", data: 100_000, deletes: 100_000, version: 3, delete: referencedPositions, perEntry: 10_000, columns: 20},
	{name: "1M data 100k referenced position deletes", data: 1_000_000, deletes: 100_000, version: 3, delete: referencedPositions, perEntry: 10_000, columns: 20},
	{name: "10k data 10k equality deletes in 100 ranges", data: 10_000, deletes: 10_000, delete: rangeKeys, perEntry: 5_000, columns: 20},
	{name: "100k data", data: 100_000, perEntry: 10_000, columns: 20},
	{name: "100k data filtered", data: 100_000, perEntry: 10_000, columns: 20, filtered: true},
}

// table writes the shape's table, or finds one that is kept.
func (s planShape) table(b *testing.B) *meta.Table {
	dir := b.TempDir()
	if *tables != "" {
		dir = filepath.Join(*tables, fmt.Sprintf("%s %d", s.name, *scale))
	}
	document := filepath.Join(dir, "table.json")
	text, err := os.ReadFile(document)
	if err != nil {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			text, err = (&shapeBuilder{shape: s}).write(dir)
		}
		if err == nil {
			err = os.WriteFile(document, text, 0o600)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	table, err := meta.Parse(text, document)
	if err != nil {
		b.Fatal(err)
	}
	return table
}

// cpuTime is what the process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkPlan(b *testing.B) {
	for _, shape := range benchShapes {
		b.Run(shape.name, func(b *testing.B) {
			shape.data, shape.deletes = shape.data / *scale, shape.deletes / *scale
			table := shape.table(b)
			req := Request{Table: table, Snapshot: table.CurrentSnapshot(), Workers: runtime.GOMAXPROCS(0)}
			want := shape.data
			if shape.filtered {
				var err error
				if req.Filter, err = expr.Compare(expr.OpEq, "c1", iceberg.Int64Literal(500)).Bind(table.CurrentSchema(), true); err != nil {
					b.Fatal(err)
				}
				want = 1
			}
			b.ReportAllocs()
			cpu := cpuTime()
			for b.Loop() {
				pool := mem.NewPool("bench", mem.Unlimited)
				start := time.Now()
				tasks, err := Plan(context.Background(), fileio.NewLocal(), pool, req)
				if err != nil {
					b.Fatal(err)
				}
				n, attached := 0, 0
				for {
					t, err := tasks.Next(context.Background())
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					if n++; n == 1 {
						b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/first")
					}
					attached += len(t.Deletes)
				}
				b.ReportMetric(float64(pool.Peak())/1e6, "MB/reserved")
				b.ReportMetric(float64(attached)/float64(n), "deletes/task")
				_ = tasks.Close()
				if n != want {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
