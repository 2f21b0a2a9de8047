package engine

import (
	"context"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/sort"
)

// sortShare is the part of the engine's memory that one sort takes: it fills
// what it may have, and its input is mostly a stream of the same engine, which
// must not starve.
const sortShare = 2

// SortKey is one column to sort by: a name, dotted for a field of a struct; its
// transform, nil for the values themselves; direction; and where nulls go,
// whatever the direction.
type SortKey = sort.Key

// Sort orders the rows of input, however many, and keeps rows with equal keys
// as they came. Floats are ordered as -inf ... -0.0 < 0.0 ... inf < NaN. What
// does not fit in memory goes to the spill directory. The result has input's
// schema and types.
//
// Sort takes input over: it is closed with the stream, also when Sort fails.
// Nothing is read before the first Next. ctx bounds this call only. A sort takes
// at most half of the engine's memory; a scan of the same engine that it reads
// from needs a MemoryLimit of the other half.
func (e *Engine) Sort(ctx context.Context, input batch.Stream, keys []SortKey) (batch.Stream, error) {
	taken := false
	s, err := e.run(ctx, "sort", e.options.MemoryLimit/sortShare, func(_, lifetime context.Context, s *stream) error {
		taken = true
		sorted, err := sort.New(lifetime, input, sort.Config{
			Keys: keys, Pool: s.pool, Alloc: e.options.Allocator, Spill: e.spill.open,
			Threads: e.options.Threads, BatchRows: e.options.BatchRows, BatchBytes: e.options.BatchBytes,
		})
		if err != nil {
			return err
		}
		s.inner, s.schema = sorted, sorted.Schema()
		return nil
	})
	if err != nil {
		if !taken {
			_ = input.Close() // the error that counts is the engine's
		}
		return nil, errs.Wrap(err, "sort", "")
	}
	return s, nil
}
