package pq

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// columnWriter encodes one leaf of the open row group into pages:
//
//	array ── shredder ──> levels ──────────────┐
//	              └─────> values ── encoder ───┴──> page ── compress ──> blocks
type columnWriter struct {
	leaf    *leaf
	options *WriterOptions
	shred   shredder
	encoder encoder
	filter  *bloomBuilder // nil: none

	page  openPage
	pages []writtenPage
	// pageBounds is the size of what pages hold of bounds.
	pageBounds int
	blocks     blockList // the finished data pages
	chunk      chunkTotals
}

// openPage counts what the open page has, and keeps its levels.
type openPage struct {
	rows, slots, values int
	// def holds the definition levels, unless every slot so far has a value
	// and the leaf is not below a list.
	def, rep []uint8
}

// writtenPage is a data page of the open row group.
type writtenPage struct {
	size          int // header and body
	rows          int
	slots, values int
	bounds        bounds
	encoding      encoding
}

// chunkTotals sum up a column chunk.
type chunkTotals struct {
	slots, values int64
	uncompressed  int64 // headers and bodies before compression
	unencoded     int64 // bytes of the values themselves
	bounds        bounds
}

func newColumnWriter(l *leaf, path []step, o *WriterOptions, pool *blockPool) *columnWriter {
	c := &columnWriter{leaf: l, options: o, shred: shredder{leaf: l, path: path}, blocks: blockList{pool: pool}}
	if bloom, ok := o.BloomFilters[int(l.fieldID)]; ok && l.physical != physBoolean {
		c.filter = newBloomBuilder(bloom)
	}
	c.encoder = newEncoder(l, o.DictionaryBytes, c.filter)
	return c
}

// write encodes the rows [from, to) of the leaf's column.
func (c *columnWriter) write(m *pageMaker, column arrow.Array, from, to int) error {
	values, there, err := c.shred.run(column, from, to)
	if err != nil {
		return err
	}
	size, err := c.encoder.load(values, there)
	if err != nil {
		return err
	}
	if c.leaf.physical == physByteArray {
		c.chunk.unencoded += int64(size - there.len()*lengthPrefix)
	}
	def, rep := c.shred.def, c.shred.rep
	rows, value, slot := to-from, 0, 0
	average := max(size/rows, 1)
	for rows > 0 {
		n := min(rows, c.room(average))
		slots := rowSlots(rep, slot, n)
		values := slots
		if def != nil {
			values = count(def[slot:slot+slots], c.leaf.maxDef)
		}
		c.addLevels(def, rep, slot, slots, values)
		c.encoder.add(value, value+values)
		c.page.rows += n
		rows, slot, value = rows-n, slot+slots, value+values
		if used, full := c.encoder.pageBytes(); full || used >= c.options.PageBytes || c.page.rows >= c.options.PageRows {
			if err := c.endPage(m, false /* last */); err != nil {
				return err
			}
		}
	}
	return nil
}

// room is how many more rows of an average size the open page takes.
func (c *columnWriter) room(average int) int {
	used, _ := c.encoder.pageBytes()
	return max(min(c.options.PageRows-c.page.rows, (c.options.PageBytes-used)/average), 1)
}

// rowSlots is how many slots the next n rows have.
func rowSlots(rep []uint8, slot, n int) int {
	if rep == nil {
		return n
	}
	end := slot
	for n >= 0 && end < len(rep) {
		if rep[end] == 0 {
			n--
			if n < 0 {
				break
			}
		}
		end++
	}
	return end - slot
}

func count(levels []uint8, level uint8) int {
	n := 0
	for _, l := range levels {
		if l == level {
			n++
		}
	}
	return n
}

func (c *columnWriter) addLevels(def, rep []uint8, slot, n, values int) {
	p := &c.page
	if rep != nil {
		p.rep = append(p.rep, rep[slot:slot+n]...)
	}
	if def != nil && (values < n || len(p.def) > 0 || rep != nil) || len(p.def) > 0 {
		for len(p.def) < p.slots { // those before the first null
			p.def = append(p.def, c.leaf.maxDef)
		}
		if def != nil {
			p.def = append(p.def, def[slot:slot+n]...)
		} else {
			for range n {
				p.def = append(p.def, c.leaf.maxDef)
			}
		}
	}
	p.slots += n
	p.values += values
}

// appendDefinition and appendRepetition encode the open page's levels.
func (c *columnWriter) appendDefinition(dst []byte) []byte {
	width := widthOf(int(c.leaf.maxDef))
	if len(c.page.def) == 0 {
		return appendRun(dst, c.page.slots, uint32(c.leaf.maxDef), width)
	}
	return appendHybrid(dst, c.page.def, width)
}

func (c *columnWriter) appendRepetition(dst []byte) []byte {
	return appendHybrid(dst, c.page.rep, widthOf(int(c.leaf.maxRep)))
}

// endPage encodes, compresses and keeps the open page. last says that it ends
// the column chunk.
func (c *columnWriter) endPage(m *pageMaker, last bool) error {
	p := &c.page
	h := pageHeader{kind: dataPage, numValues: int32(p.slots)}
	m.body = m.body[:0]
	if c.options.PageVersion == 2 {
		h.kind, h.numRows, h.numNulls = dataPageV2, int32(p.rows), int32(p.slots-p.values)
		if c.leaf.maxRep > 0 {
			m.body = c.appendRepetition(m.body)
		}
		h.repLength = int32(len(m.body))
		if c.leaf.maxDef > 0 {
			m.body = c.appendDefinition(m.body)
		}
		h.defLength = int32(len(m.body)) - h.repLength
	} else {
		if c.leaf.maxRep > 0 {
			m.body = withLength(m.body, c.appendRepetition)
		}
		if c.leaf.maxDef > 0 {
			m.body = withLength(m.body, c.appendDefinition)
		}
	}
	page := writtenPage{rows: p.rows, slots: p.slots, values: p.values}
	m.body, h.encoding, page.bounds = c.encoder.endPage(m.body, last)
	parts, err := m.seal(h)
	if err != nil {
		return errs.New(errs.InvalidArgument, "column %s: %v", c.leaf.path, err)
	}
	for _, part := range parts {
		c.blocks.append(part)
		page.size += len(part)
	}
	page.encoding = h.encoding
	c.pages = append(c.pages, page)
	c.pageBounds += len(page.bounds.min) + len(page.bounds.max)
	c.chunk.slots += int64(p.slots)
	c.chunk.values += int64(p.values)
	c.chunk.uncompressed += int64(len(parts[0]) + len(m.body))
	c.chunk.bounds.merge(c.leaf, page.bounds)
	c.page = openPage{def: p.def[:0], rep: p.rep[:0]}
	return nil
}

// withLength puts the length of levels in front of them, as pages of version 1
// have it.
func withLength(dst []byte, levels func([]byte) []byte) []byte {
	at := len(dst)
	dst = levels(append(dst, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// size is about how many bytes the open column chunk takes in the file.
func (c *columnWriter) size() int {
	open, _ := c.encoder.pageBytes()
	return c.blocks.size + open + c.encoder.dictionaryBytes()
}

// held is the memory that the column keeps, its blocks left out.
func (c *columnWriter) held() int {
	n := c.encoder.held() + cap(c.page.def) + cap(c.page.rep) + c.shred.held()
	n += c.pageBounds + cap(c.pages)*int(unsafe.Sizeof(writtenPage{}))
	if c.filter != nil {
		n += len(c.filter.blocks)
	}
	return n
}

// trim gives the memory back that a column without an open chunk keeps for the
// next one.
func (c *columnWriter) trim() {
	c.encoder = newEncoder(c.leaf, c.options.DictionaryBytes, c.filter)
	c.shred = shredder{leaf: c.leaf, path: c.shred.path}
	c.page, c.pages = openPage{}, nil
}

// reset starts a column chunk.
func (c *columnWriter) reset() {
	c.encoder.reset()
	c.blocks.reset()
	clear(c.pages)
	c.pages, c.pageBounds, c.chunk = c.pages[:0], 0, chunkTotals{}
	c.page = openPage{def: c.page.def[:0], rep: c.page.rep[:0]}
}
