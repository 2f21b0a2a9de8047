package plan

import (
	"context"
	"errors"
	"testing"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

// TestFaults fails the first, second, ... operation on storage: each gives its
// error, and nothing is left behind.
func TestFaults(t *testing.T) {
	enginetest.NoLeaks(t)
	fs := fixtureFS(t)
	table := loadTable(t, fs, fixtures.Prefix+"/pos_partition_scoped/metadata/v3.metadata.json")
	for k := int64(0); ; k++ {
		faulty := enginetest.NewFaultFS(fs, k)
		_, err := planAll(t, faulty, Request{Table: table, Snapshot: table.CurrentSnapshot(), Workers: 2})
		if !faulty.Failed() {
			if err != nil || k < 4 {
				t.Errorf("%d operations, %v", k, err)
			}
			return
		}
		if !errors.Is(err, enginetest.ErrFault) {
			t.Errorf("operation %d: %v", k, err)
		}
	}
}

// TestEarlyEnd closes and cancels plans that are not at their end.
func TestEarlyEnd(t *testing.T) {
	enginetest.NoLeaks(t)
	fs := fixtureFS(t)
	table := loadTable(t, fs, fixtures.Prefix+"/plan_prune/metadata/v5.metadata.json")
	req := Request{Table: table, Snapshot: table.CurrentSnapshot(), Workers: 2}
	pool := mem.NewPool("test", 64<<20)

	tasks, err := Plan(context.Background(), fs, pool, req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tasks.Next(context.Background()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(tasks.Close(), tasks.Close()); err != nil {
		t.Error(err)
	}
	if _, err := tasks.Next(context.Background()); errs.CodeOf(err) != errs.Cancelled {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	if tasks, err = Plan(ctx, fs, pool, req); err != nil {
		t.Fatal(err)
	}
	cancel()
	for err == nil { // what is ready may still come
		_, err = tasks.Next(ctx)
	}
	if errs.CodeOf(err) != errs.Cancelled {
		t.Error(err)
	}
	if err := errors.Join(tasks.Close(), pool.Close()); err != nil {
		t.Error(err)
	}
}
