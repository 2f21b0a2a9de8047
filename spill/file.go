package spill

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/spill/vfs"
)

// A block on disk, all numbers little endian:
//
//	4 bytes  magic "ICXS"
//	4 bytes  codec
//	4 bytes  length of the content
//	4 bytes  length as stored
//	4 bytes  CRC32C of the fields above and the stored bytes
//	n bytes  the stored bytes
const (
	blockHeader = 20
	blockMagic  = 0x53584349
	// maxBlock bounds what a damaged length can make a reader allocate.
	maxBlock = 1<<31 - 1
)

// Codec is how blocks are compressed. The numbers are written to disk.
type Codec uint32

const (
	// Uncompressed is the default: the disk is mostly faster than a codec.
	Uncompressed Codec = 0
	// Zstd compresses a block where that saves at least an eighth.
	Zstd Codec = 1
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Ref says where a block of a File is.
type Ref struct {
	Offset int64
	// Stored is the size on disk, with the header; Length that of the content.
	Stored, Length int
}

// File is a spill file: blocks are written once and read back in any order. It
// is safe for concurrent use.
type File struct {
	// Codec compresses the blocks that are written from now on.
	Codec Codec

	dir  *Dir
	path string
	file vfs.File

	mu      sync.Mutex
	end     int64 // of what is allocated
	charged int64 // bytes of the disk budget
	scratch []byte
	closed  bool
}

// Size is the number of bytes written.
func (f *File) Size() int64 { f.mu.Lock(); defer f.mu.Unlock(); return f.charged }

// Append writes a block at the end. The disk budget is asked before; when it or
// the disk refuses, the blocks before stay readable.
func (f *File) Append(ctx context.Context, content []byte) (Ref, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writeLocked(ctx, content, func(stored int64) int64 {
		f.end += stored
		return f.end - stored
	})
}

// writeLocked writes a block where place says, given its size on disk.
func (f *File) writeLocked(ctx context.Context, content []byte, place func(stored int64) int64) (Ref, error) {
	if err := context.Cause(ctx); err != nil {
		return Ref{}, err
	}
	if len(content) > maxBlock {
		return Ref{}, errs.At(errs.Internal, "spill to", f.path, "a block of %d bytes is too large", len(content))
	}
	if f.closed {
		return Ref{}, errs.At(errs.Cancelled, "spill to", f.path, "the file is closed")
	}
	if err := f.encode(content); err != nil {
		return Ref{}, err
	}
	stored := int64(len(f.scratch))
	if err := f.dir.disk.take(stored, f.dir.path); err != nil {
		return Ref{}, err
	}
	f.charged += stored
	ref := Ref{Offset: place(stored), Stored: int(stored), Length: len(content)}
	if _, err := f.file.WriteAt(f.scratch, ref.Offset); err != nil {
		return Ref{}, diskError(err, "spill to", f.dir.path, stored)
	}
	if cap(f.scratch) > maxScratch {
		f.scratch = nil
	}
	return ref, nil
}

// maxScratch is how much of a file's write buffer outlives a write: blocks of
// usual size need less, and a single large record must not stay in memory.
const maxScratch = 256 << 10 // 256 KiB

// encode puts header and content into scratch.
func (f *File) encode(content []byte) error {
	codec := Uncompressed
	b := append(f.scratch[:0], make([]byte, blockHeader)...)
	if f.Codec == Zstd {
		encoder, err := zstdEncoder()
		if err != nil {
			return errs.WrapAs(errs.Internal, err, "spill to", f.path)
		}
		b = encoder.EncodeAll(content, b)
		codec = Zstd
	}
	if codec == Uncompressed || len(b)-blockHeader > len(content)-len(content)/8 {
		codec = Uncompressed
		b = append(b[:blockHeader], content...)
	}
	binary.LittleEndian.PutUint32(b, blockMagic)
	binary.LittleEndian.PutUint32(b[4:], uint32(codec))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(content)))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-blockHeader))
	binary.LittleEndian.PutUint32(b[16:], checksum(b))
	f.scratch = b
	return nil
}

// checksum is over the block without the checksum itself.
func checksum(block []byte) uint32 {
	return crc32.Update(crc32.Checksum(block[:16], crcTable), crcTable, block[blockHeader:])
}

// Read returns the content of a block. It lies in buffer, which is enlarged as
// needed, until the next Read with the same one. A block that is not as it was
// written is Corrupt.
func (f *File) Read(ctx context.Context, ref Ref, buffer *[]byte) ([]byte, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if cap(*buffer) < ref.Stored {
		*buffer = make([]byte, ref.Stored)
	}
	block := (*buffer)[:ref.Stored]
	if n, err := f.file.ReadAt(block, ref.Offset); n < len(block) {
		if err == io.EOF {
			return nil, f.corrupt(ref, "the file ends inside it")
		}
		return nil, errs.Wrap(err, "read spilled data from", f.path)
	}
	if binary.LittleEndian.Uint32(block) != blockMagic {
		return nil, f.corrupt(ref, "its magic number is wrong")
	}
	length, stored := binary.LittleEndian.Uint32(block[8:]), binary.LittleEndian.Uint32(block[12:])
	if int64(length) != int64(ref.Length) || int64(stored) != int64(ref.Stored-blockHeader) {
		return nil, f.corrupt(ref, "its lengths are wrong")
	}
	if binary.LittleEndian.Uint32(block[16:]) != checksum(block) {
		return nil, f.corrupt(ref, "its checksum is wrong")
	}
	content := block[blockHeader:]
	switch codec := Codec(binary.LittleEndian.Uint32(block[4:])); codec {
	case Uncompressed:
		return content, nil
	case Zstd:
		decoder, err := zstdDecoder()
		if err != nil {
			return nil, errs.WrapAs(errs.Internal, err, "read spilled data from", f.path)
		}
		content, err = decoder.DecodeAll(content, make([]byte, 0, length))
		if err != nil || len(content) != int(length) {
			return nil, f.corrupt(ref, "it cannot be decompressed")
		}
		return content, nil
	}
	return nil, f.corrupt(ref, "its codec is unknown")
}

// readAt reads the block at an offset, which has at most limit bytes on disk.
func (f *File) readAt(ctx context.Context, offset, limit int64, buffer *[]byte) (content []byte, stored int64, err error) {
	header := make([]byte, blockHeader)
	ref := Ref{Offset: offset, Stored: blockHeader}
	if n, err := f.file.ReadAt(header, offset); n < len(header) {
		if err == io.EOF {
			return nil, 0, f.corrupt(ref, "the file ends inside it")
		}
		return nil, 0, errs.Wrap(err, "read spilled data from", f.path)
	}
	ref.Length = int(binary.LittleEndian.Uint32(header[8:]))
	ref.Stored += int(binary.LittleEndian.Uint32(header[12:]))
	if int64(ref.Stored) > limit || ref.Length > maxBlock {
		return nil, 0, f.corrupt(ref, "its lengths are wrong")
	}
	content, err = f.Read(ctx, ref, buffer)
	return content, int64(ref.Stored), err
}

func (f *File) corrupt(ref Ref, what string) error {
	return errs.At(errs.Corrupt, "read spilled data from", f.path, "the block at offset %d is damaged: %s", ref.Offset, what)
}

// Close removes the file and gives its bytes back to the disk budget. Idempotent.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed, f.scratch = true, nil
	f.dir.forget(f)
	err := f.file.Close()
	if removeErr := f.dir.fs.Remove(f.path); err == nil {
		err = removeErr
	}
	f.dir.disk.give(f.charged)
	return errs.Wrap(err, "remove", f.path)
}

// The codecs are shared by all files: each call of EncodeAll and DecodeAll is
// independent, and one worker at a time bounds their memory.
var (
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	})
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	})
)
