package deletes

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/plan"
)

func positionDeletes(path string, sequence int64) *plan.File {
	return &plan.File{Content: plan.PositionDeletes, Format: plan.FormatParquet, Path: path, DataSequence: sequence}
}

func TestPositionDeletes(t *testing.T) {
	path, pos := column(filePathID, "file_path", str), column(posID, "pos", i64)
	row := column(2147483544, "row", nil, column(1, "id", i64))
	for _, c := range []struct {
		name       string
		file       func(*plan.File)
		rows       string
		keptOf     int
		kept, fail string
	}{
		{"unsorted, repeated, out of range, other paths", nil,
			`[{"file_path":"F","pos":9},{"file_path":"G","pos":2},{"file_path":"F","pos":1},{"file_path":"F","pos":1},{"file_path":"F","pos":4000000000000},{"file_path":"F","pos":0}]`,
			5, "[2 3 4]", ""},
		{"paths are compared byte for byte", nil, `[{"file_path":"file:F","pos":0},{"file_path":"f","pos":1},{"file_path":"F ","pos":2}]`, 3, "[0 1 2]", ""},
		{"no rows", nil, `[]`, 2, "[0 1]", ""},
		{"all rows", nil, `[{"file_path":"F","pos":0},{"file_path":"F","pos":1}]`, 2, "[]", ""},
		{"the file by reference", func(f *plan.File) { f.ReferencedDataFile = pointer("F") }, `[{"file_path":"F","pos":1}]`, 3, "[0 2]", ""},
		{"the file by bounds", func(f *plan.File) {
			bounds := map[int][]byte{filePathID: []byte("F")}
			f.Metrics = &plan.Metrics{LowerBounds: bounds, UpperBounds: bounds}
		}, `[{"file_path":"F","pos":1},{"file_path":"FF","pos":2}]`, 3, "[0 2]", ""},
		{"a null position", nil, `[{"file_path":"F","pos":null}]`, 1, "", "read P: the position-delete file has a null position"},
		{"a negative position", nil, `[{"file_path":"F","pos":-1}]`, 1, "", "read P: the position-delete file has the position -1"},
		{"a null path", nil, `[{"file_path":null,"pos":1}]`, 1, "", "read P: the position-delete file has a null file_path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.write("P", c.rows, path, pos, row)
			f := positionDeletes("P", 2)
			if c.file != nil {
				c.file(f)
			}
			r := b.resolver()
			defer r.Close()
			kept, err := b.kept(r, &plan.Task{Data: dataFile(2), Deletes: []*plan.File{f}}, c.keptOf, nil)
			switch {
			case c.fail != "":
				if err == nil || err.Error() != c.fail || errs.CodeOf(err) != errs.Corrupt {
					t.Errorf("error is %v, expected %s", err, c.fail)
				}
			case err != nil || fmt.Sprint(kept) != c.kept:
				t.Errorf("rows %v are kept, expected %s (error %v)", kept, c.kept, err)
			}
		})
	}
	t.Run("no field ids", func(t *testing.T) {
		b := newBench(t)
		b.write("P", `[{"pos":1,"file_path":"F"}]`, column(0, "pos", i64), column(0, "file_path", str))
		r := b.resolver()
		defer r.Close()
		if kept, err := b.kept(r, &plan.Task{Data: dataFile(2), Deletes: []*plan.File{positionDeletes("P", 2)}}, 2, nil); fmt.Sprint(kept) != "[0]" || err != nil {
			t.Errorf("rows %v are kept (error %v)", kept, err)
		}
	})
	t.Run("no pos column", func(t *testing.T) {
		b := newBench(t)
		b.write("P", `[{"file_path":"F"}]`, path)
		r := b.resolver()
		defer r.Close()
		_, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(2), Deletes: []*plan.File{positionDeletes("P", 2)}})
		if errs.CodeOf(err) != errs.Corrupt || err.Error() != `read P: the delete file lacks column "pos" (field id 2147483545)` {
			t.Errorf("error is %v", err)
		}
	})
}

// A file that covers many data files is opened once, one for a single data
// file once for all of its parts, and only the latest one's positions stay.
func TestPositionFilesAreReadOnce(t *testing.T) {
	b := newBench(t)
	columns := column(filePathID, "file_path", str)
	pos := column(posID, "pos", i64)
	b.write("P", `[{"file_path":"F0","pos":0},{"file_path":"F1","pos":1},{"file_path":"F2","pos":2}]`, columns, pos)
	r := b.resolver()
	defer r.Close()
	shared := positionDeletes("P", 2)
	for i := range 3 {
		data := dataFile(1)
		data.Path = fmt.Sprint("F", i)
		own := positionDeletes(fmt.Sprint("own", i), 2)
		own.ReferencedDataFile = &data.Path
		b.write(own.Path, fmt.Sprintf(`[{"file_path":"F%d","pos":%d}]`, i, i+1), columns, pos)
		task := &plan.Task{Data: data, Deletes: []*plan.File{shared, own}}
		for range 4 { // parts, one after the other
			kept, err := b.kept(r, task, 4, nil)
			if err != nil || len(kept) != 2 || kept[0] == i || kept[1] == i+1 {
				t.Errorf("%s: rows %v are kept (error %v)", data.Path, kept, err)
			}
		}
		if len(r.own) != 1 {
			t.Errorf("the positions of %d data files are held", len(r.own))
		}
	}
	for path, f := range b.files {
		if n := f.opened.Load(); n != 1 {
			t.Errorf("%s was opened %d times", path, n)
		}
	}
}

// Windows and delete rows that never line up, each position of a large file
// deleted, and almost none.
func TestPositionsAcrossWindows(t *testing.T) {
	const n = 150_000
	all, edges := roaring64.New(), roaring64.New()
	for i := range uint64(n) {
		all.Add(i)
		if i%1000 == 0 || i%1000 == 999 {
			edges.Add(i)
		}
	}
	for _, c := range []struct {
		bitmap *roaring64.Bitmap
		kept   int
	}{{all, 0}, {edges, n - 300}, {roaring64.New(), n}} {
		for _, window := range []int64{1000, 7919, 64, 1 << 20} {
			cur, kept := cursor{bitmap: c.bitmap}, 0
			for start := int64(0); start < n; start += window {
				end := min(start+window, n)
				keep := batch.NewMask(int(end-start), true)
				cur.clear(batch.Range{Start: start, End: end}, keep)
				kept += keep.Count()
			}
			if kept != c.kept {
				t.Errorf("windows of %d: %d rows are kept, expected %d", window, kept, c.kept)
			}
		}
	}
}

// Windows may skip rows, as after pruning, and come in any order.
func TestPositionsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	bitmap := roaring64.New()
	for range 20_000 {
		bitmap.Add(uint64(r.IntN(100_000)))
	}
	cur := cursor{bitmap: bitmap}
	for range 300 {
		start := r.Int64N(100_000)
		window := batch.Range{Start: start, End: start + r.Int64N(3000)}
		keep := batch.NewMask(int(window.Len()), true)
		cur.clear(window, keep)
		for i := range keep.Len {
			if keep.Get(i) == bitmap.Contains(uint64(start)+uint64(i)) {
				t.Fatalf("window %v: position %d is kept: %v", window, start+int64(i), keep.Get(i))
			}
		}
	}
}

// blobOf frames the library's own serialisation as a deletion vector.
func blobOf(tb testing.TB, bitmap *roaring64.Bitmap) []byte {
	var body bytes.Buffer
	body.Write([]byte{0xd1, 0xd3, 0x39, 0x64})
	if _, err := bitmap.WriteTo(&body); err != nil {
		tb.Fatal(err)
	}
	blob := binary.BigEndian.AppendUint32(nil, uint32(body.Len()))
	blob = append(blob, body.Bytes()...)
	return binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(body.Bytes()))
}

func vectorFile(path string, offset, size, count int64) *plan.File {
	return &plan.File{
		Content: plan.PositionDeletes, Format: plan.FormatPuffin, Path: path, DataSequence: 3,
		ReferencedDataFile: pointer("F"), ContentOffset: &offset, ContentSize: &size, RecordCount: count,
	}
}

// vectors are bitmaps with every kind of container.
func vectors() map[string]*roaring64.Bitmap {
	r := rand.New(rand.NewPCG(3, 4))
	out := map[string]*roaring64.Bitmap{"empty": roaring64.New(), "array": roaring64.BitmapOf(0, 3, 70_000), "high": roaring64.BitmapOf(1, 1<<32+5, 1<<40, 1<<62)}
	out["run"] = roaring64.New()
	out["run"].AddRange(10, 200_000)
	out["run"].AddRange(1<<33, 1<<33+10)
	out["run"].RunOptimize()
	out["bitmap"] = roaring64.New()
	for range 30_000 {
		out["bitmap"].Add(uint64(r.IntN(1 << 17)))
	}
	mixed := out["bitmap"].Clone()
	mixed.Or(out["run"])
	mixed.AddRange(1<<20, 1<<20+70_000)
	mixed.Add(1 << 25)
	mixed.RunOptimize()
	out["mixed"] = mixed
	return out
}

func TestDeletionVectors(t *testing.T) {
	for name, bitmap := range vectors() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			blob := blobOf(t, bitmap)
			// Between other bytes, so that only offset and size find it.
			b.blobs["DV"] = append(append([]byte("PFA1 some other blob"), blob...), "no footer"...)
			f := vectorFile("DV", 20, int64(len(blob)), int64(bitmap.GetCardinality()))
			r := b.resolver()
			defer r.Close()
			b.window = 5000
			kept, err := b.kept(r, &plan.Task{Data: dataFile(1), Deletes: []*plan.File{f}}, 300_000, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for i := range 300_000 {
				if !bitmap.Contains(uint64(i)) {
					if want >= len(kept) || kept[want] != i {
						t.Fatalf("row %d is not kept", i)
					}
					want++
				}
			}
			if len(kept) != want {
				t.Errorf("%d rows are kept, expected %d", len(kept), want)
			}
		})
	}
}

// A vector makes position-delete files void, but not equality deletes.
func TestVectorBesideOtherDeletes(t *testing.T) {
	b := newBench(t, field(1, "id", long))
	b.write("P", `[{"file_path":"F","pos":0}]`, column(filePathID, "file_path", str), column(posID, "pos", i64))
	b.write("E", `[{"id":12}]`, column(1, "id", i64))
	blob := blobOf(t, roaring64.BitmapOf(1))
	b.blobs["DV"] = blob
	dv := vectorFile("DV", 0, int64(len(blob)), 1)
	r := b.resolver()
	defer r.Close()
	kept, err := b.kept(r, &plan.Task{Data: dataFile(1), Deletes: []*plan.File{positionDeletes("P", 2), dv, equality("E", 3, 1)}}, 5,
		map[int]arrow.Array{1: b.values(i64, `[10,11,12,13,14]`)})
	if fmt.Sprint(kept) != "[0 3 4]" || err != nil {
		t.Errorf("rows %v are kept (error %v)", kept, err)
	}
	if n := b.files["P"].opened.Load(); n != 0 {
		t.Errorf("the void position-delete file was opened %d times", n)
	}
	_, err = r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{dv, vectorFile("DV2", 0, int64(len(blob)), 1)}})
	if errs.CodeOf(err) != errs.Corrupt || !strings.Contains(err.Error(), "two deletion vectors") {
		t.Errorf("two vectors: %v", err)
	}
}

func TestBrokenVectors(t *testing.T) {
	good := blobOf(t, roaring64.BitmapOf(1, 2, 3))
	size := int64(len(good))
	changed := func(at int, to byte) []byte {
		blob := bytes.Clone(good)
		blob[at] = to
		return blob
	}
	fixed := func(blob []byte) []byte { // with a right checksum
		binary.BigEndian.PutUint32(blob[len(blob)-4:], crc32.ChecksumIEEE(blob[4:len(blob)-4]))
		return blob
	}
	other := append(bytes.Clone(good), blobOf(t, roaring64.BitmapOf(7))...)
	for _, c := range []struct {
		name string
		blob []byte
		file *plan.File
		want string
	}{
		{"checksum", changed(len(good)-1, 0), vectorFile("DV", 0, size, 3), "checksum"},
		{"cardinality", good, vectorFile("DV", 0, size, 4), "3 positions, the manifest says 4"},
		{"negative cardinality", good, vectorFile("DV", 0, size, -1), "3 positions"},
		{"magic", fixed(changed(4, 0)), vectorFile("DV", 0, size, 3), "magic"},
		{"length", changed(3, 1), vectorFile("DV", 0, size, 3), "the manifest says"},
		{"cookie", fixed(changed(20, 0)), vectorFile("DV", 0, size, 3), "cookie"},
		{"another blob's range", other, vectorFile("DV", size, int64(len(other))-size, 3), "1 positions"},
		{"range of two blobs", other, vectorFile("DV", 0, int64(len(other)), 3), "the manifest says"},
		{"past the end", good, vectorFile("DV", 1, size, 3), "does not fit"},
		{"negative offset", good, vectorFile("DV", -1, size, 3), "does not fit"},
		{"huge size", good, vectorFile("DV", 0, 1<<62, 3), "does not fit"},
		{"huge offset", good, vectorFile("DV", 1<<62, 1<<62, 3), "does not fit"},
		{"tiny", good, vectorFile("DV", 0, 3, 3), "does not fit"},
		{"truncated", good[:size-5], vectorFile("DV", 0, size, 3), "does not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.blobs["DV"] = c.blob
			r := b.resolver()
			defer r.Close()
			_, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{c.file}})
			if errs.CodeOf(err) != errs.Corrupt || !strings.HasPrefix(err.Error(), "read DV: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v (%s), expected %q", err, errs.CodeOf(err), c.want)
			}
		})
	}
	for name, spoil := range map[string]func(*plan.File){
		"no data file": func(f *plan.File) { f.ReferencedDataFile = nil },
		"no offset":    func(f *plan.File) { f.ContentOffset = nil },
		"no size":      func(f *plan.File) { f.ContentSize = nil },
	} {
		b := newBench(t)
		b.blobs["DV"] = good
		f := vectorFile("DV", 0, size, 3)
		spoil(f)
		r := b.resolver()
		if _, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{f}}); errs.CodeOf(err) != errs.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
	}
	b := newBench(t)
	r := b.resolver()
	defer r.Close()
	if _, err := r.ForTask(context.Background(), &plan.Task{Data: dataFile(1), Deletes: []*plan.File{vectorFile("gone", 0, size, 3)}}); errs.CodeOf(err) != errs.NotFound || !strings.Contains(err.Error(), "gone") {
		t.Errorf("missing file: %v", err)
	}
}

// Whatever the bytes are, parsing them returns; what it accepts has the
// cardinality that was checked and can be walked.
func FuzzVector(f *testing.F) {
	for _, bitmap := range vectors() {
		blob := blobOf(f, bitmap)
		if len(blob) < 12<<10 { // large ones take the fuzzer long to minimise
			f.Add(blob[8:len(blob)-4], uint16(0), byte(0))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, at uint16, flip byte) {
		if len(body) > 0 {
			body = bytes.Clone(body)
			body[int(at)%len(body)] ^= flip
		}
		found, err := checkBitmap(body)
		if err != nil {
			return
		}
		blob := append([]byte{0, 0, 0, 0, 0xd1, 0xd3, 0x39, 0x64}, body...)
		binary.BigEndian.PutUint32(blob, uint32(len(body)+4))
		blob = binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(blob[4:]))
		bitmap, err := parseVector(blob, int64(found.positions), func(int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if n := bitmap.GetCardinality(); n != found.positions {
			t.Fatalf("the bitmap has %d positions, the check found %d", n, found.positions)
		}
		if found.positions > 1<<20 {
			return // a few run containers can hold billions
		}
		last, walked := uint64(0), uint64(0)
		for it := bitmap.Iterator(); it.HasNext(); walked++ {
			v := it.Next()
			if walked > 0 && v <= last {
				t.Fatalf("position %d follows %d", v, last)
			}
			last = v
		}
		if walked != found.positions {
			t.Fatalf("%d positions walked of %d", walked, found.positions)
		}
	})
}
