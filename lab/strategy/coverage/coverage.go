// Package coverage judges the order in which a strategy fetches pages: which
// share of all PageRank, of all links and of the sites it has, after so many
// pages and after so many seconds; and how well the pages fetched so far tell
// the PageRank of the whole web.
//
// The last is Kendall's tau between the PageRank of the crawled part and that of
// the whole, over the pages crawled (Boldi, Santini and Vigna, Do your worst to
// make the best, 2004): an order that gathers much PageRank early need not be
// one whose ranks can be trusted.
package coverage

import (
	"context"
	"fmt"
	"math"

	"github.com/freshet/freshet/lab/strategy/run"
	"github.com/freshet/freshet/lab/webgraph/rank"
)

// Worth is what the pages of a web are worth, computed once for all strategies.
type Worth struct {
	web   run.Web
	Ranks []float64 // PageRank, sums to 1
}

// NewWorth computes the PageRank of a web.
func NewWorth(ctx context.Context, web run.Web, workers int, progress func(round int, residual float64)) (*Worth, error) {
	r, err := rank.PageRank(ctx, web, rank.Options{Tolerance: 1e-8, Workers: workers, Progress: progress})
	if err != nil {
		return nil, fmt.Errorf("PageRank of the web: %w", err)
	}
	return &Worth{web, r.Ranks}, nil
}

// Point is what a strategy has after some pages, as shares of the whole web.
type Point struct {
	Pages    int64   // different ones fetched
	Seconds  float64 // until all of them are fetched
	PageRank float64
	InLinks  float64 // links that lead to fetched pages
	Sites    float64 // with at least one page
	Complete float64 // sites with all their pages
}

// Recorder follows a run; Output is to be told every output.
type Recorder struct {
	worth    *Worth
	every    int64 // pages between points
	seen     []uint64
	left     []uint32 // pages of each site that are not fetched
	order    []uint32
	ranks    float64
	links    int64
	sites    int64
	complete int64
	last     float64
	Points   []Point
}

// NewRecorder returns a recorder that notes about so many points.
func NewRecorder(w *Worth, points int) *Recorder {
	r := &Recorder{worth: w, every: max(1, int64(w.web.Nodes()/max(1, points))), seen: make([]uint64, (w.web.Nodes()+63)/64)}
	r.left = make([]uint32, max(1, w.web.Sites()))
	r.left[0] = uint32(w.web.Nodes())
	for s := range w.web.Sites() {
		_, r.left[s] = w.web.SiteSpan(s)
	}
	r.Points = []Point{{}}
	return r
}

// Output notes a page; its signature is that of run.Options.Output. Pages that
// were output before only cost time.
func (r *Recorder) Output(u uint32, _ int64, end float64) {
	r.last = max(r.last, end)
	bit := uint64(1) << (u % 64)
	if r.seen[u/64]&bit != 0 {
		return
	}
	r.seen[u/64] |= bit
	r.order = append(r.order, u)
	r.ranks += r.worth.Ranks[u]
	web := r.worth.web
	r.links += int64(len(web.In(u)))
	site := 0
	if web.Sites() > 0 {
		site = web.Site(u)
	}
	size := uint32(web.Nodes())
	if web.Sites() > 0 {
		_, size = web.SiteSpan(site)
	}
	if r.left[site] == size {
		r.sites++
	}
	if r.left[site]--; r.left[site] == 0 {
		r.complete++
	}
	if int64(len(r.order))%r.every == 0 {
		r.recordPoint()
	}
}

func (r *Recorder) recordPoint() {
	sites := float64(len(r.left))
	r.Points = append(r.Points, Point{
		Pages: int64(len(r.order)), Seconds: r.last, PageRank: r.ranks, InLinks: float64(r.links) / math.Max(1, float64(r.worth.web.Links())),
		Sites: float64(r.sites) / sites, Complete: float64(r.complete) / sites,
	})
}

// Finish notes the last point.
func (r *Recorder) Finish() {
	if last := r.Points[len(r.Points)-1]; last.Pages < int64(len(r.order)) {
		r.recordPoint()
	}
}

// Summary is what a curve comes to.
type Summary struct {
	// PageRankAt is the share of PageRank at shares of the web's pages.
	PageRankAt map[string]float64 `json:"pagerank_at"`
	// SecondsAt is the simulated time at which the share of PageRank was had; a
	// share that was never had is missing.
	SecondsAt map[string]float64 `json:"seconds_at"`
	// Area is the mean of the share of PageRank over all pages: 1/2 for an order
	// that knows nothing.
	Area float64 `json:"area"`
	// Tau is Kendall's between the order and PageRank.
	Tau *float64 `json:"tau"`
	// SubgraphTau is Boldi's, at shares of the web's pages.
	SubgraphTau map[string]float64 `json:"subgraph_tau"`
}

// Shares are those at which curves are summed up.
func Shares() []float64 { return []float64{0.01, 0.05, 0.1, 0.25, 0.5} }

// Label writes a share as the keys of a summary do.
func Label(share float64) string { return fmt.Sprintf("%g", share) }

// Summary sums a finished run up. subgraphs reports whether to rank the crawled
// part at every share: as much work as ranking the web, each time.
func (r *Recorder) Summary(ctx context.Context, subgraphs bool) (*Summary, error) {
	s := &Summary{PageRankAt: map[string]float64{}, SecondsAt: map[string]float64{}, SubgraphTau: map[string]float64{}, Area: rank.Area(r.worth.Ranks, r.order)}
	got, err := rank.Gathered(r.worth.Ranks, r.order, Shares())
	if err != nil {
		return nil, err
	}
	n := float64(r.worth.web.Nodes())
	for i, share := range Shares() {
		if float64(len(r.order)) >= math.Round(share*n) {
			s.PageRankAt[Label(share)] = got[i]
		}
		for _, p := range r.Points {
			if p.PageRank >= share {
				s.SecondsAt[Label(share)] = p.Seconds
				break
			}
		}
	}
	tau, err := rank.TauOfOrder(r.worth.Ranks, r.order)
	if err != nil {
		return nil, err
	}
	if !math.IsNaN(tau) {
		s.Tau = &tau
	}
	if !subgraphs {
		return s, nil
	}
	for _, share := range Shares() {
		k := int(math.Round(share * n))
		if k < 2 || k > len(r.order) {
			continue
		}
		tau, err := r.worth.subgraphTau(ctx, r.order[:k])
		if err != nil {
			return nil, err
		}
		if !math.IsNaN(tau) {
			s.SubgraphTau[Label(share)] = tau
		}
	}
	return s, nil
}
