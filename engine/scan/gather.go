package scan

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// gather joins small batches, as selective filters leave them, until they have
// half the wanted size or the next one does not fit. Larger ones pass through
// untouched.
type gather struct {
	cfg     *Config
	sizer   *sizer
	eager   bool // emit the next batch whatever its size
	pending []arrow.RecordBatch
	rows    int64
	bytes   int64
}

// newGather makes a gather; eager lets the first batch pass at once, so that a
// consumer need not wait for a large one.
func newGather(cfg *Config, s *sizer, eager bool) *gather {
	return &gather{cfg: cfg, sizer: s, eager: eager}
}

// add takes over a batch and emits what is large enough.
func (g *gather) add(record arrow.RecordBatch, emit func(arrow.RecordBatch) error) error {
	rows, bytes := record.NumRows(), batch.RecordBytes(record)
	if g.rows+rows > int64(g.cfg.BatchRows) || g.bytes+bytes > g.cfg.BatchBytes {
		if err := g.flush(emit); err != nil {
			record.Release()
			return err
		}
	}
	g.pending = append(g.pending, record)
	g.rows, g.bytes = g.rows+rows, g.bytes+bytes
	if g.eager || 2*g.rows >= int64(g.cfg.BatchRows) || 2*g.bytes >= g.cfg.BatchBytes {
		g.eager = false
		return g.flush(emit)
	}
	g.sizer.hold(g.bytes)
	return nil
}

// flush emits everything as one batch.
func (g *gather) flush(emit func(arrow.RecordBatch) error) error {
	if len(g.pending) == 0 {
		return nil
	}
	record, err := g.join()
	g.drop()
	if err != nil {
		return err
	}
	return emit(record)
}

func (g *gather) join() (arrow.RecordBatch, error) {
	if len(g.pending) == 1 {
		g.pending[0].Retain()
		return g.pending[0], nil
	}
	columns := make([]arrow.Array, 0, g.pending[0].NumCols())
	defer func() {
		for _, a := range columns {
			a.Release()
		}
	}()
	pieces := make([]arrow.Array, len(g.pending))
	for i := range int(g.pending[0].NumCols()) {
		for j, record := range g.pending {
			pieces[j] = record.Column(i)
		}
		a, err := array.Concatenate(pieces, g.cfg.Alloc)
		if err != nil {
			return nil, errs.New(errs.Internal, "batches of column %q cannot be joined: %v", g.pending[0].ColumnName(i), err)
		}
		columns = append(columns, a)
	}
	return array.NewRecordBatch(g.pending[0].Schema(), columns, g.rows), nil
}

// drop releases what is held.
func (g *gather) drop() {
	for _, record := range g.pending {
		record.Release()
	}
	g.pending, g.rows, g.bytes = nil, 0, 0
	g.sizer.hold(0)
}
