package batch_test

import (
	"testing"

	"github.com/icebergexec/icebergexec/engine/batch"
)

func TestMask(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 200} {
		kept := batch.NewMask(n, true)
		if kept.Count() != n || !kept.All() {
			t.Errorf("%d rows: %d kept", n, kept.Count())
		}
		dropped := batch.NewMask(n, false)
		if dropped.Count() != 0 || dropped.All() != (n == 0) {
			t.Errorf("%d rows: %d kept", n, dropped.Count())
		}
		for i := range n {
			dropped.Set(i)
			if !dropped.Get(i) || dropped.Count() != 1 {
				t.Errorf("row %d of %d is not set alone", i, n)
			}
			kept.Clear(i)
			if kept.Get(i) || kept.Count() != n-i-1 {
				t.Errorf("row %d of %d is not cleared alone", i, n)
			}
			dropped.Clear(i)
		}
	}
}

func TestMaskReset(t *testing.T) {
	m := batch.NewMask(200, true)
	m.Reset(70, false)
	if m.Len != 70 || m.Count() != 0 {
		t.Errorf("%d of %d rows", m.Count(), m.Len)
	}
	m.Reset(130, true)
	if m.Len != 130 || m.Count() != 130 {
		t.Errorf("%d of %d rows", m.Count(), m.Len)
	}
}

func TestMaskAnd(t *testing.T) {
	a, b := batch.NewMask(130, true), batch.NewMask(130, false)
	a.Clear(5)
	b.Set(5)
	b.Set(129)
	a.And(b)
	if a.Count() != 1 || !a.Get(129) {
		t.Errorf("%d rows kept", a.Count())
	}
}
