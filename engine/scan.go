package engine

import (
	"context"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// Scan reads a table. It returns once the metadata is read and the request is
// checked; manifests and data files are read while the stream is. ctx bounds
// this call only. The caller closes the stream.
func (e *Engine) Scan(ctx context.Context, request ScanRequest) (batch.Stream, error) {
	return nil, errs.New(errs.Unsupported, "scans are not supported yet")
}
