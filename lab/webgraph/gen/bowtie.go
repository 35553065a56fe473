package gen

import (
	"fmt"
	"sort"
)

// BowTie is the shares of the pages that are to be in each part of the bow-tie
// (Broder et al. 2000): the largest strong component, what reaches it, what it
// reaches. The rest is tubes, tendrils and islands.
type BowTie struct {
	SCC float64 `json:"scc"`
	In  float64 `json:"in"`
	Out float64 `json:"out"`
}

// DefaultBowTie is the bow-tie of the page graph of the Common Crawl of 2012
// (Meusel et al. 2014). It is that of one crawl: others differ widely, as the order
// of a crawl shapes it (Broder et al. 2000: 28 %, 21 %, 21 % and 30 % of the rest).
func DefaultBowTie() BowTie { return BowTie{SCC: .513, In: .320, Out: .061} }

// otherShare is the share of tubes, tendrils and islands.
func (b BowTie) otherShare() float64 { return 1 - b.SCC - b.In - b.Out }

// checkShares says what is wrong with the shares.
func (b BowTie) checkShares() error {
	if !(b.SCC >= .05) || !(b.In >= 0) || !(b.Out >= 0) || b.otherShare() < -1e-9 {
		return fmt.Errorf("bow-tie of %g, %g and %g: want a strong component of .05 or more, shares of 0 or more, and 1 at most together", b.SCC, b.In, b.Out)
	}
	return nil
}

// leafShare returns the share of pages without links. On a site of the strong
// component they are OUT, on one of IN they are tendrils, so there are no more
// than either has room for, and less than that: the rest of OUT is sites.
func (b BowTie) leafShare() float64 {
	z := b.Out / (b.SCC + b.Out)
	if b.In > 0 {
		z = min(z, max(b.otherShare(), 0)/(b.In+max(b.otherShare(), 0)))
	}
	return min(.7*z, .25)
}

// Classes of sites, in the order in which they stand: a site is wholly of one.
const (
	inCore      = iota
	inIn        // links lead to the core, to earlier sites of the class and to tubes and tendrils
	inOut       // is linked by the core, links to earlier sites of the class
	inTube      // is linked by IN, links to OUT
	inTendril   // is linked by IN, links to earlier sites of the class
	towardsOut  // links to OUT
	onIsland    // neither
	siteClasses // number of classes
)

// Parts of the rest, after what Meusel et al. found: .26 % tubes, 4.6 % tendrils,
// 5.8 % disconnected.
const (
	tubePart    = .03
	tendrilPart = .26
	towardsPart = .17
)

// classShares returns the shares of the pages that are on sites of each class, given
// the share of pages without links.
func (b BowTie) classShares(leaves float64) (share [siteClasses]float64) {
	share[inCore] = b.SCC / (1 - leaves)
	share[inIn] = b.In / (1 - leaves)
	share[inOut] = max(b.Out-leaves*share[inCore], 0)
	rest := max(1-share[inCore]-share[inIn]-share[inOut], 0)
	share[inTube] = tubePart * rest
	share[inTendril] = tendrilPart * rest
	share[towardsOut] = towardsPart * rest
	share[onIsland] = rest - share[inTube] - share[inTendril] - share[towardsOut]
	return share
}

// span is consecutive pages and the sites that they are on.
type span struct {
	page, pages uint64
	site, sites uint64
}

// classes says which sites are of which class: each class is a row of sites.
type classes [siteClasses]span

// newClasses divides the sites of a layout so that the pages of each class are as
// near its share as whole sites allow. The first site is in the core.
func newClasses(l Layout, nodes uint64, share [siteClasses]float64) *classes {
	var c classes
	until := 0.
	at := span{}
	for k := range c {
		until += share[k]
		end := l.Hosts()
		if k < siteClasses-1 && until < 1-1e-12 {
			end = nearestSite(l, uint64(until*float64(nodes)))
		}
		end = max(end, at.site)
		if k == inCore {
			end = max(end, 1)
		}
		page := nodes
		if end < l.Hosts() {
			page, _ = l.Span(end)
		}
		c[k] = span{page: at.page, pages: page - at.page, site: at.site, sites: end - at.site}
		at.page, at.site = page, end
	}
	return &c
}

// nearestSite returns the site whose first page is nearest to a page.
func nearestSite(l Layout, page uint64) uint64 {
	site := l.Host(page)
	first, pages := l.Span(site)
	if page-first > pages/2 {
		site++
	}
	return site
}

// classOfSite returns the class of a site.
func (c *classes) classOfSite(site uint64) int {
	k := 0
	for site >= c[k].site+c[k].sites && k < siteClasses-1 {
		k++
	}
	return k
}

// arrangeByClass puts sizes of sites, which were drawn independently, into an order in
// which the classes, rows of sites, have their shares: the greatest first, each
// into the class that has most room. Within a class the order is the drawn one.
func arrangeByClass(sizes []uint32, share [siteClasses]float64) {
	var total float64
	order := make([]int, len(sizes))
	for i, n := range sizes {
		total += float64(n)
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return sizes[order[i]] > sizes[order[j]] })
	class := make([]uint8, len(sizes))
	room := share
	for k := range room {
		room[k] *= total
	}
	for _, i := range order {
		best := 0
		for k := range room {
			if room[k] > room[best] {
				best = k
			}
		}
		class[i] = uint8(best)
		room[best] -= float64(sizes[i])
	}
	drawn := append([]uint32(nil), sizes...)
	at := 0
	for k := range uint8(siteClasses) {
		for i, n := range drawn {
			if class[i] == k {
				sizes[at] = n
				at++
			}
		}
	}
}

// choice is a class that links may lead to, with its share of the links. own means
// earlier sites of the class of the page itself.
type choice struct {
	class int
	upTo  uint32 // in units of 2^-32, of the sum of the shares so far
}

// linkChoices lists where the links between sites of each class lead. Those of a home
// page lead to the first, so that each site of the core, of IN and of the others
// that are named after where they lead has a way there.
func (c *classes) linkChoices() (list [siteClasses][]choice) {
	core, out := float64(c[inCore].pages), float64(c[inOut].pages)
	const toCore, toOwn = .8, .1
	weights := [siteClasses][]struct {
		class int
		share float64
	}{
		inCore:     {{inCore, core}, {inOut, out}},
		inIn:       {{inCore, toCore * core / (core + out)}, {inOut, toCore * out / (core + out)}, {inIn, toOwn}, {inTube, toOwn / 2}, {inTendril, toOwn / 2}},
		inOut:      {{inOut, 1}},
		inTube:     {{inOut, 1}},
		inTendril:  {{inTendril, 1}},
		towardsOut: {{inOut, 1}},
	}
	for k, w := range weights {
		sum, all := 0., 0.
		for _, x := range w {
			if c[x.class].sites > 0 {
				all += x.share
			}
		}
		for _, x := range w {
			if c[x.class].sites == 0 || x.share == 0 {
				continue
			}
			sum += x.share
			list[k] = append(list[k], choice{x.class, uint32(min(sum/all*(1<<32), 1<<32-1))})
		}
	}
	return list
}
