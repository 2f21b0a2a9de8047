package engine

import (
	"encoding/json"
	"time"

	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/project"
)

// ScanRequest says what to read of a table.
type ScanRequest struct {
	// Metadata is the table metadata document, and MetadataLocation where it is
	// stored. One is enough; with both, nothing is read from the location, which
	// then only names the table in errors.
	Metadata         []byte
	MetadataLocation string

	// SnapshotID, Ref and AsOf choose what to read, at most one of them:
	// a snapshot, with the schema that it was written with; a branch, with the
	// table's current schema, or a tag, with its snapshot's; the snapshot that
	// was current at a time, with its schema. Without any, the current snapshot
	// is read with the current schema. A table without snapshots has no rows.
	SnapshotID *int64
	Ref        string
	AsOf       *time.Time

	// Columns are the columns to return, in this order; nil: all. A dotted name
	// selects a field inside structs. The metadata columns _file, _pos,
	// _spec_id, _partition and, from format version 3 on, _row_id and
	// _last_updated_sequence_number can be named too. An empty list that is not
	// nil gives batches that only count rows.
	Columns []string
	// CaseInsensitive lets names in Columns and Filter match whatever their case.
	CaseInsensitive bool
	// Filter keeps the rows that match; nil: all. It may use columns that are
	// not returned. FilterMode says what null and NaN match.
	Filter     *expr.Expr
	FilterMode expr.Mode
	// Tasks are the data files to read, each as (*plan.Task).Encode wrote it,
	// with the deletes that are in it; nil: those that the snapshot's plan
	// gives. An empty list that is not nil gives no rows. Snapshot and filter
	// are then to be those of the plan: they decide the schema and which rows
	// of the files match.
	Tasks []json.RawMessage
	// Limit is how many rows to return at most; nil: all.
	Limit *int64

	// Arrow chooses the Arrow types of the result.
	Arrow project.ArrowOptions
	// BatchRows replaces the engine's; zero: the engine's.
	BatchRows int
	// MemoryLimit caps this scan inside the engine's limit; zero: a share of it,
	// half of what other operations leave.
	MemoryLimit int64
	// PathPrefixes replaces the engine's; nil: the engine's.
	PathPrefixes map[string]string
}
