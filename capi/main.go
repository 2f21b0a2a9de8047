// Package main is the shared library libicebergexec: the functions of
// include/icebergexec.h over the engine.
//
//	C caller --> shim.c                     --> iexgo_* (this package)             --> engine
//	             clears out values,             fence: a panic becomes an error
//	             answers in a forked child      and makes its engine unusable
//	                                            handles: address --> engine, stream
//
//	ArrowArrayStream.release (any thread) --> queue in objects.c --> one goroutine ends the stream
//
// The package also owns what belongs to the process and not to an engine: the
// Go runtime's memory limit, giving memory back to the system, and the codecs
// of Parquet.
package main

// #cgo CFLAGS: -I${SRCDIR}/../include -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Wall
import "C"

func main() {}
