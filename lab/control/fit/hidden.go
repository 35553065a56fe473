package fit

import (
	"context"
	"math"
	"slices"
)

// run is one run of times between batches with what each round needs of them.
type run struct {
	x, lx []float64
	size  []int
}

// block is how many neighbouring times represent a part of a long log.
const block = 2000

// sampledRuns takes over the times between batches, about most of them: a longer log
// is represented by blocks spread evenly over it.
func (g *Gaps) sampledRuns(most int) (out []run, used int) {
	take := func(i, from, to int) {
		part := run{x: g.Runs[i][from:to], size: g.Sizes[i][from:to], lx: make([]float64, to-from)}
		for t, v := range part.x {
			part.lx[t] = math.Log(v)
		}
		out = append(out, part)
		used += to - from
	}
	n := g.gapCount()
	if n <= most {
		for i, r := range g.Runs {
			take(i, 0, len(r))
		}
		return out, used
	}
	seen := 0
	for i, r := range g.Runs {
		for from := 0; from < len(r); from += block {
			to := min(from+block, len(r))
			seen += to - from
			if float64(used) < float64(most)*float64(seen)/float64(n) {
				take(i, from, to)
			}
		}
	}
	return out, used
}

// scratch is the memory of a round, used again by the next.
type scratch struct {
	like, alpha, scale []float64
}

// resizeScratch makes room for n times of m regimes.
func (s *scratch) resizeScratch(n, m int) {
	if cap(s.like) < n*m {
		s.like, s.alpha = make([]float64, n*m), make([]float64, n*m)
	}
	if cap(s.scale) < n {
		s.scale = make([]float64, n)
	}
	s.like, s.alpha, s.scale = s.like[:n*m], s.alpha[:n*m], s.scale[:n]
}

// sums are what a round of expectation collects.
type sums struct {
	time, log, count []float64 // of each regime: sums of x, ln x and 1
	move             [][]float64
	sizes            [][]float64
}

// forwardPass fills like and alpha of a run and returns its logarithmic likelihood.
func (g *regimes) forwardPass(r *run, s *scratch, start, base []float64, logSize [][]float64) float64 {
	m, n := len(g.Order), len(r.x)
	s.resizeScratch(n, m)
	var ll float64
	product := 1.0 // of scales: one logarithm for many of them
	for t, x := range r.x {
		like := s.like[t*m : t*m+m]
		top := math.Inf(-1)
		for i := range like {
			like[i] = base[i] + (g.Order[i]-1)*r.lx[t] - g.Rate[i]*x
			if logSize != nil {
				like[i] += logSize[i][r.size[t]-1]
			}
			top = math.Max(top, like[i])
		}
		alpha := s.alpha[t*m : t*m+m]
		var total float64
		for i := range like {
			like[i] = math.Exp(like[i] - top)
			p := start[i]
			if t > 0 {
				p = 0
				before := s.alpha[(t-1)*m : t*m]
				for j, a := range before {
					p += a * g.Move[j][i]
				}
			}
			alpha[i] = p * like[i]
			total += alpha[i]
		}
		if !(total > 0) { // no regime that can be reached explains the time
			copy(alpha, like)
			ll += math.Log(math.SmallestNonzeroFloat64)
			total = 0
			for _, v := range alpha {
				total += v
			}
		}
		for i := range alpha {
			alpha[i] /= total
		}
		s.scale[t] = total
		ll += top
		if product *= total; product < 1e-100 || product > 1e100 {
			ll += math.Log(product)
			product = 1
		}
	}
	return ll + math.Log(product)
}

// backwardPass adds the expectations of a run to e.
func (g *regimes) backwardPass(r *run, s *scratch, e *sums) {
	m := len(g.Order)
	beta, next := make([]float64, m), make([]float64, m)
	for i := range beta {
		beta[i] = 1
	}
	for t := len(r.x) - 1; t >= 0; t-- {
		alpha := s.alpha[t*m : t*m+m]
		for i, a := range alpha {
			p := a * beta[i]
			e.count[i] += p
			e.time[i] += p * r.x[t]
			e.log[i] += p * r.lx[t]
			if e.sizes != nil {
				e.sizes[i][r.size[t]-1] += p
			}
		}
		if t == 0 {
			break
		}
		like, before := s.like[t*m:t*m+m], s.alpha[(t-1)*m:t*m]
		for j := range beta {
			beta[j] *= like[j] / s.scale[t]
		}
		for i := range next {
			var sum float64
			for j, b := range beta {
				p := g.Move[i][j] * b
				sum += p
				e.move[i][j] += before[i] * p
			}
			next[i] = sum
		}
		beta, next = next, beta
	}
}

// densityConstants returns what does not depend on the times: the long-run law of the
// regimes, constants of the densities, logarithms of the size laws.
func (g *regimes) densityConstants() (start, base []float64, logSize [][]float64) {
	start = stationaryProbabilities(g.Move)
	for i, o := range g.Order {
		lg, _ := math.Lgamma(o)
		base = append(base, o*math.Log(g.Rate[i])-lg)
	}
	for _, law := range g.Sizes {
		l := make([]float64, len(law))
		for k, v := range law {
			l[k] = math.Log(v)
		}
		logSize = append(logSize, l)
	}
	return start, base, logSize
}

// runsLikelihood returns the logarithmic likelihood of the runs.
func (g *regimes) runsLikelihood(runs []run, s *scratch) float64 {
	start, base, logSize := g.densityConstants()
	var ll float64
	for i := range runs {
		ll += g.forwardPass(&runs[i], s, start, base, logSize)
	}
	return ll
}

// rarest is the least probability of a move or a batch size during estimation:
// one that vanishes can never come back, and makes the chain reducible.
const rarest = 1e-9

// regimeEMStep does one round of expectation-maximisation (Baum, Welch) in place and
// returns the logarithmic likelihood before it. With fixed orders only rates
// and moves are estimated. The law at the start of a run is the long-run one,
// which is not maximised over: with few runs it hardly matters.
func (g *regimes) regimeEMStep(runs []run, s *scratch, fixed bool, maxOrder float64) float64 {
	m := len(g.Order)
	e := &sums{time: make([]float64, m), log: make([]float64, m), count: make([]float64, m), move: zeroRows(m)}
	for _, law := range g.Sizes {
		e.sizes = append(e.sizes, make([]float64, len(law)))
	}
	start, base, logSize := g.densityConstants()
	var ll float64
	for i := range runs {
		ll += g.forwardPass(&runs[i], s, start, base, logSize)
		g.backwardPass(&runs[i], s, e)
	}
	for i := range m {
		floorProbabilities(e.move[i])
		g.Move[i] = e.move[i]
		if e.sizes != nil {
			floorProbabilities(e.sizes[i])
			g.Sizes[i] = e.sizes[i]
		}
		if e.count[i] < 1e-6 || e.time[i] <= 0 {
			continue // an empty regime stays where it is
		}
		mean := e.time[i] / e.count[i]
		if !fixed {
			g.Order[i] = gammaShape(math.Log(mean)-e.log[i]/e.count[i], maxOrder)
		}
		g.Rate[i] = g.Order[i] / mean
	}
	return ll
}

// floorProbabilities makes counts probabilities of at least rarest.
func floorProbabilities(p []float64) {
	var sum float64
	for _, v := range p {
		sum += v
	}
	if !(sum > 0) {
		for i := range p {
			p[i] = 1
		}
		sum = float64(len(p))
	}
	for i := range p {
		p[i] = math.Max(p[i]/sum, rarest)
	}
	normalizeSum(p)
}

// climbLikelihood does rounds until the likelihood rises by less than gain a value.
func (g *regimes) climbLikelihood(ctx context.Context, runs []run, s *scratch, fixed bool, maxOrder float64, rounds int, gain float64) (float64, error) {
	n := 0
	for i := range runs {
		n += len(runs[i].x)
	}
	last := math.Inf(-1)
	for range rounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		ll := g.regimeEMStep(runs, s, fixed, maxOrder)
		if ll-last < gain*float64(n) {
			return ll, nil
		}
		last = ll
	}
	return last, nil
}

// guessRegimes makes m regimes to start from: times are put into m classes of equal
// number by their moving geometric mean over width neighbours.
func guessRegimes(runs []run, m, width int) *regimes {
	var means []float64
	smooth := make([][]float64, len(runs))
	for k, r := range runs {
		smooth[k] = movingMeans(r.lx, width)
		means = append(means, smooth[k]...)
	}
	slices.Sort(means)
	cuts := make([]float64, m-1)
	for i := range cuts {
		cuts[i] = means[(i+1)*len(means)/m]
	}
	g := &regimes{Order: make([]float64, m), Rate: make([]float64, m), Move: zeroRows(m)}
	count, time, logs := make([]float64, m), make([]float64, m), make([]float64, m)
	for k, r := range runs {
		before := -1
		for t, v := range smooth[k] {
			class, _ := slices.BinarySearch(cuts, v)
			count[class]++
			time[class] += r.x[t]
			logs[class] += r.lx[t]
			if before >= 0 {
				g.Move[before][class]++
			}
			before = class
		}
	}
	for i := range m {
		for j := range m {
			g.Move[i][j]++
		}
		normalizeSum(g.Move[i])
		mean, spread := 1.0, 0.0
		if count[i] > 0 && time[i] > 0 {
			mean = time[i] / count[i]
			spread = math.Log(mean) - logs[i]/count[i]
		}
		g.Order[i] = gammaShape(math.Max(spread, 1e-3), 20)
		g.Rate[i] = g.Order[i] / mean
	}
	return g
}

// movingMeans returns the means of up to width neighbours around each value.
func movingMeans(x []float64, width int) []float64 {
	sum := make([]float64, len(x)+1)
	for i, v := range x {
		sum[i+1] = sum[i] + v
	}
	out := make([]float64, len(x))
	for i := range x {
		from, to := max(0, i-width/2), min(len(x), i+(width+1)/2)
		out[i] = (sum[to] - sum[from]) / float64(to-from)
	}
	return out
}

// searchRegimes fits m regimes of at most maxOrder phases in all. It starts from
// several guesses, estimates orders as real numbers, rounds them, and then
// tries each one up and one down.
func searchRegimes(ctx context.Context, runs []run, m, maxOrder int, more ...*regimes) (*regimes, error) {
	s := &scratch{}
	var best *regimes
	top := math.Inf(-1)
	starts := more
	for _, width := range []int{1, 5, 25, 125} {
		starts = append(starts, guessRegimes(runs, m, width))
	}
	most := float64(maxOrder)
	for _, g := range starts {
		ll, err := g.climbLikelihood(ctx, runs, s, false, most, 25, 1e-5)
		if err != nil {
			return nil, err
		}
		if ll > top {
			best, top = g, ll
		}
	}
	if _, err := best.climbLikelihood(ctx, runs, s, false, most, 300, 1e-6); err != nil {
		return nil, err
	}
	roundOrders(best.Order, best.Rate, maxOrder)
	top, err := best.climbLikelihood(ctx, runs, s, true, most, 100, 1e-6)
	if err != nil {
		return nil, err
	}
	for i := range m {
		for _, step := range []float64{1, -1} {
			try := best.cloneRegimes()
			o := try.Order[i] + step
			try.Rate[i] *= o / try.Order[i]
			try.Order[i] = o
			if o < 1 || try.totalPhases() > maxOrder {
				continue
			}
			ll, err := try.climbLikelihood(ctx, runs, s, true, most, 30, 1e-6)
			if err != nil {
				return nil, err
			}
			if ll > top+1e-6 {
				best, top = try, ll
				break
			}
		}
	}
	return best, nil
}
