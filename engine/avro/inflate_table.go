package avro

import "math/bits"

// decodeTable decodes a prefix code of deflate. The next bits of the input
// index entries:
//
//	literal      literal flag, the byte << 16
//	copy         base of the length or distance << 16
//	second       start of a second-level table << 16, its bits << 8
//	end of block, and codes that mean nothing: exceptional
//
// Bits 0 to 5 are how many bits to consume, the extra ones of a copy included;
// bits 8 to 12 how many of them are the code.
type decodeTable struct {
	entries []uint32
	mask    uint64
	sorted  [maxLitlen]uint16 // used while building
}

const (
	literal     = uint32(1) << 31
	exceptional = uint32(1) << 15
	second      = uint32(1) << 14
	endOfBlock  = uint32(1) << 13
)

// The entries of each symbol, without the bits of its code.
var (
	litlenEntries [maxLitlen]uint32
	distEntries   [maxDist]uint32
	preEntries    [19]uint32
)

// fixed are the tables of the blocks that use the standard's own code.
var fixed struct{ litlen, dist decodeTable }

func init() {
	for i := range 256 {
		litlenEntries[i] = literal | uint32(i)<<16
	}
	litlenEntries[256] = exceptional | endOfBlock
	base := uint32(3)
	for i := 257; i < 285; i++ {
		extra := uint32(0)
		if i >= 265 {
			extra = uint32(i-261) / 4
		}
		litlenEntries[i] = base<<16 | extra
		base += 1 << extra
	}
	litlenEntries[285] = 258 << 16
	litlenEntries[286], litlenEntries[287] = exceptional, exceptional
	base = 1
	for i := range 30 {
		extra := uint32(0)
		if i >= 4 {
			extra = uint32(i-2) / 2
		}
		distEntries[i] = base<<16 | extra
		base += 1 << extra
	}
	distEntries[30], distEntries[31] = exceptional, exceptional
	for i := range preEntries {
		preEntries[i] = uint32(i) << 16
	}

	var lengths [maxLitlen]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	fixed.litlen.entries = make([]uint32, litlenTable)
	fixed.litlen.build(lengths[:], litlenBits, litlenEntries[:])
	for i := range maxDist {
		lengths[i] = 5
	}
	fixed.dist.entries = make([]uint32, distTable)
	fixed.dist.build(lengths[:maxDist], distBits, distEntries[:])
}

// build makes the table of the code with these lengths; false when they are
// none. symbols has the entry of each symbol.
func (t *decodeTable) build(lengths []uint8, tableBits int, symbols []uint32) bool {
	const most = 15
	var count, next [most + 1]uint16
	for _, n := range lengths {
		count[n&most]++
	}
	unused := int(count[0]) // symbols without a code
	longest := most
	for longest > 0 && count[longest] == 0 {
		longest--
	}
	if len(lengths)-unused <= 1 {
		// No code at all, or one of one bit: the other bit means nothing.
		if longest > 1 {
			return false
		}
		t.entries[0], t.entries[1], t.mask = exceptional|1, exceptional|1, 1
		for symbol, n := range lengths {
			if n == 1 {
				t.entries[0] = symbols[symbol] + 1<<8 + 1
			}
		}
		return true
	}
	left := 1 // codes of the current length that are not taken
	for n := 1; n <= longest; n++ {
		next[n] = next[n-1] + count[n-1]
		if left = left<<1 - int(count[n]); left < 0 {
			return false
		}
	}
	if left != 0 {
		return false
	}
	// The symbols in the order of their codes; those without come first, which
	// saves a branch that no processor predicts.
	sorted := t.sorted[:len(lengths)]
	for symbol, n := range lengths {
		at := next[n&most]
		next[n&most] = at + 1
		sorted[at] = uint16(symbol)
	}
	t.fill(sorted[unused:], &count, uint(min(tableBits, longest)), symbols)
	return true
}

// fill enters the codes in their order. Codes come with their first bit
// lowest, so that the next one adds 1 from the other end; while they are
// short, the table is as long as they need and is doubled when they grow.
func (t *decodeTable) fill(sorted []uint16, count *[16]uint16, tableBits uint, symbols []uint32) {
	entries := t.entries
	t.mask = 1<<tableBits - 1
	length := uint(1)
	for count[length] == 0 {
		length++
	}
	code, end := 0, 1<<min(length, tableBits)
	sub, subStart, subBits := -1, 0, uint(0) // the second-level table being filled
	tableEnd := 1 << tableBits
	for _, symbol := range sorted {
		for count[length] == 0 {
			length++
			if length <= tableBits {
				copy(entries[end:2*end], entries[:end])
				end *= 2
			}
		}
		count[length]--
		e := symbols[symbol]
		if length <= tableBits {
			entries[code] = e + uint32(length<<8|length)
		} else {
			rest := length - tableBits
			if prefix := code & int(t.mask); prefix != sub {
				// As long as the codes with this prefix need.
				sub, subStart = prefix, tableEnd
				subBits = rest
				for taken := int(count[length]) + 1; taken < 1<<subBits; {
					subBits++
					taken = taken<<1 + int(count[tableBits+subBits])
				}
				tableEnd += 1 << subBits
				entries[prefix] = uint32(subStart)<<16 | exceptional | second | uint32(subBits<<8|tableBits)
			}
			e += uint32(rest<<8 | rest)
			for i := subStart + code>>tableBits; i < tableEnd; i += 1 << rest {
				entries[i] = e
			}
		}
		// The next code of this length.
		ones := 1<<length - 1
		if code == ones {
			break // the last of all
		}
		bit := 1 << (bits.Len(uint(code^ones)) - 1)
		code = code&(bit-1) | bit
	}
}
