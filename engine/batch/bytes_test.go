package batch_test

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// TestBytes compares with what the allocator knows: a whole array counts all of
// its buffers, and its slices share them out.
func TestBytes(t *testing.T) {
	const n = 20_000
	for _, typ := range selectTypes {
		if typ.ID() == arrow.DICTIONARY || typ.ID() == arrow.STRING_VIEW {
			continue // every slice has the whole dictionary, or all data
		}
		alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
		b := array.NewBuilder(alloc, typ)
		r := rand.New(rand.NewPCG(1, 2))
		for range n {
			randomValue(r, b)
		}
		whole := b.NewArray()
		b.Release()
		all := int64(alloc.CurrentAlloc())
		if got := batch.ArrayBytes(whole); got < all*9/10 || got > all {
			t.Errorf("%s: %d bytes, the allocator has %d", typ, got, all)
		}
		parts := int64(0)
		for i := range int64(10) {
			part := array.NewSlice(whole, i*n/10, (i+1)*n/10)
			parts += batch.ArrayBytes(part)
			part.Release()
		}
		if parts < all/3 || parts > all*11/10 {
			t.Errorf("%s: slices have %d bytes in all, the array %d", typ, parts, all)
		}
		schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: typ, Nullable: true}, {Name: "b", Type: typ, Nullable: true}}, nil)
		twice := array.NewRecordBatch(schema, []arrow.Array{whole, whole}, n)
		if got := batch.RecordBytes(twice); got != batch.ArrayBytes(whole) {
			t.Errorf("%s: shared buffers count twice: %d", typ, got)
		}
		twice.Release()
		whole.Release()
		alloc.AssertSize(t, 0)
	}
}
