package freshness

import (
	"math"
	"strings"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Importance weighs pages: by their source, by links and by opened results. The
// weights are set before it is used and not changed afterwards.
type Importance struct {
	Clicks *Clicks
	// Popularity returns a number from 0 to 1 that grows with the links to a page;
	// nil counts none.
	Popularity func(u weburl.URL, depth int) float64

	weights []sourceWeight
}

// sourceWeight is a source whose pages count more or less than others.
type sourceWeight struct {
	host, prefix string
	weight       float64
}

// SetWeight sets the weight of a source's pages; the default is 1.
func (m *Importance) SetWeight(source weburl.URL, weight float64) {
	m.weights = append(m.weights, sourceWeight{source.Host(), source.String(), weight})
}

// Of returns what a page's freshness is worth:
//
//	weight (1/4 + popularity) (1 + log2(1 + clicks))
func (m *Importance) Of(p *store.Page, u weburl.URL) float64 {
	popularity := 0.
	if m.Popularity != nil {
		popularity = m.Popularity(u, p.Depth)
	}
	return m.sourceWeight(u) * (.25 + popularity) * (1 + math.Log2(1+m.Clicks.Count(p.URL)))
}

// sourceWeight returns the weight of the source with the longest address that the page
// begins with, on the same host; 1 by default.
func (m *Importance) sourceWeight(u weburl.URL) float64 {
	best, length := 1., -1
	for _, w := range m.weights {
		if w.host == u.Host() && len(w.prefix) > length && strings.HasPrefix(u.String(), w.prefix) {
			best, length = w.weight, len(w.prefix)
		}
	}
	return best
}

// VisitCost returns about how many bytes a visit takes: headers, and the body
// unless the server can say that it has not changed.
func VisitCost(p *store.Page) float64 {
	const headers = 700
	body := float64(p.Bytes)
	if p.ETag != "" || p.LastModified != "" {
		changed := 1.
		if p.History.Visits > 0 {
			changed = min(1, (p.History.Changes+.5)/(p.History.Visits+1))
		}
		body *= changed
	}
	return headers + body
}
