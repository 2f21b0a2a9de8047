package spill

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/spill/vfs"
)

var background = context.Background()

func openDir(t *testing.T, fs vfs.FS, parent string, disk *DiskBudget) *Dir {
	t.Helper()
	d, _, err := OpenDir(background, fs, parent, disk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// tree lists everything under a directory.
func tree(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if path != root {
			rel, _ := filepath.Rel(root, path)
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDirLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	disk := NewDiskBudget(0)
	d := openDir(t, vfs.OS(), parent, disk)
	info, err := os.Stat(d.Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	for range 3 {
		f, err := d.NewFile()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Append(background, []byte("content")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, error %v", info.Mode(), err)
		}
	}
	if disk.Used() != 3*(blockHeader+7) {
		t.Errorf("%d bytes on disk", disk.Used())
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if left := tree(t, parent); len(left) > 0 || disk.Used() != 0 || disk.Peak() == 0 {
		t.Errorf("left: %v, %d bytes", left, disk.Used())
	}
	if _, err := d.NewFile(); errs.CodeOf(err) != errs.Cancelled {
		t.Errorf("a closed directory: %v", err)
	}
}

// Only directories of dead processes are swept, and only what is ours in them.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	alive := openDir(t, vfs.OS(), parent, NewDiskBudget(0))
	if _, err := alive.NewFile(); err != nil {
		t.Fatal(err)
	}
	name := func(digit string) string { return filepath.Join(parent, dirPrefix+strings.Repeat(digit, 24)) }
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(name("a"), "lock")) // dead
	write(filepath.Join(name("a"), "1.blocks"))
	write(filepath.Join(name("a"), "27.blocks"))
	write(filepath.Join(name("b"), "2.blocks")) // dead before it had its lock
	write(filepath.Join(name("c"), "lock"))     // dead, with something of the user's
	write(filepath.Join(name("c"), "precious.txt"))
	write(filepath.Join(parent, "other", "1.blocks"))
	write(filepath.Join(parent, dirPrefix+"data", "1.blocks"))
	write(filepath.Join(parent, "file"))

	before := len(tree(t, alive.Path()))
	d, report, err := OpenDir(background, vfs.OS(), parent, NewDiskBudget(0))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Removed) != 2 || len(report.Failed) != 1 || report.Failed[name("c")] == nil {
		t.Errorf("report %+v", report)
	}
	if after := len(tree(t, alive.Path())); after != before {
		t.Errorf("a living process's directory has %d entries, it had %d", after, before)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := alive.Close(); err != nil {
		t.Error(err)
	}
	want := []string{"file", dirPrefix + strings.Repeat("c", 24), dirPrefix + strings.Repeat("c", 24) + "/precious.txt",
		dirPrefix + "data", dirPrefix + "data/1.blocks", "other", "other/1.blocks"}
	if got := tree(t, parent); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("left:\n%v\nexpected:\n%v", got, want)
	}
}

// After a kill the next start finds the directory and removes it.
func TestSweepAfterKill(t *testing.T) {
	if parent := os.Getenv("SPILL_TEST_PARENT"); parent != "" {
		d, _, err := OpenDir(background, vfs.OS(), parent, NewDiskBudget(0))
		if err != nil {
			t.Fatal(err)
		}
		f, err := d.NewFile()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Append(background, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	parent := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run", "^TestSweepAfterKill$")
	child.Env = append(os.Environ(), "SPILL_TEST_PARENT="+parent)
	if err := child.Run(); err == nil {
		t.Fatal("the child was not killed")
	}
	if left := tree(t, parent); len(left) != 3 {
		t.Fatalf("the child left %v", left)
	}
	d, report, err := OpenDir(background, vfs.OS(), parent, NewDiskBudget(0))
	if err != nil || len(report.Removed) != 1 {
		t.Fatalf("report %+v, error %v", report, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if left := tree(t, parent); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Many directories opened and closed side by side never take each other's.
func TestConcurrentOpen(t *testing.T) {
	parent := t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				d, _, err := OpenDir(background, vfs.OS(), parent, NewDiskBudget(0))
				if err != nil {
					t.Error(err)
					return
				}
				f, err := d.NewFile()
				if err != nil {
					t.Error(err)
				} else if ref, err := f.Append(background, []byte("mine")); err != nil {
					t.Error(err)
				} else if got, err := f.Read(background, ref, new([]byte)); err != nil || string(got) != "mine" {
					t.Errorf("%q, %v", got, err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if left := tree(t, parent); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestBadParent(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "missing")
	_, _, err := OpenDir(background, vfs.OS(), parent, NewDiskBudget(0))
	if errs.CodeOf(err) != errs.NotFound || !strings.HasPrefix(err.Error(), "open spill_dir "+parent+": ") {
		t.Errorf("error is %v", err)
	}
}

func TestDiskBudget(t *testing.T) {
	disk := NewDiskBudget(3 * (blockHeader + 100))
	d := openDir(t, vfs.OS(), t.TempDir(), disk)
	f, err := d.NewFile()
	if err != nil {
		t.Fatal(err)
	}
	var refs []Ref
	for range 3 {
		ref, err := f.Append(background, bytes.Repeat([]byte{7}, 100))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	_, err = f.Append(background, []byte("x"))
	var full *errs.Error
	if !errors.As(err, &full) || full.Code != errs.SpillFull || full.Detail["option"] != "spill_limit" || full.Detail["needed_bytes"] != int64(blockHeader+1) ||
		err.Error() != "spill to "+d.Path()+": 21 B more are needed and 360 B of the limit of 360 B are used; raise spill_limit" {
		t.Errorf("error is %v", err)
	}
	// What is there stays readable, and room comes back.
	if _, err := f.Read(background, refs[2], new([]byte)); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil || disk.Used() != 0 {
		t.Errorf("%d bytes used, error %v", disk.Used(), err)
	}
	if f, err = d.NewFile(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Append(background, []byte("x")); err != nil {
		t.Error(err)
	}
}

func TestDiskFull(t *testing.T) {
	disk := NewDiskBudget(0)
	fs := &vfs.Faulty{Inner: vfs.OS(), Capacity: 1000}
	d := openDir(t, fs, t.TempDir(), disk)
	f, err := d.NewFile()
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Append(background, make([]byte, 700))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = f.Append(background, make([]byte, 700))
		var full *errs.Error
		if !errors.As(err, &full) || full.Code != errs.SpillFull || full.Detail["option"] != "spill_dir" ||
			err.Error() != "spill to "+d.Path()+": the disk has no room for 720 B more; set spill_dir to a larger one: no space left on device" {
			t.Errorf("error is %v", err)
		}
	}
	if _, err := f.Read(background, first, new([]byte)); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil || disk.Used() != 0 {
		t.Errorf("%d bytes used, error %v", disk.Used(), err)
	}
	if f, err = d.NewFile(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Append(background, make([]byte, 700)); err != nil {
		t.Errorf("after the full file is gone: %v", err)
	}
}

func TestBlocks(t *testing.T) {
	for _, codec := range []Codec{Uncompressed, Zstd} {
		d := openDir(t, vfs.OS(), t.TempDir(), NewDiskBudget(0))
		f, err := d.NewFile()
		if err != nil {
			t.Fatal(err)
		}
		f.Codec = codec
		r := rand.New(rand.NewPCG(1, uint64(codec)))
		var contents [][]byte
		var refs []Ref
		for i := range 60 {
			content := make([]byte, []int{0, 1, 1000, 70_000, 600_000}[i%5])
			if i%2 == 0 {
				for j := range content {
					content[j] = byte(r.Uint32())
				}
			}
			ref, err := f.Append(background, content)
			if err != nil {
				t.Fatal(err)
			}
			if codec == Zstd && i%2 == 1 && len(content) >= 1000 && ref.Stored > len(content)/2 {
				t.Errorf("%d zeros take %d bytes", len(content), ref.Stored)
			}
			contents, refs = append(contents, content), append(refs, ref)
		}
		var buffer []byte
		for _, i := range r.Perm(len(refs)) {
			if got, err := f.Read(background, refs[i], &buffer); err != nil || !bytes.Equal(got, contents[i]) {
				t.Errorf("block %d: %d bytes of %d, error %v", i, len(got), len(contents[i]), err)
			}
		}
	}
}

// Any changed byte of a block is noticed, and so is a file that is too short.
func TestDamagedBlocks(t *testing.T) {
	for _, codec := range []Codec{Uncompressed, Zstd} {
		d := openDir(t, vfs.OS(), t.TempDir(), NewDiskBudget(0))
		f, err := d.NewFile()
		if err != nil {
			t.Fatal(err)
		}
		f.Codec = codec
		content := bytes.Repeat([]byte("abcd"), 50)
		if _, err := f.Append(background, []byte("before")); err != nil {
			t.Fatal(err)
		}
		ref, err := f.Append(background, content)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("read spilled data from %s: the block at offset %d is damaged: ", f.path, ref.Offset)
		for i := range ref.Stored {
			changed := bytes.Clone(raw)
			changed[int(ref.Offset)+i] ^= 0x40
			if err := os.WriteFile(f.path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Read(background, ref, new([]byte)); errs.CodeOf(err) != errs.Corrupt || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("byte %d changed: %v", i, err)
			}
		}
		if err := os.Truncate(f.path, ref.Offset+10); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(background, ref, new([]byte)); errs.CodeOf(err) != errs.Corrupt {
			t.Errorf("truncated: %v", err)
		}
	}
}

// fill writes numbered records of several sizes, one of them larger than a
// block, from several goroutines.
func fill(p *Partitions, writers, records int) error {
	failed := make(chan error, writers)
	for w := range writers {
		go func() {
			failed <- func() error {
				for i := range records {
					head := binary.AppendUvarint(nil, uint64(w))
					tail := append(binary.AppendUvarint(nil, uint64(i)), make([]byte, i%97)...)
					if i == records/2 {
						tail = append(tail, make([]byte, 5000)...)
					}
					if err := p.Append(background, (w+i)%len(p.parts), head, tail); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	var first error
	for range writers {
		if err := <-failed; first == nil {
			first = err
		}
	}
	return first
}

func TestPartitions(t *testing.T) {
	pool := mem.NewPool("test", 1<<20)
	charge := pool.Reserve("buffers")
	disk := NewDiskBudget(0)
	d := openDir(t, vfs.OS(), t.TempDir(), disk)
	p, err := d.NewPartitions(7, 1000, charge)
	if err != nil {
		t.Fatal(err)
	}
	const writers, records = 4, 3000
	if err := fill(p, writers, records); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for part := range len(p.parts) {
		next := [writers]uint64{}
		var n, size int64
		mark := &Mark{}
		for round := 0; ; round++ {
			taken := 0
			err := p.From(background, part, mark, func(record []byte) error {
				if taken == 1000 {
					return ErrStop
				}
				taken++
				n, size = n+1, size+int64(len(record))
				w, a := binary.Uvarint(record)
				i, b := binary.Uvarint(record[a:])
				want := int(i % 97)
				if i == records/2 {
					want += 5000
				}
				if int(w+i)%len(p.parts) != part || len(record) != a+b+want || i < next[w] {
					t.Fatalf("partition %d has record %d of writer %d with %d bytes", part, i, w, len(record))
				}
				next[w] = i + 1
				seen[fmt.Sprint(w, " ", i)] = true
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if taken == 0 {
				break
			}
		}
		if n != p.Records(part) || size != p.Bytes(part) {
			t.Errorf("partition %d: %d records of %d, %d bytes of %d", part, n, p.Records(part), size, p.Bytes(part))
		}
	}
	if len(seen) != writers*records {
		t.Errorf("%d records of %d", len(seen), writers*records)
	}
	if disk.Used() == 0 || charge.Size() < 7000 {
		t.Errorf("%d bytes on disk, %d charged", disk.Used(), charge.Size())
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if disk.Used() != 0 || charge.Size() != 0 {
		t.Errorf("after Close %d bytes on disk, %d charged", disk.Used(), charge.Size())
	}
}

// Every operation fails once: the error comes out, and nothing is left but what
// could not be removed.
func TestFaults(t *testing.T) {
	for k := int64(0); ; k++ {
		parent := t.TempDir()
		disk := NewDiskBudget(0)
		charge := mem.NewPool("test", 1<<20).Reserve("buffers")
		fs := &vfs.Faulty{Inner: vfs.OS(), Err: syscall.EIO}
		fs.FailAfter(k)
		err := func() (err error) {
			d, _, err := OpenDir(background, fs, parent, disk)
			if err != nil {
				return err
			}
			defer func() {
				if closeErr := d.Close(); err == nil {
					err = closeErr
				}
			}()
			p, err := d.NewPartitions(2, 200, charge)
			if err != nil {
				return err
			}
			defer func() {
				if closeErr := p.Close(); err == nil {
					err = closeErr
				}
			}()
			if err := fill(p, 1, 20); err != nil {
				return err
			}
			return p.Each(background, 0, func([]byte) error { return nil })
		}()
		if !fs.Failed() {
			if err != nil {
				t.Errorf("no fault, but %v", err)
			}
			if k < 10 {
				t.Errorf("only %d operations", k)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("operation %d: error %v", k, err)
		}
		if fs.OpenFiles() != 0 || disk.Used() != 0 || charge.Size() != 0 {
			t.Errorf("operation %d: %d open files, %d bytes on disk, %d charged", k, fs.OpenFiles(), disk.Used(), charge.Size())
		}
		if left := tree(t, parent); len(left) > 0 {
			// Only a failed removal leaves something: the next start takes it.
			report, err := Sweep(background, vfs.OS(), parent)
			if again := tree(t, parent); err != nil || len(again) > 0 {
				t.Errorf("operation %d: left %v, after a sweep %v (%+v, %v)", k, left, again, report, err)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	d := openDir(t, vfs.OS(), t.TempDir(), NewDiskBudget(0))
	f, err := d.NewFile()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := f.Append(ctx, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := f.Append(ctx, []byte("x")); errs.CodeOf(err) != errs.Cancelled {
		t.Errorf("append: %v", err)
	}
	if _, err := f.Read(ctx, ref, new([]byte)); errs.CodeOf(err) != errs.Cancelled {
		t.Errorf("read: %v", err)
	}
}

// A mark stays right while records are appended behind it, through buffers
// that become blocks and extents that fill.
func TestMarksBetweenAppends(t *testing.T) {
	charge := mem.NewPool("test", 1<<20).Reserve("buffers")
	d := openDir(t, vfs.OS(), t.TempDir(), NewDiskBudget(0))
	p, err := d.NewPartitions(1, 64, charge)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := rand.New(rand.NewPCG(5, 5))
	written, read := uint64(0), uint64(0)
	mark := &Mark{}
	for range 3000 {
		for range r.IntN(5) {
			tail := make([]byte, r.IntN(30)+r.IntN(100)/99*9000)
			if err := p.Append(background, 0, binary.LittleEndian.AppendUint64(nil, written), tail); err != nil {
				t.Fatal(err)
			}
			written++
		}
		stop := r.IntN(6)
		err := p.From(background, 0, mark, func(record []byte) error {
			if stop == 0 {
				return ErrStop
			}
			stop--
			if got := binary.LittleEndian.Uint64(record); got != read {
				t.Fatalf("record %d comes for %d", got, read)
			}
			read++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < written/2 {
		t.Errorf("%d of %d records were read", read, written)
	}
}
