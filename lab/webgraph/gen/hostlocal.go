package gen

import (
	"fmt"
	"math"
	"slices"

	"github.com/freshet/freshet/internal/rng"
)

// HostLocal is a web of sites as a pure function of a seed: the links of any page
// are computed from its number alone, so webs of 2^42 pages need no storage and a
// stored web is the same whatever the number of cores.
//
// Plain growing models cannot rank crawl strategies: nearly nothing is reachable
// from a few seeds and all orders look alike (Boldi, Santini and Vigna 2004). Real
// links are mostly local. So:
//
//   - The number of links of a page has a power law (Law) of the exponent and mean
//     that are asked for, and so many pages have none as the bow-tie has room for.
//   - Most links stay on the site. The documents of a site are a tree: document d
//     links to documents fan*d+1 .. fan*d+fan, and to the home page or to its parent.
//     Pages with children are those with many links, which keeps the law exact. What
//     is left goes to documents drawn so that the numbers of links to pages have the
//     law that is asked for (siteLaw), the same ones for all pages of a section:
//     pages of a site are alike in what they link to and in how many links they have.
//   - Links to other sites are copied (Kumar et al.): link i goes to a new
//     target with probability freshShare, else where link i of the page's prototype
//     goes, an earlier page: one near by or one drawn evenly. That is followed from
//     prototype to prototype without storing any, three steps in the mean. New
//     targets are pages that their own sites link to most, on sites of the sizes
//     that want more links than stay on them, or pages drawn by a fame of their own
//     (fame), among all and not among earlier ones only.
//   - What documents are to have is corrected until the counted links have the law
//     (tune).
//   - Where new targets are depends on the class of the site (classes): so the web
//     has the bow-tie that is asked for. The copied link i of a prototype leads to as
//     many places as there are classes of sites that copy it.
//
// The links of a page ascend, each once.
type HostLocal struct {
	layout   Layout
	nodes    uint64
	degrees  *Law // of pages that have links
	leaves   float64
	fan      uint64
	cross    float64 // share of a page's links that are meant for other sites
	intra    float64 // share of all links that stays on the site
	fame     *fame
	wanted   *quantiles
	weight   []float64 // share of the pages on sites of each size class
	laws     []*siteLaw
	mostStay float64 // greatest share of a page's links that are meant for its site
	tie      BowTie
	classes  *classes
	leads    [siteClasses][]choice
	seeds    [9]uint64
}

// Streams of HostLocal's hashes.
const (
	seedDegree = iota
	seedRound
	seedInner
	seedProto
	seedFresh
	seedPlace
	seedNear
	seedAlike
	seedLeaf
)

// maxOut is the greatest number of links of a page; in small webs it is a
// twentieth of the pages.
const maxOut = 1 << 16

// greatestOut returns the greatest number of links of a page in a web: one page
// with a good part of all links would shape the others' numbers of links.
func greatestOut(nodes uint64) uint32 { return uint32(min(nodes-1, maxOut, max(nodes/20, 64))) }

// greatestIn returns the greatest number of links to a page that the law of them is
// asked to go up to: a twentieth of the pages.
func greatestIn(nodes uint64) uint32 { return uint32(min(max(nodes/20, leastMost), nodes-1, 1<<30)) }

// HostLocalOptions are what a HostLocal web is asked to be. What is 0 has the
// default, or what is next to it that can be had.
type HostLocalOptions struct {
	Nodes   uint64
	Degree  float64 // mean number of links of a page
	In, Out float64 // exponents of the numbers of links to and from a page
	Intra   float64 // share of the links that stay on the site
	BowTie  BowTie  // all 0: DefaultBowTie
	Seed    uint64
}

// withHostDefaults fills in what is 0, Intra excepted.
func (o HostLocalOptions) withHostDefaults() HostLocalOptions {
	o.In, o.Out = orDefault(o.In, DefaultIn), orDefault(o.Out, DefaultOut)
	o.Degree = orDefault(o.Degree, min(DefaultDegree, float64(o.Nodes-1)/4))
	if o.BowTie == (BowTie{}) {
		o.BowTie = DefaultBowTie()
	}
	return o
}

// IntraError says that so great or small a share of links on the site is not
// possible.
type IntraError struct {
	Asked, Least, Most float64
}

func (e *IntraError) Error() string {
	return fmt.Sprintf("share of links on the site %g: with these sites and numbers of links %.3f to %.3f is possible", e.Asked, e.Least, e.Most)
}

// NewHostLocal returns the web over a layout. It finds, on a sample
// of pages, how many links must be meant for other sites so that the share asked
// for stays on the site: small sites have no room for many.
func NewHostLocal(o HostLocalOptions, layout Layout) (*HostLocal, error) {
	if o.Nodes < 2 {
		return nil, fmt.Errorf("%d pages: want 2 or more", o.Nodes)
	}
	o = o.withHostDefaults()
	if !(o.In > 2) || o.In > maxExponent {
		return nil, rangeError("in-exponent", o.In, "host-local")
	}
	if !(o.Out > 2) || o.Out > maxExponent {
		return nil, rangeError("out-exponent", o.Out, "host-local")
	}
	if err := o.BowTie.checkShares(); err != nil {
		return nil, err
	}
	h := &HostLocal{layout: layout, nodes: o.Nodes, tie: o.BowTie, leaves: o.BowTie.leafShare()}
	for i := range h.seeds {
		h.seeds[i] = rng.Mix(o.Seed+uint64(i), 0x4057)
	}
	h.classes = newClasses(layout, o.Nodes, o.BowTie.classShares(h.leaves))
	h.leads = h.classes.linkChoices()
	if err := h.pickDegreeLaw(o); err != nil {
		return nil, fmt.Errorf("links of a page: %w", err)
	}
	h.fame = newFame(o.In, h.classes, rng.Mix(o.Seed, 0xfa3e))
	h.weight = h.sizeClassWeights()
	law, err := NewLaw(o.In, max(o.Degree, 1), 1, min(greatestIn(o.Nodes), h.greatestInner()))
	if err != nil {
		return nil, fmt.Errorf("links to a page: %w", err)
	}
	return h, h.tuneSiteLaws(law, o)
}

// greatestInner returns a quarter of the size of the largest sites. By the law so many links
// lead to few pages that the sites have no room for more; what is beyond comes by chance.
func (h *HostLocal) greatestInner() uint32 {
	k := len(h.weight) - 1
	for k > 0 && h.weight[k] == 0 {
		k--
	}
	return uint32(max(smallestOfClass(k)/4, leastMost))
}

// sizeClassWeights returns the share of the pages on sites of each size class, of a sample.
func (h *HostLocal) sizeClassWeights() []float64 {
	weight := make([]float64, sizeClass(h.nodes)+1)
	n := min(h.nodes, calibration)
	for i := range n {
		_, pages := h.layout.Span(h.layout.Host(uint64((float64(i) + .5) / float64(n) * float64(h.nodes))))
		weight[sizeClass(pages)] += 1 / float64(n)
	}
	return weight
}

// drawLaws makes the laws of sites from the numbers of links that are wanted.
func (h *HostLocal) drawLaws(mean float64) {
	h.laws = make([]*siteLaw, sizeClass(h.nodes)+1)
	for i := range h.laws {
		h.laws[i] = newSiteLaw(smallestOfClass(i), h.wanted, h.fan)
		h.laws[i].stay = h.laws[i].mean / mean
	}
}

// stayingShare returns the share of a page's links that is to stay on a site.
func (h *HostLocal) stayingShare(l *siteLaw) float64 {
	return min(steepest*(1-h.cross)*l.stay, h.mostStay)
}

// drawKnown sets which sites links from others lead to, by size: those that want more
// links than stay on them.
func (h *HostLocal) drawKnown() {
	want, stay := 0., 0.
	for i, l := range h.laws {
		want += h.weight[i] * l.stay
		stay += h.weight[i] * h.stayingShare(l)
	}
	lacks := make([]float64, len(h.laws))
	for i, l := range h.laws {
		lacks[i] = max(l.stay*(stay+knownShare*(1-stay))/want-h.stayingShare(l), leastKnown*(1-stay))
	}
	most := slices.Max(lacks)
	for i, l := range h.laws {
		l.known = uint32(min(lacks[i]/most*(1<<32), math.MaxUint32))
	}
}

// leastKnown is the least that sites are linked from others, in units of the mean.
const leastKnown = .1

const leastMost = 64 // least number of links that the law of links to a page goes up to

// countable is the size of a web up to which all links are counted to hit the mean.
const countable = 1 << 20

// pickDegreeLaw picks the law of the numbers of links of pages. In small webs, where
// a few pages with very many links weigh much, its mean is set so that what is
// drawn has the mean that is asked for.
func (h *HostLocal) pickDegreeLaw(o HostLocalOptions) (err error) {
	most := greatestOut(o.Nodes)
	mean := max(o.Degree/(1-h.leaves), 1)
	for range 4 {
		if h.degrees, err = NewLaw(o.Out, mean, 1, most); err != nil {
			return err
		}
		if h.fan == 0 {
			h.fan = fanOf(h.degrees, max(orDefault(o.Intra, DefaultIntra), .1))
		}
		if h.nodes > countable {
			return nil
		}
		got := 0.
		for site := range h.layout.Hosts() {
			first, pages := h.layout.Span(site)
			for u := first; u < first+pages; u++ {
				degree, _ := h.drawDocumentDegree(u, u-first, pages)
				got += float64(degree)
			}
		}
		if got == 0 {
			return nil
		}
		mean = max(min(mean*o.Degree*float64(h.nodes)/got, float64(most)/2), o.Degree/4, 1)
	}
	return nil
}

// fanOf returns the number of children in the trees of sites: so many that pages
// with links enough for them are as common as pages with children.
func fanOf(law *Law, intra float64) uint64 {
	for _, fan := range []uint64{5, 4, 6, 8, 3, 12, 16, 2} {
		if law.Beyond(uint32(math.Ceil(float64(fan)/intra))+1) >= 1/float64(fan) {
			return fan
		}
	}
	return 8
}

// calibration is the number of pages that are looked at to calibrate. It is great
// because the few pages with very many links weigh much.
const calibration = 100_000

// keptOpen is how many links of pages of the largest sites lead to other sites, in
// units of what do everywhere.
const keptOpen = .25

// steepest is how much more links than their laws want can stay on the sites.
const steepest = 4

// calibrateOutside sets the share of links that are meant for other sites.
func (h *HostLocal) calibrateOutside(intra float64) error {
	if err := h.meanFor(intra); err != nil {
		return err
	}
	// What is meant does not all come out: a document is linked once only.
	meant, got := h.sampleIntra(measured, false), h.sampleIntra(measured, true)
	asked := h.intra
	if more := asked + meant - got; more > 0 && more < 1 && h.meanFor(more) == nil {
		h.intra = asked
		return nil
	}
	return h.meanFor(intra)
}

// measured is the number of pages whose links are drawn to calibrate.
const measured = 20_000

// meanFor sets the share of links that are meant for other sites so that a share of
// them is meant for their own.
func (h *HostLocal) meanFor(intra float64) error {
	if !(intra >= 0) || intra > 1 {
		return fmt.Errorf("share of links on the site %g: want 0 to 1", intra)
	}
	h.cross, h.mostStay = 0, 1
	most := h.sampleIntra(calibration, false)
	h.cross = 1
	least := h.sampleIntra(calibration, false)
	if intra == 0 {
		intra = max(min(DefaultIntra, most), least)
	}
	h.intra = intra
	h.mostStay = 1 - keptOpen*(1-intra)
	if intra > most || intra < least {
		return &IntraError{intra, least, most}
	}
	h.cross = 0
	most = h.sampleIntra(calibration, false)
	lo, hi := 0.0, 1.0 // with shares of most and least: the false position, kept from standing on one side (Illinois)
	above, below := most-intra, least-intra
	for side, i := 0, 0; i < 20 && above-below > 1e-6; i++ {
		h.cross = lo + (hi-lo)*above/(above-below)
		off := h.sampleIntra(calibration, false) - intra
		switch {
		case math.Abs(off) < 5e-4:
			return nil
		case off > 0:
			lo, above = h.cross, off
			if side > 0 {
				below /= 2
			}
			side = 1
		default:
			hi, below = h.cross, off
			if side < 0 {
				above /= 2
			}
			side = -1
		}
	}
	return nil
}

// sampleIntra measures, on so many pages, the share of links that are meant to stay on
// the site or, of those that are drawn, do.
func (h *HostLocal) sampleIntra(pages uint64, drawn bool) float64 {
	n := min(h.nodes, pages)
	local, all := uint64(0), 1e-9
	at := h.placeOf(0)
	var buf []uint64
	for i := range n {
		u := uint64((float64(i) + .5) / float64(n) * float64(h.nodes)) // spread evenly
		if u-at.first >= at.pages {
			at = h.placeOf(h.layout.Host(u))
		}
		degree, stay := h.splitDegree(u, &at)
		switch {
		case drawn:
			buf = h.appendSuccessors(u, &at, buf[:0])
			degree, stay = uint64(len(buf)), 0
			for _, v := range buf {
				if v-at.first < at.pages {
					stay++
				}
			}
		case len(h.leads[at.class]) == 0:
			degree = stay
		}
		local += stay
		all += float64(degree)
	}
	return float64(local) / all
}

// Nodes returns the number of pages.
func (h *HostLocal) Nodes() uint64 { return h.nodes }

// Hosts returns the number of sites.
func (h *HostLocal) Hosts() uint64 { return h.layout.Hosts() }

// Host returns the site of a page.
func (h *HostLocal) Host(page uint64) uint64 { return h.layout.Host(page) }

// Span returns the first page of a site and the number of its pages.
func (h *HostLocal) Span(site uint64) (first, pages uint64) { return h.layout.Span(site) }

// Params tells how the web is made.
func (h *HostLocal) Params() map[string]float64 {
	return map[string]float64{
		"a": freshShare, "fan": float64(h.fan), "cross": h.cross, "leaves": h.leaves,
		"in_scale": h.wanted.law.Scale, "in_most": float64(h.wanted.law.Most), "degree_scale": h.degrees.Scale,
	}
}

// Successors appends the links of page u to buf. It may be called concurrently.
func (h *HostLocal) Successors(u uint64, buf []uint64) []uint64 {
	at := h.placeOf(h.layout.Host(u))
	return h.appendSuccessors(u, &at, buf)
}

// place is a site with what its links depend on.
type place struct {
	site, first, pages uint64
	class              int
	law                *siteLaw
}

func (h *HostLocal) placeOf(site uint64) place {
	first, pages := h.layout.Span(site)
	return place{site, first, pages, h.classes.classOfSite(site), h.laws[sizeClass(pages)]}
}

// splitDegree draws the number of links of page u, which is on a place, and how many of
// them are to stay on the site.
func (h *HostLocal) splitDegree(u uint64, at *place) (degree, stay uint64) {
	degree, like := h.drawDocumentDegree(u, u-at.first, at.pages)
	if degree == 0 {
		return 0, 0
	}
	cross := uint64(0)
	if len(h.leads[at.class]) > 0 {
		want := float64(degree) * (1 - h.stayingShare(at.law))
		cross = uint64(want)
		if rng.Unit(rng.Mix(h.seeds[seedRound], like)) < want-float64(cross) {
			cross++
		}
		if u == at.first && cross == 0 { // so that no site is a trap for who comes to it first
			cross = 1
		}
	}
	return degree, min(degree-cross, at.pages-1)
}

// appendSuccessors appends the links of page u, which is on a place.
func (h *HostLocal) appendSuccessors(u uint64, at *place, buf []uint64) []uint64 {
	degree, stay := h.splitDegree(u, at)
	if degree == 0 {
		return buf
	}
	from := len(buf)
	buf = h.appendSiteLinks(u, at, stay, buf)
	if local := uint64(len(buf) - from); len(h.leads[at.class]) > 0 {
		buf = h.appendCrossLinks(u, at, degree-local, buf)
	}
	slices.Sort(buf[from:])
	return buf
}

// alike is the share of pages that have as many links as their siblings: much of
// a site is made by templates.
const alike = .85

// section is the number of documents of a section of a site.
const section = 4

// sectionNumber returns a number that the documents of a section have in common.
func (h *HostLocal) sectionNumber(u, doc uint64) uint64 { return ^(u - (doc+section-1)%section) }

// drawDocumentDegree draws the number of links of page u, document doc of a site; like is the
// number by which it was drawn, which alike pages have in common. Pages with
// children get the greater quantiles, the others the rest: together they have
// the law. Pages without links have no children and are no home pages.
func (h *HostLocal) drawDocumentDegree(u, doc, pages uint64) (degree, like uint64) {
	parents := (pages + h.fan - 2) / h.fan
	isParent := doc*h.fan+1 < pages
	leaves := 0.
	if others := pages - max(parents, 1); others > 0 {
		leaves = min(h.leaves*float64(pages)/float64(others), 1)
		if doc > 0 && !isParent && rng.Unit(rng.Mix(h.seeds[seedLeaf], u)) < leaves {
			return 0, u
		}
		leaves *= float64(others) / float64(pages)
	}
	like = u
	if rng.Unit(rng.Mix(h.seeds[seedAlike], u)) < alike {
		like = h.sectionNumber(u, doc)
	}
	x := rng.Mix(h.seeds[seedDegree], like)
	// Share of the parents among pages with links, in units of 2^-64.
	cut := toFraction64(min(float64(parents)/(float64(pages)*(1-leaves)), 1))
	if isParent {
		x = scaleBelow(x, cut)
	} else {
		x = cut + scaleBelow(x, -cut-1)
	}
	return uint64(h.degrees.Draw(x)), like
}
