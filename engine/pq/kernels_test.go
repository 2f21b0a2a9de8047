package pq

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// encodeHybrid writes values as a random mix of runs and packed groups.
func encodeHybrid(rng *rand.Rand, values []uint32, width uint) []byte {
	var out []byte
	for at := 0; at < len(values); {
		run := 1
		for at+run < len(values) && values[at+run] == values[at] {
			run++
		}
		if run >= 8 || run == len(values)-at && rng.IntN(2) == 0 {
			out = binary.AppendUvarint(out, uint64(run)<<1)
			for i := range (width + 7) / 8 {
				out = append(out, byte(values[at]>>(8*i)))
			}
			at += run
			continue
		}
		groups := 1 + rng.IntN(4)
		out = binary.AppendUvarint(out, uint64(groups)<<1|1)
		packed := make([]byte, groups*int(width))
		for i := range groups * 8 {
			if at+i == len(values) {
				break
			}
			for b := range width {
				if values[at+i]>>b&1 == 1 {
					bit := uint(i)*width + b
					packed[bit>>3] |= 1 << (bit & 7)
				}
			}
		}
		out = append(out, packed...)
		at += groups * 8
	}
	return out
}

func TestHybrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for width := uint(0); width <= 32; width++ {
		for range 20 {
			values := make([]uint32, 1+rng.IntN(700))
			for i := range values {
				if i > 0 && rng.IntN(3) > 0 {
					values[i] = values[i-1]
				} else {
					values[i] = uint32(uint64(rng.Uint32()) & (1<<width - 1))
				}
			}
			encoded := encodeHybrid(rng, values, width)
			var h hybrid
			h.reset(encoded, width)
			got := make([]uint32, len(values))
			for at := 0; at < len(values); {
				n := min(1+rng.IntN(100), len(values)-at)
				if rng.IntN(3) == 0 {
					if h.skip(n) != n {
						t.Fatalf("width %d: cannot skip %d", width, n)
					}
					copy(got[at:], values[at:at+n])
				} else if h.indices(got[at:at+n]) != n {
					t.Fatalf("width %d: cannot decode %d", width, n)
				}
				at += n
			}
			if !slices.Equal(got, values) {
				t.Fatalf("width %d: %v, want %v", width, got, values)
			}
			if width <= 8 {
				h.reset(encoded, width)
				levels := make([]uint8, len(values))
				if h.levels(levels) != len(values) {
					t.Fatalf("width %d: cannot decode levels", width)
				}
				for i, v := range values {
					if uint32(levels[i]) != v {
						t.Fatalf("width %d: level %d is %d, want %d", width, i, levels[i], v)
					}
				}
			}
			if width == 1 {
				h.reset(encoded, width)
				bitmap := make([]byte, len(values)/8+3)
				first := rng.IntN(len(values))
				if h.bits(bitmap, 5, first) != first || h.bits(bitmap, 5+first, len(values)-first) != len(values)-first {
					t.Fatal("cannot decode bits")
				}
				for i, v := range values {
					if uint32(bitmap[(5+i)>>3]>>((5+i)&7)&1) != v {
						t.Fatalf("bit %d is not %d", i, v)
					}
				}
			}
			// What is cut off yields fewer values, none of them made up.
			h.reset(encoded[:rng.IntN(len(encoded)+1)], width)
			n := h.indices(got)
			if !slices.Equal(got[:min(n, len(values))], values[:min(n, len(values))]) {
				t.Fatalf("width %d, cut: %v, want %v", width, got[:n], values[:n])
			}
		}
	}
}

// encodeDelta writes DELTA_BINARY_PACKED.
func encodeDelta(values []int64, block, minis int) []byte {
	out := binary.AppendUvarint(nil, uint64(block))
	out = binary.AppendUvarint(out, uint64(minis))
	out = binary.AppendUvarint(out, uint64(len(values)))
	first := int64(0)
	if len(values) > 0 {
		first = values[0]
	}
	out = binary.AppendVarint(out, first)
	for at := 1; at < len(values); at += block {
		deltas := make([]int64, 0, block)
		least := int64(0)
		for i := at; i < min(at+block, len(values)); i++ {
			d := values[i] - values[i-1]
			if i == at || d < least {
				least = d
			}
			deltas = append(deltas, d)
		}
		out = binary.AppendVarint(out, least)
		per := block / minis
		var packed []byte
		for m := range minis {
			part := deltas[min(m*per, len(deltas)):min((m+1)*per, len(deltas))]
			width := 0
			for _, d := range part {
				width = max(width, new(big.Int).SetUint64(uint64(d-least)).BitLen())
			}
			out = append(out, byte(width))
			if len(part) == 0 {
				continue
			}
			body := make([]byte, per/8*width)
			for i, d := range part {
				for b := range width {
					if uint64(d-least)>>b&1 == 1 {
						bit := i*width + b
						body[bit>>3] |= 1 << (bit & 7)
					}
				}
			}
			packed = append(packed, body...)
		}
		out = append(out, packed...)
	}
	return out
}

func TestDelta(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for bits := 0; bits <= 64; bits++ {
		for _, shape := range [][2]int{{128, 4}, {64, 2}, {256, 1}, {32, 4}} {
			values := make([]int64, rng.IntN(600))
			for i := range values {
				values[i] = int64(rng.Uint64() >> (64 - uint(max(bits, 1))))
				if bits == 0 {
					values[i] = 7
				}
			}
			encoded := append(encodeDelta(values, shape[0], shape[1]), "rest"...)
			var d deltaStream
			if err := d.reset(encoded); err != nil {
				t.Fatal(err)
			}
			whole := d
			if rest, ok := whole.rest(); !ok || string(rest) != "rest" {
				t.Fatalf("%d bits: %q follows", bits, rest)
			}
			got := make([]int64, len(values)+5)
			for at := 0; at < len(values); {
				n := d.next(got[at:min(at+1+rng.IntN(90), len(got))])
				if n == 0 {
					t.Fatalf("%d bits: ends at %d of %d", bits, at, len(values))
				}
				at += n
			}
			if !slices.Equal(got[:len(values)], values) || d.next(got) != 0 {
				t.Fatalf("%d bits in %v: %v, want %v", bits, shape, got, values)
			}
			if err := d.reset(encoded[:rng.IntN(len(encoded)-3)]); err == nil {
				n := d.next(got)
				if !slices.Equal(got[:n], values[:n]) {
					t.Fatalf("%d bits, cut: wrong values", bits)
				}
			}
		}
	}
}

func TestDecimals(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for width := 1; width <= 20; width++ {
		const n = 40
		src := make([]byte, n*width, n*width+slack)
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		want := make([]*big.Int, n)
		for i := range n {
			v := src[i*width : (i+1)*width]
			if width > 16 { // the bytes in front of the last 16 repeat the sign
				for j := range width - 16 {
					v[j] = byte(int8(v[width-16]) >> 7)
				}
			}
			want[i] = new(big.Int).SetBytes(v)
			if v[0] >= 0x80 {
				want[i].Sub(want[i], new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
			}
		}
		convert := decimalFromFixedBytes(width)
		if width <= 8 {
			convert = decimalFromShortBytes(width)
		}
		dst := make([]byte, n*16)
		for _, from := range [][]byte{src, src[:len(src)+8]} {
			if err := convert(dst, from); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				got := decimal128.New(int64(binary.LittleEndian.Uint64(dst[16*i+8:])), binary.LittleEndian.Uint64(dst[16*i:]))
				if got.BigInt().Cmp(want[i]) != 0 {
					t.Fatalf("width %d: %s, want %s", width, got.BigInt(), want[i])
				}
			}
		}
	}
}

func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 3000 {
		n, bit := rng.IntN(200), rng.IntN(17)
		odds := rng.Float64()
		if rng.IntN(4) == 0 {
			odds = float64(rng.IntN(2))
		}
		valid := make([]byte, (bit+n)/8+1)
		want, dense := make([]uint32, n), make([]uint32, n)
		count := 0
		for i := range n {
			dense[i] = rng.Uint32() // what a null slot must not show
			if rng.Float64() < odds {
				valid[(bit+i)>>3] |= 1 << ((bit + i) & 7)
				want[i] = uint32(count + 1)
				dense[count] = want[i]
				count++
			}
		}
		for i := range count {
			dense[i] = uint32(i + 1)
		}
		wide := make([]byte, 4*n)
		for i, v := range dense {
			binary.BigEndian.PutUint32(wide[4*i:], v)
		}
		if spread(dense, valid, bit, count); !slices.Equal(dense, want) {
			t.Fatalf("%v, want %v", dense, want)
		}
		spreadWide(wide, 4, valid, bit, count)
		for i, v := range want {
			if binary.BigEndian.Uint32(wide[4*i:]) != v {
				t.Fatalf("wide slot %d", i)
			}
		}
		ones := 0
		from, to := bit+rng.IntN(n+1), bit+n
		for i := from; i < to; i++ {
			ones += int(valid[i>>3] >> (i & 7) & 1)
		}
		if got := onesIn(valid, from, to); got != ones {
			t.Fatalf("%d ones, want %d", got, ones)
		}
	}
}

func TestPackBools(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for n := range 100 {
		src, dst := make([]byte, n), make([]byte, (n+7)/8)
		for i := range src {
			src[i] = byte(rng.IntN(2))
		}
		packBools(dst, src)
		for i, v := range src {
			if dst[i>>3]>>(i&7)&1 != v {
				t.Fatalf("bit %d of %d", i, n)
			}
		}
	}
}

func TestSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	var w window
	for range 2000 {
		mask := batch.NewMask(1+rng.IntN(300), false)
		odds := rng.Float64()
		var got, want []int
		for i := range mask.Len {
			if rng.Float64() < odds {
				mask.Set(i)
				want = append(want, i)
			}
		}
		w.set(0, 0, mask.Len, mask)
		at := 0
		for _, s := range w.spans {
			if s.take == 0 {
				t.Fatal("an empty span")
			}
			at += s.skip
			for range s.take {
				got = append(got, at)
				at++
			}
		}
		if !slices.Equal(got, want) || w.kept != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}
