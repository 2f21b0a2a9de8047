package project

import "unsafe"

func sizeOf[T any]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// valuesOf views a buffer as values of a fixed-width type.
func valuesOf[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}
