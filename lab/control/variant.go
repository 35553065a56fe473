package control

import (
	"context"
	"fmt"
	"math"
)

// WithCapacity returns the model with another capacity and without a policy.
func (m *Model) WithCapacity(n int) (*Model, error) {
	if n < 1 || n > maxCapacity {
		return nil, fmt.Errorf("capacity: %d is not in 1..%d", n, maxCapacity)
	}
	v := *m
	v.N, v.policy = n, nil
	return &v, nil
}

// WithService returns the model with another law of service.
func (m *Model) WithService(s Service) (*Model, error) {
	v := *m
	var err error
	if v.beta, v.s, v.s0, err = phaseType("service.beta", "service.s", s.Beta, s.S); err != nil {
		return nil, err
	}
	if p := neverEnds(v.s, v.s0); p >= 0 {
		return nil, fmt.Errorf("service.s[%d]: service never ends from this phase", p)
	}
	v.M = v.beta.c
	return &v, nil
}

// WithObsolescence returns the model with another law of staleness; nil is
// pages that never go stale.
func (m *Model) WithObsolescence(o *Obsolescence) (*Model, error) {
	if o == nil {
		o = &Obsolescence{[]float64{1}, [][]float64{{0}}}
	}
	v := *m
	var err error
	if v.gamma, v.g, v.g0, err = phaseType("obsolescence.gamma", "obsolescence.g", o.Gamma, o.G); err != nil {
		return nil, err
	}
	v.Q = v.gamma.c
	return &v, nil
}

// Only returns the model with some of its modes, which keep their order but
// are numbered, and paid for, again from 1; and without a policy.
func (m *Model) Only(modes ...int) (*Model, error) {
	v := *m
	v.d, v.policy = nil, nil
	for _, r := range modes {
		if r < 1 || r > m.R {
			return nil, fmt.Errorf("no mode %d; there are 1..%d", r, m.R)
		}
		v.d = append(v.d, m.d[r-1])
	}
	if v.R = len(v.d); v.R == 0 {
		return nil, fmt.Errorf("no modes given; there are 1..%d", m.R)
	}
	return &v, nil
}

// phaseTypeMoments returns mean and squared coefficient of variation of a phase-type
// law, the mean +Inf if it may never end.
func phaseTypeMoments(alpha, t, out mat) (mean, scv float64) {
	f, err := factorizeMatrix(t.cloneMatrix(), append([]float64(nil), out.a...))
	if err != nil {
		return math.Inf(1), math.NaN()
	}
	x := onesVector(t.r)
	f.solveInPlace(x)
	mean = alpha.mul(x).a[0]
	f.solveInPlace(x)
	return mean, 2*alpha.mul(x).a[0]/(mean*mean) - 1
}

// ServiceMoments returns the mean service time and its squared coefficient of
// variation (variance over squared mean).
func (m *Model) ServiceMoments() (mean, scv float64) { return phaseTypeMoments(m.beta, m.s, m.s0) }

// StaleMoments returns the same of the time until a waiting page is stale; the
// mean is +Inf if some never are.
func (m *Model) StaleMoments() (mean, scv float64) { return phaseTypeMoments(m.gamma, m.g, m.g0) }

// ArrivalRates returns the pages offered a time in each mode if it were held
// for ever, and NaN for a mode whose phases never come together.
func (m *Model) ArrivalRates() []float64 {
	var out []float64
	for _, d := range m.d {
		all := zeroMatrix(m.W, m.W)
		for _, x := range d {
			all.addInPlace(x)
		}
		rate := math.NaN()
		if pi, err := stationaryLaw(all); err == nil {
			rate = 0
			for k, x := range d {
				for a, v := range x.rowSums() {
					rate += float64(k) * pi[a] * v
				}
			}

		}
		out = append(out, rate)
	}
	return out
}

// Pair returns the costs of the policies that hold mode high up to j pages and
// mode low above, for j = -1..N; +Inf where there is no long run.
func (m *Model) Pair(ctx context.Context, low, high int, o Options) ([]float64, error) {
	if low < 1 || high > m.R || low >= high {
		return nil, fmt.Errorf("pair of modes %d and %d: want 1 <= low < high <= %d", low, high, m.R)
	}
	e, err := m.newEvaluator(o)
	if err != nil {
		return nil, err
	}
	e.limit = m.N + 2
	var out []float64
	for j := -1; j <= m.N; j++ {
		out = append(out, e.policyCost(ctx, m.thresholdPolicy([]int{low, high}, []int{j})))
	}
	return out, ctx.Err()
}
