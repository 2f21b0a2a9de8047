package engine_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
)

// endless yields one batch for ever.
type endless struct {
	record arrow.RecordBatch
	begun  chan struct{}
	count  int
	closed bool
}

func (s *endless) Schema() *arrow.Schema { return s.record.Schema() }

func (s *endless) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.count++; s.count == 200 {
		close(s.begun)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.record.Retain()
	return s.record, nil
}

func (s *endless) Close() error { s.closed = true; return nil }

// A sort that is spilling ends with its engine and at its spill limit, and
// nothing of it stays on disk.
func TestSortEnds(t *testing.T) {
	enginetest.NoLeaks(t)
	checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer checked.AssertSize(t, 0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "text", Type: arrow.BinaryTypes.String}}, nil)
	builder := array.NewRecordBuilder(checked, schema)
	for range 1000 {
		builder.Field(0).(*array.StringBuilder).Append(strings.Repeat("x", 200))
	}
	record := builder.NewRecordBatch()
	builder.Release()
	defer record.Release()
	keys := []engine.SortKey{{Column: "text"}}
	for _, test := range []struct {
		name  string
		limit int64
		code  errs.Code
	}{
		{"engine closed", 0, errs.Cancelled},
		{"spill limit", 4 << 20, errs.SpillFull},
	} {
		dir := t.TempDir()
		eng, err := engine.Open(engine.Options{Allocator: checked, MemoryLimit: engine.MinMemoryLimit, SpillDir: dir, SpillLimit: test.limit, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		input := &endless{record: record, begun: make(chan struct{})}
		stream, err := eng.Sort(ctx, input, keys)
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		go func() {
			_, err := stream.Next(ctx)
			result <- err
		}()
		if test.limit == 0 {
			<-input.begun
			if err := eng.Close(); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if err := <-result; errs.CodeOf(err) != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
		if err := stream.Close(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if err := eng.Close(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 || !input.closed {
			t.Errorf("%s: left %v, %v; input closed %t", test.name, left, err, input.closed)
		}
	}
}

// Sort takes its input over also when it refuses the request.
func TestSortRefused(t *testing.T) {
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32}}, nil)
	record := array.NewRecordBatch(schema, []arrow.Array{array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, 1)}, 1)
	defer record.Release()
	input := &endless{record: record}
	if _, err := eng.Sort(ctx, input, []engine.SortKey{{Column: "b"}}); errs.CodeOf(err) != errs.InvalidArgument || !input.closed {
		t.Errorf("no such column: %v; input closed %t", err, input.closed)
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	input = &endless{record: record}
	if _, err := eng.Sort(ctx, input, []engine.SortKey{{Column: "a"}}); errs.CodeOf(err) != errs.Cancelled || !input.closed {
		t.Errorf("engine closed: %v; input closed %t", err, input.closed)
	}
}
