package keys

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// blockRows is how many rows are hashed and probed together: their hashes and
// words stay in the first-level cache, and the cost of every indirection is
// shared by a thousand rows.
const blockRows = 1024

// Rows are the key columns of a batch of rows, ready to be hashed.
type Rows struct {
	layout  *Layout
	columns []column
	n       int
}

// column is one bound key column.
type column struct {
	// validity is the Arrow bitmap, nil when no value is null; bit offset is row 0.
	validity []byte
	offset   int
	// words fills one or two words for each row from start on and returns them:
	// dst, or a view of the array itself. Words of null rows may be anything.
	words func(dst []uint64, start, n int) ([]uint64, error)
	// text is a value of a column of bytes. mixTexts adds the values from start
	// on to hashes; null has the bits of the rows that are null, unless nil.
	text     func(i int) string
	mixTexts func(hash []uint64, start int, seed uint64, null *nullBits)
}

// NewRows makes unbound rows of this layout.
func (l *Layout) NewRows() *Rows { return &Rows{layout: l, columns: make([]column, len(l.fields))} }

// Bind reads the values of the arrays from now on. There is one array for each
// field of the layout, all of one length, in any Arrow type that holds values
// of the field's type or of one that promotes to it. The arrays must outlive
// their use; Rows retain nothing.
func (r *Rows) Bind(arrays []arrow.Array) error {
	if len(arrays) != len(r.columns) {
		return errs.New(errs.Internal, "a key of %d columns is bound to %d arrays", len(r.columns), len(arrays))
	}
	r.n = arrays[0].Len()
	for i, a := range arrays {
		f := r.layout.fields[i]
		if a.Len() != r.n {
			return errs.New(errs.Internal, "key column %q has %d rows, expected %d", f.Name, a.Len(), r.n)
		}
		c, err := bind(f.Type, r.layout.forms[i], a)
		if err != nil {
			return columnError(f, err)
		}
		r.columns[i] = c
	}
	return nil
}

func columnError(f iceberg.NestedField, err error) error {
	return &errs.Error{Code: errs.Corrupt, Msg: fmt.Sprintf("key column %q (field id %d)", f.Name, f.ID), Err: err}
}

// Len is the number of rows bound.
func (r *Rows) Len() int { return r.n }

// block is the workspace for up to blockRows rows.
type block struct {
	n    int
	hash [blockRows]uint64
	// column is the part of buffers that the rows at hand need.
	column, buffers []blockColumn
	// nullColumns has a bit for each null column of a row; valid if hasNulls.
	// Kept only for keys held as words, which have at most two columns.
	nullColumns [blockRows]uint8
	hasNulls    bool
}

type blockColumn struct {
	words, wordBuffer []uint64
	text              func(i int) string
	start             int
	null              nullBits // valid if hasNulls
	hasNulls          bool
}

// nullBits has a set bit for each null row of a block.
type nullBits [blockRows / 64]uint64

func (b *nullBits) isSet(j int) bool { return b[j>>6]>>(uint(j)&63)&1 == 1 }

// load brings rows [start, start+n) into the block and hashes them.
func (r *Rows) load(b *block, start, n int) error {
	b.prepare(len(r.columns), n)
	hash := b.hash[:n]
	for j := range hash {
		hash[j] = r.layout.seed
	}
	for i := range r.columns {
		c, bc := &r.columns[i], &b.column[i]
		bc.loadNulls(c, start, n)
		if bc.hasNulls {
			b.addNulls(i, n)
		}
		var err error
		switch r.layout.forms[i] {
		case oneWord:
			err = bc.hashWords(c, hash, start)
		case twoWords:
			err = bc.hashWordPairs(c, hash, start)
		case text:
			bc.hashTexts(c, r.layout.textSeed, hash, start)
		}
		if err != nil {
			return columnError(r.layout.fields[i], err)
		}
	}
	return nil
}

// loadWords brings rows of a single column of words without nulls into the
// block, but does not hash them.
func (r *Rows) loadWords(b *block, start, n int) ([]uint64, error) {
	b.prepare(1, n)
	bc := &b.column[0]
	bc.hasNulls = false
	words, err := bc.fill(&r.columns[0], start, n, 1)
	if err != nil {
		return nil, columnError(r.layout.fields[0], err)
	}
	return words[:n], nil
}

// prepare readies the block for n rows of some columns.
func (b *block) prepare(columns, n int) {
	b.n, b.hasNulls = n, false
	for len(b.buffers) < columns {
		b.buffers = append(b.buffers, blockColumn{})
	}
	b.column = b.buffers[:columns]
}

func (b *block) addNulls(i, n int) {
	if i > 1 {
		return // only keys held as words use the bits
	}
	if !b.hasNulls {
		clear(b.nullColumns[:n])
		b.hasNulls = true
	}
	for j := range n {
		if b.column[i].isNull(j) {
			b.nullColumns[j] |= 1 << i
		}
	}
}

func (bc *blockColumn) isNull(j int) bool { return bc.hasNulls && bc.null.isSet(j) }

func (bc *blockColumn) loadNulls(c *column, start, n int) {
	bc.hasNulls = false
	if c.validity == nil {
		return
	}
	bit := c.offset + start
	for w := 0; w*64 < n; w++ {
		valid := loadBits(c.validity, bit+w*64, min(64, n-w*64))
		bc.null[w] = ^valid
		if left := n - w*64; left < 64 {
			bc.null[w] &= 1<<left - 1
		}
		bc.hasNulls = bc.hasNulls || bc.null[w] != 0
	}
}

// loadBits reads n (at most 64) bits from bit on, least significant first.
func loadBits(bitmap []byte, bit, n int) uint64 {
	first, last := bit>>3, (bit+n-1)>>3
	shift := uint(bit & 7)
	if first+8 <= len(bitmap) {
		word := binary.LittleEndian.Uint64(bitmap[first:]) >> shift
		if last-first == 8 {
			word |= uint64(bitmap[last]) << (64 - shift)
		}
		return word
	}
	var word uint64
	for i := first; i <= last; i++ {
		if at := (i-first)*8 - int(shift); at >= 0 {
			word |= uint64(bitmap[i]) << at
		} else {
			word |= uint64(bitmap[i]) >> -at
		}
	}
	return word
}

func (bc *blockColumn) hashWords(c *column, hash []uint64, start int) error {
	words, err := bc.fill(c, start, len(hash), 1)
	if err != nil {
		return err
	}
	words = words[:len(hash)]
	for j, w := range words {
		hash[j] = mix(hash[j], w)
	}
	return nil
}

func (bc *blockColumn) hashWordPairs(c *column, hash []uint64, start int) error {
	words, err := bc.fill(c, start, len(hash), 2)
	if err != nil {
		return err
	}
	for j := range hash {
		hash[j] = mix(mix(hash[j], words[2*j]), words[2*j+1])
	}
	return nil
}

// fill loads the words of n rows, nullWord for nulls.
func (bc *blockColumn) fill(c *column, start, n, width int) ([]uint64, error) {
	if bc.wordBuffer == nil {
		bc.wordBuffer = make([]uint64, 2*blockRows)
	}
	words, err := c.words(bc.wordBuffer[:n*width], start, n)
	if err != nil {
		return nil, err
	}
	if bc.hasNulls {
		buffer := bc.wordBuffer[:n*width]
		copy(buffer, words)
		words = buffer
		for j := range n {
			if bc.isNull(j) {
				for k := range width {
					words[j*width+k] = nullWord
				}
			}
		}
	}
	bc.words = words
	return words, nil
}

func (bc *blockColumn) hashTexts(c *column, seed uint64, hash []uint64, start int) {
	bc.text, bc.start = c.text, start
	if bc.hasNulls {
		c.mixTexts(hash, start, seed, &bc.null)
	} else {
		c.mixTexts(hash, start, seed, nil)
	}
}

// appendKey appends the canonical encoding of row j of the block.
func (l *Layout) appendKey(dst []byte, b *block, j int) []byte {
	for i := range b.column {
		bc := &b.column[i]
		if bc.isNull(j) {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, 1)
		switch l.forms[i] {
		case oneWord:
			dst = binary.LittleEndian.AppendUint64(dst, bc.words[j])
		case twoWords:
			dst = binary.LittleEndian.AppendUint64(dst, bc.words[2*j])
			dst = binary.LittleEndian.AppendUint64(dst, bc.words[2*j+1])
		case text:
			value := bc.text(bc.start + j)
			dst = binary.AppendUvarint(dst, uint64(len(value)))
			dst = append(dst, value...)
		}
	}
	return dst
}

// Hash is the hash of a key in canonical encoding, the same as that of the
// row it was made of. ok is false when the bytes are no such encoding.
func (l *Layout) Hash(key []byte) (hash uint64, ok bool) {
	hash = l.seed
	for _, form := range l.forms {
		if len(key) == 0 || key[0] > 1 {
			return 0, false
		}
		null := key[0] == 0
		key = key[1:]
		if form == text {
			if null {
				hash = mix(hash, nullWord)
				continue
			}
			length, n := binary.Uvarint(key)
			if n <= 0 || length > uint64(len(key)-n) {
				return 0, false
			}
			hash = mix(hash, hashText(stringOf(key[n:n+int(length)]), l.textSeed))
			key = key[n+int(length):]
			continue
		}
		for range form + 1 {
			word := uint64(nullWord)
			if !null {
				if len(key) < 8 {
					return 0, false
				}
				word, key = binary.LittleEndian.Uint64(key), key[8:]
			}
			hash = mix(hash, word)
		}
	}
	return hash, len(key) == 0
}

// wordsOf takes a key held as words out of its canonical encoding, which Hash
// has found well formed.
func (l *Layout) wordsOf(key []byte) (words [2]uint64, nullColumns uint8) {
	at := 0
	for i, form := range l.forms {
		null := key[0] == 0
		key = key[1:]
		if null {
			nullColumns |= 1 << i
		}
		for range form + 1 {
			words[at] = nullWord
			if !null {
				words[at], key = binary.LittleEndian.Uint64(key), key[8:]
			}
			at++
		}
	}
	return words, nullColumns
}

// Encode calls use for every row from one on, with its canonical encoding,
// which is valid until the call returns, and its hash. It stops at the first error.
func (r *Rows) Encode(w *Workspace, from int, use func(row int, key []byte, hash uint64) error) error {
	return r.encode(w, from, func([]uint64) {}, use)
}

// encode is Encode that shows the hashes of a thousand rows before them.
func (r *Rows) encode(w *Workspace, from int, look func(hashes []uint64), use func(row int, key []byte, hash uint64) error) error {
	for start := from; start < r.n; start += blockRows {
		if err := r.load(&w.block, start, min(blockRows, r.n-start)); err != nil {
			return err
		}
		look(w.block.hash[:w.block.n])
		for j := range w.block.n {
			w.key = r.layout.appendKey(w.key[:0], &w.block, j)
			if err := use(start+j, w.key, w.block.hash[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Workspace is the memory that one goroutine needs to work with keys. It is
// about 20 KiB, 16 KiB for each column of the widest key, and the longest key.
type Workspace struct {
	block     block
	key       []byte
	candidate [blockRows]uint16
	refs      [blockRows]uint64
	touched   uint64 // keeps the compiler from leaving reads out
}
