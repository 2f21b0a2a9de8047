// Package loader is a client of libicebergexec for Go programs that want the
// prebuilt library and no C compiler: it loads the library at run time and
// works with CGO_ENABLED=0 and 1.
//
//	lib, err := loader.Load("/usr/local/lib/libicebergexec.so")
//	engine, err := lib.OpenEngine(`{"memory_limit": "256MiB"}`)
//	defer engine.Close()
//	stream, err := engine.Scan(`{"metadata_location": "/t/metadata/v3.metadata.json"}`)
//	defer stream.Close()
//	for {
//		batch, err := stream.Next(ctx) // io.EOF at the end
//		...
//		batch.Release()
//	}
//
// Requests are the JSON documents of docs/requests.md. Batches share the
// library's memory, which is outside of the Go heap, until they are released.
//
// A Go program that loads a library written in Go runs two Go runtimes in one
// process, each with a collector and a scheduler of its own. The Go project
// does not promise that this works (https://go.dev/issue/65050); on Linux with
// glibc it does, and is tested here. Such a program can use the package engine
// instead, which is the same code without the library.
package loader
