package pq

import (
	"encoding/binary"
	"reflect"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// Numbers of the codecs that a column chunk names.
const (
	codecNone   = 0
	codecSnappy = 1
	codecLZ4    = 5 // blocks in a frame of Hadoop's, or not framed at all
	codecZstd   = 6
	codecLZ4Raw = 7
)

// decompressor decodes one block into a buffer of exactly the size that the
// page header claims, and never writes or allocates more.
type decompressor func(dst, src []byte) error

// decompressorOf finds the decompressor of a codec. Codecs come from
// arrow-go's registry, so that a process can plug in its own; where arrow-go's
// default trusts sizes in the compressed data, a bounded one replaces it.
func decompressorOf(codec int32) (decompressor, error) {
	switch codec {
	case codecNone:
		return nil, nil // pages are used as they are stored
	case codecLZ4:
		raw, err := decompressorOf(codecLZ4Raw)
		if err != nil {
			return nil, err
		}
		return func(dst, src []byte) error { return decodeHadoopLZ4(raw, dst, src) }, nil
	}
	registered, err := compress.GetCodec(compress.Compression(codec))
	if err != nil {
		return nil, errs.New(errs.Unsupported, "the compression codec %d is not supported", codec)
	}
	isDefault := reflect.TypeOf(registered).PkgPath() == "github.com/apache/arrow-go/v18/parquet/compress"
	if codec == codecZstd && isDefault {
		return decodeZstd, nil
	}
	if codec == codecSnappy && isDefault {
		return decodeSnappy, nil
	}
	return func(dst, src []byte) error {
		out, err := compress.Decode(registered, dst, src)
		if err != nil {
			return corrupt("a page cannot be decompressed: %v", err)
		}
		return placed(dst, out)
	}, nil
}

// placed checks that a decoder filled dst, and copies what it decoded
// elsewhere.
func placed(dst, out []byte) error {
	if len(out) != len(dst) {
		return corrupt("a page decompresses to %d bytes and claims %d", len(out), len(dst))
	}
	if len(dst) > 0 && &out[0] != &dst[0] {
		copy(dst, out)
	}
	return nil
}

// zstdDecoder is shared by the process: it holds one decoder's tables for each
// processor, and decodes without goroutines.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

func decodeZstd(dst, src []byte) error {
	d, err := zstdDecoder()
	if err != nil {
		return err
	}
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return corrupt("a page cannot be decompressed: %v", err)
	}
	return placed(dst, out)
}

func decodeSnappy(dst, src []byte) error {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return corrupt("a page cannot be decompressed: %v", err)
	}
	if n != len(dst) {
		return corrupt("a page decompresses to %d bytes and claims %d", n, len(dst))
	}
	out, err := snappy.Decode(dst, src)
	if err != nil {
		return corrupt("a page cannot be decompressed: %v", err)
	}
	return placed(dst, out)
}

// decodeHadoopLZ4 decodes the codec named LZ4. Hadoop's writers put one or
// more frames of two big-endian sizes and a raw block; others wrote a raw
// block alone under the same name.
func decodeHadoopLZ4(raw decompressor, dst, src []byte) error {
	rest, out := src, dst
	for len(rest) >= 8 {
		size, stored := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		if uint64(size) > uint64(len(out)) || uint64(stored) > uint64(len(rest)-8) ||
			raw(out[:size:size], rest[8:8+stored]) != nil {
			break
		}
		rest, out = rest[8+stored:], out[size:]
	}
	if len(rest) == 0 && len(out) == 0 {
		return nil
	}
	return raw(dst, src)
}
