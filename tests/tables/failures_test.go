package tables

import (
	"os"
	"strings"
	"testing"
)

// failures is expected_failures.txt for one runner: which reads are known not
// to come out right.
type failures struct {
	runner string
	lines  [][3]string // runner, case, read
}

func readFailures(t *testing.T, runner string) failures {
	t.Helper()
	data, err := os.ReadFile("expected_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	f := failures{runner: runner}
	for n, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, reason, ok := strings.Cut(line, "\t")
		words := strings.Fields(what)
		if !ok || len(words) != 3 || strings.TrimSpace(reason) == "" {
			t.Fatalf("expected_failures.txt:%d: want `runner case read<TAB>reason`, got %q", n+1, line)
		}
		f.lines = append(f.lines, [3]string(words))
	}
	return f
}

// expected reports whether the read is listed.
func (f failures) expected(name, read string) bool {
	for _, line := range f.lines {
		if matches(line[0], f.runner) && line[1] == name && matches(line[2], read) {
			return true
		}
	}
	return false
}

func matches(pattern, word string) bool { return pattern == "*" || pattern == word }

// check turns the outcome of a read into a test result, both ways.
func (f failures) check(t *testing.T, name, read string, err error) {
	t.Helper()
	switch listed := f.expected(name, read); {
	case err != nil && !listed:
		t.Errorf("%s %s: %v", name, read, err)
	case err == nil && listed:
		t.Errorf("%s %s comes out right but is listed in expected_failures.txt", name, read)
	case err != nil:
		t.Logf("%s %s fails as listed: %v", name, read, err)
	}
}
