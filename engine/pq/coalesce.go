package pq

import (
	"cmp"
	"context"
	"slices"
)

const (
	// coalesceGap is how many unwanted bytes may lie between column chunks that
	// are read together.
	coalesceGap = 32 << 10 // 32 KiB
	// coalesceBlocks is how many times the size of an ordinary read they may
	// have together.
	coalesceBlocks = 4
)

// wantedChunk is a column chunk that is about to be opened.
type wantedChunk struct {
	leaf       *leafReader
	start, end int64
}

// openTogether opens those leaves that are not yet open in the row group and
// whose column chunks are small and lie close together, with one read for each
// group of neighbours. The others are left to be opened one by one.
func (r *reader) openTogether(ctx context.Context, rowGroup int, leaves []*leafReader) error {
	block := int64(r.file.opts.ReadSize)
	var wanted []wantedChunk
	for _, l := range leaves {
		if l.rowGroup == rowGroup {
			continue
		}
		_, start, end, err := r.file.chunkOf(rowGroup, l.leaf)
		if err == nil && end > start && end-start <= block { // errors are its own opening's
			wanted = append(wanted, wantedChunk{l, start, end})
		}
	}
	slices.SortFunc(wanted, func(a, b wantedChunk) int { return cmp.Compare(a.start, b.start) })
	for len(wanted) > 0 {
		n, end := 1, wanted[0].end
		for n < len(wanted) && wanted[n].start >= end && wanted[n].start-end <= coalesceGap && wanted[n].end-wanted[0].start <= coalesceBlocks*block {
			end = wanted[n].end
			n++
		}
		if n > 1 {
			if err := r.readTogether(ctx, rowGroup, wanted[:n]); err != nil {
				return err
			}
		}
		wanted = wanted[n:]
	}
	return nil
}

func (r *reader) readTogether(ctx context.Context, rowGroup int, chunks []wantedChunk) error {
	start, end := chunks[0].start, chunks[len(chunks)-1].end
	if r.together.grow(int(end-start), 0) != nil {
		return nil // no room: they are read apart
	}
	buf := r.together.buf[:end-start]
	if err := readInto(ctx, r.file.source, buf, start); err != nil {
		return err
	}
	for _, c := range chunks {
		if err := c.leaf.open(ctx, rowGroup); err != nil {
			return err
		}
		if err := c.leaf.pages.source.prime(ctx, buf[c.start-start:c.end-start]); err != nil {
			return err
		}
	}
	return nil
}
