// Package avro reads Avro object container files: data and delete files into
// Arrow arrays, manifests and manifest lists into the caller's variables.
//
//	header ── writer's schema ──> compiled once: what to read into, what to pass over
//	blocks ── codec ──> bytes of rows ──┬──> columns ──> windows of Arrow arrays   (File, batch.FileReader)
//	                                    └──> bound variables, row by row           (Records)
//
// Values that nobody asks for are passed over without being made. A file's
// bytes are never trusted: sizes are checked before memory is taken for them,
// and what is wrong is a Corrupt error that names the file.
package avro
