package gen

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/freshet/freshet/lab/rng"
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
//     that are asked for.
//   - Most links stay on the site. The documents of a site are a tree: document d
//     links to documents fan*d+1 .. fan*d+fan, to the home page and to its parent. Pages with children are those with many links, which
//     keeps the law exact. What is left goes to documents drawn by a power
//     law, the same ones for all pages of a section: pages of a site are alike in
//     what they link to and in how many links they have.
//   - Links to other sites are copied (Kumar et al.): link i goes to a new
//     target with probability a, else where link i of the page's prototype goes,
//     an earlier page: one near by or one drawn evenly. That is followed from
//     prototype to prototype without storing any, 1/a steps in the mean. New targets
//     are pages drawn evenly or home pages of sites drawn evenly, among all and
//     not among earlier ones only: that makes the sites a strong component.
//
// The links of a page ascend, each once.
type HostLocal struct {
	layout    Layout
	nodes     uint64
	degrees   *Law
	fan       uint64
	cross     float64  // share of a page's links that are meant for other sites
	intra     float64  // share of all links that stays on the site
	levelFall float64  // of the sizes of sections
	fresh     uint32   // a in units of 2^-32
	home      float64  // share of new targets that are home pages
	spread    []uint32 // quantiles of the place of a document that is linked to on its site
	seeds     [8]uint64
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
)

// maxOut is the greatest number of links of a page; in small webs it is a
// twentieth of the pages.
const maxOut = 1 << 16

// greatestOut returns the greatest number of links of a page in a web: one page
// with a good part of all links would shape the others' numbers of links.
func greatestOut(nodes uint64) uint32 { return uint32(min(nodes-1, maxOut, max(nodes/20, 64))) }

// HostLocalOptions are what a HostLocal web is asked to be. What is 0 has the
// default, or what is next to it that can be had.
type HostLocalOptions struct {
	Nodes   uint64
	Degree  float64 // mean number of links of a page
	In, Out float64 // exponents of the numbers of links to and from a page
	Intra   float64 // share of the links that stay on the site
	Seed    uint64
}

// withDefaults fills in what is 0, Intra excepted.
func (o HostLocalOptions) withDefaults() HostLocalOptions {
	o.In, o.Out = or(o.In, DefaultIn), or(o.Out, DefaultOut)
	o.Degree = or(o.Degree, min(DefaultDegree, float64(o.Nodes-1)/4))
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
	o = o.withDefaults()
	if !(o.In > 2) || o.In > maxExponent {
		return nil, rangeError("in-exponent", o.In, "host-local")
	}
	if !(o.Out > 2) || o.Out > maxExponent {
		return nil, rangeError("out-exponent", o.Out, "host-local")
	}
	h := &HostLocal{layout: layout, nodes: o.Nodes, fresh: uint32(freshShare(o.In) * (1 << 32))}
	for i := range h.seeds {
		h.seeds[i] = rng.Mix(o.Seed+uint64(i), 0x4057)
	}
	if err := h.drawDegrees(o); err != nil {
		return nil, fmt.Errorf("links of a page: %w", err)
	}
	h.spread = make([]uint32, spreadCells+1)
	power := (o.In + siteSteeper - 1) / (o.In + siteSteeper - 2)
	h.levelFall = o.In - 2 + levelSteeper
	perSite := float64(o.Nodes) / float64(layout.Hosts())
	h.home = min(newPerSite/(float64(h.fresh)/(1<<32)*o.Degree*(1-or(o.Intra, DefaultIntra))*perSite+1e-9), 1)
	for i := range h.spread {
		h.spread[i] = uint32(min(math.Pow(float64(i)/spreadCells, power)*(1<<32), 1<<32-1))
	}
	return h, h.calibrate(o.Intra)
}

// countable is the size of a web up to which all links are counted to hit the mean.
const countable = 1 << 20

// drawDegrees picks the law of the numbers of links of pages. In small webs, where
// a few pages with very many links weigh much, its mean is set so that what is
// drawn has the mean that is asked for.
func (h *HostLocal) drawDegrees(o HostLocalOptions) (err error) {
	most := greatestOut(o.Nodes)
	mean := o.Degree
	for range 4 {
		if h.degrees, err = NewLaw(o.Out, mean, 0, most); err != nil {
			return err
		}
		if h.fan == 0 {
			h.fan = fanOf(h.degrees, max(or(o.Intra, DefaultIntra), .1))
		}
		if h.nodes > countable {
			return nil
		}
		got := 0.
		for site := range h.layout.Hosts() {
			first, pages := h.layout.Span(site)
			for u := first; u < first+pages; u++ {
				degree, _ := h.degree(u, u-first, pages)
				got += float64(degree)
			}
		}
		if got == 0 {
			return nil
		}
		mean = max(min(mean*o.Degree*float64(h.nodes)/got, float64(most)/2), o.Degree/4)
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

// calibrate sets the share of links that are meant for other sites.
func (h *HostLocal) calibrate(intra float64) error {
	if !(intra >= 0) || intra > 1 {
		return fmt.Errorf("share of links on the site %g: want 0 to 1", intra)
	}
	h.cross = 0
	most := h.sampleIntra()
	h.cross = 1
	least := h.sampleIntra()
	if intra == 0 {
		intra = max(min(DefaultIntra, most), least)
	}
	h.intra = intra
	if intra > most || intra < least {
		return &IntraError{intra, least, most}
	}
	h.cross = 0
	lo, hi := 0.0, 1.0 // with shares most and least: false position, which is nearly exact as the share is nearly linear
	for range 6 {
		if most-least < 1e-6 {
			break
		}
		h.cross = lo + (hi-lo)*(most-intra)/(most-least)
		share := h.sampleIntra()
		if share > intra {
			lo, most = h.cross, share
		} else {
			hi, least = h.cross, share
		}
		if math.Abs(share-intra) < 1e-4 {
			break
		}
	}
	return nil
}

// sampleIntra measures the share of links that stay on the site.
func (h *HostLocal) sampleIntra() float64 {
	n := min(h.nodes, calibration)
	var buf []uint64
	local, all := 0, 1e-9
	for i := range n {
		u := uint64((float64(i) + .5) / float64(n) * float64(h.nodes)) // spread evenly
		first, pages := h.layout.Span(h.layout.Host(u))
		buf = h.Successors(u, buf[:0])
		for _, v := range buf {
			if v-first < pages {
				local++
			}
		}
		all += float64(len(buf))
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
		"a": float64(h.fresh) / (1 << 32), "fan": float64(h.fan), "cross": h.cross, "degree_scale": h.degrees.Scale,
	}
}

// Successors appends the links of page u to buf. It may be called concurrently.
func (h *HostLocal) Successors(u uint64, buf []uint64) []uint64 {
	first, pages := h.layout.Span(h.layout.Host(u))
	return h.successors(u, first, pages, buf)
}

// successors appends the links of page u of the site whose pages begin with first.
func (h *HostLocal) successors(u, first, pages uint64, buf []uint64) []uint64 {
	degree, like := h.degree(u, u-first, pages)
	if degree == 0 {
		return buf
	}
	want := float64(degree) * h.cross
	cross := uint64(want)
	if rng.Unit(rng.Mix(h.seeds[seedRound], like)) < want-float64(cross) {
		cross++
	}
	if u == first && cross == 0 { // so that no site is a trap for who comes to it first
		cross = 1
	}
	from := len(buf)
	buf = h.inner(u, first, pages, min(degree-cross, pages-1), buf)
	local := uint64(len(buf) - from)
	buf = h.outer(u, first, pages, degree-local, buf)
	slices.Sort(buf[from:])
	return buf
}

// alike is the share of pages that have as many links as their siblings: much of
// a site is made by templates.
const alike = .85

// section is the number of documents of a section of a site.
const section = 16

// group returns a number that the documents of a section have in common.
func (h *HostLocal) group(u, doc uint64) uint64 { return ^(u - (doc+section-1)%section) }

// degree draws the number of links of page u, document doc of a site; like is the
// number by which it was drawn, which alike pages have in common. Pages with
// children get the greater quantiles, the others the rest: together they have
// the law.
func (h *HostLocal) degree(u, doc, pages uint64) (degree, like uint64) {
	like = u
	if rng.Unit(rng.Mix(h.seeds[seedAlike], u)) < alike {
		like = h.group(u, doc)
	}
	x := rng.Mix(h.seeds[seedDegree], like)
	parents := (pages + h.fan - 2) / h.fan
	cut := below(parents<<32/pages<<32, math.MaxUint64) // share of the parents in units of 2^-64
	if doc*h.fan+1 < pages {
		x = below(x, cut)
	} else {
		x = cut + below(x, -cut-1)
	}
	return uint64(h.degrees.Draw(x)), like
}

// inner appends n < pages links to documents of the site.
func (h *HostLocal) inner(u, first, pages, n uint64, buf []uint64) []uint64 {
	doc, from := u-first, len(buf)
	put := func(d uint64) {
		if n > 0 && d < pages && d != doc {
			buf = append(buf, d)
			n--
		}
	}
	for c := doc*h.fan + 1; c <= doc*h.fan+h.fan && c < pages; c++ {
		put(c)
	}
	if doc > 0 {
		put(0)
		parent := (doc - 1) / h.fan
		if parent > 0 {
			put(parent)
		}
	}
	tree := buf[from:]
	if n > 0 {
		buf = h.drawn(u, doc, pages, n, tree, buf)
	}
	for i := range buf[from:] {
		buf[from+i] += first
	}
	return buf
}

// spreadCells is the number of cells of the table by which documents are drawn.
const spreadCells = 1 << 12

// place maps 64 random bits to a document: a power law.
func (h *HostLocal) place(x, pages uint64) uint64 {
	cell, rest := x>>52, x>>20&(1<<32-1)
	a, b := uint64(h.spread[cell]), uint64(h.spread[cell+1])
	at := a<<31 + (b-a)*rest>>1 // of 2^63
	return below(at<<1, pages)
}

// drawn appends n documents that are none of tree and not doc, each once. Pages of
// a section of a site have links in common, and sections have sections: link i is
// the same for all documents of an aligned block of 2^j, where j is drawn for i by
// a law that gives the links to a page the exponent.
func (h *HostLocal) drawn(u, doc, pages, n uint64, tree, buf []uint64) []uint64 {
	if n > 64 {
		return h.spreadOut(u, doc, pages, n, tree, buf)
	}
	from := len(buf) - len(tree)
	site := rng.Mix(h.seeds[seedInner], ^(u - doc))
	most := uint64(bits.Len64(pages)) - 1
	for i := range n {
		key := rng.Mix(site, i)
		j := h.level(key, most)
		d := h.place(rng.Mix(key, doc>>j), pages)
		for d == doc || slices.Contains(buf[from:], d) {
			if d++; d == pages {
				d = 0
			}
		}
		buf = append(buf, d)
	}
	return buf
}

// leastLevel is that of the smallest sections.
const leastLevel = 3

// level draws the size of sections, 2^level, from leastLevel to most.
func (h *HostLocal) level(x, most uint64) uint64 {
	j := uint64(-math.Log2(1-rng.Unit(x)) / h.levelFall)
	return leastLevel + j%(max(most, leastLevel)-leastLevel+1)
}

// spreadOut is drawn for many documents: one of each n-th part of the law, moved
// up where it is taken.
func (h *HostLocal) spreadOut(u, doc, pages, n uint64, tree, buf []uint64) []uint64 {
	key := rng.Mix(h.seeds[seedInner], u)
	step := math.MaxUint64 / n
	next := uint64(0)
	for i := range n {
		x := i*step + below(rng.Mix(key, i), step)
		d := max(next, min(h.place(x, pages), pages-min(pages, n-i)))
		for d == doc || slices.Contains(tree, d) {
			d++
		}
		if d >= pages {
			break
		}
		buf = append(buf, d)
		next = d + 1
	}
	return buf
}

// outer appends n links to other sites, each once; fewer if there are not as many
// targets.
func (h *HostLocal) outer(u, first, pages, n uint64, buf []uint64) []uint64 {
	if h.layout.Hosts() < 2 {
		return buf
	}
	var protos [maxChain]uint64 // of u, of its prototype and so on
	protos[0] = u
	known := 1
	from := len(buf)
	tries := 2*n + 16
	for i := uint64(0); n > 0 && i < tries; i++ {
		v := h.target(i, &protos, &known)
		if v-first < pages || slices.Contains(buf[from:min(len(buf), from+64)], v) {
			continue
		}
		buf = append(buf, v)
		if n--; n == 0 && len(buf)-from > 64 {
			buf, n = unique(buf, from)
		}
	}
	buf, _ = unique(buf, from)
	return buf
}

// unique sorts the links from an index on and drops repeated ones; it tells how
// many there were.
func unique(buf []uint64, from int) ([]uint64, uint64) {
	slices.Sort(buf[from:])
	kept := slices.Compact(buf[from:])
	return buf[:from+len(kept)], uint64(len(buf) - from - len(kept))
}

// maxChain is the greatest number of prototypes that are followed.
const maxChain = 128

// target returns where link i of page protos[0] goes.
func (h *HostLocal) target(i uint64, protos *[maxChain]uint64, known *int) uint64 {
	for step := range protos {
		if step == *known {
			protos[step] = h.prototype(protos[step-1])
			*known++
		}
		p := protos[step]
		x := rng.Mix(h.seeds[seedFresh]+i*0x9e3779b97f4a7c15, p)
		if uint32(x) < h.fresh || p == 0 || step == len(protos)-1 {
			return h.anywhere(rng.Mix(h.seeds[seedPlace], x))
		}
	}
	panic("unreachable")
}

// near is the number of pages before a page that its prototype is one of with
// probability nearShare: pages of a site have links to other sites in common.
const (
	near      = 4
	nearShare = .65
)

// prototype returns the page that page u > 0 copies links to other sites from.
func (h *HostLocal) prototype(u uint64) uint64 {
	x := rng.Mix(h.seeds[seedProto], u)
	if y := rng.Mix(h.seeds[seedNear], u); rng.Unit(y) < nearShare {
		return u - 1 - x%min(near, u)
	}
	return below(x, u)
}

// freshShare returns the probability a of a new target that leads to an exponent.
// A copied link is copied at once, by pages near by, into a cluster of the mean
// size 1/(1 - nearShare (1-a)), and later by pages anywhere. So the number d of
// links to a page grows at the rate
//
//	c d/t,  c = (1-nearShare)(1-a) / (1 - nearShare (1-a)),
//
// which has the exponent 1 + 1/c, as without clusters, where c = 1-a.
func freshShare(exponent float64) float64 {
	c := 1 / (exponent - 1)
	return 1 - c/(1-nearShare+c*nearShare)
}

// newPerSite is the mean number of new targets that are drawn to be the home page
// of each site; other new targets are pages drawn evenly. Few, because home pages
// with many make a hump in the law of links to a page, and not none, because they
// make small sites known.
const newPerSite = 1.5

// Sizes of sites have the exponent that is asked for, and what is proportional to
// them, such as the links to a home page, has it too. What has a law of its own
// within each site must fall faster, or the sum over sites would be cut off
// slowly: by siteSteeper the law of the places of documents, by levelSteeper that
// of the sizes of sections.
const (
	siteSteeper  = 2
	levelSteeper = 1.2
)

// anywhere maps 64 random bits to a new target.
func (h *HostLocal) anywhere(x uint64) uint64 {
	y := rng.Mix(h.seeds[seedPlace], x)
	if rng.Unit(x) >= h.home {
		return below(y, h.nodes)
	}
	first, _ := h.layout.Span(below(y, h.layout.Hosts()))
	return first
}
