package main

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/zstd"
)

// TestZstd exchanges blocks with an implementation of its own in Go.
func TestZstd(t *testing.T) {
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		t.Fatal(err)
	}
	if _, ours := codec.(*zstdCodec); !ours {
		t.Fatalf("the registered codec is a %T", codec)
	}
	reader, _ := zstd.NewReader(nil)
	defer reader.Close()
	writer, _ := zstd.NewWriter(nil)
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 100, 1 << 16, 3 << 20} {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(random.IntN(4))
		}
		for _, level := range []int{compress.DefaultCompressionLevel, 1, 3, 19} {
			if n > 1<<16 && level == 19 {
				continue // slow
			}
			packed := codec.EncodeLevel(make([]byte, codec.CompressBound(int64(n))), text, level)
			if got, err := reader.DecodeAll(packed, nil); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes at level %d: the other implementation reads %d bytes, %v", n, level, len(got), err)
			}
		}
		packed := writer.EncodeAll(text, nil)
		if len(packed) == 0 {
			continue
		}
		for _, room := range []int{0, n, n + 10} {
			if got, err := compress.Decode(codec, make([]byte, room), packed); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes into %d: %d bytes, %v", n, room, len(got), err)
			}
		}
		if n > 1 {
			if _, err := compress.Decode(codec, make([]byte, n-1), packed); err == nil {
				t.Errorf("%d bytes fit into %d", n, n-1)
			}
		}
		packed[len(packed)/2] ^= 0xff
		got, err := compress.Decode(codec, make([]byte, n), packed[:len(packed)-1])
		if err == nil && n > 0 {
			t.Errorf("damaged input gives %d bytes and no error", len(got))
		}
	}
	if _, err := compress.Decode(codec, nil, nil); err == nil {
		t.Error("no input gives no error")
	}
}
