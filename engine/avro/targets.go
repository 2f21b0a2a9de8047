package avro

// Long is an int or long; Valid is false for null.
type Long struct {
	Value int64
	Valid bool
}

func (t *Long) read(c *cursor) { t.Value, t.Valid = c.long(), true }
func (t *Long) null()          { *t = Long{} }

// Pointer is nil for null, else a copy.
func (t *Long) Pointer() *int64 {
	if !t.Valid {
		return nil
	}
	v := t.Value
	return &v
}

// Long binds a field of type int or long.
func (b *Binder) Long(to *Long, id int, names ...string) bool {
	return b.bind(id, names, func(n *node) target {
		if n.isInteger() {
			return to
		}
		return nil
	})
}

func (n *node) isInteger() bool { return n.kind == kindInt || n.kind == kindLong }

// Bool is a boolean; Valid is false for null.
type Bool struct{ Value, Valid bool }

func (t *Bool) read(c *cursor) { t.Value, t.Valid = c.boolean(), true }
func (t *Bool) null()          { *t = Bool{} }

// Bool binds a field of type boolean.
func (b *Binder) Bool(to *Bool, id int, names ...string) bool {
	return b.bind(id, names, func(n *node) target {
		if n.kind == kindBoolean {
			return to
		}
		return nil
	})
}

// Bytes is a string or bytes and aliases the file's; Valid is false for null.
type Bytes struct {
	Value []byte
	Valid bool
}

func (t *Bytes) read(c *cursor) { t.Value, t.Valid = c.bytes(), true }
func (t *Bytes) null()          { *t = Bytes{} }

// Bytes binds a field of type string or bytes.
func (b *Binder) Bytes(to *Bytes, id int, names ...string) bool {
	return b.bind(id, names, func(n *node) target {
		if n.isBytes() {
			return to
		}
		return nil
	})
}

func (n *node) isBytes() bool { return n.kind == kindBytes || n.kind == kindString }

// Longs is an array of int or long; it is used again for the next row. Valid
// is false for null.
type Longs struct {
	Values []int64
	Valid  bool
}

func (t *Longs) null() { t.Values, t.Valid = t.Values[:0], false }
func (t *Longs) read(c *cursor) {
	t.Values, t.Valid = t.Values[:0], true
	for {
		n, _ := c.block(1, 8)
		if n == 0 {
			return
		}
		for ; n > 0 && c.err == nil; n-- {
			t.Values = append(t.Values, c.long())
		}
	}
}

// Longs binds a field that is an array of int or long.
func (b *Binder) Longs(to *Longs, id int, names ...string) bool {
	return b.bind(id, names, func(n *node) target {
		if n.kind == kindArray && n.item.isInteger() {
			return to
		}
		return nil
	})
}

// LongMap is a map of int to int or long, as pairs in the file's order; it is
// used again for the next row. Valid is false for null.
type LongMap struct {
	Keys   []int64
	Values []int64
	Valid  bool
}

// BytesMap is a map of int to bytes, which alias the file's.
type BytesMap struct {
	Keys   []int64
	Values [][]byte
	Valid  bool
}

// pairsOf finds the key and value of a map of ints. Some writers do not mark
// the array of records as a map.
func pairsOf(n *node) (value *node, valueFirst, ok bool) {
	if n.kind != kindArray || n.item.kind != kindRecord {
		return nil, false, false
	}
	marked := *n
	marked.logical = "map"
	k, v, ok := marked.mapEntry()
	if !ok || !k.node.isInteger() {
		return nil, false, false
	}
	return v.node, n.item.fields[0] == v, true
}

type longMapTarget struct {
	to         *LongMap
	valueFirst bool
	least      int
}

func (t *longMapTarget) null() {
	t.to.Keys, t.to.Values, t.to.Valid = t.to.Keys[:0], t.to.Values[:0], false
}
func (t *longMapTarget) read(c *cursor) {
	m := t.to
	m.Keys, m.Values, m.Valid = m.Keys[:0], m.Values[:0], true
	for {
		n, _ := c.block(t.least, 16)
		if n == 0 {
			return
		}
		for ; n > 0 && c.err == nil; n-- {
			first, second := c.long(), c.long()
			if t.valueFirst {
				first, second = second, first
			}
			m.Keys, m.Values = append(m.Keys, first), append(m.Values, second)
		}
	}
}

// LongMap binds a field that is a map of int to int or long.
func (b *Binder) LongMap(to *LongMap, id int, names ...string) bool {
	return b.bind(id, names, func(n *node) target {
		if v, valueFirst, ok := pairsOf(n); ok && v.isInteger() {
			return &longMapTarget{to: to, valueFirst: valueFirst, least: n.item.minSize}
		}
		return nil
	})
}

type bytesMapTarget struct {
	to         *BytesMap
	valueFirst bool
	least      int
}

func (t *bytesMapTarget) null() {
	t.to.Keys, t.to.Values, t.to.Valid = t.to.Keys[:0], t.to.Values[:0], false
}
func (t *bytesMapTarget) read(c *cursor) {
	m := t.to
	m.Keys, m.Values, m.Valid = m.Keys[:0], m.Values[:0], true
	for {
		n, _ := c.block(t.least, 32)
		if n == 0 {
			return
		}
		for ; n > 0 && c.err == nil; n-- {
			var key int64
			var value []byte
			if t.valueFirst {
				value = c.bytes()
				key = c.long()
			} else {
				key = c.long()
				value = c.bytes()
			}
			m.Keys, m.Values = append(m.Keys, key), append(m.Values, value)
		}
	}
}

// BytesMap binds a field that is a map of int to bytes.
func (b *Binder) BytesMap(to *BytesMap, id int, names ...string) bool {
	return b.bind(id, names, func(n *node) target {
		if v, valueFirst, ok := pairsOf(n); ok && v.isBytes() {
			return &bytesMapTarget{to: to, valueFirst: valueFirst, least: n.item.minSize}
		}
		return nil
	})
}
