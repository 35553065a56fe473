package score

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/truth"
	"pgregory.net/rapid"
)

// links is a graph by adjacency lists.
type links [][]uint64

func (l links) Nodes() uint64                              { return uint64(len(l)) }
func (l links) Successors(u uint64, buf []uint64) []uint64 { return append(buf, l[u]...) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// card scores records, given in the order of the log.
func card(t *testing.T, opt Options, pages uint64, records ...truth.Record) *Card {
	t.Helper()
	var log bytes.Buffer
	l, err := truth.NewLog(&log, truth.Head{Pages: pages})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		l.Add(&r)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := truth.NewReader(&log)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Read(t.Context(), r, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shown is an answer that showed a page at a time, on host "h".
func shown(at float64, page int64) truth.Record {
	return truth.Record{
		Time: after(at), Host: "h", Path: fmt.Sprintf("/%d", page), Method: "GET", Status: 200, Bytes: 100,
		Page: page, Kind: truth.Page, Duration: .5,
	}
}

func with(r truth.Record, change func(*truth.Record)) truth.Record {
	change(&r)
	return r
}

func TestCoverageAndWaste(t *testing.T) {
	t.Parallel()
	c := card(
		t, Options{}, 10,
		shown(0, 0), shown(1, 1),
		with(shown(2, 1), func(r *truth.Record) { r.Path = "/1?sid=7" }), // a duplicate
		shown(3, 1), // a revisit in vain
		with(shown(4, 1), func(r *truth.Record) { r.Version = 2 }),                     // a revisit that pays
		with(shown(5, 2), func(r *truth.Record) { r.CopyOf, r.Similarity = 1, 1 }),     // a copy of page 0
		with(shown(6, 3), func(r *truth.Record) { r.CopyOf, r.Similarity = 1, .8 }),    // a near copy
		with(shown(7, truth.NoPage), func(r *truth.Record) { r.Kind = truth.Trap }),    // a trap
		with(shown(8, truth.NoPage), func(r *truth.Record) { r.Kind = truth.Soft404 }), //
		with(shown(9, truth.NoPage), func(r *truth.Record) { r.Kind, r.Status = truth.Missing, 404 }),
		with(shown(10, 4), func(r *truth.Record) { r.Method = "HEAD" }), // shows nothing
	)
	if c.Coverage != .4 || c.Pages != 4 || c.Duplicates != 2 || c.NearCopies != 1 || c.TrapPages != 1 || c.Soft404 != 1 || c.DeadLinks != 1 || c.Revisits != 2 {
		t.Errorf("card %+v", c)
	}
	if c.WastedBytes != 600 || c.Wasted["unchanged"] != 100 || c.Wasted["duplicates"] != 200 {
		t.Errorf("wasted %d: %v", c.WastedBytes, c.Wasted)
	}
}

func TestPoliteness(t *testing.T) {
	t.Parallel()
	other := func(r truth.Record) truth.Record { r.Host = "other"; return r }
	robots := with(shown(0, truth.NoPage), func(r *truth.Record) { r.Path, r.Kind = "/robots.txt", truth.Robots })
	c := card(
		t, Options{}, 10,
		robots,
		shown(3, 1), // the log is in the order of ends
		with(shown(2.75, 2), func(r *truth.Record) { r.Duration = 2 }),
		other(shown(3, 3)), // another host: no overlap; robots.txt not read
		with(robots, func(r *truth.Record) { r.Host, r.Kind, r.Status = "broken", truth.Failure, 0 }),
		with(shown(4, 6), func(r *truth.Record) { r.Host = "broken" }),
		with(shown(8, 4), func(r *truth.Record) { r.Disallowed = true }),
		with(shown(9, 5), func(r *truth.Record) { r.CrawlDelay = 1 }),
	)
	if c.Overlaps != 1 || c.MinInterval != .25 || c.RobotsViolations != 1 || c.RobotsUnread != 1 || c.DelayViolations != 1 {
		t.Errorf("card %+v", c)
	}
}

// Two pages: one is current from 0 to 4 and, fetched again, from 6 to the end at
// 10; of the other the robot has a version that never ends, from 5 on.
func TestFreshness(t *testing.T) {
	t.Parallel()
	version := func(at float64, v uint64, until float64) truth.Record {
		return with(shown(at, 0), func(r *truth.Record) { r.Version, r.FreshUntil = v, after(until) })
	}
	end := with(shown(9.5, truth.NoPage), func(r *truth.Record) { r.Kind = truth.Other })
	c := card(
		t, Options{}, 4, version(0, 0, 4), shown(5, 1),
		with(version(5.5, 1, 12), func(r *truth.Record) { r.Status = 304 }), // a false 304 makes nothing fresh
		version(6, 1, 12),
		with(version(7, 1, 12), func(r *truth.Record) { r.Status = 304 }), // a true one
		end,
	)
	if want := (4. + 4 + 5) / 10 / 4; math.Abs(c.FreshnessMean-want) > 1e-9 {
		t.Errorf("mean freshness %g, want %g", c.FreshnessMean, want)
	}
	if c.Found[0] != .25 || c.Found[9] != .25 || c.Found[10] != .5 || c.Found[20] != .5 {
		t.Errorf("found %v", c.Found)
	}
	if c.FreshnessEnd != .5 || c.Freshness[0] != .25 || c.Freshness[9] != 0 || c.Freshness[11] != .25 || c.Freshness[13] != .5 {
		t.Errorf("freshness %v", c.Freshness)
	}
}

// A star: every page links to page 0, which links back to all.
func TestOrder(t *testing.T) {
	t.Parallel()
	const n = 100
	g := make(links, n)
	for i := uint64(1); i < n; i++ {
		g[i] = []uint64{0}
		g[0] = append(g[0], i)
	}
	// r0 = .15/n + .85 (1-r0)
	r0 := (.15/n + .85) / 1.85
	if got, err := PageRank(t.Context(), g); err != nil || math.Abs(got[0]-r0) > 1e-8 {
		t.Fatalf("PageRank of the centre %g, want %g; %v", got[0], r0, err)
	}
	c := card(t, Options{Graph: g, Obtainable: func(from []uint64) uint64 { return 40 + from[0] }}, n, shown(0, 0), shown(1, 1), shown(2, 2))
	if math.Abs(c.PageRankAt["0.01"]-r0) > 1e-8 || math.Abs(c.PageRankAt["1"]-r0-2*(1-r0)/(n-1)) > 1e-8 {
		t.Errorf("gathered %v, want %g first", c.PageRankAt, r0)
	}
	if c.KendallTau == nil || *c.KendallTau <= 0 || c.Reachable != n || c.CoverageReachable != .03 || c.Obtainable != 40 {
		t.Errorf("card %+v", c)
	}
	// Two chains: their first pages are seeds, and so is one asked for before the page that links to it.
	chains := links{{1}, {2}, nil, {4}, nil, {6}, nil}
	c = card(t, Options{Graph: chains}, 7, shown(0, 0), shown(1, 3), shown(2, 1), shown(3, 4), shown(4, 6), shown(5, 5))
	if c.Seeds != 4 || c.Reachable != 7 {
		t.Errorf("%d seeds, %d reachable, want 4 and 7", c.Seeds, c.Reachable)
	}
	mapped := with(shown(1, truth.NoPage), func(r *truth.Record) { r.Kind, r.Path = truth.Sitemap, "/sitemap.xml" })
	if c = card(t, Options{Graph: chains}, 7, shown(0, 0), mapped, shown(2, 3), shown(3, 5)); c.Seeds != 1 || c.Reachable != 3 {
		t.Errorf("%d seeds, %d reachable of a robot that read a sitemap", c.Seeds, c.Reachable)
	}
	last := card(t, Options{Graph: g}, n, shown(0, 1), shown(1, 2), shown(2, 0))
	if *last.KendallTau >= 0 {
		t.Errorf("tau %g of the worst order", *last.KendallTau)
	}
}

// PageRank solves its linear system: the residual of the defining equation
// vanishes on random graphs with pages that link nowhere.
func TestPageRankSolves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		g := make(links, n)
		for u := range g {
			for range rapid.IntRange(0, 4).Draw(t, "links") {
				g[u] = append(g[u], uint64(rapid.IntRange(0, n-1).Draw(t, "to")))
			}
		}
		r, err := PageRank(context.Background(), g)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, n)
		for u, out := range g {
			for v := range want {
				want[v] += .15 / float64(n) * r[u]
				if len(out) == 0 {
					want[v] += .85 / float64(n) * r[u]
				}
			}
			for _, v := range out {
				want[v] += .85 * r[u] / float64(len(out))
			}
		}
		sum := 0.
		for v := range want {
			sum += r[v]
			if math.Abs(r[v]-want[v]) > 1e-8 {
				t.Fatalf("page %d: %g, want %g", v, r[v], want[v])
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("ranks sum to %g", sum)
		}
	})
}

// Falling agrees with the definition of tau-b by all pairs.
func TestFalling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 8), func(i int) float64 { return float64(i) }), 2, 60).Draw(t, "values")
		var falling, rising, pairs float64
		for i := range v {
			for j := i + 1; j < len(v); j++ {
				pairs++
				if v[i] > v[j] {
					falling++
				} else if v[i] < v[j] {
					rising++
				}
			}
		}
		want := (falling - rising) / math.Sqrt(pairs*(falling+rising))
		if got := Falling(v); math.Abs(got-want) > 1e-12 && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("tau %g of %v, want %g", got, v, want)
		}
	})
	var fall, mixed []float64
	for i := range 1000 {
		fall = append(fall, -float64(i))
		mixed = append(mixed, rng.Unit(rng.Mix(1, uint64(i))))
	}
	if Falling(fall) != 1 || math.Abs(Falling(mixed)) > .1 {
		t.Errorf("tau %g of a falling, %g of a random order", Falling(fall), Falling(mixed))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	r, err := truth.NewReader(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), r, Options{Agent: "x"}); err == nil || !strings.Contains(err.Error(), `no request of an agent with "x"`) {
		t.Errorf("empty log: %v", err)
	}
	line := `{"time":"2026-01-02T03:04:05Z","host":"h","path":"/","method":"GET","status":200,"bytes":1,"agent":"","page":99,"conditional":false}`
	if r, err = truth.NewReader(strings.NewReader(line)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), r, Options{Graph: links{nil}}); err == nil || !strings.Contains(err.Error(), "another web") {
		t.Errorf("page outside the web: %v", err)
	}
}
