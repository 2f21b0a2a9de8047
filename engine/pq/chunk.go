package pq

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// slack is how many bytes may be read past the data of a page or dictionary:
// kernels copy values in pieces of 16 bytes.
const slack = 64

// scratch is memory that a column keeps from page to page: charged to the
// pool, from the file's allocator, with slack behind its contents.
type scratch struct {
	alloc   memory.Allocator
	charged *mem.Reservation
	buf     []byte
}

// grow makes the scratch hold at least n bytes, of which the first keep stay.
func (s *scratch) grow(n, keep int) error {
	if need := n + slack; need > len(s.buf) {
		// Half as much again, so that slowly growing pages settle soon.
		size := max(need, min(len(s.buf)*3/2, need+(1<<20)))
		if err := s.charged.TryGrow(int64(size - len(s.buf))); err != nil {
			return err
		}
		bigger := s.alloc.Allocate(size)
		copy(bigger, s.buf[:keep])
		if s.buf != nil {
			s.alloc.Free(s.buf)
		}
		s.buf = bigger
	}
	return nil
}

func (s *scratch) free() {
	if s.buf != nil {
		s.charged.Shrink(int64(len(s.buf)))
		s.alloc.Free(s.buf)
		s.buf = nil
	}
}

// chunkSource reads the bytes of a column chunk in order, a block at a time.
type chunkSource struct {
	source  fileio.File
	block   int // bytes of an ordinary read
	scratch scratch
	ahead   *readAhead // nil: blocks are read when they are needed

	begin, end int64 // the chunk's bytes in the file
	next       int64 // the file offset of the next unread byte
	start      int   // the unconsumed bytes are scratch.buf[start:filled]
	filled     int
	expect     int // bytes of the next read, where more would be read in vain; zero: a block
}

// open starts a chunk of the file, [start, end).
func (c *chunkSource) open(start, end int64) {
	c.begin, c.next, c.end = start, start, end
	c.start, c.filled, c.expect = 0, 0, 0
}

// prime gives the source its first bytes, which have been read already.
func (c *chunkSource) prime(ctx context.Context, head []byte) error {
	if err := c.scratch.grow(len(head), 0); err != nil {
		return err
	}
	copy(c.scratch.buf, head)
	c.start, c.filled = 0, len(head)
	c.next = c.begin + int64(len(head))
	c.ahead.start(ctx, c)
	return nil
}

// held is how many bytes have been read and not consumed.
func (c *chunkSource) held() int { return c.filled - c.start }

// offset is the file offset of the next byte to consume.
func (c *chunkSource) offset() int64 { return c.next - int64(c.held()) }

// remaining is how many bytes of the chunk are not consumed.
func (c *chunkSource) remaining() int64 { return c.end - c.offset() }

// peek returns the next n bytes, or fewer where the chunk ends. The slice is
// valid until the next peek, with slack behind it.
func (c *chunkSource) peek(ctx context.Context, n int) ([]byte, error) {
	n = int(min(int64(n), c.remaining()))
	if missing := n - c.held(); missing > 0 {
		if err := c.fill(ctx, missing); err != nil {
			return nil, err
		}
	}
	return c.scratch.buf[c.start : c.start+n], nil
}

// fill reads at least n more bytes, a block if there are as many.
func (c *chunkSource) fill(ctx context.Context, n int) error {
	held, block := c.held(), c.block
	if c.expect > 0 {
		block, c.expect = c.expect, 0
	}
	size := int(min(int64(max(n, block-held)), c.end-c.next))
	if err := c.scratch.grow(held+size, c.filled); err != nil {
		return err
	}
	buf := c.scratch.buf
	copy(buf, buf[c.start:c.filled])
	c.start, c.filled = 0, held
	into := buf[held : held+size]
	got, err := c.ahead.take(ctx, c.next, into)
	if err != nil {
		return err
	}
	if got < size {
		if err := readInto(ctx, c.source, into[got:], c.next+int64(got)); err != nil {
			return err
		}
	}
	c.next += int64(size)
	c.filled += size
	c.ahead.start(ctx, c)
	return nil
}

// skip consumes n bytes, which need not have been read.
func (c *chunkSource) skip(n int) {
	if n <= c.held() {
		c.start += n
		return
	}
	c.next += int64(n - c.held())
	c.start, c.filled = 0, 0
}

// seek moves forward to a file offset inside the chunk, of whose bytes size
// will be wanted.
func (c *chunkSource) seek(offset int64, size int) {
	c.skip(int(offset - c.offset()))
	if c.held() == 0 {
		c.expect = size
	}
}

func (c *chunkSource) free() {
	c.ahead.free()
	c.scratch.free()
}
