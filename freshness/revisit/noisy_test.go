package revisit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Without signals, or with such as say nothing, the value is the greedy one; a
// certain signal makes a visit worth all that it can be.
func TestNoisyLimits(t *testing.T) {
	t.Parallel()
	for _, d := range []float64{.1, 1, 10} {
		for _, tau := range []float64{.01, .5, 3} {
			want := Greedy(2, d, tau)
			for name, got := range map[string]float64{
				"no signals":             Noisy{}.Value(2, d, tau, 0),
				"noise alone":            Noisy{Recall: 0, False: 3}.Value(2, d, tau, 4),
				"recall near none":       Noisy{Recall: 1e-9}.Value(2, d, tau, 0),
				"next to nothing, noise": Noisy{Recall: 1e-9, False: 1}.Value(2, d, tau, 1),
			} {
				if !near(got, want, 1e-6*want+1e-9) {
					t.Errorf("%s, rate %g, after %g: %g, want %g", name, d, tau, got, want)
				}
			}
			if got := (Noisy{Recall: .5, False: 0}).Value(2, d, tau, 1); got != 2/d {
				t.Errorf("certain signal: %g, want %g", got, 2/d)
			}
			if got := (Noisy{Recall: 1, False: 0}).Value(2, d, tau, 0); !near(got, 0, 1e-12) {
				t.Errorf("complete signals and none came: %g, want 0", got)
			}
		}
	}
}

// Length of a cycle and fresh time in it, by simulation: a cycle ends when time
// plus b for each signal reaches what it is at now.
func TestNoisyValue(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for _, tt := range []struct {
		n       Noisy
		d, tau  float64
		signals int
	}{
		{Noisy{Recall: .5, False: .2}, 1, 1, 0},
		{Noisy{Recall: .8, False: .5}, 1, 1.5, 1},
		{Noisy{Recall: .3, False: 1}, 2, .7, 2},
		{Noisy{Recall: .9, False: .05}, .5, 2, 1},
		{Noisy{Recall: .6, False: 0}, 1, 1.2, 0},
		{Noisy{Recall: 1, False: .4}, 1, .9, 2},
	} {
		a, g := (1-tt.n.Recall)*tt.d, tt.n.Recall*tt.d+tt.n.False
		b := math.Inf(1)
		if tt.n.False > 0 && a > 0 {
			b = math.Log(g/tt.n.False) / a
		}
		const cycles = 400_000
		var psi, w float64
		for range cycles {
			now, fresh, changed, count := 0.0, 0.0, false, 0
			for {
				left := math.Inf(1)
				switch {
				case a == 0: // ends at the signal itself
				case math.IsInf(b, 1):
					left = tt.tau - now
				default:
					left = tt.tau + b*float64(tt.signals) - b*float64(count) - now
				}
				if left <= 0 {
					break
				}
				step := r.ExpFloat64() / (tt.d + tt.n.False)
				if step >= left {
					step = left
					count-- // no event
				}
				if !changed {
					fresh += step
				}
				now += step
				if step == left {
					break
				}
				if r.Float64() < tt.d/(tt.d+tt.n.False) {
					changed = true
					if r.Float64() < tt.n.Recall {
						count++
					}
				} else {
					count++
				}
				if a == 0 && count >= tt.signals || a > 0 && math.IsInf(b, 1) && count > 0 {
					break
				}
			}
			psi += now / cycles
			w += fresh / cycles
		}
		left := math.Exp(-a * tt.tau)
		if tt.n.False > 0 {
			left *= math.Pow(tt.n.False/g, float64(tt.signals))
		}
		want := w - left*psi
		if got := tt.n.Value(1, tt.d, tt.tau, tt.signals); !near(got, want, .006) {
			t.Errorf("%+v: %.4f, simulated %.4f", tt, got, want)
		}
	}
}

// A signal never lowers the value, nor does waiting.
func TestNoisyRises(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	for range 300 {
		n := Noisy{Recall: r.Float64(), False: math.Exp(3 * r.NormFloat64())}
		d, tau, k := math.Exp(2*r.NormFloat64()), math.Exp(2*r.NormFloat64()), r.IntN(4)
		v := n.Value(1, d, tau, k)
		if more := n.Value(1, d, tau, k+1); more < v-1e-9 {
			t.Errorf("%+v, rate %g, after %g: %g with %d signals, %g with one more", n, d, tau, v, k, more)
		}
		if more := n.Value(1, d, tau*1.1, k); more < v-1e-9 {
			t.Errorf("%+v, rate %g, %d signals: %g after %g, %g later", n, d, k, v, tau, more)
		}
		if math.IsNaN(v) || v < 0 || v > 1/d+1e-9 {
			t.Errorf("%+v, rate %g, after %g, %d signals: %g", n, d, tau, k, v)
		}
	}
}
