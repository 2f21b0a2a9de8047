// Package tables reads every table that Iceberg's Java library wrote and
// compares rows and values with what Java, or the spec where Java errs, expects.
package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

func TestMain(m *testing.M) { os.Exit(fixtures.Main(m)) }

// TestReads runs every read of every table through the Go API.
func TestReads(t *testing.T) {
	known := readFailures(t, "go")
	root := fixtures.Dir(t)
	checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer checked.AssertSize(t, 0)
	eng, err := engine.Open(engine.Options{
		Allocator:    checked,
		PathPrefixes: map[string]string{fixtures.Prefix: root},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, c := range fixtures.Cases(t) {
		for _, read := range c.Reads {
			t.Run(c.Name+"/"+read.Tag(), func(t *testing.T) {
				known.check(t, c.Name, read.Tag(), checkRead(t, eng, filepath.Join(root, c.Name), c, read))
			})
		}
	}
}

func checkRead(t *testing.T, eng *engine.Engine, dir string, c fixtures.Case, read fixtures.Read) error {
	request := engine.ScanRequest{
		MetadataLocation: c.MetadataLocation,
		SnapshotID:       read.SnapshotID,
		Columns:          read.Select,
	}
	if read.Filter != nil {
		filter, err := expr.ParseIcebergJSON(read.Filter)
		if err != nil {
			return err
		}
		request.Filter = filter
	}
	got, err := scanRows(eng, request)
	if err != nil {
		return err
	}
	if len(got) != read.Rows {
		return fmt.Errorf("%d rows, want %d", len(got), read.Rows)
	}
	if read.Summary {
		var want summary
		fixtures.ReadJSON(t, filepath.Join(dir, read.File), &want)
		return want.check(got)
	}
	var want []map[string]any
	fixtures.ReadJSON(t, filepath.Join(dir, read.File), &want)
	for i := range want {
		if g, w := jsonText(got[i]), jsonText(want[i]); g != w {
			return fmt.Errorf("row %d of %d:\n got %s\nwant %s", i, len(want), g, w)
		}
	}
	return nil
}

// scanRows returns the rendered rows in order of rid.
func scanRows(eng *engine.Engine, request engine.ScanRequest) (rows []map[string]any, err error) {
	ctx := context.Background()
	stream, err := eng.Scan(ctx, request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for {
		b, err := stream.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, renderBatch(b)...)
		b.Release()
	}
	sort.SliceStable(rows, func(i, j int) bool { return rid(rows[i]).Cmp(rid(rows[j])) < 0 })
	return rows, nil
}

func renderBatch(b arrow.RecordBatch) []map[string]any {
	rows := make([]map[string]any, b.NumRows())
	for i := range rows {
		rows[i] = map[string]any{}
		for c, field := range b.Schema().Fields() {
			rows[i][field.Name] = render(field, b.Column(c), i)
		}
	}
	return rows
}

func rid(row map[string]any) *big.Int {
	n, ok := new(big.Int).SetString(row["rid"].(string), 10)
	if !ok {
		panic(row["rid"])
	}
	return n
}

// summary is the expectation of a read with too many rows to list.
type summary struct {
	Count  int         `json:"count"`
	SumRID json.Number `json:"sum_rid"`
	// Alive are the inclusive ranges of rid that are left.
	Alive [][2]int64 `json:"alive_rid_ranges"`
}

func (s summary) check(rows []map[string]any) error {
	if len(rows) != s.Count {
		return fmt.Errorf("%d rows, want %d", len(rows), s.Count)
	}
	var want []int64
	for _, r := range s.Alive {
		for id := r[0]; id <= r[1]; id++ {
			want = append(want, id)
		}
	}
	for i, row := range rows {
		if id, err := strconv.ParseInt(row["rid"].(string), 10, 64); err != nil || id != want[i] {
			return fmt.Errorf("row %d is rid %v, want %d", i, row["rid"], want[i])
		}
	}
	return nil
}
