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
	"github.com/icebergexec/icebergexec/spill"
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
	// Workers is how many tasks the scan works on at a time, and how many shared
	// delete files are read at a time; at least 1.
	Workers int

	// Spill opens the directory for what does not fit in memory; it may be
	// called again and gives the same one. Without it and ReadKeys, delete
	// files that need more memory than there is fail with MemoryLimit.
	Spill func(ctx context.Context) (*spill.Dir, error)
	// ReadKeys reads columns of a task's data file by field id, window by
	// window over all rows: leaf arrays as for Set.Apply, valid until use returns.
	ReadKeys func(ctx context.Context, t *plan.Task, fields []iceberg.NestedField,
		use func(window batch.Range, column func(fieldID int) (arrow.Array, error)) error) error
	// NextTask yields the tasks of the scan in their order, then io.EOF. It is
	// called by one goroutine at a time. May be nil when Resolver.NextTask is
	// not used: then spilled keys are read anew for every data file.
	NextTask func(ctx context.Context) (*plan.Task, error)
	// AlwaysSpill sends all keys and shared positions to disk. For tests.
	AlwaysSpill bool
	// noSplit works off partitions that are too large in pieces at once. For tests.
	noSplit bool
}

func (c *Config) spills() bool { return c.Spill != nil && c.ReadKeys != nil }

// Resolver reads the delete files of one scan. It is safe for concurrent use.
type Resolver struct {
	cfg     Config
	readers int // files read at a time in the background
	group   *task.Group
	books   *mem.Reservation // what is known of the delete files and tasks themselves
	tasks   taskQueue

	mu       sync.Mutex
	files    map[string]*sharedFile // by path
	queue    []*sharedFile          // not yet taken by a worker
	active   int                    // workers, at most readers
	memory   *keyMemory             // nil before the first equality-delete file
	tables   map[string]*keyTable   // by scope and equality ids
	expected int64                  // keys that manifests promise
	own      map[*plan.Task]*ownDeletes
	latest   *ownDeletes
	resolved map[*plan.Task]positionIndex // by waves, for tasks that are to come
	closed   bool

	spillMu   sync.Mutex // guards the making of what follows
	overflow  *overflow  // nil before the first key that spills
	positions *positionMemory

	waves    chan struct{} // holds one element while a wave runs
	waveRows int64         // how many rows a wave may have; guarded by waves
}

// bytesPerReader is how much of the memory limit there must be for each file
// that is read in the background.
const bytesPerReader = 32 << 20 // 32 MiB

// fileCost is about what a sharedFile takes up beside its path.
const fileCost = 256

// NewResolver makes a resolver that has read nothing yet. The caller closes it.
func NewResolver(cfg Config) *Resolver {
	r := &Resolver{
		cfg: cfg, group: task.NewGroup(context.Background()), books: cfg.Pool.Reserve("list of delete files"),
		files: map[string]*sharedFile{}, tables: map[string]*keyTable{}, own: map[*plan.Task]*ownDeletes{},
		waves: make(chan struct{}, 1), resolved: map[*plan.Task]positionIndex{},
	}
	// Whoever reads a file needs pages and dictionaries of its columns.
	r.readers = int(max(1, min(int64(cfg.Workers), cfg.Pool.Limit()/bytesPerReader)))
	r.waveRows = cfg.Pool.Limit() / bytesPerWaveRow
	r.tasks = taskQueue{books: r.books, next: cfg.NextTask, keep: 2*cfg.Workers + 2, limit: cfg.Pool.Limit() / 16}
	return r
}

// Close stops what is being read and frees what was read, after every Set is
// closed and every ForTask has returned. Idempotent.
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
	for _, index := range r.resolved {
		index.free()
	}
	for _, t := range r.tables {
		t.free()
	}
	var err error
	if r.overflow != nil {
		err = r.overflow.close()
	}
	r.memory.close()
	err = firstError(err, r.positions.close())
	r.files, r.tables, r.resolved, r.overflow, r.memory, r.positions = nil, nil, nil, nil, nil, nil
	r.books.Free()
	return err
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
	c, err := classify(t)
	if err != nil {
		return err
	}
	files, err := r.read(ctx, c.shared, c.equality)
	if err != nil {
		return err
	}
	for _, f := range files {
		c.spilled = c.spilled || f.spilled
		s.addPositions(f.positions, t.Data.Path)
		if f.table != nil {
			s.addTable(f.table)
		}
	}
	if s.own, err = r.acquireOwn(ctx, t, c); err != nil {
		return err
	}
	r.tasks.settled(t)
	if s.own != nil {
		for _, index := range s.own.indexes {
			s.addPositions(index, t.Data.Path)
		}
	}
	return nil
}

// classified is a task's delete files by how they are read.
type classified struct {
	vector *plan.File   // may be nil
	own    []*plan.File // position-delete files of this data file alone
	shared []*plan.File // position-delete files of several data files

	equality []*plan.File
	spilled  bool // keys or positions of shared files are on disk; known after reading
}

func classify(t *plan.Task) (c classified, err error) {
	for _, f := range t.Deletes {
		switch {
		case f.IsDV():
			if c.vector != nil {
				return c, errs.At(errs.Corrupt, "read", t.Data.Path, "the data file has two deletion vectors, in %s and %s", c.vector.Path, f.Path)
			}
			c.vector = f
		case f.Content == plan.PositionDeletes && onlyFor(f, t.Data.Path):
			c.own = append(c.own, f)
		case f.Content == plan.PositionDeletes:
			c.shared = append(c.shared, f)
		case f.Content == plan.EqualityDeletes:
			c.equality = append(c.equality, f)
		default:
			return c, errs.At(errs.Internal, "read", f.Path, "a file of content %q is listed as delete file", f.Content)
		}
	}
	if c.vector != nil {
		c.own, c.shared = nil, nil // a deletion vector stands for all position deletes before it
	}
	return c, nil
}
