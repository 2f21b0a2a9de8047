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
	if request.MemoryLimit != 0 && request.MemoryLimit < MinMemoryLimit {
		return nil, errs.New(errs.InvalidArgument, "memory_limit is %d bytes; it must be at least 16 MiB (%d)", request.MemoryLimit, MinMemoryLimit)
	}
	if request.Limit != nil && *request.Limit < 0 {
		return nil, errs.New(errs.InvalidArgument, "limit is %d; it must not be negative", *request.Limit)
	}
	if request.BatchRows < 0 {
		return nil, errs.New(errs.InvalidArgument, "batch_rows is %d; it must be at least 1, or 0 for the engine's", request.BatchRows)
	}
	lifetime, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &stream{engine: e, pool: e.pool.Child("scan", request.MemoryLimit), cancel: cancel}
	s.charged = s.pool.Reserve("table metadata and filter")
	err := e.add(s)
	if err == nil {
		err = s.start(ctx, lifetime, request)
	}
	if err != nil {
		_ = s.Close() // the error that counts is the request's
		return nil, err
	}
	return s, nil
}

// start opens the stream so that Engine.Close can end it meanwhile.
func (s *stream) start(ctx, lifetime context.Context, request ScanRequest) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lifetime, func() { cancel(context.Cause(lifetime)) })()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.open(ctx, lifetime, request)
	if cause := s.stopCause(); cause != nil {
		return cause
	}
	return err
}

// open reads the metadata and makes the stream's inner scan.
func (s *stream) open(ctx, lifetime context.Context, request ScanRequest) error {
	options := s.engine.options
	prefixes := request.PathPrefixes
	if prefixes == nil {
		prefixes = options.PathPrefixes
	}
	fs := fileio.WithPrefixes(s.engine.fs, prefixes)
	table, err := loadTable(ctx, fs, request, s.charged)
	if err != nil {
		return err
	}
	snapshot, schema, err := choose(table, request)
	if err != nil {
		return err
	}
	selection, err := scan.Select(table, schema, request.Columns, !request.CaseInsensitive, request.Arrow)
	if err != nil {
		return errs.Wrap(err, "scan", request.MetadataLocation)
	}
	var filter *expr.Bound
	if request.Filter != nil {
		if filter, err = request.Filter.Bind(schema, !request.CaseInsensitive); err != nil {
			return errs.Wrap(err, "filter", request.MetadataLocation)
		}
		if err := s.charged.TryGrow(filter.MemorySize()); err != nil {
			return err
		}
	}
	batchRows := request.BatchRows
	if batchRows == 0 {
		batchRows = options.BatchRows
	}
	planTasks := func(ctx context.Context) (scan.Tasks, error) {
		tasks, err := plan.Plan(ctx, fs, s.pool, plan.Request{
			Table: table, Snapshot: snapshot, Filter: filter, Mode: request.FilterMode, Workers: options.Threads,
		})
		if err != nil {
			return nil, err
		}
		return tasks, nil
	}
	s.schema = selection.Schema
	s.inner = scan.New(lifetime, scan.Config{
		Plan: planTasks, Table: table, Schema: schema, Selection: selection,
		Filter: filter, Mode: request.FilterMode, Limit: request.Limit,
		FS: fs, Pool: s.pool, Alloc: options.Allocator, Host: options.HostReader,
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
		return nil, nil, errs.New(errs.InvalidArgument, "a scan reads a snapshot, a branch or tag, or the state at a time; only one of them can be given")
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
