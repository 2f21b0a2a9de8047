package avro

// skipOp passes over one part of a value. Records are flattened into their
// fields' operations, and neighbours of fixed size become one.
type skipOp struct {
	kind  skipKind
	size  int        // skipFixed: bytes
	inner []skipOp   // skipOptional, skipBlocks: of the value or element
	null  int        // skipOptional: the branch that is null
	each  [][]skipOp // skipUnion: of each branch
	least int        // skipBlocks: the least size of an element
}

type skipKind uint8

const (
	skipFixed skipKind = iota
	skipVarint
	skipBytes
	skipOptional
	skipBlocks
	skipUnion
)

// skips appends the operations that pass over a value of a type.
func skips(ops []skipOp, n *node) []skipOp {
	switch n.kind {
	case kindNull:
		return ops
	case kindBoolean:
		return skipBytesOf(ops, 1)
	case kindFloat:
		return skipBytesOf(ops, 4)
	case kindDouble:
		return skipBytesOf(ops, 8)
	case kindFixed:
		return skipBytesOf(ops, n.size)
	case kindInt, kindLong, kindEnum:
		return append(ops, skipOp{kind: skipVarint})
	case kindBytes, kindString:
		return append(ops, skipOp{kind: skipBytes})
	case kindArray:
		return append(ops, skipOp{kind: skipBlocks, inner: skips(nil, n.item), least: n.item.minSize})
	case kindMap:
		return append(ops, skipOp{kind: skipBlocks, inner: skips([]skipOp{{kind: skipBytes}}, n.item), least: 1 + n.item.minSize})
	case kindRecord:
		for _, f := range n.fields {
			ops = skips(ops, f.node)
		}
		return ops
	}
	if inner, null, ok := n.optional(); ok && null >= 0 {
		return append(ops, skipOp{kind: skipOptional, inner: skips(nil, inner), null: null})
	}
	op := skipOp{kind: skipUnion}
	for _, b := range n.branches {
		op.each = append(op.each, skips(nil, b))
	}
	return append(ops, op)
}

func skipBytesOf(ops []skipOp, size int) []skipOp {
	if last := len(ops) - 1; last >= 0 && ops[last].kind == skipFixed {
		ops[last].size += size
		return ops
	}
	return append(ops, skipOp{kind: skipFixed, size: size})
}

func (c *cursor) skip(ops []skipOp) {
	for i := range ops {
		op := &ops[i]
		switch op.kind {
		case skipFixed:
			c.take(op.size)
		case skipVarint:
			c.skipVarint()
		case skipBytes:
			c.bytes()
		case skipOptional:
			if c.branch(2) != op.null {
				c.skip(op.inner)
			}
		case skipBlocks:
			c.skipBlocks(op)
		case skipUnion:
			c.skip(op.each[c.branch(len(op.each))])
		}
	}
}

// skipVarint passes over an integer without looking at its value.
func (c *cursor) skipVarint() {
	for i, b := range c.data[c.at:] {
		if b < 0x80 {
			c.at += i + 1
			return
		}
		if i == 9 {
			break
		}
	}
	c.longSlow() // tells what is wrong
}

func (c *cursor) skipBlocks(op *skipOp) {
	for {
		n, size := c.block(op.least, 0)
		switch {
		case n == 0:
			return
		case size >= 0:
			c.take(size)
		case op.least > 0:
			for ; n > 0; n-- {
				c.skip(op.inner)
			}
		}
	}
}
