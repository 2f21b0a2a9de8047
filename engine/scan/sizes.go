package scan

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/mem"
)

const (
	// firstRows is the first window of a file whose row width is not known from
	// its types alone; also small enough for a first batch to come early.
	firstRows = 1024
	// growth is how much larger than the window before a window may be, so that
	// one run of small values does not make the next window huge.
	growth = 4
)

// sizer chooses how many rows a window has, and holds the charge for what is
// decoded of it and for what gather holds.
type sizer struct {
	reader   batch.FileReader
	maxRows  int
	maxBytes int64

	rows    int // of the next window
	charged *mem.Reservation
	held    int64 // by gather

	// Bytes of the current window, by whether they were read for all its rows
	// or for the kept ones, and what that means for a row.
	fullBytes, keptBytes   int64
	fullPerRow, keptPerRow int64
	windowRead             bool
}

func newSizer(cfg *Config, pool *mem.Pool, reader batch.FileReader) *sizer {
	s := &sizer{reader: reader, maxRows: cfg.BatchRows, maxBytes: cfg.BatchBytes, charged: pool.ReserveWorkingSet("decoded rows")}
	known := true
	for _, f := range reader.Schema().Fields() {
		width, fixed := fixedWidth(f.Type)
		s.fullPerRow += width
		known = known && fixed
	}
	s.rows = s.maxRows
	if !known {
		s.rows = min(s.rows, firstRows)
	}
	if cfg.Limit != nil && cfg.Filter == nil {
		s.rows = int(min(int64(s.rows), max(*cfg.Limit, 1)))
	}
	return s
}

// fixedWidth is the bytes that a value takes; a guess and false when values
// differ in size.
func fixedWidth(t arrow.DataType) (int64, bool) {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return fixedWidth(t.StorageType())
	case *arrow.StructType:
		total, known := int64(1), true
		for _, f := range t.Fields() {
			width, fixed := fixedWidth(f.Type)
			total, known = total+width, known && fixed
		}
		return total, known
	case arrow.FixedWidthDataType:
		return int64(t.BitWidth()+7)/8 + 1, true
	}
	return 32, false
}

// prepare chooses the next window's size and charges for it.
func (s *sizer) prepare() {
	if s.windowRead {
		s.rows = min(s.maxRows, s.rows*growth)
		s.windowRead = false
	}
	perRow := max(s.fullPerRow+s.keptPerRow, 1)
	s.rows = max(1, int(min(int64(s.rows), s.maxBytes/perRow)))
	s.fullBytes, s.keptBytes = 0, 0
	for s.charged.Resize(s.held+int64(s.rows)*perRow) != nil {
		if s.rows == 1 {
			// A single row must fit: without it there is no progress.
			s.charged.ForceGrow(s.held + perRow - s.charged.Size())
			break
		}
		s.rows = max(1, s.rows/2)
	}
	if limiter, ok := s.reader.(batch.WindowLimiter); ok {
		limiter.LimitWindow(s.rows)
	}
}

// readFull and readKept account for an array that was decoded for all rows of
// the window, or for the kept ones.
func (s *sizer) readFull(a arrow.Array) { s.fullBytes += batch.ArrayBytes(a) }
func (s *sizer) readKept(a arrow.Array) { s.keptBytes += batch.ArrayBytes(a) }

// window ends the accounting of a window of n rows, of which kept are kept.
func (s *sizer) window(n, kept int) {
	s.windowRead = true
	if n > 0 {
		s.fullPerRow = s.fullBytes / int64(n)
	}
	if kept > 0 && s.keptBytes > 0 {
		s.keptPerRow = s.keptBytes / int64(kept)
	}
	s.charge()
}

// hold changes what gather holds.
func (s *sizer) hold(bytes int64) {
	s.held = bytes
	s.charge()
}

// charge makes the reservation cover what exists by now, whatever the limit:
// it is there already.
func (s *sizer) charge() {
	if missing := s.held + s.fullBytes + s.keptBytes - s.charged.Size(); missing > 0 {
		s.charged.ForceGrow(missing)
	}
}

func (s *sizer) free() { s.charged.Free() }
