package gen

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/freshet/freshet/internal/rng"
)

// Matched is a web whose links are computed both ways from the seed alone: those
// from a page and those to it, at any size up to 2^42 pages and more. What makes
// that possible is that every link is an invertible function.
//
//   - Between sites: each page has so many ends of links that begin there and so many
//     of links that end there, by power laws, and one permutation of all ends (stubs)
//     joins them: the configuration model. To number the ends without counting, the
//     web is rows of pages of equal length (blocks); each has the same numbers of
//     ends, the quantiles of the laws, dealt to its pages by a permutation of its own.
//   - On a site: slot 0 of a page leads to its parent in a tree, the next ones to its
//     children, and slot k of page d to the page that has the k-th permutation of d
//     among its places: for the first slots known pages have many places, others few
//     or, for this k, none; for the others each page has one.
//
// Host-local webs are nearer to real ones (copied links, bow-tie): Matched has no
// two pages alike in their links. The links of a page ascend, each once.
type Matched struct {
	layout Layout
	nodes  uint64
	key    uint64
	blocks uint64 // number of blocks
	block  uint64 // pages of a block; the last block can be shorter
	ends   uint64 // links between sites that begin in a block, and that end in it
	begin  deal
	end    deal
	inner  []uint8     // links on the site by rank of the number of links
	pairs  permutation // of all ends
	places [][]float64 // by size class: share of the places of documents of lower levels
	out    *Law
	share  float64
	most   int // of inner
}

// deal is how many ends of links the pages of a block have, by rank.
type deal struct{ first []uint32 } // ends before those of a rank; one more than ranks

// rankOfEnd returns the rank that has an end.
func (d *deal) rankOfEnd(end uint32) uint64 {
	return uint64(sort.Search(len(d.first), func(i int) bool { return d.first[i] > end }) - 1)
}

// MatchedOptions are what a Matched web is asked to be; what is 0 has the default.
type MatchedOptions struct {
	Nodes   uint64
	Degree  float64
	In, Out float64
	Intra   float64
	Seed    uint64
}

const (
	matchedBlock = 1 << 16 // pages of a block at most
	matchedFan   = 4       // children of a document in the tree of a site
	mostInner    = 64      // links of a page on its site at most
	knownSlots   = 8       // the first slots lead to well-known documents
)

// Salts of the permutations.
const (
	saltBegin = iota + 1
	saltEnd
	saltPairs
	saltSlot
)

// NewMatched returns the web over a layout.
func NewMatched(o MatchedOptions, layout Layout) (*Matched, error) {
	if o.Nodes < 2 {
		return nil, fmt.Errorf("%d pages: want 2 or more", o.Nodes)
	}
	h := HostLocalOptions{Nodes: o.Nodes, Degree: o.Degree, In: o.In, Out: o.Out}.withHostDefaults()
	for _, e := range []struct {
		what  string
		value float64
	}{{"in-exponent", h.In}, {"out-exponent", h.Out}} {
		if !(e.value > 2) || e.value > maxExponent {
			return nil, rangeError(e.what, e.value, "matched")
		}
	}
	intra := orDefault(o.Intra, DefaultIntra)
	if !(intra > 0) || intra >= 1 {
		return nil, fmt.Errorf("share of links on the site %g: want more than 0 and less than 1", intra)
	}
	m := &Matched{layout: layout, nodes: o.Nodes, key: rng.Mix(o.Seed, 0x3a7c)}
	m.blocks = (o.Nodes + matchedBlock - 1) / matchedBlock
	m.block = (o.Nodes + m.blocks - 1) / m.blocks
	most := greatestOut(min(o.Nodes, matchedBlock))
	for class := range sizeClass(o.Nodes) + 1 {
		m.places = append(m.places, documentPlaces(smallestOfClass(class), h.In))
	}
	mean := h.Degree
	lo, hi := 0., 1.
	for range 3 { // links that a page has twice are lost
		got, err := m.fitStayingShare(mean, intra, lo, hi, h, most)
		if err != nil {
			return nil, err
		}
		mean = min(mean*h.Degree/got, float64(most)/2)
		lo, hi = max(m.share-.03, 0), min(m.share+.03, 1) // not far from there
	}
	if _, got := m.measureSample(); math.Abs(got-intra) > .02 {
		return nil, &IntraError{intra, 0, got}
	}
	return m, nil
}

// fitStayingShare deals the ends of a law with a mean, so many that the share asked for stays on
// the sites: small ones have no room for all links that are meant to stay, so more
// must be; lo and hi bound their share. It returns the mean that comes out.
func (m *Matched) fitStayingShare(mean, intra, lo, hi float64, h HostLocalOptions, most uint32) (degree float64, err error) {
	if m.out, err = NewLaw(h.Out, max(mean, 1), 1, most); err != nil {
		return 0, fmt.Errorf("links of a page: %w", err)
	}
	for hi-lo > .005 {
		if err := m.dealOut((lo+hi)/2, h.In, most); err != nil {
			return 0, err
		}
		var share float64
		if degree, share = m.measureSample(); share < intra {
			lo = m.share
		} else {
			hi = m.share
		}
	}
	return degree, nil
}

// degreeAtRank returns what the law has at a rank of n, the greatest first.
func (l *Law) degreeAtRank(rank, n uint64) uint32 {
	return l.Draw(toFraction64((float64(rank) + .5) / float64(n)))
}

// dealOut sets the numbers of ends for a share of links that are meant to stay.
func (m *Matched) dealOut(share, in float64, most uint32) error {
	m.share, m.most = share, 0
	m.inner = make([]uint8, m.block)
	begin := make([]uint32, m.block)
	for r := range m.block {
		all := m.out.degreeAtRank(r, m.block)
		stay := float64(all) * share
		inner := uint32(stay)
		if rng.Unit(rng.Mix(m.key, r)) < stay-float64(inner) {
			inner++
		}
		inner = min(inner, mostInner)
		m.inner[r], m.most = uint8(inner), max(m.most, int(inner))
		begin[r] = all - inner
	}
	m.begin = newDeal(begin)
	m.ends = uint64(m.begin.first[m.block])
	end := make([]uint32, m.block)
	if m.ends > 0 {
		law, err := NewLaw(in, float64(m.ends)/float64(m.block), 0, most)
		if err != nil {
			return fmt.Errorf("links to a page: %w", err)
		}
		sum := int64(0)
		for r := range end {
			end[r] = law.degreeAtRank(uint64(r), m.block)
			sum += int64(end[r])
		}
		// What rounding left or has too much, one a rank, evenly.
		for off := int64(m.ends) - sum; off != 0; {
			n := min(off, int64(m.block))
			n = max(n, -int64(m.block))
			for i := range max(n, -n) {
				r := i * int64(m.block) / max(n, -n)
				switch {
				case n > 0:
					end[r]++
					off--
				case end[r] > 0:
					end[r]--
					off++
				}
			}
			if n < 0 && off < 0 { // ranks without any cannot give one: from the greatest on
				for r := 0; off < 0 && r < len(end); r++ {
					if end[r] > 0 {
						end[r]--
						off++
					}
				}
			}
		}
	}
	m.end = newDeal(end)
	m.pairs = newPermutation(max(m.blocks*m.ends, 1), rng.Mix(m.key, saltPairs))
	return nil
}

func newDeal(counts []uint32) deal {
	first := make([]uint32, len(counts)+1)
	for r, n := range counts {
		first[r+1] = first[r] + n
	}
	return deal{first}
}

// documentPlaces divides the places of a site among the levels of its documents, level l
// being documents 2^l - 1 to 2^(l+1) - 2, by a power of their numbers. A page links
// to none more than once, so none has more places than let all pages link to it.
func documentPlaces(pages, exponent float64) []float64 {
	levels := bits.Len64(uint64(pages))
	size, weight := make([]float64, levels), make([]float64, levels)
	for l := range levels {
		from := math.Exp2(float64(l)) - 1
		size[l] = min(from+1, pages-from)
		weight[l] = math.Pow((from+size[l]/2)/pages, -1/(exponent-1))
	}
	const most = 1. / knownSlots
	total := func(scale float64) (sum float64) {
		for l := range levels {
			sum += size[l] * min(weight[l]*scale, most)
		}
		return sum
	}
	lo, hi := 1e-15, 1.
	for range 100 {
		if mid := math.Sqrt(lo * hi); total(mid) < 1 {
			lo = mid
		} else {
			hi = mid
		}
	}
	below := make([]float64, levels+1)
	for l := range levels {
		below[l+1] = below[l] + size[l]*min(weight[l]*hi, most)
	}
	for l := range below {
		below[l] /= below[levels]
	}
	return below
}

// measureSample measures the mean number of links of a page and the share of them that stay
// on the site.
func (m *Matched) measureSample() (degree, intra float64) {
	const sample = 10_000
	n := min(m.nodes, sample)
	var buf []uint64
	local, all := 0, 1e-9
	for i := range n {
		u := uint64((float64(i) + .5) / float64(n) * float64(m.nodes))
		first, pages := m.layout.Span(m.layout.Host(u))
		buf = m.Successors(u, buf[:0])
		for _, v := range buf {
			if v-first < pages {
				local++
			}
		}
		all += float64(len(buf))
	}
	return all / float64(n), float64(local) / all
}

// Nodes returns the number of pages.
func (m *Matched) Nodes() uint64 { return m.nodes }

// Hosts returns the number of sites.
func (m *Matched) Hosts() uint64 { return m.layout.Hosts() }

// Host returns the site of a page.
func (m *Matched) Host(page uint64) uint64 { return m.layout.Host(page) }

// Span returns the first page of a site and the number of its pages.
func (m *Matched) Span(site uint64) (first, pages uint64) { return m.layout.Span(site) }

// Params tells how the web is made.
func (m *Matched) Params() map[string]float64 {
	return map[string]float64{"stay": m.share, "degree_scale": m.out.Scale, "blocks": float64(m.blocks), "ends": float64(m.ends)}
}

// dealPermutation returns the permutation by which ends are dealt to the pages of a block.
func (m *Matched) dealPermutation(block, salt uint64) permutation {
	return newPermutation(m.block, rng.Mix(m.key+salt, block))
}

// innerLinks returns how many slots for links on its site a page has.
func (m *Matched) innerLinks(u uint64) int {
	p := m.dealPermutation(u/m.block, saltBegin)
	return int(m.inner[p.permute(u%m.block)])
}

// Successors appends the pages that page u links to. It may be called concurrently.
func (m *Matched) Successors(u uint64, buf []uint64) []uint64 {
	from := len(buf)
	block := u / m.block
	p := m.dealPermutation(block, saltBegin)
	rank := p.permute(u % m.block)
	s := m.matchedSiteOf(u)
	for k := range int(m.inner[rank]) {
		if d := s.slotTarget(u-s.first, k); d != u-s.first {
			buf = append(buf, s.first+d)
		}
	}
	for e := uint64(m.begin.first[rank]); e < uint64(m.begin.first[rank+1]); e++ {
		if v, ok := m.pageOfEnd(m.pairs.permute(block*m.ends+e), &m.end, saltEnd); ok && v != u {
			buf = append(buf, v)
		}
	}
	slices.Sort(buf[from:])
	return buf[:from+len(slices.Compact(buf[from:]))]
}

// Predecessors appends the pages that link to page v. It may be called concurrently.
func (m *Matched) Predecessors(v uint64, buf []uint64) []uint64 {
	from := len(buf)
	buf = m.matchedSiteOf(v).slotSources(v, buf)
	block := v / m.block
	p := m.dealPermutation(block, saltEnd)
	rank := p.permute(v % m.block)
	for e := uint64(m.end.first[rank]); e < uint64(m.end.first[rank+1]); e++ {
		if u, ok := m.pageOfEnd(m.pairs.unpermute(block*m.ends+e), &m.begin, saltBegin); ok && u != v {
			buf = append(buf, u)
		}
	}
	slices.Sort(buf[from:])
	return buf[:from+len(slices.Compact(buf[from:]))]
}

// pageOfEnd returns the page that has an end; false if that is one that the last block
// lacks.
func (m *Matched) pageOfEnd(end uint64, d *deal, salt uint64) (uint64, bool) {
	block := end / m.ends
	p := m.dealPermutation(block, salt)
	u := block*m.block + p.unpermute(d.rankOfEnd(uint32(end%m.ends)))
	return u, u < m.nodes
}

// matchedSite is a site whose links are computed.
type matchedSite struct {
	m            *Matched
	first, pages uint64
	places       []float64
	key          uint64
}

func (m *Matched) matchedSiteOf(u uint64) *matchedSite {
	first, pages := m.layout.Span(m.layout.Host(u))
	return &matchedSite{m, first, pages, m.places[sizeClass(pages)], rng.Mix(m.key+saltSlot, first)}
}

// slotPermutation returns the permutation of the places for slot k.
func (s *matchedSite) slotPermutation(k int) permutation {
	return newPermutation(s.pages, rng.Mix(s.key, uint64(k)))
}

// levelPlaces returns the first place of the documents of a level, the number of its
// places, the number of its documents, and by how many they are turned round for a
// slot, so that all come to have places where there are fewer of these.
func (s *matchedSite) levelPlaces(l, k int) (place, places, documents, turn uint64) {
	place = uint64(s.places[l] * float64(s.pages))
	next := uint64(s.places[l+1] * float64(s.pages))
	if l+2 == len(s.places) {
		next = s.pages
	}
	documents = min(1<<l, s.pages-(1<<l-1))
	return place, next - place, documents, scaleBelow(rng.Mix(s.key+uint64(k), uint64(l)), documents)
}

// slotTarget returns the document that slot k of a document leads to.
func (s *matchedSite) slotTarget(doc uint64, k int) uint64 {
	if k == 0 && doc > 0 {
		return (doc - 1) / matchedFan
	}
	if c := doc*matchedFan + uint64(k); k >= 1 && k <= matchedFan && c < s.pages {
		return c
	}
	p := s.slotPermutation(k)
	x := p.permute(doc)
	if k >= knownSlots {
		return x
	}
	l := 0
	for l+2 < len(s.places) && x >= uint64(s.places[l+1]*float64(s.pages)) {
		l++
	}
	place, places, documents, turn := s.levelPlaces(l, k)
	i := (x - place) * documents / places
	return 1<<l - 1 + (i+turn)%documents
}

// slotSources appends the pages of the site that link to page v of it.
func (s *matchedSite) slotSources(v uint64, buf []uint64) []uint64 {
	doc := v - s.first
	put := func(d uint64, k int) {
		if d != doc && s.m.innerLinks(s.first+d) > k && s.slotTarget(d, k) == doc {
			buf = append(buf, s.first+d)
		}
	}
	for c := doc*matchedFan + 1; c <= doc*matchedFan+matchedFan && c < s.pages; c++ {
		put(c, 0)
	}
	if doc > 0 {
		up := (doc - 1) / matchedFan
		put(up, int(doc-up*matchedFan))
	}
	put(0, 0)
	l := bits.Len64(doc+1) - 1
	for k := knownSlots; k < s.m.most; k++ {
		p := s.slotPermutation(k)
		put(p.unpermute(doc), k)
	}
	for k := 1; k < min(knownSlots, s.m.most); k++ {
		place, places, documents, turn := s.levelPlaces(l, k)
		i := (doc - (1<<l - 1) + documents - turn) % documents
		p := s.slotPermutation(k)
		// The places x with floor(x documents / places) = i.
		for x := (i*places + documents - 1) / documents; x < ((i+1)*places+documents-1)/documents; x++ {
			put(p.unpermute(place+x), k)
		}
	}
	return buf
}
