package deletes

import (
	"context"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
)

// The columns of a position-delete file have ids reserved by the format.
const (
	filePathID = 2147483546
	posID      = 2147483545
)

var (
	filePathField = iceberg.NestedField{ID: filePathID, Name: "file_path", Type: iceberg.StringType{}}
	posField      = iceberg.NestedField{ID: posID, Name: "pos", Type: iceberg.Int64Type{}}
)

// positionNames binds the columns of files that carry no field ids.
func positionNames() (iceberg.NameMapping, error) {
	path, pos := filePathID, posID
	return iceberg.NameMapping{
		{FieldID: &path, Names: []string{filePathField.Name}},
		{FieldID: &pos, Names: []string{posField.Name}},
	}, nil
}

// positionIndex is the deleted positions of one delete file by data file path,
// as stored.
type positionIndex struct {
	charge *mem.Reservation
	byPath map[string]*positionSet
}

type positionSet struct {
	bitmap  *roaring64.Bitmap
	charged int64
}

// pathCost is about what a map entry and an empty bitmap take up.
const pathCost = 256

func (p *positionIndex) free() {
	p.byPath = nil
	if p.charge != nil {
		p.charge.Free()
	}
}

// onlyFor reports whether a position-delete file concerns a single data file,
// so that nobody else needs it: by its reference or, as older writers leave it,
// by equal bounds of file_path.
func onlyFor(f *plan.File, dataPath string) bool {
	if f.ReferencedDataFile != nil {
		return *f.ReferencedDataFile == dataPath
	}
	if f.Metrics == nil {
		return false
	}
	lower, upper := f.Metrics.LowerBounds[filePathID], f.Metrics.UpperBounds[filePathID]
	return string(lower) == dataPath && string(upper) == dataPath
}

// readPositions reads a position-delete file for one data file.
func (r *Resolver) readPositions(ctx context.Context, f *plan.File, dataPath string) (positionIndex, error) {
	b := &positionBuilder{only: dataPath}
	err := r.buildPositions(ctx, f, r.cfg.Pool, b)
	return b.index, err
}

// readSharedPositions reads a position-delete file for all data files that it
// names.
func (r *Resolver) readSharedPositions(ctx context.Context, f *sharedFile) (err error) {
	b := &positionBuilder{}
	pool := r.cfg.Pool
	if r.cfg.spills() {
		memory, err := r.sharedPositionMemory()
		if err != nil {
			return errs.Wrap(err, "read", f.file.Path)
		}
		pool = memory.pool
		b.always = r.cfg.AlwaysSpill
		b.spill = func(path string, positions *roaring64.Bitmap) error {
			f.spilled = true
			return r.spillPositions(ctx, f.number, path, positions)
		}
	}
	err = r.buildPositions(ctx, f.file, pool, b)
	f.positions = b.index
	return err
}

// buildPositions reads a position-delete file into a builder, whose index is
// empty after an error.
func (r *Resolver) buildPositions(ctx context.Context, f *plan.File, pool *mem.Pool, b *positionBuilder) (err error) {
	b.index = positionIndex{charge: pool.Reserve("deleted positions"), byPath: map[string]*positionSet{}}
	defer func() {
		if err != nil {
			b.index.free()
		}
	}()
	source := rowSource{file: f, nameMapping: positionNames}
	if f.ReferencedDataFile != nil {
		// All rows are for the file that the manifest names: no need to read paths.
		b.fixed = *f.ReferencedDataFile
		source.fields = []iceberg.NestedField{posField}
	} else {
		source.fields = []iceberg.NestedField{posField, filePathField}
	}
	if err := r.readRows(ctx, source, func(leaves []arrow.Array) error { return errs.Wrap(b.add(leaves), "read", f.Path) }); err != nil {
		return err
	}
	b.pack()
	return nil
}

// positionBuilder sorts rows to the bitmaps of their data files. Rows mostly
// come sorted, so it works on runs of rows with one path.
type positionBuilder struct {
	index positionIndex
	only  string // collect for this path alone, unless empty
	fixed string // the path of all rows, unless empty
	// spill writes positions that do not fit in memory; nil: they must fit.
	// With always, none are kept in memory.
	spill  func(path string, positions *roaring64.Bitmap) error
	always bool

	run     []uint64
	touched map[string]*positionSet // by the batch at hand
}

// add takes a batch of positions and, unless fixed, their paths.
func (b *positionBuilder) add(leaves []arrow.Array) error {
	positions, ok := leaves[0].(*array.Int64)
	if !ok {
		return errs.New(errs.Internal, "positions are of Arrow type %s", leaves[0].DataType())
	}
	if positions.NullN() > 0 {
		return errs.New(errs.Corrupt, "the position-delete file has a null position")
	}
	values := positions.Int64Values()
	b.touched = map[string]*positionSet{}
	if b.fixed != "" {
		if err := b.addRun(b.fixed, values); err != nil {
			return err
		}
		return b.account()
	}
	if leaves[1].NullN() > 0 {
		return errs.New(errs.Corrupt, "the position-delete file has a null file_path")
	}
	paths, ok := leaves[1].(array.StringLike)
	if !ok {
		return errs.New(errs.Internal, "file paths are of Arrow type %s", leaves[1].DataType())
	}
	for start := 0; start < len(values); {
		path := paths.Value(start)
		end := start + 1
		for end < len(values) && paths.Value(end) == path {
			end++
		}
		if b.only == "" || b.only == path {
			if err := b.addRun(path, values[start:end]); err != nil {
				return err
			}
		}
		start = end
	}
	return b.account()
}

// addRun adds positions of one data file.
func (b *positionBuilder) addRun(path string, values []int64) error {
	b.run = b.run[:0]
	for _, v := range values {
		if v < 0 {
			return errs.New(errs.Corrupt, "the position-delete file has the position %d", v)
		}
		b.run = append(b.run, uint64(v))
	}
	if len(b.run) == 0 {
		return nil
	}
	set, err := b.setOf(path)
	if err != nil {
		if b.spill == nil || errs.CodeOf(err) != errs.MemoryLimit {
			return err
		}
		if err := b.spillAll(); err != nil {
			return err
		}
	}
	if set == nil {
		return b.spill(path, roaring64.BitmapOf(b.run...))
	}
	b.touched[path] = set
	set.bitmap.AddMany(b.run)
	return nil
}

// setOf finds or makes the bitmap of a path; it is nil when none are kept.
func (b *positionBuilder) setOf(path string) (*positionSet, error) {
	if set := b.index.byPath[path]; set != nil || b.always {
		return set, nil
	}
	cost := pathCost + int64(len(path))
	if err := b.index.charge.TryGrow(cost); err != nil {
		return nil, err
	}
	set := &positionSet{bitmap: roaring64.New()}
	b.index.byPath[strings.Clone(path)] = set // path lies in a buffer that is about to go
	return set, nil
}

// account charges the growth of the bitmaps that a batch touched.
func (b *positionBuilder) account() error {
	for _, set := range b.touched {
		err := set.account(b.index.charge)
		if err != nil && b.spill != nil && errs.CodeOf(err) == errs.MemoryLimit {
			return b.spillAll()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spillAll writes every bitmap and forgets it.
func (b *positionBuilder) spillAll() error {
	for path, set := range b.index.byPath {
		if !set.bitmap.IsEmpty() {
			if err := b.spill(path, set.bitmap); err != nil {
				return err
			}
		}
	}
	clear(b.index.byPath)
	clear(b.touched)
	b.index.charge.Shrink(b.index.charge.Size())
	return nil
}

// pack compresses the bitmaps and gives back what they no longer need.
func (b *positionBuilder) pack() {
	for _, set := range b.index.byPath {
		set.bitmap.RunOptimize()
		if size := 2 * int64(set.bitmap.GetSizeInBytes()); size < set.charged {
			b.index.charge.Shrink(set.charged - size)
			set.charged = size
		}
	}
}

// account charges what a bitmap grew.
func (s *positionSet) account(charge *mem.Reservation) error {
	// Containers grow by doubling: up to half of what they hold is unused.
	size := 2 * int64(s.bitmap.GetSizeInBytes())
	if size > s.charged {
		if err := charge.TryGrow(size - s.charged); err != nil {
			return err
		}
		s.charged = size
	}
	return nil
}

// cursor clears deleted positions window by window. Windows usually come in
// ascending order; it starts over when one does not.
type cursor struct {
	bitmap *roaring64.Bitmap
	it     roaring64.ManyIntIterable64
	buffer []uint64 // fetched and not yet passed
	space  [512]uint64
	passed uint64 // every position below is behind the cursor
}

func (c *cursor) clear(window batch.Range, keep *batch.Mask) {
	start, end := uint64(window.Start), uint64(window.End)
	if c.it == nil || start < c.passed {
		c.it, c.buffer = c.bitmap.ManyIterator(), nil
	}
	c.passed = end
	for {
		for i, position := range c.buffer {
			if position >= end {
				c.buffer = c.buffer[i:]
				return
			}
			if position >= start {
				keep.Clear(int(position - start))
			}
		}
		n := c.it.NextMany(c.space[:])
		c.buffer = c.space[:n]
		if n == 0 {
			return
		}
	}
}
