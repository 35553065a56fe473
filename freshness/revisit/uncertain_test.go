package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The value under a belief is the mean of Greedy over Gamma distributed rates:
// by the formula, by an integral over time, and by rates drawn. A sure belief is
// a known rate.
func TestUncertain(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		mu, d, shape := math.Exp(r.NormFloat64()), math.Exp(2*r.NormFloat64()), math.Exp(1.5*r.NormFloat64())
		tau := math.Exp(2*r.NormFloat64()) / d
		want, scale := 0., shape/d
		const steps = 4000 // of mu s E[D e^{-Ds}] = mu s a T^a/(T+s)^(a+1)
		for i := range steps {
			s := tau * (float64(i) + .5) / steps
			want += mu * s * shape / scale * math.Pow(1+s/scale, -shape-1) * tau / steps
		}
		if got := Uncertain(mu, d, shape, tau); math.Abs(got-want) > 2e-3*want {
			t.Errorf("mu %g, d %g, shape %g, tau %g: %g, want %g", mu, d, shape, tau, got, want)
		}
		value := Uncertain(mu, d, shape, tau)
		if back := waitUncertain(mu, d, shape, value); value < .99*mostUncertain(mu, d, shape) && math.Abs(back-tau) > 1e-4*tau {
			t.Errorf("mu %g, d %g, shape %g: worth %g after %g, not %g", mu, d, shape, value, tau, back)
		}
		if sure, known := Uncertain(mu, d, 1e7, tau), Greedy(mu, d, tau); math.Abs(sure-known) > 1e-4*known {
			t.Errorf("a sure belief: %g, known %g", sure, known)
		}
	}
	// Drawn: with shape 1 rates are exponential.
	const n = 400_000
	sum := 0.
	for range n {
		sum += Greedy(1, r.ExpFloat64()*2, 3) / n
	}
	if got := Uncertain(1, 2, 1, 3); math.Abs(got-sum) > .01*sum {
		t.Errorf("%g, drawn %g", got, sum)
	}
}

// Shapes are kept to some per cent, beside the group; a probe comes at its time,
// once, and a visit before it does away with it.
func TestProbe(t *testing.T) {
	t.Parallel()
	k := kin(12345).withShape(math.Inf(1))
	if k.groupNumber() != 12345 || !math.IsInf(k.beliefShape(), 1) {
		t.Errorf("group %d, shape %g", k.groupNumber(), k.beliefShape())
	}
	for _, shape := range []float64{.07, .25, 1, 31, 900} {
		if k = k.withShape(shape); math.Abs(k.beliefShape()-shape) > .05*shape || k.groupNumber() != 12345 {
			t.Errorf("shape %g is kept as %g, group %d", shape, k.beliefShape(), k.groupNumber())
		}
	}
	s := NewSchedule(Rules()["greedy"])
	for range 100 {
		if _, err := s.Add(1, .01, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Start(1); err != nil {
		t.Fatal(err)
	}
	visits := func(from, to float64) (seen []float64) {
		for now := from; now < to; now++ {
			if id, ok := s.Next(now); ok && id == 7 {
				seen = append(seen, now)
			}
		}
		return seen
	}
	visits(0, 500)
	_, _, last, _ := s.Known(7)
	if now := 500.; last > now-20 {
		visits(now, now+40)
	}
	_, _, last, _ = s.Known(7)
	before := visits(540, 545)
	if err := s.Probe(7, 550); err != nil {
		t.Fatal(err)
	}
	after := visits(545, 590)
	if len(before) > 0 && before[0] == 550 || len(after) == 0 || after[0] > 552 {
		t.Errorf("last visit at %g; visits %v, then %v: no probe at 550", last, before, after)
	}
	if len(after) > 1 {
		t.Errorf("visits at %v: one probe was wanted", after)
	}
}
