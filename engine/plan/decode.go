package plan

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/icebergexec/icebergexec/engine/avro"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// recordDecoder is a decoder that binds the fields of manifests by field id and
// decodes only those that planning wants. The numbers in its methods are the
// field ids of the specification.
type recordDecoder struct {
	pool *mem.Pool // charged for the blocks of manifests; nil: none
}

// formatVersion is the version that a manifest or manifest list says it has.
func formatVersion(r *avro.Records, assumed int) (int, error) {
	text, ok := r.Metadata("format-version")
	if !ok || text == "" {
		return assumed, nil
	}
	version, err := strconv.Atoi(text)
	switch {
	case err != nil || version < 1:
		return 0, errs.New(errs.Corrupt, "its format version is %q", text)
	case version > 3:
		return 0, errs.New(errs.Unsupported, "it has format version %d; this version reads 1 to 3", version)
	}
	return version, nil
}

func (d recordDecoder) list(f fileio.File) ([]manifest, error) {
	r, err := avro.OpenRecords(f, d.pool)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var path, lower, upper, keyMetadata avro.Bytes
	var specID, contentID, sequence, snapshotID, added, existing, firstRowID avro.Long
	var containsNull, containsNaN avro.Bool
	var partitions avro.List
	var summaries []expr.FieldSummary

	root := r.Root()
	required := root.Bytes(&path, 500, "manifest_path")
	required = root.Long(&specID, 502, "partition_spec_id") && required
	if !required {
		return nil, errs.New(errs.Corrupt, "its schema is not that of a manifest list")
	}
	inferred := 1
	if root.Long(&sequence, 515, "sequence_number") {
		inferred = 2
	}
	if root.Long(&firstRowID, 520, "first_row_id") {
		inferred = 3
	}
	root.Long(&contentID, 517, "content")
	root.Long(&snapshotID, 503, "added_snapshot_id")
	root.Long(&added, 504, "added_files_count", "added_data_files_count")
	root.Long(&existing, 505, "existing_files_count", "existing_data_files_count")
	root.Bytes(&keyMetadata, 519, "key_metadata")
	summary := root.List(&partitions, func() {
		s := expr.FieldSummary{ContainsNull: containsNull.Value}
		if containsNaN.Valid {
			nan := containsNaN.Value
			s.ContainsNaN = &nan
		}
		if lower.Valid {
			s.Lower = bytes.Clone(lower.Value)
		}
		if upper.Valid {
			s.Upper = bytes.Clone(upper.Value)
		}
		summaries = append(summaries, s)
	}, 507, "partitions")
	summary.Bool(&containsNull, 509, "contains_null")
	summary.Bool(&containsNaN, 518, "contains_nan")
	summary.Bytes(&lower, 510, "lower_bound")
	summary.Bytes(&upper, 511, "upper_bound")

	version, err := formatVersion(r, inferred)
	if err != nil {
		return nil, err
	}
	if version < inferred {
		return nil, errs.New(errs.Corrupt, "it says format version %d and has the fields of version %d", version, inferred)
	}
	count := func(n avro.Long) int32 {
		if !n.Valid {
			return -1
		}
		return int32(n.Value)
	}
	var manifests []manifest
	for r.Next() {
		m := manifest{
			path: string(path.Value), specID: int(specID.Value),
			deletes: contentID.Value == 1, sequence: sequence.Value, snapshotID: snapshotID.Value,
			firstRowID: firstRowID.Pointer(), added: count(added), existing: count(existing), encrypted: len(keyMetadata.Value) > 0,
			summaries: append([]expr.FieldSummary(nil), summaries...),
		}
		summaries = summaries[:0]
		if !snapshotID.Valid {
			m.snapshotID = -1
		}
		manifests = append(manifests, m)
	}
	return manifests, r.Err()
}

// entryFields are the bound fields of a manifest's entries, used again for each.
type entryFields struct {
	status, snapshotID, sequence, fileSequence      avro.Long
	content, records, size                          avro.Long
	path, format, keyMetadata, referenced           avro.Bytes
	tuple                                           avro.Tuple
	sortOrder, firstRowID, blobOffset, blobSize     avro.Long
	splitOffsets, equalityIDs                       avro.Longs
	columnSizes, valueCounts, nullCounts, nanCounts avro.LongMap
	lower, upper                                    avro.BytesMap

	// partitions are those of the entries so far, by their bytes.
	partitions map[string]*partition
	// Files of one manifest share their format and often what they refer to.
	lastFormat, lastReferenced string
}

func (e *entryFields) bind(root *avro.Binder, want statistics) error {
	file := root.Record(2, "data_file")
	required := root.Long(&e.status, 0, "status")
	required = file.Bytes(&e.path, 100, "file_path") && required
	required = file.Bytes(&e.format, 101, "file_format") && required
	required = file.Long(&e.records, 103, "record_count") && required
	required = file.Long(&e.size, 104, "file_size_in_bytes") && required
	if !required {
		return errs.New(errs.Corrupt, "its schema is not that of a manifest")
	}
	root.Long(&e.snapshotID, 1, "snapshot_id")
	root.Long(&e.sequence, 3, "sequence_number")
	root.Long(&e.fileSequence, 4, "file_sequence_number")
	file.Long(&e.content, 134, "content")
	file.Tuple(&e.tuple, 102, "partition")
	file.Bytes(&e.keyMetadata, 131, "key_metadata")
	file.Longs(&e.splitOffsets, 132, "split_offsets")
	file.Longs(&e.equalityIDs, 135, "equality_ids")
	file.Long(&e.sortOrder, 140, "sort_order_id")
	file.Long(&e.firstRowID, 142, "first_row_id")
	file.Bytes(&e.referenced, 143, "referenced_data_file")
	file.Long(&e.blobOffset, 144, "content_offset")
	file.Long(&e.blobSize, 145, "content_size_in_bytes")
	if want.all {
		file.LongMap(&e.columnSizes, 108, "column_sizes")
	}
	if !want.none() {
		file.LongMap(&e.valueCounts, 109, "value_counts")
		file.LongMap(&e.nullCounts, 110, "null_value_counts")
		file.LongMap(&e.nanCounts, 137, "nan_value_counts")
		file.BytesMap(&e.lower, 125, "lower_bounds")
		file.BytesMap(&e.upper, 128, "upper_bounds")
	}
	return nil
}

func (d recordDecoder) entries(f fileio.File, m *manifest, want statistics, yield func(*entry) error) error {
	r, err := avro.OpenRecords(f, d.pool)
	if err != nil {
		return err
	}
	defer r.Close()
	version, err := formatVersion(r, 1)
	if err != nil {
		return err
	}
	content, _ := r.Metadata("content")
	switch {
	case content == "" && version > 1:
		return errs.New(errs.Corrupt, "it has format version %d and does not say what it lists", version)
	case content != "" && content != "data" && content != "deletes":
		return errs.New(errs.Corrupt, "it says that it lists %q, not data or deletes", content)
	case m.deletes != (content == "deletes"):
		return errs.New(errs.Corrupt, "the manifest list and the manifest disagree on whether it lists deletes")
	}
	if m.specID == unknownSpec {
		m.specID = 0 // what manifests mean that do not say
		if id, ok := r.Metadata("partition-spec-id"); ok {
			if m.specID, err = strconv.Atoi(id); err != nil {
				return errs.New(errs.Corrupt, "its partition-spec-id is %q", id)
			}
		}
	}
	e := &entryFields{partitions: map[string]*partition{}}
	if err := e.bind(r.Root(), want); err != nil {
		return err
	}
	for r.Next() {
		out, err := e.entry(want)
		if err != nil {
			return err
		}
		if err := yield(out); err != nil {
			return err
		}
	}
	return r.Err()
}

// entry makes an entry of the bound fields.
func (e *entryFields) entry(want statistics) (*entry, error) {
	if s := e.status.Value; s < 0 || s > 2 {
		return nil, errs.New(errs.Corrupt, "an entry has the status %d", s)
	}
	p, err := e.partition()
	if err != nil {
		return nil, err
	}
	out := &entry{
		status: status(e.status.Value), snapshotID: e.snapshotID.Pointer(), sequence: e.sequence.Pointer(), fileSequence: e.fileSequence.Pointer(),
		partition: p, encrypted: len(e.keyMetadata.Value) > 0,
		file: File{
			Content: Content(e.content.Value), Path: string(e.path.Value), Format: e.formatName(),
			RecordCount: e.records.Value, Size: e.size.Value, FirstRowID: e.firstRowID.Pointer(),
			ContentOffset: e.blobOffset.Pointer(), ContentSize: e.blobSize.Pointer(),
			SplitOffsets: append([]int64(nil), e.splitOffsets.Values...),
		},
	}
	for _, id := range e.equalityIDs.Values {
		out.file.EqualityIDs = append(out.file.EqualityIDs, int(id))
	}
	if e.sortOrder.Valid {
		id := int(e.sortOrder.Value)
		out.file.SortOrderID = &id
	}
	if e.referenced.Valid {
		if e.lastReferenced != string(e.referenced.Value) {
			e.lastReferenced = string(e.referenced.Value)
		}
		path := e.lastReferenced
		out.file.ReferencedDataFile = &path
	}
	if !want.none() {
		out.file.Metrics = e.metrics(want)
	}
	return out, nil
}

func (e *entryFields) partition() (*partition, error) {
	if p, ok := e.partitions[string(e.tuple.Bytes)]; ok {
		return p, nil
	}
	values, err := e.tuple.Values()
	if err != nil {
		return nil, err
	}
	if len(e.partitions) == maxPartitions {
		clear(e.partitions)
	}
	p := &partition{values: values}
	e.partitions[string(e.tuple.Bytes)] = p
	return p, nil
}

// maxPartitions bounds the partitions that are remembered of a manifest. Most
// manifests have few, or come sorted by them.
const maxPartitions = 4096

func (e *entryFields) formatName() string {
	if !strings.EqualFold(e.lastFormat, string(e.format.Value)) {
		e.lastFormat = strings.ToUpper(string(e.format.Value))
	}
	return e.lastFormat
}

// metrics makes maps of the wanted statistics.
func (e *entryFields) metrics(want statistics) *Metrics {
	wanted := func(id int) bool { return want.ids[id] }
	switch {
	case want.all:
		wanted = func(int) bool { return true }
	case want.keys && Content(e.content.Value) == EqualityDeletes:
		wanted = func(id int) bool { return want.ids[id] || slices.Contains(e.equalityIDs.Values, int64(id)) }
	}
	return &Metrics{
		ColumnSizes: longsOf(&e.columnSizes, wanted),
		ValueCounts: longsOf(&e.valueCounts, wanted), NullCounts: longsOf(&e.nullCounts, wanted), NaNCounts: longsOf(&e.nanCounts, wanted),
		LowerBounds: boundsOf(&e.lower, wanted), UpperBounds: boundsOf(&e.upper, wanted),
	}
}

func longsOf(m *avro.LongMap, wanted func(int) bool) map[int]int64 {
	if !m.Valid {
		return nil
	}
	out := map[int]int64{}
	for i, id := range m.Keys {
		if wanted(int(id)) {
			out[int(id)] = m.Values[i]
		}
	}
	return out
}

func boundsOf(m *avro.BytesMap, wanted func(int) bool) map[int][]byte {
	if !m.Valid {
		return nil
	}
	out := map[int][]byte{}
	for i, id := range m.Keys {
		if wanted(int(id)) {
			out[int(id)] = bytes.Clone(m.Values[i])
		}
	}
	return out
}
