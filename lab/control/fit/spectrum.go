package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Summary is what is known of arrivals without their log: moments about zero
// of the times between batches and their correlations at lags 1, 2, ...
type Summary struct {
	Moments []float64 // two, or three
	Lags    []float64
}

// Arrivals is a fitted arrival process with how it was found.
type Arrivals struct {
	BMAP
	Method string
	Words  []string // why this process, in sentences
}

// lagTolerance is how far correlations by moments may be off before more
// phases are tried.
const lagTolerance = .01

// component is one independent two-state chain of regimes: its part of the
// variance between regimes and the factor by which its correlation decays.
type component struct{ share, decay float64 }

// MomentRegimes finds Erlang regimes of given moments and correlations.
//
// The mean time of a regime is m + c_1 s_1 + c_2 s_2, s_j being the state of
// independent two-state chains with mean 0, variance 1 and decay gamma_j; all
// regimes have the Erlang order r. Then, for any such chains,
//
//	m2 = (1 + 1/r)(m^2 + c_1^2 + c_2^2),
//	rho_k = (c_1^2 gamma_1^k + c_2^2 gamma_2^k) / (m2 - m^2):
//
// the variance between regimes is m2/(1 + 1/r) - m^2 whatever the chains are,
// so that the order decides how strong correlations may be. The smallest
// number of phases whose correlations are off by at most 0.01 is taken, or the
// best within maxOrder phases. A third moment, if given, sets the skewness of
// the chains as far as the mean times stay positive.
func MomentRegimes(s Summary, maxOrder int) (*Arrivals, error) {
	g, words, err := s.regimesFromSummary(maxOrder)
	if err != nil {
		return nil, err
	}
	a := &Arrivals{BMAP: *g.BMAP(), Method: g.String() + ", moments and correlations", Words: words}
	if err := a.Check(); err != nil {
		return nil, err
	}
	if len(s.Moments) > 2 {
		p, err := a.Marginal()
		if err != nil {
			return nil, err
		}
		if got := p.Moments(3)[2]; math.Abs(got/s.Moments[2]-1) > .01 {
			a.Words = append(a.Words, fmt.Sprintf("The third moment is %.4g instead of %.4g: with these correlations it would need mean times below 0.", got, s.Moments[2]))
		}
	}
	return a, nil
}

func (s Summary) checkSummary() error {
	if len(s.Moments) < 2 {
		return fmt.Errorf("%d moments given: arrivals need two or three", len(s.Moments))
	}
	if err := checkMoments(s.Moments); err != nil {
		return err
	}
	if len(s.Lags) == 0 {
		return fmt.Errorf("no correlations given")
	}
	for k, v := range s.Lags {
		if !(v > -1 && v < 1) {
			return fmt.Errorf("correlation %d: %g is not between -1 and 1", k+1, v)
		}
	}
	return nil
}

// regimesFromSummary searches the orders.
func (s Summary) regimesFromSummary(maxOrder int) (*regimes, []string, error) {
	if err := s.checkSummary(); err != nil {
		return nil, nil, err
	}
	m, m2 := s.Moments[0], s.Moments[1]
	variance := m2 - m*m
	var words []string
	var best *regimes
	bestError := math.Inf(1)
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, size := range regimeOrders(maxOrder) {
		r, n := size.order, size.chains
		between := m2/(1+1/float64(r)) - m*m
		share := between / variance
		if between <= 0 {
			if n == 1 {
				say("Regimes of Erlang-%d: none can vary as little as SCV %.3g.", r, variance/(m*m))
			}
			continue
		}
		comps, off := fitDecays(s.Lags, share, n)
		if n == 2 && (comps[0].share < 1e-6*share || comps[1].share < 1e-6*share) {
			continue
		}
		g, err := s.buildRegimes(r, comps)
		if err != nil {
			say("%d regimes of Erlang-%d: %v.", 1<<n, r, err)
			continue
		}
		if off < bestError-1e-4 {
			say("%d regimes of Erlang-%d: %.3f of the variance lies between regimes, correlations off by up to %.3f.", 1<<n, r, share, off)
			best, bestError = g, off
		}
		if off <= lagTolerance {
			break
		}
	}
	if best == nil {
		return nil, nil, infeasiblef("no regimes within %d phases have these moments and correlations: %s", maxOrder, words[len(words)-1])
	}
	if bestError <= lagTolerance {
		say("Taken: %s, order %d: the fewest phases whose correlations are off by at most %g.", best, best.totalPhases(), lagTolerance)
	} else {
		say("Taken: %s, order %d: the nearest within %d phases.", best, best.totalPhases(), maxOrder)
	}
	return best, words, nil
}

// size is a number of phases: two-state chains, hence 2^chains regimes, of one order.
type size struct{ order, chains int }

// regimeOrders lists what fits into so many phases, the fewest phases first.
func regimeOrders(maxOrder int) []size {
	var out []size
	for n := 1; n <= 2; n++ {
		for r := 1; r<<n <= maxOrder; r++ {
			out = append(out, size{r, n})
		}
	}
	slices.SortStableFunc(out, func(a, b size) int { return cmp.Compare(a.order<<a.chains, b.order<<b.chains) })
	return out
}

// FitSummary finds an arrival process of given moments and correlations: two
// phases where they reach that far, else regimes of Erlang laws. Its words say
// why not the smaller one.
func FitSummary(s Summary, maxOrder int) (*Arrivals, error) {
	if err := s.checkSummary(); err != nil {
		return nil, err
	}
	var m3 float64
	if len(s.Moments) > 2 {
		m3 = s.Moments[2]
	}
	two, err := MAP2(s.Moments[0], s.Moments[1], m3, s.Lags[0])
	why := "Two phases"
	if err == nil {
		off, lagErr := lagError(two, s.Lags)
		if lagErr != nil {
			return nil, lagErr
		}
		if off <= lagTolerance || maxOrder < 4 {
			return &Arrivals{BMAP: *two, Method: "MAP(2), moments and lag 1", Words: []string{fmt.Sprintf("Two phases have the moments; the correlations are off by up to %.3f.", off)}}, nil
		}
		why += fmt.Sprintf(" have the moments and lag 1, but are off by %.3f at another lag.", off)
	} else {
		why += ": " + err.Error() + "."
	}
	a, err := MomentRegimes(s, maxOrder)
	if err != nil {
		return nil, err
	}
	a.Words = append([]string{why}, a.Words...)
	return a, nil
}

// lagError is how far the correlations of a process are from lags at most.
func lagError(b *BMAP, lags []float64) (float64, error) {
	got, err := b.Lags(len(lags))
	if err != nil {
		return 0, err
	}
	off := 0.0
	for k, v := range got {
		off = math.Max(off, math.Abs(v-lags[k]))
	}
	return off, nil
}

// fitDecays finds n components whose correlations sum_j share_j decay_j^k come
// nearest to lags with shares that sum to share; off is the greatest error.
func fitDecays(lags []float64, share float64, n int) (c []component, off float64) {
	best := math.Inf(1)
	try := func(d [2]float64) {
		w := firstComponentShare(lags, share, d)
		if n == 1 {
			w = 1
		}
		var e float64
		a, b := share*w, share*(1-w)
		for _, v := range lags {
			a, b = a*d[0], b*d[1]
			e += (a + b - v) * (a + b - v)
		}
		if e < best {
			best = e
			c = []component{{w * share, d[0]}, {(1 - w) * share, d[1]}}[:n]
		}
	}
	grid := func(centre [2]float64, width float64) {
		const steps = 10
		for i := -steps; i <= steps; i++ {
			d := [2]float64{searchPointToDecay(centre[0] + width*float64(i)/steps), 0}
			if n == 1 {
				try(d)
				continue
			}
			for j := -steps; j <= steps; j++ {
				d[1] = searchPointToDecay(centre[1] + width*float64(j)/steps)
				try(d)
			}
		}
	}
	// The decays are searched as atanh, which spreads those near 1.
	grid([2]float64{}, 5)
	for width := 1.; width > 1e-4; width /= 3 {
		centre := [2]float64{math.Atanh(c[0].decay)}
		if n == 2 {
			centre[1] = math.Atanh(c[1].decay)
		}
		grid(centre, width)
	}
	for k, v := range lags {
		f := -v
		for _, j := range c {
			f += j.share * math.Pow(j.decay, float64(k+1))
		}
		off = math.Max(off, math.Abs(f))
	}
	return c, off
}

// searchPointToDecay maps a point of the search to a decay.
func searchPointToDecay(u float64) float64 { return math.Tanh(min(max(u, -3), 5)) }

// firstComponentShare is the share of the first component by least squares, in [0, 1].
func firstComponentShare(lags []float64, share float64, d [2]float64) float64 {
	var num, den float64
	a, b := share, share
	for _, v := range lags {
		a, b = a*d[0], b*d[1]
		num += (a - b) * (v - b)
		den += (a - b) * (a - b)
	}
	if den == 0 {
		return 1
	}
	return min(max(num/den, 0), 1)
}

// least is the smallest mean time of a regime, as a share of the mean.
const least = .05

// buildRegimes makes the regimes of order r from the components.
func (s Summary) buildRegimes(r int, comps []component) (*regimes, error) {
	m := s.Moments[0]
	variance := s.Moments[1] - m*m
	var c []float64
	var sum, cubes float64
	for _, k := range comps {
		v := math.Sqrt(k.share * variance)
		c = append(c, v)
		sum += v
		cubes += v * v * v
	}
	// State "slow" has value 1/d and probability d^2/(1+d^2), "fast" -d.
	most := (1 - least) * m / sum // keeps the mean of all-fast positive
	d := min(1, most)
	if len(s.Moments) > 2 {
		f := float64(r)
		rest := s.Moments[2] / ((1 + 1/f) * (1 + 2/f))
		between := s.Moments[1] / (1 + 1/f)
		skew := (rest - 3*m*between + 2*m*m*m) / cubes // = 1/d - d
		d = min((math.Sqrt(skew*skew+4)-skew)/2, most)
	}
	slow := d * d / (1 + d*d)
	g := &regimes{Order: []float64{float64(r)}, Rate: []float64{m}, Move: [][]float64{{1}}} // Rate holds means until the end
	for k, comp := range comps {
		toSlow, stay := slow*(1-comp.decay), slow+(1-slow)*comp.decay
		if stay < 0 || toSlow > 1 {
			return nil, infeasiblef("a decay of %.3f needs states of equal weight, which mean times above 0 do not allow", comp.decay)
		}
		chain := [][]float64{{stay, 1 - stay}, {toSlow, 1 - toSlow}}
		g = g.joinChain(chain, []float64{c[k] / d, -c[k] * d})
	}
	for i, mean := range g.Rate {
		g.Rate[i] = float64(r) / mean
	}
	return g, nil
}

// joinChain joins an independent chain whose states add shifts to the means.
func (g *regimes) joinChain(chain [][]float64, shifts []float64) *regimes {
	out := &regimes{}
	for i := range g.Order {
		for a, shift := range shifts {
			out.Order = append(out.Order, g.Order[i])
			out.Rate = append(out.Rate, g.Rate[i]+shift)
			var row []float64
			for j := range g.Order {
				for b := range shifts {
					row = append(row, g.Move[i][j]*chain[a][b])
				}
			}
			out.Move = append(out.Move, row)
		}
	}
	return out
}
