// Package enginetest holds what the tests of several packages share: checks
// for leaked goroutines and descriptors, and a file system that fails on
// purpose.
package enginetest

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test when, at its end, goroutines or descriptors are left
// that were not there at this call. Call it first, so that it checks after
// every other cleanup. Not for parallel tests.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	goroutines, descriptors := Goroutines(), Descriptors(tb)
	tb.Cleanup(func() {
		var left []string
		// A goroutine that was joined may take a moment to disappear.
		for deadline := time.Now().Add(2 * time.Second); ; {
			left = left[:0]
			for id, stack := range Goroutines() {
				if _, before := goroutines[id]; !before {
					left = append(left, stack)
				}
			}
			if len(left) == 0 || time.Now().After(deadline) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if len(left) > 0 {
			tb.Errorf("%d goroutines leaked:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		for fd, target := range Descriptors(tb) {
			if descriptors[fd] != target {
				tb.Errorf("descriptor %s leaked: %s", fd, target)
			}
		}
	})
}

// Goroutines maps the id of each goroutine to its stack, without those of the
// runtime and the test framework.
func Goroutines() map[string]string {
	buffer := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buffer, true)
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	all := map[string]string{}
	for _, stack := range strings.Split(string(buffer), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		if strings.Contains(stack, "testing.tRunner(") || strings.Contains(stack, "testing.(*T).Run(") || strings.Contains(stack, "runtime.goexit0") {
			continue
		}
		all[id] = stack
	}
	return all
}

// Descriptors maps each open descriptor of this process to what it names. It
// is empty where there is no /proc.
func Descriptors(tb testing.TB) map[string]string {
	tb.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return map[string]string{}
	}
	all := map[string]string{}
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		// The poller's descriptors appear with the first pipe and stay.
		if err != nil || strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/proc/") {
			continue
		}
		all[entry.Name()] = target
	}
	return all
}

// HeapInUse is the bytes of live objects on the Go heap.
func HeapInUse() uint64 {
	var stats runtime.MemStats
	for range 3 { // finalizers of one collection free memory in the next
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
