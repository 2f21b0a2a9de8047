// Package pq reads and writes Parquet files.
//
//	Open      one ranged read of the tail ---> footer ---> schema, row groups, statistics
//	Prune     statistics of row groups, page indexes ----> row ranges that may match
//	NewReader columns + row ranges ----------------------> reader
//	  Next    the next window of rows, never across a row group or a range
//	  Read    some columns of the window, only the rows that a mask keeps
//
// A column chunk is read in blocks, decompressed a page at a time, and decoded
// straight into the buffers of an Arrow array:
//
//	chunkSource --blocks--> pageReader --pages--> levels --> spans of values to skip and take
//	                                                |                      |
//	                           validity, offsets <--+      decoders -------+--> leafBuilder --> array
//
// A flatColumn does that for a top-level primitive, a nestedColumn for
// everything else. Pages without a wanted row are passed over by their header
// or by the offset index; in a page, unwanted values are passed over in bulk.
//
// A Writer takes batches and encodes their columns side by side, page by page;
// the pages of a row group are held until it ends, since a file has one column
// chunk behind the other:
//
//	NewWriter batches --> levels, values --> pages --> row group --+--> file
//	CopyRowGroup      column chunks of another file, as they are --+
//	Close             page indexes, footer; counts and bounds for the table's metadata
//
// Positions count every row of the file. What a file says of sizes and counts
// is checked before it is used: damage is a Corrupt error that names file and
// column, never a panic, and never memory beyond the pool. Files of any writer
// are read; columns of types that no table has are errors only when selected.
package pq
