package keys

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// First bytes of a column of an ordering key.
const (
	nullFirst = 0x00
	notNull   = 0x01
	nullLast  = 0x02
)

// OrderBlock is how many rows OrderEncoder takes at a time at most.
const OrderBlock = blockRows

// OrderEncoder writes the ordering keys of the rows of a batch, block by block:
//
//	e.Bind(arrays)
//	e.Load(start, n)         // n rows from start on
//	e.AddSizes(sizes)        // adds each row's key size
//	e.Write(buffer, at, n)   // at[i] is where the key of row i goes, and moves behind it
//
// One goroutine uses it. It holds about 16 KiB for each column.
type OrderEncoder struct {
	order   *Order
	columns []column
	loaded  []loadedColumn
	n       int
}

// loadedColumn are a column's values in the current block.
type loadedColumn struct {
	start       int
	words, high []uint64
	scratch     []uint64
	text        func(i int) string
	null        nullBits
	hasNulls    bool
}

// NewEncoder makes an encoder that is bound to nothing.
func (o *Order) NewEncoder() *OrderEncoder {
	return &OrderEncoder{order: o, columns: make([]column, len(o.columns)), loaded: make([]loadedColumn, len(o.columns))}
}

// Bind reads the arrays from now on, one for each column, all of one length.
func (e *OrderEncoder) Bind(arrays []arrow.Array) error {
	for i, a := range arrays {
		o := &e.order.columns[i]
		c, err := bind(o.source, o.form, a)
		if err != nil {
			return &errs.Error{Code: errs.InvalidArgument, Msg: fmt.Sprintf("sort key %q", o.Name), Err: err}
		}
		e.columns[i] = c
	}
	return nil
}

// Load brings n rows from start on into the block.
func (e *OrderEncoder) Load(start, n int) error {
	e.n = n
	for i := range e.columns {
		o, c, l := &e.order.columns[i], &e.columns[i], &e.loaded[i]
		l.start, l.hasNulls, l.text = start, false, nil
		if o.void {
			continue
		}
		if c.validity != nil {
			l.loadNulls(c, n)
		}
		if o.form == text {
			l.text = c.text
			if o.textWord != nil {
				l.words = resize(l.words, n)
				for j := range n {
					if !l.isNull(j) {
						l.words[j] = o.textWord(c.text(start + j))
					}
				}
			}
			continue
		}
		l.scratch = resize(l.scratch, n*(int(o.form)+1))
		words, err := c.words(l.scratch, start, n)
		if err != nil {
			return &errs.Error{Code: errs.InvalidArgument, Msg: fmt.Sprintf("sort key %q", o.Name), Err: err}
		}
		l.words = resize(l.words, n)
		switch {
		case o.pairWord != nil:
			for j := range l.words {
				l.words[j] = o.pairWord(words[2*j], words[2*j+1])
			}
		case o.pair != nil:
			l.high = resize(l.high, n)
			for j := range l.words {
				l.words[j], l.high[j] = o.pair(words[2*j], words[2*j+1])
			}
		default:
			for j, w := range words {
				l.words[j] = o.word(w)
			}
		}
	}
	return nil
}

func resize(words []uint64, n int) []uint64 {
	if cap(words) < n {
		return make([]uint64, n, max(n, blockRows))
	}
	return words[:n]
}

func (l *loadedColumn) loadNulls(c *column, n int) {
	clear(l.null[:])
	for j := range n {
		if !bitutil.BitIsSet(c.validity, c.offset+l.start+j) {
			l.null[j>>6] |= 1 << (uint(j) & 63)
			l.hasNulls = true
		}
	}
}

func (l *loadedColumn) isNull(j int) bool { return l.hasNulls && l.null.isSet(j) }

// varies reports whether keys of the column differ in length beyond nulls.
func (o *orderColumn) varies() bool {
	_, fixed := o.source.(iceberg.FixedType)
	return o.form == text && o.textWord == nil && (!fixed)
}

// AddSizes adds the key size of each loaded row to sizes.
func (e *OrderEncoder) AddSizes(sizes []int) {
	for i := range e.loaded {
		o, l := &e.order.columns[i], &e.loaded[i]
		switch {
		case o.void:
		case o.varies():
			for j := range sizes[:e.n] {
				sizes[j]++
				if !l.isNull(j) {
					s := o.text(l.text(l.start + j))
					sizes[j] += len(s) + strings.Count(s, "\x00") + 2
				}
			}
		default:
			for j := range sizes[:e.n] {
				sizes[j] += 1 + o.width
			}
			if l.hasNulls {
				for j := range sizes[:e.n] {
					if l.null.isSet(j) {
						sizes[j] -= o.width
					}
				}
			}
		}
	}
}

// Write puts the keys of the loaded rows [from, from+len(at)) into buffer.
func (e *OrderEncoder) Write(buffer []byte, at []int, from int) {
	for i := range e.loaded {
		o, l := &e.order.columns[i], &e.loaded[i]
		if o.void {
			continue
		}
		invert := uint64(0)
		if o.Descending {
			invert = ^invert
		}
		null := byte(nullFirst)
		if o.NullsLast {
			null = nullLast
		}
		for k, p := range at {
			j := k + from
			if l.isNull(j) {
				buffer[p] = null
				at[k] = p + 1
				continue
			}
			buffer[p] = notNull
			to := buffer[p+1:]
			switch {
			case l.text != nil && o.textWord == nil:
				at[k] = p + 1 + o.putText(to, l.text(l.start+j))
				continue
			case o.width == 8:
				binary.BigEndian.PutUint64(to, l.words[j]^invert)
			case o.width == 4:
				binary.BigEndian.PutUint32(to, uint32(l.words[j]^invert))
			case o.width == 1:
				to[0] = byte(l.words[j] ^ invert)
			default:
				binary.BigEndian.PutUint64(to, l.high[j]^invert)
				binary.BigEndian.PutUint64(to[8:], l.words[j]^invert)
			}
			at[k] = p + 1 + o.width
		}
	}
}

// putText writes the bytes of a text and returns how many.
func (o *orderColumn) putText(to []byte, s string) int {
	s = o.text(s)
	n := 0
	if !o.varies() {
		n = copy(to, s)
	} else {
		for {
			zero := strings.IndexByte(s, 0)
			if zero < 0 {
				n += copy(to[n:], s)
				break
			}
			n += copy(to[n:], s[:zero])
			to[n], to[n+1] = 0x00, 0xff
			n += 2
			s = s[zero+1:]
		}
		to[n], to[n+1] = 0x00, 0x01
		n += 2
	}
	if o.Descending {
		for i, b := range to[:n] {
			to[i] = ^b
		}
	}
	return n
}
