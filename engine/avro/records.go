package avro

import (
	"io"
	"slices"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/fileio"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// Records reads the rows of a file into variables, row by row. Fields are
// bound to variables before the first row; what is not bound is passed over.
//
//	r, err := avro.OpenRecords(f, pool)
//	var status avro.Long
//	var path avro.Bytes
//	r.Root().Long(&status, 0, "status")
//	r.Root().Record(2, "data_file").Bytes(&path, 100, "file_path")
//	for r.Next() { ... }
//	return r.Err()
//
// Errors do not name the file; the caller does. Variables that alias the
// file's bytes hold until the next call of Next.
type Records struct {
	header *header
	root   *Binder
	steps  []bindStep
	blocks blockReader

	cursor  cursor
	left    int64 // rows of the current block
	started bool
	err     error
}

// OpenRecords reads the header of a file of records. It does not take the file
// over. pool is charged for the blocks; nil: unlimited.
func OpenRecords(f fileio.File, pool *mem.Pool) (*Records, error) {
	if pool == nil {
		pool = mem.NewPool("avro", mem.Unlimited)
	}
	h, err := readHeader(&source{file: f})
	if err != nil {
		return nil, err
	}
	codec, err := codecByName(string(h.metadata["avro.codec"]))
	if err != nil {
		return nil, err
	}
	n, err := parseSchema(h.metadata["avro.schema"])
	if err != nil {
		return nil, err
	}
	if n.kind != kindRecord {
		return nil, badSchema("its rows are of type %s, not records", n)
	}
	r := &Records{header: h, blocks: newBlockReader(f, h, codec, n, pool)}
	r.root = newBinder(n, &r.err)
	return r, nil
}

// Metadata is a value of the file's header.
func (r *Records) Metadata(key string) (string, bool) {
	v, ok := r.header.metadata[key]
	return string(v), ok
}

// Root binds the fields of a row.
func (r *Records) Root() *Binder { return r.root }

// Next reads the next row into the bound variables. It is false at the end and
// after an error, which Err returns.
func (r *Records) Next() bool {
	if !r.started && r.err == nil {
		r.started = true
		r.steps = r.root.compile()
	}
	for r.left == 0 {
		if r.err != nil {
			return false
		}
		r.err = r.nextBlock()
	}
	c := &r.cursor
	c.bind(r.steps)
	r.left--
	if r.left == 0 && c.err == nil && c.at != len(c.data) {
		c.fail("the rows of a block end %d bytes before the block", len(c.data)-c.at)
	}
	if c.err != nil {
		r.err, r.left = c.err, 0
		return false
	}
	return true
}

func anyRows(rows int64) bool { return rows > 0 }

func (r *Records) nextBlock() error {
	b, err := r.blocks.source.nextBlock(r.blocks.sync, anyRows)
	if err != nil || b.rows == 0 {
		return err
	}
	r.blocks.data = r.blocks.data[:0]
	if err := r.blocks.append(b); err != nil {
		return err
	}
	r.cursor, r.left = newCursor(r.blocks.data), b.rows
	return nil
}

// Err is why Next was false; nil at the end of the file.
func (r *Records) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// Close gives the memory back; idempotent.
func (r *Records) Close() {
	r.blocks.close()
	r.left = 0
	if r.err == nil {
		r.err = io.EOF
	}
}

// Binder binds the fields of one record. Each method takes a field id and the
// names that the field goes by in files without ids. It reports whether the
// file has the field; a field of another type makes Next fail.
type Binder struct {
	node   *node
	err    *error
	fields []target // by field; nil: passed over
}

func newBinder(n *node, err *error) *Binder {
	return &Binder{node: n, err: err, fields: make([]target, len(n.fields))}
}

// target takes the value of a field.
type target interface {
	read(c *cursor)
	null()
}

// field finds a field: by its id, or by name when it has none.
func (b *Binder) field(id int, names []string) int {
	for i, f := range b.node.fields {
		if f.id == id || f.id == noID && slices.Contains(names, f.name) {
			return i
		}
	}
	return -1
}

// bind gives a field a target when the type, seen through a union with null,
// is one that make accepts.
func (b *Binder) bind(id int, names []string, make func(n *node) target) bool {
	i := b.field(id, names)
	if i < 0 {
		return false
	}
	inner, _, ok := b.node.fields[i].node.optional()
	var t target
	if ok {
		t = make(inner)
	}
	if t == nil {
		if *b.err == nil {
			*b.err = errs.New(errs.Corrupt, "its field %q, id %d, has the unexpected type %s", b.node.fields[i].name, id, b.node.fields[i].node)
		}
		return true
	}
	b.fields[i] = t
	return true
}

// bindStep reads one field or passes over some.
type bindStep struct {
	target     target // nil: skip
	skip       []skipOp
	branches   int // of the union around it; 0: none
	nullBranch int
}

func (b *Binder) compile() []bindStep {
	var steps []bindStep
	for i, f := range b.node.fields {
		t := b.fields[i]
		if t == nil {
			if last := len(steps) - 1; last < 0 || steps[last].target != nil {
				steps = append(steps, bindStep{})
			}
			last := &steps[len(steps)-1]
			last.skip = skips(last.skip, f.node)
			continue
		}
		if nested, ok := t.(*recordTarget); ok {
			nested.steps = nested.binder.compile()
		}
		if list, ok := t.(*listTarget); ok {
			list.steps = list.binder.compile()
		}
		s := bindStep{target: t, nullBranch: -1}
		if f.node.kind == kindUnion {
			_, s.nullBranch, _ = f.node.optional()
			s.branches = len(f.node.branches)
		}
		steps = append(steps, s)
	}
	return steps
}

// bind reads one record.
func (c *cursor) bind(steps []bindStep) {
	for i := range steps {
		s := &steps[i]
		switch {
		case s.target == nil:
			c.skip(s.skip)
		case s.branches > 0 && c.branch(s.branches) == s.nullBranch:
			s.target.null()
		default:
			s.target.read(c)
		}
	}
}
