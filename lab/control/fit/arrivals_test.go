package fit

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// tableOf makes the log of a process: epochs of every arrival of a batch.
func tableOf(gaps []float64, sizes []int) *Table {
	t := &Table{Column: "time"}
	at := 0.0
	put := func(n int) {
		for range n {
			t.Values, t.Lines = append(t.Values, at), append(t.Lines, len(t.Values)+2)
		}
	}
	put(1)
	for i, g := range gaps {
		at += g
		put(sizes[i])
	}
	return t
}

func simulated(t *testing.T, b *BMAP, n int, label string) *Table {
	t.Helper()
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	g := gapsOf(b, n, label)
	return tableOf(g.Runs[0], g.All)
}

// A log of a known process gives a valid process of its moments and
// correlations, of a family that can have them.
func TestFitArrivalsRecovers(t *testing.T) {
	t.Parallel()
	mean, variance := 212.03, 51352.38
	paper, err := MomentRegimes(Summary{[]float64{mean, variance + mean*mean}, []float64{.622, .574, .555, .537, .523, .507}}, 30)
	if err != nil {
		t.Fatal(err)
	}
	mmpp := &BMAP{D: [][][]float64{{{-5.2, .2}, {.1, -.5}}, {{5, 0}, {0, .4}}}}
	tests := []struct {
		name   string
		truth  *BMAP
		method string // part of the expected method
		order  int    // at most
	}{
		{"Poisson", &BMAP{D: [][][]float64{{{-2}}, {{2}}}}, "", 2},
		{"renewal", Renewal(HyperErlang([]float64{.5, .5}, []int{1, 6}, []float64{2, 1})), "independent", 9},
		{"MMPP", mmpp, "", 6},
		{"three regimes", threeRegimes.BMAP(), "regimes", 12},
		{"paper", &paper.BMAP, "regimes", 30},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, o := 3000, ArrivalOptions{Regimes: 3}
			if os.Getenv("FRESHET_LONG") != "" {
				n, o = 50_000, ArrivalOptions{}
			}
			log := simulated(t, tt.truth, n, tt.name)
			f, err := FitArrivals(context.Background(), log, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Check(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(f.Method, tt.method) || f.Order() > tt.order {
				t.Errorf("%s, order %d", f.Method, f.Order())
			}
			near(t, "mean", f.Goodness.Moments[0].Fit, f.Goodness.Moments[0].Sample, 1e-6)
			near(t, "SCV", f.Goodness.SCV.Fit, f.Goodness.SCV.Sample, .15)
			for k, p := range f.Goodness.Lags {
				if math.Abs(p.Fit-p.Sample) > .08 {
					t.Errorf("lag %d: %.3f, log %.3f", k+1, p.Fit, p.Sample)
				}
			}
			if f.Goodness.KS.Distance > 4*f.Goodness.KS.Critical {
				t.Errorf("distance %g", f.Goodness.KS.Distance)
			}
			for _, c := range f.Tried {
				if err := c.Process.Check(); err != nil {
					t.Errorf("%s: %v", c.Method, err)
				}
				t.Logf("%v order %d %s BIC %.0f lags off %.3f ks %.4f", c.Chosen, c.Process.Order(), c.Method, c.Goodness.Score.BIC, c.LagError, c.Goodness.KS.Distance)
			}
			t.Log(strings.Join(f.Words, "\n"))
		})
	}
}

// Batches: their law is found, and that it belongs to the regimes if it does.
func TestFitArrivalsBatches(t *testing.T) {
	t.Parallel()
	own := &regimes{Order: []float64{3, 1}, Rate: []float64{30, .5}, Move: [][]float64{{.9, .1}, {.2, .8}}, Sizes: [][]float64{{.9, .1, 0}, {.1, .1, .8}}}
	for _, tt := range []struct {
		name  string
		truth *BMAP
		word  string
	}{
		{"own", own.BMAP(), "Each regime has its own law"},
		{"common", (&regimes{Order: own.Order, Rate: own.Rate, Move: own.Move}).BMAP().Batches([]float64{.5, .2, .3}), "do not depend on the regime"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := FitArrivals(context.Background(), simulated(t, tt.truth, 2500, tt.name), ArrivalOptions{Regimes: 2})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(f.Words, func(w string) bool { return strings.Contains(w, tt.word) }) {
				t.Errorf("%q lack %q", f.Words, tt.word)
			}
			if len(f.D) != 4 {
				t.Fatalf("%d matrices, want 4", len(f.D))
			}
			want, _ := tt.truth.Sizes()
			for k, p := range f.Batches {
				if math.Abs(p.Fit-want[k]) > .02 || math.Abs(p.Sample-want[k]) > .02 {
					t.Errorf("size %d: log %.3f, fit %.3f, truth %.3f", k+1, p.Sample, p.Fit, want[k])
				}
			}
			got, _ := f.Rate()
			span := 0.0
			for _, x := range f.Gaps.Runs[0] {
				span += x
			}
			near(t, "rate", got, float64(f.Gaps.Epochs)/span, .02)
		})
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	tab := &Table{Column: "time", Values: []float64{0, 0, 1, 1.01, 3, 4, 100, 101, 103}, Lines: []int{2, 3, 4, 5, 6, 7, 8, 9, 10}}
	g, err := tab.Gaps(Cleaning{Batch: .05, Pause: 50})
	if err != nil {
		t.Fatal(err)
	}
	if g.Pauses != 1 || g.Paused != 96 || len(g.Runs) != 2 || !slices.Equal(g.Runs[0], []float64{1, 3 - 1.01, 1}) || !slices.Equal(g.Runs[1], []float64{1, 2}) {
		t.Errorf("%+v", g)
	}
	if !slices.Equal(g.All, []int{2, 2, 1, 1, 1, 1, 1}) || !slices.Equal(g.Sizes[0], []int{2, 1, 1}) || !slices.Equal(g.Sizes[1], []int{1, 1}) {
		t.Errorf("sizes %v of %v", g.Sizes, g.All)
	}
	law, larger := g.SizeLaw(1)
	if larger != 2 || len(law) != 1 || math.Abs(law[0]-1) > 1e-12 {
		t.Errorf("%v, %d larger", law, larger)
	}
	if g, err = tab.Gaps(Cleaning{PauseQuantile: .8}); err != nil || g.Pauses != 1 {
		t.Errorf("quantile: %+v %v", g, err)
	}
	tab.Values[7] = 50
	if _, err = tab.Gaps(Cleaning{}); err == nil || !strings.Contains(err.Error(), "line 9: time 50 is before 100 of line 8; sort the log") {
		t.Errorf("disorder: %v", err)
	}
	if _, err = tab.Gaps(Cleaning{Sort: true}); err != nil {
		t.Errorf("sorted: %v", err)
	}
	tab.Values[5], tab.Values[7] = 2.5, 101
	if g, err = tab.Gaps(Cleaning{}); err != nil || g.Late != 1 || g.LateMax != .5 {
		t.Errorf("late by little: %+v %v", g, err)
	}
	if _, err = tab.Gaps(Cleaning{PauseQuantile: 1}); err == nil {
		t.Error("quantile 1 was taken")
	}
	if _, err = Epochs(nil).Gaps(Cleaning{}); err == nil {
		t.Error("an empty log was taken")
	}
	if _, err = Epochs([]float64{1, 1}).Gaps(Cleaning{}); err == nil || !strings.Contains(err.Error(), "0 times") {
		t.Errorf("too few: %v", err)
	}
}

// What looks like pauses, batches or a coarse clock is said.
func TestHints(t *testing.T) {
	t.Parallel()
	fine := gapsOf(threeRegimes.BMAP(), 2000, "hints")
	for _, tt := range []struct {
		name, want string
		change     func(i int, x float64) float64
	}{
		{"pause", "if the robots paused", func(i int, x float64) float64 {
			if i == 700 {
				return 1e6
			}
			return x
		}},
		{"batches", "if these are batches", func(i int, x float64) float64 {
			if i%4 == 0 {
				return x * 1e-7
			}
			return x
		}},
		{"clock", "clock is coarse", func(_ int, x float64) float64 { return math.Ceil(x) }},
		{"nothing", "", func(_ int, x float64) float64 { return x }},
	} {
		x := slices.Clone(fine.Runs[0])
		for i := range x {
			x[i] = tt.change(i, x[i])
		}
		s, err := NewSample(x)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(fine.cleaningHints(s, Cleaning{}), " ")
		if !strings.Contains(words, tt.want) || (tt.want == "" && words != "") {
			t.Errorf("%s: %q", tt.name, words)
		}
	}
}

// Correlations do not reach over pauses.
func TestLagsOfRuns(t *testing.T) {
	t.Parallel()
	lags, stderr := lagCorrelations([][]float64{{1, 3}, {3, 1}, {1, 3}}, 5)
	if len(lags) != 1 || math.Abs(lags[0]+1) > 1e-12 {
		t.Errorf("%v", lags)
	}
	near(t, "standard error", stderr[0], 1/math.Sqrt(3), 1e-12)
}

// The pages draw whatever was fitted: batches, one candidate only, ties.
func TestReports(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := threeRegimes.BMAP().Batches([]float64{.7, .3})
	for name, tab := range map[string]*Table{
		"batches": simulated(t, b, 600, "report"),
		"even":    Epochs([]float64{0, 1, 2, 3, 4, 5}),
		"three":   Epochs([]float64{0, 1, 3}),
	} {
		f, err := FitArrivals(ctx, tab, ArrivalOptions{Regimes: 2})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		page, err := f.Report()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var out strings.Builder
		if err := page.Write(&out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range []string{"<svg", "Distribution function", f.Method} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
	}
	s, err := NewSample([]float64{1, 2, 2, 5})
	if err != nil {
		t.Fatal(err)
	}
	v, err := FitService(ctx, s, ServiceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Report(s, "seconds").Write(&strings.Builder{}); err != nil {
		t.Error(err)
	}
}
