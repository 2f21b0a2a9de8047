// Package engine is the Go interface of icebergexec: it reads Apache Iceberg
// tables, with every delete applied, in bounded memory.
//
//	eng, err := engine.Open(engine.Options{MemoryLimit: 256 << 20})
//	defer eng.Close()
//	stream, err := eng.Scan(ctx, engine.ScanRequest{MetadataLocation: "/t/metadata/v3.metadata.json"})
//	defer stream.Close()
//	for {
//		record, err := stream.Next(ctx) // io.EOF at the end; the caller releases record
//		...
//	}
//
// How a scan works:
//
//	metadata JSON --meta--> snapshot, schema
//	                          |
//	                        plan    data files with their deletes, in order
//	                          |
//	                        scan    decode, delete, filter, project; on all threads, in order
//	                          |
//	                        Stream  one batch at a time
//
// The package and everything below it is pure Go.
package engine

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/datafile"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/spill"
)

const (
	// DefaultMemoryLimit is used when Options leaves the limit out.
	DefaultMemoryLimit = 512 << 20 // 512 MiB
	// MinMemoryLimit is what any operation can make progress with.
	MinMemoryLimit = 16 << 20 // 16 MiB
	// DefaultBatchRows and DefaultBatchBytes bound a batch: whichever comes
	// first. Small enough for the caches and the queues of many threads, large
	// enough that the cost of a batch does not count.
	DefaultBatchRows  = 64 << 10
	DefaultBatchBytes = 8 << 20 // 8 MiB
)

// Options configure Open. The zero value is usable.
type Options struct {
	// MemoryLimit is how many bytes all operations of the engine may hold
	// together; zero: 512 MiB. At least 16 MiB. Batches that Next has returned
	// do not count.
	MemoryLimit int64
	// Threads is how many workers one operation uses at most; zero: GOMAXPROCS.
	Threads int
	// BatchRows and BatchBytes bound the batches that streams return; zero:
	// 65536 rows and 8 MiB. A batch of one row may be larger.
	BatchRows  int
	BatchBytes int64
	// SpillDir is where a private directory is made for what does not fit in
	// memory, when the first operation needs it; empty: os.TempDir. SpillLimit
	// is how many bytes may be in it; zero: no limit.
	SpillDir   string
	SpillLimit int64
	// Allocator makes the buffers of batches; nil: the Go heap.
	Allocator memory.Allocator
	// FS opens every file; nil: the local file system, by plain paths and
	// file: URIs.
	FS fileio.FS
	// PathPrefixes moves locations when they are opened: the longest key that
	// a location starts with is replaced by its value.
	PathPrefixes map[string]string
	// HostReader decodes data files of formats that the engine does not, ORC
	// above all; nil: such files are Unsupported.
	HostReader datafile.HostReader

	alwaysSpill bool // for tests
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.MemoryLimit == 0:
		o.MemoryLimit = DefaultMemoryLimit
	case o.MemoryLimit < MinMemoryLimit:
		return o, errs.New(errs.InvalidArgument, "memory_limit is %d bytes; it must be at least 16 MiB (%d)", o.MemoryLimit, MinMemoryLimit)
	}
	switch {
	case o.Threads < 0:
		return o, errs.New(errs.InvalidArgument, "threads is %d; it must be at least 1, or 0 for all processors", o.Threads)
	case o.Threads == 0:
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.BatchRows < 0 || o.BatchBytes < 0 {
		return o, errs.New(errs.InvalidArgument, "the batch size of %d rows, %d bytes must not be negative", o.BatchRows, o.BatchBytes)
	}
	if o.SpillLimit < 0 {
		return o, errs.New(errs.InvalidArgument, "spill_limit is %d bytes; it must be at least 1, or 0 for no limit", o.SpillLimit)
	}
	if o.SpillDir == "" {
		o.SpillDir = os.TempDir() // an engine that never spills does not need it
	} else if err := checkSpillDir(o.SpillDir); err != nil {
		return o, err
	}
	if o.BatchRows == 0 {
		o.BatchRows = DefaultBatchRows
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = DefaultBatchBytes
	}
	if o.Allocator == nil {
		o.Allocator = memory.NewGoAllocator()
	}
	if o.FS == nil {
		local := fileio.NewLocal()
		o.FS = fileio.NewMux(map[string]fileio.FS{"": local, "file": local}, nil)
	}
	return o, nil
}

// Engine runs operations within one memory limit. It is safe for concurrent
// use.
type Engine struct {
	options  Options
	fs       fileio.FS // counts; prefixes are the request's
	pool     *mem.Pool
	counters counters
	spill    spillDir

	mu      sync.Mutex
	closed  bool
	streams map[*stream]struct{}
}

// Open makes an engine. The caller closes it.
func Open(options Options) (*Engine, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, errs.Wrap(err, "open engine", "")
	}
	e := &Engine{options: options, pool: mem.NewPool("engine", options.MemoryLimit), streams: map[*stream]struct{}{}}
	e.spill.parent, e.spill.disk = options.SpillDir, spill.NewDiskBudget(options.SpillLimit)
	e.fs = countingFS{FS: options.FS, counters: &e.counters}
	return e, nil
}

// Close cancels every running stream and returns when their goroutines have
// ended; later calls on the streams give Cancelled, and batches that were
// handed out stay valid. Idempotent.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	running := make([]*stream, 0, len(e.streams))
	for s := range e.streams {
		running = append(running, s)
	}
	e.mu.Unlock()
	for _, s := range running {
		s.stop(errEngineClosed)
	}
	var leaked error
	for _, s := range running {
		if err := s.Close(); err != nil && leaked == nil {
			leaked = err
		}
	}
	if err := e.spill.close(); leaked == nil {
		leaked = err
	}
	if first && leaked == nil {
		leaked = e.pool.Close()
	}
	return leaked
}

var errEngineClosed = errs.New(errs.Cancelled, "the engine is closed")

// add registers a stream, so that Close finds it.
func (e *Engine) add(s *stream) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errEngineClosed
	}
	e.streams[s] = struct{}{}
	return nil
}

func (e *Engine) remove(s *stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, s)
}

// Stats are an engine's counters since Open. They are read one by one, so that
// a snapshot under load may be off by what is in flight.
type Stats struct {
	// OpenStreams are the streams that are not closed.
	OpenStreams int
	// Batches and Rows were returned by streams.
	Batches, Rows int64
	// FilesOpened counts opened metadata, data and delete files, and BytesRead
	// what was read of them.
	FilesOpened, BytesRead int64
	// MemoryUsed is reserved now, MemoryPeak at most so far.
	MemoryUsed, MemoryPeak, MemoryLimit int64
}

// Stats reads the counters.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	open := len(e.streams)
	e.mu.Unlock()
	return Stats{
		OpenStreams: open,
		Batches:     e.counters.batches.Load(),
		Rows:        e.counters.rows.Load(),
		FilesOpened: e.counters.files.Load(),
		BytesRead:   e.counters.bytes.Load(),
		MemoryUsed:  e.pool.Used(),
		MemoryPeak:  e.pool.Peak(),
		MemoryLimit: e.options.MemoryLimit,
	}
}

type counters struct{ batches, rows, files, bytes atomic.Int64 }

// countingFS counts what is opened and read.
type countingFS struct {
	fileio.FS
	counters *counters
}

func (fs countingFS) Open(ctx context.Context, location string) (fileio.File, error) {
	f, err := fs.FS.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	fs.counters.files.Add(1)
	return countingFile{File: f, counters: fs.counters}, nil
}

type countingFile struct {
	fileio.File
	counters *counters
}

func (f countingFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.counters.bytes.Add(int64(n))
	return n, err
}
