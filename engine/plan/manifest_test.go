package plan

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/meta"
)

func ptr[T any](v T) *T { return &v }

// TestInheritance has what a live entry says, what its manifest says, and what
// the file gets.
func TestInheritance(t *testing.T) {
	cases := []struct {
		name     string
		entry    entry
		manifest manifest
		want     File
		err      string
	}{
		{"version 1 has no sequence numbers", entry{status: statusExisting, snapshotID: ptr(int64(5))}, manifest{snapshotID: 9}, File{SnapshotID: 5}, ""},
		{"added inherits", entry{status: statusAdded}, manifest{sequence: 7, snapshotID: 9}, File{SnapshotID: 9, DataSequence: 7, FileSequence: 7}, ""},
		{"added with a number of its own", entry{status: statusAdded, sequence: ptr(int64(3))}, manifest{sequence: 7}, File{DataSequence: 3, FileSequence: 7}, ""},
		{"existing keeps", entry{status: statusExisting, sequence: ptr(int64(3)), fileSequence: ptr(int64(4)), snapshotID: ptr(int64(5))},
			manifest{sequence: 7, snapshotID: 9}, File{DataSequence: 3, FileSequence: 4, SnapshotID: 5}, ""},
		{"existing without file sequence number", entry{status: statusExisting, sequence: ptr(int64(3))}, manifest{sequence: 7}, File{DataSequence: 3, FileSequence: -1}, ""},
		{"existing without number", entry{status: statusExisting}, manifest{sequence: 7}, File{}, "has no sequence number"},
		{"number 0 of an upgraded table", entry{status: statusExisting, sequence: ptr(int64(0))}, manifest{sequence: 7}, File{FileSequence: -1}, ""},
		{"encrypted", entry{encrypted: true}, manifest{}, File{}, "encrypted"},
		{"deletes among data", entry{file: File{Content: EqualityDeletes}}, manifest{}, File{}, "among files of another kind"},
		{"data among deletes", entry{}, manifest{deletes: true}, File{}, "among files of another kind"},
	}
	for _, c := range cases {
		in := inheritance{manifest: &c.manifest, spec: iceberg.UnpartitionedSpec}
		c.entry.partition = &partition{}
		err := in.apply(&c.entry)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(c.entry.file, c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, c.entry.file, err, c.want)
		}
	}
}

// TestRowIDs: files without a first row id take the next ids of their manifest.
func TestRowIDs(t *testing.T) {
	in := inheritance{manifest: &manifest{sequence: 1}, spec: iceberg.UnpartitionedSpec, nextRowID: ptr(int64(100))}
	var got []int64
	for _, f := range []File{{RecordCount: 10}, {RecordCount: 5, FirstRowID: ptr(int64(7))}, {RecordCount: 3}, {RecordCount: 1}} {
		e := entry{status: statusAdded, partition: &partition{}, file: f}
		if err := in.apply(&e); err != nil {
			t.Fatal(err)
		}
		got = append(got, *e.file.FirstRowID)
	}
	if want := []int64{100, 7, 110, 113}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	e := entry{status: statusAdded, partition: &partition{}, file: File{RecordCount: -1}}
	if err := in.apply(&e); errs.CodeOf(err) != errs.Corrupt {
		t.Error(err)
	}
	none := inheritance{manifest: &manifest{sequence: 1}, spec: iceberg.UnpartitionedSpec}
	e = entry{status: statusAdded, partition: &partition{}, file: File{RecordCount: 1}}
	if err := none.apply(&e); err != nil || e.file.FirstRowID != nil {
		t.Error("a manifest without first row id assigns none")
	}
}

// TestPartitionLiterals: values as manifest readers give them, in the type
// that the table has now.
func TestPartitionLiterals(t *testing.T) {
	id := uuid.MustParse("f79c3e09-677c-4bbd-a479-3f349cb785e7")
	cases := []struct {
		typ   iceberg.Type
		value any
		want  iceberg.Literal
	}{
		{iceberg.Int32Type{}, nil, nil},
		{iceberg.BooleanType{}, true, iceberg.BoolLiteral(true)},
		{iceberg.Int32Type{}, int32(7), iceberg.Int32Literal(7)},
		{iceberg.Int64Type{}, int32(7), iceberg.Int64Literal(7)},
		{iceberg.Int64Type{}, int64(7), iceberg.Int64Literal(7)},
		{iceberg.Float64Type{}, float32(0.5), iceberg.Float64Literal(0.5)},
		{iceberg.DateType{}, int32(7), iceberg.DateLiteral(7)},
		{iceberg.DateType{}, iceberg.Date(7), iceberg.DateLiteral(7)},
		{iceberg.TimestampType{}, iceberg.Date(1), iceberg.TimestampLiteral(86400_000_000)},
		{iceberg.TimestampNsType{}, iceberg.Date(-1), iceberg.TimestampNsLiteral(-86400_000_000_000)},
		{iceberg.TimestampTzType{}, iceberg.Timestamp(7), iceberg.TimestampLiteral(7)},
		{iceberg.TimeType{}, int64(7), iceberg.TimeLiteral(7)},
		{iceberg.StringType{}, "a", iceberg.StringLiteral("a")},
		{iceberg.BinaryType{}, []byte("a"), iceberg.BinaryLiteral("a")},
		{iceberg.FixedTypeOf(2), [2]byte{1, 2}, iceberg.FixedLiteral{1, 2}},
		{iceberg.UUIDType{}, id, iceberg.UUIDLiteral(id)},
		{iceberg.UUIDType{}, id[:], iceberg.UUIDLiteral(id)},
		{iceberg.DecimalTypeOf(9, 2), []byte{0xff, 0x9c}, iceberg.DecimalLiteral{Val: decimal128.FromI64(-100), Scale: 2}},
		{iceberg.DecimalTypeOf(38, 2), iceberg.DecimalLiteral{Val: decimal128.FromI64(5), Scale: 2}, iceberg.DecimalLiteral{Val: decimal128.FromI64(5), Scale: 2}},
		{iceberg.UnknownType{}, int32(7), iceberg.Int64Literal(7)},
	}
	for _, c := range cases {
		got, err := partitionLiteral(c.typ, c.value)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v as %s: got %#v, %v; want %#v", c.value, c.typ, got, err, c.want)
		}
	}
	for _, c := range []struct {
		typ   iceberg.Type
		value any
	}{{iceberg.Int32Type{}, int64(1 << 40)}, {iceberg.Int32Type{}, "a"}, {iceberg.DateType{}, "2020-01-01"}, {iceberg.StringType{}, int32(1)},
		{iceberg.DecimalTypeOf(9, 2), iceberg.DecimalLiteral{Scale: 3}}, {iceberg.FixedTypeOf(2), []byte{1}}, {iceberg.UUIDType{}, []byte{1}}, {iceberg.Int32Type{}, struct{}{}}} {
		if got, err := partitionLiteral(c.typ, c.value); err == nil {
			t.Errorf("%v as %s: got %v", c.value, c.typ, got)
		}
	}
}

// written is a table that a test writes with iceberg-go's manifest writers.
type written struct {
	t         *testing.T
	dir       string
	version   int
	schema    *iceberg.Schema
	specs     []iceberg.PartitionSpec
	manifests []iceberg.ManifestFile
}

func newWritten(t *testing.T, version int, specs ...iceberg.PartitionSpec) *written {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.Int64Type{}},
		iceberg.NestedField{ID: 2, Name: "region", Type: iceberg.StringType{}})
	if specs == nil {
		specs = []iceberg.PartitionSpec{*iceberg.UnpartitionedSpec}
	}
	return &written{t: t, dir: t.TempDir(), version: version, schema: schema, specs: specs}
}

// writtenEntry is an entry of a manifest to write.
type writtenEntry struct {
	status   iceberg.ManifestEntryStatus
	file     *iceberg.DataFileBuilder
	sequence *int64
	snapshot int64
}

func (w *written) file(spec int, content iceberg.ManifestEntryContent, path string, partition map[int]any) *iceberg.DataFileBuilder {
	b, err := iceberg.NewDataFileBuilder(w.specs[spec], content, path, iceberg.ParquetFile, partition, nil, nil, 10, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// manifest writes a manifest of the snapshot with the given sequence number.
func (w *written) manifest(version, spec int, content iceberg.ManifestContent, snapshot, sequence int64, entries ...writtenEntry) iceberg.ManifestFile {
	w.t.Helper()
	var buf bytes.Buffer
	out, err := iceberg.NewManifestWriter(version, &buf, w.specs[spec], w.schema, snapshot, iceberg.WithManifestWriterContent(content))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		id := e.snapshot
		if id == 0 {
			id = snapshot
		}
		entry := iceberg.NewManifestEntry(e.status, &id, e.sequence, e.sequence, e.file.Build())
		switch e.status {
		case iceberg.EntryStatusADDED:
			err = out.Add(entry)
		case iceberg.EntryStatusEXISTING:
			err = out.Existing(entry)
		case iceberg.EntryStatusDELETED:
			err = out.Delete(entry)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.dir, fmt.Sprintf("m%d.avro", len(w.manifests)))
	m, err := out.ToManifestFile(path, int64(buf.Len()), iceberg.WithManifestFileContent(content))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.manifests = append(w.manifests, m)
	return m
}

// list writes the manifest list and returns the snapshot.
func (w *written) list(snapshot, sequence int64) *meta.Snapshot {
	w.t.Helper()
	var buf bytes.Buffer
	if err := iceberg.WriteManifestList(w.version, &buf, snapshot, nil, &sequence, 1000, w.manifests); err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.dir, fmt.Sprintf("snap-%d.avro", snapshot))
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return &meta.Snapshot{ID: snapshot, SequenceNumber: sequence, ManifestList: path}
}

func (w *written) table(snapshots ...*meta.Snapshot) *meta.Table {
	w.t.Helper()
	schema, err := w.schema.MarshalJSON()
	if err != nil {
		w.t.Fatal(err)
	}
	var specs, snaps []string
	for _, s := range w.specs {
		b, err := s.MarshalJSON()
		if err != nil {
			w.t.Fatal(err)
		}
		specs = append(specs, string(b))
	}
	for _, s := range snapshots {
		parent := ""
		if s.ParentID != nil {
			parent = fmt.Sprintf(`"parent-snapshot-id": %d,`, *s.ParentID)
		}
		snaps = append(snaps, fmt.Sprintf(`{"snapshot-id": %d, %s "sequence-number": %d, "manifest-list": %q, "summary": {"operation": %q}}`,
			s.ID, parent, s.SequenceNumber, s.ManifestList, s.Operation()))
	}
	table, err := meta.Parse(fmt.Appendf(nil, `{"format-version": %d, "location": %q, "current-schema-id": 0, "schemas": [%s], "default-spec-id": %d,
		"partition-specs": [%s], "snapshots": [%s]}`, w.version, w.dir, schema, w.specs[0].ID(), strings.Join(specs, ","), strings.Join(snaps, ",")), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return table
}

// describe renders a plan: path, data sequence number, first row id, deletes.
func describe(tasks []*Task) string {
	var lines []string
	for _, task := range tasks {
		d := task.Data
		line := fmt.Sprintf("%s@%d", d.Path, d.DataSequence)
		if d.FirstRowID != nil {
			line += fmt.Sprintf("#%d", *d.FirstRowID)
		}
		if len(task.Deletes) > 0 {
			line += " [" + names(task.Deletes) + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

const (
	added    = iceberg.EntryStatusADDED
	existing = iceberg.EntryStatusEXISTING
	deleted  = iceberg.EntryStatusDELETED
)

func TestWrittenTables(t *testing.T) {
	data, deletes := iceberg.ManifestContentData, iceberg.ManifestContentDeletes
	local := fileio.NewLocal()
	t.Run("version 1 upgraded", func(t *testing.T) {
		w := newWritten(t, 2)
		w.manifest(1, 0, data, 1, 0, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, "old", nil)})
		old := w.list(1, 1)
		w.manifests[0] = oldManifest(t, local, old)
		w.manifest(2, 0, deletes, 2, 2, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentEqDeletes, "e", nil).EqualityFieldIDs([]int{1})})
		w.manifest(2, 0, data, 2, 2, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, "new", nil)})
		s := w.list(2, 2)
		got, err := planAll(t, local, Request{Table: w.table(s), Snapshot: s})
		if want := "old@0 [e], new@2"; err != nil || describe(got) != want {
			t.Errorf("got %s, %v; want %s", describe(got), err, want)
		}
	})
	t.Run("version 1 without manifest list", func(t *testing.T) {
		w := newWritten(t, 1)
		w.manifest(1, 0, data, 1, 0, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, "a", nil)})
		w.manifest(1, 0, data, 1, 0, writtenEntry{status: existing, file: w.file(0, iceberg.EntryContentData, "b", nil), snapshot: 9},
			writtenEntry{status: deleted, file: w.file(0, iceberg.EntryContentData, "c", nil)})
		s := &meta.Snapshot{ID: 1}
		for _, m := range w.manifests {
			s.Manifests = append(s.Manifests, m.FilePath())
		}
		got, err := planAll(t, local, Request{Table: w.table(), Snapshot: s})
		if want := "a@0, b@0"; err != nil || describe(got) != want {
			t.Errorf("got %s, %v; want %s", describe(got), err, want)
		}
		if got[1].Data.SnapshotID != 9 {
			t.Errorf("snapshot %d", got[1].Data.SnapshotID)
		}
	})
	t.Run("specs of inline manifests", func(t *testing.T) {
		region := iceberg.NewPartitionSpecID(4, iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "region", Transform: iceberg.IdentityTransform{}})
		w := newWritten(t, 1, *iceberg.UnpartitionedSpec, region)
		m := w.manifest(1, 1, data, 1, 0, writtenEntry{status: added, file: w.file(1, iceberg.EntryContentData, "a", map[int]any{1000: "eu"})})
		got, err := planAll(t, local, Request{Table: w.table(), Snapshot: &meta.Snapshot{ID: 1, Manifests: []string{m.FilePath()}}})
		if err != nil || len(got) != 1 || got[0].Data.SpecID != 4 || got[0].Data.Partition[0] != iceberg.StringLiteral("eu") {
			t.Errorf("got %s, %v", describe(got), err)
		}
	})
	t.Run("version 3 row ids", func(t *testing.T) {
		w := newWritten(t, 3)
		w.manifest(3, 0, data, 1, 5, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, "a", nil)},
			writtenEntry{status: deleted, file: w.file(0, iceberg.EntryContentData, "b", nil), sequence: ptr(int64(1))},
			writtenEntry{status: existing, file: w.file(0, iceberg.EntryContentData, "c", nil).FirstRowID(7), sequence: ptr(int64(2))},
			writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, "d", nil)})
		s := w.list(1, 5)
		got, err := planAll(t, local, Request{Table: w.table(s), Snapshot: s})
		if want := "a@5#1000, c@2#7, d@5#1010"; err != nil || describe(got) != want {
			t.Errorf("got %s, %v; want %s", describe(got), err, want)
		}
	})
	t.Run("empty data files", func(t *testing.T) {
		w := newWritten(t, 2)
		empty, err := iceberg.NewDataFileBuilder(w.specs[0], iceberg.EntryContentData, "empty", iceberg.ParquetFile, nil, nil, nil, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		w.manifest(2, 0, data, 1, 1, writtenEntry{status: added, file: empty})
		s := w.list(1, 1)
		table := w.table(s)
		for include, want := range map[bool]string{false: "", true: "empty@1"} {
			got, err := planAll(t, local, Request{Table: table, Snapshot: s, IncludeEmptyFiles: include})
			if err != nil || describe(got) != want {
				t.Errorf("got %s, %v; want %s", describe(got), err, want)
			}
		}
	})
	t.Run("no snapshot", func(t *testing.T) {
		w := newWritten(t, 2)
		if got, err := planAll(t, local, Request{Table: w.table()}); len(got) != 0 || err != nil {
			t.Errorf("got %s, %v", describe(got), err)
		}
	})
	t.Run("order of many manifests", func(t *testing.T) {
		w := newWritten(t, 2)
		var want []string
		for i := range 30 {
			var entries []writtenEntry
			for j := range 1 + i*7%90 {
				path := fmt.Sprintf("f%d-%d", i, j)
				entries = append(entries, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, path, nil)})
				want = append(want, path+"@1")
			}
			w.manifest(2, 0, data, 1, 1, entries...)
		}
		s := w.list(1, 1)
		for _, workers := range []int{1, 4} {
			got, err := planAll(t, local, Request{Table: w.table(s), Snapshot: s, Workers: workers})
			if err != nil || describe(got) != strings.Join(want, ", ") {
				t.Errorf("%d workers: %v, %s", workers, err, describe(got))
			}
		}
	})
}

// oldManifest reads back the first manifest of a list, which then can be
// listed again by a later snapshot with the numbers it got.
func oldManifest(t *testing.T, fs fileio.FS, s *meta.Snapshot) iceberg.ManifestFile {
	t.Helper()
	content, err := fileio.ReadAll(context.Background(), fs, s.ManifestList, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	files, err := iceberg.ReadManifestList(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	m := files[0]
	return iceberg.NewManifestFile(2, m.FilePath(), m.Length(), m.PartitionSpecID(), m.SnapshotID()).SequenceNum(0, 0).AddedFiles(1).Build()
}

// TestIncremental: only files appended between two snapshots, deletes aside.
func TestIncremental(t *testing.T) {
	w := newWritten(t, 2)
	data := iceberg.ManifestContentData
	var snapshots []*meta.Snapshot
	commit := func(id int64, operation string) {
		s := w.list(id, id)
		s.Summary = map[string]string{"operation": operation}
		if id > 1 {
			s.ParentID = ptr(id - 1)
		}
		snapshots = append(snapshots, s)
	}
	entry := func(path string) writtenEntry {
		return writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, path, nil)}
	}
	w.manifest(2, 0, data, 1, 1, entry("a"))
	commit(1, "append")
	w.manifests = []iceberg.ManifestFile{relist(w.manifests[0], 1, 1), nil}[:1]
	w.manifest(2, 0, data, 2, 2, entry("b"))
	commit(2, "append")
	w.manifests[1] = relist(w.manifests[1], 2, 2)
	w.manifest(2, 0, data, 3, 3, entry("c"))
	commit(3, "overwrite")
	w.manifests[2] = relist(w.manifests[2], 3, 3)
	w.manifest(2, 0, data, 4, 4, entry("d"), writtenEntry{status: existing, file: w.file(0, iceberg.EntryContentData, "x", nil), sequence: ptr(int64(1)), snapshot: 1})
	commit(4, "append")
	table := w.table(snapshots...)
	for _, c := range []struct {
		after, to int64
		want      string
	}{{1, 4, "b@2, d@4"}, {2, 4, "d@4"}, {3, 3, ""}, {1, 2, "b@2"}} {
		from, _ := table.Snapshot(c.after)
		to, _ := table.Snapshot(c.to)
		got, err := planAll(t, fileio.NewLocal(), Request{Table: table, Snapshot: to, After: from})
		if err != nil || describe(got) != c.want {
			t.Errorf("after %d to %d: got %q, %v; want %q", c.after, c.to, describe(got), err, c.want)
		}
	}
	from, _ := table.Snapshot(4)
	to, _ := table.Snapshot(2)
	if _, err := planAll(t, fileio.NewLocal(), Request{Table: table, Snapshot: to, After: from}); errs.CodeOf(err) != errs.InvalidArgument {
		t.Error(err)
	}
}

// relist gives a manifest the numbers that its first list assigned.
func relist(m iceberg.ManifestFile, snapshot, sequence int64) iceberg.ManifestFile {
	return iceberg.NewManifestFile(2, m.FilePath(), m.Length(), m.PartitionSpecID(), snapshot).
		SequenceNum(sequence, sequence).AddedFiles(m.AddedDataFiles()).ExistingFiles(m.ExistingDataFiles()).Build()
}

// TestBadManifests: clear errors that name the file.
func TestBadManifests(t *testing.T) {
	local := fileio.NewLocal()
	make := func(t *testing.T) (*written, *meta.Snapshot) {
		w := newWritten(t, 2)
		w.manifest(2, 0, iceberg.ManifestContentData, 1, 1, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, "a", nil)})
		return w, w.list(1, 1)
	}
	check := func(t *testing.T, w *written, s *meta.Snapshot, code errs.Code, says ...string) {
		t.Helper()
		_, err := planAll(t, local, Request{Table: w.table(), Snapshot: s})
		if errs.CodeOf(err) != code {
			t.Errorf("%v: %v", errs.CodeOf(err), err)
		}
		for _, part := range says {
			if !strings.Contains(fmt.Sprint(err), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
	}
	t.Run("missing list", func(t *testing.T) {
		w, s := make(t)
		_ = os.Remove(s.ManifestList)
		check(t, w, s, errs.NotFound, s.ManifestList)
	})
	t.Run("missing manifest", func(t *testing.T) {
		w, s := make(t)
		_ = os.Remove(w.manifests[0].FilePath())
		check(t, w, s, errs.NotFound, w.manifests[0].FilePath())
	})
	t.Run("truncated manifest", func(t *testing.T) {
		w, s := make(t)
		content, _ := os.ReadFile(w.manifests[0].FilePath())
		_ = os.WriteFile(w.manifests[0].FilePath(), content[:len(content)-20], 0o600)
		check(t, w, s, errs.Corrupt, "read manifest "+w.manifests[0].FilePath())
	})
	t.Run("no manifest at all", func(t *testing.T) {
		w, s := make(t)
		_ = os.WriteFile(w.manifests[0].FilePath(), []byte("nonsense"), 0o600)
		check(t, w, s, errs.Corrupt, w.manifests[0].FilePath())
		_ = os.WriteFile(s.ManifestList, []byte("nonsense"), 0o600)
		check(t, w, s, errs.Corrupt, "read manifest list "+s.ManifestList)
	})
	t.Run("unknown spec", func(t *testing.T) {
		w, _ := make(t)
		w.manifests[0] = iceberg.NewManifestFile(2, w.manifests[0].FilePath(), 1, 9, 1).AddedFiles(1).Build()
		s := w.list(1, 1)
		check(t, w, s, errs.Corrupt, "its partition spec, id 9, is not in the table metadata")
	})
	t.Run("encrypted", func(t *testing.T) {
		w, _ := make(t)
		w.manifests[0] = iceberg.NewManifestFile(2, w.manifests[0].FilePath(), 1, 0, 1).AddedFiles(1).KeyMetadata([]byte("k")).Build()
		s := w.list(1, 1)
		check(t, w, s, errs.Unsupported, "the manifest is encrypted")
	})
	t.Run("over the memory limit", func(t *testing.T) {
		w := newWritten(t, 2)
		var entries []writtenEntry
		for i := range 500 {
			entries = append(entries, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentPosDeletes, fmt.Sprint("p", i), nil).ReferencedDataFile(fmt.Sprint("f", i))})
		}
		w.manifest(2, 0, iceberg.ManifestContentDeletes, 1, 1, entries...)
		w.manifest(2, 0, iceberg.ManifestContentData, 1, 1, writtenEntry{status: added, file: w.file(0, iceberg.EntryContentData, "f1", nil)})
		s := w.list(1, 1)
		pool := mem.NewPool("test", 16<<10)
		_, err := Plan(context.Background(), local, pool, Request{Table: w.table(), Snapshot: s})
		if errs.CodeOf(err) != errs.MemoryLimit || !strings.Contains(err.Error(), "delete index") {
			t.Error(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
}
