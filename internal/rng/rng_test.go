package rng

import (
	"math"
	"testing"
)

func TestStreamsAreNamed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		a, b []any
		same bool
	}{
		{"equal names", []any{1, "field"}, []any{1, "field"}, true},
		{"other number", []any{1, "field"}, []any{2, "field"}, false},
		{"labels do not run together", []any{"ab", "c"}, []any{"a", "bc"}, false},
		{"number is not its text", []any{1}, []any{"1"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Key(7, tt.a...) == Key(7, tt.b...); got != tt.same {
				t.Errorf("Key(%v) == Key(%v) is %v", tt.a, tt.b, got)
			}
		})
	}
}

// Neighbouring seeds must not give correlated streams: the sample correlation
// of n pairs has standard deviation 1/sqrt(n).
func TestNeighbouringStreamsAreUncorrelated(t *testing.T) {
	t.Parallel()
	const n = 100_000
	a, b := New(1, "x", 1), New(1, "x", 2)
	mixA, mixB := uint64(1), uint64(2)
	var streams, mixed float64
	for i := range uint64(n) {
		streams += (a.Float64() - .5) * (b.Float64() - .5)
		mixed += (Unit(Mix(mixA, i)) - .5) * (Unit(Mix(mixB, i)) - .5)
	}
	for name, sum := range map[string]float64{"New": streams, "Mix": mixed} {
		if r := sum / n * 12; math.Abs(r) > 5/math.Sqrt(n) {
			t.Errorf("%s: correlation %.4f of neighbouring seeds", name, r)
		}
	}
}

func TestMixIsUniform(t *testing.T) {
	t.Parallel()
	const n, cells = 160_000, 16
	var count [cells]int
	for i := range uint64(n) {
		count[int(Unit(Mix(42, i))*cells)]++
	}
	var chi2 float64
	for _, c := range count {
		d := float64(c) - n/cells
		chi2 += d * d / (n / cells)
	}
	if chi2 > 44 { // 15 degrees of freedom, p = 0.0001
		t.Errorf("chi-square %.1f over %d cells", chi2, cells)
	}
}

func BenchmarkMix(b *testing.B) {
	var s uint64
	for i := range uint64(b.N) {
		s += Mix(1, i)
	}
	_ = s
}
