// Package deletes decides which rows of a data file are deleted.
//
//	task.Deletes
//	 ├── deletion vector ────> bitmap of positions ─┐
//	 ├── position-delete file > bitmap per data file ┼─> Set.Apply(window): clears deleted rows
//	 └── equality-delete file > key table ──────────┘
//	                            one per (scope, equality ids):
//	                            key -> greatest data sequence number
//
// A Resolver lives as long as one scan. It reads each delete file once, when
// the first task needs it, and shares what it read among all tasks. A Set is
// the deletes of one task, applied window by window to the rows of its data
// file: positions first, since they need no column, then one key table after
// the other on the rows that are left.
package deletes

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
)

// Table is what delete resolution needs to know of a table's metadata.
type Table interface {
	// Field finds a column by id in the newest schema that has it, dropped
	// columns included.
	Field(id int) (iceberg.NestedField, bool)
	SpecByID(id int) (*iceberg.PartitionSpec, bool)
}

// DeleteFile is an open position- or equality-delete file.
type DeleteFile interface {
	Schema() *arrow.Schema
	NewReader(ctx context.Context, columns []batch.Column, ranges []batch.Range) (batch.FileReader, error)
	Close() error
}

// Config configures a Resolver.
type Config struct {
	// FS reads deletion vectors.
	FS fileio.FS
	// Pool is charged for everything that is held; Alloc provides the larger
	// part of it.
	Pool  *mem.Pool
	Alloc memory.Allocator
	Table Table
	// NameMapping gives field ids to columns of delete files that carry none.
	NameMapping iceberg.NameMapping
	// Open opens a position- or equality-delete file for reading.
	Open func(ctx context.Context, f *plan.File) (DeleteFile, error)
	// Workers is how many delete files are read at a time, at least 1.
	Workers int
}

// Resolver reads the delete files of one scan. It is safe for concurrent use.
type Resolver struct {
	cfg Config
}

// NewResolver makes a resolver that has read nothing yet. The caller closes it.
func NewResolver(cfg Config) *Resolver { return &Resolver{cfg: cfg} }

// Close frees what was read, after every Set is closed. Idempotent.
func (r *Resolver) Close() error { return nil }

// ForTask reads what is not read yet of the task's delete files and returns
// the rows that they delete. The caller closes the Set.
func (r *Resolver) ForTask(_ context.Context, t *plan.Task) (*Set, error) {
	if len(t.Deletes) > 0 {
		return nil, errs.At(errs.Unsupported, "read", t.Deletes[0].Path, "delete files are not supported yet")
	}
	return &Set{}, nil
}

// Set is the deletes of one task. It is used by one goroutine at a time.
type Set struct{}

// Empty reports whether no row is deleted.
func (s *Set) Empty() bool { return true }

// Fields are the key columns, by field id and in the type of the newest
// schema that has the id, that Apply may ask for.
func (s *Set) Fields() []iceberg.NestedField { return nil }

// Apply clears the deleted rows of a window from keep, whose bit 0 is the row
// at window.Start. column returns the values of a key column for every row of
// the window, kept or not: the leaf array, null where a parent struct is null;
// it is called only when rows are left that a key may delete, at most once per
// column, and keeps the ownership of the array.
func (s *Set) Apply(_ context.Context, _ batch.Range, _ func(fieldID int) (arrow.Array, error), _ *batch.Mask) error {
	return nil
}

// Close gives back what only this task needed. Idempotent.
func (s *Set) Close() {}
