package pq

import (
	"encoding/binary"
	"math/bits"
)

// bloomBuilder fills a split-block Bloom filter. How many distinct values will
// come is not known, so it starts with the largest size allowed and is folded
// in the end: a block of the half as large filter is the union of two
// neighbours, since a hash chooses its block by its high bits.
type bloomBuilder struct {
	rate   float64 // of false positives to aim at
	blocks []byte
}

// newBloomBuilder makes an empty filter.
func newBloomBuilder(o BloomOptions) *bloomBuilder {
	setDefault(&o.FalsePositives, defaultFalsePositives)
	setDefault(&o.MaxBytes, defaultBloomBytes)
	size := bloomBlock
	for 2*size <= min(o.MaxBytes, maxBloomFilter) {
		size *= 2
	}
	return &bloomBuilder{rate: o.FalsePositives, blocks: make([]byte, size)}
}

// add puts in a value by the hash of its encoding PLAIN, without a length.
func (b *bloomBuilder) add(hash uint64) {
	block := b.blocks[bloomBlock*int((hash>>32)*uint64(len(b.blocks)/bloomBlock)>>32):]
	for i, salt := range bloomSalts {
		word := block[4*i : 4*i+4]
		binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)|1<<(uint32(hash)*salt>>27))
	}
}

// falsePositives is the chance that a filter claims a value that it was not
// given: in each of the eight words of a block one bit must be set by accident.
func falsePositives(blocks []byte) float64 {
	sum := 0.0
	for at := 0; at < len(blocks); at += bloomBlock {
		chance := 1.0
		for word := at; word < at+bloomBlock; word += 4 {
			chance *= float64(bits.OnesCount32(binary.LittleEndian.Uint32(blocks[word:]))) / 32
		}
		sum += chance
	}
	return sum * bloomBlock / float64(len(blocks))
}

// finish returns the filter with its header, folded as far as the rate of
// false positives allows, and empties the builder.
func (b *bloomBuilder) finish() []byte {
	filter := append([]byte(nil), b.blocks...)
	for len(filter) > bloomBlock {
		half := make([]byte, len(filter)/2)
		for i := range half {
			pair := i/bloomBlock*2*bloomBlock + i%bloomBlock
			half[i] = filter[pair] | filter[pair+bloomBlock]
		}
		if falsePositives(half) > b.rate {
			break
		}
		filter = half
	}
	clear(b.blocks)
	var t thriftEncoder
	t.element(func() {
		t.int32(1, int32(len(filter)))
		// The one algorithm, hash function and compression that the format has.
		for id := int16(2); id <= 4; id++ {
			t.structure(id, func() { t.empty(1) })
		}
	})
	return append(t.buf, filter...)
}
