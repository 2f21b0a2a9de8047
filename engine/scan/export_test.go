package scan

import (
	"testing"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// SetSplitSize changes from which size files are split, until the test ends.
func SetSplitSize(t *testing.T, size int64) {
	before := splitSize
	splitSize = size
	t.Cleanup(func() { splitSize = before })
}

// JoinParts is joinParts.
func JoinParts(parts []batch.Range, size int64) []batch.Range { return joinParts(parts, size) }
