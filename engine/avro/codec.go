package avro

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Codec decompresses the blocks of a file. It is safe for concurrent use.
type Codec interface {
	// Decompress appends the content of a block to dst, which grows by limit
	// bytes at the most; more is an error.
	Decompress(dst, block []byte, limit int) ([]byte, error)
}

var codecs = struct {
	sync.RWMutex
	byName map[string]Codec
}{byName: map[string]Codec{"null": nullCodec{}, "deflate": deflateCodec{}, "zstandard": &zstdCodec{}, "snappy": snappyCodec{}}}

// RegisterCodec makes a codec known by the name that files have in avro.codec,
// or puts it in the place of one of the package's own: null, deflate,
// zstandard and snappy. It counts for files that are opened later.
func RegisterCodec(name string, c Codec) {
	codecs.Lock()
	defer codecs.Unlock()
	codecs.byName[name] = c
}

func codecByName(name string) (Codec, error) {
	codecs.RLock()
	defer codecs.RUnlock()
	if name == "" {
		name = "null"
	}
	if c, ok := codecs.byName[name]; ok {
		return c, nil
	}
	return nil, errs.New(errs.Unsupported, "its blocks are compressed with %q; known are null, deflate, snappy and zstandard", name)
}

func tooLong(limit int) error {
	if limit >= maxBlock {
		return errs.New(errs.Unsupported, "a block holds more than %d bytes", maxBlock)
	}
	return errs.New(errs.MemoryLimit, "a block holds more than %d bytes, which is more than the memory left for it; raise memory_limit", limit)
}

type nullCodec struct{}

func (nullCodec) Decompress(dst, block []byte, limit int) ([]byte, error) {
	if len(block) > limit {
		return dst, tooLong(limit)
	}
	return append(dst, block...), nil
}

// zstdCodec decodes blocks whole, with one decoder for all.
type zstdCodec struct {
	once    sync.Once
	decoder *zstd.Decoder
	err     error
}

func (z *zstdCodec) Decompress(dst, block []byte, limit int) ([]byte, error) {
	z.once.Do(func() {
		// Concurrency 0 lets as many callers decode as there are processors;
		// DecodeAll starts no goroutines.
		z.decoder, z.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	})
	if z.err != nil {
		return dst, z.err
	}
	// Not every block says how long its content is.
	size := max(8*len(block), 64<<10)
	var header zstd.Header
	if err := header.Decode(block); err == nil && header.HasFCS {
		if header.FrameContentSize > uint64(limit) {
			return dst, tooLong(limit)
		}
		size = min(int(header.FrameContentSize), 256*size) // it may lie
	}
	for start := len(dst); ; size = max(4*size, 64<<10) {
		size = min(size, limit)
		dst = slices.Grow(dst, size)
		out, err := z.decoder.DecodeAll(block, dst[:start:start+size])
		switch {
		case err == nil:
			return out, nil
		case !errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return dst, errs.New(errs.Corrupt, "a block is not valid zstandard: %v", err)
		case size == limit:
			return dst, tooLong(limit)
		}
	}
}

// snappyCodec reads a snappy block and the big-endian CRC-32 of its content.
type snappyCodec struct{}

func (snappyCodec) Decompress(dst, block []byte, limit int) ([]byte, error) {
	if len(block) < 4 {
		return dst, errs.New(errs.Corrupt, "a snappy block has %d bytes", len(block))
	}
	body, sum := block[:len(block)-4], binary.BigEndian.Uint32(block[len(block)-4:])
	n, err := snappy.DecodedLen(body)
	if err != nil {
		return dst, errs.New(errs.Corrupt, "a block is not valid snappy: %v", err)
	}
	if n > 64*(len(body)+1) {
		return dst, errs.New(errs.Corrupt, "a snappy block of %d bytes claims to hold %d", len(body), n)
	}
	if n > limit {
		return dst, tooLong(limit)
	}
	start := len(dst)
	dst = slices.Grow(dst, n)
	content, err := snappy.Decode(dst[start:start+n], body)
	if err != nil {
		return dst, errs.New(errs.Corrupt, "a block is not valid snappy: %v", err)
	}
	if got := crc32.ChecksumIEEE(content); got != sum {
		return dst, errs.New(errs.Corrupt, "a snappy block has the checksum %08x instead of %08x", got, sum)
	}
	return dst[:start+n], nil
}
