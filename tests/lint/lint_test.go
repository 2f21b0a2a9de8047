// Package lint holds the rules of the code base as tests: which package may
// import which, where goroutines start, what stays out of the shared library.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/icebergexec/icebergexec/"

// layers lists the packages from the top down; a package may import only
// packages of layers below its own. Longer prefixes win.
var layers = [][]string{
	{"tests", "engine/internal/enginetest"}, // what only tests import
	{"capi"},
	{"bridge"},
	{"engine"}, // the Go API itself
	{"engine/scan", "engine/rewrite"},
	{"engine/deletes", "engine/write", "engine/sort", "engine/join"},
	{"engine/project", "engine/datafile", "engine/plan"},
	{"engine/pq", "engine/avro", "engine/expr", "engine/meta", "engine/keys"},
	{"engine/fileio"},
	{"spill"},
	{"spill/vfs"},
	{"engine/batch", "engine/task"},
	{"engine/mem"},
	{"engine/errs"},
	{"engine/internal"}, // helpers of tests
}

// standalone packages import nothing of this module.
var standalone = []string{"bridge/loader"}

func layerOf(pkg string) int {
	best, found := -1, ""
	for i, layer := range layers {
		for _, prefix := range layer {
			if (pkg == prefix || strings.HasPrefix(pkg, prefix+"/")) && len(prefix) > len(found) {
				best, found = i, prefix
			}
		}
	}
	return best
}

// sources parses every Go file of the module, tests excluded.
func sources(t *testing.T, visit func(pkg, path string, file *ast.File, pos *token.FileSet)) {
	t.Helper()
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "out") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(rel), path, file, set)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

func TestImportsPointDown(t *testing.T) {
	sources(t, func(pkg, path string, file *ast.File, pos *token.FileSet) {
		own := layerOf(pkg)
		if own < 0 {
			if pkg != "." && !strings.HasPrefix(pkg, "docs/") && !strings.HasPrefix(pkg, "build") {
				t.Errorf("%s: package %s belongs to no layer", path, pkg)
			}
			return
		}
		for _, spec := range file.Imports {
			imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours {
				continue
			}
			for _, alone := range standalone {
				if pkg == alone {
					t.Errorf("%s: %s must import nothing of this module", pos.Position(spec.Pos()), pkg)
				}
			}
			if below := layerOf(imported); below <= own && !sameFamily(pkg, imported) {
				t.Errorf("%s: %s must not import %s, which is not below it", pos.Position(spec.Pos()), pkg, imported)
			}
		}
	})
}

// sameFamily allows a package and its own subpackages to import each other.
func sameFamily(a, b string) bool {
	return (strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")) && layerOf(a) == layerOf(b) ||
		strings.HasPrefix(a, "tests/") && strings.HasPrefix(b, "tests/")
}

func TestOnlyTaskStartsGoroutines(t *testing.T) {
	sources(t, func(pkg, path string, file *ast.File, pos *token.FileSet) {
		if pkg == "engine/task" || strings.HasPrefix(pkg, "tests") || strings.HasPrefix(pkg, "docs") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: goroutines start in engine/task only, which recovers their panics", pos.Position(g.Pos()))
			}
			return true
		})
	})
}

// banned maps an import path to the reason why the library must not have it
// and the package that may.
var banned = map[string]struct{ reason, except string }{
	"os/signal":                          {"would take the host's signals", ""},
	"net/http/pprof":                     {"the shipped library has no profiler", ""},
	"runtime/pprof":                      {"the shipped library has no profiler", ""},
	"runtime/cgo":                        {"handles are C-allocated cells, not integers", ""},
	"encoding/gob":                       {"no self-describing formats for spill", ""},
	"github.com/apache/iceberg-go/table": {"pulls in 45 MB of dependencies", ""},
}

func TestBannedImports(t *testing.T) {
	sources(t, func(pkg, path string, file *ast.File, pos *token.FileSet) {
		if strings.HasPrefix(pkg, "tests") {
			return
		}
		for _, spec := range file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if rule, ok := banned[name]; ok && pkg != rule.except {
				t.Errorf("%s: %s imports %s: %s", pos.Position(spec.Pos()), pkg, name, rule.reason)
			}
			if name == "C" && !strings.HasPrefix(pkg, "capi") && !strings.HasPrefix(pkg, "bridge") {
				t.Errorf("%s: only capi and bridge use cgo", pos.Position(spec.Pos()))
			}
		}
	})
}

func TestNoFinalizersOrForcedCollections(t *testing.T) {
	sources(t, func(pkg, path string, file *ast.File, pos *token.FileSet) {
		if strings.HasPrefix(pkg, "tests") || pkg == "engine/internal/enginetest" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "runtime" {
				switch sel.Sel.Name {
				case "SetFinalizer", "AddCleanup", "GC":
					t.Errorf("%s: runtime.%s hides missing releases; count references instead", pos.Position(sel.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	})
}

// TestEngineBuildsWithoutCgo compiles what Go programs import, as a user
// without a C compiler would.
func TestEngineBuildsWithoutCgo(t *testing.T) {
	root := moduleRoot(t)
	patterns := []string{"./engine/..."}
	if _, err := os.Stat(filepath.Join(root, "spill")); err == nil {
		patterns = append(patterns, "./spill/...")
	}
	cmd := exec.Command("go", append([]string{"build"}, patterns...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("CGO_ENABLED=0 go build %v: %v\n%s", patterns, err, out)
	}
}
