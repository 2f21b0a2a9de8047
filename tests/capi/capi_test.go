// Package capi runs the C programs of programs/ and of docs/examples against
// the shared library.
//
//	programs/*.c --cc -Wall -Wextra -Werror--> one program a topic, exit status 0 when all its checks hold
//
// The programs run against a library with the build tag iextest, which is slow
// or defect on demand; the examples against the library as it ships.
package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

func TestMain(m *testing.M) { os.Exit(fixtures.Main(m)) }

// root is the project's folder.
func root() string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(self)))
}

// shipped is the folder of the library as build/lib.sh makes it; misbehaving
// of the one with the tag iextest.
var (
	shipped     = sync.OnceValues(func() (string, error) { return buildLibrary(filepath.Join(root(), "build/out"), "") })
	misbehaving = sync.OnceValues(func() (string, error) { return buildLibrary(filepath.Join(root(), "build/out/iextest"), "iextest") })
)

func buildLibrary(dir, tags string) (string, error) {
	library := filepath.Join(dir, "libicebergexec.so")
	build := exec.Command(filepath.Join(root(), "build/lib.sh"))
	build.Env = append(os.Environ(), "OUT="+library, "TAGS="+tags)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %v\n%s", library, err, out)
	}
	// The loader looks for the soname.
	link := library + ".1"
	_ = os.Remove(link)
	return dir, os.Symlink(filepath.Base(library), link)
}

func run(t *testing.T, timeout time.Duration, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// compile makes a program from a C or C++ source; flags come first.
func compile(t *testing.T, source, library string, flags ...string) string {
	t.Helper()
	compiler, args := "gcc", []string{"-std=c11", "-D_GNU_SOURCE"}
	if strings.HasSuffix(source, ".cpp") {
		compiler, args = "g++", []string{"-std=c++11"}
	}
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no %s here", compiler)
	}
	program := filepath.Join(t.TempDir(), "program")
	args = append(args, flags...)
	args = append(args, "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-I"+filepath.Join(root(), "include"), source, "-o", program,
		"-L"+library, "-licebergexec", "-Wl,-rpath,"+library, "-pthread")
	run(t, time.Minute, nil, compiler, args...)
	return program
}

// table is a Java-written table: its metadata location and number of rows.
func table(t *testing.T, name string) (location, rows string) {
	t.Helper()
	var c struct {
		Metadata string `json:"metadata_location"`
	}
	dir := filepath.Join(fixtures.Dir(t), name)
	read(t, filepath.Join(dir, "case.json"), &c)
	var expected []any
	read(t, filepath.Join(dir, "expected.json"), &expected)
	return c.Metadata, fmt.Sprint(len(expected))
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// engineOptions are the options of every engine in the programs: they find the
// tables where they were unpacked.
func engineOptions(t *testing.T) string {
	return fmt.Sprintf(`IEX_OPTIONS={"memory_limit": "64MiB", "path_prefixes": {%q: %q}}`, fixtures.Prefix, fixtures.Dir(t))
}

func library(t *testing.T, build func() (string, error)) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// programs lists what runs with which arguments.
func programs(t *testing.T) map[string][]string {
	location, rows := table(t, "eq_composite")
	return map[string][]string{
		"contract.c": {location, rows},
		"plans.c":    {location, rows},
		"streams.c":  {location, rows},
		"waiting.c":  {location},
		"forked.c":   {location},
		"panics.c":   {location},
		"cycles.c":   {location, "300"},
		"host.c":     {fixtures.Dir(t), fixtures.Prefix, location, rows, "rid"},
		"header.cpp": nil,
	}
}

func TestPrograms(t *testing.T) {
	lib := library(t, misbehaving)
	for source, args := range programs(t) {
		t.Run(source, func(t *testing.T) {
			program := compile(t, filepath.Join("programs", source), lib)
			if out := run(t, time.Minute, []string{engineOptions(t)}, program, args...); out != "" {
				t.Log(out)
			}
		})
	}
}

// TestValgrind looks for bad accesses and leaks of the C side.
func TestValgrind(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("no valgrind here")
	}
	lib := library(t, misbehaving)
	for _, source := range []string{"contract.c", "streams.c"} {
		t.Run(source, func(t *testing.T) {
			program := compile(t, filepath.Join("programs", source), lib)
			args := append([]string{"--quiet", "--suppressions=go.supp", "--leak-check=full", "--error-exitcode=9", program}, programs(t)[source]...)
			run(t, 5*time.Minute, []string{engineOptions(t), "GOGC=off"}, "valgrind", args...)
		})
	}
}

// TestAddressSanitizer looks for uses after release and leaks, also where the
// host's memory and threads of the engine meet.
func TestAddressSanitizer(t *testing.T) {
	if err := exec.Command("sh", "-c", `echo 'int main(void){return 0;}' | gcc -fsanitize=address -x c - -o /dev/null`).Run(); err != nil {
		t.Skip("gcc has no address sanitizer here")
	}
	lib := library(t, misbehaving)
	suppressions, err := filepath.Abs("leaks.supp")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"contract.c", "streams.c", "host.c", "panics.c", "forked.c"} {
		t.Run(source, func(t *testing.T) {
			program := compile(t, filepath.Join("programs", source), lib, "-fsanitize=address")
			run(t, time.Minute, []string{engineOptions(t), "LSAN_OPTIONS=suppressions=" + suppressions}, program, programs(t)[source]...)
		})
	}
}

// TestExampleScan compares what the C example prints with what Java expects.
func TestExampleScan(t *testing.T) {
	program := compile(t, filepath.Join(root(), "docs/examples/scan.c"), library(t, shipped))
	location, _ := table(t, "pos_and_eq")
	checkRids(t, run(t, time.Minute, []string{engineOptions(t)}, program, location, "rid"))
}

// checkRids compares printed rows, whose first column is rid, with what Java
// expects of the table pos_and_eq.
func checkRids(t *testing.T, out string) {
	t.Helper()
	var expected []map[string]any
	read(t, filepath.Join(fixtures.Dir(t), "pos_and_eq", "expected.json"), &expected)
	want := map[string]bool{}
	for _, row := range expected {
		want[row["rid"].(string)] = true
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if rid, _, _ := strings.Cut(line, "\t"); !want[rid] {
			t.Errorf("row %s is printed and not expected", rid)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d rows printed, %d expected", len(lines), len(want))
	}
}

// TestGoExamples runs the Go programs, which know no path prefixes: the tables
// are put where their metadata says, if nothing else is there.
func TestGoExamples(t *testing.T) {
	if _, err := os.Lstat(fixtures.Prefix); err != nil {
		if err := os.Symlink(fixtures.Dir(t), fixtures.Prefix); err != nil {
			t.Skipf("the tables cannot be put under %s: %v", fixtures.Prefix, err)
		}
		defer os.Remove(fixtures.Prefix)
	}
	location, _ := table(t, "pos_and_eq")
	dir := library(t, shipped)
	for example, args := range map[string][]string{
		"native": {location, "rid"},
		"loaded": {filepath.Join(dir, "libicebergexec.so"), location},
	} {
		t.Run(example, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), example)
			run(t, 5*time.Minute, []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, filepath.Join(root(), "docs/examples", example))
			checkRids(t, run(t, time.Minute, nil, program, args...))
		})
	}
}

// TestLoader runs the tests of the Go client against the library.
func TestLoader(t *testing.T) {
	path := filepath.Join(library(t, shipped), "libicebergexec.so")
	t.Log(run(t, 5*time.Minute, []string{"CGO_ENABLED=0", "ICEBERGEXEC_LIBRARY=" + path}, "go", "test", filepath.Join(root(), "bridge/loader")))
}

// TestBaseline compares the interface with what was recorded of it.
func TestBaseline(t *testing.T) {
	run(t, time.Minute, nil, filepath.Join(root(), "build/abi.sh"), filepath.Join(library(t, shipped), "libicebergexec.so"))
}

// TestLinkedPackages keeps out of the library what would take a host's signals
// or look into its process.
func TestLinkedPackages(t *testing.T) {
	linked := run(t, time.Minute, nil, "go", "list", "-C", root(), "-deps", "./capi")
	for _, pkg := range strings.Fields(linked) {
		switch pkg {
		case "os/signal", "runtime/pprof", "net/http/pprof", "expvar", "plugin":
			t.Errorf("the library contains %s", pkg)
		}
	}
}

// TestOldClients runs programs that were compiled against the recorded header
// with the library of today.
func TestOldClients(t *testing.T) {
	lib := library(t, misbehaving)
	location, rows := table(t, "eq_composite")
	for source, args := range map[string][]string{"contract.c": {location, rows}, "streams.c": {location, rows}} {
		program := compile(t, filepath.Join("programs", source), lib, "-I"+filepath.Join(root(), "build/abi"))
		run(t, time.Minute, []string{engineOptions(t)}, program, args...)
	}
}

// TestExampleSort sorts more than the memory limit holds.
func TestExampleSort(t *testing.T) {
	program := compile(t, filepath.Join(root(), "docs/examples/sort.c"), library(t, shipped))
	out := run(t, time.Minute, []string{`IEX_OPTIONS={"memory_limit": "16MiB", "spill_dir": "` + t.TempDir() + `"}`}, program, "3000000")
	if !strings.HasPrefix(out, "3000000 numbers from ") {
		t.Errorf("it prints %q", out)
	}
}

// TestExampleStorage reads a table whose files the example serves from memory.
func TestExampleStorage(t *testing.T) {
	program := compile(t, filepath.Join(root(), "docs/examples/storage.c"), library(t, shipped))
	location, rows := table(t, "dv_and_eq")
	out := run(t, time.Minute, nil, program, fixtures.Dir(t), fixtures.Prefix, location)
	if !strings.Contains(out, rows+" rows\n") || !strings.Contains(out, "uses the storage no more") {
		t.Errorf("it prints %q, and %s rows are expected", out, rows)
	}
}
