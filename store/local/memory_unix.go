//go:build unix

package local

import (
	"syscall"
	"unsafe"
)

// anonymous returns n zeros in memory that the garbage collector does not
// count: its pace follows the heap, so that tables on it would let as much
// garbage again stand around.
func anonymous(n int) []uint64 {
	b, err := syscall.Mmap(-1, 0, 8*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]uint64, n)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), n)
}

// release gives back what anonymous returned.
func release(s []uint64) {
	if len(s) > 0 {
		_ = syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), 8*len(s)))
	}
}
