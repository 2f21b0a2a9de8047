package keys

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// The shape of the equality-delete job: a million keys, windows of data of
// which one row in twenty is deleted.
const (
	benchKeys   = 1_000_000
	benchWindow = 64 << 10
)

func longs(r *rand.Rand, n int, of func() int64) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for range n {
		b.Append(of())
	}
	return b.NewArray()
}

func strings16(r *rand.Rand, ids arrow.Array) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for _, id := range ids.(*array.Int64).Int64Values() {
		b.Append(fmt.Sprintf("%016x", uint64(id)*0x9e3779b97f4a7c15))
	}
	return b.NewArray()
}

// cpuSeconds is the processor time of the process: other programs on the
// machine disturb it less than they do the time on the clock.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

type benchCase struct {
	name    string
	layout  *Layout
	columns func(ids arrow.Array) []arrow.Array
}

func benchCases(b *testing.B, r *rand.Rand) []benchCase {
	long, text := model{name: "id", key: iceberg.Int64Type{}}, model{name: "s", key: iceberg.StringType{}}
	return []benchCase{
		{"long", layoutOf(b, long), func(ids arrow.Array) []arrow.Array { return []arrow.Array{ids} }},
		{"long,long", layoutOf(b, long, long), func(ids arrow.Array) []arrow.Array { return []arrow.Array{ids, ids} }},
		{"string,long", layoutOf(b, text, long), func(ids arrow.Array) []arrow.Array { return []arrow.Array{strings16(r, ids), ids} }},
	}
}

func BenchmarkExclude(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	keyIDs := longs(r, benchKeys, func() int64 { return r.Int64() })
	for _, c := range benchCases(b, r) {
		b.Run(c.name, func(b *testing.B) {
			charge := mem.NewPool("bench", 1<<30).Reserve("keys")
			table, rows, w := NewTable(c.layout, memory.DefaultAllocator, charge), c.layout.NewRows(), &Workspace{}
			if err := rows.Bind(c.columns(keyIDs)); err != nil {
				b.Fatal(err)
			}
			if err := table.Reserve(benchKeys); err != nil {
				b.Fatal(err)
			}
			if _, err := table.Add(w, rows, 2); err != nil {
				b.Fatal(err)
			}
			var windows [][]arrow.Array
			for range 16 {
				ids := longs(r, benchWindow, func() int64 {
					if r.IntN(20) == 0 {
						return keyIDs.(*array.Int64).Value(r.IntN(benchKeys))
					}
					return r.Int64()
				})
				windows = append(windows, c.columns(ids))
			}
			keep := batch.NewMask(benchWindow, true)
			b.ReportAllocs()
			i, start := 0, cpuSeconds()
			for b.Loop() {
				keep.Reset(benchWindow, true)
				if err := rows.Bind(windows[i%len(windows)]); err != nil {
					b.Fatal(err)
				}
				if err := table.Exclude(w, rows, 1, keep); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(i)*benchWindow/(cpuSeconds()-start)/1e6, "Mrows/cpu-s")
			b.ReportMetric(float64(charge.Size())/benchKeys, "B/key")
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	ids := longs(r, benchKeys, func() int64 { return r.Int64() })
	for _, c := range benchCases(b, r) {
		columns := c.columns(ids)
		for _, reserved := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/reserved=%v", c.name, reserved), func(b *testing.B) {
				charge := mem.NewPool("bench", 1<<30).Reserve("keys")
				rows, w := c.layout.NewRows(), &Workspace{}
				if err := rows.Bind(columns); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				start := cpuSeconds()
				for b.Loop() {
					table := NewTable(c.layout, memory.DefaultAllocator, charge)
					if reserved {
						if err := table.Reserve(benchKeys); err != nil {
							b.Fatal(err)
						}
					}
					if _, err := table.Add(w, rows, 2); err != nil {
						b.Fatal(err)
					}
					table.Free()
				}
				b.ReportMetric(float64(b.N)*benchKeys/(cpuSeconds()-start)/1e6, "Mkeys/cpu-s")
			})
		}
	}
}
