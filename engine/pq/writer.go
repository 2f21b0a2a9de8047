package pq

import (
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/mem"
)

// WriterOptions configures NewWriter. The zero value is usable: it writes as a
// table without properties asks for. ParseWriterOptions reads a table's.
type WriterOptions struct {
	// Path names the file in errors.
	Path string
	// Alloc makes the buffers of encoded pages; nil: the Go allocator.
	Alloc memory.Allocator
	// Pool is charged for what the writer holds; nil: unlimited. When it
	// refuses, the open row group is closed early.
	Pool *mem.Pool

	// Compression of every column.
	Compression Compression
	// RowGroupBytes and RowGroupRows end a row group: its encoded size, zero:
	// 128 MiB, and its rows, zero: 1,048,576.
	RowGroupBytes, RowGroupRows int64
	// PageBytes and PageRows end a page: the size of its values as they are
	// encoded, zero: 1 MiB, and its rows, zero: 20,000.
	PageBytes, PageRows int
	// DictionaryBytes bounds the dictionary of a column chunk; zero: 2 MiB.
	DictionaryBytes int
	// PageVersion is the version of data pages, 1 or 2; zero: 1.
	PageVersion int
	// BloomFilters holds the columns to write Bloom filters for, by field id.
	BloomFilters map[int]BloomOptions
	// Metrics says what to gather of each column.
	Metrics MetricsConfig
}

// Written describes a finished file in the terms of a manifest entry. Maps are
// by field id; a missing key means unknown.
type Written struct {
	Records, Size int64
	// SplitOffsets are where the row groups start.
	SplitOffsets []int64
	// ColumnSizes are the stored bytes of each column.
	ColumnSizes map[int]int64
	// ValueCounts count values, nulls and NaNs included.
	ValueCounts, NullCounts, NaNCounts map[int]int64
	// LowerBounds and UpperBounds are in Iceberg's single-value serialisation.
	LowerBounds, UpperBounds map[int][]byte
}
