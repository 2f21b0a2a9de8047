// Package sort is the external merge sort: it orders the rows of a stream by
// transformed columns in bounded memory.
//
//	input batches
//	   │ encoder       rows of bytes, each with its ordering key (package keys)
//	   ▼
//	buffer             rows as they arrive, up to 32 MiB
//	   │ worker        {key prefix, place} sorted, while the next buffer fills
//	   ▼
//	run ──────────────> in memory as long as memory lasts, then in a spill file
//	   │ tree of losers; in several passes when there are more runs than blocks
//	   ▼
//	builders ─────────> batches of the input's types
//
// The sort is stable. Memory for the merge is reserved before the first row is
// buffered, and never given back and asked for again: a sort that has begun
// does not fail for want of it.
package sort

import (
	"context"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/keys"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/task"
	"github.com/icebergexec/icebergexec/spill"
)

// Config says how to sort.
type Config struct {
	Keys  []Key
	Pool  *mem.Pool
	Alloc memory.Allocator
	// Spill gives the directory for runs; it is called when the first is written.
	Spill func(ctx context.Context) (*spill.Dir, error)
	// Threads is how many goroutines sort at most, at least 1.
	Threads int
	// BatchRows and BatchBytes bound the batches that are returned.
	BatchRows  int
	BatchBytes int64
}

const (
	// Sorting and writing a run of this size works best in the caches of
	// today's processors.
	maxRunBytes = 32 << 20 // 32 MiB
	// A quarter of the limit is for the merge: half of it for the batch that is
	// built and the one that waits, half for a block of each run.
	maxWorkspace = 32 << 20 // 32 MiB
	minWorkspace = 1 << 20  // 1 MiB
	// Blocks are between these, so that a merge has some 64 of them.
	maxBlock = 256 << 10 // 256 KiB
	minBlock = 16 << 10  // 16 KiB
	fanIn    = 64
	// stageRows are copied into columns together.
	stageRows = 1024
)

// Stream is a running sort. It implements batch.Stream.
type Stream struct {
	config Config
	input  batch.Stream
	layout *layout
	order  *keys.Order
	paths  [][]int
	files  files

	workspace *mem.Reservation // reserved before the first row
	charge    *mem.Reservation // rows, and what grows with them
	blockSize int
	runBytes  int64

	group    *task.Group
	begun    bool
	batches  chan arrow.RecordBatch
	err      error // sticky; io.EOF too
	closed   bool
	closeErr error

	// Used by the sorting goroutine alone.
	current *buffer
	runs    []*run
	encoder *encoder
	workers chan struct{}

	mu       sync.Mutex
	spilling bool     // memory has been short: runs go to disk
	spare    [][]byte // chunks of usual size, which stay charged
}

// New makes a sort of input, which it takes over: also when New fails, input is
// closed. Nothing is read before the first Next. ctx bounds the stream's life.
func New(ctx context.Context, input batch.Stream, config Config) (*Stream, error) {
	s, err := open(ctx, input, config)
	if err != nil {
		_ = input.Close() // the error that counts is the request's
		return nil, errs.Wrap(err, "sort", "")
	}
	return s, nil
}

func open(ctx context.Context, input batch.Stream, config Config) (*Stream, error) {
	schema := input.Schema()
	paths, order, err := resolve(schema, config.Keys)
	if err != nil {
		return nil, err
	}
	layout, err := newLayout(schema)
	if err != nil {
		return nil, err
	}
	s := &Stream{config: config, input: input, layout: layout, order: order, paths: paths, encoder: newEncoder(layout, order)}
	s.files = files{dir: config.Spill, open: map[*file]struct{}{}}
	for _, f := range schema.Fields() {
		// As many rows as the type of index can number, should all differ.
		if d, ok := f.Type.(*arrow.DictionaryType); ok {
			if bits := d.IndexType.(arrow.FixedWidthDataType).BitWidth() - 1; bits < 31 {
				s.config.BatchRows = min(s.config.BatchRows, 1<<bits)
			}
		}
	}
	limit := config.Pool.Limit()
	s.workspace, s.charge = config.Pool.Reserve("merging of sorted rows"), config.Pool.ReserveSpillable("rows to sort")
	for size := min(limit/4, maxWorkspace); ; size /= 2 {
		if err := s.workspace.TryGrow(size); err == nil {
			break
		} else if size/2 < minWorkspace {
			s.workspace.Free()
			s.charge.Free()
			return nil, err
		}
	}
	size := s.workspace.Size()
	s.config.BatchBytes = min(config.BatchBytes, size/8)
	s.blockSize = int(min(max(size/2/fanIn, minBlock), maxBlock))
	s.runBytes = min((limit-size)/3, maxRunBytes)
	s.group = task.NewGroup(ctx)
	s.batches = make(chan arrow.RecordBatch)
	s.workers = make(chan struct{}, max(1, s.config.Threads-1))
	return s, nil
}

// Schema implements batch.Stream.
func (s *Stream) Schema() *arrow.Schema { return s.input.Schema() }

// Next implements batch.Stream.
func (s *Stream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	switch {
	case s.closed:
		return nil, errs.New(errs.Cancelled, "the stream is closed")
	case s.err != nil:
		return nil, s.err
	case !s.begun:
		s.begun = true
		s.group.Go("sort", s.run)
	}
	select {
	case record, ok := <-s.batches:
		if ok {
			return record, nil
		}
		if s.err = s.group.Wait(); s.err == nil {
			s.err = io.EOF
		}
		return nil, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run sorts and sends the batches. It ends with the stream's life, not with the
// call of Next that began it.
func (s *Stream) run(ctx context.Context) error {
	defer close(s.batches)
	if err := s.read(ctx); err != nil {
		return err
	}
	return s.emit(ctx)
}

// Close implements batch.Stream: the input is closed, the files are gone.
func (s *Stream) Close() error {
	if s.closed {
		return s.closeErr
	}
	s.closed = true
	s.group.Cancel()
	_ = s.group.Wait() // Next has told it, or nobody wants to know
	s.closeErr = s.input.Close()
	if s.current != nil {
		s.current.free(s.config.Alloc)
	}
	for _, r := range s.runs {
		if r.buffer != nil {
			r.buffer.free(s.config.Alloc)
		}
	}
	s.current, s.runs = nil, nil
	s.freeSpare()
	if err := s.files.close(); s.closeErr == nil {
		s.closeErr = err
	}
	s.charge.Free()
	s.workspace.Free()
	return s.closeErr
}

// read turns the input into sorted runs.
func (s *Stream) read(ctx context.Context) error {
	for {
		record, err := s.input.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		err = s.add(ctx, record)
		record.Release()
		if err != nil {
			return err
		}
	}
	if err := s.seal(ctx); err != nil {
		return err
	}
	for _, r := range s.runs {
		if err := s.wait(ctx, r); err != nil {
			return err
		}
	}
	s.freeSpare()
	return nil
}

func (s *Stream) add(ctx context.Context, record arrow.RecordBatch) error {
	arrays := make([]arrow.Array, len(s.paths))
	for i, path := range s.paths {
		arrays[i] = keyArray(record, path)
		defer arrays[i].Release()
	}
	if err := s.encoder.bind(record, arrays); err != nil {
		return err
	}
	rows := int(record.NumRows())
	for start := 0; start < rows; start += keys.OrderBlock {
		sizes, err := s.encoder.load(start, min(keys.OrderBlock, rows-start))
		if err != nil {
			return err
		}
		for from := 0; from < len(sizes); {
			room, err := s.room(ctx, sizes[from])
			if err != nil {
				return err
			}
			n, size := 0, 0
			for from+n < len(sizes) && size+sizes[from+n] <= len(room) {
				size += sizes[from+n]
				n++
			}
			s.encoder.write(room, from, n)
			s.current.took(size, n)
			from += n
		}
	}
	return nil
}

// room finds memory for at least one row of a size.
func (s *Stream) room(ctx context.Context, size int) ([]byte, error) {
	if s.current != nil {
		if room := s.current.room(); len(room) >= size {
			return room, nil
		}
		s.settle(s.current)
		if s.current.charged >= s.runBytes || s.current.bytes+int64(size) >= maxBufferBytes {
			if err := s.seal(ctx); err != nil {
				return nil, err
			}
		}
	}
	chunk, cost, err := s.newChunk(ctx, max(size, chunkSize))
	if err != nil {
		return nil, err
	}
	if s.current == nil {
		s.current = &buffer{}
	}
	s.current.add(chunk)
	s.current.charged += cost
	return chunk, nil
}

// settle corrects what a buffer's entries are charged to the number of its rows.
func (s *Stream) settle(b *buffer) {
	exact := int64(b.rows) * entrySize
	for _, c := range b.chunks {
		exact += int64(len(c))
	}
	s.charge.Shrink(b.charged - exact)
	b.charged = exact
}

// newChunk makes a chunk and charges it with the entries of the rows that it
// may hold. It makes room by putting runs on disk; only a single row that does
// not fit in spite of that is forced.
func (s *Stream) newChunk(ctx context.Context, size int) ([]byte, int64, error) {
	entries := int64(size/s.layout.head+1) * entrySize
	for {
		s.mu.Lock()
		if n := len(s.spare); n > 0 && size == chunkSize && s.charge.TryGrow(entries) == nil {
			chunk := s.spare[n-1]
			s.spare = s.spare[:n-1]
			s.mu.Unlock()
			return chunk, entries + int64(size), nil
		}
		s.mu.Unlock()
		if s.charge.TryGrow(entries+int64(size)) == nil {
			break
		}
		made, err := s.makeRoom(ctx)
		if err != nil {
			return nil, 0, err
		}
		if !made {
			s.charge.ForceGrow(entries + int64(size))
			break
		}
	}
	return s.config.Alloc.Allocate(size), entries + int64(size), nil
}

// makeRoom gives memory back and reports whether there was any.
func (s *Stream) makeRoom(ctx context.Context) (bool, error) {
	s.mu.Lock()
	s.spilling = true
	spare := len(s.spare)
	s.mu.Unlock()
	if spare > 0 {
		s.freeSpare()
		return true, nil
	}
	for _, r := range s.runs {
		running := false
		select {
		case <-r.settled:
		default:
			running = true
		}
		if err := s.wait(ctx, r); err != nil {
			return false, err
		}
		if r.buffer != nil {
			return true, s.spill(ctx, r)
		}
		if running {
			return true, nil // the worker has written it
		}
	}
	if s.current == nil {
		return false, nil
	}
	return true, s.seal(ctx)
}

func (s *Stream) freeSpare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, chunk := range s.spare {
		s.config.Alloc.Free(chunk)
	}
	s.charge.Shrink(int64(len(s.spare)) * chunkSize)
	s.spare = nil
}

// seal ends the current buffer: a worker sorts it, and writes it when memory is
// short.
func (s *Stream) seal(ctx context.Context) error {
	b := s.current
	if b == nil {
		return nil
	}
	select {
	case s.workers <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.current = nil
	s.settle(b)
	r := &run{buffer: b, bytes: b.bytes, settled: make(chan struct{})}
	s.runs = append(s.runs, r)
	s.group.Go("sort a run", func(ctx context.Context) error {
		defer func() { <-s.workers }()
		defer close(r.settled)
		r.err = task.Call("sort a run", func() error {
			b.sort(s.layout)
			s.mu.Lock()
			spilling := s.spilling
			s.mu.Unlock()
			if spilling {
				return s.spill(ctx, r)
			}
			return nil
		})
		return r.err
	})
	return nil
}

func (s *Stream) wait(ctx context.Context, r *run) error {
	select {
	case <-r.settled:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// spill writes a sorted run to disk and keeps chunks for the next buffer.
func (s *Stream) spill(ctx context.Context, r *run) error {
	w, err := s.files.newWriter(ctx, s.blockSize, s.charge)
	if err != nil {
		return err
	}
	b := r.buffer
	for i := range b.entries {
		if err := w.add(ctx, b.row(i)); err != nil {
			return err
		}
	}
	written, err := w.finish(ctx)
	if err != nil {
		return err
	}
	r.buffer = nil
	r.file, r.blocks, r.bytes, r.maxBlock = written.file, written.blocks, written.bytes, written.maxBlock
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := int64(0)
	for i, c := range b.chunks {
		// More than one buffer fills is left to others.
		if len(c) == chunkSize && int64(len(s.spare))*chunkSize < s.runBytes {
			s.spare = append(s.spare, c)
			kept += chunkSize
			b.chunks[i] = nil
		}
	}
	b.free(s.config.Alloc)
	s.charge.Shrink(b.charged - kept)
	return nil
}

// reduce merges runs until one merge can take all that are left.
func (s *Stream) reduce(ctx context.Context) error {
	for {
		width := s.mergeable(s.runs, len(s.runs))
		if width >= len(s.runs) {
			return nil
		}
		// Neighbours, so that equal keys stay in order, and the smallest ones.
		width = min(width, len(s.runs)-width+1)
		width = max(width, 2)
		best, bestBytes := 0, int64(-1)
		for at := 0; at+width <= len(s.runs); at++ {
			sum := int64(0)
			for _, r := range s.runs[at : at+width] {
				sum += r.bytes
			}
			if bestBytes < 0 || sum < bestBytes {
				best, bestBytes = at, sum
			}
		}
		if err := s.mergeInto(ctx, best, width); err != nil {
			return err
		}
	}
}

// mergeable is how many runs, taken as the widest of them, fit the workspace.
func (s *Stream) mergeable(runs []*run, most int) int {
	widest, inMemory := int64(s.blockSize), 0
	for _, r := range runs {
		widest = max(widest, r.maxBlock)
		if r.buffer != nil {
			inMemory++
		}
	}
	if inMemory == len(runs) {
		return most
	}
	return max(2, int(s.workspace.Size()/2/widest)-1) // one block is being written
}

func (s *Stream) mergeInto(ctx context.Context, at, width int) error {
	group := s.runs[at : at+width]
	defer s.reserveBlocks(group)()
	w, err := s.files.newWriter(ctx, s.blockSize, s.charge)
	if err != nil {
		return err
	}
	replaced := func() error { return nil }
	err = merge(ctx, s.layout, group, replaced, func(row []byte) error { return w.add(ctx, row) }, s.finished)
	if err != nil {
		return err
	}
	merged, err := w.finish(ctx)
	if err != nil {
		return err
	}
	s.runs = append(s.runs[:at], append([]*run{merged}, s.runs[at+width:]...)...)
	return nil
}

// finished frees a run of which no row is left.
func (s *Stream) finished(r *run) error {
	if b := r.buffer; b != nil {
		r.buffer = nil
		b.free(s.config.Alloc)
		s.charge.Shrink(b.charged)
		return nil
	}
	s.charge.Shrink(int64(len(r.blocks)) * refCost)
	r.blocks = nil
	return s.files.drop(r)
}

// reserveBlocks charges what the blocks of a merge take beyond the workspace,
// which they do only when single rows are larger than blocks.
func (s *Stream) reserveBlocks(runs []*run) (release func()) {
	total := int64(0)
	for _, r := range runs {
		total += r.maxBlock
	}
	more := max(0, total-s.workspace.Size()/2)
	s.charge.ForceGrow(more)
	return func() { s.charge.Shrink(more) }
}

// emit merges all runs and sends batches.
func (s *Stream) emit(ctx context.Context) error {
	if err := s.reduce(ctx); err != nil {
		return err
	}
	defer s.reserveBlocks(s.runs)()
	out := &output{stream: s}
	defer out.release()
	err := merge(ctx, s.layout, s.runs, out.flush, func(row []byte) error { return out.add(ctx, row) }, s.finished)
	if err == nil {
		err = out.send(ctx)
	}
	return err
}

// output collects rows into batches.
type output struct {
	stream   *Stream
	builders []*builder
	stage    [][]byte // rows that are not copied yet
	rows     int      // with the stage
	bytes    int64
}

func (o *output) add(ctx context.Context, row []byte) error {
	config := &o.stream.config
	if o.rows > 0 && (o.rows == config.BatchRows || o.bytes+int64(len(row)) > config.BatchBytes) {
		if err := o.send(ctx); err != nil {
			return err
		}
	}
	o.stage = append(o.stage, row)
	o.rows++
	o.bytes += int64(len(row))
	if len(o.stage) == stageRows {
		return o.flush()
	}
	return nil
}

// flush copies the staged rows into columns.
func (o *output) flush() error {
	if len(o.stage) == 0 {
		return nil
	}
	if o.builders == nil {
		for _, f := range o.stream.layout.fields {
			o.builders = append(o.builders, newBuilder(o.stream.config.Alloc, f.typ))
		}
	}
	for i := range o.builders {
		f := &o.stream.layout.fields[i]
		if err := o.builders[i].rows(o.stage, f, i); err != nil {
			return &errs.Error{Code: errs.CodeOf(err), Op: "sort", Msg: "column \"" + f.name + "\"", Err: err}
		}
	}
	o.stage = o.stage[:0]
	return nil
}

// send ends the batch and hands it to Next.
func (o *output) send(ctx context.Context) error {
	if err := o.flush(); err != nil || o.rows == 0 {
		return err
	}
	columns := make([]arrow.Array, len(o.builders))
	for i, b := range o.builders {
		data := b.finish()
		columns[i] = array.MakeFromData(data)
		data.Release()
	}
	record := array.NewRecordBatch(o.stream.Schema(), columns, int64(o.rows))
	for _, c := range columns {
		c.Release()
	}
	o.builders, o.rows, o.bytes = nil, 0, 0
	select {
	case o.stream.batches <- record:
		return nil
	case <-ctx.Done():
		record.Release()
		return context.Cause(ctx)
	}
}

func (o *output) release() {
	for _, b := range o.builders {
		b.release()
	}
}
