// Package deletes decides which rows of a data file are deleted.
//
//	task.Deletes
//	 ├── deletion vector ─────> bitmap of positions ─┐
//	 ├── position-delete file ─> bitmap per data file ┼─> Set.Apply(window): clears deleted rows
//	 └── equality-delete file ─> key table ───────────┘
//	                             one per (scope, equality ids):
//	                             key -> greatest data sequence number
//
// A Resolver lives as long as one scan. It reads each delete file once, when
// the first task needs it, and shares what it read among all tasks; deletion
// vectors and position-delete files of a single data file are freed with that
// data file's Set.
//
// A key table holds every delete file of one scope (all data files, or those of
// one partition of one spec) that any task has brought so far. That may be more
// than one task was given, and does no harm: all of them apply to the scope,
// and the sequence numbers decide row by row which delete is younger than the
// data. Sets of equality ids are never merged.
package deletes

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/task"
)

// Table is what delete resolution needs to know of a table's metadata.
type Table interface {
	// Field finds a column by id in the newest schema that has it, dropped
	// columns included.
	Field(id int) (iceberg.NestedField, bool)
	CurrentSchema() *iceberg.Schema
	SpecByID(id int) (*iceberg.PartitionSpec, bool)
	// NameMapping gives field ids to columns of files that carry none.
	NameMapping() (iceberg.NameMapping, error)
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
	// Open opens a position- or equality-delete file for reading.
	Open func(ctx context.Context, f *plan.File) (DeleteFile, error)
	// Workers is how many shared delete files are read at a time, at least 1.
	Workers int
}

// Resolver reads the delete files of one scan. It is safe for concurrent use.
type Resolver struct {
	cfg   Config
	group *task.Group
	books *mem.Reservation // what is known of the delete files themselves

	mu     sync.Mutex
	files  map[string]*sharedFile // by path
	queue  []*sharedFile          // not yet taken by a worker
	active int                    // workers
	tables map[string]*keyTable   // by scope and equality ids
	own    map[*plan.Task]*ownDeletes
	latest *ownDeletes
	closed bool
}

// fileCost is about what a sharedFile takes up beside its path.
const fileCost = 256

// NewResolver makes a resolver that has read nothing yet. The caller closes it.
func NewResolver(cfg Config) *Resolver {
	return &Resolver{
		cfg: cfg, group: task.NewGroup(context.Background()), books: cfg.Pool.Reserve("list of delete files"),
		files: map[string]*sharedFile{}, tables: map[string]*keyTable{}, own: map[*plan.Task]*ownDeletes{},
	}
}

// Close stops what is being read and frees what was read, after every Set is
// closed. Idempotent.
func (r *Resolver) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.group.Cancel()
	_ = r.group.Wait() // whoever waited for the file has got the error
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLatestLocked()
	for _, f := range r.files {
		f.positions.free()
	}
	for _, t := range r.tables {
		t.free()
	}
	r.files, r.tables = nil, nil
	r.books.Free()
	return nil
}

// ForTask reads what is not read yet of the task's delete files and returns
// the rows that they delete. The caller closes the Set.
func (r *Resolver) ForTask(ctx context.Context, t *plan.Task) (*Set, error) {
	s := &Set{resolver: r, sequence: t.Data.DataSequence}
	if err := r.fill(ctx, s, t); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (r *Resolver) fill(ctx context.Context, s *Set, t *plan.Task) error {
	var vector *plan.File
	var positions, equality []*plan.File
	for _, f := range t.Deletes {
		switch {
		case f.IsDV():
			if vector != nil {
				return errs.At(errs.Corrupt, "read", t.Data.Path, "the data file has two deletion vectors, in %s and %s", vector.Path, f.Path)
			}
			vector = f
		case f.Content == plan.PositionDeletes:
			positions = append(positions, f)
		case f.Content == plan.EqualityDeletes:
			equality = append(equality, f)
		default:
			return errs.At(errs.Internal, "read", f.Path, "a file of content %q is listed as delete file", f.Content)
		}
	}
	if vector != nil {
		positions = nil // a deletion vector stands for all position deletes before it
	}
	// The shared files first: they are read in the background meanwhile.
	var shared, own []*plan.File
	for _, f := range positions {
		if onlyFor(f, t.Data.Path) {
			own = append(own, f)
		} else {
			shared = append(shared, f)
		}
	}
	files, tables, err := r.start(shared, equality)
	if err != nil {
		return err
	}
	for table, n := range tables {
		table.expect(n)
	}
	if vector != nil || len(own) > 0 {
		o, err := r.acquireOwn(ctx, t, vector, own)
		if err != nil {
			return err
		}
		s.own = o
		for _, index := range o.indexes {
			s.addPositions(index, t.Data.Path)
		}
	}
	for _, f := range files {
		if err := f.wait(ctx); err != nil {
			return err
		}
		s.addPositions(f.positions, t.Data.Path)
	}
	for _, f := range files {
		if f.table != nil {
			s.addTable(f.table)
		}
	}
	return nil
}
