package control

import (
	"context"
	"fmt"
	"math"
)

// Times is the law of the time that pages of one fate spend in the system.
type Times struct {
	Share     float64            `json:"share"` // of the accepted pages
	Mean      float64            `json:"mean"`
	Deviation float64            `json:"standard_deviation"`
	Quantiles map[string]float64 `json:"quantiles"`
}

// Sojourn has the times of accepted pages by their fate.
type Sojourn struct {
	Served Times  `json:"served"`
	Stale  *Times `json:"stale,omitempty"`

	chain *taggedChain
	flow  *uniformised
}

// taggedChain follows one accepted page from its arrival: formula (8) as a
// chain that ends when the page is served or stale. What comes after the page
// does not matter, so that its place only falls.
type taggedChain struct {
	begin []mat       // by place (from 1, the page in service): where accepted pages begin, adds to 1
	t     []mat       // rates within a place, with the diagonal
	ahead []mat       // rates to the place before
	ends  []mat       // of place 1: rates of being served
	stale [][]float64 // rates of going stale
}

// acceptedPageChain builds the chain from the law of the queue.
func (s *solver) acceptedPageChain(policy []int, pi [][]float64) *taggedChain {
	m := s.m
	c := &taggedChain{begin: make([]mat, m.N+1), t: make([]mat, m.N+1), ahead: make([]mat, m.N+1), ends: []mat{m.s0}, stale: make([][]float64, m.N+1)}
	for i := 1; i <= m.N; i++ {
		n := s.dim[i] / m.W
		c.begin[i], c.t[i], c.stale[i] = zeroMatrix(1, n), m.phaseGenerator(i-1), make([]float64, n)
		switch {
		case i == 2:
			c.ahead[i] = kroneckerProduct(m.s0.mul(m.beta), onesVector(m.Q))
		case i > 2:
			c.ahead[i] = kroneckerProduct(m.departureMatrix(i-2), identityMatrix(m.Q))
		}
		if i > 1 {
			for x := range n {
				c.stale[i][x] = m.g0.a[x%m.Q]
			}
		}
	}
	total := 0.0
	for i := range m.N {
		inner := s.dim[i] / m.W
		for j := 1; j <= min(m.K, m.N-i); j++ {
			from := zeroMatrix(1, inner)
			for k := j; k <= m.K; k++ {
				for a, rate := range m.d[policy[i]-1][k].rowSums() {
					for x := range inner {
						from.a[x] += rate * pi[i][a*inner+x]
					}
				}
			}
			if i == 0 {
				from = kroneckerProduct(from, m.beta, kroneckerPower(m.gamma, j-1))
			} else {
				from = kroneckerProduct(from, kroneckerPower(m.gamma, j))
			}
			c.begin[i+j].addInPlace(from)
			for _, v := range from.a {
				total += v
			}
		}
	}
	for _, b := range c.begin[1:] {
		b.scaleInPlace(1 / total)
	}
	return c
}

// Sojourn returns the law of the sojourn times of accepted pages under a policy
// (modes from 1), by the exact method. Quantiles are those of probabilities,
// such as .5, .9, .99.
func (m *Model) Sojourn(ctx context.Context, policy []int, quantiles ...float64) (*Sojourn, error) {
	if err := m.checkPolicy(policy); err != nil {
		return nil, err
	}
	s, err := newSolver(m)
	if err != nil {
		return nil, err
	}
	for i := m.N; i >= 0; i-- {
		if err := s.descendToLevel(i, policy[i]-1); err != nil {
			return nil, fmt.Errorf("%d pages present: %w", i, err)
		}
	}
	_, pi0, err := s.finishElimination()
	if err != nil {
		return nil, err
	}
	c := s.acceptedPageChain(policy, s.queueLaw(pi0))
	served, stale, err := c.fateMoments()
	if err != nil {
		return nil, err
	}
	flow, err := c.uniformizeChain(ctx)
	if err != nil {
		return nil, err
	}
	out := &Sojourn{chain: c, flow: flow, Served: fateTimes(served, flow, flow.served, quantiles)}
	if stale[0] > 0 {
		t := fateTimes(stale, flow, flow.stale, quantiles)
		out.Stale = &t
	}
	return out, nil
}

// fateTimes puts together what is known of one fate: P, E[T; fate], E[T^2; fate].
func fateTimes(m [3]float64, f *uniformised, ends []float64, quantiles []float64) Times {
	t := Times{Share: m[0], Mean: m[1] / m[0], Quantiles: map[string]float64{}}
	t.Deviation = math.Sqrt(max(0, m[2]/m[0]-t.Mean*t.Mean))
	for _, q := range quantiles {
		t.Quantiles[fmt.Sprint(q)] = f.timeQuantile(ends, q*m[0], t.Mean)
	}
	return t
}

// fateMoments returns P, E[T; fate] and E[T^2; fate] of being served and stale.
func (c *taggedChain) fateMoments() (served, stale [3]float64, err error) {
	var before [2][3]mat // of the place before, by fate and power
	for i := 1; i < len(c.t); i++ {
		f, err := c.factorizePlace(i, 0)
		if err != nil {
			return served, stale, err
		}
		var here [2][3]mat
		for fate := range here {
			for power := range here[fate] {
				x := zeroMatrix(c.t[i].r, 1)
				if power == 0 && fate == 0 && i == 1 {
					copy(x.a, c.ends[0].a)
				}
				if power == 0 && fate == 1 {
					copy(x.a, c.stale[i])
				}
				if power > 0 {
					for k, v := range here[fate][power-1].a {
						x.a[k] += float64(power) * v
					}
				}
				if i > 1 {
					x.addMul(c.ahead[i], before[fate][power])
				}
				f.solveInPlace(x)
				here[fate][power] = x
				v := c.begin[i].mul(x).a[0]
				if fate == 0 {
					served[power] += v
				} else {
					stale[power] += v
				}
			}
		}
		before = here
	}
	return served, stale, nil
}

// factorizePlace factorises s I - T of a place.
func (c *taggedChain) factorizePlace(i int, s float64) (mfactor, error) {
	exit := make([]float64, c.t[i].r)
	for x := range exit {
		exit[x] = s + c.stale[i][x]
		if i == 1 {
			exit[x] += c.ends[0].a[x]
		} else {
			for _, v := range c.ahead[i].row(x) {
				exit[x] += v
			}
		}
	}
	return factorizeMatrix(c.t[i].cloneMatrix(), exit)
}

// Transform returns the Laplace-Stieltjes transforms at s >= 0 of the sojourn
// times of accepted pages that are served and that go stale: E[exp(-s T); fate].
// At 0 they are the shares.
func (s *Sojourn) Transform(at float64) (served, stale float64, err error) {
	if !(at >= 0) {
		return 0, 0, fmt.Errorf("transform at %g: want a number from 0", at)
	}
	c := s.chain
	var before [2]mat
	for i := 1; i < len(c.t); i++ {
		f, err := c.factorizePlace(i, at)
		if err != nil {
			return 0, 0, err
		}
		var here [2]mat
		for fate := range here {
			x := zeroMatrix(c.t[i].r, 1)
			switch {
			case fate == 1:
				copy(x.a, c.stale[i])
			case i == 1:
				copy(x.a, c.ends[0].a)
			}
			if i > 1 {
				x.addMul(c.ahead[i], before[fate])
			}
			f.solveInPlace(x)
			here[fate] = x
		}
		served += c.begin[i].mul(here[0]).a[0]
		stale += c.begin[i].mul(here[1]).a[0]
		before = here
	}
	return served, stale, nil
}

// uniformised has the probabilities that a page has been served, or gone stale,
// after 0, 1, 2, ... events of a Poisson process.
type uniformised struct {
	rate          float64
	served, stale []float64
}

// maxEvents bounds the events that a page is followed for, and unended the
// part of the pages that may be left after them.
const (
	maxEvents = 2_000_000
	unended   = 1e-10
)

// uniformizeChain follows the pages until nearly all are gone.
func (c *taggedChain) uniformizeChain(ctx context.Context) (*uniformised, error) {
	u := &uniformised{served: []float64{0}, stale: []float64{0}}
	for _, t := range c.t[1:] {
		for x := range t.r {
			u.rate = max(u.rate, -t.at(x, x))
		}
	}
	now, next := make([]mat, len(c.t)), make([]mat, len(c.t))
	for i := 1; i < len(c.t); i++ {
		now[i], next[i] = c.begin[i].cloneMatrix(), zeroMatrix(1, c.t[i].r)
	}
	var served, stale float64
	for left := 1.0; left > unended; {
		if len(u.served) > maxEvents {
			return nil, fmt.Errorf("%.2g of the pages are still there after %d events: the rates are too far apart for the law of the sojourn", left, maxEvents)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := 1; i < len(c.t); i++ {
			clear(next[i].a)
		}
		for i := 1; i < len(c.t); i++ {
			next[i].addMul(now[i], c.t[i])
			if i > 1 {
				next[i-1].addMul(now[i], c.ahead[i])
			} else {
				served += now[1].mul(c.ends[0]).a[0] / u.rate
			}
			for x, v := range now[i].a {
				stale += v * c.stale[i][x] / u.rate
			}
		}
		left = 0
		for i := 1; i < len(c.t); i++ {
			for x, v := range next[i].a {
				now[i].a[x] = max(0, now[i].a[x]+v/u.rate)
				left += now[i].a[x]
			}
		}
		u.served, u.stale = append(u.served, served), append(u.stale, stale)
	}
	return u, nil
}

// probabilityBy returns the probability that it has ended so by time t: the mean of ends
// over a Poisson number of events.
func (u *uniformised) probabilityBy(ends []float64, t float64) float64 {
	mean := u.rate * t
	if mean == 0 {
		return ends[0]
	}
	half := 10*math.Sqrt(mean) + 20
	low, high := max(0, int(mean-half)), int(mean+half)
	sum, weight := 0.0, 0.0
	for k := low; k <= high; k++ {
		lg, _ := math.Lgamma(float64(k + 1))
		w := math.Exp(float64(k)*math.Log(mean) - mean - lg)
		sum += w * ends[min(k, len(ends)-1)]
		weight += w
	}
	return sum / weight
}

// timeQuantile returns the time by which the probability p is reached.
func (u *uniformised) timeQuantile(ends []float64, p, guess float64) float64 {
	low, high := 0.0, guess
	for u.probabilityBy(ends, high) < p && high < 1e6*guess {
		low, high = high, 2*high
	}
	for range 60 {
		mid := (low + high) / 2
		if u.probabilityBy(ends, mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// CDF returns the probabilities that an accepted page has been served, and has
// gone stale, at most t after its arrival.
func (s *Sojourn) CDF(t float64) (served, stale float64) {
	return s.flow.probabilityBy(s.flow.served, t), s.flow.probabilityBy(s.flow.stale, t)
}
