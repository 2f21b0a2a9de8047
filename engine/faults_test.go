package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
)

// blockingFS makes reads wait once block is set, until release is closed or
// the context of their Open has ended.
type blockingFS struct {
	fileio.FS
	block   atomic.Bool
	blocked chan struct{}
	release chan struct{}
}

func (fs *blockingFS) Open(ctx context.Context, location string) (fileio.File, error) {
	if fs.block.Load() {
		fs.blocked <- struct{}{}
		select {
		case <-fs.release:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return fs.FS.Open(ctx, location)
}

// TestFaults fails every file operation of a scan in turn: the scan reports it
// or does not need what failed, never returns other rows, and leaves nothing.
func TestFaults(t *testing.T) {
	for _, name := range []string{"eq_basic", "pos_and_eq", "dv_and_eq", "fmt_avro_deletes", "evo_added", "pos_partition_scoped"} {
		t.Run(name, func(t *testing.T) {
			table := engine.ScanRequest{MetadataLocation: location(t, name)}
			want := mustScan(t, tables(t, engine.Options{}), table)
			for _, threads := range []int{1, 3} {
				for k := int64(0); ; k++ {
					fs := enginetest.NewFaultFS(fileio.NewLocal(), k)
					failed := true
					t.Run("", func(t *testing.T) { // checks for leaks at its end
						got, err := scanRows(tables(t, engine.Options{FS: fs, Threads: threads}), table)
						failed = fs.Failed()
						switch {
						case err == nil && !slices.Equal(got, want):
							t.Errorf("fault %d changed the rows", k)
						case err == nil && failed:
							t.Errorf("fault %d went unnoticed", k)
						case err != nil && !errors.Is(err, enginetest.ErrFault):
							t.Errorf("fault %d: %v", k, err)
						case err != nil && len(got) > 0 && !slices.Equal(got, want[:len(got)]):
							t.Errorf("fault %d: other rows before the error", k)
						}
					})
					if !failed {
						t.Logf("%d threads: %d operations", threads, k)
						break
					}
				}
			}
		})
	}
}
