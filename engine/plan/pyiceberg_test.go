package plan

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/icebergexec/icebergexec/engine/fileio"
)

// TestDecodersAgreeOnPyiceberg compares the decoders on what pyiceberg wrote;
// testdata/pyiceberg/write_manifests.py tells what that is.
func TestDecodersAgreeOnPyiceberg(t *testing.T) {
	paths, err := filepath.Glob("testdata/pyiceberg/*.avro")
	if err != nil || len(paths) < 6 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "list_") {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := libraryDecoder{}.list(fileOf(content))
			if err != nil {
				t.Fatal(path, err)
			}
			if got, err := (recordDecoder{}).list(fileOf(content)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v\n got %+v\nwant %+v", path, err, got, want)
			}
			continue
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, stats := range []statistics{{}, {all: true}, {ids: map[int]bool{1: true}}} {
			if n := compareEntries(t, fileio.NewLocal(), &manifest{path: absolute}, stats); n < 3 {
				t.Errorf("%s has %d entries", path, n)
			}
		}
	}
}
