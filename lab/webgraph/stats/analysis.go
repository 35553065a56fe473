package stats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/webgraph/powerlaw"
	"github.com/freshet/freshet/lab/webgraph/rank"
)

// Analysis is everything that is known of a graph. Figures that were skipped or
// cannot be known are nil.
type Analysis struct {
	Nodes       int64     `json:"nodes"`
	Links       int64     `json:"links"`
	MeanOut     float64   `json:"mean_out_degree"`
	InExponent  *float64  `json:"in_exponent"`
	OutExponent *float64  `json:"out_exponent"`
	InXmin      *int64    `json:"in_xmin"`
	OutXmin     *int64    `json:"out_xmin"`
	Clustering  *float64  `json:"clustering"` // Clustering.Local
	LargestSCC  *float64  `json:"largest_scc"`
	BowTie      *TieShare `json:"bow_tie"`
	Reciprocity float64   `json:"reciprocity"`
	IntraHost   *float64  `json:"intra_host"`

	MaxIn      int64        `json:"max_in_degree"`
	MaxOut     int64        `json:"max_out_degree"`
	NoIn       int64        `json:"no_in"`  // pages that nobody links to
	NoOut      int64        `json:"no_out"` // pages without links
	Loops      int64        `json:"loops"`
	InLaw      *LawFigures  `json:"in_law"`
	OutLaw     *LawFigures  `json:"out_law"`
	Strong     *int64       `json:"strong_components"`
	Weak       *int64       `json:"weak_components"`
	LargestWCC *float64     `json:"largest_wcc"`
	Closed     *Clustering  `json:"clustering_detail"`
	PageRank   *RankFigures `json:"pagerank"`
	Distances  *Distances   `json:"distances"`
	Core       *CoreFigures `json:"k_core"`
	Trawled    *Trawled     `json:"bipartite_cores"`
	Hosts      *HostFigures `json:"hosts"`
	HostLaw    *LawFigures  `json:"host_size_law"`

	Seed    uint64             `json:"seed"`
	Seconds map[string]float64 `json:"seconds"` // by step
	Skipped []string           `json:"skipped,omitempty"`
	Compare []Compared         `json:"profile,omitempty"`

	degrees    *Degrees
	sccSizes   []uint32 // descending, with how many there are
	sccCounts  []int64
	coreCounts []int64
}

// TieShare is the bow-tie in shares of the pages. Other is the sum of the last
// three.
type TieShare struct {
	SCC          float64 `json:"scc"`
	In           float64 `json:"in"`
	Out          float64 `json:"out"`
	Other        float64 `json:"other"`
	Tubes        float64 `json:"tubes"`
	Tendrils     float64 `json:"tendrils"`
	Disconnected float64 `json:"disconnected"`
}

// LawFigures are a power law and how far it is to be believed: of the value, or of
// the value plus a shift where that fits clearly better (powerlaw.FitBest).
type LawFigures struct {
	Exponent     float64          `json:"exponent"`
	StdErr       float64          `json:"std_err"`
	Shift        float64          `json:"shift"` // 0: the pure law
	Xmin         int64            `json:"xmin"`
	Tail         int64            `json:"tail"`
	Distance     float64          `json:"distance"`
	P            *float64         `json:"p"` // of the bootstrap; below .1 the law is rejected
	Replications int              `json:"replications"`
	Lognormal    *LognormalFigure `json:"lognormal"`
	Pure         *PureFigures     `json:"pure"` // the pure law, where it is not the one above
	law          powerlaw.Law
}

// PureFigures are the pure power law that fits best.
type PureFigures struct {
	Exponent float64 `json:"exponent"`
	StdErr   float64 `json:"std_err"`
	Xmin     int64   `json:"xmin"`
	Tail     int64   `json:"tail"`
	Distance float64 `json:"distance"`
}

// LognormalFigure is the lognormal law against the power law.
type LognormalFigure struct {
	Mu    float64 `json:"mu"`
	Sigma float64 `json:"sigma"`
	Ratio float64 `json:"log_likelihood_ratio"` // > 0: the power law fits better
	Vuong float64 `json:"vuong"`
	P     float64 `json:"p"` // that they fit alike
}

// RankFigures tell of PageRank.
type RankFigures struct {
	Damping  float64      `json:"damping"`
	Rounds   int          `json:"rounds"`
	Residual float64      `json:"residual"`
	Bound    float64      `json:"error_bound"`      // of the sum of the errors of all ranks
	Tau      *float64     `json:"tau_in_degree"`    // Kendall's tau-b with the in-degree
	TauPages int          `json:"tau_pages"`        // taken from so many pages
	Top      []RankedPage `json:"top"`              // the ten highest
	TopShare float64      `json:"top_percent_hold"` // share of all rank on the highest hundredth of the pages
	counts   []int64      // pages by rank times pages, in bins of bin
}

// RankedPage is a page with its rank.
type RankedPage struct {
	Page  uint32  `json:"page"`
	Rank  float64 `json:"rank"`
	Links int64   `json:"in_degree"`
}

// CoreFigures tell of k-cores.
type CoreFigures struct {
	Max   int   `json:"max"`
	Pages int64 `json:"pages"` // in the innermost core
}

// Steps of an analysis that can be skipped; degrees are always counted.
var stepNames = []string{"laws", "goodness", "components", "clustering", "pagerank", "distances", "cores", "trawl", "hosts"}

// Steps returns the names of the steps that can be skipped.
func Steps() []string { return slices.Clone(stepNames) }

// Options of an analysis. The zero value does everything.
type Options struct {
	Seed         uint64
	Workers      int
	Skip         []string      // of Steps
	Memory       int64         // bytes for counters of distances; 0: 4 GB
	Replications int           // of the bootstrap of each law; 0: 100
	Time         time.Duration // at most for each bootstrap; 0: 30 s
	Distances    DistanceOptions
	Clustering   ClusteringOptions
	Trawl        TrawlOptions
	// Progress is called with the current step and its progress.
	Progress func(step string, done, total int64)
}

// analyser carries an analysis through its steps.
type analyser struct {
	g   Graph
	opt Options
	a   *Analysis
	now string
}

// Analyse takes all steps one after another; what a step needs in addition to its
// result is given back before the next.
func Analyse(ctx context.Context, g Graph, opt Options) (*Analysis, error) {
	for _, s := range opt.Skip {
		if !slices.Contains(stepNames, s) {
			return nil, fmt.Errorf("no step %q to skip; there are %s", s, strings.Join(stepNames, ", "))
		}
	}
	if opt.Replications == 0 {
		opt.Replications = 100
	}
	if opt.Time == 0 {
		opt.Time = 30 * time.Second
	}
	x := &analyser{g: goroutineView(g), opt: opt, a: &Analysis{
		Nodes: int64(g.Nodes()), Links: g.Links(), Seed: opt.Seed, Seconds: map[string]float64{}, Skipped: opt.Skip,
	}}
	if x.a.Nodes > 0 {
		x.a.MeanOut = float64(x.a.Links) / float64(x.a.Nodes)
	}
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"degrees", x.analyzeDegrees},
		{"laws", x.fitLinkLaws},
		{"components", x.analyzeComponents},
		{"clustering", x.analyzeClustering},
		{"pagerank", x.pageRank},
		{"distances", x.analyzeDistances},
		{"cores", x.analyzeCores},
		{"trawl", x.analyzeTrawl},
		{"hosts", x.analyzeHosts},
	} {
		if slices.Contains(opt.Skip, s.name) {
			continue
		}
		x.now = s.name
		start := time.Now()
		if err := s.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		x.a.Seconds[s.name] = math.Round(time.Since(start).Seconds()*1000) / 1000
	}
	return x.a, nil
}

func (x *analyser) reportFraction(done, total int64) {
	if x.opt.Progress != nil {
		x.opt.Progress(x.now, done, total)
	}
}

func (x *analyser) analyzeDegrees(ctx context.Context) error {
	d, err := CountDegrees(ctx, x.g, x.reportFraction)
	if err != nil {
		return err
	}
	a := x.a
	a.degrees = d
	a.Reciprocity = d.Reciprocity()
	if v, known := d.IntraHost(); known {
		a.IntraHost = &v
	}
	a.MaxIn, a.MaxOut, a.NoIn, a.NoOut, a.Loops = d.MaxIn, d.MaxOut, d.NoIn, d.NoOut, d.Loops
	return nil
}

func (x *analyser) fitLinkLaws(ctx context.Context) (err error) {
	a := x.a
	if a.InLaw, err = x.fitPowerLaw(ctx, "in", a.degrees.In); err != nil {
		return err
	}
	if a.InLaw != nil {
		a.InExponent, a.InXmin = &a.InLaw.Exponent, &a.InLaw.Xmin
	}
	if a.OutLaw, err = x.fitPowerLaw(ctx, "out", a.degrees.Out); err != nil {
		return err
	}
	if a.OutLaw != nil {
		a.OutExponent, a.OutXmin = &a.OutLaw.Exponent, &a.OutLaw.Xmin
	}
	return nil
}

// fitPowerLaw fits a power law; nil if there is nothing to fit.
func (x *analyser) fitPowerLaw(ctx context.Context, what string, h *powerlaw.Histogram) (*LawFigures, error) {
	l, pure, err := powerlaw.FitBest(h)
	if errors.Is(err, powerlaw.ErrFew) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &LawFigures{Exponent: l.Exponent, StdErr: l.StdErr, Shift: l.Shift, Xmin: l.Xmin, Tail: l.Tail, Distance: l.Distance, law: l}
	if l.Shift != 0 && pure.Tail > 0 {
		f.Pure = &PureFigures{pure.Exponent, pure.StdErr, pure.Xmin, pure.Tail, pure.Distance}
	}
	c, err := powerlaw.CompareLognormal(h, l)
	if err != nil {
		return nil, err
	}
	f.Lognormal = &LognormalFigure{c.Mu, c.Sigma, c.Ratio, c.Vuong, c.P}
	if slices.Contains(x.opt.Skip, "goodness") {
		return f, nil
	}
	b := powerlaw.Bootstrap{Seed: rng.New(x.opt.Seed, "law", what).Uint64(), Replications: x.opt.Replications, Time: x.opt.Time}
	switch good, err := b.Test(ctx, h, l); {
	case err == nil:
		f.P, f.Replications = &good.P, good.Replications
	case !errors.Is(err, powerlaw.ErrFew):
		return nil, err
	}
	return f, nil
}

func (x *analyser) analyzeComponents(ctx context.Context) error {
	strong, err := Strong(ctx, x.g, x.reportFraction)
	if err != nil {
		return err
	}
	weak, err := Weak(ctx, x.g, x.reportFraction)
	if err != nil {
		return err
	}
	b, err := FindBowTie(ctx, x.g, strong, weak)
	if err != nil {
		return err
	}
	a, n := x.a, x.a.Nodes
	ns, nw := int64(len(strong.Sizes)), int64(len(weak.Sizes))
	a.Strong, a.Weak = &ns, &nw
	s, w := strong.Share(), weak.Share()
	a.LargestSCC, a.LargestWCC = &s, &w
	a.BowTie = &TieShare{
		SCC: quotientShare(b.Core, n), In: quotientShare(b.In, n), Out: quotientShare(b.Out, n), Other: quotientShare(b.Tubes+b.Tendrils+b.Disconnected, n),
		Tubes: quotientShare(b.Tubes, n), Tendrils: quotientShare(b.Tendrils, n), Disconnected: quotientShare(b.Disconnected, n),
	}
	a.sccSizes, a.sccCounts = strong.Histogram()
	return nil
}

func (x *analyser) analyzeClustering(ctx context.Context) error {
	o := x.opt.Clustering
	o.Seed, o.Workers = x.opt.Seed, x.opt.Workers
	c, err := FindClustering(ctx, x.g, o, x.reportFraction)
	if err != nil {
		return err
	}
	x.a.Closed, x.a.Clustering = &c, &c.Local
	return nil
}

func (x *analyser) analyzeDistances(ctx context.Context) (err error) {
	o := x.opt.Distances
	o.Seed, o.Workers = x.opt.Seed, x.opt.Workers
	if o.Memory == 0 {
		o.Memory = x.opt.Memory
	}
	x.a.Distances, err = FindDistances(ctx, x.g, o, x.reportFraction)
	return err
}

func (x *analyser) analyzeCores(ctx context.Context) error {
	c, err := FindCores(ctx, x.g, x.opt.Workers, x.reportFraction)
	if err != nil || len(c.Counts) == 0 {
		return err
	}
	x.a.coreCounts = c.Counts
	x.a.Core = &CoreFigures{Max: c.Max(), Pages: c.Counts[c.Max()]}
	return nil
}

func (x *analyser) analyzeTrawl(ctx context.Context) (err error) {
	x.a.Trawled, err = Trawl(ctx, x.g, x.opt.Trawl, x.reportFraction)
	return err
}

func (x *analyser) analyzeHosts(ctx context.Context) (err error) {
	if x.a.Hosts, err = FindHosts(ctx, x.g, x.reportFraction); err != nil || x.a.Hosts == nil {
		return err
	}
	x.a.HostLaw, err = x.fitPowerLaw(ctx, "hosts", x.a.Hosts.Pages)
	return err
}

// tauPages is from how many pages Kendall's tau is taken at most: its standard
// error is then below 0.001.
const tauPages = 1_000_000

func (x *analyser) pageRank(ctx context.Context) error {
	r, err := rank.PageRank(ctx, x.g, rank.Options{Workers: x.opt.Workers, Progress: func(round int, residual float64) {
		// The residual falls by the damping in each round.
		left := int64(max(0, math.Log(1e-9/residual)/math.Log(.85)))
		x.reportFraction(int64(round), int64(round)+left)
	}})
	if err != nil {
		return err
	}
	f := &RankFigures{Damping: r.Damping, Rounds: r.Rounds, Residual: r.Residual, Bound: r.Bound(), counts: make([]int64, bins)}
	x.a.PageRank = f
	n := len(r.Ranks)
	for u, v := range r.Ranks {
		f.counts[logBin(v*float64(n))]++
		if len(f.Top) < 10 || v > f.Top[9].Rank {
			i, _ := slices.BinarySearchFunc(f.Top, v, func(p RankedPage, v float64) int {
				if p.Rank >= v {
					return -1
				}
				return 1
			})
			f.Top = slices.Insert(f.Top, i, RankedPage{uint32(u), v, int64(len(x.g.In(uint32(u))))})
			f.Top = f.Top[:min(len(f.Top), 10)]
		}
	}
	f.TopShare = topShare(r.Ranks, f.counts, max(1, n/100))
	pages := make([]uint32, min(n, tauPages))
	random := rng.New(x.opt.Seed, "tau")
	ranks, links := make([]float64, len(pages)), make([]float64, len(pages))
	for i := range pages {
		u := uint32(i)
		if n > tauPages {
			u = random.Uint32N(uint32(n))
		}
		ranks[i], links[i] = r.Ranks[u], float64(len(x.g.In(u)))
	}
	f.TauPages = len(pages)
	tau, err := rank.Tau(ranks, links)
	if err != nil {
		return err
	}
	if !math.IsNaN(tau) {
		f.Tau = &tau
	}
	return nil
}

// Ranks, in units of the mean, are counted in bins a hundredth of a decade wide.
const (
	bins      = 1400
	perDecade = 100
	lowest    = -4 // decades
)

func logBin(v float64) int {
	if v <= 0 {
		return 0
	}
	return min(max(int((math.Log10(v)-lowest)*perDecade), 0), bins-1)
}

// topShare returns the share of all rank that is on the k highest pages: exact
// but for the bin in which the k-th lies.
func topShare(ranks []float64, counts []int64, k int) float64 {
	if len(ranks) == 0 {
		return 0
	}
	i, above := bins-1, int64(0)
	for ; i > 0 && above+counts[i] < int64(k); i-- {
		above += counts[i]
	}
	var sum float64
	var border []float64
	for _, v := range ranks {
		switch b := logBin(v * float64(len(ranks))); {
		case b > i:
			sum += v
		case b == i:
			border = append(border, v)
		}
	}
	slices.Sort(border)
	slices.Reverse(border)
	for _, v := range border[:min(len(border), k-int(above))] {
		sum += v
	}
	return sum
}
