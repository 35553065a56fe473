package stats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/webgraph"
)

// hosted is skewed with hosts of ten pages.
func hosted(n, k int, seed uint64) *lists {
	g := skewed(n, k, seed)
	for u := 0; u < n; u += 10 {
		g.hosts = append(g.hosts, uint32(u))
	}
	return g
}

func TestAnalyse(t *testing.T) {
	t.Parallel()
	g := hosted(3000, 5, 1)
	told := map[string]bool{}
	a, err := Analyse(context.Background(), g, Options{Seed: 7, Replications: 3, Progress: func(step string, _, _ int64) { told[step] = true }})
	if err != nil {
		t.Fatal(err)
	}
	if a.Nodes != 3000 || a.Links != 15_000 || a.MeanOut != 5 || len(a.Seconds) != 9 {
		t.Errorf("%+v", a)
	}
	if sum := a.BowTie.SCC + a.BowTie.In + a.BowTie.Out + a.BowTie.Other; math.Abs(sum-1) > 1e-12 {
		t.Errorf("the bow-tie sums to %g", sum)
	}
	if a.InLaw == nil || a.InLaw.Replications != 3 || a.IntraHost == nil || a.Hosts.Hosts != 300 || len(a.PageRank.Top) != 10 || a.PageRank.Top[0].Rank < a.PageRank.Top[1].Rank {
		t.Errorf("laws, hosts, PageRank: %+v %+v", a.InLaw, a.PageRank)
	}
	if !told["degrees"] || !told["components"] {
		t.Errorf("told of %v only", told)
	}
	again, err := Analyse(context.Background(), g, Options{Seed: 7, Replications: 3, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	a.Seconds, again.Seconds = nil, nil
	one, _ := json.Marshal(a)
	two, _ := json.Marshal(again)
	if !bytes.Equal(one, two) {
		t.Errorf("the same seed and two workers:\n%s\n%s", one, two)
	}
}

// The fields that other programs rely on, whatever the graph is like.
func TestAnalysisFields(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]*lists{"nothing": graph(0, nil), "one page": graph(1, nil), "no links": graph(50, nil), "ring": graph(50, ring(50)), "hosts": hosted(2000, 3, 2)} {
		for _, skip := range [][]string{nil, Steps()} {
			a, err := Analyse(context.Background(), g, Options{Replications: 1, Skip: skip})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			p, err := DefaultProfile()
			if err != nil {
				t.Fatal(err)
			}
			p.Compare(a)
			b, err := json.Marshal(a)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var fields map[string]any
			if err := json.Unmarshal(b, &fields); err != nil {
				t.Fatal(err)
			}
			for _, f := range strings.Fields("nodes links mean_out_degree in_exponent out_exponent in_xmin out_xmin clustering largest_scc bow_tie reciprocity intra_host") {
				if _, ok := fields[f]; !ok {
					t.Errorf("%s: no field %s", name, f)
				}
			}
			var page bytes.Buffer
			if err := a.WriteReport(&page, name, p); err != nil {
				t.Errorf("%s: report: %v", name, err)
			}
			if !strings.Contains(page.String(), "Beside real webs") {
				t.Errorf("%s: the report has no comparison", name)
			}
		}
	}
}

// The report of a web with everything has a plot for each of its laws.
func TestReport(t *testing.T) {
	t.Parallel()
	a, err := Analyse(context.Background(), hosted(2000, 5, 3), Options{Replications: 1, Distances: DistanceOptions{Exact: -1, Runs: 2}})
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := a.WriteReport(&page, "test", nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "In-degrees", "Out-degrees", "Bow-tie", "IN ", "Distribution of PageRank", "Share of the joined pairs", "k-cores", "Sizes of hosts", "HyperBall, 2 runs"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "<script") || strings.Contains(page.String(), "NaN") || strings.Contains(page.String(), "http-equiv") {
		t.Error("the report has scripts or NaN")
	}
}

func TestAnalyseRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Analyse(context.Background(), graph(1, nil), Options{Skip: []string{"everything"}}); err == nil || !strings.Contains(err.Error(), "clustering") {
		t.Errorf("unknown step: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Analyse(ctx, graph(5, ring(5)), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	p, err := DefaultProfile()
	if err != nil {
		t.Fatal(err)
	}
	scc := .5
	a := &Analysis{MeanOut: 36, BowTie: &TieShare{SCC: scc, In: .9}}
	got := map[string]Compared{}
	for _, c := range p.Compare(a) {
		got[c.Figure] = c
	}
	if !got["mean_out_degree"].Within || !got["bow_tie.scc"].Within || got["bow_tie.in"].Within || got["in_exponent"].Value != nil || got["in_exponent"].Within {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", "figures: []", "figures: [{figure: beauty}]", "figures: [{figure: in_exponent, value: 2, low: 3, high: 4}]", "figures: [{figure: in_exponent, value: 2, low: .nan, high: 4}]", "x: 1", "{"} {
		if _, err := ReadProfile(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzReadProfile(f *testing.F) {
	b, err := profiles.ReadFile("profiles/web.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("figures: [{figure: in_exponent, value: 2, low: 1, high: 4}]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadProfile(bytes.NewReader(b))
		if err != nil {
			return
		}
		p.Compare(&Analysis{})
	})
}

// The share of the highest pages, against sorting.
func TestTopShare(t *testing.T) {
	t.Parallel()
	r := rng.New(1, "top")
	for _, n := range []int{1, 2, 150, 1000} {
		ranks := make([]float64, n)
		counts := make([]int64, bins)
		for i := range ranks {
			ranks[i] = math.Exp(3*r.NormFloat64()) / float64(n)
			counts[logBin(ranks[i]*float64(n))]++
		}
		for _, k := range []int{1, max(1, n/100), n} {
			var want float64
			for i, v := range ranks {
				higher := 0
				for j, w := range ranks {
					if w > v || w == v && j < i {
						higher++
					}
				}
				if higher < k {
					want += v
				}
			}
			if got := topShare(ranks, counts, k); math.Abs(got/want-1) > 1e-9 {
				t.Errorf("%d of %d: %g, want %g", k, n, got, want)
			}
		}
	}
}

// A graph whose links are coded has the figures of the graph, with goroutines that
// each decode for themselves.
func TestAnalyseCoded(t *testing.T) {
	t.Parallel()
	g := hosted(20_000, 4, 5)
	for u := range uint32(g.Nodes()) { // coded lists hold each link once
		g.out[u] = simplifyList(nil, slices.Sorted(slices.Values(g.out[u])), u)
	}
	dir := t.TempDir()
	w, err := webgraph.Create(filepath.Join(dir, "plain"), webgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, list := range g.out {
		if err := w.Append(list); err != nil {
			t.Fatal(err)
		}
	}
	w.SetSites(g.hosts)
	if err := w.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, name := range []string{"plain", "coded"} {
		stored, err := webgraph.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer stored.Close()
		opt := Options{Seed: 7, Replications: 2, Workers: 3, Distances: DistanceOptions{Exact: -1, Log2Registers: 4, Runs: 1}, Clustering: ClusteringOptions{ExactLinks: -1, Wedges: 2000}}
		a, err := Analyse(t.Context(), stored, opt)
		if err != nil {
			t.Fatal(err)
		}
		a.Seconds = nil
		got, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if want != nil && !bytes.Equal(got, want) {
			t.Errorf("plain:\n%s\ncoded:\n%s", want, got)
		}
		if want = got; name == "plain" {
			if err := webgraph.Code(t.Context(), stored, filepath.Join(dir, "coded"), webgraph.Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
