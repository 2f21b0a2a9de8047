package avro

import (
	"encoding/binary"
	"math"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// cursor reads Avro's binary encoding. The first violation is kept in err and
// moves the cursor to the end; what is read after it is zero, so that decoding
// loops need no checks of their own but end soon.
type cursor struct {
	data []byte
	at   int
	err  error
	// column is the top-level column that err is about; empty between columns.
	column string
	// room is how many more bytes array elements may take in memory, where an
	// element that the file stores in a byte or none can be large.
	room int64
}

// What the array elements of some bytes of a file may take in memory: 64 times
// as much, and some for the start.
const (
	expansion     = 64
	freeExpansion = 64 << 20 // 64 MiB
)

func newCursor(data []byte) cursor {
	return cursor{data: data, room: freeExpansion + expansion*int64(len(data))}
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = errs.New(errs.Corrupt, format, args...)
	}
	c.at = len(c.data)
}

func (c *cursor) truncated() { c.fail("a value ends after its block") }

// long reads a variable-length zigzag integer.
func (c *cursor) long() int64 {
	if c.at < len(c.data) {
		if b := c.data[c.at]; b < 0x80 {
			c.at++
			return int64(b>>1) ^ -int64(b&1)
		}
	}
	return c.longSlow()
}

func (c *cursor) longSlow() int64 {
	v, n := binary.Uvarint(c.data[c.at:])
	if n <= 0 {
		if n < 0 {
			c.fail("an integer is longer than 10 bytes")
		} else {
			c.truncated()
		}
		return 0
	}
	c.at += n
	return int64(v>>1) ^ -int64(v&1)
}

func (c *cursor) int() int32 {
	v := c.long()
	if int64(int32(v)) != v {
		c.fail("the int %d has more than 32 bits", v)
		return 0
	}
	return int32(v)
}

func (c *cursor) boolean() bool {
	if c.at >= len(c.data) {
		c.truncated()
		return false
	}
	b := c.data[c.at]
	c.at++
	if b > 1 {
		c.fail("a boolean is the byte %#x", b)
		return false
	}
	return b == 1
}

// take reads n bytes; the result aliases the data and is nil after an error.
func (c *cursor) take(n int) []byte {
	if n > len(c.data)-c.at {
		c.truncated()
		return nil
	}
	b := c.data[c.at : c.at+n : c.at+n]
	c.at += n
	return b
}

// bytes reads a length and as many bytes.
func (c *cursor) bytes() []byte {
	n := c.long()
	if n < 0 || n > int64(len(c.data)-c.at) {
		if n < 0 {
			c.fail("a length is %d", n)
		} else {
			c.truncated()
		}
		return nil
	}
	return c.take(int(n))
}

func (c *cursor) float() float32 {
	if b := c.take(4); b != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (c *cursor) double() float64 {
	if b := c.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// branch reads the index of a union's branch.
func (c *cursor) branch(branches int) int {
	i := c.long()
	if i < 0 || i >= int64(branches) {
		c.fail("a union of %d types has branch %d", branches, i)
		return 0
	}
	return int(i)
}

// block reads the header of one block of an array or map: the number of
// elements, 0 at the end, and the size in bytes when the writer gave it, else
// -1. An element has at least least bytes in the file and takes up to width in
// memory, if it is null.
func (c *cursor) block(least, width int) (n int, size int) {
	count, bytes := c.long(), int64(-1)
	if count < 0 {
		if count == math.MinInt64 {
			c.fail("a block has %d elements", count)
			return 0, -1
		}
		count = -count
		bytes = c.long()
		if bytes < 0 || bytes > int64(len(c.data)-c.at) {
			c.fail("a block of elements has a size of %d bytes", bytes)
			return 0, -1
		}
	}
	if least > 0 && count > int64(len(c.data)-c.at)/int64(least) {
		c.fail("a block of %d elements does not fit into the rest of its file block", count)
		return 0, -1
	}
	if width > 0 {
		if count > c.room/int64(width) {
			c.fail("its array elements take far more memory than the file")
			return 0, -1
		}
		c.room -= count * int64(width)
	}
	return int(count), int(bytes)
}
