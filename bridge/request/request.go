// Package request is the JSON of the C interface: the documents that
// docs/requests.md describes, and how they become options and requests of the
// engine.
//
//	JSON --fields: no unknown, none twice--> EngineOptions, Scan, Plan --> engine.Options, engine.ScanRequest, engine.PlanRequest
package request

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/project"
)

// EngineOptions is the document of iex_engine_open.
type EngineOptions struct {
	Version          Version           `json:"version"`
	MemoryLimit      MemorySize        `json:"memory_limit"`
	SpillDir         *string           `json:"spill_dir"`
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
	options := engine.Options{MemoryLimit: int64(d.MemoryLimit), SpillLimit: int64(d.SpillLimit), PathPrefixes: d.PathPrefixes}
	if d.SpillDir != nil {
		if options.SpillDir = *d.SpillDir; options.SpillDir == "" {
			return options, bad("spill_dir", "", "a directory that exists and can be written to")
		}
	}
	if d.Threads != nil {
		if *d.Threads < 1 {
			return options, bad("threads", *d.Threads, "a whole number of at least 1")
		}
		options.Threads = *d.Threads
	}
	switch d.SpillCompression {
	case "", "none":
	default:
		return options, bad("spill_compression", d.SpillCompression, `"none": what is spilled is not compressed`)
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
	Tasks            []json.RawMessage `json:"tasks"`
	Limit            *int64            `json:"limit"`
	BatchRows        *int              `json:"batch_rows"`
	LargeTypes       bool              `json:"large_types"`
	MemoryLimit      MemorySize        `json:"memory_limit"`
	PathPrefixes     map[string]string `json:"path_prefixes"`
}

// ParseScan reads the document of iex_scan; sets are the literals that its
// filter refers to by number.
func ParseScan(text []byte, sets ...arrow.Array) (engine.ScanRequest, error) {
	var d Scan
	if err := decode(text, &d); err != nil {
		return engine.ScanRequest{}, err
	}
	req := engine.ScanRequest{
		Metadata: d.Metadata, MetadataLocation: d.MetadataLocation,
		SnapshotID: d.SnapshotID, Ref: d.Ref,
		Columns: d.Columns, CaseInsensitive: d.CaseSensitive != nil && !*d.CaseSensitive, Limit: d.Limit,
		Tasks:       d.Tasks,
		Arrow:       project.ArrowOptions{FieldIDs: true, LargeStrings: d.LargeTypes, LargeLists: d.LargeTypes},
		MemoryLimit: int64(d.MemoryLimit), PathPrefixes: d.PathPrefixes,
	}
	if d.Metadata == nil && d.MetadataLocation == "" {
		return req, errNoTable
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
	var err error
	req.Filter, req.FilterMode, err = parseFilter(d.Filter, d.FilterMode, sets)
	return req, err
}

func parseFilter(text json.RawMessage, modeName *string, sets []arrow.Array) (filter *expr.Expr, mode expr.Mode, err error) {
	if modeName != nil {
		if mode, err = expr.ParseMode(*modeName); err != nil {
			return nil, mode, err
		}
	}
	if text != nil {
		filter, err = expr.Parse(text, sets...)
	}
	return filter, mode, err
}

// Plan is the document of iex_plan.
type Plan struct {
	Version           Version           `json:"version"`
	MetadataLocation  string            `json:"metadata_location"`
	Metadata          json.RawMessage   `json:"metadata"`
	SnapshotID        *int64            `json:"snapshot_id"`
	Ref               string            `json:"ref"`
	FromSnapshotID    *int64            `json:"from_snapshot_id"`
	Filter            json.RawMessage   `json:"filter"`
	FilterMode        *string           `json:"filter_mode"`
	CaseSensitive     *bool             `json:"case_sensitive"`
	IncludeEmptyFiles bool              `json:"include_empty_files"`
	AllDeletes        bool              `json:"all_deletes"`
	Metrics           bool              `json:"metrics"`
	MemoryLimit       MemorySize        `json:"memory_limit"`
	PathPrefixes      map[string]string `json:"path_prefixes"`
}

// ParsePlan reads the document of iex_plan; sets are as in ParseScan.
func ParsePlan(text []byte, sets ...arrow.Array) (engine.PlanRequest, error) {
	var d Plan
	if err := decode(text, &d); err != nil {
		return engine.PlanRequest{}, err
	}
	req := engine.PlanRequest{
		Metadata: d.Metadata, MetadataLocation: d.MetadataLocation,
		SnapshotID: d.SnapshotID, Ref: d.Ref, FromSnapshotID: d.FromSnapshotID,
		CaseInsensitive:   d.CaseSensitive != nil && !*d.CaseSensitive,
		IncludeEmptyFiles: d.IncludeEmptyFiles, AllDeletes: d.AllDeletes, Metrics: d.Metrics,
		MemoryLimit: int64(d.MemoryLimit), PathPrefixes: d.PathPrefixes,
	}
	if d.Metadata == nil && d.MetadataLocation == "" {
		return req, errNoTable
	}
	var err error
	req.Filter, req.FilterMode, err = parseFilter(d.Filter, d.FilterMode, sets)
	return req, err
}

// Sort is the document of iex_sort.
type Sort struct {
	Version Version   `json:"version"`
	Keys    []SortKey `json:"keys"`
}

// SortKey is one element of the keys of a Sort.
type SortKey struct {
	Column    string  `json:"column"`
	Transform *string `json:"transform"`
	Direction *string `json:"direction"`
	Nulls     *string `json:"nulls"`
}

// UnmarshalJSON holds keys to the rules of whole documents.
func (k *SortKey) UnmarshalJSON(text []byte) error {
	type plain SortKey // without this method
	return decode(text, (*plain)(k))
}

// ParseSort reads the document of iex_sort.
func ParseSort(text []byte) ([]engine.SortKey, error) {
	var d Sort
	if err := decode(text, &d); err != nil {
		return nil, err
	}
	if len(d.Keys) == 0 {
		return nil, errs.New(errs.InvalidArgument, "keys is missing: a sort needs at least one")
	}
	keys := make([]engine.SortKey, len(d.Keys))
	for i, k := range d.Keys {
		keys[i].Column = k.Column
		if k.Column == "" {
			return nil, errs.New(errs.InvalidArgument, "keys: element %d names no column", i)
		}
		switch direction := or(k.Direction, "ascending"); direction {
		case "ascending":
		case "descending":
			keys[i].Descending = true
		default:
			return nil, bad("direction", direction, `"ascending" or "descending"`)
		}
		// Where Iceberg puts nulls unless a sort order says otherwise.
		nulls := "first"
		if keys[i].Descending {
			nulls = "last"
		}
		switch nulls = or(k.Nulls, nulls); nulls {
		case "first":
		case "last":
			keys[i].NullsLast = true
		default:
			return nil, bad("nulls", nulls, `"first" or "last"`)
		}
		if k.Transform != nil {
			transform, err := iceberg.ParseTransform(*k.Transform)
			if _, unknown := transform.(iceberg.UnknownTransform); unknown || err != nil {
				return nil, bad("transform", *k.Transform, `a transform such as "identity", "bucket[16]", "truncate[4]" or "day"`)
			}
			keys[i].Transform = transform
		}
	}
	return keys, nil
}

func or(value *string, otherwise string) string {
	if value == nil {
		return otherwise
	}
	return *value
}

var errNoTable = errs.New(errs.InvalidArgument, "metadata_location is missing: the request must name a table metadata file, or hold the metadata")

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
