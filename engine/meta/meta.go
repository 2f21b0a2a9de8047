// Package meta reads table metadata files: the JSON documents that hold a
// table's schemas, partition specs, sort orders, snapshots and references.
//
//	metadata.json(.gz) ──Parse──> Table ──SnapshotByRef("main")──> Snapshot ──> package plan
//	                                └──CurrentSchema, SpecByID, Field(id) ...
//
// Format versions 1 to 3 are read into one shape: version 1's single schema,
// single partition spec and inline manifest list become a history of one.
// A Table is immutable and safe for concurrent use.
package meta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// MainBranch is the reference that readers use unless told otherwise.
const MainBranch = "main"

// The newest format version that Parse reads.
const maxFormatVersion = 3

// nameMappingProperty holds the table's name mapping as JSON.
const nameMappingProperty = "schema.name-mapping.default"

// Table is the content of one metadata file.
type Table struct {
	FormatVersion int
	UUID          string
	// Location is the table's base location, as stored.
	Location string
	// MetadataLocation is where the document was read from; it may be empty.
	MetadataLocation   string
	LastSequenceNumber int64
	LastColumnID       int
	LastPartitionID    int
	LastUpdatedMillis  int64
	// NextRowID is the next row id to assign (v3); 0 before.
	NextRowID          int64
	CurrentSchemaID    int
	DefaultSpecID      int
	DefaultSortOrderID int
	CurrentSnapshotID  *int64
	Properties         map[string]string
	Refs               map[string]Ref
	SnapshotLog        []SnapshotLogEntry

	schemas    []*iceberg.Schema // in the document's order
	specs      []iceberg.PartitionSpec
	sortOrders []SortOrder
	snapshots  []*Snapshot

	snapshotByID map[int64]*Snapshot
	fields       map[int]fieldOrigin // the newest schema that has each field id

	nameMapping    iceberg.NameMapping
	nameMappingErr error
}

// fieldOrigin is a field with the schema it was taken from.
type fieldOrigin struct {
	field  iceberg.NestedField
	schema *iceberg.Schema
}

// Ref is a branch or tag.
type Ref struct {
	SnapshotID int64  `json:"snapshot-id"`
	Type       string `json:"type"` // "branch" or "tag"
}

// SnapshotLogEntry says when a snapshot became the current one.
type SnapshotLogEntry struct {
	SnapshotID      int64 `json:"snapshot-id"`
	TimestampMillis int64 `json:"timestamp-ms"`
}

// Snapshot is the state of the table after one commit.
type Snapshot struct {
	ID              int64             `json:"snapshot-id"`
	ParentID        *int64            `json:"parent-snapshot-id"`
	SequenceNumber  int64             `json:"sequence-number"`
	TimestampMillis int64             `json:"timestamp-ms"`
	Summary         map[string]string `json:"summary"`
	// ManifestList is the location of the manifest list. Old version 1
	// metadata lists the manifests inline instead.
	ManifestList string   `json:"manifest-list"`
	Manifests    []string `json:"manifests"`
	SchemaID     *int     `json:"schema-id"`
	FirstRowID   *int64   `json:"first-row-id"`
	AddedRows    *int64   `json:"added-rows"`
	// KeyID names the key of an encrypted manifest list (v3).
	KeyID string `json:"key-id"`
}

// Operation is the snapshot's operation: append, replace, overwrite or delete;
// empty when the summary does not say.
func (s *Snapshot) Operation() string { return s.Summary["operation"] }

// CurrentSchema is the schema that new data is written with.
func (t *Table) CurrentSchema() *iceberg.Schema {
	s, _ := t.SchemaByID(t.CurrentSchemaID) // Parse has checked it
	return s
}

// Schemas are all schemas that the table has had, in the document's order.
func (t *Table) Schemas() []*iceberg.Schema { return slices.Clone(t.schemas) }

// SchemaByID finds a schema.
func (t *Table) SchemaByID(id int) (*iceberg.Schema, bool) {
	for _, s := range t.schemas {
		if s.ID == id {
			return s, true
		}
	}
	return nil, false
}

// SchemaOf is the schema that the snapshot was written with, or the current
// one when the snapshot is nil or names none.
func (t *Table) SchemaOf(s *Snapshot) *iceberg.Schema {
	if s != nil && s.SchemaID != nil {
		if schema, ok := t.SchemaByID(*s.SchemaID); ok {
			return schema
		}
	}
	return t.CurrentSchema()
}

// Field finds a field by id, at any nesting level, in the newest schema that
// has it: the current one, else the one with the highest id. Dropped columns
// are found too, since equality deletes may still name them.
func (t *Table) Field(id int) (iceberg.NestedField, bool) {
	origin, ok := t.fields[id]
	return origin.field, ok
}

// SchemaWithField is the schema that Field takes the field from.
func (t *Table) SchemaWithField(id int) (*iceberg.Schema, bool) {
	origin, ok := t.fields[id]
	return origin.schema, ok
}

// Specs are all partition specs, in the document's order.
func (t *Table) Specs() []iceberg.PartitionSpec { return slices.Clone(t.specs) }

// SpecByID finds a partition spec.
func (t *Table) SpecByID(id int) (*iceberg.PartitionSpec, bool) {
	for i := range t.specs {
		if t.specs[i].ID() == id {
			return &t.specs[i], true
		}
	}
	return nil, false
}

// PartitionTypes are the types of a spec's partition values, in the order of
// its fields: what each transform makes of the newest type of its source
// column. A field whose source column no schema knows has UnknownType where
// the transform's type depends on it.
func (t *Table) PartitionTypes(spec *iceberg.PartitionSpec) []iceberg.Type {
	types := make([]iceberg.Type, spec.NumFields())
	for i := range types {
		field := spec.Field(i)
		var source iceberg.Type = iceberg.UnknownType{}
		if f, ok := t.Field(field.SourceID()); ok {
			source = f.Type
		}
		types[i] = field.Transform.ResultType(source)
	}
	return types
}

// SortOrderByID finds a sort order. Order 0, unsorted, always exists.
func (t *Table) SortOrderByID(id int) (SortOrder, bool) {
	for _, o := range t.sortOrders {
		if o.ID == id {
			return o, true
		}
	}
	return SortOrder{}, id == 0
}

// Snapshots are all snapshots, in the document's order.
func (t *Table) Snapshots() []*Snapshot { return slices.Clone(t.snapshots) }

// Snapshot finds a snapshot by id.
func (t *Table) Snapshot(id int64) (*Snapshot, error) {
	if s, ok := t.snapshotByID[id]; ok {
		return s, nil
	}
	return nil, t.errorf(errs.NotFound, "snapshot %d does not exist; the table has %s", id, count(len(t.snapshots), "snapshot"))
}

// CurrentSnapshot is the snapshot that readers see; nil for a table without one.
func (t *Table) CurrentSnapshot() *Snapshot {
	if t.CurrentSnapshotID == nil {
		return nil
	}
	return t.snapshotByID[*t.CurrentSnapshotID] // Parse has checked it
}

// SnapshotByRef finds the snapshot of a branch or tag. The main branch of a
// table without snapshots gives nil and no error.
func (t *Table) SnapshotByRef(name string) (*Snapshot, error) {
	if ref, ok := t.Refs[name]; ok {
		return t.Snapshot(ref.SnapshotID)
	}
	if name == MainBranch {
		return t.CurrentSnapshot(), nil
	}
	known := []string{MainBranch}
	for other := range t.Refs {
		if other != MainBranch {
			known = append(known, other)
		}
	}
	slices.Sort(known)
	if more := len(known) - 20; more > 0 {
		known = append(known[:20], fmt.Sprintf("and %d more", more))
	}
	return nil, t.errorf(errs.NotFound, "there is no branch or tag %q; known are %s", name, strings.Join(known, ", "))
}

// NameMapping is the mapping from column names to field ids for data files
// that carry none; nil when the table has none. A mapping that cannot be
// parsed is an error only here, since most reads do not need it.
func (t *Table) NameMapping() (iceberg.NameMapping, error) { return t.nameMapping, t.nameMappingErr }

func (t *Table) errorf(code errs.Code, format string, args ...any) error {
	return errs.At(code, "read table metadata", t.MetadataLocation, format, args...)
}

// count renders "1 snapshot", "3 snapshots".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// indexFields fills t.fields, newest schema first.
func (t *Table) indexFields() error {
	newestFirst := slices.Clone(t.schemas)
	slices.SortStableFunc(newestFirst, func(a, b *iceberg.Schema) int {
		if aCurrent, bCurrent := a.ID == t.CurrentSchemaID, b.ID == t.CurrentSchemaID; aCurrent != bCurrent {
			if aCurrent {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.ID, a.ID)
	})
	t.fields = map[int]fieldOrigin{}
	for _, s := range newestFirst {
		flat, err := s.FlatFields()
		if err != nil {
			return t.errorf(errs.Corrupt, "schema %d: %v", s.ID, err)
		}
		for f := range flat {
			if _, known := t.fields[f.ID]; !known {
				t.fields[f.ID] = fieldOrigin{field: f, schema: s}
			}
		}
	}
	return nil
}

// parseNameMapping keeps its error for NameMapping.
func (t *Table) parseNameMapping() {
	text, ok := t.Properties[nameMappingProperty]
	if !ok {
		return
	}
	err := checkDepth([]byte(text))
	if err == nil {
		err = json.Unmarshal([]byte(text), &t.nameMapping)
	}
	if err != nil {
		t.nameMapping = nil
		t.nameMappingErr = t.errorf(errs.Corrupt, "the table property %s is not a name mapping: %v", nameMappingProperty, jsonError(err, "a name mapping is a JSON array"))
	}
}
