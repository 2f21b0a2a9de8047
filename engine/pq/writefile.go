package pq

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// createdBy tells readers whose statistics they read: the form is the one that
// they parse.
const createdBy = "icebergexec version 0.1.0"

// fileWriter puts a file together: row groups one behind the other, each with
// its Bloom filters behind it, then the page indexes of all, then the footer.
//
//	PAR1  chunks, filters  chunks, filters  ...  column indexes  offset indexes  footer  length PAR1
type fileWriter struct {
	w      *bufio.Writer
	offset int64 // of what is written next
	groups []writtenGroup
	// kept is the size of what groups hold until the footer.
	kept int64
}

// writtenGroup is a finished row group, as the footer will tell of it.
type writtenGroup struct {
	rows         int64
	offset       int64 // of the first byte
	uncompressed int64
	compressed   int64
	chunks       []writtenChunk
}

// writtenChunk is a finished column chunk. Its parts are encoded as they will
// stand in the file.
type writtenChunk struct {
	metadata    []byte // a ColumnMetaData
	columnIndex []byte // nil: none
	offsetIndex []byte // nil: none
}

// writeBuffer joins the small parts of a file into writes of a sensible size.
const writeBuffer = 64 << 10 // 64 KiB

func newFileWriter(w io.Writer) fileWriter { return fileWriter{w: bufio.NewWriterSize(w, writeBuffer)} }

func (f *fileWriter) write(b []byte) error {
	f.offset += int64(len(b))
	_, err := f.w.Write(b)
	return err
}

// start writes what a file begins with.
func (f *fileWriter) start() error {
	if f.offset > 0 {
		return nil
	}
	return f.write([]byte(magicPlain))
}

func (f *fileWriter) add(g writtenGroup) {
	for _, c := range g.chunks {
		f.kept += int64(len(c.metadata) + len(c.columnIndex) + len(c.offsetIndex) + 128)
	}
	f.groups = append(f.groups, g)
}

// finish writes the page indexes and the footer.
func (f *fileWriter) finish(schema []schemaElement, leaves int, keyValues []keyValue) error {
	if err := f.start(); err != nil {
		return err
	}
	columnIndexes, err := f.writeIndexes(func(c *writtenChunk) []byte { return c.columnIndex })
	if err != nil {
		return err
	}
	offsetIndexes, err := f.writeIndexes(func(c *writtenChunk) []byte { return c.offsetIndex })
	if err != nil {
		return err
	}
	var t thriftEncoder
	t.element(func() {
		t.int32(1, 1) // the version, of which readers make nothing
		t.list(2, thriftStruct, len(schema))
		for i := range schema {
			schema[i].write(&t, i == 0)
		}
		rows := int64(0)
		for _, g := range f.groups {
			rows += g.rows
		}
		t.int64(3, rows)
		t.list(4, thriftStruct, len(f.groups))
		for i := range f.groups {
			f.groups[i].write(&t, i, columnIndexes[i], offsetIndexes[i])
		}
		t.list(5, thriftStruct, len(keyValues))
		for _, kv := range keyValues {
			t.element(func() {
				t.string(1, kv.key)
				t.string(2, kv.value)
			})
		}
		t.string(6, createdBy)
		t.list(7, thriftStruct, leaves)
		for range leaves {
			t.element(func() { t.empty(1) }) // in the order that the type defines
		}
	})
	if len(t.buf) > math.MaxInt32 {
		return errs.New(errs.Unsupported, "the file has too many row groups: their description takes %d bytes", len(t.buf))
	}
	trailer := binary.LittleEndian.AppendUint32(nil, uint32(len(t.buf)))
	if err := f.write(append(append(t.buf, trailer...), magicPlain...)); err != nil {
		return err
	}
	return f.w.Flush()
}

// writeIndexes writes one index of every column chunk and returns where they
// are, by row group and column.
func (f *fileWriter) writeIndexes(index func(*writtenChunk) []byte) ([][]section, error) {
	all := make([][]section, len(f.groups))
	for i := range f.groups {
		chunks := f.groups[i].chunks
		all[i] = make([]section, len(chunks))
		for j := range chunks {
			if b := index(&chunks[j]); b != nil {
				all[i][j] = section{f.offset, int32(len(b))}
				if err := f.write(b); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// write encodes a RowGroup.
func (g *writtenGroup) write(t *thriftEncoder, ordinal int, columnIndexes, offsetIndexes []section) {
	t.element(func() {
		t.list(1, thriftStruct, len(g.chunks))
		for i := range g.chunks {
			t.element(func() {
				t.int64(2, 0) // deprecated
				t.raw(3, thriftStruct, g.chunks[i].metadata)
				offsetIndexes[i].write(t, 4)
				columnIndexes[i].write(t, 6)
			})
		}
		t.int64(2, g.uncompressed)
		t.int64(3, g.rows)
		t.int64(5, g.offset)
		t.int64(6, g.compressed)
		if ordinal <= math.MaxInt16 {
			t.int16(7, int16(ordinal))
		}
	})
}

// write encodes a section's offset and length, unless it is absent.
func (s section) write(t *thriftEncoder, id int16) {
	if s.length > 0 {
		t.int64(id, s.offset)
		t.int32(id+1, s.length)
	}
}
