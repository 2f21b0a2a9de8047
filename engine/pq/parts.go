package pq

import (
	"slices"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// Parts are the rows of the file's row groups, without empty ones: each can be
// read by a reader of its own at no more cost than by one reader of all.
func (f *File) Parts() []batch.Range {
	return slices.DeleteFunc(f.RowGroups(), func(r batch.Range) bool { return r.Len() == 0 })
}

// LimitWindow implements batch.WindowLimiter.
func (r *reader) LimitWindow(rows int) { r.windows.batchRows = int64(max(rows, 1)) }
