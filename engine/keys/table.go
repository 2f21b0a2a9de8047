package keys

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// Table maps keys of one layout to the greatest sequence number they were
// added with. It is an open-addressing hash table with linear probing behind a
// filter; all of its memory is charged and comes from an allocator:
//
//	words:  words[slot*width...], marks[slot] = null columns | sequence rank
//	bytes:  refs[slot] = high half of the hash | place in the arena,
//	        arena: sequence rank, length, canonical key
//
// A rank is an index into sequences, from 1 on: 0 marks a free slot. Any
// number of goroutines may use it while none changes it.
type Table struct {
	layout *Layout
	alloc  memory.Allocator
	charge *mem.Reservation

	sequences []int64
	ranks     map[int64]uint32

	n      int // keys held
	slots  uint64
	filter filter
	words  []uint64
	marks  []uint32
	refs   []uint64
	arena  arena
}

// A mark holds a rank below and the null columns of a key above.
const (
	rankBits = 30
	rankMask = 1<<rankBits - 1
)

// At most this share of the slots is used: enough to need few steps for keys
// that are there, and the filter keeps most others away.
const loadNumerator, loadDenominator = 4, 5

const (
	minSlots = 64
	maxSlots = 1 << 32
)

// NewTable makes an empty table. charge grows with it and is shrunk, but not
// freed, by Free.
func NewTable(layout *Layout, alloc memory.Allocator, charge *mem.Reservation) *Table {
	return &Table{layout: layout, alloc: alloc, charge: charge, ranks: map[int64]uint32{}, arena: arena{alloc: alloc, charge: charge}}
}

// Layout is how the table's keys are held.
func (t *Table) Layout() *Layout { return t.layout }

// Len is the number of distinct keys.
func (t *Table) Len() int { return t.n }

// Free gives all memory back; the table is empty then and can be used again.
func (t *Table) Free() {
	t.freeSlots(t.filter, t.words, t.marks, t.refs)
	t.filter, t.words, t.marks, t.refs = nil, nil, nil, nil
	t.n, t.slots = 0, 0
	t.arena.free()
	t.sequences, t.ranks = nil, map[int64]uint32{}
}

func (t *Table) freeSlots(f filter, words []uint64, marks []uint32, refs []uint64) {
	freeSlice(t.alloc, t.charge, f)
	freeSlice(t.alloc, t.charge, words)
	freeSlice(t.alloc, t.charge, marks)
	freeSlice(t.alloc, t.charge, refs)
}

func newSlice[T any](alloc memory.Allocator, charge *mem.Reservation, n uint64) ([]T, error) {
	var t T
	size := int64(n) * int64(unsafe.Sizeof(t))
	if err := charge.TryGrow(size); err != nil {
		return nil, err
	}
	b := alloc.Allocate(int(size))
	clear(b)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}

func freeSlice[T any](alloc memory.Allocator, charge *mem.Reservation, s []T) {
	if s == nil {
		return
	}
	var t T
	size := len(s) * int(unsafe.Sizeof(t))
	alloc.Free(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size))
	charge.Shrink(int64(size))
}

// Reserve makes room for n more keys, growing by at least half so that many
// calls cost no more than one. It fails with MemoryLimit, and changes nothing then.
func (t *Table) Reserve(n int64) error {
	need := uint64(t.n) + uint64(min(n, 1<<40))
	need = need*loadDenominator/loadNumerator + 1
	if need <= t.slots {
		return nil
	}
	if need > maxSlots {
		return errs.New(errs.MemoryLimit, "a key table holds at most %d keys", uint64(maxSlots)*loadNumerator/loadDenominator)
	}
	err := t.resize(min(max(need, t.slots+t.slots/2, minSlots), maxSlots))
	if t.slots > 0 && errs.CodeOf(err) == errs.MemoryLimit {
		return t.resize(max(need, t.slots+t.slots/8)) // what is left may still do for a while
	}
	return err
}

func (t *Table) resize(slots uint64) (err error) {
	old := *t
	defer func() {
		if err != nil {
			t.freeSlots(t.filter, t.words, t.marks, t.refs)
			t.filter, t.words, t.marks, t.refs, t.slots = old.filter, old.words, old.marks, old.refs, old.slots
			return
		}
		t.freeSlots(old.filter, old.words, old.marks, old.refs)
	}()
	t.filter, t.words, t.marks, t.refs, t.slots = nil, nil, nil, nil, slots
	if t.filter, err = newSlice[uint64](t.alloc, t.charge, slots/filterSlots+1); err != nil {
		return err
	}
	if t.layout.words > 0 {
		if t.words, err = newSlice[uint64](t.alloc, t.charge, slots*uint64(t.layout.words)); err != nil {
			return err
		}
		if t.marks, err = newSlice[uint32](t.alloc, t.charge, slots); err != nil {
			return err
		}
		t.moveWords(&old)
		return nil
	}
	if t.refs, err = newSlice[uint64](t.alloc, t.charge, slots); err != nil {
		return err
	}
	t.moveRefs(&old)
	return nil
}

func (t *Table) moveWords(old *Table) {
	width := t.layout.words
	for s, mark := range old.marks {
		if mark == 0 {
			continue
		}
		key := old.words[s*width : (s+1)*width]
		hash := t.layout.seed
		for _, w := range key {
			hash = mix(hash, w)
		}
		t.filter.add(hash)
		i := reduce(hash, t.slots)
		for t.marks[i] != 0 {
			i = t.next(i)
		}
		copy(t.words[i*uint64(width):], key)
		t.marks[i] = mark
	}
}

func (t *Table) moveRefs(old *Table) {
	for _, ref := range old.refs {
		if ref == 0 {
			continue
		}
		_, key := t.arena.entry(uint32(ref))
		hash, _ := t.layout.Hash(key)
		t.filter.add(hash)
		i := reduce(hash, t.slots)
		for t.refs[i] != 0 {
			i = t.next(i)
		}
		t.refs[i] = ref
	}
}

func (t *Table) next(slot uint64) uint64 {
	if slot++; slot == t.slots {
		return 0
	}
	return slot
}

// rank numbers the sequence numbers that occur: one for each delete file at most.
func (t *Table) rank(sequence int64) uint32 {
	if r, ok := t.ranks[sequence]; ok {
		return r
	}
	t.sequences = append(t.sequences, sequence)
	r := uint32(len(t.sequences))
	t.ranks[sequence] = r
	return r
}

func (t *Table) sequence(rank uint32) int64 { return t.sequences[rank-1] }

// Add puts the keys of all rows in, each with a sequence number; a key that is
// there keeps the greater one. It fails with MemoryLimit when the table cannot
// grow: the keys of the first added rows are in then, so that the caller can
// go on with the others elsewhere.
func (t *Table) Add(w *Workspace, rows *Rows, sequence int64) (added int, err error) {
	rank := t.rank(sequence)
	b := &w.block
	for start := 0; start < rows.n; start += blockRows {
		n := min(blockRows, rows.n-start)
		if err := t.Reserve(int64(n)); err != nil {
			return start, err
		}
		if err := rows.load(b, start, n); err != nil {
			return start, err
		}
		t.touchSlots(w, n)
		if t.layout.words > 0 {
			for j := range n {
				key, nulls := t.layout.blockWords(b, j)
				t.addWords(key, nulls, b.hash[j], rank)
			}
			continue
		}
		for j := range n {
			w.key = t.layout.appendKey(w.key[:0], b, j)
			if err := t.addBytes(w.key, b.hash[j], rank); err != nil {
				return start + j, err
			}
		}
	}
	return rows.n, nil
}

// AddEncoded puts one key in by its canonical encoding.
func (t *Table) AddEncoded(key []byte, sequence int64) error {
	hash, ok := t.layout.Hash(key)
	if !ok {
		return errs.New(errs.Corrupt, "a key is not encoded as its columns require")
	}
	if err := t.Reserve(1); err != nil {
		return err
	}
	if t.layout.words > 0 {
		words, nulls := t.layout.wordsOf(key)
		t.addWords(words, nulls, hash, t.rank(sequence))
		return nil
	}
	return t.addBytes(key, hash, t.rank(sequence))
}

// Lookup is the sequence number of a key by its canonical encoding; ok is
// false when the table does not have the key.
func (t *Table) Lookup(key []byte, hash uint64) (sequence int64, ok bool) {
	if t.n == 0 || !t.filter.has(hash) {
		return 0, false
	}
	if t.layout.words > 0 {
		words, nulls := t.layout.wordsOf(key)
		i, found := t.findWords(words, nulls, hash)
		if !found {
			return 0, false
		}
		return t.sequence(t.marks[i] & rankMask), true
	}
	_, rank := t.findBytes(key, hash)
	if rank == nil {
		return 0, false
	}
	return t.sequence(*rank), true
}

// blockWords is the key of row j of a block as words, the second 0 if unused.
func (l *Layout) blockWords(b *block, j int) (key [2]uint64, nulls uint8) {
	switch {
	case len(b.column) == 2:
		key = [2]uint64{b.column[0].words[j], b.column[1].words[j]}
	case l.words == 2:
		key = [2]uint64(b.column[0].words[2*j:])
	default:
		key[0] = b.column[0].words[j]
	}
	if b.hasNulls {
		nulls = b.nullColumns[j]
	}
	return key, nulls
}

func (t *Table) addWords(key [2]uint64, nulls uint8, hash uint64, rank uint32) {
	i, found := t.findWords(key, nulls, hash)
	if !found {
		t.filter.add(hash)
		copy(t.words[i*uint64(t.layout.words):], key[:t.layout.words])
		t.marks[i] = uint32(nulls)<<rankBits | rank
		t.n++
	} else if t.sequence(t.marks[i]&rankMask) < t.sequence(rank) {
		t.marks[i] = uint32(nulls)<<rankBits | rank
	}
}

// findWords finds the slot of a key, or the free one where it belongs.
func (t *Table) findWords(key [2]uint64, nulls uint8, hash uint64) (slot uint64, found bool) {
	i := reduce(hash, t.slots)
	if t.layout.words == 1 {
		for {
			mark := t.marks[i]
			if mark == 0 {
				return i, false
			}
			if t.words[i] == key[0] && mark>>rankBits == uint32(nulls) {
				return i, true
			}
			i = t.next(i)
		}
	}
	for {
		mark := t.marks[i]
		if mark == 0 {
			return i, false
		}
		if t.words[2*i] == key[0] && t.words[2*i+1] == key[1] && mark>>rankBits == uint32(nulls) {
			return i, true
		}
		i = t.next(i)
	}
}

func (t *Table) addBytes(key []byte, hash uint64, rank uint32) error {
	i, old := t.findBytes(key, hash)
	if old == nil {
		place, err := t.arena.add(rank, key)
		if err != nil {
			return err
		}
		t.filter.add(hash)
		t.refs[i] = hash>>32<<32 | uint64(place)
		t.n++
	} else if t.sequence(*old) < t.sequence(rank) {
		*old = rank
	}
	return nil
}

// findBytes finds the rank of a key, or nil and the free slot where it belongs.
func (t *Table) findBytes(key []byte, hash uint64) (slot uint64, rank *uint32) {
	i := reduce(hash, t.slots)
	for {
		ref := t.refs[i]
		if ref == 0 {
			return i, nil
		}
		if ref>>32 == hash>>32 {
			if rank, have := t.arena.entry(uint32(ref)); bytes.Equal(have, key) {
				return i, rank
			}
		}
		i = t.next(i)
	}
}

// Exclude clears from keep every row whose key is in the table with a sequence
// number greater than the given one. Rows already cleared stay so.
func (t *Table) Exclude(w *Workspace, rows *Rows, sequence int64, keep *batch.Mask) error {
	if t.n == 0 {
		return nil
	}
	for start := 0; start < rows.n; start += blockRows {
		n := min(blockRows, rows.n-start)
		if !anyKept(keep, start, n) {
			continue
		}
		candidates, err := t.candidates(w, rows, start, n)
		if err != nil {
			return err
		}
		t.touch(w, candidates)
		for _, candidate := range candidates {
			j := int(candidate)
			if keep.Get(start+j) && t.lookup(w, j) > sequence {
				keep.Clear(start + j)
			}
		}
	}
	return nil
}

// touch reads the first places where each candidate's key may be, so that the
// processor fetches them side by side and not one after the other.
func (t *Table) touch(w *Workspace, candidates []uint16) {
	hashes := &w.block.hash
	sum := uint64(0)
	if t.layout.words > 0 {
		width := uint64(t.layout.words)
		for _, c := range candidates {
			i := reduce(hashes[c&(blockRows-1)], t.slots)
			sum += uint64(t.marks[i]) + t.words[i*width]
		}
		w.touched = sum
		return
	}
	refs := w.refs[:len(candidates)]
	for k, c := range candidates {
		refs[k] = t.refs[reduce(hashes[c&(blockRows-1)], t.slots)]
	}
	for k, c := range candidates {
		if ref := refs[k]; ref != 0 && ref>>32 == hashes[c&(blockRows-1)]>>32 {
			rank, _ := t.arena.entry(uint32(ref))
			sum += uint64(*rank)
		}
	}
	w.touched = sum
}

// touchSlots is touch for keys that are about to be added.
func (t *Table) touchSlots(w *Workspace, n int) {
	sum, size := uint64(0), uint64(len(t.filter))
	if t.layout.words > 0 {
		width := uint64(t.layout.words)
		for _, h := range w.block.hash[:n] {
			i := reduce(h, t.slots)
			sum += uint64(t.marks[i]) + t.words[i*width] + t.filter[reduce(h, size)]
		}
	} else {
		for _, h := range w.block.hash[:n] {
			sum += t.refs[reduce(h, t.slots)] + t.filter[reduce(h, size)]
		}
	}
	w.touched = sum
}

// candidates loads rows [start, start+n) and returns those that pass the filter.
func (t *Table) candidates(w *Workspace, rows *Rows, start, n int) ([]uint16, error) {
	b := &w.block
	if len(rows.columns) == 1 && t.layout.words == 1 && rows.columns[0].validity == nil {
		words, err := rows.loadWords(b, start, n)
		return t.filter.candidatesOfWords(words, t.layout.seed, &b.hash, &w.candidate), err
	}
	err := rows.load(b, start, n)
	return t.filter.candidates(b.hash[:n], &w.candidate), err
}

// lookup is the sequence number of the key of row j of the block, or -1.
func (t *Table) lookup(w *Workspace, j int) int64 {
	hash := w.block.hash[j]
	if t.layout.words > 0 {
		key, nulls := t.layout.blockWords(&w.block, j)
		if i, found := t.findWords(key, nulls, hash); found {
			return t.sequence(t.marks[i] & rankMask)
		}
		return -1
	}
	w.key = t.layout.appendKey(w.key[:0], &w.block, j)
	if _, rank := t.findBytes(w.key, hash); rank != nil {
		return t.sequence(*rank)
	}
	return -1
}

// anyKept reports whether a row of [start, start+n) is kept; start is a
// multiple of 64.
func anyKept(keep *batch.Mask, start, n int) bool {
	for _, word := range keep.Words[start>>6 : (start+n+63)>>6] {
		if word != 0 {
			return true
		}
	}
	return false
}

// Each calls use for every key with its canonical encoding, valid until the
// call returns, its hash and its sequence number, in no particular order.
func (t *Table) Each(use func(key []byte, hash uint64, sequence int64) error) error {
	var key []byte
	width := t.layout.words
	for s, mark := range t.marks {
		if mark == 0 {
			continue
		}
		words := t.words[s*width : (s+1)*width]
		key = t.layout.appendWords(key[:0], words, uint8(mark>>rankBits))
		hash := t.layout.seed
		for _, w := range words {
			hash = mix(hash, w)
		}
		if err := use(key, hash, t.sequence(mark&rankMask)); err != nil {
			return err
		}
	}
	for _, ref := range t.refs {
		if ref == 0 {
			continue
		}
		rank, key := t.arena.entry(uint32(ref))
		hash, _ := t.layout.Hash(key)
		if err := use(key, hash, t.sequence(*rank)); err != nil {
			return err
		}
	}
	return nil
}

// appendWords appends the canonical encoding of a key held as words.
func (l *Layout) appendWords(dst []byte, words []uint64, nulls uint8) []byte {
	for i, form := range l.forms {
		width := int(form) + 1
		if nulls>>i&1 == 1 {
			dst = append(dst, 0)
		} else {
			dst = append(dst, 1)
			for _, w := range words[:width] {
				dst = binary.LittleEndian.AppendUint64(dst, w)
			}
		}
		words = words[width:]
	}
	return dst
}
