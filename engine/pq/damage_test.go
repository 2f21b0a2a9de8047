package pq

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// peakAllocator refuses, by failing the test, to hold more than a limit.
type peakAllocator struct {
	*memory.CheckedAllocator
	t     *testing.T
	limit int
}

func (p *peakAllocator) Allocate(n int) []byte {
	p.check(n)
	return p.CheckedAllocator.Allocate(n)
}

func (p *peakAllocator) Reallocate(n int, b []byte) []byte {
	p.check(n)
	return p.CheckedAllocator.Reallocate(n, b)
}

func (p *peakAllocator) check(n int) {
	if held := p.CurrentAlloc() + n; held > p.limit {
		p.t.Fatalf("%d bytes allocated at a time", held)
	}
}

// damageLimits: what reading a damaged file of a few kilobytes may take.
const (
	damageBudget  = 32 << 20  // the pool's limit
	damageHeap    = 128 << 20 // everything allocated on the Go heap in the course of a read
	damageVariant = 40        // of each file
)

// damage makes a variant of a file. Half of them hit the footer, which decides
// most.
func damage(rng *rand.Rand, content []byte) (string, []byte) {
	footer := len(content) - trailerSize - int(binary.LittleEndian.Uint32(content[len(content)-trailerSize:]))
	at := rng.IntN(len(content))
	if rng.IntN(2) == 0 {
		at = footer + rng.IntN(len(content)-footer)
	}
	out := append([]byte(nil), content...)
	switch rng.IntN(5) {
	case 0:
		return fmt.Sprintf("cut at %d", at), out[:at]
	case 1:
		out[at] = byte(rng.IntN(256))
		return fmt.Sprintf("byte %d replaced", at), out
	case 2:
		out[at] = 0xff
		return fmt.Sprintf("byte %d all ones", at), out
	case 3: // a large number where a varint starts
		copy(out[at:], []byte{0xff, 0xff, 0xff, 0xff, 0x0e})
		return fmt.Sprintf("large number at %d", at), out
	}
	out[at] ^= 1 << rng.IntN(8)
	return fmt.Sprintf("bit flipped at %d", at), out
}

func TestDamage(t *testing.T) {
	for _, c := range corpus(t) {
		content, err := os.ReadFile(filepath.Join("testdata", c.File))
		if err != nil {
			t.Fatal(err)
		}
		seed := fnv.New64a()
		seed.Write([]byte(c.File))
		rng := rand.New(rand.NewPCG(seed.Sum64(), 1))
		t.Run(c.File, func(t *testing.T) {
			for range damageVariant {
				what, damaged := damage(rng, content)
				readDamaged(t, what, damaged)
			}
		})
	}
}

// readDamaged reads everything that a damaged file still yields. Wrong values
// are possible, since most pages carry no checksum; everything else is not.
func readDamaged(t *testing.T, what string, content []byte) {
	alloc := &peakAllocator{memory.NewCheckedAllocator(memory.NewGoAllocator()), t, 2 * damageBudget}
	defer alloc.AssertSize(t, 0)
	pool := mem.NewPool("test", damageBudget)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("%s: panic: %v", what, v)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > damageHeap {
			t.Errorf("%s: %d bytes allocated", what, n)
		}
		if err := pool.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}()
	check := func(err error) bool {
		if err == nil {
			return false
		}
		switch errs.CodeOf(err) {
		case errs.Corrupt, errs.Unsupported, errs.MemoryLimit:
		default:
			t.Errorf("%s: %v: %v", what, errs.CodeOf(err), err)
		}
		if errs.CodeOf(err) != errs.MemoryLimit && !strings.Contains(err.Error(), "damaged.parquet") {
			t.Errorf("%s: %q does not name the file", what, err)
		}
		return true
	}
	ctx := context.Background()
	dictionary := map[int]bool{}
	for id := range 100 {
		dictionary[id] = len(what)%2 == 0
	}
	f, err := Open(ctx, &memoryFile{content: content}, "damaged.parquet", Options{Alloc: alloc, Pool: pool, BatchRows: 50, ReadSize: 1000, DictionaryFields: dictionary})
	if check(err) {
		return
	}
	defer f.Close()
	for i, c := range allColumns(f) {
		if len(c.Leaves) == 0 {
			continue
		}
		r, err := f.NewReader(ctx, []batch.Column{c}, nil)
		if check(err) {
			continue
		}
		// A footer may claim billions of rows of nulls, which take no bytes.
		for windows := 0; windows < 100; windows++ {
			w, err := r.Next(ctx)
			if err == io.EOF || check(err) {
				break
			}
			var keep *batch.Mask
			if (windows+i)%2 == 1 {
				keep = batch.NewMask(int(w.Len()), true)
				for row := 0; row < keep.Len; row += 3 {
					keep.Clear(row)
				}
			}
			arrays, err := r.Read(ctx, []int{0}, keep)
			if check(err) {
				break
			}
			if n := arrays[0].Len(); keep == nil && int64(n) != w.Len() || keep != nil && n != keep.Count() {
				t.Errorf("%s: %d rows for a window of %d", what, n, w.Len())
			}
			if err := checkArray(arrays[0]); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			render(arrays[0]) // touches every value
			arrays[0].Release()
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCut cuts files at every length: always an error, never a panic.
func TestCut(t *testing.T) {
	content, err := os.ReadFile("testdata/bloom.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for n := range content {
		_, err := Open(context.Background(), &memoryFile{content: content[:n]}, "cut.parquet", Options{})
		if err == nil || !strings.Contains(err.Error(), "cut.parquet") {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}
