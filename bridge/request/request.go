// Package request is the JSON of the C interface: the documents that
// docs/requests.md describes, and how they become options and requests of the
// engine.
//
//	JSON --fields: no unknown, none twice--> EngineOptions, Scan --> engine.Options, engine.ScanRequest
package request

import (
	"encoding/json"
	"fmt"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/project"
)

// EngineOptions is the document of iex_engine_open.
type EngineOptions struct {
	Version          Version           `json:"version"`
	MemoryLimit      Size              `json:"memory_limit"`
	SpillDir         string            `json:"spill_dir"`
	SpillLimit       Size              `json:"spill_limit"`
	SpillCompression string            `json:"spill_compression"`
	Threads          *int              `json:"threads"`
	PathPrefixes     map[string]string `json:"path_prefixes"`
}

// ParseEngineOptions reads the document of iex_engine_open; an empty text is an
// empty document.
func ParseEngineOptions(text []byte) (engine.Options, error) {
	var d EngineOptions
	if len(text) > 0 {
		if err := decode(text, &d); err != nil {
			return engine.Options{}, err
		}
	}
	options := engine.Options{MemoryLimit: int64(d.MemoryLimit), PathPrefixes: d.PathPrefixes}
	if d.Threads != nil {
		if *d.Threads < 1 {
			return options, bad("threads", *d.Threads, "a whole number of at least 1")
		}
		options.Threads = *d.Threads
	}
	switch d.SpillCompression {
	case "", "none", "lz4", "zstd":
	default:
		return options, bad("spill_compression", d.SpillCompression, `"none", "lz4" or "zstd"`)
	}
	return options, nil
}

// Scan is the document of iex_scan.
type Scan struct {
	Version          Version           `json:"version"`
	MetadataLocation string            `json:"metadata_location"`
	Metadata         json.RawMessage   `json:"metadata"`
	SnapshotID       *int64            `json:"snapshot_id"`
	Ref              string            `json:"ref"`
	Columns          []string          `json:"columns"`
	Filter           json.RawMessage   `json:"filter"`
	FilterMode       *string           `json:"filter_mode"`
	CaseSensitive    *bool             `json:"case_sensitive"`
	Limit            *int64            `json:"limit"`
	BatchRows        *int              `json:"batch_rows"`
	LargeTypes       bool              `json:"large_types"`
	MemoryLimit      Size              `json:"memory_limit"`
	PathPrefixes     map[string]string `json:"path_prefixes"`
}

// ParseScan reads the document of iex_scan.
func ParseScan(text []byte) (engine.ScanRequest, error) {
	var d Scan
	if err := decode(text, &d); err != nil {
		return engine.ScanRequest{}, err
	}
	req := engine.ScanRequest{
		Metadata: d.Metadata, MetadataLocation: d.MetadataLocation,
		SnapshotID: d.SnapshotID, Ref: d.Ref,
		Columns: d.Columns, CaseInsensitive: d.CaseSensitive != nil && !*d.CaseSensitive, Limit: d.Limit,
		Arrow:       project.ArrowOptions{FieldIDs: true, LargeStrings: d.LargeTypes, LargeLists: d.LargeTypes},
		MemoryLimit: int64(d.MemoryLimit), PathPrefixes: d.PathPrefixes,
	}
	if d.Metadata == nil && d.MetadataLocation == "" {
		return req, errs.New(errs.InvalidArgument, "metadata_location is missing: the request must name a table metadata file, or hold the metadata")
	}
	if d.Limit != nil && *d.Limit < 0 {
		return req, bad("limit", *d.Limit, "a whole number of at least 0")
	}
	if d.BatchRows != nil {
		if *d.BatchRows < 1 {
			return req, bad("batch_rows", *d.BatchRows, "a whole number of at least 1")
		}
		req.BatchRows = *d.BatchRows
	}
	if d.FilterMode != nil {
		mode, err := expr.ParseMode(*d.FilterMode)
		if err != nil {
			return req, err
		}
		req.FilterMode = mode
	}
	if d.Filter != nil {
		filter, err := expr.Parse(d.Filter)
		if err != nil {
			return req, err
		}
		req.Filter = filter
	}
	return req, nil
}

// EngineStats is the document of iex_engine_stats.
type EngineStats struct {
	MemoryLimit    int64 `json:"memory_limit"`
	MemoryUsed     int64 `json:"memory_used"`
	MemoryPeak     int64 `json:"memory_peak"`
	ExportedBytes  int64 `json:"exported_bytes"`
	AllocatedBytes int64 `json:"allocated_bytes"`
	OpenStreams    int   `json:"open_streams"`
	Batches        int64 `json:"batches"`
	Rows           int64 `json:"rows"`
	FilesOpened    int64 `json:"files_opened"`
	BytesRead      int64 `json:"bytes_read"`
	Handles        int64 `json:"handles"`
}

// StreamStats is the document of iex_stream_stats.
type StreamStats struct {
	Batches       int64 `json:"batches"`
	Rows          int64 `json:"rows"`
	ExportedBytes int64 `json:"exported_bytes"`
	LargeFields   []int `json:"large_fields,omitempty"`
}

func bad(field string, value any, allowed string) error {
	return errs.New(errs.InvalidArgument, "%s is %s; it must be %s", field, quote(value), allowed)
}

// quote shows a value in an error message, shortened when it is long.
func quote(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return shorten(string(text))
}

func shorten(text string) string {
	const most = 80
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "..."
	}
	return text
}
