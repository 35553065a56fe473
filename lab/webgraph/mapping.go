package webgraph

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a file mapped into memory.
type mapping struct {
	data []byte
}

// mapFile maps a file for reading; its size must be the one given.
func mapFile(path string, size int64) (mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return mapping{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return mapping{}, err
	}
	if st.Size() != size {
		return mapping{}, &DamagedError{path, fmt.Sprintf("it has %d bytes, not %d", st.Size(), size)}
	}
	if size == 0 {
		return mapping{}, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return mapping{}, fmt.Errorf("map %s into memory: %w", path, err)
	}
	return mapping{data}, nil
}

func (m mapping) unmap() error {
	if m.data == nil {
		return nil
	}
	return unix.Munmap(m.data)
}

// Number is a type of the numbers in files: fixed size, little-endian.
type Number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// bytesAsNumbers shows bytes as numbers. Mapped memory begins on a page boundary, so it
// is aligned for every type.
func bytesAsNumbers[T Number](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// numbersAsBytes shows numbers as bytes.
func numbersAsBytes[T Number](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(t)))
}

// littleEndian reports whether numbers in memory look as they do in files.
func littleEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}

func numberSize[T Number](t T) int { return int(unsafe.Sizeof(t)) }
