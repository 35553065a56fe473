package search

import (
	"math/bits"

	"github.com/freshet/freshet/index/engine/segment"
)

// Part is a segment as one search sees it: with the documents that were
// deleted and the popularity that changed since it was written. It is immutable.
type Part struct {
	Segment    *segment.Segment
	Dead       []uint64 // bits of deleted documents; nil for none
	DeadCount  int
	Popularity []byte // by document

	maxPopularity []byte // by stretch
}

// stretch is how many documents share a bound of popularity and age.
const stretch = 256

// NewPart returns a part.
func NewPart(s *segment.Segment, dead []uint64, popularity []byte) *Part {
	p := &Part{Segment: s, Dead: dead, Popularity: popularity}
	for _, w := range dead {
		p.DeadCount += bits.OnesCount64(w)
	}
	p.maxPopularity = make([]byte, (len(popularity)+stretch-1)/stretch)
	for i, v := range popularity {
		p.maxPopularity[i/stretch] = max(p.maxPopularity[i/stretch], v)
	}
	return p
}

// IsDead reports whether a document is deleted.
func (p *Part) IsDead(doc uint32) bool {
	return p.Dead != nil && p.Dead[doc/64]>>(doc%64)&1 != 0
}

// Live is the number of documents that are not deleted.
func (p *Part) Live() int { return p.Segment.Len() - p.DeadCount }
