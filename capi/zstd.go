package main

import (
	"sync"

	"github.com/DataDog/zstd"
	"github.com/apache/arrow-go/v18/parquet/compress"
)

// The library reads and writes zstd with the C library, which decodes a third
// faster and compresses smaller than the codec of Go that the engine alone
// has. The registry is a map without a lock: nothing may use it before init
// has ended.
func init() { compress.RegisterCodec(compress.Codecs.Zstd, &zstdCodec{}) }

// zstdCodec is compress.ErrorCodec over libzstd.
type zstdCodec struct {
	contexts sync.Pool // of zstd.Ctx, each used by one goroutine at a time
}

// defaultZstdLevel is what "no level given" means, as in the zstd command.
const defaultZstdLevel = 3

func (z *zstdCodec) context() zstd.Ctx {
	if c, ok := z.contexts.Get().(zstd.Ctx); ok {
		return c
	}
	return zstd.NewCtx()
}

// DecodeWithError decodes src into dst when dst has room, as it has for every
// page, and never writes past len(dst).
func (z *zstdCodec) DecodeWithError(dst, src []byte) ([]byte, error) {
	c := z.context()
	defer z.contexts.Put(c)
	if len(src) == 0 || len(dst) == 0 {
		return c.Decompress(dst, src)
	}
	n, err := c.DecompressInto(dst, src)
	if err != nil {
		return nil, err
	}
	return dst[:n], nil
}

// Decode panics on damaged input, as the interface wants it; readers call
// DecodeWithError.
func (z *zstdCodec) Decode(dst, src []byte) []byte {
	out, err := z.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}

func (z *zstdCodec) Encode(dst, src []byte) []byte {
	return z.EncodeLevel(dst, src, compress.DefaultCompressionLevel)
}

func (z *zstdCodec) EncodeLevel(dst, src []byte, level int) []byte {
	if level == compress.DefaultCompressionLevel {
		level = defaultZstdLevel
	}
	c := z.context()
	defer z.contexts.Put(c)
	out, err := c.CompressLevel(dst, src, level)
	if err != nil {
		panic(err) // only for a lack of memory: the buffer has the bound's size
	}
	return out
}

func (z *zstdCodec) CompressBound(n int64) int64 { return int64(zstd.CompressBound(int(n))) }
