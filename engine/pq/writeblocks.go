package pq

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	smallestBlock = 4 << 10   // 4 KiB: what a column of few bytes takes
	largestBlock  = 256 << 10 // 256 KiB
	blockSizes    = 7         // powers of two
)

// blockPool keeps the memory of encoded pages from row group to row group.
type blockPool struct {
	alloc memory.Allocator

	mu   sync.Mutex
	free [blockSizes][][]byte // by size
	held int                  // bytes of all blocks, free or used
}

// take returns a block of the size class.
func (p *blockPool) take(class int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free[class]); n > 0 {
		block := p.free[class][n-1]
		p.free[class] = p.free[class][:n-1]
		return block
	}
	p.held += smallestBlock << class
	return p.alloc.Allocate(smallestBlock << class)
}

func (p *blockPool) give(class int, block []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[class] = append(p.free[class], block)
}

// trim gives the free blocks back to the allocator.
func (p *blockPool) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class, blocks := range p.free {
		for _, block := range blocks {
			p.held -= len(block)
			p.alloc.Free(block)
		}
		p.free[class] = nil
	}
}

func (p *blockPool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// blockList is bytes in blocks of growing size, so that appending never copies
// what is there.
type blockList struct {
	pool   *blockPool
	blocks [][]byte
	last   int // bytes used of the last block
	size   int
}

func blockClass(i int) int { return min(i, blockSizes-1) }

func (b *blockList) append(data []byte) {
	b.size += len(data)
	for len(data) > 0 {
		n := len(b.blocks)
		if n == 0 || b.last == len(b.blocks[n-1]) {
			b.blocks = append(b.blocks, b.pool.take(blockClass(n)))
			b.last, n = 0, n+1
		}
		k := copy(b.blocks[n-1][b.last:], data)
		b.last += k
		data = data[k:]
	}
}

// each yields the bytes in order, block by block.
func (b *blockList) each(visit func([]byte) error) error {
	for i, block := range b.blocks {
		if i == len(b.blocks)-1 {
			block = block[:b.last]
		}
		if err := visit(block); err != nil {
			return err
		}
	}
	return nil
}

// reset gives the blocks back to the pool.
func (b *blockList) reset() {
	for i, block := range b.blocks {
		b.pool.give(blockClass(i), block)
	}
	clear(b.blocks)
	b.blocks, b.last, b.size = b.blocks[:0], 0, 0
}
