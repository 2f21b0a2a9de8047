package plan

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

func TestMain(m *testing.M) { os.Exit(fixtures.Main(m)) }

// fixtureFS opens the tables that Java wrote where they are unpacked.
func fixtureFS(tb testing.TB) fileio.FS {
	return fileio.WithPrefixes(fileio.NewLocal(), map[string]string{fixtures.Prefix: fixtures.Dir(tb)})
}

func loadTable(tb testing.TB, fs fileio.FS, location string) *meta.Table {
	tb.Helper()
	content, err := fileio.ReadAll(context.Background(), fs, location, meta.MaxSize)
	if err != nil {
		tb.Fatal(err)
	}
	table, err := meta.Parse(content, location)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// planAll runs a plan to its end and checks that it gives its memory back.
func planAll(tb testing.TB, fs fileio.FS, req Request) ([]*Task, error) {
	tb.Helper()
	pool := mem.NewPool("test", 64<<20)
	defer func() {
		if err := pool.Close(); err != nil {
			tb.Error(err)
		}
	}()
	tasks, err := Plan(context.Background(), fs, pool, req)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := tasks.Close(); err != nil {
			tb.Error(err)
		}
	}()
	var all []*Task
	for {
		t, err := tasks.Next(context.Background())
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
}

// TestPlansOfJavaTables compares every plan that Java recorded with ours. Our
// data files are Java's. Java prunes delete files by their metrics, and we may
// prune less: our deletes contain Java's and are contained in what the rules of
// scope and sequence allow. We may prove more of a filter than Java, so only
// the residuals that Java resolved to true must be resolved.
func TestPlansOfJavaTables(t *testing.T) {
	enginetest.NoLeaks(t)
	fs := fixtureFS(t)
	for _, c := range fixtures.Cases(t) {
		table := loadTable(t, fs, c.MetadataLocation)
		for _, read := range c.Reads {
			t.Run(c.Name+"/"+read.Tag(), func(t *testing.T) {
				req := Request{Table: table, Snapshot: table.CurrentSnapshot(), Workers: 2}
				if read.SnapshotID != nil {
					var err error
					if req.Snapshot, err = table.Snapshot(*read.SnapshotID); err != nil {
						t.Fatal(err)
					}
				}
				checkPlan(t, fs, req, read)
			})
		}
	}
}

// prunedByUs are files that Java plans and that have or delete no row.
var prunedByUs = map[string]bool{
	// day = 2024-01-01 or (id = 5 and rid > 100): the second part is false in
	// the partition and the first by the file's metrics.
	"TestPlansOfJavaTables/plan_prune/or data/id_bucket=0/cat_trunc=c/ts_month=2024-01/d41.parquet": true,
	"TestPlansOfJavaTables/plan_prune/or data/id_bucket=0/cat_trunc=c/ts_month=2024-02/d45.parquet": true,

	// All keys are NaN, and the data file's metrics count no NaN.
	"TestPlansOfJavaTables/eq_nan_only/full data/d02.parquet data/eq01.parquet": true,
}

func checkPlan(t *testing.T, fs fileio.FS, req Request, read fixtures.Read) {
	if read.Filter != nil {
		filter, err := expr.ParseIcebergJSON(read.Filter)
		if err != nil {
			t.Fatal(err)
		}
		schema := req.Table.SchemaOf(req.Snapshot)
		if read.SnapshotID == nil {
			schema = req.Table.CurrentSchema()
		}
		if req.Filter, err = filter.Bind(schema, true); err != nil {
			t.Fatal(err)
		}
	}
	tasks, err := planAll(t, fs, req)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]*Task{}
	for _, task := range tasks {
		ours[relative(req.Table, task.Data.Path)] = task
	}
	failed := len(read.Plan) == 0 && read.Rows > 0 // Java cannot plan with a key column that was dropped
	for file := range ours {
		if !failed && !slices.ContainsFunc(read.Plan, func(java fixtures.PlannedFile) bool { return java.DataFile == file }) {
			t.Errorf("data file %s is not in Java's plan", file)
		}
	}
	allowed := allowedDeletes(t, fs, req)
	for _, java := range read.Plan {
		task, ok := ours[java.DataFile]
		if !ok {
			if !prunedByUs[t.Name()+" "+java.DataFile] {
				t.Errorf("data file %s is missing", java.DataFile)
			}
			continue
		}
		if d := task.Data; d.SpecID != java.SpecID || d.RecordCount != java.RecordCount || d.DataSequence != java.DataSequenceNumber {
			t.Errorf("%s: spec %d, %d records, data sequence number %d; Java has %d, %d, %d", java.DataFile,
				d.SpecID, d.RecordCount, d.DataSequence, java.SpecID, java.RecordCount, java.DataSequenceNumber)
		}
		if string(java.Residual) == `"true"` && task.Residual != nil {
			t.Errorf("%s: the residual is %s, Java has none", java.DataFile, task.Residual)
		}
		var names []string
		for _, d := range task.Deletes {
			names = append(names, deleteName(req.Table, d))
		}
		for _, d := range java.Deletes {
			if !slices.Contains(names, d) && !prunedByUs[t.Name()+" "+java.DataFile+" "+d] {
				t.Errorf("%s: the delete file %s is missing; there are %v", java.DataFile, d, names)
			}
		}
		for _, d := range names {
			if !slices.Contains(allowed[task.Data.Path], d) {
				t.Errorf("%s: the delete file %s is out of scope", java.DataFile, d)
			}
		}
	}
}

// allowedDeletes applies the rules of scope and sequence to every pair of a
// data and a delete file, without an index and without metrics.
func allowedDeletes(t *testing.T, fs fileio.FS, req Request) map[string][]string {
	t.Helper()
	var data, deletes []*File
	if req.Snapshot == nil {
		return nil
	}
	manifests, err := readManifests(context.Background(), fs, libraryDecoder{}, req.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests {
		err := readEntries(context.Background(), fs, libraryDecoder{}, req.Table, &m, statistics{}, func(e *entry) error {
			if e.file.Content == Data {
				data = append(data, &e.file)
			} else {
				deletes = append(deletes, &e.file)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	allowed := map[string][]string{}
	for _, d := range data {
		vector := slices.ContainsFunc(deletes, func(x *File) bool { return x.IsDV() && *x.ReferencedDataFile == d.Path })
		for _, x := range deletes {
			spec, _ := req.Table.SpecByID(x.SpecID)
			samePartition := x.SpecID == d.SpecID && fmt.Sprint(x.Partition) == fmt.Sprint(d.Partition)
			var ok bool
			switch {
			case x.Content == EqualityDeletes:
				ok = d.DataSequence < x.DataSequence && (samePartition || spec.IsUnpartitioned())
			case x.ReferencedDataFile != nil && *x.ReferencedDataFile != d.Path:
			default:
				ok = d.DataSequence <= x.DataSequence && samePartition && (x.IsDV() || !vector)
			}
			if ok {
				allowed[d.Path] = append(allowed[d.Path], deleteName(req.Table, x))
			}
		}
	}
	return allowed
}

func relative(table *meta.Table, path string) string {
	plain := func(s string) string { return "/" + strings.TrimLeft(strings.TrimPrefix(s, "file:"), "/") }
	return strings.TrimPrefix(plain(path), plain(table.Location)+"/")
}

func deleteName(table *meta.Table, f *File) string {
	name := relative(table, f.Path)
	if f.IsDV() {
		name += fmt.Sprintf("@%d+%d", *f.ContentOffset, *f.ContentSize)
	}
	return name
}
