package request_test

import (
	"os"
	"strings"
	"testing"

	"github.com/icebergexec/icebergexec/bridge/request"
	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/errs"
)

func TestEngineOptions(t *testing.T) {
	options, err := request.ParseEngineOptions([]byte(
		`{"memory_limit": "32 MiB", "spill_dir": "/spill", "spill_limit": "1.5 GB", "spill_compression": "none", "threads": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	if options.MemoryLimit != 32<<20 || options.SpillDir != "/spill" || options.SpillLimit != 1_500_000_000 || options.Threads != 3 {
		t.Errorf("got %+v", options)
	}
	for _, text := range []string{``, `{}`, `{"spill_dir": null, "spill_limit": null, "memory_limit": null}`} {
		if options, err := request.ParseEngineOptions([]byte(text)); err != nil || options.SpillDir != "" || options.SpillLimit != 0 || options.MemoryLimit != 0 {
			t.Errorf("%s: got %+v, %v", text, options, err)
		}
	}
}

func TestErrors(t *testing.T) {
	options := func(text string) error { _, err := request.ParseEngineOptions([]byte(text)); return err }
	scan := func(text string) error { _, err := request.ParseScan([]byte(text)); return err }
	for _, test := range []struct {
		parse      func(string) error
		text, want string
	}{
		{options, `{"memory_limit": 0}`, `memory_limit is 0; it must be at least 16 MiB (16777216 bytes)`},
		{options, `{"memory_limit": "-1 GiB"}`, `memory_limit is "-1 GiB"; it must be at least 16 MiB (16777216 bytes)`},
		{options, `{"memory_limit": "1MiB"}`, `memory_limit is "1MiB"; it must be at least 16 MiB (16777216 bytes)`},
		{options, `{"memory_limit": "9999999999 TiB"}`, `memory_limit is "9999999999 TiB"; it must be at most 9223372036854775807 bytes (8 EiB)`},
		{options, `{"memory_limit": "much"}`, `memory_limit is "much"; it must be a whole number of bytes or a text such as "512MiB"`},
		{options, `{"spill_limit": 0}`, `spill_limit is 0; it must be at least 1 byte`},
		{options, `{"spill_limit": -5}`, `spill_limit is -5; it must be at least 1 byte`},
		{options, `{"spill_limit": -99999999999999999999}`, `it must be at least 1 byte`},
		{options, `{"spill_dir": ""}`, `spill_dir is ""; it must be a directory that exists and can be written to`},
		{options, `{"spill_compression": "zstd"}`, `spill_compression is "zstd"; it must be "none"`},
		{scan, `{"memory_limit": 5}`, `memory_limit is 5; it must be at least 16 MiB (16777216 bytes)`},
		{scan, `{"limit": 9223372036854775808}`, `limit is 9223372036854775808; it must be at most 9223372036854775807`},
		{scan, `{"snapshot_id": -9223372036854775809}`, `snapshot_id is -9223372036854775809; it must be at least -9223372036854775808`},
		{scan, `{"limit": 1.5}`, `limit is 1.5; it must be a whole number`},
	} {
		if err := test.parse(test.text); errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.text, err, test.want)
		}
	}
}

// TestSpillDirectory follows the option from the request to the engine.
func TestSpillDirectory(t *testing.T) {
	options, err := request.ParseEngineOptions([]byte(`{"spill_dir": "/nowhere"}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.Open(options)
	if errs.CodeOf(err) != errs.InvalidArgument || !strings.Contains(err.Error(), `spill_dir is "/nowhere"; it must be a directory`) {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	if options, err = request.ParseEngineOptions([]byte(`{"spill_dir": "` + dir + `"}`)); err != nil {
		t.Fatal(err)
	}
	eng, err := engine.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in spill_dir: %v, %v", left, err)
	}
}
