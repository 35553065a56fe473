package pdftext

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// memory gives an instance its linear memory outside of Go's heap, up to a
// limit, and remembers that more was asked for.
type memory struct {
	limit    uint64
	exceeded atomic.Bool
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory {
	return &linear{memory: m}
}

// linear is the memory of one instance. Its address never changes.
type linear struct {
	memory *memory
	region []byte
}

// Reallocate implements experimental.LinearMemory.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.memory.limit {
		l.memory.exceeded.Store(true)
		return nil
	}
	if l.region == nil {
		region, err := reserve(int(l.memory.limit))
		if err != nil {
			l.memory.exceeded.Store(true)
			return nil
		}
		l.region = region
	}
	return l.region[:size]
}

// Free implements experimental.LinearMemory.
func (l *linear) Free() {
	if l.region != nil {
		unreserve(l.region)
		l.region = nil
	}
}
