package keys

import "math/bits"

// filterSlots is how many table slots share one filter word. At the table's
// greatest load that is four keys of four bits in 64: about 1 % of absent keys pass.
const filterSlots = 5

// filter is a Bloom filter whose bits for one key lie in one word, so that a
// probe costs at most one cache miss.
type filter []uint64

// filterBits picks four bits of a word by the low bits of a hash; the word
// itself is picked by the high ones.
func filterBits(hash uint64) uint64 {
	return 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63)
}

func (f filter) add(hash uint64) { f[reduce(hash, uint64(len(f)))] |= filterBits(hash) }

func (f filter) has(hash uint64) bool {
	want := filterBits(hash)
	return f[reduce(hash, uint64(len(f)))]&want == want
}

// candidates appends to chosen the index of every hash that may be in the
// table. chosen has room for all of them.
func (f filter) candidates(hashes []uint64, chosen *[blockRows]uint16) []uint16 {
	n, size := 0, uint64(len(f))
	for j, h := range hashes {
		chosen[n&(blockRows-1)] = uint16(j)
		want := filterBits(h)
		if f[reduce(h, size)]&want == want {
			n++
		}
	}
	return chosen[:n]
}

// candidatesOfWords is candidates for keys of one word, hashed on the way.
func (f filter) candidatesOfWords(words []uint64, seed uint64, hashes *[blockRows]uint64, chosen *[blockRows]uint16) []uint16 {
	n, size := 0, uint64(len(f))
	seed = bits.RotateLeft64(seed, 23)
	for j, w := range words {
		h := fold(seed ^ w)
		hashes[j&(blockRows-1)] = h
		chosen[n&(blockRows-1)] = uint16(j)
		want := filterBits(h)
		if f[(h>>32)*size>>32]&want == want {
			n++
		}
	}
	return chosen[:n]
}

// reduce maps a hash to [0, size) by its high 32 bits. Sizes are at most maxSlots.
func reduce(hash, size uint64) uint64 { return (hash >> 32) * size >> 32 }
