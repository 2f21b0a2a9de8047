package plan

import (
	"context"
	"unsafe"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/expr"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/meta"
)

// manifest is one entry of a manifest list.
type manifest struct {
	path    string
	specID  int  // unknownSpec when only the manifest itself knows
	deletes bool // it lists delete files; else data files

	sequence   int64
	snapshotID int64
	firstRowID *int64

	// The numbers of entries by status; -1 is unknown.
	added, existing int32
	summaries       []expr.FieldSummary
	encrypted       bool
}

// hasNoLiveFiles reports whether every entry is known to be DELETED.
func (m *manifest) hasNoLiveFiles() bool { return m.added == 0 && m.existing == 0 }

const unknownSpec = -1

// memorySize is roughly how much memory the entry takes.
func (m *manifest) memorySize() int64 {
	n := int64(unsafe.Sizeof(*m)) + int64(len(m.path))
	for _, s := range m.summaries {
		n += int64(unsafe.Sizeof(s)) + int64(len(s.Lower)+len(s.Upper))
	}
	return n
}

// status is what an entry says of its file. The numbers are those of the
// manifest field "status".
type status int

const (
	statusExisting status = 0
	statusAdded    status = 1
	statusDeleted  status = 2
)

// entry is one manifest entry as it is written: nothing is inherited yet. The
// numbers that may be null are pointers.
type entry struct {
	status       status
	snapshotID   *int64
	sequence     *int64
	fileSequence *int64
	partition    *partition
	encrypted    bool
	file         File // without what the manifest or its partition values give
}

// partition is the partition values of entries, one for all entries of a
// manifest with the same.
type partition struct {
	values map[int]any // as written, by partition field id
	// Values in the order of the spec and the types of the table; nil before
	// the first entry has inherited.
	tuple []iceberg.Literal
	// facts is the planner's; nil before it has looked.
	facts *partitionFacts
}

// statistics says which column metrics of the entries are wanted.
type statistics struct {
	// all also asks for column sizes; it is for plans that hand metrics on.
	all bool
	// ids are the fields whose counts and bounds are wanted.
	ids map[int]bool
	// keys asks for the metrics of each equality-delete file's own key columns.
	keys bool
}

func (s statistics) none() bool { return !s.all && !s.keys && len(s.ids) == 0 }

// decoder reads manifest lists and manifests. Its errors are about the bytes;
// the caller adds the path.
type decoder interface {
	list(f fileio.File) ([]manifest, error)
	// entries calls yield for every entry in order and stops at its error. The
	// entry belongs to yield, and may be kept. Before, an unknown spec of m is
	// set to what the manifest says.
	entries(f fileio.File, m *manifest, want statistics, yield func(*entry) error) error
}

// readManifests lists the manifests of a snapshot in the order of its manifest
// list.
func readManifests(ctx context.Context, fs fileio.FS, d decoder, s *meta.Snapshot) ([]manifest, error) {
	if s.KeyID != "" {
		return nil, errs.At(errs.Unsupported, "read manifest list", s.ManifestList, "the manifest list is encrypted, which is not supported")
	}
	if s.ManifestList == "" {
		return inlineManifests(s), nil
	}
	f, err := fs.Open(ctx, s.ManifestList)
	if err != nil {
		return nil, err
	}
	manifests, err := d.list(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return manifests, errs.WrapAs(errs.Corrupt, err, "read manifest list", s.ManifestList)
}

// inlineManifests are those of old version 1 metadata, which names the files
// and nothing more.
func inlineManifests(s *meta.Snapshot) []manifest {
	manifests := make([]manifest, len(s.Manifests))
	for i, path := range s.Manifests {
		manifests[i] = manifest{path: path, specID: unknownSpec, snapshotID: s.ID, added: -1, existing: -1}
	}
	return manifests
}

// readEntries calls yield with every live entry of a manifest; its file has
// what it inherits.
func readEntries(ctx context.Context, fs fileio.FS, d decoder, table *meta.Table, m *manifest, want statistics, yield func(*entry) error) error {
	const op = "read manifest"
	if m.encrypted {
		return errs.At(errs.Unsupported, op, m.path, "the manifest is encrypted, which is not supported")
	}
	f, err := fs.Open(ctx, m.path)
	if err != nil {
		return err
	}
	in := inheritance{manifest: m, nextRowID: m.firstRowID}
	err = d.entries(f, m, want, func(e *entry) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if e.status == statusDeleted {
			return nil
		}
		if in.spec == nil {
			spec, ok := table.SpecByID(m.specID)
			if !ok {
				return errs.New(errs.Corrupt, "its partition spec, id %d, is not in the table metadata", m.specID)
			}
			in.spec, in.types = spec, table.PartitionTypes(spec)
		}
		if err := in.apply(e); err != nil {
			return err
		}
		return yield(e)
	})
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return errs.WrapAs(errs.Corrupt, err, op, m.path)
}

// inheritance completes the entries of one manifest, in their order.
type inheritance struct {
	manifest *manifest
	spec     *iceberg.PartitionSpec
	types    []iceberg.Type
	// nextRowID is the row id that the next file without one gets; nil when
	// the manifest assigns none.
	nextRowID *int64
}

func (in *inheritance) apply(e *entry) error {
	m, f := in.manifest, &e.file
	switch {
	case e.encrypted:
		return errs.At(errs.Unsupported, "read", f.Path, "the file is encrypted, which is not supported")
	case m.deletes != (f.Content != Data):
		return errs.New(errs.Corrupt, "it lists %s, which has %s, among files of another kind", f.Path, f.Content)
	}
	f.SpecID = m.specID
	f.SnapshotID = m.snapshotID
	if e.snapshotID != nil {
		f.SnapshotID = *e.snapshotID
	}
	var err error
	if f.DataSequence, err = in.sequence(e.sequence, e.status, f); err != nil {
		return err
	}
	if f.FileSequence, err = in.sequence(e.fileSequence, e.status, f); err != nil {
		f.FileSequence = -1 // it decides nothing, so an entry may leave it open
	}
	if err := in.rowID(f); err != nil {
		return err
	}
	if len(in.types) > 0 && e.partition.tuple == nil {
		if e.partition.tuple, err = partitionTuple(in.spec, in.types, e.partition.values); err != nil {
			return err
		}
	}
	f.Partition = e.partition.tuple
	return nil
}

// sequence inherits a sequence number. Version 1 manifests have none, and
// their lists say 0, whatever the entry's status.
func (in *inheritance) sequence(own *int64, st status, f *File) (int64, error) {
	switch {
	case own != nil:
		return *own, nil
	case st == statusAdded || in.manifest.sequence == 0:
		return in.manifest.sequence, nil
	}
	return 0, errs.New(errs.Corrupt, "the existing file %s has no sequence number, which only added files may inherit", f.Path)
}

// rowID gives the file the next row ids of its manifest when it has none.
func (in *inheritance) rowID(f *File) error {
	if in.nextRowID == nil || f.FirstRowID != nil || f.Content != Data {
		return nil
	}
	first := *in.nextRowID
	next := first + f.RecordCount
	if f.RecordCount < 0 || next < first {
		return errs.New(errs.Corrupt, "%s has %d records, so that row ids cannot be assigned", f.Path, f.RecordCount)
	}
	f.FirstRowID, in.nextRowID = &first, &next
	return nil
}
