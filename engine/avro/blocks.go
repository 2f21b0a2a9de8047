package avro

import (
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// alwaysMemory is what a reader may take past the memory limit, so that a
// block of ordinary size can always be read.
const alwaysMemory = 4 << 20 // 4 MiB

// maxEmptyRows bounds the rows of a block whose rows take no bytes.
const maxEmptyRows = 1 << 20

// blockReader decompresses the blocks of a file, one after the other, into a
// buffer that it is charged for.
type blockReader struct {
	source  source
	sync    *[syncSize]byte
	codec   Codec
	minSize int    // of a row
	data    []byte // of the blocks since the last reset
	pool    *mem.Pool
	charged *mem.Reservation
	extra   int64 // what else its owner holds
}

func newBlockReader(f fileio.File, h *header, codec Codec, record *node, pool *mem.Pool) blockReader {
	return blockReader{
		source: source{file: f, start: h.end}, sync: &h.sync, codec: codec, minSize: record.minSize,
		pool: pool, charged: pool.ReserveWorkingSet("Avro blocks"),
	}
}

// append adds the content of a block to data.
func (r *blockReader) append(b block) error {
	start := len(r.data)
	limit := maxBlock - start
	if room := r.pool.Available() + int64(cap(r.data)-start); room < int64(limit) {
		limit = int(max(room, alwaysMemory))
	}
	var err error
	if r.data, err = r.codec.Decompress(r.data, b.bytes, limit); err != nil {
		return err
	}
	size := len(r.data) - start
	most := int64(maxEmptyRows)
	if r.minSize > 0 {
		most = int64(size / r.minSize)
	}
	if b.rows > most {
		return errs.New(errs.Corrupt, "the block at byte %d has %d rows in %d bytes", b.offset, b.rows, size)
	}
	return r.charge()
}

// charge makes the reservation what the reader holds.
func (r *blockReader) charge() error {
	need := int64(cap(r.data)+cap(r.source.buf)) + r.extra
	if need == r.charged.Size() {
		return nil
	}
	grow := need - r.charged.Size()
	switch {
	case grow <= 0:
		r.charged.Shrink(-grow)
	case need <= alwaysMemory:
		r.charged.ForceGrow(grow)
	default:
		return r.charged.TryGrow(grow)
	}
	return nil
}

func (r *blockReader) close() {
	r.data, r.source.buf = nil, nil
	r.charged.Free()
}
