package engine

import (
	"context"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/scan"
)

const (
	// maxMetadataSize bounds a table metadata document.
	maxMetadataSize = 1 << 30 // 1 GiB
	// metadataFactor is what a parsed document takes, in multiples of its text.
	metadataFactor = 3
)

// Scan reads a table. It returns once the metadata is read and the request is
// checked; manifests and data files are read while the stream is. ctx bounds
// this call only. The caller closes the stream.
func (e *Engine) Scan(ctx context.Context, request ScanRequest) (batch.Stream, error) {
	if err := checkMemoryLimit(request.MemoryLimit); err != nil {
		return nil, err
	}
	if request.Limit != nil && *request.Limit < 0 {
		return nil, errs.New(errs.InvalidArgument, "limit is %d; it must not be negative", *request.Limit)
	}
	if request.BatchRows < 0 {
		return nil, errs.New(errs.InvalidArgument, "batch_rows is %d; it must be at least 1, or 0 for the engine's", request.BatchRows)
	}
	s, err := e.run(ctx, "scan", request.MemoryLimit, func(ctx, lifetime context.Context, s *stream) error {
		return s.openScan(ctx, lifetime, request)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func checkMemoryLimit(limit int64) error {
	if limit != 0 && limit < MinMemoryLimit {
		return errs.New(errs.InvalidArgument, "memory_limit is %d bytes; it must be at least 16 MiB (%d)", limit, MinMemoryLimit)
	}
	return nil
}

// run makes the stream of an operation. open gives it its schema and inner
// stream; ctx bounds open, and lifetime what goes on afterwards. Without a
// memoryLimit of its own it gets its share of the engine's.
func (e *Engine) run(ctx context.Context, name string, memoryLimit int64, open func(ctx, lifetime context.Context, s *stream) error) (*stream, error) {
	lifetime, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &stream{engine: e, cancel: cancel}
	if memoryLimit > 0 {
		s.pool = e.pool.Child(name, memoryLimit)
	} else {
		s.pool = e.pool.Share(name, MinMemoryLimit)
	}
	s.charged = s.pool.Reserve("table metadata and filter")
	err := e.add(s)
	if err == nil {
		err = s.start(ctx, lifetime, open)
	}
	if err != nil {
		_ = s.Close() // the error that counts is the request's
		return nil, err
	}
	return s, nil
}

// start opens the stream so that Engine.Close can end it meanwhile.
func (s *stream) start(ctx, lifetime context.Context, open func(ctx, lifetime context.Context, s *stream) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lifetime, func() { cancel(context.Cause(lifetime)) })()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := open(ctx, lifetime, s)
	if cause := s.stopCause(); cause != nil {
		return cause
	}
	return err
}

// source is the table that a request names, and what of it.
type source struct {
	fs       fileio.FS
	table    *meta.Table
	snapshot *meta.Snapshot // nil: of a table without any
	schema   *iceberg.Schema
	filter   *expr.Bound // nil: all rows
	// filterSchema is what filter is bound to.
	filterSchema *iceberg.Schema
}

// openSource reads the metadata; the stream is charged with what it holds.
func (s *stream) openSource(ctx context.Context, request ScanRequest) (*source, error) {
	prefixes := request.PathPrefixes
	if prefixes == nil {
		prefixes = s.engine.options.PathPrefixes
	}
	from := &source{fs: fileio.WithPrefixes(s.engine.fs, prefixes)}
	var err error
	if from.table, err = loadTable(ctx, from.fs, request, s.charged); err != nil {
		return nil, err
	}
	if from.snapshot, from.schema, err = choose(from.table, request); err != nil {
		return nil, err
	}
	from.filterSchema = from.schema
	if request.FilterMode != expr.Iceberg {
		// As in pyiceberg, also for a snapshot that had another schema.
		from.filterSchema = from.table.CurrentSchema()
	}
	if request.Filter != nil {
		if from.filter, err = request.Filter.Bind(from.filterSchema, !request.CaseInsensitive); err != nil {
			return nil, errs.Wrap(err, "read", request.MetadataLocation)
		}
		if err := s.charged.TryGrow(from.filter.MemorySize()); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// openScan makes the stream's inner scan.
func (s *stream) openScan(ctx, lifetime context.Context, request ScanRequest) error {
	from, err := s.openSource(ctx, request)
	if err != nil {
		return err
	}
	selection, err := scan.Select(from.table, from.schema, request.Columns, !request.CaseInsensitive, request.Arrow)
	if err != nil {
		return errs.Wrap(err, "scan", request.MetadataLocation)
	}
	options := s.engine.options
	batchRows := request.BatchRows
	if batchRows == 0 {
		batchRows = options.BatchRows
	}
	planTasks := func(ctx context.Context) (scan.Tasks, error) {
		tasks, err := plan.Plan(ctx, from.fs, s.pool, plan.Request{
			Table: from.table, Snapshot: from.snapshot, Filter: from.filter, Mode: request.FilterMode, Workers: options.Threads,
		})
		if err != nil {
			return nil, err
		}
		return tasks, nil
	}
	if request.Tasks != nil {
		tasks, err := decodeTasks(request.Tasks, from, request.FilterMode, s.charged)
		if err != nil {
			return err
		}
		planTasks = func(context.Context) (scan.Tasks, error) { return tasks, nil }
	}
	s.schema = selection.Schema
	s.inner = scan.New(lifetime, scan.Config{
		Plan: planTasks, Table: from.table, Schema: from.filterSchema, Selection: selection,
		Filter: from.filter, Mode: request.FilterMode, Limit: request.Limit,
		FS: from.fs, Pool: s.pool, Alloc: options.Allocator, Host: options.HostReader,
		Spill: s.engine.spill.open, AlwaysSpill: options.alwaysSpill,
		Workers: options.Threads, BatchRows: batchRows, BatchBytes: options.BatchBytes,
	})
	return nil
}

// loadTable parses the metadata that the request gives or names.
func loadTable(ctx context.Context, fs fileio.FS, request ScanRequest, charged *mem.Reservation) (*meta.Table, error) {
	document := request.Metadata
	if document == nil {
		if request.MetadataLocation == "" {
			return nil, errs.New(errs.InvalidArgument, "a scan needs table metadata or its location")
		}
		var err error
		if document, err = fileio.ReadAll(ctx, fs, request.MetadataLocation, maxMetadataSize); err != nil {
			return nil, err
		}
	}
	if err := charged.TryGrow(metadataFactor * int64(len(document))); err != nil {
		return nil, err
	}
	return meta.Parse(document, request.MetadataLocation)
}

// choose finds the snapshot to read, nil for a table without one, and the
// schema to read it with.
func choose(table *meta.Table, request ScanRequest) (*meta.Snapshot, *iceberg.Schema, error) {
	given := 0
	for _, one := range []bool{request.SnapshotID != nil, request.Ref != "", request.AsOf != nil} {
		if one {
			given++
		}
	}
	if given > 1 {
		return nil, nil, errs.New(errs.InvalidArgument, "snapshot_id, ref (a branch or tag) and a time each choose what to read; only one of them can be given")
	}
	switch {
	case request.SnapshotID != nil:
		snapshot, err := table.Snapshot(*request.SnapshotID)
		return snapshot, table.SchemaOf(snapshot), err
	case request.AsOf != nil:
		snapshot, err := snapshotAsOf(table, *request.AsOf)
		return snapshot, table.SchemaOf(snapshot), err
	case request.Ref != "":
		snapshot, err := table.SnapshotByRef(request.Ref)
		if table.Refs[request.Ref].Type == "tag" {
			return snapshot, table.SchemaOf(snapshot), err
		}
		return snapshot, table.CurrentSchema(), err
	}
	return table.CurrentSnapshot(), table.CurrentSchema(), nil
}

// snapshotAsOf is the snapshot that was current at a time.
func snapshotAsOf(table *meta.Table, at time.Time) (*meta.Snapshot, error) {
	var found *int64
	for i, entry := range table.SnapshotLog {
		if entry.TimestampMillis <= at.UnixMilli() {
			found = &table.SnapshotLog[i].SnapshotID
		}
	}
	if found == nil {
		return nil, errs.At(errs.NotFound, "read table metadata", table.MetadataLocation, "no snapshot was current at %s", at.UTC().Format(time.RFC3339Nano))
	}
	return table.Snapshot(*found)
}
