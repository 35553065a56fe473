package gen

import (
	"fmt"
	"sort"

	"github.com/freshet/freshet/internal/rng"
)

// Layout says which site each page is on: sites are numbered from 0 and their
// pages are consecutive.
type Layout interface {
	// Hosts returns the number of sites.
	Hosts() uint64
	// Host returns the site of a page.
	Host(page uint64) uint64
	// Span returns the first page of a site and the number of its pages.
	Span(site uint64) (first, pages uint64)
}

// Table is a layout by a table of the first pages of sites, and the end.
type Table []uint32

// Hosts returns the number of sites.
func (t Table) Hosts() uint64 { return uint64(len(t) - 1) }

// Host returns the site of a page.
func (t Table) Host(page uint64) uint64 {
	return uint64(sort.Search(len(t), func(i int) bool { return uint64(t[i]) > page }) - 1)
}

// Span returns the first page of a site and the number of its pages.
func (t Table) Span(site uint64) (first, pages uint64) {
	return uint64(t[site]), uint64(t[site+1] - t[site])
}

// pagesPerSite is the mean number of pages of a site where nothing else is asked.
const pagesPerSite = 64

// drawSiteTable divides pages among about sites sites by a power law (Huberman and
// Adamic, Nature 401, 1999). None has more than a hundredth of all pages, or in
// small webs forty times the mean and a quarter of the pages, so that no site is
// the web.
//
// They are ordered by classes with the given shares.
func drawSiteTable(pages, sites int64, exponent float64, share [siteClasses]float64, seed uint64) (Table, error) {
	if sites <= 1 {
		return Table{0, uint32(pages)}, nil
	}
	mean := float64(pages) / float64(sites)
	most := min(pages, max(pages/100, min(pages/4, int64(40*mean)), int64(mean)+1))
	law, err := NewLaw(exponent, mean, 1, uint32(most))
	if err != nil {
		return nil, fmt.Errorf("sizes of sites: %w", err)
	}
	src := rng.Source(seed, "sites")
	sizes := make([]uint32, 0, sites+sites/8+2)
	for at := int64(0); at < pages; {
		n := min(int64(law.Draw(src.Uint64())), pages-at)
		sizes = append(sizes, uint32(n))
		at += n
	}
	arrangeByClass(sizes, share)
	t := make(Table, 1, len(sizes)+1)
	for i, n := range sizes {
		t = append(t, t[i]+n)
	}
	return t, nil
}
