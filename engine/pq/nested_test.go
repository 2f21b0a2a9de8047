package pq

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/icebergexec/icebergexec/engine/batch"
)

// samePart compares an array of a pruned type with the whole one.
func samePart(t *testing.T, whole, part arrow.Array) {
	t.Helper()
	if whole.Len() != part.Len() {
		t.Fatalf("%d values, want %d", part.Len(), whole.Len())
	}
	for i := range part.Len() {
		if whole.IsNull(i) != part.IsNull(i) {
			t.Fatalf("value %d: null %v, want %v", i, part.IsNull(i), whole.IsNull(i))
		}
	}
	switch part := part.(type) {
	case *array.Struct:
		whole := whole.(*array.Struct)
		for i, field := range part.DataType().(*arrow.StructType).Fields() {
			at, ok := whole.DataType().(*arrow.StructType).FieldIdx(field.Name)
			if !ok {
				t.Fatalf("no field %q", field.Name)
			}
			samePart(t, whole.Field(at), part.Field(i))
		}
	case *array.List:
		if !slices.Equal(part.Offsets(), whole.(*array.List).Offsets()) {
			t.Fatalf("offsets %v, want %v", part.Offsets(), whole.(*array.List).Offsets())
		}
		samePart(t, whole.(*array.List).ListValues(), part.ListValues())
	case *array.Map:
		if !slices.Equal(part.Offsets(), whole.(*array.Map).Offsets()) {
			t.Fatalf("offsets %v, want %v", part.Offsets(), whole.(*array.Map).Offsets())
		}
		samePart(t, whole.(*array.Map).Keys(), part.Keys())
		samePart(t, whole.(*array.Map).Items(), part.Items())
	default:
		if !slices.Equal(render(part), render(whole)) {
			t.Fatalf("%v, want %v", render(part), render(whole))
		}
	}
}

// TestPartsOfColumns reads nested columns pruned to some of their leaves.
func TestPartsOfColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	ctx := context.Background()
	for _, name := range []string{"nested_v1.parquet", "nested_v2.parquet", "nested_index.parquet"} {
		alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
		f, _ := openCase(t, name, Options{Alloc: alloc, BatchRows: 70})
		for range 30 {
			var columns []batch.Column
			var whole []batch.Column
			for _, c := range allColumns(f) {
				var leaves []int
				for _, leaf := range c.Leaves {
					if rng.IntN(2) == 0 {
						leaves = append(leaves, leaf)
					}
				}
				if len(leaves) > 0 {
					columns = append(columns, batch.Column{Index: c.Index, Leaves: leaves})
					whole = append(whole, c)
				}
			}
			rng.Shuffle(len(columns), func(i, j int) { // any order may be asked for
				columns[i], columns[j] = columns[j], columns[i]
				whole[i], whole[j] = whole[j], whole[i]
			})
			parts, err := f.NewReader(ctx, columns, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := f.NewReader(ctx, whole, nil)
			if err != nil {
				t.Fatal(err)
			}
			for {
				w, err := parts.Next(ctx)
				if err != nil {
					break
				}
				if again, err := all.Next(ctx); err != nil || again != w {
					t.Fatal(w, again, err)
				}
				mask := batch.NewMask(int(w.Len()), false)
				for i := range mask.Len {
					if rng.IntN(3) > 0 {
						mask.Set(i)
					}
				}
				for i := range columns {
					part, err := parts.Read(ctx, []int{i}, mask)
					if err != nil {
						t.Fatal(err)
					}
					whole, err := all.Read(ctx, []int{i}, mask)
					if err != nil {
						t.Fatal(err)
					}
					if !arrow.TypeEqual(part[0].DataType(), parts.Schema().Field(i).Type) {
						t.Errorf("a %s, the schema says %s", part[0].DataType(), parts.Schema().Field(i).Type)
					}
					samePart(t, whole[0], part[0])
					part[0].Release()
					whole[0].Release()
				}
			}
			parts.Close()
			all.Close()
		}
		f.Close()
		alloc.AssertSize(t, 0)
	}
}
