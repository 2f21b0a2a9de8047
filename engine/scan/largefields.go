package scan

import (
	"maps"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// found is a batch on its way to Next.
type found struct {
	record arrow.RecordBatch
	// large comes with the first batch of a part: see Scan.LargeFields.
	large []int
}

// largeFields collects over the files of a scan.
type largeFields struct {
	mu  sync.Mutex
	ids map[int]struct{}
}

func (l *largeFields) add(ids []int) {
	if len(ids) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil {
		l.ids = map[int]struct{}{}
	}
	for _, id := range ids {
		l.ids[id] = struct{}{}
	}
}

// LargeFields are the ids, ascending, of fields that a file with rows among
// those returned so far holds with 64-bit offsets, or lacks. A reader that takes
// types from files, as pyiceberg does, returns these fields with 64-bit offsets
// and others with 32-bit ones. May be called at any time.
func (s *Scan) LargeFields() []int {
	s.large.mu.Lock()
	defer s.large.mu.Unlock()
	return slices.Sorted(maps.Keys(s.large.ids))
}

// largeFields are those of the part's file.
func (p *part) largeFields() []int {
	if !p.scan.varies {
		return nil
	}
	large := p.projection.AbsentFields()
	if origin, ok := p.file.File.(interface{ LargeFields() []int }); ok {
		large = append(large, origin.LargeFields()...)
	}
	return large
}

// variesInOffsets reports whether any of the fields is or has a text, a binary
// or a list.
func variesInOffsets(fields []iceberg.NestedField) bool {
	for _, f := range fields {
		switch t := f.Type.(type) {
		case iceberg.StringType, iceberg.BinaryType, *iceberg.ListType:
			return true
		case *iceberg.StructType:
			if variesInOffsets(t.FieldList) {
				return true
			}
		case *iceberg.MapType:
			if variesInOffsets([]iceberg.NestedField{t.KeyField(), t.ValueField()}) {
				return true
			}
		}
	}
	return false
}
