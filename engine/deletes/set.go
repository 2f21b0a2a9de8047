package deletes

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/keys"
)

// Set is the deletes of one task. It is used by one goroutine at a time.
type Set struct {
	resolver *Resolver
	sequence int64       // the data file's data sequence number
	own      *ownDeletes // may be nil
	cursors  []*cursor
	tables   []lookup
	fields   []iceberg.NestedField

	workspace keys.Workspace
	arrays    []arrow.Array
}

// lookup is one key table with the rows to look up in it.
type lookup struct {
	table *keyTable
	rows  *keys.Rows
}

func (s *Set) addPositions(p positionIndex, path string) {
	if set := p.byPath[path]; set != nil && !set.bitmap.IsEmpty() {
		s.cursors = append(s.cursors, &cursor{bitmap: set.bitmap})
	}
}

func (s *Set) addTable(t *keyTable) {
	for _, l := range s.tables {
		if l.table == t {
			return
		}
	}
	t.mu.RLock()
	empty := t.table.Len() == 0
	t.mu.RUnlock()
	if empty {
		return
	}
	s.tables = append(s.tables, lookup{table: t, rows: t.layout.NewRows()})
	s.fields = appendFields(s.fields, t.fields)
}

// appendFields appends the fields that are not there yet.
func appendFields(fields, more []iceberg.NestedField) []iceberg.NestedField {
	for _, field := range more {
		if !slices.ContainsFunc(fields, func(f iceberg.NestedField) bool { return f.ID == field.ID }) {
			fields = append(fields, field)
		}
	}
	return fields
}

// Fields are the key columns, by field id and in the type of the newest
// schema that has the id, that Apply may ask for.
func (s *Set) Fields() []iceberg.NestedField { return s.fields }

// Apply clears the deleted rows of a window from keep, whose bit 0 is the row
// at window.Start. column returns the values of a key column for every row of
// the window, kept or not: the leaf array, null where a parent struct is null;
// it is called only when rows are left that a key may delete, and keeps the
// ownership of the array. It may be called again for the same column.
func (s *Set) Apply(ctx context.Context, window batch.Range, column func(fieldID int) (arrow.Array, error), keep *batch.Mask) error {
	for _, c := range s.cursors {
		c.clear(window, keep)
	}
	for _, l := range s.tables {
		if keep.Count() == 0 {
			return nil
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := s.exclude(l, column, keep); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) exclude(l lookup, column func(fieldID int) (arrow.Array, error), keep *batch.Mask) error {
	s.arrays = s.arrays[:0]
	for _, field := range l.table.layout.Fields() {
		array, err := column(field.ID)
		if err != nil {
			return err
		}
		s.arrays = append(s.arrays, array)
	}
	if err := l.rows.Bind(s.arrays); err != nil {
		return err
	}
	l.table.mu.RLock()
	defer l.table.mu.RUnlock()
	return l.table.table.Exclude(&s.workspace, l.rows, s.sequence, keep)
}

// Close gives back what only this task needed. Idempotent.
func (s *Set) Close() {
	if s.own != nil {
		s.resolver.releaseOwn(s.own)
	}
	s.own, s.cursors, s.tables, s.arrays = nil, nil, nil, nil
}
