package gen

import (
	"slices"

	"github.com/freshet/freshet/lab/rng"
)

// outer appends n links to other sites, each once; fewer if there are not as many
// targets.
func (h *HostLocal) outer(u uint64, at *place, n uint64, buf []uint64) []uint64 {
	var protos [maxChain]uint64 // of u, of its prototype and so on
	protos[0] = u
	known := 1
	from := len(buf)
	tries := 2*n + 16
	for i := uint64(0); n > 0 && i < tries; i++ {
		v, ok := h.target(i, at, &protos, &known)
		if !ok || v-at.first < at.pages || slices.Contains(buf[from:min(len(buf), from+64)], v) {
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

// target returns where link i of page protos[0] goes; false if there is no site that
// it could go to.
func (h *HostLocal) target(i uint64, at *place, protos *[maxChain]uint64, known *int) (uint64, bool) {
	for step := range protos {
		if step == *known {
			protos[step] = h.prototype(protos[step-1])
			*known++
		}
		p := protos[step]
		x := rng.Mix(h.seeds[seedFresh]+i*0x9e3779b97f4a7c15, p)
		if uint32(x) < h.fresh || p == 0 || step == len(protos)-1 {
			return h.anywhere(rng.Mix(h.seeds[seedPlace], x), at, i == 0 && protos[0] == at.first)
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

// anywhere maps 64 random bits to a new target for links of a site; home tells that
// it is the first link of its home page.
func (h *HostLocal) anywhere(x uint64, at *place, home bool) (uint64, bool) {
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
	if rng.Unit(x) >= h.home {
		return s.page + below(y, s.pages), true
	}
	first, _ := h.layout.Span(s.site + below(y, s.sites))
	return first, true
}
