package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// ArrivalOptions bound the search. Zero values mean the defaults.
type ArrivalOptions struct {
	Cleaning
	Regimes  int // at most; default 6
	Order    int // phases at most; default 30
	Lags     int // correlations looked at; default 10
	MaxBatch int // largest batch of the process, larger ones count as it; default 50

	// Progress, if not nil, is called with the name of the next fit.
	Progress func(what string)
}

func (o *ArrivalOptions) setArrivalDefaults() error {
	for _, v := range []struct {
		value    *int
		name     string
		or, most int
	}{{&o.Regimes, "regimes", 6, 20}, {&o.Order, "order", 30, MaxOrder}, {&o.Lags, "lags", 10, 1000}, {&o.MaxBatch, "largest batch", 50, 1000}} {
		if err := setBoundedOption(v.name, v.value, v.or, v.most); err != nil {
			return err
		}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return nil
}

// setBoundedOption sets a default and checks the bounds of an option: the matrices of
// order n and batches up to K take n^2 K numbers.
func setBoundedOption(name string, v *int, or, most int) error {
	if *v == 0 {
		*v = or
	}
	if *v < 1 || *v > most {
		return fmt.Errorf("%s: %d is not from 1 to %d", name, *v, most)
	}
	return nil
}

// How much of a long log the likelihood looks at: enough for the search of
// orders, more for the last estimate.
const (
	searchTimes = 20_000
	finalTimes  = 200_000
)

// ArrivalCandidate is a process that was tried, with single arrivals.
type ArrivalCandidate struct {
	Process  *BMAP
	Method   string
	Family   string // in two or three words
	Goodness Goodness
	LagError float64 // how far correlations are off at most
	Chosen   bool

	regimes *regimes
}

// ArrivalFit is the outcome for a log.
type ArrivalFit struct {
	Arrivals
	Goodness Goodness
	Gaps     *Gaps
	Sample   *Sample
	Batches  []Pair // shares of batches of 1, 2, ... in the log and in the process
	Tried    []ArrivalCandidate
}

// FitArrivals fits a batch Markovian arrival process to a log of epochs.
//
// It tries independent times between batches (a hyper-Erlang renewal process),
// two phases by moments and lag 1, regimes by moments and correlations, and 2,
// 3, ... regimes by likelihood (Okamura, Dohi 2009; Horvath, Okamura 2013).
// Taken is, among those whose correlations are near the log's, the one of the
// least BIC. Batch sizes are independent of the phase, or each regime has its
// own law of them where BIC says so.
func FitArrivals(ctx context.Context, t *Table, o ArrivalOptions) (*ArrivalFit, error) {
	if err := o.setArrivalDefaults(); err != nil {
		return nil, err
	}
	gaps, err := t.Gaps(o.Cleaning)
	if err != nil {
		return nil, err
	}
	f := &fitting{o: o, gaps: gaps}
	if f.sample, err = gaps.Sample(); err != nil {
		return nil, err
	}
	f.lags, f.stderr = gaps.Lags(o.Lags)
	f.sizes, f.larger = gaps.SizeLaw(o.MaxBatch)
	f.search, _ = gaps.sampledRuns(searchTimes)
	f.final, f.used = gaps.sampledRuns(finalTimes)
	if err := f.fitCandidates(ctx); err != nil {
		return nil, err
	}
	return f.chooseProcess(ctx)
}

// fitting is the state of FitArrivals.
type fitting struct {
	o            ArrivalOptions
	gaps         *Gaps
	sample       *Sample
	lags, stderr []float64
	sizes        []float64
	larger       int // batches larger than the process has
	search       []run
	final        []run
	used         int // times in final
	memory       scratch

	tried []ArrivalCandidate
	words []string
}

func (f *fitting) explainChoice(format string, args ...any) {
	f.words = append(f.words, fmt.Sprintf(format, args...))
}

// fitCandidates fits every family.
func (f *fitting) fitCandidates(ctx context.Context) error {
	f.o.Progress("independent times")
	if l, err := HyperErlangEM(ctx, f.sample, 6, f.o.Order); err == nil {
		scale := float64(f.used) / float64(len(f.sample.Sorted))
		ll := f.sample.likelihoodScore(&l.PH).LogLikelihood * scale
		if err := f.addCandidate(Renewal(&l.PH), "independent", "independent times, "+l.Method, ll, freeParameters(&l.PH), nil); err != nil {
			return err
		}
	} else if ctx.Err() != nil {
		return err
	}
	if len(f.lags) == 0 {
		return nil
	}
	if f.sample.Moments[1] <= f.sample.Moments[0]*f.sample.Moments[0]*(1+1e-9) {
		return nil // constant times
	}
	f.o.Progress("two phases by moments")
	if err := f.twoPhases(); err != nil {
		return err
	}
	var more []*regimes
	if g, _, err := (Summary{f.sample.Moments[:], f.lags[:min(6, len(f.lags))]}).regimesFromSummary(f.o.Order); err == nil {
		ll := g.runsLikelihood(f.final, &f.memory)
		if err := f.addCandidate(g.BMAP(), "by moments", g.String()+", moments and correlations", ll, g.regimeParameters(), g); err != nil {
			return err
		}
		more = append(more, g)
	}
	worse, best := 0, math.Inf(1)
	for m := 2; m <= min(f.o.Regimes, f.o.Order) && worse < 2; m++ {
		f.o.Progress(fmt.Sprintf("%d regimes by likelihood", m))
		var starts []*regimes
		for _, g := range more {
			if len(g.Order) == m {
				starts = append(starts, g.cloneRegimes())
			}
		}
		g, err := searchRegimes(ctx, f.search, m, f.o.Order, starts...)
		if err != nil {
			return err
		}
		if _, err := g.climbLikelihood(ctx, f.final, &f.memory, true, 0, 60, 1e-6); err != nil {
			return err
		}
		full := g.runsLikelihood(f.final, &f.memory)
		if p := g.pruneRareMoves(); p.runsLikelihood(f.final, &f.memory) > full-1 {
			g = p
		}
		if err := f.toMean(g); err != nil {
			return err
		}
		ll := g.runsLikelihood(f.final, &f.memory)
		if err := f.addCandidate(g.BMAP(), fmt.Sprint(m, " regimes"), g.String()+", maximum likelihood", ll, g.regimeParameters(), g); err != nil {
			return err
		}
		if bic := f.tried[len(f.tried)-1].Goodness.Score.BIC; bic < best {
			best, worse = bic, 0
		} else {
			worse++
		}
	}
	return nil
}

// toMean scales the rates of regimes so that the mean time is the log's: the
// load of the queue depends on it first, and the likelihood, which may have
// looked at a part of the log, gives it only nearly.
func (f *fitting) toMean(g *regimes) error {
	p, err := g.BMAP().Marginal()
	if err != nil {
		return err
	}
	factor := p.Mean() / f.sample.Moments[0]
	for i := range g.Rate {
		g.Rate[i] *= factor
	}
	return nil
}

// twoPhases tries two phases: by three moments, or two if the third cannot be
// had, and by the correlation at lag 1 or the decay of all, whichever comes
// nearer to the correlations.
func (f *fitting) twoPhases() error {
	m := f.sample.Moments
	lag := f.lags[0]
	if math.Abs(lag) < 2*f.stderr[0] {
		lag = 0 // chance
	}
	matched := "three moments and "
	third := m[2]
	b, err := MAP2(m[0], m[1], third, lag)
	if err != nil {
		first := err
		if b, err = MAP2(m[0], m[1], 0, lag); err == nil {
			f.explainChoice("Two phases: %v; without the third moment they have the rest.", first)
			matched, third = "two moments and ", 0
		}
	}
	if err != nil {
		f.explainChoice("Two phases: %v.", err)
		return nil
	}
	method := "lag 1"
	if d, err := MAP2Decay(m[0], m[1], third, decayOf(f.sample.SCV(), f.lags)); err == nil {
		one, lagErr := lagError(b, f.lags)
		if lagErr != nil {
			return lagErr
		}
		if all, err := lagError(d, f.lags); err == nil && all < one {
			b, method = d, "decay of correlations"
		}
	}
	return f.addCandidate(b, "MAP(2)", "MAP(2), "+matched+method, b.triangularLikelihood(f.final), 4, nil)
}

// triangularLikelihood is the logarithmic likelihood of runs under a process of one or
// two phases whose D_0 is upper triangular.
func (b *BMAP) triangularLikelihood(runs []run) float64 {
	p, err := b.Marginal()
	if err != nil {
		return math.Inf(-1)
	}
	if b.Order() == 1 {
		p = &PH{Beta: []float64{1, 0}, S: [][]float64{{b.D[0][0][0], 0}, {0, -1}}}
		b = &BMAP{D: [][][]float64{p.S, {{b.D[1][0][0], 0}, {0, 1}}}}
	}
	l1, l2, up := -b.D[0][0][0], -b.D[0][1][1], b.D[0][0][1]
	d := b.D[1]
	var ll float64
	for _, r := range runs {
		v := [2]float64{p.Beta[0], p.Beta[1]}
		for _, x := range r.x {
			e1, e2 := math.Exp(-l1*x), math.Exp(-l2*x)
			cross := up * x * e1
			if l1 != l2 {
				cross = up * (e1 - e2) / (l2 - l1)
			}
			w := [2]float64{v[0] * e1, v[0]*cross + v[1]*e2}
			v = [2]float64{w[0]*d[0][0] + w[1]*d[1][0], w[0]*d[0][1] + w[1]*d[1][1]}
			sum := math.Max(v[0]+v[1], math.SmallestNonzeroFloat64)
			ll += math.Log(sum)
			v[0], v[1] = v[0]/sum, v[1]/sum
		}
	}
	return ll
}

// addCandidate rates a candidate. One whose matrices are no process is an error: no
// method may make such.
func (f *fitting) addCandidate(b *BMAP, family, method string, ll float64, parameters int, g *regimes) error {
	if err := b.Check(); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	good, off, err := f.rateProcess(b)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	good.Score = &Score{LogLikelihood: ll, BIC: float64(parameters)*math.Log(float64(f.used)) - 2*ll}
	f.tried = append(f.tried, ArrivalCandidate{Process: b, Method: method, Family: family, Goodness: good, LagError: off, regimes: g})
	return nil
}

// rateProcess compares a process with the log.
func (f *fitting) rateProcess(b *BMAP) (g Goodness, off float64, err error) {
	p, err := b.Marginal()
	if err != nil {
		return g, 0, err
	}
	g = f.sample.distanceAndMoments(p)
	lags, err := b.Lags(len(f.lags))
	if err != nil {
		return g, 0, err
	}
	for k, v := range lags {
		g.Lags = append(g.Lags, Pair{f.lags[k], v})
		off = math.Max(off, math.Abs(v-f.lags[k]))
	}
	return g, off, nil
}

// correlationTolerance is how far correlations may be off by chance: four standard errors, at
// least 0.03.
func (f *fitting) correlationTolerance() float64 {
	t := .03
	for _, e := range f.stderr {
		t = math.Max(t, 4*e)
	}
	return t
}

// chooseProcess chooses, adds batches and says why.
func (f *fitting) chooseProcess(ctx context.Context) (*ArrivalFit, error) {
	if len(f.tried) == 0 {
		return nil, errors.New("no process could be fitted")
	}
	near := f.correlationTolerance()
	chosen, least := -1, -1
	for i, c := range f.tried {
		if least < 0 || c.Goodness.Score.BIC < f.tried[least].Goodness.Score.BIC {
			least = i
		}
		if c.LagError <= near && (chosen < 0 || c.Goodness.Score.BIC < f.tried[chosen].Goodness.Score.BIC) {
			chosen = i
		}
	}
	f.explainProcess(chosen, least, near)
	if chosen < 0 {
		chosen = least
	}
	f.tried[chosen].Chosen = true
	c := f.tried[chosen]
	out := &ArrivalFit{Arrivals: Arrivals{BMAP: *c.Process, Method: c.Method}, Goodness: c.Goodness, Gaps: f.gaps, Sample: f.sample, Tried: f.tried}
	if err := f.addBatchSizes(ctx, out, c); err != nil {
		return nil, err
	}
	f.explainCleaning()
	out.Words = f.words
	return out, out.Check()
}

// explainProcess says why a process was taken.
func (f *fitting) explainProcess(chosen, least int, near float64) {
	first := func(g Goodness) string {
		var s []string
		for _, p := range g.Lags[:min(3, len(g.Lags))] {
			s = append(s, fmt.Sprintf("%.3f", p.Fit))
		}
		return strings.Join(s, " ")
	}
	var log []string
	for _, v := range f.lags[:min(3, len(f.lags))] {
		log = append(log, fmt.Sprintf("%.3f", v))
	}
	best := f.tried[least]
	switch {
	case len(log) == 0:
		f.explainChoice("No correlations can be estimated from so few times.")
	case chosen < 0:
		f.explainChoice("No process has the correlations of the log (%s ...) within %.3f; taken is the one of the least BIC: %s (%s ...).", strings.Join(log, " "), near, best.Method, first(best.Goodness))
	case chosen == least:
		f.explainChoice("%s has the least BIC of %d processes tried, and its correlations (%s ...) are those of the log (%s ...) within %.3f.",
			best.Method, len(f.tried), first(best.Goodness), strings.Join(log, " "), f.tried[chosen].LagError)
	default:
		f.explainChoice("%s has the least BIC, but its correlations (%s ...) are off from the log's (%s ...) by up to %.3f; taken is the least BIC of those off by at most %.3f: %s.",
			best.Method, first(best.Goodness), strings.Join(log, " "), best.LagError, near, f.tried[chosen].Method)
	}
}

// addBatchSizes puts the batch sizes into the process.
func (f *fitting) addBatchSizes(ctx context.Context, out *ArrivalFit, c ArrivalCandidate) error {
	if len(f.sizes) > 1 {
		out.BMAP = *c.Process.Batches(f.sizes)
		if c.regimes != nil {
			if err := f.ownSizes(ctx, out, c); err != nil {
				return err
			}
		}
	}
	fit, err := out.Sizes()
	if err != nil {
		return err
	}
	for k, v := range f.sizes {
		out.Batches = append(out.Batches, Pair{v, fit[k]})
	}
	return nil
}

// ownSizes tries a law of batch sizes for each regime, and takes it where BIC
// is less than with one law for all.
func (f *fitting) ownSizes(ctx context.Context, out *ArrivalFit, c ArrivalCandidate) error {
	for i := range f.final {
		f.final[i].size = clippedSizes(f.final[i].size, len(f.sizes))
	}
	g := c.regimes.cloneRegimes()
	free := -1 // sizes that occur, less one
	for _, v := range f.sizes {
		if v > 0 {
			free++
		}
	}
	for range g.Order {
		law := append([]float64(nil), f.sizes...)
		floorProbabilities(law)
		g.Sizes = append(g.Sizes, law)
	}
	common := g.runsLikelihood(f.final, &f.memory)
	if _, err := g.climbLikelihood(ctx, f.final, &f.memory, true, 0, 60, 1e-6); err != nil {
		return err
	}
	if p := g.pruneRareMoves(); p.runsLikelihood(f.final, &f.memory) > g.runsLikelihood(f.final, &f.memory)-1 {
		g = p
	}
	if err := f.toMean(g); err != nil {
		return err
	}
	own := g.runsLikelihood(f.final, &f.memory)
	cost := float64(free*(len(g.Order)-1)) * math.Log(float64(f.used))
	b := g.BMAP()
	if 2*(own-common) <= cost || b.Check() != nil {
		f.explainChoice("Batch sizes do not depend on the regime (BIC %.0f with a law for each, %.0f with one).", cost-2*own, -2*common)
		return nil
	}
	good, off, err := f.rateProcess(b)
	if err != nil {
		return err
	}
	if off > math.Max(f.correlationTolerance(), c.LagError) {
		return nil
	}
	var means []string
	for _, law := range g.Sizes {
		m := 0.0
		for k, v := range law {
			m += float64(k+1) * v
		}
		means = append(means, fmt.Sprintf("%.3g", m))
	}
	f.explainChoice("Each regime has its own law of batch sizes, of means %s (BIC %.0f instead of %.0f).", strings.Join(means, ", "), cost-2*own, -2*common)
	good.Score = &Score{LogLikelihood: own, BIC: float64(c.regimes.regimeParameters()+free*len(g.Order))*math.Log(float64(f.used)) - 2*own}
	out.BMAP, out.Goodness = *b, good
	return nil
}

// clippedSizes returns sizes of at most most.
func clippedSizes(sizes []int, most int) []int {
	out := make([]int, len(sizes))
	for i, v := range sizes {
		out[i] = min(v, most)
	}
	return out
}

// explainCleaning says what was left out of the log.
func (f *fitting) explainCleaning() {
	g := f.gaps
	if g.Late > 0 {
		f.explainChoice("Put into order: epochs that stood after later ones, %d of them, by at most %.3g.", g.Late, g.LateMax)
	}
	if g.Pauses > 0 {
		f.explainChoice("Left out: gaps longer than %.4g, taken for pauses, %d of them, %.4g in all.", g.PauseMin, g.Pauses, g.Paused)
	}
	if f.larger > 0 {
		f.explainChoice("Batches larger than %d count as %d: %d of them.", f.o.MaxBatch, f.o.MaxBatch, f.larger)
	}
	if n := g.gapCount(); f.used < n {
		f.explainChoice("The likelihood looks at %d of %d times between batches, in blocks spread over the log.", f.used, n)
	}
	f.words = append(f.words, g.cleaningHints(f.sample, f.o.Cleaning)...)
}
