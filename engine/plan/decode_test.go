package plan

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

// TestDecodersAgree compares the entries of every manifest that Java wrote with
// what iceberg-go reads of them.
func TestDecodersAgree(t *testing.T) {
	fs := fixtureFS(t)
	lists, err := filepath.Glob(filepath.Join(fixtures.Dir(t), "*", "metadata", "snap-*.avro"))
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	total := 0
	for _, path := range lists {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := libraryDecoder{}.list(fileOf(content))
		if err != nil {
			t.Fatal(path, err)
		}
		got, err := recordDecoder{}.list(fileOf(content))
		if err != nil {
			t.Fatal(path, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s:\n got %+v\nwant %+v", path, got, want)
		}
		for i := range want {
			for _, stats := range []statistics{{}, {all: true}, {ids: map[int]bool{1: true, 3: true}}, {keys: true}} {
				total += compareEntries(t, fs, &want[i], stats)
			}
		}
	}
	t.Logf("%d entries", total)
}

func compareEntries(t *testing.T, fs fileio.FS, m *manifest, stats statistics) int {
	t.Helper()
	read := func(d decoder) (entries []*entry) {
		f, err := fs.Open(context.Background(), m.path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = d.entries(f, m, stats, func(e *entry) error {
			entries = append(entries, e)
			return nil
		})
		if err != nil {
			t.Fatal(m.path, err)
		}
		return entries
	}
	got, want := read(recordDecoder{}), read(libraryDecoder{})
	if len(got) != len(want) {
		t.Fatalf("%s: %d entries, want %d", m.path, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s, entry %d with %+v:\n got %+v %+v\nwant %+v %+v", m.path, i, stats, got[i], got[i].file.Metrics, want[i], want[i].file.Metrics)
		}
	}
	return len(got)
}

// FuzzManifests: damaged manifests and manifest lists give errors or entries.
func FuzzManifests(f *testing.F) {
	for _, pattern := range []string{"eq_part_identity/metadata/*.avro", "lin_partitioned/metadata/*.avro", "eq_v1_upgraded/metadata/*.avro"} {
		files, err := filepath.Glob(filepath.Join(fixtures.Dir(f), pattern))
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		_, _ = recordDecoder{}.list(fileOf(content))
		for _, deletes := range []bool{false, true} {
			m := manifest{specID: unknownSpec, deletes: deletes}
			_ = recordDecoder{}.entries(fileOf(content), &m, statistics{all: true}, func(e *entry) error {
				in := inheritance{manifest: &m, spec: iceberg.UnpartitionedSpec, nextRowID: ptr(int64(0))}
				_ = in.apply(e)
				return nil
			})
		}
	})
}

// memoryFile is a fileio.File of bytes.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error  { return nil }
func (f memoryFile) Size() int64 { return f.Reader.Size() }

func fileOf(b []byte) memoryFile { return memoryFile{bytes.NewReader(b)} }
