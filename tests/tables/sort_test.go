package tables

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

// TestSorts scans every table that has a sort order, sorts the rows by it, and
// compares with the order in which Java's comparators put them.
func TestSorts(t *testing.T) {
	root := fixtures.Dir(t)
	checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer checked.AssertSize(t, 0)
	spillDir := t.TempDir()
	eng, err := engine.Open(engine.Options{
		Allocator: checked, SpillDir: spillDir, MemoryLimit: engine.MinMemoryLimit,
		PathPrefixes: map[string]string{fixtures.Prefix: root},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(spillDir); err != nil || len(left) != 0 {
			t.Errorf("left in the spill directory: %v, %v", left, err)
		}
	}()
	found := 0
	for _, c := range fixtures.Cases(t) {
		file := filepath.Join(root, c.Name, "expected_sorted.json")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		found++
		t.Run(c.Name, func(t *testing.T) {
			var want [][2]int64
			fixtures.ReadJSON(t, file, &want)
			sorted := sortTable(t, eng, root, c)
			if len(sorted) != len(want) {
				t.Fatalf("%d rows, want %d", len(sorted), len(want))
			}
			group := map[int64]int64{}
			for _, w := range want {
				group[w[0]] = w[1]
			}
			for i, id := range sorted {
				if group[id] != want[i][1] {
					t.Fatalf("row %d is rid %d of group %d, want one of group %d", i, id, group[id], want[i][1])
				}
			}
		})
	}
	if found == 0 {
		t.Error("no table has a sort order")
	}
}

// sortTable returns the rids in the order of the table's sort order.
func sortTable(t *testing.T, eng *engine.Engine, root string, c fixtures.Case) (rids []int64) {
	ctx := context.Background()
	location := filepath.Join(root, c.MetadataLocation[len(fixtures.Prefix):])
	document, err := os.ReadFile(location)
	if err != nil {
		t.Fatal(err)
	}
	table, err := meta.Parse(document, location)
	if err != nil {
		t.Fatal(err)
	}
	order, ok := table.SortOrderByID(table.DefaultSortOrderID)
	if !ok {
		t.Fatal("the table has no sort order")
	}
	var sortKeys []engine.SortKey
	for _, f := range order.Fields {
		name, ok := table.CurrentSchema().FindColumnName(f.SourceIDs[0])
		if !ok {
			t.Fatalf("no column %d", f.SourceIDs[0])
		}
		sortKeys = append(sortKeys, engine.SortKey{Column: name, Transform: f.Transform, Descending: f.Descending, NullsLast: !f.NullsFirst})
	}
	scan, err := eng.Scan(ctx, engine.ScanRequest{MetadataLocation: c.MetadataLocation})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := eng.Sort(ctx, scan, sortKeys)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for {
		record, err := stream.Next(ctx)
		if err == io.EOF {
			return rids
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range renderBatch(record) {
			rids = append(rids, rid(row).Int64())
		}
		record.Release()
	}
}
