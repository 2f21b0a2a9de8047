// Package pq reads Parquet files.
//
//	Open: one ranged read of the tail ---> footer ---> schema, row groups, statistics
//	                                          |
//	NewReader: columns + row ranges ----------+--> Reader
//	  Next: the next window of rows (never across a row group or a range)
//	  Read: some columns of the window, only the rows that a mask keeps
//
// Positions count every row of the file. Row groups outside the ranges are
// never read, and a column chunk is read in pieces, never the whole file.
package pq
