package keys

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/mem"
)

// Sieve tells of most keys that are not in a set that they are not, in two
// bytes or fewer for each key of the set, which may be of any layouts. It is
// safe for concurrent use.
type Sieve struct {
	alloc  memory.Allocator
	charge *mem.Reservation

	mu     sync.RWMutex
	filter filter
}

// sieveWordKeys is how many keys share a word of a sieve that is large enough.
const sieveWordKeys = 4

// NewSieve makes a sieve for about n keys in at most limit bytes. The more keys
// there are beyond that, the more absent ones it lets pass.
func NewSieve(n, limit int64, alloc memory.Allocator, charge *mem.Reservation) (*Sieve, error) {
	words := max(1, min(n/sieveWordKeys+1, limit/8))
	filter, err := newSlice[uint64](alloc, charge, uint64(words))
	if err != nil {
		return nil, err
	}
	return &Sieve{alloc: alloc, charge: charge, filter: filter}, nil
}

// Add puts the keys of rows from one on in, and calls use for each as
// Rows.Encode does.
func (s *Sieve) Add(w *Workspace, rows *Rows, from int, use func(row int, key []byte, hash uint64) error) error {
	return rows.encode(w, from, func(hashes []uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, h := range hashes {
			s.filter.add(h)
		}
	}, use)
}

// Free gives the memory back.
func (s *Sieve) Free() {
	freeSlice(s.alloc, s.charge, s.filter)
	s.filter = nil
}

// Pass calls use for every row that may be in the set, with its canonical
// encoding, which is valid until the call returns, and its hash.
func (s *Sieve) Pass(w *Workspace, rows *Rows, use func(row int, key []byte, hash uint64) error) error {
	for start := 0; start < rows.n; start += blockRows {
		n := min(blockRows, rows.n-start)
		if err := rows.load(&w.block, start, n); err != nil {
			return err
		}
		for _, candidate := range s.candidates(w, n) {
			j := int(candidate)
			w.key = rows.layout.appendKey(w.key[:0], &w.block, j)
			if err := use(start+j, w.key, w.block.hash[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sieve) candidates(w *Workspace, n int) []uint16 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.filter.candidates(w.block.hash[:n], &w.candidate)
}
