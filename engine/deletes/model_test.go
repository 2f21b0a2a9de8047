package deletes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/spill"
	"github.com/icebergexec/icebergexec/spill/vfs"
)

// A random table as a model: rows and keys as JSON texts by field id, and the
// rules of the format applied row by row, with no index and no batches.
type modelTable struct {
	data    []*modelFile
	deletes []*modelFile
}

type modelFile struct {
	file *plan.File
	rows []map[int]string // by field id; "null" is null
	// of position deletes and deletion vectors
	positions map[string]map[int]bool
}

var modelKeys = [][]int{{1}, {2}, {1, 2}, {3}, {2, 3}}

func randomRow(r *rand.Rand, domain int) map[int]string {
	row := map[int]string{1: fmt.Sprint(r.IntN(domain)), 2: fmt.Sprintf("%q", strings.Repeat("k", r.IntN(3))+fmt.Sprint(r.IntN(domain/2+1))), 3: fmt.Sprintf("%d.5", r.IntN(domain))}
	for id := range row {
		if r.IntN(8) == 0 {
			row[id] = "null"
		}
	}
	return row
}

func randomScope(r *rand.Rand, f *plan.File) {
	if r.IntN(3) > 0 {
		f.SpecID = 1
		f.Partition = []iceberg.Literal{nil}
		if p := r.IntN(3); p > 0 {
			f.Partition[0] = iceberg.StringLiteral(fmt.Sprint("p", p))
		}
	}
}

// randomTable draws a table. domain is how many values a column has.
func randomTable(r *rand.Rand, b *bench, rows, domain int) *modelTable {
	m := &modelTable{}
	for i := range 1 + r.IntN(6) {
		f := &modelFile{file: dataFile(1 + r.Int64N(6))}
		f.file.Path = fmt.Sprint("data", i)
		randomScope(r, f.file)
		for range r.IntN(rows) {
			f.rows = append(f.rows, randomRow(r, domain))
		}
		f.file.RecordCount = int64(len(f.rows))
		m.data = append(m.data, f)
	}
	for i := range r.IntN(10) {
		path := fmt.Sprint("delete", i)
		sequence := 1 + r.Int64N(7)
		switch r.IntN(4) {
		case 0:
			f := &modelFile{file: positionDeletes(path, sequence), positions: map[string]map[int]bool{}}
			var rows []string
			for range r.IntN(60) {
				data := m.data[r.IntN(len(m.data))]
				pos := r.IntN(len(data.rows) + 3)
				if f.positions[data.file.Path] == nil {
					f.positions[data.file.Path] = map[int]bool{}
				}
				f.positions[data.file.Path][pos] = true
				rows = append(rows, fmt.Sprintf(`{"file_path":%q,"pos":%d}`, data.file.Path, pos))
			}
			f.file.RecordCount = int64(len(rows))
			b.write(path, "["+strings.Join(rows, ",")+"]", column(filePathID, "file_path", str), column(posID, "pos", i64))
			m.deletes = append(m.deletes, f)
		case 1:
			data := m.data[r.IntN(len(m.data))]
			if m.vectorOf(data) != nil {
				continue
			}
			f := &modelFile{positions: map[string]map[int]bool{data.file.Path: {}}}
			bitmap := roaring64.New()
			for range r.IntN(60) {
				pos := r.IntN(len(data.rows) + 3)
				f.positions[data.file.Path][pos] = true
				bitmap.Add(uint64(pos))
			}
			blob := blobOf(b.t, bitmap)
			b.blobs[path] = blob
			f.file = vectorFile(path, 0, int64(len(blob)), int64(bitmap.GetCardinality()))
			f.file.ReferencedDataFile = &data.file.Path
			f.file.DataSequence = data.file.DataSequence
			m.deletes = append(m.deletes, f)
		default:
			ids := modelKeys[r.IntN(len(modelKeys))]
			f := &modelFile{file: equality(path, sequence, ids...)}
			randomScope(r, f.file)
			var text bytes.Buffer
			text.WriteByte('[')
			for k := range r.IntN(rows) {
				row := randomRow(r, domain)
				f.rows = append(f.rows, row)
				if k > 0 {
					text.WriteByte(',')
				}
				fmt.Fprintf(&text, `{"a":%s,"b":%s,"c":%s}`, row[1], row[2], row[3])
			}
			text.WriteByte(']')
			f.file.RecordCount = int64(len(f.rows))
			b.write(path, text.String(), column(1, "a", i64), column(2, "b", str), column(3, "c", arrow.PrimitiveTypes.Float64))
			m.deletes = append(m.deletes, f)
		}
	}
	return m
}

func (m *modelTable) vectorOf(data *modelFile) *modelFile {
	for _, d := range m.deletes {
		if d.file.IsDV() && *d.file.ReferencedDataFile == data.file.Path {
			return d
		}
	}
	return nil
}

func sameScope(deletes, data *plan.File) bool {
	return deletes.SpecID == 0 || deletes.SpecID == data.SpecID && fmt.Sprint(deletes.Partition) == fmt.Sprint(data.Partition)
}

// tasks are what a plan without any pruning gives.
func (m *modelTable) tasks() (tasks []*plan.Task) {
	for _, data := range m.data {
		t := &plan.Task{Data: data.file}
		for _, d := range m.deletes {
			switch {
			case d.file.IsDV():
				if *d.file.ReferencedDataFile != data.file.Path {
					continue
				}
			case d.file.Content == plan.PositionDeletes:
				if data.file.DataSequence > d.file.DataSequence {
					continue
				}
			case data.file.DataSequence >= d.file.DataSequence || !sameScope(d.file, data.file):
				continue
			}
			t.Deletes = append(t.Deletes, d.file)
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// kept is which rows of a data file the format's rules leave.
func (m *modelTable) kept(data *modelFile) []int {
	kept := []int{}
	vector := m.vectorOf(data)
	for i, row := range data.rows {
		deleted := false
		for _, d := range m.deletes {
			switch {
			case d.positions != nil && (vector == nil && data.file.DataSequence <= d.file.DataSequence || d == vector):
				deleted = deleted || d.positions[data.file.Path][i]
			case d.positions == nil && data.file.DataSequence < d.file.DataSequence && sameScope(d.file, data.file):
				for _, key := range d.rows {
					same := true
					for _, id := range d.file.EqualityIDs {
						same = same && key[id] == row[id]
					}
					deleted = deleted || same
				}
			}
		}
		if !deleted {
			kept = append(kept, i)
		}
	}
	return kept
}

// columns are the key columns of a data file.
func (f *modelFile) columns(b *bench) map[int]arrow.Array {
	types := map[int]arrow.DataType{1: i64, 2: str, 3: arrow.PrimitiveTypes.Float64}
	columns := map[int]arrow.Array{}
	for id, t := range types {
		var values []string
		for _, row := range f.rows {
			values = append(values, row[id])
		}
		columns[id] = b.values(t, "["+strings.Join(values, ",")+"]")
	}
	return columns
}

// spilling makes the configuration of a resolver that can spill.
func (b *bench) spilling(dir *spill.Dir, columns map[string]map[int]arrow.Array) Config {
	return Config{
		FS: blobFS{b.blobs}, Pool: b.pool, Alloc: b.alloc, Table: b, Open: b.open, Workers: b.workers,
		Spill: func(context.Context) (*spill.Dir, error) { return dir, nil },
		ReadKeys: func(ctx context.Context, t *plan.Task, fields []iceberg.NestedField, use func(batch.Range, func(int) (arrow.Array, error)) error) error {
			n := 0
			for _, c := range columns[t.Data.Path] {
				n = c.Len()
			}
			for start := 0; start < n; start += b.window {
				end := min(start+b.window, n)
				var slices []arrow.Array
				err := use(batch.Range{Start: int64(start), End: int64(end)}, func(id int) (arrow.Array, error) {
					for _, f := range fields {
						if f.ID == id {
							slices = append(slices, array.NewSlice(columns[t.Data.Path][id], int64(start), int64(end)))
							return slices[len(slices)-1], nil
						}
					}
					return nil, fmt.Errorf("column %d was not asked for", id)
				})
				releaseAll(slices)
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func openSpill(t testing.TB, fs vfs.FS, disk *spill.DiskBudget) *spill.Dir {
	t.Helper()
	dir, _, err := spill.OpenDir(context.Background(), fs, t.TempDir(), disk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
		if disk.Used() != 0 {
			t.Errorf("%d bytes on disk after Close", disk.Used())
		}
	})
	return dir
}

// Every way of resolving gives the rows that the model keeps: in memory, on
// disk, on disk with tasks looked ahead at, one task after the other and many
// at once.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			b := newBench(t, field(1, "a", long), field(2, "b", text), field(3, "c", iceberg.PrimitiveTypes.Float64))
			spec := iceberg.NewPartitionSpecID(1, iceberg.PartitionField{SourceIDs: []int{9}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}})
			b.specs[1] = &spec
			b.window, b.workers = 1+r.IntN(300), 1+r.IntN(3)
			m := randomTable(r, b, 200, 5+r.IntN(100))
			columns := map[string]map[int]arrow.Array{}
			for _, data := range m.data {
				columns[data.file.Path] = data.columns(b)
			}
			disk := spill.NewDiskBudget(0)
			dir := openSpill(t, vfs.OS(), disk)
			for _, way := range []string{"memory", "disk", "disk ahead", "disk at once"} {
				config := b.spilling(dir, columns)
				config.AlwaysSpill = way != "memory"
				tasks := m.tasks()
				if way == "disk ahead" || way == "disk at once" {
					next := 0
					config.NextTask = func(context.Context) (*plan.Task, error) {
						if next == len(tasks) {
							return nil, io.EOF
						}
						next++
						return tasks[next-1], nil
					}
				}
				check(t, way, b, config, m, tasks, columns)
			}
			for path, f := range b.files {
				if n := f.opened.Load(); n > 4 {
					t.Errorf("%s was opened %d times by 4 resolvers", path, n)
				}
			}
		})
	}
}

func check(t *testing.T, way string, b *bench, config Config, m *modelTable, tasks []*plan.Task, columns map[string]map[int]arrow.Array) {
	t.Helper()
	resolver := NewResolver(config)
	defer func() {
		if err := resolver.Close(); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}()
	var group sync.WaitGroup
	defer group.Wait()
	for i, data := range m.data {
		task := tasks[i]
		if config.NextTask != nil {
			var err error
			if task, err = resolver.NextTask(context.Background()); err != nil || task != tasks[i] {
				t.Fatalf("%s: task %d is another, error %v", way, i, err)
			}
		}
		if way == "disk ahead" && i%3 == 1 {
			continue // as when its statistics rule all of its rows out
		}
		one := func() {
			kept, err := b.kept(resolver, task, len(data.rows), columns[data.file.Path])
			if want := m.kept(data); err != nil || fmt.Sprint(kept) != fmt.Sprint(want) {
				t.Errorf("%s: of %s @%d, rows\n%v are kept, expected\n%v (error %v)", way, data.file.Path, data.file.DataSequence, kept, want, err)
			}
		}
		if way == "disk at once" {
			group.Go(one)
		} else {
			one()
		}
	}
	if config.NextTask != nil {
		if _, err := resolver.NextTask(context.Background()); err != io.EOF {
			t.Errorf("%s: after the last task: %v", way, err)
		}
	}
}

// Far more keys than memory: part of them stays in memory, the others are
// resolved on disk in several levels and in pieces.
func TestOverBudget(t *testing.T) {
	const nKeys, nRows, nFiles = 60_000, 4000, 5
	for _, c := range []struct {
		name    string
		limit   int64
		noSplit bool
		pad     int // of each key
	}{{"one level", 4 << 20, false, 1}, {"splits", 3 << 20, false, 150}, {"pieces", 3 << 20, true, 150}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, field(1, "a", long), field(2, "b", text))
			b.pool = mem.NewPool("scan", c.limit)
			b.window = 4096
			pad := strings.Repeat("-", c.pad)
			var deletes []*plan.File
			for f := range 3 {
				var rows strings.Builder
				for i := f; i < nKeys; i += 3 {
					fmt.Fprintf(&rows, `,{"a":%d,"b":"key number%s%d"}`, 2*i, pad, 2*i)
				}
				path := fmt.Sprint("E", f)
				b.write(path, "["+rows.String()[1:]+"]", column(1, "a", i64), column(2, "b", str))
				e := equality(path, int64(10+f), 1, 2)
				e.RecordCount = nKeys / 3
				deletes = append(deletes, e)
			}
			columns := map[string]map[int]arrow.Array{}
			var tasks []*plan.Task
			r := rand.New(rand.NewPCG(1, 1))
			numbers := map[string][]int{}
			for f := range nFiles {
				data := dataFile(int64(8 + f))
				data.Path, data.RecordCount = fmt.Sprint("data", f), nRows
				var ids, texts strings.Builder
				for range nRows {
					n := r.IntN(2*nKeys + 1000)
					numbers[data.Path] = append(numbers[data.Path], n)
					fmt.Fprintf(&ids, ",%d", n)
					fmt.Fprintf(&texts, `,"key number%s%d"`, pad, n)
				}
				columns[data.Path] = map[int]arrow.Array{1: b.values(i64, "["+ids.String()[1:]+"]"), 2: b.values(str, "["+texts.String()[1:]+"]")}
				task := &plan.Task{Data: data}
				for _, d := range deletes {
					if d.DataSequence > data.DataSequence {
						task.Deletes = append(task.Deletes, d)
					}
				}
				tasks = append(tasks, task)
			}
			disk := spill.NewDiskBudget(0)
			config := b.spilling(openSpill(t, vfs.OS(), disk), columns)
			config.noSplit = c.noSplit
			next := 0
			config.NextTask = func(context.Context) (*plan.Task, error) {
				if next == len(tasks) {
					return nil, io.EOF
				}
				next++
				return tasks[next-1], nil
			}
			resolver := NewResolver(config)
			defer resolver.Close()
			for i := range tasks {
				task, err := resolver.NextTask(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				want := []int{}
				for row, n := range numbers[task.Data.Path] {
					if n%2 == 1 || n >= 2*nKeys || int64(10+n/2%3) <= task.Data.DataSequence {
						want = append(want, row)
					}
				}
				kept, err := b.kept(resolver, task, nRows, columns[task.Data.Path])
				if err != nil || fmt.Sprint(kept) != fmt.Sprint(want) {
					t.Errorf("file %d: %d rows are kept, expected %d (error %v)", i, len(kept), len(want), err)
				}
			}
			if disk.Peak() == 0 {
				t.Error("nothing was spilled")
			}
			if peak := b.pool.Peak(); peak > c.limit {
				t.Errorf("%d bytes were charged of %d", peak, c.limit)
			}
			for path, f := range b.files {
				if n := f.opened.Load(); n != 1 {
					t.Errorf("%s was opened %d times", path, n)
				}
			}
		})
	}
}

// Far more positions than memory, in files that cover many data files, with
// paths in no order.
func TestPositionsOverBudget(t *testing.T) {
	const nData, nDeletes, perFile = 400, 6, 5000
	b := newBench(t)
	b.pool = mem.NewPool("scan", 1<<20)
	b.window = 1000
	r := rand.New(rand.NewPCG(2, 2))
	deleted := map[string]map[int]int{} // by path and position: the youngest delete
	var deletes []*plan.File
	for i := range nDeletes {
		var rows strings.Builder
		for range perFile {
			path, pos := fmt.Sprintf("a rather long path of a data file/%d", r.IntN(nData)), r.IntN(200)*1000
			if deleted[path] == nil {
				deleted[path] = map[int]int{}
			}
			deleted[path][pos] = i + 2
			fmt.Fprintf(&rows, `,{"file_path":%q,"pos":%d}`, path, pos)
		}
		path := fmt.Sprint("P", i)
		b.write(path, "["+rows.String()[1:]+"]", column(filePathID, "file_path", str), column(posID, "pos", i64))
		deletes = append(deletes, positionDeletes(path, int64(i+2)))
	}
	for _, ahead := range []bool{false, true} {
		disk := spill.NewDiskBudget(0)
		config := b.spilling(openSpill(t, vfs.OS(), disk), nil)
		var tasks []*plan.Task
		for i := range nData {
			data := dataFile(int64(1 + i%8))
			data.Path, data.RecordCount = fmt.Sprintf("a rather long path of a data file/%d", i), 200_000
			task := &plan.Task{Data: data}
			for _, d := range deletes {
				if d.DataSequence >= data.DataSequence {
					task.Deletes = append(task.Deletes, d)
				}
			}
			tasks = append(tasks, task)
		}
		next := 0
		if ahead {
			config.NextTask = func(context.Context) (*plan.Task, error) {
				if next == len(tasks) {
					return nil, io.EOF
				}
				next++
				return tasks[next-1], nil
			}
		}
		resolver := NewResolver(config)
		for i, task := range tasks {
			if ahead {
				var err error
				if task, err = resolver.NextTask(context.Background()); err != nil || task != tasks[i] {
					t.Fatal(err)
				}
			}
			set, err := resolver.ForTask(context.Background(), task)
			if err != nil {
				t.Fatal(err)
			}
			for pos := 0; pos < 200_000; pos += 1000 {
				keep := batch.NewMask(1, true)
				if err := set.Apply(context.Background(), batch.Range{Start: int64(pos), End: int64(pos + 1)}, nil, keep); err != nil {
					t.Fatal(err)
				}
				if want := int64(deleted[task.Data.Path][pos]) >= task.Data.DataSequence; want == keep.Get(0) {
					t.Fatalf("ahead %v, file %d: position %d is kept: %v", ahead, i, pos, keep.Get(0))
				}
			}
			set.Close()
		}
		if err := resolver.Close(); err != nil {
			t.Error(err)
		}
		if disk.Peak() == 0 {
			t.Error("nothing was spilled")
		}
		if peak := b.pool.Peak(); peak > 1<<20 {
			t.Errorf("%d bytes were charged", peak)
		}
	}
	for path, f := range b.files {
		if n := f.opened.Load(); n != 2 {
			t.Errorf("%s was opened %d times by 2 resolvers", path, n)
		}
	}
}

// A full disk and a failing one are errors that leave nothing behind, and the
// next scan in the same directory works.
func TestSpillFaults(t *testing.T) {
	b := newBench(t, field(1, "a", long))
	b.pool = mem.NewPool("scan", 4<<20) // so that buffers are small
	b.window, b.workers = 2000, 1
	var rows strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&rows, `,{"a":%d}`, i)
	}
	b.write("E", "["+rows.String()[1:]+"]", column(1, "a", i64))
	columns := map[string]map[int]arrow.Array{"F": {1: b.values(i64, `[1,50000,2,50001,null]`)}}
	data := dataFile(1)
	data.RecordCount = 5
	task := &plan.Task{Data: data, Deletes: []*plan.File{equality("E", 2, 1)}}
	run := func(dir *spill.Dir) (string, error) {
		config := b.spilling(dir, columns)
		config.AlwaysSpill = true
		r := NewResolver(config)
		kept, err := b.kept(r, task, 5, columns["F"])
		if closeErr := r.Close(); err == nil {
			err = closeErr
		}
		if used := b.pool.Used(); used != 0 {
			t.Errorf("%d bytes are still charged", used)
		}
		return fmt.Sprint(kept), err
	}
	small := spill.NewDiskBudget(10_000)
	if _, err := run(openSpill(t, vfs.OS(), small)); errs.CodeOf(err) != errs.SpillFull || !strings.Contains(err.Error(), "spill_limit") {
		t.Errorf("over the limit: %v", err)
	}
	for k := int64(0); ; k++ {
		fs := &vfs.Faulty{Inner: vfs.OS(), Err: os.ErrPermission}
		parent, disk := t.TempDir(), spill.NewDiskBudget(0)
		dir, _, err := spill.OpenDir(context.Background(), fs, parent, disk)
		if err != nil {
			t.Fatal(err)
		}
		fs.FailAfter(k)
		kept, err := run(dir)
		failed := fs.Failed()
		if failed != (err != nil) || err == nil && kept != "[1 3 4]" {
			t.Errorf("operation %d: rows %s, fault %v, error %v", k, kept, failed, err)
		}
		fs.FailAfter(-1)
		if kept, err := run(dir); err != nil || kept != "[1 3 4]" {
			t.Errorf("after the fault in operation %d: rows %s, error %v", k, kept, err)
		}
		if err := dir.Close(); err != nil || disk.Used() != 0 {
			t.Errorf("%d bytes on disk, error %v", disk.Used(), err)
		}
		if !failed {
			break
		}
	}
}
