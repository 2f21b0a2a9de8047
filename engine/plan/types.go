package plan

import (
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/expr"
)

// Content says what the rows of a file mean. The numbers are those of the
// manifest field "content".
type Content int

const (
	// Data files hold rows of the table.
	Data Content = 0
	// PositionDeletes are position-delete files and deletion vectors.
	PositionDeletes Content = 1
	// EqualityDeletes hold the keys of deleted rows.
	EqualityDeletes Content = 2
)

func (c Content) String() string {
	switch c {
	case Data:
		return "data"
	case PositionDeletes:
		return "position deletes"
	case EqualityDeletes:
		return "equality deletes"
	}
	return "unknown content"
}

// The file formats that a manifest names, in the upper case of File.Format.
const (
	FormatParquet = "PARQUET"
	FormatAvro    = "AVRO"
	FormatORC     = "ORC"
	FormatPuffin  = "PUFFIN"
)

// File is one data or delete file as its manifest entry describes it, with
// sequence numbers, snapshot id and first row id inherited from the manifest.
// It is immutable and may be shared between tasks.
type File struct {
	Content Content
	// Path is the location as the manifest stores it, byte for byte.
	Path string
	// Format is the file format in upper case, for example FormatParquet.
	Format string
	// RecordCount is negative where it is unknown: tables imported from Avro
	// files have such entries.
	RecordCount int64
	// Size is the length that the manifest claims; storage may disagree.
	Size int64

	SpecID int
	// Partition holds the transformed partition values in the order of the
	// spec's fields, nil for null. Each has the type that the transform gives
	// for the newest type of its source column.
	Partition []iceberg.Literal

	// SnapshotID is the snapshot that added the file.
	SnapshotID int64
	// DataSequence decides which deletes apply to the file, or which data a
	// delete file applies to. FileSequence is when the file itself was added;
	// it is -1 where a manifest leaves it open.
	DataSequence int64
	FileSequence int64
	// FirstRowID is the row id of position 0 (v3); nil without row lineage.
	FirstRowID *int64

	// EqualityIDs are the field ids of an equality-delete file's key columns,
	// in the order of the manifest.
	EqualityIDs []int
	// ReferencedDataFile is the one data file that a position-delete file or
	// deletion vector applies to, as stored; nil when it may be several.
	ReferencedDataFile *string
	// ContentOffset and ContentSize locate a deletion vector's blob.
	ContentOffset *int64
	ContentSize   *int64

	// SortOrderID, SplitOffsets and Metrics are kept for data files only, and
	// metrics only where the request asks for them.
	SortOrderID  *int
	SplitOffsets []int64
	Metrics      *Metrics
}

// IsDV reports whether the file is a deletion vector: a blob in a Puffin file.
func (f *File) IsDV() bool { return f.Content == PositionDeletes && f.Format == FormatPuffin }

// Metrics are per-column statistics by field id. A nil map, and an id that is
// missing from a map, mean unknown. Bounds are in Iceberg's single-value
// serialisation of the type that the column had when the file was written.
type Metrics struct {
	ColumnSizes map[int]int64
	ValueCounts map[int]int64
	NullCounts  map[int]int64
	NaNCounts   map[int]int64
	LowerBounds map[int][]byte
	UpperBounds map[int][]byte
}

// Task is one data file to read, with every delete file that may apply to it.
type Task struct {
	Data *File
	// Deletes are in the order of their data sequence numbers; scope and
	// sequence rules hold for each, so a reader applies them all. A position
	// delete without ReferencedDataFile may hold rows of other files too. The
	// slice may be shared and must not be changed.
	Deletes []*File
	// Residual is what is left of the filter to test on the file's rows; nil
	// when every row is known to match.
	Residual *expr.Bound
}

// Count is the number of rows that a reader of the task would return, if the
// plan knows it: no filter is left, and nothing but a deletion vector, whose
// record count is its number of positions, deletes rows.
func (t *Task) Count() (rows int64, known bool) {
	if t.Residual != nil || t.Data.RecordCount < 0 {
		return 0, false
	}
	switch {
	case len(t.Deletes) == 0:
		return t.Data.RecordCount, true
	case len(t.Deletes) == 1 && t.Deletes[0].IsDV() && t.Deletes[0].RecordCount <= t.Data.RecordCount:
		return t.Data.RecordCount - t.Deletes[0].RecordCount, true
	}
	return 0, false
}
