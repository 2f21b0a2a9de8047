// Package bridge carries record batches across the C boundary.
//
//	engine                 bridge                                        consumer (C, Python, ...)
//	Stream of batches  --> Puller: next within a timeout             --> iex_stream_next
//	                       Exporter: ArrowArray over the same memory --> ArrowArray, released in plain C
//	         buffers <---- Allocator: reference-counted C blocks <------ last release frees
//
// Batches are exported without a copy when their buffers are blocks of an
// Allocator, and copied into blocks when they are not: a consumer never holds
// memory of the Go heap. The engine and a consumer may hold one block at the
// same time; whoever lets go last frees it, and only the consumer's side of
// that is C.
package bridge

// #cgo CFLAGS: -I${SRCDIR}/../include -std=c11 -D_DEFAULT_SOURCE -Wall
import "C"
