package pq

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// BloomFilter tells of values that a leaf surely does not have in a row group.
type BloomFilter struct {
	leaf   *leaf
	blocks []byte // of 32 bytes
}

const (
	bloomBlock = 32
	// bloomHeaderGuess is more than a filter's header takes.
	bloomHeaderGuess = 64
	// maxBloomFilter is the most that writers allow a filter to take.
	maxBloomFilter = 128 << 20 // 128 MiB
)

// BloomFilter reads the filter of a leaf in one row group; nil when there is
// none, or one of an unknown kind. The caller charges for its Size.
func (f *File) BloomFilter(ctx context.Context, rowGroup, leaf int) (*BloomFilter, error) {
	l, c := f.schema.leaves[leaf], &f.meta.rowGroups[rowGroup].columns[leaf]
	if c.bloomOffset <= 0 || c.encrypted || c.physical != l.physical {
		return nil, nil
	}
	b, err := f.readBloomFilter(ctx, c, l)
	return b, errs.Wrap(err, "read", f.path)
}

func (f *File) readBloomFilter(ctx context.Context, c *columnChunk, l *leaf) (*BloomFilter, error) {
	if c.bloomOffset >= f.dataEnd {
		return nil, corrupt("a Bloom filter at offset %d of %d", c.bloomOffset, f.dataEnd)
	}
	head, err := readRange(ctx, f.source, c.bloomOffset, min(c.bloomOffset+bloomHeaderGuess, f.dataEnd))
	if err != nil {
		return nil, err
	}
	t := &thriftReader{buf: head}
	size, known := int32(-1), 0
	for id, typ := range t.fields() {
		switch id {
		case 1:
			size = t.int32(typ)
		case 2, 3, 4: // algorithm, hash, compression: unions whose first member is the one in use
			for member, typ := range t.structure(typ) {
				if member == 1 {
					known++
				}
				t.skip(typ)
			}
		default:
			t.skip(typ)
		}
	}
	start := c.bloomOffset + int64(t.pos)
	if t.failed || size <= 0 || size > maxBloomFilter || size%bloomBlock != 0 || start+int64(size) > f.dataEnd {
		return nil, corrupt("the Bloom filter at offset %d cannot be decoded", c.bloomOffset)
	}
	if known != 3 {
		return nil, nil
	}
	blocks, err := readRange(ctx, f.source, start, start+int64(size))
	if err != nil {
		return nil, err
	}
	return &BloomFilter{leaf: l, blocks: blocks}, nil
}

// Size is the bytes that the filter holds.
func (b *BloomFilter) Size() int64 { return int64(len(b.blocks)) }

// MayContain reports whether the column may have a value, which is in
// Iceberg's single-value serialisation of the column's type or of one that it
// was promoted to. A type that the filter cannot be asked about may.
func (b *BloomFilter) MayContain(value []byte) bool {
	stored, ok := b.leaf.plainValue(value)
	if stored == nil {
		return ok
	}
	hash := xxhash.Sum64(stored)
	block := b.blocks[bloomBlock*int((hash>>32)*uint64(len(b.blocks)/bloomBlock)>>32):]
	for i, salt := range bloomSalts {
		word := binary.LittleEndian.Uint32(block[4*i:])
		if word>>(uint32(hash)*salt>>27)&1 == 0 {
			return false
		}
	}
	return true
}

// bloomSalts are the format's, one for each word of a block.
var bloomSalts = [8]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

// plainValue is a value as the leaf stores it; nil when no stored value equals
// it (false), or when equal values may be stored differently (true).
func (l *leaf) plainValue(value []byte) (stored []byte, unknown bool) {
	switch l.typ.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.DATE32, arrow.INT64:
		var v int64
		switch len(value) {
		case 4:
			v = int64(int32(binary.LittleEndian.Uint32(value)))
		case 8:
			v = int64(binary.LittleEndian.Uint64(value))
		default:
			return nil, true
		}
		if l.physical == physInt64 {
			return binary.LittleEndian.AppendUint64(nil, uint64(v)), false
		}
		if v != int64(int32(v)) {
			return nil, false
		}
		return binary.LittleEndian.AppendUint32(nil, uint32(v)), false
	case arrow.TIMESTAMP, arrow.TIME64:
		if l.physical != physInt64 || l.logical.unit != micros || len(value) != 8 {
			return nil, true
		}
		return value, false
	case arrow.FLOAT32:
		switch len(value) {
		case 4:
			return plainFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(value))), value)
		case 8:
			v := math.Float64frombits(binary.LittleEndian.Uint64(value))
			if float64(float32(v)) != v && v == v {
				return nil, false
			}
			return plainFloat(v, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))))
		}
	case arrow.FLOAT64:
		if len(value) == 8 {
			return plainFloat(math.Float64frombits(binary.LittleEndian.Uint64(value)), value)
		}
	case arrow.STRING, arrow.BINARY:
		return append([]byte{}, value...), false
	case arrow.FIXED_SIZE_BINARY:
		if len(value) != int(l.length) {
			return nil, false
		}
		return value, false
	}
	return nil, true
}

// plainFloat leaves out the floats of which several count as equal.
func plainFloat(v float64, stored []byte) ([]byte, bool) {
	if v == 0 || v != v {
		return nil, true
	}
	return stored, false
}
