package capi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramInHeader compiles the program that the header shows.
func TestProgramInHeader(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc here")
	}
	header, err := os.ReadFile(filepath.Join(root(), "include/icebergexec.h"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(header), " * A complete program")
	_, after, _ = strings.Cut(after, "\n")
	text, _, found := strings.Cut(after, " * RULES THAT HOLD")
	if !found {
		t.Fatal("the header shows no program")
	}
	var source strings.Builder
	for line := range strings.Lines(text) {
		source.WriteString(strings.TrimPrefix(line, " *"))
	}
	cc := exec.Command("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
		"-I", filepath.Join(root(), "include"), "-x", "c", "-")
	cc.Stdin = strings.NewReader(source.String())
	if out, err := cc.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
