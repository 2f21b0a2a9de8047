package avro

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
)

const (
	// maxBlock bounds a block, compressed and not. Offsets inside a window of
	// rows then fit into 32 bits.
	maxBlock = 1 << 30 // 1 GiB
	// maxHeader bounds the metadata at the start of a file.
	maxHeader = 64 << 20 // 64 MiB
	// readAhead is how much of a file one read takes at the least.
	readAhead = 256 << 10 // 256 KiB
)

var magic = []byte("Obj\x01")

const syncSize = 16

// header is the start of a file.
type header struct {
	metadata map[string][]byte
	sync     [syncSize]byte
	end      int64 // where the first block starts
}

// source reads a file from front to back through one buffer.
type source struct {
	file fileio.File
	// buf holds the bytes of the file from offset start on; those up to at are used.
	buf   []byte
	start int64
	at    int
}

// offset is the file position of the next byte.
func (s *source) offset() int64 { return s.start + int64(s.at) }

// left is how many bytes of the file are unread.
func (s *source) left() int64 { return s.file.Size() - s.offset() }

// peek returns the next n bytes, or what is left of the file when that is less.
func (s *source) peek(n int) ([]byte, error) {
	n = int(min(int64(n), s.left()))
	if len(s.buf)-s.at >= n {
		return s.buf[s.at : s.at+n], nil
	}
	rest := copy(s.buf[:cap(s.buf)], s.buf[s.at:])
	s.start, s.at = s.offset(), 0
	want := int(min(max(int64(n), readAhead), s.file.Size()-s.start))
	if cap(s.buf) < want {
		s.buf = append(make([]byte, 0, want), s.buf[:rest]...)
	}
	s.buf = s.buf[:want]
	m, err := s.file.ReadAt(s.buf[rest:], s.start+int64(rest))
	if m < want-rest {
		s.buf = s.buf[:rest]
		if err == nil || err == io.EOF {
			err = errs.New(errs.Corrupt, "the file ends at byte %d, before its size of %d", s.start+int64(rest+m), s.file.Size())
		}
		return nil, err
	}
	return s.buf[:n], nil
}

// skip passes over n bytes, which need not be read.
func (s *source) skip(n int64) {
	if rest := int64(len(s.buf) - s.at); n > rest {
		s.start, s.at, s.buf = s.offset()+n, 0, s.buf[:0]
		return
	}
	s.at += int(n)
}

// readHeader reads the metadata and the sync marker. A header that does not
// fit into the first bytes is read again with twice as many.
func readHeader(s *source) (*header, error) {
	for n := 16 << 10; ; n *= 2 {
		b, err := s.peek(n)
		if err != nil {
			return nil, err
		}
		if len(b) < len(magic) || string(b[:len(magic)]) != string(magic) {
			return nil, errs.New(errs.Corrupt, "it is not an Avro file: the magic number is missing")
		}
		whole := int64(len(b)) == s.left()
		h, used, err := parseHeader(b[len(magic):])
		switch {
		case err == nil:
			s.skip(int64(len(magic) + used))
			h.end = s.offset()
			return h, nil
		case whole:
			return nil, err
		case n >= maxHeader:
			return nil, errs.New(errs.Unsupported, "its header is longer than %d bytes", maxHeader)
		}
	}
}

func parseHeader(b []byte) (*header, int, error) {
	c := newCursor(b)
	h := &header{metadata: map[string][]byte{}}
	for {
		n, _ := c.block(2, 0)
		if n == 0 {
			break
		}
		for ; n > 0 && c.err == nil; n-- {
			key := string(c.bytes())
			h.metadata[key] = slices.Clone(c.bytes())
		}
	}
	copy(h.sync[:], c.take(syncSize))
	if c.err != nil {
		return nil, 0, errs.New(errs.Corrupt, "its header is damaged: %v", c.err)
	}
	return h, c.at, nil
}

// block is one block of a file, still compressed.
type block struct {
	rows   int64
	offset int64 // of its first byte, for errors
	bytes  []byte
}

// nextBlock reads the next block, io.EOF at the end of the file. With
// wanted(rows) false the bytes are passed over and left nil. The bytes are
// valid until the next call.
func (s *source) nextBlock(sync *[syncSize]byte, wanted func(rows int64) bool) (block, error) {
	b := block{offset: s.offset()}
	head, err := s.peek(2 * binary.MaxVarintLen64)
	if err != nil {
		return b, err
	}
	if len(head) == 0 {
		return b, io.EOF
	}
	c := newCursor(head)
	rows, size := c.long(), c.long()
	if c.err != nil || rows < 0 || size < 0 {
		return b, errs.New(errs.Corrupt, "the block at byte %d has a damaged header", b.offset)
	}
	s.skip(int64(c.at))
	if size+syncSize > s.left() {
		return b, errs.New(errs.Corrupt, "the block at byte %d is cut off: it has %d of %d bytes", b.offset, max(s.left()-syncSize, 0), size)
	}
	if size > maxBlock {
		return b, errs.New(errs.Unsupported, "the block at byte %d has %d bytes; the most is %d", b.offset, size, maxBlock)
	}
	b.rows = rows
	if !wanted(rows) {
		s.skip(size)
		size = 0
	}
	bytes, err := s.peek(int(size) + syncSize)
	if err != nil {
		return b, err
	}
	s.skip(size + syncSize)
	if string(bytes[size:]) != string(sync[:]) {
		return b, errs.New(errs.Corrupt, "the block at byte %d does not end with the file's sync marker", b.offset)
	}
	b.bytes = bytes[:size]
	return b, nil
}
