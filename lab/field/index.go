package field

import (
	"fmt"
	"math"
	"sort"
)

// Index holds the real changes of a field, resource by resource: 16 bytes a
// change. Events that are no real change alter neither the status nor the size
// of a resource, so nothing is lost.
type Index struct {
	sizes  []uint32 // at the start
	starts []uint32 // of each resource in changes, and the end
	times  []float64
	sizeOf []uint32
	kinds  []Kind
}

// NewIndex reads the changes of a field. The error says that there are more
// than MaxChanges.
func NewIndex(f Field) (*Index, error) {
	x := &Index{sizes: f.Sizes(), starts: make([]uint32, f.Pages()+1)}
	n := 0
	err := eachReal(f, func(c *Change) error {
		if n++; n > MaxChanges {
			return fmt.Errorf("%w: more than %d real changes", ErrInput, MaxChanges)
		}
		x.starts[c.Page+1]++
		return nil
	})
	if err != nil {
		return nil, err
	}
	for p := range f.Pages() {
		x.starts[p+1] += x.starts[p]
	}
	x.times, x.sizeOf, x.kinds = make([]float64, n), make([]uint32, n), make([]Kind, n)
	next := make([]uint32, f.Pages())
	copy(next, x.starts)
	err = eachReal(f, func(c *Change) error {
		i := next[c.Page]
		next[c.Page]++
		x.times[i], x.sizeOf[i], x.kinds[i] = c.Time, c.Size, c.Kind
		return nil
	})
	return x, err
}

// eachReal calls do for each real change in order of time.
func eachReal(f Field, do func(*Change) error) error {
	r := f.Changes()
	buf := make([]Change, 1024)
	for n := r.Read(buf); n > 0; n = r.Read(buf) {
		for i := range buf[:n] {
			if !buf[i].Real {
				continue
			}
			if err := do(&buf[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Pages returns the number of resources.
func (x *Index) Pages() int { return len(x.sizes) }

// At returns the state of a resource; one beyond those of the field never
// changes.
func (x *Index) At(page uint64, t float64) State {
	if page >= uint64(len(x.sizes)) {
		return Still{}.At(page, t)
	}
	times := x.times[x.starts[page]:x.starts[page+1]]
	n := sort.Search(len(times), func(i int) bool { return times[i] > t }) // changes up to t
	s := State{Kind: Same, Size: x.sizes[page], Number: uint64(n), Until: math.Inf(1)}
	if n > 0 {
		i := int(x.starts[page]) + n - 1
		s.Kind, s.Size, s.Since = x.kinds[i], x.sizeOf[i], x.times[i]
	}
	if n < len(times) {
		s.Until = times[n]
	}
	return s
}
