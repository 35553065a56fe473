package gen

import (
	"math"
	"slices"

	"github.com/freshet/freshet/internal/rng"
)

// appendCrossLinks appends n links to other sites, each once; fewer if there are not as many
// targets.
func (h *HostLocal) appendCrossLinks(u uint64, at *place, n uint64, buf []uint64) []uint64 {
	var protos [maxChain]uint64 // of u, of its prototype and so on
	protos[0] = u
	known := 1
	from := len(buf)
	tries := 2*n + 16
	for i := uint64(0); n > 0 && i < tries; i++ {
		v, ok := h.crossLinkTarget(i, at, &protos, &known)
		if !ok || v-at.first < at.pages || slices.Contains(buf[from:min(len(buf), from+64)], v) {
			continue
		}
		buf = append(buf, v)
		if n--; n == 0 && len(buf)-from > 64 {
			buf, n = sortUnique(buf, from)
		}
	}
	buf, _ = sortUnique(buf, from)
	return buf
}

// sortUnique sorts the links from an index on and drops repeated ones; it tells how
// many there were.
func sortUnique(buf []uint64, from int) ([]uint64, uint64) {
	slices.Sort(buf[from:])
	kept := slices.Compact(buf[from:])
	return buf[:from+len(kept)], uint64(len(buf) - from - len(kept))
}

// maxChain is the greatest number of prototypes that are followed.
const maxChain = 128

// crossLinkTarget returns where link i of page protos[0] goes; false if there is no site that
// it could go to.
func (h *HostLocal) crossLinkTarget(i uint64, at *place, protos *[maxChain]uint64, known *int) (uint64, bool) {
	return h.newCrossTarget(rng.Mix(h.seeds[seedPlace], h.copiedTargetBits(i, protos, known)), at, i == 0 && protos[0] == at.first)
}

// copiedTargetBits returns the random bits of the new target that link i of page protos[0] is
// or was copied from.
func (h *HostLocal) copiedTargetBits(i uint64, protos *[maxChain]uint64, known *int) uint64 {
	for step := range protos {
		if step == *known {
			protos[step] = h.prototypeOf(protos[step-1])
			*known++
		}
		p := protos[step]
		x := rng.Mix(h.seeds[seedFresh]+i*0x9e3779b97f4a7c15, p)
		if uint32(x) < freshLimit || p == 0 || step == len(protos)-1 {
			return x
		}
	}
	panic("unreachable")
}

// freshLimit is freshShare in units of 2^-32.
const freshLimit = freshShare * (1 << 32)

// near is the number of pages before a page that its prototype is one of with
// probability nearShare: pages of a site have links to other sites in common.
const (
	near      = 4
	nearShare = .65
)

// prototypeOf returns the page that page u > 0 copies links to other sites from.
func (h *HostLocal) prototypeOf(u uint64) uint64 {
	x := rng.Mix(h.seeds[seedProto], u)
	if y := rng.Mix(h.seeds[seedNear], u); rng.Unit(y) < nearShare {
		return u - 1 - x%min(near, u)
	}
	return scaleBelow(x, u)
}

// freshShare is the probability a of a new target. A copied link is copied at once,
// by pages near by, into a cluster of the mean size 1/(1 - nearShare (1-a)), and
// later by pages anywhere. So what is copied from one new target grows at the rate
//
//	c d/t,  c = (1-nearShare)(1-a) / (1 - nearShare (1-a)),
//
// and its size has the exponent 1 + 1/c, here 3.5, a lighter tail than that of the
// pages' popularity has with exponents of up to 3.
const freshShare = 11. / 32

// fame is the popularity of pages with links on other sites: of a row of n pages
// the one of rank r, by a permutation, is linked in proportion to ((r+1/2)/n)^-b,
// b = 1/(g-1), so that popularity has the exponent g.
type fame struct {
	b     float64
	ranks [siteClasses]permutation
}

func newFame(exponent float64, c *classes, seed uint64) *fame {
	f := &fame{b: 1 / (exponent - 1)}
	for k, s := range c {
		f.ranks[k] = newPermutation(max(s.pages, 1), rng.Mix(seed, uint64(k)))
	}
	return f
}

// drawFamousPage maps 64 random bits to a page of a class, counted from its first.
func (f *fame) drawFamousPage(x uint64, class int) uint64 {
	p := &f.ranks[class]
	least := math.Pow(float64(p.n), f.b-1)
	q := math.Pow(least+rng.Unit(x)*(1-least), 1/(1-f.b)) // from 1/n on
	return p.unpermute(min(uint64(q*float64(p.n)), p.n-1))
}

// knownShare is the share of new targets that are the pages which their own sites
// link to most; the others are drawn by their fame.
const knownShare = .7

// largerTries is how often a site is drawn until it is one that wants links from
// others.
const largerTries = 8

// earlierTries is how often a page of a class is drawn by its fame until it is on an
// earlier site.
const earlierTries = 8

// newCrossTarget maps 64 random bits to a new target for links of a site; home tells that
// it is the first link of its home page.
func (h *HostLocal) newCrossTarget(x uint64, at *place, home bool) (uint64, bool) {
	leads := h.leads[at.class]
	c := leads[0].class
	y := rng.Mix(h.seeds[seedPlace], x)
	if !home {
		for _, l := range leads {
			if c = l.class; uint32(y) < l.upTo {
				break
			}
		}
	}
	s := h.classes[c]
	if c == at.class && c != inCore { // earlier sites only: the class is no second core
		s.pages, s.sites = at.first-s.page, at.site-s.site
		if s.sites == 0 && len(leads) > 1 {
			s = h.classes[leads[0].class]
		}
	}
	if s.sites == 0 {
		return 0, false
	}
	y = rng.Mix(h.seeds[seedNear], y)
	if rng.Unit(x) < knownShare { // a page that is known on its site, too
		for range largerTries {
			first, pages := h.layout.Span(h.layout.Host(s.page + scaleBelow(y, s.pages)))
			y = rng.Mix(h.seeds[seedNear], y)
			if l := h.laws[sizeClass(pages)]; uint32(y) <= l.known {
				return first + l.drawFamousDocument(rng.Mix(h.seeds[seedNear], y), pages), true
			}
			y = rng.Mix(h.seeds[seedNear], y)
		}
	}
	for range earlierTries {
		if d := h.fame.drawFamousPage(y, c); d < s.pages {
			return s.page + d, true
		}
		y = rng.Mix(h.seeds[seedNear], y)
	}
	return s.page + scaleBelow(y, s.pages), true
}
