package powerlaw

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/freshet/freshet/internal/rng"
)

// Goodness is the answer of the bootstrap: P is the share of samples of the
// fitted law that lie farther from their own fits than the observations do.
// Clauset et al. reject the law below 0.1. Replications is how many samples
// were drawn; P is good to about 1/(2 sqrt(Replications)).
type Goodness struct {
	P            float64
	Replications int
}

// Bootstrap bounds a goodness test: it ends after Replications samples or when
// Time is used up, whichever is first, but never before one sample.
type Bootstrap struct {
	Seed         uint64
	Replications int
	Time         time.Duration // 0: no bound
}

// Test draws samples of as many observations as h has: each from the law with
// the probability that an observation is in the tail, else from the
// observations below Xmin; and fits each as l was fitted, with an xmin, and a shift
// where l has one, of its own. Equal seeds give equal samples. Whether Time ran out depends on the machine.
func (b Bootstrap) Test(ctx context.Context, h *Histogram, l Law) (Goodness, error) {
	start := time.Now()
	fit := Fit
	if l.Shift != 0 {
		fit = FitShifted
	}
	var g Goodness
	farther := 0
	for r := range b.Replications {
		if err := ctx.Err(); err != nil {
			return g, err
		}
		if b.Time > 0 && r > 0 && time.Since(start) > b.Time {
			break
		}
		s := sampleHistogram(h, l, rng.New(b.Seed, "powerlaw", r))
		f, err := fit(s)
		if err != nil {
			continue // a sample too small to fit says nothing
		}
		g.Replications++
		if f.Distance >= l.Distance {
			farther++
		}
	}
	if g.Replications == 0 {
		return g, ErrFew
	}
	g.P = float64(farther) / float64(g.Replications)
	return g, nil
}

// sampleHistogram draws a histogram: multinomial below xmin, the law above.
func sampleHistogram(h *Histogram, l Law, r *rand.Rand) *Histogram {
	counts := make(map[int64]int64)
	tail := drawBinomial(h.total, float64(l.Tail)/float64(h.total), r)
	left, mass := h.total-tail, h.total-l.Tail
	for i := 0; left > 0 && i < len(h.values) && h.values[i] < l.Xmin; i++ {
		c := drawBinomial(left, float64(h.counts[i])/float64(mass), r)
		mass -= h.counts[i]
		left -= c
		counts[h.values[i]] = c
	}
	l.drawObservations(tail, r, counts)
	return NewHistogram(counts)
}

// drawObservations adds n observations of the law to counts. As long as many are left it
// draws how many of them have the next value; the last ones are drawn singly,
// so the work does not grow with n.
func (l Law) drawObservations(n int64, r *rand.Rand, counts map[int64]int64) {
	x := l.Xmin
	for ; n > 2000; x++ {
		c := drawBinomial(n, math.Pow(float64(x)+l.Shift, -l.Exponent)/l.tailSum(x), r)
		counts[x] += c
		n -= c
	}
	rest := Law{Exponent: l.Exponent, Shift: l.Shift, Xmin: x}
	for range n {
		counts[rest.Rand(r)]++
	}
}

// Rand draws one observation by inversion: the greatest x with
// P(X >= x) >= u, found by doubling and halving. Values end at 2^53.
func (l Law) Rand(r *rand.Rand) int64 {
	u := (1 - r.Float64()) * l.tailSum(l.Xmin)
	low, high := l.Xmin, l.Xmin+1
	for high < 1<<53 && l.tailSum(high) >= u {
		low, high = high, 2*high
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		if l.tailSum(mid) >= u {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

func drawBinomial(n int64, p float64, r *rand.Rand) int64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	}
	return int64(distuv.Binomial{N: float64(n), P: p, Src: r}.Rand())
}
