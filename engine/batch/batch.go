// Package batch holds the small interfaces along which rows travel.
//
//	datafile (pq, avro, host)       scan                         consumer
//	FileReader: windows of rows --> deletes, filter, project --> Stream of record batches
//
// A FileReader is driven from above, window by window, so that the columns a
// filter or an equality delete needs are decoded first and the others only for
// the rows that survive. A Stream is what an operation returns.
package batch

import (
	"context"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

// Stream is a pull iterator of record batches that share one schema.
//
// Next returns one batch whose single reference is owned by the caller, or
// io.EOF at the end. An error is sticky: every later Next returns it again.
// Only the cause of the call's own context is not: it ends the wait, loses
// nothing, and Next may be called again.
// Close is idempotent, may be called after an error and before the end, and
// returns only when every goroutine of the stream has ended. Next and Close of
// one stream must not run at the same time; to interrupt a Next, cancel its
// context.
type Stream interface {
	Schema() *arrow.Schema
	Next(ctx context.Context) (arrow.RecordBatch, error)
	Close() error
}

// Range is the half-open interval [Start, End) of row positions in a file.
type Range struct{ Start, End int64 }

// Len is the number of rows in the range.
func (r Range) Len() int64 { return r.End - r.Start }

// Column selects one top-level column of a data file, or a part of it.
type Column struct {
	// Index is the position of the column in the file's schema.
	Index int
	// Leaves are the leaf columns to read, as ordinals in depth-first order
	// over the whole file schema (for Parquet: the column index). A primitive
	// column has exactly one. A list, map or struct is returned with its type
	// pruned to these leaves; the order of fields stays the file's.
	Leaves []int
}

// FileReader yields the rows of one data file as windows of consecutive rows.
//
//	for {
//		window, err := r.Next(ctx)                    // io.EOF after the last
//		keys, err := r.Read(ctx, keyColumns, nil)     // all rows of the window
//		rest, err := r.Read(ctx, otherColumns, mask)  // only the kept ones
//	}
//
// Positions count every row of the file, also those of windows that were
// skipped. Each column may be read at most once per window; a column not read
// costs little. A FileReader is used by one goroutine at a time.
type FileReader interface {
	// Schema describes the selected columns in the order in which they were
	// requested, with their types as Read returns them. Field ids are under
	// the metadata key PARQUET:field_id at every level, where the file has them.
	Schema() *arrow.Schema
	// Next moves to the next window, which ends before the next unselected
	// row, row-group end or configured batch size, whichever comes first.
	Next(ctx context.Context) (Range, error)
	// Read decodes columns (indices into Schema) of the current window. keep
	// has one bit per row of the window; nil keeps all. Each returned array
	// has keep.Count() rows and one reference, owned by the caller.
	Read(ctx context.Context, columns []int, keep *Mask) ([]arrow.Array, error)
	// Close frees everything; idempotent.
	Close() error
}

// WindowLimiter is a FileReader whose windows can be made smaller or larger
// while it reads: the rows of a window are bounded by the memory that they
// take, which only reading them tells.
type WindowLimiter interface {
	// LimitWindow bounds the rows of the windows that follow, at least 1.
	LimitWindow(rows int)
}

// Mask is a bitmap over the rows of one window, least significant bit first
// (Arrow's validity order). A set bit keeps the row.
type Mask struct {
	// Words holds the bits; those at and past Len are zero.
	Words []uint64
	// Len is the number of rows.
	Len int
}

// NewMask makes a mask of n rows that are all kept or all dropped.
func NewMask(n int, kept bool) *Mask {
	m := &Mask{}
	m.Reset(n, kept)
	return m
}

// Reset gives the mask a new length, reusing its memory, with all rows kept or
// all dropped.
func (m *Mask) Reset(n int, kept bool) {
	words := (n + 63) / 64
	if cap(m.Words) < words {
		m.Words = make([]uint64, words)
	}
	m.Words, m.Len = m.Words[:words], n
	fill := uint64(0)
	if kept {
		fill = ^uint64(0)
	}
	for i := range m.Words {
		m.Words[i] = fill
	}
	m.trim()
}

func (m *Mask) trim() {
	if tail := m.Len & 63; tail != 0 {
		m.Words[len(m.Words)-1] &= 1<<tail - 1
	}
}

// Get reports whether row i is kept.
func (m *Mask) Get(i int) bool { return m.Words[i>>6]>>(uint(i)&63)&1 == 1 }

// Set keeps row i.
func (m *Mask) Set(i int) { m.Words[i>>6] |= 1 << (uint(i) & 63) }

// Clear drops row i.
func (m *Mask) Clear(i int) { m.Words[i>>6] &^= 1 << (uint(i) & 63) }

// Count is the number of rows kept.
func (m *Mask) Count() int {
	n := 0
	for _, w := range m.Words {
		n += bits.OnesCount64(w)
	}
	return n
}

// All reports whether every row is kept.
func (m *Mask) All() bool { return m.Count() == m.Len }

// And drops the rows that other drops. Both masks have the same length.
func (m *Mask) And(other *Mask) {
	for i, w := range other.Words {
		m.Words[i] &= w
	}
}
