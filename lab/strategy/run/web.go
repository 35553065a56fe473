// Package run executes checked strategies on a stored web. A program becomes
// closures, specialised by what their operands are: some 10 ns a turn of a
// loop, where an interpreter that walks the tree needs several times as much.
package run

import (
	"fmt"
	"math"
	"strings"

	"github.com/freshet/freshet/internal/rng"
)

// Web is the graph that a strategy runs on. Pages are numbered from 0; a site
// is a range of consecutive pages.
type Web interface {
	Nodes() int
	Links() int64
	Out(u uint32) []uint32
	In(u uint32) []uint32
	Sites() int // 0: the graph does not tell sites; then all pages are on one
	Site(u uint32) int
	SiteSpan(site int) (first, pages uint32)
}

// Pages says what a page is like beyond its links.
type Pages interface {
	URL(u uint32) string
	Size(u uint32) int64 // bytes
	Contains(u uint32, word string) bool
}

// Synthetic gives the pages of a graph properties that are functions of the
// seed, since a graph holds none. Sizes are lognormal with median 10 KB, at
// least 200 bytes (mean 17 KB). Each word has topical sites, one in twenty: half of their
// pages contain it, and one page in a hundred elsewhere.
type Synthetic struct {
	Web  Web
	Seed uint64
}

// Median and shape of the sizes of pages, and how words are spread.
const (
	sizeMedian    = 10_000
	sizeSigma     = 1.0
	sizeLeast     = 200
	topicalSites  = 0.05
	topicalPages  = 0.5
	elsewherePage = 0.01
)

// URL implements Pages.
func (s Synthetic) URL(u uint32) string {
	site, at := 0, u
	if s.Web.Sites() > 0 {
		site = s.Web.Site(u)
		first, _ := s.Web.SiteSpan(site)
		at = u - first
	}
	if at == 0 {
		return fmt.Sprintf("http://s%d.test/", site)
	}
	return fmt.Sprintf("http://s%d.test/%d.html", site, at)
}

// Size implements Pages. A normal deviate is made of the sum of twelve uniform
// ones of 5 bits (two hashes are not needed): fast, and close enough for sizes.
func (s Synthetic) Size(u uint32) int64 {
	h := rng.Mix(s.Seed^0x517e, uint64(u))
	sum := 0.0
	for range 12 {
		sum += float64(h&31) + .5
		h >>= 5
	}
	return max(sizeLeast, int64(sizeMedian*math.Exp(sizeSigma*(sum/32-6))))
}

// Contains implements Pages.
func (s Synthetic) Contains(u uint32, word string) bool {
	h := s.Seed
	for _, c := range []byte(strings.ToLower(word)) {
		h = rng.Mix(h, uint64(c))
	}
	site := uint64(0)
	if s.Web.Sites() > 0 {
		site = uint64(s.Web.Site(u))
	}
	p := elsewherePage
	if rng.Unit(rng.Mix(h^0x701c, site)) < topicalSites {
		p = topicalPages
	}
	return rng.Unit(rng.Mix(h, uint64(u))) < p
}
