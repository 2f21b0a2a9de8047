package plan

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
)

// libraryDecoder is a decoder on iceberg-go's manifest reader, to compare with.
type libraryDecoder struct{}

func (libraryDecoder) list(f fileio.File) ([]manifest, error) {
	files, err := iceberg.ReadManifestList(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return nil, newerVersion(err)
	}
	manifests := make([]manifest, len(files))
	for i, f := range files {
		m := manifest{
			path: f.FilePath(), specID: int(f.PartitionSpecID()),
			deletes: f.ManifestContent() == iceberg.ManifestContentDeletes, sequence: f.SequenceNum(), snapshotID: f.SnapshotID(),
			firstRowID: f.FirstRowID(), added: f.AddedDataFiles(), existing: f.ExistingDataFiles(), encrypted: len(f.KeyMetadata()) > 0,
		}
		for _, s := range f.Partitions() {
			summary := expr.FieldSummary{ContainsNull: s.ContainsNull, ContainsNaN: s.ContainsNaN}
			if s.LowerBound != nil {
				summary.Lower = *s.LowerBound
			}
			if s.UpperBound != nil {
				summary.Upper = *s.UpperBound
			}
			m.summaries = append(m.summaries, summary)
		}
		manifests[i] = m
	}
	return manifests, nil
}

// newerVersion tells a manifest of a future format version from a damaged one.
func newerVersion(err error) error {
	if strings.Contains(err.Error(), "unsupported manifest format version") {
		return errs.New(errs.Unsupported, "%v", err)
	}
	return err
}

func (libraryDecoder) entries(f fileio.File, m *manifest, want statistics, yield func(*entry) error) error {
	content := iceberg.ManifestContentData
	if m.deletes {
		content = iceberg.ManifestContentDeletes
	}
	// A file without sequence number and first row id inherits nothing, so
	// that entries come as they are written. Version 3 accepts all versions.
	file := iceberg.NewManifestFile(3, m.path, f.Size(), int32(m.specID), m.snapshotID).Content(content).Build()
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, f.Size()), 64<<10)
	var reader *iceberg.ManifestReader
	var err error
	if want.all {
		reader, err = iceberg.NewManifestReader(file, in)
	} else {
		reader, err = iceberg.NewManifestReaderWithProjection(file, in, iceberg.ManifestEntryProjection{IncludePruningStats: !want.none()})
	}
	if err != nil {
		return newerVersion(err)
	}
	defer reader.Close()
	for {
		e, err := reader.ReadEntry()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := yield(convertEntry(e, want)); err != nil {
			return err
		}
	}
}

func convertEntry(e iceberg.ManifestEntry, want statistics) *entry {
	d := e.DataFile()
	out := &entry{
		status:       status(e.Status()),
		fileSequence: e.FileSequenceNum(),
		partition:    &partition{values: d.Partition()},
		encrypted:    len(d.KeyMetadata()) > 0,
		file: File{
			Content: Content(d.ContentType()), Path: d.FilePath(), Format: strings.ToUpper(string(d.FileFormat())),
			RecordCount: d.Count(), Size: d.FileSizeBytes(), FirstRowID: d.FirstRowID(),
			EqualityIDs: d.EqualityFieldIDs(), ReferencedDataFile: d.ReferencedDataFile(),
			ContentOffset: d.ContentOffset(), ContentSize: d.ContentSizeInBytes(),
			SortOrderID: d.SortOrderID(), SplitOffsets: d.SplitOffsets(),
		},
	}
	if out.partition.values == nil {
		out.partition.values = map[int]any{}
	}
	if id := e.SnapshotID(); id != -1 {
		out.snapshotID = &id
	}
	if n := e.SequenceNum(); n != -1 {
		out.sequence = &n
	}
	if !want.none() {
		out.file.Metrics = convertMetrics(d, want)
	}
	return out
}

func convertMetrics(d iceberg.DataFile, want statistics) *Metrics {
	m := &Metrics{
		ValueCounts: d.ValueCounts(), NullCounts: d.NullValueCounts(), NaNCounts: d.NaNValueCounts(),
		LowerBounds: d.LowerBoundValues(), UpperBounds: d.UpperBoundValues(),
	}
	if want.all {
		m.ColumnSizes = d.ColumnSizes()
		return m
	}
	wanted := func(id int) bool { return want.ids[id] }
	if want.keys && d.ContentType() == iceberg.EntryContentEqDeletes {
		keys := map[int]bool{}
		for _, id := range d.EqualityFieldIDs() {
			keys[id] = true
		}
		wanted = func(id int) bool { return keys[id] || want.ids[id] }
	}
	keep(m.ValueCounts, wanted)
	keep(m.NullCounts, wanted)
	keep(m.NaNCounts, wanted)
	keep(m.LowerBounds, wanted)
	keep(m.UpperBounds, wanted)
	return m
}

func keep[V any](m map[int]V, wanted func(int) bool) {
	for id := range m {
		if !wanted(id) {
			delete(m, id)
		}
	}
}
