package control

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// M/M/1/N: an accepted page that finds i others stays an Erlang time of i+1
// phases.
func TestSojournOfMM1N(t *testing.T) {
	t.Parallel()
	const rho, mu, n = .8, 2.0, 12
	m := mustNew(t, Spec{Capacity: n, Modes: []Batches{poisson(rho * mu)}, Service: exponential(mu)})
	s, err := m.Sojourn(t.Context(), m.Policy(), .5, .99)
	if err != nil {
		t.Fatal(err)
	}
	var w [n]float64
	total := 0.0
	for i := range w {
		w[i] = math.Pow(rho, float64(i))
		total += w[i]
	}
	mix := func(f func(k float64) float64) (v float64) {
		for i, x := range w {
			v += x / total * f(float64(i+1))
		}
		return v
	}
	mean := mix(func(k float64) float64 { return k / mu })
	near(t, "share", s.Served.Share, 1, 1e-12)
	near(t, "mean", s.Served.Mean, mean, 1e-12)
	near(t, "deviation", s.Served.Deviation, math.Sqrt(mix(func(k float64) float64 { return k * (k + 1) / mu / mu })-mean*mean), 1e-11)
	cdf := func(x float64) float64 {
		return mix(func(k float64) float64 { return distuv.Gamma{Alpha: k, Beta: mu}.CDF(x) })
	}
	for _, x := range []float64{.01, .5, 2, 7, 30} {
		got, _ := s.CDF(x)
		near(t, fmt.Sprint("CDF at ", x), got, cdf(x), 1e-8)
		lst, none, err := s.Transform(x)
		if err != nil || none != 0 {
			t.Fatal(none, err)
		}
		near(t, fmt.Sprint("transform at ", x), lst, mix(func(k float64) float64 { return math.Pow(mu/(mu+x), k) }), 1e-11)
	}
	for _, q := range []float64{.5, .99} {
		near(t, fmt.Sprint("quantile ", q), cdf(s.Served.Quantiles[fmt.Sprint(q)]), q, 1e-8)
	}
	if s.Stale != nil {
		t.Error("stale pages without staleness")
	}
}

// Shares and means are the solver's; moments, transform and law come about in
// three ways and must agree.
func TestSojournAgrees(t *testing.T) {
	t.Parallel()
	for law, stale := range staleLaws {
		t.Run(law, func(t *testing.T) {
			t.Parallel()
			s := optimisable(5, stale, hyperService, false)
			s.Policy = []int{3, 3, 1, 2, 3, 2}
			m := mustNew(t, s)
			want := mustSolve(t, s)
			got, err := m.Sojourn(t.Context(), s.Policy, .9)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "share served", got.Served.Share, want.Success/(1-want.Loss), 1e-10)
			near(t, "share stale", got.Stale.Share, want.Obsolete/(1-want.Loss), 1e-10)
			near(t, "mean of served", got.Served.Mean, want.SojournServed, 1e-10)
			near(t, "mean of stale", got.Stale.Mean, want.SojournObsolete, 1e-10)
			// Derivatives of the transform at 0 by differences.
			const h = 1e-3
			var f [2][4]float64
			for k := range 4 {
				a, b, err := got.Transform(h * float64(k))
				if err != nil {
					t.Fatal(err)
				}
				f[0][k], f[1][k] = a, b
			}
			// The integral of t (share - F(t)) is half the second moment.
			var area [2]float64
			const dt = .05
			for x := dt / 2; x < 250; x += dt {
				a, b := got.CDF(x)
				area[0] += 2 * x * dt * (got.Served.Share - a)
				area[1] += 2 * x * dt * (got.Stale.Share - b)
			}
			for k, v := range []Times{got.Served, *got.Stale} {
				second := v.Share * (v.Deviation*v.Deviation + v.Mean*v.Mean)
				near(t, fmt.Sprint("transform at 0 of ", k), f[k][0], v.Share, 1e-10)
				near(t, fmt.Sprint("second derivative of ", k), (2*f[k][0]-5*f[k][1]+4*f[k][2]-f[k][3])/h/h, second, 2e-3)
				near(t, fmt.Sprint("second moment by the law of ", k), area[k], second, 4e-3)
			}
			a, _ := got.CDF(got.Served.Quantiles["0.9"])
			near(t, "quantile", a, .9*got.Served.Share, 1e-9)
		})
	}
}
