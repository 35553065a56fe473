package gen

import (
	"math"
	"slices"

	"github.com/freshet/freshet/internal/rng"
)

// appendSiteLinks appends n < pages links to documents of the site.
func (h *HostLocal) appendSiteLinks(u uint64, at *place, n uint64, buf []uint64) []uint64 {
	doc, from := u-at.first, len(buf)
	put := func(d uint64) {
		if n > 0 && d < at.pages && d != doc {
			buf = append(buf, d)
			n--
		}
	}
	if n >= at.pages-1 { // all there are
		for d := range at.pages {
			put(d)
		}
	}
	for c := doc*h.fan + 1; c <= doc*h.fan+h.fan && c < at.pages; c++ {
		put(c)
	}
	if doc > 0 {
		up := (doc - 1) / h.fan
		if uint32(rng.Mix(h.seeds[seedInner], u)) < at.law.home {
			up = 0
		}
		put(up)
	}
	if n > 0 {
		buf = h.appendDrawnDocuments(u, doc, at, n, buf[from:], buf)
	}
	for i := range buf[from:] {
		buf[from+i] += at.first
	}
	return buf
}

// appendDrawnDocuments appends n documents that are none of tree and not doc, each once. Pages of
// a section of a site have links in common, and sections have sections: link i
// leads to a document of the same level for all pages, and to the same document for
// all documents of an aligned block, which is as large as so well-known documents
// need.
func (h *HostLocal) appendDrawnDocuments(u, doc uint64, at *place, n uint64, tree, buf []uint64) []uint64 {
	if n > 64 {
		return h.spreadOut(u, doc, at, n, tree, buf)
	}
	from := len(buf) - len(tree)
	site := rng.Mix(h.seeds[seedInner], ^at.first)
	for i := range n {
		key := rng.Mix(site, i)
		level, low, high := at.law.massLevel(uint32(site) + uint32(i)*golden)
		x := rng.Mix(key, doc>>level)
		d := at.law.documentOfMass(low+uint32(uint64(high-low)*(x>>32)>>32), at.pages)
		for d == doc || slices.Contains(buf[from:], d) {
			if d++; d == at.pages {
				d = 0
			}
		}
		buf = append(buf, d)
	}
	return buf
}

// golden spreads the levels of the links of a site: 2^32 times the golden section.
const golden = 0x9e3779b9

// spreadOut is drawn for many documents: one of each n-th part of the law, moved
// up where it is taken.
func (h *HostLocal) spreadOut(u, doc uint64, at *place, n uint64, tree, buf []uint64) []uint64 {
	key := rng.Mix(h.seeds[seedInner], u)
	step := math.MaxUint32 / n
	next := uint64(0)
	for i := range n {
		x := i*step + scaleBelow(rng.Mix(key, i), step)
		d := max(next, min(at.law.documentOfMass(uint32(x), at.pages), at.pages-min(at.pages, n-i)))
		for d == doc || slices.Contains(tree, d) {
			d++
		}
		if d >= at.pages {
			break
		}
		buf = append(buf, d)
		next = d + 1
	}
	return buf
}
