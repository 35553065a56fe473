package control

import (
	"fmt"
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*max(1e-3, math.Abs(want))) {
		t.Errorf("%s: got %.14g, want %.14g", what, got, want)
	}
}

func same(t *testing.T, got, want Result, tol float64) {
	t.Helper()
	if len(got.QueueLength) != len(want.QueueLength) {
		t.Fatalf("queue length: %d entries, want %d", len(got.QueueLength), len(want.QueueLength))
	}
	for i := range want.QueueLength {
		near(t, fmt.Sprintf("p_%d", i), got.QueueLength[i], want.QueueLength[i], tol)
	}
	near(t, "arrival rate", got.ArrivalRate, want.ArrivalRate, tol)
	near(t, "p_loss", got.Loss, want.Loss, tol)
	near(t, "p_obsolete", got.Obsolete, want.Obsolete, tol)
	near(t, "p_success", got.Success, want.Success, tol)
	near(t, "p_starvation", got.Starvation, want.Starvation, tol)
	near(t, "mean sojourn", got.Sojourn, want.Sojourn, tol)
	near(t, "mean sojourn of served", got.SojournServed, want.SojournServed, tol)
	near(t, "mean sojourn of stale", got.SojournObsolete, want.SojournObsolete, tol)
	near(t, "mean robots", got.MeanRobots, want.MeanRobots, tol)
}

func mustNew(t testing.TB, s Spec) *Model {
	t.Helper()
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustSolve(t testing.TB, s Spec) Result {
	t.Helper()
	m := mustNew(t, s)
	r, err := m.Solve(t.Context(), m.Policy())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func poisson(rate float64) Batches { return Batches{[][][]float64{{{-rate}}, {{rate}}}} }

func exponential(rate float64) *Service { return &Service{[]float64{1}, [][]float64{{-rate}}} }

// birthDeath returns the law of a birth and death process.
func birthDeath(n int, up, down func(i int) float64) []float64 {
	p := make([]float64, n+1)
	p[0] = 1
	sum := 1.0
	for i := 1; i <= n; i++ {
		p[i] = p[i-1] * up(i-1) / down(i)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// M/M/1/N: p_i = rho^i (1-rho)/(1-rho^{N+1}); an accepted page that finds i
// others stays (i+1)/mu.
func TestMM1N(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 10, 100} {
		for _, rho := range []float64{.01, .5, .95, 2, 50} {
			r := mustSolve(t, Spec{Capacity: n, Modes: []Batches{poisson(rho * 3)}, Service: exponential(3)})
			sojourn := 0.0
			norm := (1 - rho) / (1 - math.Pow(rho, float64(n+1)))
			for i := range n + 1 {
				p := math.Pow(rho, float64(i)) * norm
				near(t, fmt.Sprintf("N=%d rho=%g p_%d", n, rho, i), r.QueueLength[i], p, 1e-12)
				if i < n {
					sojourn += p * float64(i+1) / 3
				}
			}
			pn := math.Pow(rho, float64(n)) * norm
			near(t, "loss", r.Loss, pn, 1e-12)
			near(t, "success", r.Success, 1-pn, 1e-12)
			near(t, "sojourn", r.Sojourn, sojourn, 1e-12)
			near(t, "sojourn of served", r.SojournServed, sojourn/(1-pn), 1e-12)
			if r.Obsolete != 0 || r.SojournObsolete != 0 {
				t.Error("stale pages without obsolescence")
			}
		}
	}
}

// M/M/1/N+M: deaths mu + (i-1) theta. The page at place m of the queue with
// m-1 waiting before it is served with probability
// prod_{k=1..m} (mu + (k-1) theta)/(mu + k theta).
func TestMM1NM(t *testing.T) {
	t.Parallel()
	const lambda, mu, theta = 2.0, 1.5, .4
	for _, n := range []int{1, 3, 20, 100} {
		r := mustSolve(t, Spec{Capacity: n, Modes: []Batches{poisson(lambda)}, Service: exponential(mu), Obsolescence: &Obsolescence{[]float64{1}, [][]float64{{-theta}}}})
		p := birthDeath(n, func(int) float64 { return lambda }, func(i int) float64 { return mu + float64(i-1)*theta })
		var served, stale, length float64
		h := 1.0
		for i := range p {
			near(t, fmt.Sprintf("N=%d p_%d", n, i), r.QueueLength[i], p[i], 1e-12)
			length += float64(i) * p[i]
			stale += p[i] * float64(max(0, i-1)) * theta
			if i > 0 {
				h *= (mu + float64(i-1)*theta) / (mu + float64(i)*theta)
			}
			if i < n {
				served += p[i] * h
			}
		}
		near(t, "loss", r.Loss, p[n], 1e-12)
		near(t, "obsolete", r.Obsolete, stale/lambda, 1e-12)
		near(t, "success", r.Success, served, 1e-12)
		near(t, "sojourn", r.Sojourn, length/lambda, 1e-12)
	}
}

// M^X/M/1/N with partial admission. Cut between i and i+1: mu p_{i+1} =
// lambda sum_{l<=i} p_l P(X > i-l); what is lost follows by counting.
func TestMXM1N(t *testing.T) {
	t.Parallel()
	const lambda, mu = .7, 1.9
	x := []float64{0, .4, .1, .2, .3} // P(X = k)
	d := Batches{[][][]float64{{{-lambda}}}}
	mean := 0.0
	for k := 1; k < len(x); k++ {
		d.D = append(d.D, [][]float64{{lambda * x[k]}})
		mean += float64(k) * x[k]
	}
	for _, n := range []int{1, 2, 3, 4, 12, 100} {
		r := mustSolve(t, Spec{Capacity: n, Modes: []Batches{d}, Service: exponential(mu)})
		p, sum := []float64{1}, 1.0
		for i := range n {
			v := 0.0
			for l := 0; l <= i; l++ {
				for k := i - l + 1; k < len(x); k++ {
					v += p[l] * x[k]
				}
			}
			p, sum = append(p, v*lambda/mu), sum+v*lambda/mu
		}
		var accepted, sojourn float64
		for i := range p {
			p[i] /= sum
			near(t, fmt.Sprintf("N=%d p_%d", n, i), r.QueueLength[i], p[i], 1e-12)
			for k := 1; k < len(x); k++ {
				for j := 1; j <= min(k, n-i); j++ {
					accepted += p[i] * x[k]
					sojourn += p[i] * x[k] * float64(i+j) / mu
				}
			}
		}
		near(t, "arrival rate", r.ArrivalRate, lambda*mean, 1e-12)
		near(t, "loss", r.Loss, 1-accepted/mean, 1e-11)
		near(t, "balance of the server", r.Success*r.ArrivalRate, mu*(1-p[0]), 1e-12)
		near(t, "sojourn of served", r.SojournServed, sojourn/accepted, 1e-11)
	}
}

// Modes of M/M/1/N: births depend on the level.
func TestModesOfBirthDeath(t *testing.T) {
	t.Parallel()
	rates := []float64{.2, .9, 1.7, 4}
	s := Spec{Capacity: 9, Service: exponential(1.1), Thresholds: []int{-1, 2, 5}}
	for _, v := range rates {
		s.Modes = append(s.Modes, poisson(v))
	}
	m := mustNew(t, s)
	if got := fmt.Sprint(m.Policy()); got != "[3 3 3 2 2 2 1 1 1 1]" {
		t.Fatal("policy", got)
	}
	if got := fmt.Sprint(m.Thresholds(m.Policy())); got != "[-1 2 5]" {
		t.Fatal("thresholds", got)
	}
	r := mustSolve(t, s)
	p := birthDeath(9, func(i int) float64 { return rates[m.Policy()[i]-1] }, func(int) float64 { return 1.1 })
	robots := 0.0
	for i := range p {
		near(t, fmt.Sprintf("p_%d", i), r.QueueLength[i], p[i], 1e-13)
		robots += p[i] * float64(m.Policy()[i])
	}
	near(t, "robots", r.MeanRobots, robots, 1e-13)
}

// mapArrivals is a correlated process of two phases with batches of up to three.
func mapArrivals(f float64) Batches {
	b := Batches{[][][]float64{
		{{-3.1 * f, .1 * f}, {.05 * f, -.55 * f}},
		{{1.2 * f, 0}, {.1 * f, .2 * f}},
		{{.8 * f, .2 * f}, {0, .1 * f}},
		{{.7 * f, .1 * f}, {.1 * f, 0}},
	}}
	return b
}

var (
	hyperService = &Service{[]float64{.3, .7}, [][]float64{{-.9, 0}, {0, -6}}}
	coxService   = &Service{[]float64{1, 0}, [][]float64{{-3, 1.2}, {0, -1}}}
	staleLaws    = map[string]*Obsolescence{
		"exponential":      {[]float64{1}, [][]float64{{-.5}}},
		"Erlang-2":         {[]float64{1, 0}, [][]float64{{-1, 1}, {0, -1}}},
		"hyperexponential": {[]float64{.2, .8}, [][]float64{{-.1, 0}, {0, -3}}},
		"cyclic PH(3)":     {[]float64{.5, .2, .3}, [][]float64{{-2, 1.5, 0}, {0, -1, .9}, {.7, 0, -.8}}},
	}
)

// rowsOf returns a model's modes as plain rows.
func rowsOf(m *Model) [][][][]float64 {
	var out [][][][]float64
	for _, d := range m.d {
		var mode [][][]float64
		for _, x := range d {
			var rows [][]float64
			for i := range x.r {
				rows = append(rows, x.row(i))
			}
			mode = append(mode, rows)
		}
		out = append(out, mode)
	}
	return out
}

func TestAgainstBruteForce(t *testing.T) {
	t.Parallel()
	thinned := Spec{Common: ptr(mapArrivals(1)), Thinning: []float64{.2, .45, .8, 1}}
	var free Spec
	for _, f := range []float64{.3, .7, 1.1, 2} {
		free.Modes = append(free.Modes, mapArrivals(f))
	}
	for law, stale := range staleLaws {
		for name, arrivals := range map[string]Spec{"thinned": thinned, "modes": free} {
			for _, service := range []*Service{hyperService, coxService} {
				for _, policy := range [][]int{{4, 3, 3, 2, 2, 1}, {2, 4, 1, 3, 4, 2}} {
					t.Run(fmt.Sprint(law, name, service.Beta, policy), func(t *testing.T) {
						t.Parallel()
						s := arrivals
						s.Capacity, s.Service, s.Obsolescence, s.Policy = 5, service, stale, policy
						m := mustNew(t, s)
						p := plain{n: 5, d: rowsOf(m), beta: service.Beta, s: service.S, gamma: stale.Gamma, g: stale.G, policy: policy}
						got, want := mustSolve(t, s), p.solve(t)
						same(t, got, want, 1e-9)
						if got.States != want.States {
							t.Errorf("%g states, brute force found %g", got.States, want.States)
						}
					})
				}
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

// Small capacities, one page at a time and in batches beyond the capacity.
func TestSmallAgainstBruteForce(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		stale := staleLaws["cyclic PH(3)"]
		s := Spec{Capacity: n, Modes: []Batches{mapArrivals(.8)}, Service: hyperService, Obsolescence: stale}
		m := mustNew(t, s)
		p := plain{n: n, d: rowsOf(m), beta: s.Service.Beta, s: s.Service.S, gamma: stale.Gamma, g: stale.G, policy: m.Policy()}
		same(t, mustSolve(t, s), p.solve(t), 1e-10)
	}
}

// Pages of which some never go stale: the law of staleness is defective.
func TestNeverStale(t *testing.T) {
	t.Parallel()
	stale := &Obsolescence{[]float64{.4, .6}, [][]float64{{-1, 0}, {0, 0}}}
	s := Spec{Capacity: 4, Modes: []Batches{mapArrivals(1)}, Service: coxService, Obsolescence: stale}
	m := mustNew(t, s)
	p := plain{n: 4, d: rowsOf(m), beta: s.Service.Beta, s: s.Service.S, gamma: stale.Gamma, g: stale.G, policy: m.Policy()}
	same(t, mustSolve(t, s), p.solve(t), 1e-10)
}
