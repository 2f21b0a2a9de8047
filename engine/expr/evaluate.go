package expr

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// Evaluate clears the rows of keep that do not match. keep has n rows, and so
// has each array that column returns: the leaf column with that field id, in
// the Arrow form of its type in the schema, null where the leaf or one of its
// parents is null. Arrays stay owned by the caller. column is called at most
// once for a field id, and not at all when the rows are decided without it.
func (b *Bound) Evaluate(mode Mode, n int, column func(fieldID int) (arrow.Array, error), keep *batch.Mask) error {
	if keep.Len != n {
		return errs.New(errs.Internal, "filter: a mask of %d rows for a window of %d", keep.Len, n)
	}
	e := &evaluation{source: column, readers: map[int]*reader{}}
	return e.clear(b.rule(mode), keep)
}

// evaluation is the state of one call of Evaluate.
type evaluation struct {
	source  func(fieldID int) (arrow.Array, error)
	readers map[int]*reader
	// spare are masks that are not in use. There are at most two for each
	// level that the expression nests, of one bit a row.
	spare []*batch.Mask
}

// reader returns the array of a column, ready to be tested.
func (e *evaluation) reader(c *column, n int) (*reader, error) {
	if r, ok := e.readers[c.id]; ok {
		return r, nil
	}
	arr, err := e.source(c.id)
	if err != nil {
		return nil, err
	}
	if arr.Len() != n {
		return nil, errs.New(errs.Internal, "filter: column %q has %d rows in a window of %d", c.name, arr.Len(), n)
	}
	r, err := newReader(c, arr)
	if err != nil {
		return nil, err
	}
	e.readers[c.id] = r
	return r, nil
}

// clear drops the rows of keep that a rule does not match.
func (e *evaluation) clear(r *rule, keep *batch.Mask) error {
	if empty(keep) {
		return nil
	}
	switch r.op {
	case OpFalse:
		keep.Reset(keep.Len, false)
	case OpAnd:
		for _, a := range r.args {
			if err := e.clear(a, keep); err != nil {
				return err
			}
		}
	case OpOr:
		return e.clearUnlessAny(r.args, keep)
	case opTest:
		col, err := e.reader(r.test.col, keep.Len)
		if err != nil {
			return err
		}
		col.clear(r.test, keep)
	case opTuple:
		return e.clearTuples(r.tuple, keep)
	}
	return nil
}

// clearUnlessAny drops the rows that none of the rules matches. A rule sees
// only the rows that those before it left undecided.
func (e *evaluation) clearUnlessAny(rules []*rule, keep *batch.Mask) error {
	undecided, matched := e.mask(keep), e.mask(keep)
	defer func() { e.spare = append(e.spare, undecided, matched) }()
	for _, r := range rules {
		if empty(undecided) {
			return nil
		}
		copy(matched.Words, undecided.Words)
		if err := e.clear(r, matched); err != nil {
			return err
		}
		for i, w := range matched.Words {
			undecided.Words[i] &^= w
		}
	}
	for i, w := range undecided.Words {
		keep.Words[i] &^= w
	}
	return nil
}

// mask returns a copy of a mask.
func (e *evaluation) mask(of *batch.Mask) *batch.Mask {
	m := &batch.Mask{}
	if last := len(e.spare) - 1; last >= 0 {
		m, e.spare = e.spare[last], e.spare[:last]
	}
	m.Reset(of.Len, false)
	copy(m.Words, of.Words)
	return m
}

func empty(m *batch.Mask) bool {
	for _, w := range m.Words {
		if w != 0 {
			return false
		}
	}
	return true
}

// clearTuples drops the rows whose combination of values is not in the test.
func (e *evaluation) clearTuples(t *tupleTest, keep *batch.Mask) error {
	readers := make([]*reader, len(t.columns))
	for i, c := range t.columns {
		r, err := e.reader(c, keep.Len)
		if err != nil {
			return err
		}
		// Most rows that do not match are recognised by one column.
		if r.clear(t.each[i], keep); empty(keep) {
			return nil
		}
		readers[i] = r
	}
	var key []byte
	clearRows(keep, func(i int) bool {
		key = key[:0]
		for _, r := range readers {
			key = r.col.kind.appendKey(key, r.at(i))
		}
		_, ok := t.keys[string(key)]
		return ok
	})
	return nil
}
