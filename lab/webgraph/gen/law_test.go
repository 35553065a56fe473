package gen

import (
	"fmt"
	"math"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

// The mean of the law, of its probabilities added one by one, and of many draws
// agree; so do the tail of the law and that of the draws.
func TestLaw(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		exponent, mean float64
		least, most    uint32
	}{{2.72, 8, 0, 65535}, {2.1, 8, 0, 65535}, {2.1, 64, 1, 1e6}, {2, 20, 1, 3e5}, {3.5, 2.5, 1, 10}, {2.72, .5, 0, 100}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			t.Parallel()
			l, err := NewLaw(tt.exponent, tt.mean, tt.least, tt.most)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for d := uint32(1); d <= tt.most; d++ {
				sum += l.Beyond(d)
			}
			if math.Abs(sum/tt.mean-1) > 1e-6 || math.Abs(l.Mean()/tt.mean-1) > 1e-9 {
				t.Errorf("mean %g, by adding up %g", l.Mean(), sum)
			}
			const n = 200_000
			counts := map[uint32]int{}
			for i := range uint64(n) {
				counts[l.Draw(rng.Mix(5, i))]++
			}
			at := 0
			for d := tt.most; d > 0 && at < n; d-- {
				at += counts[d]
				if p := l.Beyond(d); p*n > 100 {
					if z := (float64(at) - n*p) / math.Sqrt(n*p*(1-p)+1); math.Abs(z) > 5 {
						t.Fatalf("P(D >= %d) = %g, drawn %d of %d", d, p, at, n)
					}
				}
			}
		})
	}
	for _, bad := range [][2]float64{{1, 8}, {math.NaN(), 8}, {2.1, -1}, {2.1, 200}, {math.Inf(1), 8}} {
		if _, err := NewLaw(bad[0], bad[1], 0, 100); err == nil {
			t.Errorf("exponent %g and mean %g are accepted", bad[0], bad[1])
		}
	}
}
