package stats

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

func distances(t interface{ Fatal(...any) }, g Graph, opt DistanceOptions) *Distances {
	d, err := FindDistances(context.Background(), g, opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDistancesClosedForms(t *testing.T) {
	t.Parallel()
	const n = 9
	harmonic := func(k int) (h float64) {
		for i := 1; i <= k; i++ {
			h += 1 / float64(i)
		}
		return h
	}
	for _, c := range []struct {
		name                        string
		links                       []link
		reachable, mean, efficiency float64
		longest                     int
	}{
		{"complete", complete(n), 1, 1, 1, 1},
		{"ring", ring(n), 1, n / 2., harmonic(n-1) / (n - 1), n - 1},
		// Of a path n-t pairs are t apart: mean (n+1)/3, half of the pairs joined.
		{"path", path(n), .5, (n + 1) / 3., (n*harmonic(n-1) - (n - 1)) / (n * (n - 1)), n - 1},
		{"star", star(n), 1. / n, 1, 1. / n, 1},
		{"nothing", nil, 0, 0, 0, 0},
	} {
		d := distances(t, graph(n, c.links), DistanceOptions{Workers: 2})
		if math.Abs(d.Reachable-c.reachable) > 1e-12 || math.Abs(d.Mean-c.mean) > 1e-12 || d.Longest != c.longest || !d.Exact ||
			math.Abs(d.Efficiency-c.efficiency) > 1e-12 {
			t.Errorf("%s: %+v, want %+v", c.name, *d, c)
		}
	}
	// Of the ring's pairs an equal number is at each distance: 90 % within 7.2.
	if d := distances(t, graph(n, ring(n)), DistanceOptions{}); math.Abs(d.Effective-.9*(n-1)) > 1e-12 {
		t.Errorf("effective %g, want %g", d.Effective, .9*(n-1))
	}
}

// Matrix powers are the other way: pairs within t links are those of (I+A)^t.
func TestDistancesByPowers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 15)
		m := g.matrix()
		d := distances(t, g, DistanceOptions{})
		at := make([][]bool, len(m))
		for u := range at {
			at[u] = make([]bool, len(m))
			at[u][u] = true
		}
		for _, pairs := range d.Pairs {
			var count float64
			next := make([][]bool, len(m))
			for u := range at {
				next[u] = slices.Clone(at[u])
				for v := range at {
					if at[u][v] {
						count++
						for w := range at {
							next[u][w] = next[u][w] || m[v][w]
						}
					}
				}
			}
			if count != pairs {
				t.Fatalf("%v pairs, by powers %g", d.Pairs, count)
			}
			at = next
		}
	})
}

// HyperBall's figures are within four of its standard errors of the exact ones,
// and those errors are of the size that is promised.
func TestHyperBall(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]*lists{"skewed": skewed(1000, 4, 1), "random": sparse(1000, 2700, rng.New(2, "balls")), "ring": graph(60, ring(60))} {
		exact := distances(t, g, DistanceOptions{Exact: 1e12})
		d := distances(t, g, DistanceOptions{Exact: -1, Runs: 6, Log2Registers: 7, Seed: 5, Workers: 2})
		for _, f := range []struct {
			what           string
			got, want, err float64
		}{
			{"reachable", d.Reachable, exact.Reachable, d.ReachableError},
			{"mean", d.Mean, exact.Mean, d.MeanError},
			{"effective", d.Effective, exact.Effective, d.EffectiveError},
			{"efficiency", d.Efficiency, exact.Efficiency, d.EfficiencyError},
		} {
			if math.Abs(f.got-f.want) > 5*f.err || f.err > .09*f.want {
				t.Errorf("%s: %s %g +- %g, exactly %g", name, f.what, f.got, f.err, f.want)
			}
		}
		if d.Longest > exact.Longest || d.Exact || d.Runs != 6 {
			t.Errorf("%s: %+v", name, d)
		}
		again := distances(t, g, DistanceOptions{Exact: -1, Runs: 6, Log2Registers: 7, Seed: 5, Workers: 1})
		if !slices.Equal(again.Pairs, d.Pairs) {
			t.Errorf("%s: the number of workers changes the result", name)
		}
	}
}

// A counter of k pages is off by 1.04/sqrt(m) in the mean square, without bias,
// for small and for great k.
func TestEstimate(t *testing.T) {
	t.Parallel()
	const log2m, trials = 6, 300
	for _, k := range []uint32{1, 10, 100, 200, 2000} {
		var sum, squares float64
		for s := range uint64(trials) {
			b := newBalls(graph(int(k), nil), log2m, rng.Mix(9, s), 1)
			all := make([]byte, b.m)
			for u := range int(k) {
				widenRegisters(all, b.now[u*b.m:(u+1)*b.m])
			}
			e := b.estimateBall(all)/float64(k) - 1
			sum, squares = sum+e/trials, squares+e*e/trials
		}
		err := 1.04 / math.Sqrt(1<<log2m)
		if math.Abs(sum) > 4*err/math.Sqrt(trials)+.005 || math.Sqrt(squares) > 1.15*err {
			t.Errorf("%d pages: bias %.4f, error %.4f; promised %.4f", k, sum, math.Sqrt(squares), err)
		}
	}
}

func TestWiden(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.ByteRange(0, 127), 16, 16)
		a, b := v.Draw(t, "a"), v.Draw(t, "b")
		want := make([]byte, 16)
		for i := range want {
			want[i] = max(a[i], b[i])
		}
		changed := !slices.Equal(a, want)
		if got := widenRegisters(a, b); got != changed || !slices.Equal(a, want) {
			t.Fatalf("%v (%v), want %v (%v)", a, got, want, changed)
		}
	})
}

func TestDistanceBounds(t *testing.T) {
	t.Parallel()
	g := graph(50, ring(50))
	if d := distances(t, g, DistanceOptions{Exact: -1, MaxRounds: 10, Runs: 1}); !d.CutOff || d.Longest != 10 || d.MeanError == 0 {
		t.Errorf("10 rounds: %+v", d)
	}
	if _, err := FindDistances(context.Background(), g, DistanceOptions{Exact: -1, Memory: 1000}, nil); err == nil {
		t.Error("a kilobyte sufficed")
	}
	if d := distances(t, g, DistanceOptions{Exact: -1, Memory: 50 * 2 * 70}); d.Log2Registers != 6 {
		t.Errorf("log2m %d, want 6", d.Log2Registers)
	}
	if d := distances(t, graph(0, nil), DistanceOptions{}); !d.Exact {
		t.Errorf("no pages: %+v", d)
	}
}
