package loader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/bridge/loader"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

func TestMain(m *testing.M) { os.Exit(fixtures.Main(m)) }

// load finds the library that the build made, or the one that
// ICEBERGEXEC_LIBRARY names.
func load(t *testing.T) *loader.Library {
	t.Helper()
	path := os.Getenv("ICEBERGEXEC_LIBRARY")
	if path == "" {
		_, self, _, _ := runtime.Caller(0)
		path = filepath.Join(filepath.Dir(self), "../../build/out/libicebergexec.so")
		if _, err := os.Stat(path); err != nil {
			t.Skip("the library is not built; run make lib")
		}
	}
	lib, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func open(t *testing.T, lib *loader.Library) *loader.Engine {
	t.Helper()
	engine, err := lib.OpenEngine(fmt.Sprintf(`{"memory_limit": "64MiB", "path_prefixes": {%q: %q}}`, fixtures.Prefix, fixtures.Dir(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// location is a Java-written table's metadata file.
func location(t *testing.T, name string) string {
	t.Helper()
	var c struct {
		Location string `json:"metadata_location"`
	}
	text, err := os.ReadFile(filepath.Join(fixtures.Dir(t), name, "case.json"))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.Location
}

func rows(t *testing.T, s *loader.Stream, visit func(arrow.RecordBatch)) (n int64) {
	t.Helper()
	defer s.Close()
	for {
		batch, err := s.Next(context.Background())
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		n += batch.NumRows()
		visit(batch)
		batch.Release()
	}
}

// TestScan reads whole tables, nested types among them, and leaves nothing
// behind in the library.
func TestScan(t *testing.T) {
	lib := load(t)
	if !strings.Contains(lib.Version(), ".") {
		t.Errorf("version %q", lib.Version())
	}
	engine := open(t, lib)
	for _, name := range []string{"eq_composite", "evo_list_map", "eq_nested_struct", "sort_types", "eq_type_decimal38", "lin_basic"} {
		var expected []any
		text, err := os.ReadFile(filepath.Join(fixtures.Dir(t), name, "expected.json"))
		if err == nil {
			err = json.Unmarshal(text, &expected)
		}
		if err != nil {
			t.Fatal(err)
		}
		stream, err := engine.Scan(fmt.Sprintf(`{"metadata_location": %q}`, location(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		n := rows(t, stream, func(batch arrow.RecordBatch) {
			if _, err := json.Marshal(batch); err != nil { // looks at every value
				t.Error(err)
			}
			if !batch.Schema().Equal(stream.Schema()) {
				t.Errorf("%s: the batch's schema is not the stream's", name)
			}
		})
		if n != int64(len(expected)) {
			t.Errorf("%s: %d rows, want %d", name, n, len(expected))
		}
	}
	stats, err := engine.Stats()
	if err != nil || !strings.Contains(stats, `"allocated_bytes":0,`) || !strings.Contains(stats, `"open_streams":0,`) {
		t.Errorf("left behind: %s, %v", stats, err)
	}
}

func TestPlan(t *testing.T) {
	engine := open(t, load(t))
	plan, err := engine.Plan(fmt.Sprintf(`{"metadata_location": %q}`, location(t, "eq_composite")))
	if err != nil {
		t.Fatal(err)
	}
	if n := rows(t, plan, func(arrow.RecordBatch) {}); n == 0 {
		t.Error("the plan has no files")
	}
}

func TestErrors(t *testing.T) {
	lib := load(t)
	engine := open(t, lib)
	code := func(err error) loader.Code {
		var e *loader.Error
		if errors.As(err, &e) {
			return e.Code
		}
		return 0
	}
	if _, err := engine.Scan(`{"metadata_location": "/no/such.json"}`); code(err) != loader.NotFound || !strings.Contains(err.Error(), "/no/such.json") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := engine.Scan(``); code(err) != loader.InvalidArgument {
		t.Errorf("an empty request: %v", err)
	}
	if _, err := lib.OpenEngine(`{"threads": -1}`); code(err) != loader.InvalidArgument {
		t.Errorf("a bad option: %v", err)
	}
	stream, err := engine.Scan(fmt.Sprintf(`{"metadata_location": %q}`, location(t, "eq_basic")))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Cancel(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Next(context.Background()); code(err) != loader.Cancelled {
		t.Errorf("after Cancel: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	cancel()
	if _, err := stream.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if err := errors.Join(stream.Close(), stream.Close()); err != nil {
		t.Error(err)
	}
	if _, err := loader.Load("/no/such/library.so"); err == nil {
		t.Error("a missing library loads")
	}
}

// TestTwoRuntimes keeps the collectors of both sides busy.
func TestTwoRuntimes(t *testing.T) {
	engine := open(t, load(t))
	request := fmt.Sprintf(`{"metadata_location": %q}`, location(t, "eq_composite"))
	var held []arrow.RecordBatch
	var want []string
	values := func(batch arrow.RecordBatch) string { text, _ := json.Marshal(batch); return string(text) }
	for range 50 {
		stream, err := engine.Scan(request)
		if err != nil {
			t.Fatal(err)
		}
		rows(t, stream, func(batch arrow.RecordBatch) {
			batch.Retain()
			held, want = append(held, batch), append(want, values(batch))
		})
		_ = make([]byte, 1<<20)
		runtime.GC()
	}
	for i, batch := range held {
		if got := values(batch); got != want[i] {
			t.Errorf("batch %d has changed from %s to %s", i, want[i], got)
		}
		batch.Release()
	}
}
