package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

var ctx = context.Background()

func TestMain(m *testing.M) { os.Exit(fixtures.Main(m)) }

// tables opens an engine on the Java-written tables whose arrays are checked
// for leaks.
func tables(t *testing.T, options engine.Options) *engine.Engine {
	t.Helper()
	dir := fixtures.Dir(t)
	enginetest.NoLeaks(t)
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	options.Allocator = alloc
	options.PathPrefixes = map[string]string{fixtures.Prefix: dir}
	eng, err := engine.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		alloc.AssertSize(t, 0)
	})
	return eng
}

func location(t testing.TB, name string) string {
	t.Helper()
	for _, c := range fixtures.Cases(t) {
		if c.Name == name {
			return c.MetadataLocation
		}
	}
	t.Fatalf("there is no table %s", name)
	return ""
}

// rows renders every row of a stream, and closes it.
func rows(stream batch.Stream) (out []string, err error) {
	defer func() { err = errors.Join(err, stream.Close()) }()
	for {
		record, err := stream.Next(ctx)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if !record.Schema().Equal(stream.Schema()) {
			err = fmt.Errorf("a batch has the schema %v instead of %v", record.Schema(), stream.Schema())
		}
		for i := range int(record.NumRows()) {
			var values []string
			for _, column := range record.Columns() {
				values = append(values, column.ValueStr(i))
			}
			out = append(out, strings.Join(values, " "))
		}
		record.Release()
		if err != nil {
			return out, err
		}
	}
}

func scanRows(eng *engine.Engine, request engine.ScanRequest) ([]string, error) {
	stream, err := eng.Scan(ctx, request)
	if err != nil {
		return nil, err
	}
	return rows(stream)
}

func mustScan(t *testing.T, eng *engine.Engine, request engine.ScanRequest) []string {
	t.Helper()
	got, err := scanRows(eng, request)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantError(t *testing.T, err error, code errs.Code, part string) {
	t.Helper()
	if errs.CodeOf(err) != code || err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v %v, want %v with %q", errs.CodeOf(err), err, code, part)
	}
}

func ptr[T any](v T) *T { return &v }

func TestOpenOptions(t *testing.T) {
	notADirectory := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notADirectory, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		options engine.Options
		part    string
	}{
		{engine.Options{MemoryLimit: 1 << 20}, "memory_limit is 1048576 bytes; it must be at least 16 MiB"},
		{engine.Options{MemoryLimit: -1}, "at least 16 MiB"},
		{engine.Options{Threads: -1}, "threads is -1"},
		{engine.Options{BatchRows: -1}, "must not be negative"},
		{engine.Options{SpillDir: "/nowhere"}, `spill_dir is "/nowhere"; it must be a directory that exists and can be written to (no such file or directory)`},
		{engine.Options{SpillDir: notADirectory}, "it must be a directory that exists and can be written to (not a directory)"},
		{engine.Options{SpillDir: "/proc"}, `spill_dir is "/proc"; it must be`},
		{engine.Options{SpillLimit: -1}, "spill_limit is -1"},
	} {
		_, err := engine.Open(test.options)
		wantError(t, err, errs.InvalidArgument, test.part)
	}
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if limit := eng.Stats().MemoryLimit; limit != 512<<20 {
		t.Errorf("the default memory limit is %d", limit)
	}
	for range 2 {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = eng.Scan(ctx, engine.ScanRequest{MetadataLocation: "/none"})
	wantError(t, err, errs.Cancelled, "the engine is closed")
}

func TestScanRequestErrors(t *testing.T) {
	eng := tables(t, engine.Options{})
	basic := location(t, "eq_basic")
	version4 := filepath.Join(t.TempDir(), "v4.metadata.json")
	if err := os.WriteFile(version4, []byte(`{"format-version": 4}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		request engine.ScanRequest
		code    errs.Code
		part    string
	}{
		{engine.ScanRequest{}, errs.InvalidArgument, "needs table metadata or its location"},
		{engine.ScanRequest{MetadataLocation: "/none.json"}, errs.NotFound, "open /none.json: no such file"},
		{engine.ScanRequest{MetadataLocation: "s3://b/m.json"}, errs.Unsupported, "open s3://b/m.json: locations of scheme s3"},
		{engine.ScanRequest{MetadataLocation: version4}, errs.Unsupported, "format version 4"},
		{engine.ScanRequest{Metadata: []byte("{")}, errs.Corrupt, "metadata"},
		{engine.ScanRequest{MetadataLocation: basic, SnapshotID: ptr(int64(7))}, errs.NotFound, "snapshot 7 does not exist"},
		{engine.ScanRequest{MetadataLocation: basic, Ref: "none"}, errs.NotFound, `no branch or tag "none"`},
		{engine.ScanRequest{MetadataLocation: basic, Ref: "main", SnapshotID: ptr(int64(7))}, errs.InvalidArgument, "only one of them"},
		{engine.ScanRequest{MetadataLocation: basic, AsOf: ptr(time.Unix(0, 0))}, errs.NotFound, "no snapshot was current at 1970-01-01"},
		{engine.ScanRequest{MetadataLocation: basic, Columns: []string{"nope"}}, errs.InvalidArgument, `there is no column "nope"; the columns are rid, id, name`},
		{engine.ScanRequest{MetadataLocation: basic, Columns: []string{"ID"}}, errs.InvalidArgument, `there is no column "ID"`},
		{engine.ScanRequest{MetadataLocation: basic, Columns: []string{"id", "name", "id"}}, errs.InvalidArgument, `column "id" is selected twice`},
		{engine.ScanRequest{MetadataLocation: basic, Columns: []string{"_row_id"}}, errs.InvalidArgument, `there is no column "_row_id"`},
		{engine.ScanRequest{MetadataLocation: basic, Limit: ptr(int64(-1))}, errs.InvalidArgument, "limit is -1"},
		{engine.ScanRequest{MetadataLocation: basic, BatchRows: -5}, errs.InvalidArgument, "batch_rows is -5"},
		{engine.ScanRequest{MetadataLocation: basic, MemoryLimit: 5}, errs.InvalidArgument, "at least 16 MiB"},
		{engine.ScanRequest{MetadataLocation: basic, Filter: expr.IsNull("nope")}, errs.InvalidArgument, "read " + basic + `: filter: the table has no column "nope"; the columns are rid, id, name`},
	} {
		_, err := eng.Scan(ctx, test.request)
		wantError(t, err, test.code, test.part)
	}
	if open := eng.Stats().OpenStreams; open != 0 {
		t.Errorf("%d streams stay open", open)
	}
	if used := eng.Stats().MemoryUsed; used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
}

func TestColumns(t *testing.T) {
	eng := tables(t, engine.Options{})
	for _, test := range []struct {
		name    string
		table   string
		request engine.ScanRequest
		schema  string
		first   string // the first row
		count   int
	}{
		{"all", "eq_basic", engine.ScanRequest{}, "rid id name", "20 6 n0", 21},
		{"in the order of the names", "eq_basic", engine.ScanRequest{Columns: []string{"name", "rid"}}, "name rid", "n0 20", 21},
		{"whatever the case", "eq_basic", engine.ScanRequest{Columns: []string{"NAME", "_POS"}, CaseInsensitive: true}, "name _pos", "n0 0", 21},
		{"none", "eq_basic", engine.ScanRequest{Columns: []string{}}, "", "", 21},
		{"metadata", "eq_part_identity", engine.ScanRequest{Columns: []string{"_spec_id", "_partition", "rid"}, Limit: ptr(int64(1))}, "_spec_id _partition rid", `0 {"name":"a"} 100`, 1},
		{"a field of a struct", "eq_nested_struct", engine.ScanRequest{Columns: []string{"rid", "s.b"}, Limit: ptr(int64(1))}, "rid s", `1 {"b":"b1"}`, 1},
		{"a limit of zero", "eq_basic", engine.ScanRequest{Limit: ptr(int64(0))}, "rid id name", "", 0},
		{"a table without snapshots", "plan_no_snapshot", engine.ScanRequest{}, "rid id name", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := test.request
			request.MetadataLocation = location(t, test.table)
			stream, err := eng.Scan(ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range stream.Schema().Fields() {
				names = append(names, f.Name)
			}
			if got := strings.Join(names, " "); got != test.schema {
				t.Errorf("columns %q, want %q", got, test.schema)
			}
			got, err := rows(stream)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != test.count || test.count > 0 && got[0] != test.first {
				t.Errorf("%d rows, want %d; first %q", len(got), test.count, slices.Concat(got, []string{""})[0])
			}
		})
	}
}

// TestMetadataColumns checks _file and _pos against the files: every row is
// where they say.
func TestMetadataColumns(t *testing.T) {
	eng := tables(t, engine.Options{BatchRows: 50})
	all := mustScan(t, eng, engine.ScanRequest{MetadataLocation: location(t, "pos_row_groups"), Columns: []string{"_file", "_pos"}})
	if len(all) == 0 {
		t.Fatal("no rows")
	}
	seen := map[string]bool{}
	last := map[string]int{}
	for _, row := range all {
		if seen[row] {
			t.Fatalf("%s comes twice", row)
		}
		seen[row] = true
		var file string
		var pos int
		if _, err := fmt.Sscan(row, &file, &pos); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(file, fixtures.Prefix+"/pos_row_groups/data/") {
			t.Errorf("the path is not as stored: %s", file)
		}
		if before, ok := last[file]; ok && pos <= before {
			t.Errorf("position %d of %s comes after %d", pos, file, before)
		}
		last[file] = pos
	}
}

func TestSnapshotChoice(t *testing.T) {
	eng := tables(t, engine.Options{})
	refs := location(t, "plan_branch_tag")
	count := func(request engine.ScanRequest) int {
		request.MetadataLocation = refs
		return len(mustScan(t, eng, request))
	}
	tag, branch, main := count(engine.ScanRequest{Ref: "t1"}), count(engine.ScanRequest{Ref: "b1"}), count(engine.ScanRequest{Ref: "main"})
	if current := count(engine.ScanRequest{}); main != current || tag == current || branch == current {
		t.Errorf("current %d rows, main %d, tag %d, branch %d", current, main, tag, branch)
	}
	if now := count(engine.ScanRequest{AsOf: ptr(time.Now())}); now != main {
		t.Errorf("as of now: %d rows, want %d", now, main)
	}
	document, err := os.ReadFile(filepath.Join(fixtures.Dir(t), strings.TrimPrefix(refs, fixtures.Prefix)))
	if err != nil {
		t.Fatal(err)
	}
	given := mustScan(t, eng, engine.ScanRequest{Metadata: document})
	named := mustScan(t, eng, engine.ScanRequest{Metadata: document, MetadataLocation: "/only/a/name.json"})
	if len(given) != main || len(named) != main {
		t.Errorf("metadata given: %d and %d rows, want %d", len(given), len(named), main)
	}
}

// TestLimits checks every limit against the unlimited rows, for each number of
// threads: the rows are the same, in the same order.
func TestLimits(t *testing.T) {
	table := location(t, "mix_rand_01")
	var want []string
	for _, threads := range []int{1, 4} {
		eng := tables(t, engine.Options{Threads: threads, BatchRows: 7})
		all := mustScan(t, eng, engine.ScanRequest{MetadataLocation: table})
		if want == nil {
			want = all
		}
		if !slices.Equal(all, want) {
			t.Errorf("%d threads give other rows", threads)
		}
		for _, limit := range []int64{1, 6, 7, 8, 50, int64(len(all)), int64(len(all)) + 10} {
			got := mustScan(t, eng, engine.ScanRequest{MetadataLocation: table, Limit: &limit})
			if !slices.Equal(got, want[:min(limit, int64(len(want)))]) {
				t.Errorf("%d threads, limit %d: %d rows", threads, limit, len(got))
			}
		}
	}
}

func TestFilterNotSelected(t *testing.T) {
	eng := tables(t, engine.Options{})
	for _, columns := range [][]string{{"rid"}, {"rid", "id"}, {}} {
		got := mustScan(t, eng, engine.ScanRequest{
			MetadataLocation: location(t, "eq_basic"), Columns: columns,
			Filter: expr.Compare(expr.OpGt, "id", iceberg.Int32Literal(10)),
		})
		if len(got) != 5 {
			t.Errorf("columns %v: %d rows", columns, len(got))
		}
	}
}

// TestBatchSizes checks that batches are bounded, and that selective deletes do
// not leave tiny ones.
func TestBatchSizes(t *testing.T) {
	for _, batchRows := range []int{100, 1000} {
		eng := tables(t, engine.Options{BatchRows: batchRows})
		stream, err := eng.Scan(ctx, engine.ScanRequest{MetadataLocation: location(t, "eq_large"), Columns: []string{"_file", "rid"}})
		if err != nil {
			t.Fatal(err)
		}
		rows, batches := int64(0), int64(0)
		files := map[string]bool{}
		for {
			record, err := stream.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if record.NumRows() > int64(batchRows) {
				t.Errorf("a batch of %d rows", record.NumRows())
			}
			rows, batches = rows+record.NumRows(), batches+1
			files[record.Column(0).(*array.String).Value(0)] = true
			record.Release()
		}
		if most := 3*rows/int64(batchRows) + int64(len(files)); batches > most {
			t.Errorf("%d rows of %d files came in %d batches", rows, len(files), batches)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClose closes engines and streams in every order.
func TestClose(t *testing.T) {
	table := engine.ScanRequest{MetadataLocation: location(t, "mix_rand_01")}
	t.Run("a stream before its first batch", func(t *testing.T) {
		eng := tables(t, engine.Options{})
		stream, err := eng.Scan(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		}
		_, err = stream.Next(ctx)
		wantError(t, err, errs.Cancelled, "the stream is closed")
		if stream.Schema().NumFields() == 0 {
			t.Error("the schema is gone")
		}
	})
	t.Run("a stream in the middle", func(t *testing.T) {
		eng := tables(t, engine.Options{BatchRows: 5, Threads: 3})
		stream, err := eng.Scan(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		record, err := stream.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		if record.NumRows() == 0 || record.Column(0).Len() == 0 {
			t.Error("a batch that was handed out is gone")
		}
		record.Release()
	})
	t.Run("the engine under running streams", func(t *testing.T) {
		eng := tables(t, engine.Options{BatchRows: 5, Threads: 3})
		var streams []batch.Stream
		var held []arrow.RecordBatch
		for i := range 4 {
			stream, err := eng.Scan(ctx, table)
			if err != nil {
				t.Fatal(err)
			}
			for range i {
				record, err := stream.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, record)
			}
			streams = append(streams, stream)
		}
		for range 2 {
			if err := eng.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, stream := range streams {
			_, err := stream.Next(ctx)
			wantError(t, err, errs.Cancelled, "the engine is closed")
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, record := range held {
			_ = record.Column(0).ValueStr(0)
			record.Release()
		}
	})
	t.Run("the engine while Scan reads metadata", func(t *testing.T) {
		fs := &blockingFS{FS: fileio.NewLocal(), blocked: make(chan struct{}, 100)}
		eng := tables(t, engine.Options{FS: fs})
		fs.block.Store(true)
		result := make(chan error)
		go func() {
			_, err := eng.Scan(ctx, table)
			result <- err
		}()
		<-fs.blocked
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		wantError(t, <-result, errs.Cancelled, "the engine is closed")
	})
	t.Run("the engine while Next waits", func(t *testing.T) {
		fs := &blockingFS{FS: fileio.NewLocal(), blocked: make(chan struct{}, 100)}
		eng := tables(t, engine.Options{FS: fs})
		stream, err := eng.Scan(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		fs.block.Store(true)
		result := make(chan error)
		go func() {
			_, err := stream.Next(ctx)
			result <- err
		}()
		<-fs.blocked
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		wantError(t, <-result, errs.Cancelled, "the engine is closed")
	})
}

// TestNextDeadline checks that a deadline ends a wait without ending the
// stream.
func TestNextDeadline(t *testing.T) {
	fs := &blockingFS{FS: fileio.NewLocal(), blocked: make(chan struct{}, 100), release: make(chan struct{})}
	eng := tables(t, engine.Options{FS: fs})
	stream, err := eng.Scan(ctx, engine.ScanRequest{MetadataLocation: location(t, "eq_basic")})
	if err != nil {
		t.Fatal(err)
	}
	fs.block.Store(true)
	brief, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
	defer cancel()
	if _, err := stream.Next(brief); !errors.Is(err, context.DeadlineExceeded) || errs.CodeOf(err) != errs.Cancelled {
		t.Errorf("got %v", err)
	}
	close(fs.release)
	if got, err := rows(stream); err != nil || len(got) != 21 {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

// TestManyCycles checks that opening, scanning and closing leaves nothing.
func TestManyCycles(t *testing.T) {
	dir := fixtures.Dir(t)
	table := location(t, "eq_basic")
	enginetest.NoLeaks(t)
	heap := func() uint64 { return enginetest.HeapInUse() }
	cycle := func(n int) {
		for i := range n {
			eng, err := engine.Open(engine.Options{PathPrefixes: map[string]string{fixtures.Prefix: dir}})
			if err != nil {
				t.Fatal(err)
			}
			stream, err := eng.Scan(ctx, engine.ScanRequest{MetadataLocation: table})
			if err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 { // some end early
				if record, err := stream.Next(ctx); err != nil {
					t.Fatal(err)
				} else {
					record.Release()
				}
			} else if got, err := rows(stream); err != nil || len(got) != 21 {
				t.Fatalf("%d rows, %v", len(got), err)
			}
			if err := eng.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle(50)
	before, goroutines, descriptors := heap(), len(enginetest.Goroutines()), len(enginetest.Descriptors(t))
	cycle(1000)
	if after := heap(); after > before+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if n := len(enginetest.Descriptors(t)); n > descriptors {
		t.Errorf("%d descriptors, %d before", n, descriptors)
	}
	for deadline := time.Now().Add(2 * time.Second); len(enginetest.Goroutines()) > goroutines && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := len(enginetest.Goroutines()); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
}

// TestOptionsDoNotChangeRows reads every Java-written table with very different
// options: the same rows come in the same order.
func TestOptionsDoNotChangeRows(t *testing.T) {
	wide := tables(t, engine.Options{Threads: 1})
	narrow := tables(t, engine.Options{Threads: 3, BatchRows: 3, BatchBytes: 256, MemoryLimit: engine.MinMemoryLimit})
	for _, c := range fixtures.Cases(t) {
		request := engine.ScanRequest{MetadataLocation: c.MetadataLocation}
		want, err := scanRows(wide, request)
		got, narrowErr := scanRows(narrow, request)
		if errs.CodeOf(err) != errs.CodeOf(narrowErr) || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, %v; with small batches %d rows, %v", c.Name, len(want), err, len(got), narrowErr)
		}
	}
	if peak := narrow.Stats().MemoryPeak; peak > engine.MinMemoryLimit {
		t.Errorf("%d bytes were charged at a time", peak)
	}
}

// TestSpillingDoesNotChangeRows reads every Java-written table with all deletes
// on disk: the same rows come in the same order, and nothing is left there.
func TestSpillingDoesNotChangeRows(t *testing.T) {
	inMemory := tables(t, engine.Options{Threads: 1})
	for _, threads := range []int{1, 3} {
		dir := t.TempDir()
		onDisk := tables(t, engine.Options{Threads: threads, BatchRows: 100, MemoryLimit: engine.MinMemoryLimit, SpillDir: dir}.AlwaysSpilling())
		spilled := false
		for _, c := range fixtures.Cases(t) {
			request := engine.ScanRequest{MetadataLocation: c.MetadataLocation}
			want, err := scanRows(inMemory, request)
			got, diskErr := scanRows(onDisk, request)
			if errs.CodeOf(err) != errs.CodeOf(diskErr) || !slices.Equal(got, want) {
				t.Errorf("%s: %d rows, %v; from disk %d rows, %v", c.Name, len(want), err, len(got), diskErr)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				spilled = true
			}
		}
		if !spilled {
			t.Error("nothing was spilled")
		}
		if err := onDisk.Close(); err != nil {
			t.Error(err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("left in spill_dir: %v, %v", entries, err)
		}
	}
}
