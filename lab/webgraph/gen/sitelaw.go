package gen

import (
	"math"
	"math/bits"
	"sort"
)

// siteLaw says how the links within a site of about so many pages are spread over
// its documents, so that the numbers of links to its pages have a power law, cut
// off at the size of the site: W(r) links to the document of rank r. Documents are
// ranked as they are numbered: the home page, then the tree level by level.
//
// W is what the quantiles of the law say. One link comes from the parent in the
// tree, to parents those of children that link up; the rest, W less these, is drawn.
//
// The law is the same for all sites. A site of few pages cannot have pages with many
// links from within, so fewer of its links stay (mean).
type siteLaw struct {
	home  uint32   // share of the documents that link to the home page and not to their parent, in units of 2^-32
	rank  []uint32 // quantiles, by mass: where the documents are that have the first i-th part of the drawn links
	edge  []uint32 // edge[j]: share of the drawn links that go to documents of level j and higher
	top   uint32   // share of links from other sites that lead to the home page, in units of 2^-32
	mean  float64  // of the links from within to a page
	stay  float64  // mean in units of the links of a page
	known uint32   // probability that a link from another site to one of this size is kept, in units of 2^-32
}

// lawCells is the number of cells of the table of quantiles of a siteLaw.
const lawCells = 1 << 10

// perOctave is how many site laws there are for sizes between a number and twice
// that; sizes in between have the law of the next smaller.
const perOctave = 2

// sizeClass returns the number of the law of a site.
func sizeClass(pages uint64) int {
	octave := bits.Len64(pages) - 1
	half := 0
	if octave > 0 && float64(pages) >= math.Sqrt2*float64(uint64(1)<<octave) {
		half = 1
	}
	return octave*perOctave + half
}

// smallestOfClass returns the least size of a class.
func smallestOfClass(class int) float64 {
	return math.Ceil(math.Pow(2, float64(class)/perOctave))
}

// siteExponent is the exponent of the sizes of sites.
const siteExponent = 2.1

// quantiles are W of sites of any size: the quantiles of the law that the numbers of
// links to a page are to have, as corrected for the links from other sites and for
// what chance makes of them (HostLocal.tune).
type quantiles struct {
	law *Law
	// factor[i] is by how much W is corrected where the law has 2^(i/perOctave)
	// links; in between a power, beyond the last as there.
	factor []float64
}

// weightAtRank returns W of the document of rank r on a site of so many pages.
func (w *quantiles) weightAtRank(r, pages float64) float64 {
	return w.correctedWeight((r+.5)/pages, pages)
}

// correctedWeight returns W where the law has a share q of the pages.
func (w *quantiles) correctedWeight(q, pages float64) float64 {
	d := w.pureWeight(q)
	at := math.Log2(d) * perOctave
	i := min(int(at), len(w.factor)-1)
	f := w.factor[i]
	if i+1 < len(w.factor) {
		f *= math.Pow(w.factor[i+1]/f, at-float64(i))
	}
	return min(d*f, pages-1)
}

// pureWeight returns the number of links that a share q of the pages has by the law.
func (w *quantiles) pureWeight(q float64) float64 {
	return min(1+w.law.Scale*(math.Pow(q, -1/(w.law.Exponent-1))-1), float64(w.law.Most))
}

// meanWeight returns the mean of W over the documents of a site.
func (w *quantiles) meanWeight(pages float64) float64 {
	sum := 0.
	for r := 0.; r < pages; {
		step := min(math.Ceil((r+1)/30), pages-r)
		sum += w.weightAtRank(r+(step-1)/2, pages) * step
		r += step
	}
	return sum / pages
}

// newSiteLaw makes the law of sites of so many pages.
func newSiteLaw(pages float64, w *quantiles, fan uint64) *siteLaw {
	if pages < 3 {
		return &siteLaw{home: math.MaxUint32, rank: make([]uint32, lawCells+1), edge: []uint32{math.MaxUint32}, mean: pages - 1, top: uint32(math.MaxUint32 / max(pages, 1))}
	}
	want := func(r float64) float64 { return w.weightAtRank(r, pages) }
	l := &siteLaw{mean: w.meanWeight(pages)}
	l.top = uint32(min(want(0)/(l.mean*pages)*(1<<32), math.MaxUint32))
	home := min(want(0)/pages, 1)
	l.home = uint32(min(home*(1<<32), math.MaxUint32))
	// Ranks one by one, then by steps of a hundredth.
	parents := (pages - 1) / float64(fan)
	var end, mass []float64 // mass of the ranks 1 .. end
	sum := 0.
	for r := 1.; r < pages; {
		step := math.Ceil(r / 100)
		step = min(step, pages-r)
		w := want(r + (step-1)/2)
		free := w - 1
		if r < parents {
			free -= float64(fan) * (1 - home)
		}
		sum += max(free, 1e-3*w) * step
		r += step
		end, mass = append(end, r), append(mass, sum)
	}
	l.rank = make([]uint32, lawCells+1)
	for i := range l.rank {
		m := sum * float64(i) / lawCells
		k := min(sort.SearchFloat64s(mass, m), len(mass)-1)
		from, below := 1., 0.
		if k > 0 {
			from, below = end[k-1], mass[k-1]
		}
		r := from + (end[k]-from)*(m-below)/(mass[k]-below)
		l.rank[i] = uint32(min((r-1)/(pages-1)*(1<<32), math.MaxUint32))
	}
	// Level j are the documents that so many blocks of 2^j pages link to in the mean:
	// perTarget to twice that.
	l.edge = []uint32{math.MaxUint32}
	for j := 1; perTarget*math.Pow(2, float64(j)) <= want(1) && math.Pow(2, float64(j)) <= pages; j++ {
		least := perTarget * math.Pow(2, float64(j))
		k := sort.Search(len(end), func(k int) bool { return want(end[k]-1) < least })
		if k == 0 {
			break
		}
		l.edge = append(l.edge, uint32(min(mass[k-1]/sum*(1<<32), math.MaxUint32)))
	}
	return l
}

// perTarget is how many blocks of pages, at least, link to a document in the mean.
// One would make numbers of links that are powers of two; many would leave pages
// next to each other little in common.
const perTarget = 2

// massLevel returns the level of a mass.
func (l *siteLaw) massLevel(mass uint32) (j int, low, high uint32) {
	for j+1 < len(l.edge) && mass < l.edge[j+1] {
		j++
	}
	if j+1 < len(l.edge) {
		low = l.edge[j+1]
	}
	return j, low, l.edge[j]
}

// documentOfMass returns the document, 1 or more, of a mass, on a site of pages >= 2.
func (l *siteLaw) documentOfMass(mass uint32, pages uint64) uint64 {
	const cell = 32 - 10 // bits within a cell
	i, rest := mass>>cell, uint64(mass&(1<<cell-1))
	a, b := uint64(l.rank[i]), uint64(l.rank[i+1])
	at := a<<cell + (b-a)*rest // of 2^(32+cell)
	return 1 + scaleBelow(at<<(32-cell), pages-1)
}

// drawFamousDocument maps 64 random bits to a document, the likelier the more links it has.
func (l *siteLaw) drawFamousDocument(x, pages uint64) uint64 {
	if uint32(x) < l.top || pages < 2 {
		return 0
	}
	return l.documentOfMass(uint32(x>>32), pages)
}
