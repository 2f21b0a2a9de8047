package expr

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

var errPending = errs.New(errs.Unsupported, "filters are not supported yet")

type literals struct{ values []iceberg.Literal }

func literalsOf(values ...iceberg.Literal) *literals { return &literals{values: values} }

// InArray is In with the values of an Arrow array, which is copied. A null in
// it is an error.
func InArray(column string, values arrow.Array) (*Expr, error) { return nil, errPending }

// NotInArray is NotIn with the values of an Arrow array.
func NotInArray(column string, values arrow.Array) (*Expr, error) { return nil, errPending }

// Parse reads the wire form (see the package comment). sets are the Arrow
// arrays that "set" fields refer to by index; they are copied.
func Parse(wire []byte, sets ...arrow.Array) (*Expr, error) { return nil, errPending }

// ParseIcebergJSON reads an expression as Iceberg's REST catalog API writes it.
func ParseIcebergJSON(b []byte) (*Expr, error) { return nil, errPending }

// Mode says which rows a comparison with null, NaN or -0.0 matches.
type Mode int

const (
	// Iceberg is the mode of the engine's own interfaces.
	Iceberg Mode = iota
	// PyIcebergScan matches the rows that a pyiceberg scan returns.
	PyIcebergScan
	// PyIcebergDelete matches the rows that a pyiceberg delete removes.
	PyIcebergDelete
)

// Bind resolves the columns of the expression in a schema and converts its
// literals to their types.
func (e *Expr) Bind(s *iceberg.Schema, caseSensitive bool) (*Bound, error) {
	return nil, errPending
}

// Bound is an expression bound to the columns of a schema by field id. It is
// immutable and may be shared by goroutines. A nil *Bound matches every row.
type Bound struct{}

// FieldIDs are the field ids of the columns that Evaluate may ask for,
// ascending.
func (b *Bound) FieldIDs() []int { return nil }

func (b *Bound) String() string { return "true" }

// MemorySize is how many bytes the expression holds, mostly its literals.
func (b *Bound) MemorySize() int64 { return 0 }

// AlwaysTrue reports whether every row matches whatever its values.
func (b *Bound) AlwaysTrue(mode Mode) bool { return b == nil }

// AlwaysFalse reports whether no row matches whatever its values.
func (b *Bound) AlwaysFalse(mode Mode) bool { return false }

// Evaluate clears the rows of keep that do not match. keep has n rows, and so
// has each array that column returns: the leaf column with that field id, in
// the Arrow form of its type in the schema, null where the leaf or one of its
// parents is null. Arrays stay owned by the caller. column is called at most
// once for a field id, and not at all when the rows are decided without it.
func (b *Bound) Evaluate(mode Mode, n int, column func(fieldID int) (arrow.Array, error), keep *batch.Mask) error {
	if b == nil {
		return nil
	}
	return errPending
}

// Count is a statistic that may be unknown, as is the zero Count.
type Count struct {
	N     int64
	Known bool
}

// KnownCount is a known statistic.
func KnownCount(n int64) Count { return Count{N: n, Known: true} }

// ColumnMetrics are the statistics of one column over some rows. The zero value
// means that nothing is known.
type ColumnMetrics struct {
	// ValueCount counts all values, nulls and NaNs too.
	ValueCount, NullCount, NaNCount Count
	// Lower and Upper bound all values that are neither null nor NaN, in
	// Iceberg's single-value serialisation of the column's type or of a type
	// it was promoted from. They may be truncated. nil is unknown.
	Lower, Upper []byte
}

// Metrics are the statistics of a file or of a part of it.
type Metrics struct {
	RecordCount Count
	// Column returns the statistics of a leaf column.
	Column func(fieldID int) ColumnMetrics
}

// MayMatch reports whether any row may match; if not, none does.
func (b *Bound) MayMatch(mode Mode, m Metrics) bool { return true }

// MustMatch reports whether every row is known to match.
func (b *Bound) MustMatch(mode Mode, m Metrics) bool { return b == nil }

// WithConstants replaces the tests of columns that a file does not have by
// their outcome. constant returns the value of such a column in every row, nil
// for null, and false for a column that the file has. The result is for the
// same mode only; nil when every row matches.
func (b *Bound) WithConstants(mode Mode, constant func(fieldID int) (iceberg.Literal, bool)) *Bound {
	return b
}

// Partition prepares the expression for the partitions of one spec.
func (b *Bound) Partition(mode Mode, spec *iceberg.PartitionSpec) *PartitionFilter {
	return &PartitionFilter{bound: b}
}

// PartitionFilter judges partitions of one spec. It may be shared by
// goroutines.
type PartitionFilter struct{ bound *Bound }

// MayMatch reports whether any row of a partition may match. tuple has the
// transformed values in the order of the spec's fields, nil for null.
func (p *PartitionFilter) MayMatch(tuple []iceberg.Literal) bool { return true }

// MustMatch reports whether every row of a partition is known to match.
func (p *PartitionFilter) MustMatch(tuple []iceberg.Literal) bool { return p.bound == nil }

// Residual is what is left to test on the rows of a partition, for the same
// mode only; nil when every row matches.
func (p *PartitionFilter) Residual(tuple []iceberg.Literal) *Bound { return p.bound }

// FieldSummary describes the values of one partition field over the files of
// a manifest.
type FieldSummary struct {
	ContainsNull bool
	// ContainsNaN is nil when unknown.
	ContainsNaN *bool
	// Lower and Upper are in Iceberg's single-value serialisation; nil is unknown.
	Lower, Upper []byte
}

// MayMatchSummaries reports whether any file of a manifest may have a matching
// row. summaries are in the order of the spec's fields; none means unknown.
func (p *PartitionFilter) MayMatchSummaries(summaries []FieldSummary) bool { return true }
