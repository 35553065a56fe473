package sweep

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/freshet/freshet/internal/rng"
)

// The probability by the t distribution agrees with that by permutations, and
// the coefficients with values worked by hand.
func TestCorrelations(t *testing.T) {
	t.Parallel()
	x := []float64{1, 2, 3, 4, 5}
	y := []float64{2, 1, 4, 3, 5}
	if l := pearsonCorrelation(x, y); math.Abs(l.r-.8) > 1e-12 || math.Abs(l.p-.104088) > 1e-5 {
		t.Errorf("r %.6f, p %.6f", l.r, l.p)
	}
	if l := spearmanCorrelation([]float64{1, 10, 100, 1000}, []float64{1, 2, 3, 4}); math.Abs(l.r-1) > 1e-12 || l.p > 1e-6 {
		t.Errorf("rank r %.6f, p %g", l.r, l.p)
	}
	if got := averageRanks([]float64{5, 1, 5, 0}); !slices.Equal(got, []float64{3.5, 2, 3.5, 1}) {
		t.Errorf("ranks %v", got)
	}
	for _, bad := range [][2][]float64{{{1, 1, 1}, {1, 2, 3}}, {{1, 2}, {1, 2}}} {
		if l := pearsonCorrelation(bad[0], bad[1]); !math.IsNaN(l.r) || !math.IsNaN(l.p) {
			t.Errorf("%v: %v", bad, l)
		}
	}
	r := rng.New(1, "permutations")
	var a, b []float64
	for range 25 {
		v := r.NormFloat64()
		a, b = append(a, v), append(b, .4*v+r.NormFloat64())
	}
	l := pearsonCorrelation(a, b)
	const n = 20_000
	extreme := 0.
	for range n {
		r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		if math.Abs(pearsonCorrelation(a, b).r) >= math.Abs(l.r) {
			extreme++
		}
	}
	if p := extreme / n; math.Abs(p-l.p) > 5*math.Sqrt(l.p/n)+.1*l.p {
		t.Errorf("p %.5f, by permutations %.5f", l.p, p)
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	e := estimateOf([]float64{1, 2, 3, 4})
	if math.Abs(e.mean-2.5) > 1e-12 || math.Abs(e.half-3.182446*math.Sqrt(5./3)/2) > 1e-5 || !e.differsFromZero() {
		t.Errorf("%+v", e)
	}
	if e := estimateOf([]float64{-1, 1, 3}); e.differsFromZero() {
		t.Errorf("%+v differs from 0", e)
	}
	if e := estimateOf([]float64{7}); e.mean != 7 || !math.IsNaN(e.half) || !e.differsFromZero() {
		t.Errorf("%+v", e)
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	one := func(name string, f, v float64) watched {
		return watched{name, []float64{f}, []float64{v}, []int{0}}
	}
	ps := rankVariants(7, []watched{one("a", 90, 10), one("b", 80, 5), one("c", 80, 5), one("d", 70, 5), one("e", 95, 20), one("f", 60, 30)})
	want := []place{
		{Variant: "a", Front: 1, FreshnessRank: 2, VolumeRank: 4},
		{Variant: "b", Front: 1, FreshnessRank: 3, VolumeRank: 1, Ties: "c"},
		{Variant: "c", Front: 1, FreshnessRank: 3, VolumeRank: 1, Ties: "b"},
		{Variant: "d", Front: 2, FreshnessRank: 5, VolumeRank: 1, DominatedBy: "b c"},
		{Variant: "e", Front: 1, FreshnessRank: 1, VolumeRank: 5},
		{Variant: "f", Front: 3, FreshnessRank: 6, VolumeRank: 6, DominatedBy: "a b c d e"},
	}
	for i, w := range want {
		g := ps[i]
		if g.Variant != w.Variant || g.Front != w.Front || g.FreshnessRank != w.FreshnessRank || g.VolumeRank != w.VolumeRank || g.Ties != w.Ties || g.DominatedBy != w.DominatedBy || g.Field != 7 {
			t.Errorf("%+v\nwant %+v", g, w)
		}
	}
	// With replications, noise ties; a steady difference does not, however small.
	noisy := []watched{
		{"a", []float64{90, 91, 92}, []float64{5, 6, 7}, []int{0, 1, 2}},
		{"b", []float64{90.1, 90.8, 92.1}, []float64{5.1, 5.9, 7}, []int{0, 1, 2}},
		{"c", []float64{90.010, 91.011, 92.012}, []float64{5, 6, 7}, []int{0, 1, 2}},
	}
	ps = rankVariants(1, noisy)
	if ps[0].Ties != "b" || !strings.Contains(ps[2].Ties, "b") || ps[0].DominatedBy != "c" || ps[0].Front != 2 {
		t.Errorf("%+v", ps)
	}
	pairs := compareToBaseline(1, "a", noisy)
	if len(pairs) != 2 || pairs[0].Verdict != "as fresh, same volume" || pairs[1].Verdict != "fresher, same volume" {
		t.Errorf("%+v", pairs)
	}
}

// The report of a real sweep has every run in both tables, names what is
// missing and what is damaged.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := context.Background()
	if _, err := Read(ctx, dir); !errors.Is(err, ErrInput) {
		t.Errorf("an empty directory: %v", err)
	}
	mustSweep(t, small, Config{Dir: dir, Cell: Cell{1, 4}})
	r, err := Read(ctx, dir)
	must(t, err)
	if r.Missing != 18 || r.Read != 6 {
		t.Errorf("%d missing, %d read", r.Missing, r.Read)
	}
	must(t, r.Write(dir)) // with holes
	mustSweep(t, small, Config{Dir: dir})
	r, err = Read(ctx, dir)
	must(t, err)
	must(t, r.Write(dir))
	lines := map[string]int{"runs.csv": 24, "ranking.csv": 12, "paired.csv": 8, "correlation.csv": 4 * 2 * len(responses)}
	for name, n := range lines {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		must(t, err)
		if len(rows) != n+1 {
			t.Errorf("%s has %d lines, want %d", name, len(rows)-1, n)
		}
	}
	runs, _ := os.ReadFile(filepath.Join(dir, "runs.csv"))
	if !strings.HasPrefix(string(runs), "field,pages,time,changes,requests,variant,replication,freshness_end,freshness_mean,stale_end,bytes,cycles,delay_min,delay_mean,delay_max,max_in_progress,events,seconds,") {
		t.Errorf("header of runs.csv: %.200s", runs)
	}
	rows, err := parquet.ReadFile[row](filepath.Join(dir, "runs.parquet"))
	must(t, err)
	if !slices.Equal(rows, r.rows) {
		t.Error("runs.parquet does not hold what was read")
	}
	page, _ := os.ReadFile(filepath.Join(dir, "report.html"))
	for _, want := range []string{"<svg", "Freshness against volume", "Against plain:1", "conditional:2", "Surfaces of freshness: changes and ", "Surfaces of volume: changes and "} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("report.html lacks %q", want)
		}
	}
	checkSurfaces(t, r)
	bad := r.plan.Jobs()[5].Path(dir)
	must(t, os.WriteFile(bad, []byte("{}"), 0o644))
	if _, err := Read(ctx, dir); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), bad) {
		t.Errorf("damage: %v", err)
	}
}

// checkSurfaces sums the cells of each surface up to the mean over all runs of
// the variant: every run is in one cell.
func checkSurfaces(t *testing.T, r *Report) {
	t.Helper()
	pairs := r.pairsOfFactors()
	if len(pairs) == 0 {
		t.Fatal("no two factors vary")
	}
	for _, v := range r.plan.Variants {
		m := r.surfaceMap(v, pairs[0], "freshness_mean", 1)
		got, cells, want, n := 0., 0., 0., 0.
		for _, line := range m.Values {
			for _, x := range line {
				got, cells = got+x, cells+1
			}
		}
		for i := range r.rows {
			if r.rows[i].Variant == v {
				want, n = want+r.rows[i].FreshnessMean, n+1
			}
		}
		if math.Abs(got/cells-want/n) > 1e-9 || len(m.Y) < 2 || len(m.X) < 2 {
			t.Errorf("%s: mean %g over %d x %d cells, %g over runs", v, got/cells, len(m.Y), len(m.X), want/n)
		}
	}
}
