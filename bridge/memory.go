package bridge

// #include "memory.h"
// #include "pages.h"
import "C"

import (
	"unsafe"

	"github.com/icebergexec/icebergexec/engine/mem"
)

// Allocator makes Arrow buffers in C memory: 64-byte aligned, zeroed, and
// countable from C. It implements memory.Allocator and is safe for concurrent
// use.
//
// Its counters are in C memory that is never freed, since a consumer may
// release its last block long after the engine is closed.
type Allocator struct{ account *C.struct_iex_account }

// NewAllocator makes an allocator with an account of its own.
func NewAllocator() *Allocator {
	account := C.iex_account_new()
	if account == nil {
		panic("bridge: out of memory for an allocator")
	}
	return &Allocator{account: account}
}

// Live is the number of bytes in blocks that exist; Exported of those that a
// consumer holds. A block counts once, however often it is exported.
func (a *Allocator) Live() int64     { return int64(C.iex_account_live(a.account)) }
func (a *Allocator) Exported() int64 { return int64(C.iex_account_exported(a.account)) }

// Allocate makes a zeroed block. Like every Arrow allocator it panics when the
// system has no memory left: the engine's budget is to refuse before.
func (a *Allocator) Allocate(size int) []byte {
	if size == 0 {
		return []byte{}
	}
	data := C.iex_block_new(a.account, C.size_t(size))
	if data == nil {
		panic("bridge: the system has no " + mem.FormatBytes(int64(size)) + " left for a buffer")
	}
	return unsafe.Slice((*byte)(data), size)
}

// Reallocate changes a block's size, moving it when it outgrows its memory or
// would waste more than half of it.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if cap(b) == 0 {
		return a.Allocate(size)
	}
	if capacity := int(C.iex_block_capacity(unsafe.Pointer(unsafe.SliceData(b)))); size > 0 && size <= capacity && size >= capacity/2 {
		return unsafe.Slice(unsafe.SliceData(b), size)
	}
	moved := a.Allocate(size)
	copy(moved, b)
	a.Free(b)
	return moved
}

// Free gives the owner's reference to a block back.
func (a *Allocator) Free(b []byte) {
	if cap(b) > 0 {
		C.iex_block_free(unsafe.Pointer(unsafe.SliceData(b)))
	}
}

// KeepMemory sets how many bytes of freed blocks all allocators together keep
// for later blocks; at first none.
func KeepMemory(most int64) { C.iex_pages_keep(C.size_t(most)) }

// FlushMemory gives the memory that freed blocks left to the system. Blocks
// that exist stay as they are.
func FlushMemory() { C.iex_pages_flush() }
