package meta

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

const (
	// MaxSize bounds a metadata document, also after decompression. Tables with
	// tens of thousands of snapshots stay well below.
	MaxSize = 512 << 20 // 512 MiB
	// maxDepth bounds the nesting of JSON. A struct field nests three levels
	// deep, so this leaves room for schemas of a hundred nested levels while
	// decoders that recurse stay shallow.
	maxDepth = 512
)

// document is a metadata file as it is written; pointers and raw messages are
// for what may be absent.
type document struct {
	FormatVersion      *int               `json:"format-version"`
	UUID               string             `json:"table-uuid"`
	Location           string             `json:"location"`
	LastSequenceNumber int64              `json:"last-sequence-number"`
	LastUpdatedMillis  int64              `json:"last-updated-ms"`
	LastColumnID       int                `json:"last-column-id"`
	LastPartitionID    int                `json:"last-partition-id"`
	NextRowID          int64              `json:"next-row-id"`
	Schema             json.RawMessage    `json:"schema"` // v1
	Schemas            []json.RawMessage  `json:"schemas"`
	CurrentSchemaID    *int               `json:"current-schema-id"`
	PartitionSpec      json.RawMessage    `json:"partition-spec"` // v1
	PartitionSpecs     []json.RawMessage  `json:"partition-specs"`
	DefaultSpecID      *int               `json:"default-spec-id"`
	SortOrders         []json.RawMessage  `json:"sort-orders"`
	DefaultSortOrderID int                `json:"default-sort-order-id"`
	Properties         map[string]string  `json:"properties"`
	CurrentSnapshotID  *int64             `json:"current-snapshot-id"`
	Snapshots          []*Snapshot        `json:"snapshots"`
	SnapshotLog        []SnapshotLogEntry `json:"snapshot-log"`
	Refs               map[string]Ref     `json:"refs"`
}

// Parse reads a metadata document, plain or gzipped. location appears in
// errors and may be empty.
func Parse(content []byte, location string) (*Table, error) {
	t := &Table{MetadataLocation: location}
	content, err := decompress(content)
	if err != nil {
		return nil, t.errorf(errs.Corrupt, "%v", err)
	}
	if err := checkDepth(content); err != nil {
		return nil, t.errorf(errs.Corrupt, "%v", err)
	}
	// The version decides how to read the rest, so it is read alone first: a
	// future version may give other fields new types.
	var version struct {
		FormatVersion *int `json:"format-version"`
	}
	if err := json.Unmarshal(content, &version); err != nil {
		return nil, t.errorf(errs.Corrupt, "not a table metadata document: %v", jsonError(err, "table metadata is a JSON object"))
	}
	switch {
	case version.FormatVersion == nil:
		return nil, t.errorf(errs.Corrupt, "not a table metadata document: format-version is missing")
	case *version.FormatVersion > maxFormatVersion:
		return nil, t.errorf(errs.Unsupported, "format version %d is newer than this version of icebergexec, which reads 1 to %d",
			*version.FormatVersion, maxFormatVersion)
	case *version.FormatVersion < 1:
		return nil, t.errorf(errs.Corrupt, "format version %d does not exist", *version.FormatVersion)
	}
	var doc document
	if err := json.Unmarshal(content, &doc); err != nil {
		return nil, t.errorf(errs.Corrupt, "%v", jsonError(err, "table metadata is a JSON object"))
	}
	if err := t.fill(&doc); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Table) fill(doc *document) error {
	t.FormatVersion = *doc.FormatVersion
	t.UUID = doc.UUID
	t.Location = doc.Location
	t.LastSequenceNumber = doc.LastSequenceNumber
	t.LastUpdatedMillis = doc.LastUpdatedMillis
	t.LastColumnID = doc.LastColumnID
	t.LastPartitionID = doc.LastPartitionID
	t.NextRowID = doc.NextRowID
	t.Properties = doc.Properties
	t.SnapshotLog = doc.SnapshotLog
	if t.Location == "" {
		return t.errorf(errs.Corrupt, "location is missing")
	}
	for _, step := range []func(*document) error{t.fillSchemas, t.fillSpecs, t.fillSortOrders, t.fillSnapshots} {
		if err := step(doc); err != nil {
			return err
		}
	}
	t.parseNameMapping()
	return t.indexFields()
}

func (t *Table) fillSchemas(doc *document) error {
	current := doc.CurrentSchemaID
	raw := doc.Schemas
	if len(raw) == 0 && t.FormatVersion == 1 && doc.Schema != nil {
		raw = []json.RawMessage{doc.Schema}
	}
	for _, r := range raw {
		s, err := parseSchema(r)
		if err != nil {
			return t.errorf(errs.Corrupt, "schema: %v", err)
		}
		if _, twice := t.SchemaByID(s.ID); twice {
			return t.errorf(errs.Corrupt, "there are two schemas with id %d", s.ID)
		}
		t.schemas = append(t.schemas, s)
	}
	if len(doc.Schemas) == 0 && len(t.schemas) == 1 {
		current = &t.schemas[0].ID
	}
	if current == nil {
		return t.errorf(errs.Corrupt, "current-schema-id is missing")
	}
	t.CurrentSchemaID = *current
	if _, ok := t.SchemaByID(t.CurrentSchemaID); !ok {
		return t.errorf(errs.Corrupt, "the current schema, id %d, is not among the table's schemas", t.CurrentSchemaID)
	}
	return nil
}

func (t *Table) fillSpecs(doc *document) error {
	raw := doc.PartitionSpecs
	if len(raw) == 0 && t.FormatVersion == 1 && doc.PartitionSpec != nil {
		spec, err := json.Marshal(map[string]any{"spec-id": 0, "fields": doc.PartitionSpec})
		if err != nil {
			return t.errorf(errs.Corrupt, "partition-spec: %v", err)
		}
		raw = []json.RawMessage{spec}
	}
	if len(raw) == 0 {
		return t.errorf(errs.Corrupt, "partition-specs is missing")
	}
	for _, r := range raw {
		var spec iceberg.PartitionSpec
		if err := json.Unmarshal(r, &spec); err != nil {
			return t.errorf(errs.Corrupt, "partition spec: %v", jsonError(err, "a partition spec is a JSON object"))
		}
		if _, twice := t.SpecByID(spec.ID()); twice {
			return t.errorf(errs.Corrupt, "there are two partition specs with id %d", spec.ID())
		}
		t.specs = append(t.specs, spec)
	}
	if doc.DefaultSpecID != nil {
		t.DefaultSpecID = *doc.DefaultSpecID
	} else {
		t.DefaultSpecID = t.specs[len(t.specs)-1].ID()
	}
	if _, ok := t.SpecByID(t.DefaultSpecID); !ok {
		return t.errorf(errs.Corrupt, "the default partition spec, id %d, is not among the table's specs", t.DefaultSpecID)
	}
	return nil
}

func (t *Table) fillSortOrders(doc *document) error {
	for _, r := range doc.SortOrders {
		var order SortOrder
		if err := json.Unmarshal(r, &order); err != nil {
			return t.errorf(errs.Corrupt, "sort order: %v", jsonError(err, "a sort order is a JSON object"))
		}
		t.sortOrders = append(t.sortOrders, order)
	}
	t.DefaultSortOrderID = doc.DefaultSortOrderID
	if _, ok := t.SortOrderByID(t.DefaultSortOrderID); !ok {
		return t.errorf(errs.Corrupt, "the default sort order, id %d, is not among the table's sort orders", t.DefaultSortOrderID)
	}
	return nil
}

func (t *Table) fillSnapshots(doc *document) error {
	t.snapshotByID = make(map[int64]*Snapshot, len(doc.Snapshots))
	for _, s := range doc.Snapshots {
		if s == nil || s.ID == 0 && s.ManifestList == "" && s.Manifests == nil {
			return t.errorf(errs.Corrupt, "a snapshot has no snapshot-id")
		}
		t.snapshots = append(t.snapshots, s)
		t.snapshotByID[s.ID] = s
	}
	// Version 1 writers use -1 for "no snapshot".
	if id := doc.CurrentSnapshotID; id != nil && *id != -1 {
		if _, ok := t.snapshotByID[*id]; !ok {
			return t.errorf(errs.Corrupt, "the current snapshot, id %d, is not among the table's snapshots", *id)
		}
		t.CurrentSnapshotID = id
	}
	t.Refs = doc.Refs
	for name, ref := range t.Refs {
		if _, ok := t.snapshotByID[ref.SnapshotID]; !ok {
			return t.errorf(errs.Corrupt, "the %s %q points to snapshot %d, which is not among the table's snapshots", refKind(ref), name, ref.SnapshotID)
		}
	}
	return nil
}

func refKind(ref Ref) string {
	if ref.Type == "" {
		return "reference"
	}
	return ref.Type
}

// decompress undoes gzip, which the content shows better than the name: both
// x.metadata.json.gz and x.gz.metadata.json are in use.
func decompress(content []byte) ([]byte, error) {
	if !bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		if len(content) > MaxSize {
			return nil, fmt.Errorf("the document is larger than %d MiB", MaxSize>>20)
		}
		return content, nil
	}
	zr, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("damaged gzip: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(zr, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("damaged gzip: %w", err)
	}
	if len(plain) > MaxSize {
		return nil, fmt.Errorf("the document is larger than %d MiB after decompression", MaxSize>>20)
	}
	return plain, nil
}

var errTooDeep = errors.New("JSON nested too deeply")

// checkDepth bounds the nesting before any recursive decoder sees the text.
// It need not be valid JSON.
func checkDepth(text []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return errTooDeep
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
