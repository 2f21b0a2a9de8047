//go:build !iextest

package main

import "github.com/icebergexec/icebergexec/engine/batch"

// testPanic and testRows are the points where a library built with the tag
// iextest misbehaves on demand. In the shipped library they do nothing.
func testPanic(string) {}

func testRows(rows batch.Stream) batch.Stream { return rows }
