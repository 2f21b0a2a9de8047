package scan_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/project"
	"github.com/icebergexec/icebergexec/engine/scan"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

func TestMain(m *testing.M) { os.Exit(fixtures.Main(m)) }

func TestJoinParts(t *testing.T) {
	ranges := func(ends ...int64) (parts []batch.Range) {
		start := int64(0)
		for _, end := range ends {
			parts = append(parts, batch.Range{Start: start, End: end})
			start = end
		}
		return parts
	}
	for _, test := range []struct {
		name        string
		parts, want []batch.Range
		size        int64
	}{
		{"no rows", nil, nil, 100 << 20},
		{"one", ranges(10), ranges(10), 100 << 20},
		{"large row groups", ranges(10, 20, 30), ranges(10, 20, 30), 100 << 20},
		{"small row groups", ranges(10, 20, 30, 40, 50, 60, 70), ranges(30, 60, 70), 12 << 20},
		{"tiny row groups", ranges(1, 2, 3, 4), ranges(4), 4 << 20},
		{"mixed", ranges(1, 2, 90, 91, 100), ranges(90, 100), 10 << 20},
	} {
		if got := scan.JoinParts(test.parts, test.size); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// TestSplitFiles reads files by row groups on several threads: rows, order and
// deletes are the same.
func TestSplitFiles(t *testing.T) {
	dir := fixtures.Dir(t)
	for _, name := range []string{"pos_row_groups", "dv_row_groups", "eq_large", "mix_rand_02", "fmt_avro"} {
		read := func(threads int) []string {
			enginetest.NoLeaks(t)
			fs := fileio.WithPrefixes(fileio.NewLocal(), map[string]string{fixtures.Prefix: dir})
			document, err := os.ReadFile(filepath.Join(dir, name, "metadata", currentMetadata(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			table, err := meta.Parse(document, name)
			if err != nil {
				t.Fatal(err)
			}
			selection, err := scan.Select(table, table.CurrentSchema(), nil, true, project.ArrowOptions{})
			if err != nil {
				t.Fatal(err)
			}
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			pool := mem.NewPool("engine", mem.Unlimited)
			got, err := rows(scan.New(ctx, scan.Config{
				Plan: func(ctx context.Context) (scan.Tasks, error) {
					return plan.Plan(ctx, fs, pool, plan.Request{Table: table, Snapshot: table.CurrentSnapshot()})
				},
				Table: table, Schema: table.CurrentSchema(), Selection: selection,
				FS: fs, Pool: pool, Alloc: alloc, Workers: threads, BatchRows: 20, BatchBytes: 1 << 20,
			}))
			if err != nil {
				t.Fatal(err)
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
			alloc.AssertSize(t, 0)
			return got
		}
		want := read(1)
		scan.SetSplitSize(t, 1)
		for _, threads := range []int{2, 5} {
			if got := read(threads); !slices.Equal(got, want) {
				t.Errorf("%s: %d rows by parts, %d by files", name, len(got), len(want))
			}
		}
	}
}

func currentMetadata(t *testing.T, name string) string {
	t.Helper()
	for _, c := range fixtures.Cases(t) {
		if c.Name == name {
			return strings.TrimPrefix(c.MetadataLocation, fixtures.Prefix+"/"+name+"/metadata/")
		}
	}
	t.Fatalf("there is no table %s", name)
	return ""
}
