package pq

import (
	"math/bits"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// span is a stretch of consecutive rows or values: some to pass over, then
// some to take.
type span struct{ skip, take int }

// window is what a Read takes of the current window.
type window struct {
	rowGroup int
	start    int64 // the first row, counted in the row group
	rows     int
	kept     int
	spans    []span // the kept rows; what follows the last of them is left out
}

// set makes w the window of rows that starts at row start of a row group; nil
// keeps all rows.
func (w *window) set(rowGroup int, start int64, rows int, keep *batch.Mask) {
	*w = window{rowGroup: rowGroup, start: start, rows: rows, kept: rows, spans: w.spans[:0]}
	if keep == nil {
		w.spans = append(w.spans, span{take: rows})
		return
	}
	w.kept = 0
	for at := 0; ; {
		first := nextBit(keep, at, true)
		if first == keep.Len {
			return
		}
		end := nextBit(keep, first, false)
		w.spans = append(w.spans, span{skip: first - at, take: end - first})
		w.kept += end - first
		at = end
	}
}

// nextBit is the first row from from on that is kept, or not kept; Len when
// there is none.
func nextBit(keep *batch.Mask, from int, kept bool) int {
	flip := ^uint64(0)
	if kept {
		flip = 0
	}
	for at := from; at < keep.Len; at = at&^63 + 64 {
		if word := (keep.Words[at>>6] ^ flip) >> (at & 63); word != 0 {
			return min(at+bits.TrailingZeros64(word), keep.Len)
		}
	}
	return keep.Len
}
