package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Cleaning says how epochs become times between batches.
type Cleaning struct {
	Batch         float64 // epochs at most so far from the one before belong to its batch
	Pause         float64 // longer gaps are pauses; 0: none, unless PauseQuantile is set
	PauseQuantile float64 // gaps beyond this quantile are pauses, such as 0.999
	Sort          bool    // put epochs into order however much they are out of it
}

// Gaps are the times between batches. A pause ends a run: the gap itself is
// left out and no correlation reaches over it.
type Gaps struct {
	Runs   [][]float64 // times between batches, in order
	Sizes  [][]int     // the batch that ends each time
	All    []int       // sizes of all batches
	Epochs int         // arrivals in all

	Late    int     // epochs that stood after a later one
	LateMax float64 // by so much at most

	Pauses   int     // gaps left out
	PauseMin float64 // they are longer than this
	Paused   float64 // time left out
}

// toleratedDisorder is the part of its span by which an epoch of a log of n may stand too
// late without an error: what is done at the same time is logged in any order.
// It is a hundredth; in short logs ten mean gaps, at most a fifth.
func toleratedDisorder(n int) float64 { return max(.01, min(.2, 10/float64(n))) }

// Gaps cleans the epochs of a log. Epochs are put into order; one that is far
// out of it, by a hundredth of the span, is an error that names the line, unless
// Sort is set.
func (t *Table) Gaps(c Cleaning) (*Gaps, error) {
	switch {
	case !(c.Batch >= 0) || !(c.Pause >= 0):
		return nil, fmt.Errorf("batch gap %g, pause %g: want 0 or more", c.Batch, c.Pause)
	case !(c.PauseQuantile >= 0 && c.PauseQuantile < 1):
		return nil, fmt.Errorf("pause quantile %g: want 0 (none) or less than 1", c.PauseQuantile)
	case len(t.Values) == 0:
		return nil, fmt.Errorf("no epochs")
	}
	g := &Gaps{}
	at, counts, err := g.orderedEpochs(t, c)
	if err != nil {
		return nil, err
	}
	var gaps []float64
	for i, v := range at {
		n := 1
		if counts != nil {
			n = counts[i]
		}
		g.Epochs += n
		if i == 0 {
			g.All = append(g.All, n)
			continue
		}
		if d := v - at[i-1]; d > c.Batch {
			gaps = append(gaps, d)
			g.All = append(g.All, n)
		} else {
			g.All[len(g.All)-1] += n
		}
	}
	if len(gaps) < 2 {
		return nil, fmt.Errorf("%d epochs make %d times between batches; at least two are needed", len(at), len(gaps))
	}
	g.splitAtPauses(gaps, c)
	if g.gapCount() < 2 {
		return nil, fmt.Errorf("%d times between batches are left without %d pauses; at least two are needed", g.gapCount(), g.Pauses)
	}
	return g, nil
}

// orderedEpochs returns the epochs in order and the counts, if there are any, with them.
func (g *Gaps) orderedEpochs(t *Table, c Cleaning) (at []float64, counts []int, err error) {
	at, counts = t.Values, t.Counts
	span := slices.Max(at) - slices.Min(at)
	last := 0
	for i, v := range at {
		if v >= at[last] {
			last = i
			continue
		}
		late := at[last] - v
		if late > toleratedDisorder(len(at))*span && !c.Sort {
			return nil, nil, fmt.Errorf("line %d: %s %.15g is before %.15g of line %d; sort the log", t.Lines[i], t.Column, v, at[last], t.Lines[last])
		}
		g.Late++
		g.LateMax = math.Max(g.LateMax, late)
	}
	if g.Late == 0 {
		return at, counts, nil
	}
	if counts == nil {
		return slices.Sorted(slices.Values(at)), nil, nil
	}
	rank := make([]int, len(at))
	for i := range rank {
		rank[i] = i
	}
	slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	sorted, moved := make([]float64, len(at)), make([]int, len(at))
	for i, r := range rank {
		sorted[i], moved[i] = at[r], counts[r]
	}
	return sorted, moved, nil
}

// splitAtPauses cuts the gaps at pauses.
func (g *Gaps) splitAtPauses(gaps []float64, c Cleaning) {
	g.PauseMin = c.Pause
	if c.PauseQuantile > 0 {
		s := slices.Sorted(slices.Values(gaps))
		g.PauseMin = s[min(int(c.PauseQuantile*float64(len(s))), len(s)-1)]
	}
	from := 0
	add := func(to int) {
		if to > from {
			g.Runs = append(g.Runs, gaps[from:to])
			g.Sizes = append(g.Sizes, g.All[from+1:to+1])
		}
	}
	for i, d := range gaps {
		if g.PauseMin > 0 && d > g.PauseMin {
			add(i)
			from = i + 1
			g.Pauses++
			g.Paused += d
		}
	}
	add(len(gaps))
}

// gapCount counts the times between batches.
func (g *Gaps) gapCount() int {
	n := 0
	for _, r := range g.Runs {
		n += len(r)
	}
	return n
}

// Sample returns all times between batches.
func (g *Gaps) Sample() (*Sample, error) {
	return NewSample(slices.Concat(g.Runs...))
}

// Lags returns the correlations of the times between batches at lags 1..n,
// over pairs of one run, and their standard errors by Bartlett's formula,
// sqrt((1 + 2 sum of squares of the shorter lags)/pairs). There may be fewer
// than n if no run is long enough.
func (g *Gaps) Lags(n int) (lags, stderr []float64) { return lagCorrelations(g.Runs, n) }

func lagCorrelations(runs [][]float64, n int) (lags, stderr []float64) {
	var count, mean, variance float64
	for _, r := range runs {
		for _, v := range r {
			count++
			mean += (v - mean) / count
		}
	}
	for _, r := range runs {
		for _, v := range r {
			variance += (v - mean) * (v - mean) / count
		}
	}
	squares := 0.0
	for k := 1; k <= n; k++ {
		var sum, pairs float64
		for _, r := range runs {
			for i := 0; i+k < len(r); i++ {
				sum += (r[i] - mean) * (r[i+k] - mean)
				pairs++
			}
		}
		if pairs == 0 || variance == 0 {
			break
		}
		rho := sum / pairs / variance
		lags = append(lags, rho)
		stderr = append(stderr, math.Sqrt((1+2*squares)/pairs))
		squares += rho * rho
	}
	return lags, stderr
}

// SizeLaw returns the shares of batches of 1, 2, ..., at most most; larger
// batches count as most and their number is returned too.
func (g *Gaps) SizeLaw(most int) (law []float64, larger int) {
	top := 1
	for _, k := range g.All {
		top = max(top, min(k, most))
		if k > most {
			larger++
		}
	}
	law = make([]float64, top)
	for _, k := range g.All {
		law[min(k, most)-1] += 1 / float64(len(g.All))
	}
	return law, larger
}

// cleaningHints say what in the gaps looks like pauses or batches that were not asked
// to be removed.
func (g *Gaps) cleaningHints(s *Sample, c Cleaning) []string {
	var words []string
	n := len(s.Sorted)
	if longest, usual := s.Sorted[n-1], s.Quantile(.99); c.Pause == 0 && c.PauseQuantile == 0 && longest > 50*usual {
		words = append(words, fmt.Sprintf("The longest time between batches, %.4g, is %.0f times the 0.99 quantile: if the robots paused then, leave it out by a pause quantile.", longest, longest/usual))
	}
	distinct := 1
	for i := 1; i < n; i++ {
		if s.Sorted[i] > s.Sorted[i-1]*(1+1e-6) {
			distinct++
		}
	}
	if n >= 200 && distinct*distinct < 4*n {
		words = append(words, fmt.Sprintf("Only %d different times between batches occur: the log's clock is coarse, and what came within one tick counts as one batch.", distinct))
	}
	if c.Batch == 0 {
		small := s.Moments[0] / 1000
		k, _ := slices.BinarySearch(s.Sorted, small)
		if k > n/20 {
			words = append(words, fmt.Sprintf("%.0f %% of the times between epochs are below a thousandth of their mean: if these are batches, give a batch gap of about %.2g.", 100*float64(k)/float64(n), small))
		}
	}
	return words
}
