package avro

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/avro/ocf"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

const oneText = `{"type":"record","name":"r","fields":[{"name":"s","type":"string"}]}`

// TestMemoryLimit reads one block that is larger than the memory limit.
func TestMemoryLimit(t *testing.T) {
	rows := []any{map[string]any{"s": strings.Repeat("a", 40<<20)}}
	for name, codec := range map[string]ocf.Codec{"deflate": ocf.DeflateCodec(1), "snappy": ocf.SnappyCodec(), "zstandard": ocf.MustZstdCodec(nil, nil)} {
		b := writeFile(t, oneText, rows, ocf.WithCodec(codec))
		for limit, fits := range map[int64]bool{16 << 20: false, 256 << 20: true} {
			pool := mem.NewPool("engine", limit)
			f, err := Open(context.Background(), fileOf(b), testPath, Options{Pool: pool})
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAll(f, allColumns(f), nil, false, nil)
			if fits && (err != nil || len(got) != 1) || !fits && errs.CodeOf(err) != errs.MemoryLimit {
				t.Errorf("%s with %d bytes: %d rows, %v", name, limit, len(got), err)
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWindows checks that windows end at the batch size, at what LimitWindow
// says, and when their rows are large enough.
func TestWindows(t *testing.T) {
	var rows []any
	for i := range 1000 {
		rows = append(rows, map[string]any{"s": strings.Repeat("x", 10<<10*(i/500))}) // half small, half 10 KiB
	}
	b := writeFile(t, oneText, rows, ocf.WithBlockCount(300))
	f, err := open(t, b, 200)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.NewReader(context.Background(), []batch.Column{{Index: 0, Leaves: []int{0}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.(batch.WindowLimiter).LimitWindow(7)
	w, err := r.Next(context.Background())
	if err != nil || w != (batch.Range{Start: 0, End: 7}) {
		t.Fatal(w, err)
	}
	r.(batch.WindowLimiter).LimitWindow(100_000)
	last := int64(7)
	for {
		w, err := r.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil || w.Start != last || w.Len() < 1 || w.Len() > 200 {
			t.Fatal(w, err)
		}
		last = w.End
	}
	if last != 1000 {
		t.Errorf("the windows end at row %d", last)
	}
}

// failingFile fails the k-th read.
type failingFile struct {
	memoryFile
	left *int
	err  error
}

func (f failingFile) ReadAt(p []byte, offset int64) (int, error) {
	if *f.left--; *f.left < 0 {
		return 0, f.err
	}
	return f.memoryFile.ReadAt(p, offset)
}

func TestReadErrors(t *testing.T) {
	var rows []any
	for i := range 100_000 {
		rows = append(rows, map[string]any{"s": fmt.Sprintf("%040d", i)})
	}
	b := writeFile(t, oneText, rows, ocf.WithBlockCount(5000))
	for _, cause := range []error{errors.New("storage is on fire"), io.ErrUnexpectedEOF} {
		for k := 0; ; k++ {
			left := k
			f, err := Open(context.Background(), failingFile{fileOf(b), &left, cause}, testPath, Options{})
			if err == nil {
				_, err = readAll(f, allColumns(f), nil, false, nil)
			}
			if err == nil {
				if k < 5 {
					t.Errorf("only %d reads", k)
				}
				break
			}
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), testPath) {
				t.Fatalf("read %d: %v", k, err)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	encoded, _ := everyRows(5)
	f, err := open(t, container(everyType, encoded, 5), 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.NewReader(context.Background(), allColumns(f)[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Read(ctx, []int{0}, nil); errs.CodeOf(err) != errs.Cancelled {
		t.Error(err)
	}
	if _, err := r.Next(ctx); errs.CodeOf(err) != errs.Cancelled {
		t.Error(err)
	}
}

// reversed is a codec of its own: the bytes of a block come in reverse.
type reversed struct{}

func (reversed) Decompress(dst, block []byte, _ int) ([]byte, error) {
	for i := len(block) - 1; i >= 0; i-- {
		dst = append(dst, block[i])
	}
	return dst, nil
}

func TestRegisteredCodec(t *testing.T) {
	RegisterCodec("reversed", reversed{})
	b := container(`{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}`, [][]byte{{2, 4}}, 1)
	b = bytes.Replace(b, []byte("Obj\x01\x02"), []byte("Obj\x01\x04\x14avro.codec\x10reversed"), 1)
	f, err := open(t, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := readAll(f, allColumns(f), nil, false, nil); err != nil || len(rows) != 1 || rows[0] != "2 1" {
		t.Error(rows, err)
	}
}

func TestErrorsNameTheColumn(t *testing.T) {
	b := container(`{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":["null","boolean"]}]}`, [][]byte{{2, 0}, {2, 2, 1}, {2, 2, 9}}, 3)
	f, err := open(t, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(f, allColumns(f), nil, false, nil); err == nil || err.Error() != "read "+testPath+": column b, row 2: a boolean is the byte 0x9" {
		t.Error(err)
	}
}
