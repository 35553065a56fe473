package stats

import "context"

// Distances tells how many links apart pages are, over all ordered pairs of
// which the second can be reached from the first. Errors are standard errors;
// 0 if exact.
type Distances struct {
	// Pairs[t] is the number of pairs at most t links apart; Pairs[0] is the
	// number of pages, each with itself.
	Pairs []float64 `json:"-"`

	Reachable       float64 `json:"reachable"` // share of the pairs of different pages that are joined by links
	ReachableError  float64 `json:"reachable_error"`
	Mean            float64 `json:"mean"` // of the distances of such pairs
	MeanError       float64 `json:"mean_error"`
	Effective       float64 `json:"effective"` // 90 % of such pairs are as near; between whole numbers by interpolation
	EffectiveError  float64 `json:"effective_error"`
	Efficiency      float64 `json:"efficiency"` // mean of 1/distance over all pairs of different pages, 0 for those not joined
	EfficiencyError float64 `json:"efficiency_error"`
	Longest         int     `json:"longest"` // least number of links after which nothing more was reached: a lower bound unless exact
	Exact           bool    `json:"exact"`
	Runs            int     `json:"runs,omitempty"` // of HyperBall
	Log2Registers   int     `json:"log2_registers,omitempty"`
	CutOff          bool    `json:"cut_off,omitempty"` // ended by the bound on rounds: all figures are too small
}

// DistanceOptions bound the work.
type DistanceOptions struct {
	Exact         int64 // search from every page if pages x (pages + links) is at most this; 0: 10^9, -1: never
	Log2Registers int   // 4 to 12: registers a page; 0: as Memory allows, 8 at most
	Memory        int64 // bytes for registers; 0: 4 GB
	Runs          int   // independent runs for the standard errors; 0: 4, or 2 above 10 million links
	MaxRounds     int   // of a run; 0: 1000
	Seed          uint64
	Workers       int
}

// FindDistances searches from every page of a small graph and runs HyperBall on
// others.
func FindDistances(ctx context.Context, g Graph, opt DistanceOptions, tell Progress) (*Distances, error) {
	if opt.Exact == 0 {
		opt.Exact = 1e9
	}
	if opt.MaxRounds == 0 {
		opt.MaxRounds = 1000
	}
	n := int64(g.Nodes())
	if n == 0 {
		return &Distances{Exact: true}, nil
	}
	if work := float64(n) * float64(n+g.Links()); work <= float64(opt.Exact) {
		return searchAll(ctx, g, opt.Workers, tell)
	}
	return hyperBalls(ctx, g, opt, tell)
}

// searchAll searches breadth first from every page.
func searchAll(ctx context.Context, g Graph, workers int, tell Progress) (*Distances, error) {
	n := g.Nodes()
	found := make([][]int64, max(1, workers)) // new pages at each distance
	blocks := (n + 63) / 64                   // small units: a search may take long
	err := parallelUnits(ctx, blocks, workers, tell, func(w, b int) {
		seen := make([]uint32, n)
		g := goroutineView(g)
		var queue, later []uint32
		for s := b * 64; s < min((b+1)*64, n) && ctx.Err() == nil; s++ {
			mark := uint32(s - b*64 + 1)
			seen[s] = mark
			queue = append(queue[:0], uint32(s))
			for t := 0; len(queue) > 0; t++ {
				for len(found[w]) <= t {
					found[w] = append(found[w], 0)
				}
				found[w][t] += int64(len(queue))
				later = later[:0]
				for _, u := range queue {
					for _, v := range g.Out(u) {
						if seen[v] != mark {
							seen[v] = mark
							later = append(later, v)
						}
					}
				}
				queue, later = later, queue
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var pairs []float64
	for _, f := range found {
		for t, c := range f {
			for len(pairs) <= t {
				pairs = append(pairs, 0)
			}
			pairs[t] += float64(c)
		}
	}
	for t := 1; t < len(pairs); t++ {
		pairs[t] += pairs[t-1]
	}
	d := summarizeDistances(pairs, n)
	d.Exact = true
	return &d, nil
}

// summarizeDistances makes the figures from the number of pairs within each distance.
func summarizeDistances(pairs []float64, n int) Distances {
	d := Distances{Pairs: pairs, Longest: len(pairs) - 1}
	all := pairs[len(pairs)-1]
	others := all - pairs[0]
	if others <= 0 || n < 2 {
		return d
	}
	d.Reachable = min(others/(float64(n)*float64(n-1)), 1)
	var sum, inverse float64
	for t := 1; t < len(pairs); t++ {
		at := pairs[t] - pairs[t-1]
		sum += float64(t) * at
		inverse += at / float64(t)
	}
	d.Mean = sum / others
	d.Efficiency = inverse / (float64(n) * float64(n-1))
	goal := pairs[0] + .9*others
	for t := 1; t < len(pairs); t++ {
		if pairs[t] >= goal {
			d.Effective = float64(t-1) + (goal-pairs[t-1])/(pairs[t]-pairs[t-1])
			break
		}
	}
	return d
}
