package crawl

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/store"
)

// Ordering gives a found URL its place among the new pages of its host: the
// lowest goes first. It is called from many goroutines.
type Ordering interface {
	Order(f *store.Found) uint64
}

// Orderings lists the orderings by name; a new one is one file and one line.
func Orderings() map[string]func() Ordering {
	return map[string]func() Ordering{
		"breadth-first": func() Ordering { return BreadthFirst{} },
		"depth-first":   func() Ordering { return new(DepthFirst) },
		"found":         func() Ordering { return new(AsFound) },
		"host-balanced": func() Ordering { return HostBalanced{} },
		"opic":          func() Ordering { return new(OPIC) },
	}
}

// BreadthFirst visits pages by their distance from the seeds; within one
// distance the host's own order (by key) is as good as any.
type BreadthFirst struct{}

// Order implements Ordering.
func (BreadthFirst) Order(f *store.Found) uint64 { return uint64(f.Depth) + 1 }

// foundNumbers numbers URLs as they are found: by the clock, in microseconds, so that the
// numbers go on behind those of an earlier process and fit with those of others.
type foundNumbers struct{ last atomic.Uint64 }

func (n *foundNumbers) next() uint64 {
	now := uint64(max(1, time.Now().UnixMicro()))
	for {
		last := n.last.Load()
		if number := max(last+1, now); n.last.CompareAndSwap(last, number) {
			return number
		}
	}
}

// DepthFirst visits the page found last.
type DepthFirst struct{ numbers foundNumbers }

// Order implements Ordering.
func (d *DepthFirst) Order(*store.Found) uint64 { return math.MaxUint64>>1 - d.numbers.next() }

// AsFound visits pages in the order in which they were found.
type AsFound struct{ numbers foundNumbers }

// Order implements Ordering.
func (a *AsFound) Order(*store.Found) uint64 { return a.numbers.next() }

// Slicer is an ordering that says how long an agent keeps a host while others
// wait.
type Slicer interface {
	Slice() time.Duration
}

// HostBalanced is breadth first with short turns: no host gets far ahead of the
// others, whatever it has and however fast it answers.
type HostBalanced struct{ BreadthFirst }

// Slice implements Slicer.
func (HostBalanced) Slice() time.Duration { return 2 * time.Second }
