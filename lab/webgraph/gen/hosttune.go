package gen

import (
	"errors"
	"fmt"
	"math"
	"sort"
)

// The number of links to a page is the sum of those from its site and those from
// others. Neither is exactly what is wanted: documents are linked by whole blocks of
// pages, new targets are copied by chance, and small sites have no room for many. So
// the links of a web are counted, and what is wanted is corrected until the counts
// have the law that is asked for. Webs of more than calibration pages take the
// corrections of one of so many, with sites of the same mean size.

const (
	tuneRounds = 8
	tuneTail   = 40 // pages by which a quantile must be exceeded to be corrected
	eager      = .9 // power of the correction that is found
)

// tuneSiteLaws makes the laws of sites and sets the share of links that are meant for other
// sites.
func (h *HostLocal) tuneSiteLaws(law *Law, o HostLocalOptions) error {
	h.wanted = &quantiles{law: law, factor: make([]float64, sizeClass(uint64(law.Most))+1)}
	for i := range h.wanted.factor {
		h.wanted.factor[i] = 1
	}
	if h.nodes > calibration {
		h.drawLaws(o.Degree)
		if err := h.meanFor(o.Intra); err != nil {
			return err
		}
		like, err := h.calibrationModel(o)
		if err != nil {
			return err
		}
		for i := range h.wanted.factor {
			h.wanted.factor[i] = like.wanted.factor[min(i, len(like.wanted.factor)-1)]
		}
	}
	if err := h.makeSiteLaws(o); err != nil || h.nodes > calibration {
		return err
	}
	for range tuneRounds {
		inner := h.correctTargets()
		h.drawLaws(o.Degree)
		if inner > 0 {
			h.cross = 1 - (1-h.cross)*min(max(h.intra/inner, .5), 1.5)
		}
		h.drawKnown()
	}
	return h.makeSiteLaws(o)
}

// makeSiteLaws makes the laws of sites from what is wanted.
func (h *HostLocal) makeSiteLaws(o HostLocalOptions) error {
	h.drawLaws(o.Degree)
	if err := h.calibrateOutside(o.Intra); err != nil {
		return err
	}
	h.drawKnown()
	return nil
}

// calibrationModel returns a web of calibration pages of the same kind.
func (h *HostLocal) calibrationModel(o HostLocalOptions) (*HostLocal, error) {
	sites := uint64(calibration) * h.layout.Hosts() / h.nodes
	layout, err := drawSiteTable(calibration, int64(max(sites, 1)), siteExponent, o.BowTie.classShares(o.BowTie.leafShare()), o.Seed)
	if err != nil {
		return nil, fmt.Errorf("model of the web: %w", err)
	}
	o.Nodes = calibration
	like, err := NewHostLocal(o, layout)
	var impossible *IntraError
	if errors.As(err, &impossible) { // not with the sites there: the default or the next to it that is
		o.Intra = 0
		like, err = NewHostLocal(o, layout)
	}
	return like, err
}

// correctTargets compares the numbers of links to pages with the law and corrects what is
// wanted. It returns the share of links on the site.
func (h *HostLocal) correctTargets() (inner float64) {
	counts := make([]uint32, h.nodes)
	local, all := 0., 0.
	at := h.placeOf(0)
	var buf []uint64
	for u := range h.nodes {
		if u-at.first >= at.pages {
			at = h.placeOf(at.site + 1)
		}
		buf = h.appendSuccessors(u, &at, buf[:0])
		for _, v := range buf {
			counts[v]++
			if v-at.first < at.pages {
				local++
			}
		}
		all += float64(len(buf))
	}
	of := degreeHistogram(counts)
	var links []float64 // in descending order; at least links[i] have rows[i] pages
	for d := range of {
		links = append(links, float64(d))
	}
	sort.Sort(sort.Reverse(sort.Float64Slice(links)))
	rows, sum := make([]float64, len(links)), 0.
	for i, d := range links {
		sum += float64(of[int64(d)])
		rows[i] = sum
	}
	h.wanted.correctQuantiles(links, rows)
	return local / max(all, 1)
}

// correctQuantiles moves what is wanted from the quantiles that came out towards those of the
// law: rows[i] pages have at least links[i] links, descending.
func (w *quantiles) correctQuantiles(links, rows []float64) {
	last := 0.
	for i := range w.factor {
		d := math.Pow(2, float64(i)/perOctave)
		want := rows[len(rows)-1] * math.Pow(1+(d-1)/w.law.Scale, -(w.law.Exponent-1))
		k := sort.SearchFloat64s(rows, want)
		if k == 0 || k == len(rows) || rows[k] < tuneTail || links[k] == 0 || d > float64(w.law.Most) {
			if last > 0 {
				w.factor[i] *= last
			}
		} else {
			t := math.Log(want/rows[k-1]) / math.Log(rows[k]/rows[k-1])
			got := links[k-1] * math.Pow(links[k]/links[k-1], t)
			last = min(max(math.Pow(d/got, eager), .3), 3)
			w.factor[i] *= last
		}
		w.factor[i] = min(max(w.factor[i], .05), 20)
		if i > 0 { // the wanted numbers ascend
			w.factor[i] = max(w.factor[i], w.factor[i-1]/math.Pow(2, 1./perOctave)*1.0001)
		}
	}
}
