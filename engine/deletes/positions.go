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

// readPositions reads a position-delete file, for one data file or, with an
// empty dataPath, for all that it names.
func (r *Resolver) readPositions(ctx context.Context, f *plan.File, dataPath string) (_ positionIndex, err error) {
	index := positionIndex{charge: r.cfg.Pool.Reserve("deleted positions"), byPath: map[string]*positionSet{}}
	defer func() {
		if err != nil {
			index.free()
		}
	}()
	b := &positionBuilder{index: &index, only: dataPath}
	source := rowSource{file: f, nameMapping: positionNames}
	if f.ReferencedDataFile != nil {
		// All rows are for the file that the manifest names: no need to read paths.
		b.fixed = *f.ReferencedDataFile
		source.fields = []iceberg.NestedField{posField}
	} else {
		source.fields = []iceberg.NestedField{posField, filePathField}
	}
	if err := r.readRows(ctx, source, func(leaves []arrow.Array) error { return errs.Wrap(b.add(leaves), "read", f.Path) }); err != nil {
		return index, err
	}
	return index, b.finish()
}

// positionBuilder sorts rows to the bitmaps of their data files. Rows mostly
// come sorted, so it works on runs of rows with one path.
type positionBuilder struct {
	index *positionIndex
	only  string // collect for this path alone, unless empty
	fixed string // the path of all rows, unless empty
	run   []uint64
}

func (b *positionBuilder) add(leaves []arrow.Array) error {
	positions, ok := leaves[0].(*array.Int64)
	if !ok {
		return errs.New(errs.Internal, "positions are of Arrow type %s", leaves[0].DataType())
	}
	if positions.NullN() > 0 {
		return errs.New(errs.Corrupt, "the position-delete file has a null position")
	}
	values := positions.Int64Values()
	touched := map[string]*positionSet{}
	if b.fixed != "" {
		if err := b.addRun(b.fixed, values, touched); err != nil {
			return err
		}
		return b.account(touched)
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
			if err := b.addRun(path, values[start:end], touched); err != nil {
				return err
			}
		}
		start = end
	}
	return b.account(touched)
}

func (b *positionBuilder) addRun(path string, values []int64, touched map[string]*positionSet) error {
	set := b.index.byPath[path]
	if set == nil {
		cost := pathCost + int64(len(path))
		if err := b.index.charge.TryGrow(cost); err != nil {
			return err
		}
		path = strings.Clone(path) // it lies in a buffer that is about to go
		set = &positionSet{bitmap: roaring64.New()}
		b.index.byPath[path] = set
	}
	touched[path] = set
	b.run = b.run[:0]
	for _, v := range values {
		if v < 0 {
			return errs.New(errs.Corrupt, "the position-delete file has the position %d", v)
		}
		b.run = append(b.run, uint64(v))
	}
	set.bitmap.AddMany(b.run)
	return nil
}

// account charges the growth of the bitmaps that a batch touched.
func (b *positionBuilder) account(touched map[string]*positionSet) error {
	for _, set := range touched {
		if err := set.account(b.index.charge); err != nil {
			return err
		}
	}
	return nil
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

// finish packs the bitmaps and gives back what they no longer need.
func (b *positionBuilder) finish() error {
	for _, set := range b.index.byPath {
		set.bitmap.RunOptimize()
		if size := 2 * int64(set.bitmap.GetSizeInBytes()); size < set.charged {
			b.index.charge.Shrink(set.charged - size)
			set.charged = size
		}
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
