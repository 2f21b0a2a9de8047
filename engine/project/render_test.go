package project

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/internal/enginetest"
)

// render gives an array's rows as text: nested values in the order of their
// fields, times as the number that Arrow stores.
func render(a arrow.Array) string {
	rows := make([]string, a.Len())
	for i := range rows {
		rows[i] = enginetest.RenderValue(a, i)
	}
	return "[" + strings.Join(rows, ",") + "]"
}
