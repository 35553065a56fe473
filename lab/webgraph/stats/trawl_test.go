package stats

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/internal/rng"
)

func trawl(t interface{ Fatal(...any) }, g Graph, opt TrawlOptions) *Trawled {
	opt.Keep = 1 << 20
	r, err := Trawl(context.Background(), g, opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bipartiteLinks links fans from..from+i-1 to centres to..to+j-1.
func bipartiteLinks(from, i, to, j uint32) (all []link) {
	for u := range i {
		for v := range j {
			all = append(all, link{from + u, to + v})
		}
	}
	return all
}

func TestTrawlClosedForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		links         []link
		opt           TrawlOptions
		count, fans   int64
		largest, wide int
	}{
		{"one core", bipartiteLinks(0, 3, 10, 3), TrawlOptions{}, 1, 3, 3, 3},
		{"a greater one", bipartiteLinks(0, 5, 10, 4), TrawlOptions{}, 1, 5, 5, 4},
		{"a fan short", bipartiteLinks(0, 2, 10, 9), TrawlOptions{}, 0, 0, 0, 0},
		{"a centre short", bipartiteLinks(0, 9, 10, 2), TrawlOptions{}, 0, 0, 0, 0},
		{"two", append(bipartiteLinks(0, 3, 10, 3), bipartiteLinks(4, 4, 15, 3)...), TrawlOptions{}, 2, 7, 4, 3},
		{"ring", ring(20), TrawlOptions{}, 0, 0, 0, 0},
		{"centres too famous", bipartiteLinks(0, 6, 10, 3), TrawlOptions{Famous: 5}, 0, 0, 0, 0},
		{"two by two", bipartiteLinks(0, 2, 10, 2), TrawlOptions{Fans: 2, Centres: 2}, 1, 2, 2, 2},
		// Everybody links to all others: three pages and three of their ends, again and again.
		{"complete", complete(6), TrawlOptions{Fans: 3, Centres: 3}, 2, 6, 3, 3},
	} {
		g := graph(20, c.links)
		r := trawl(t, g, c.opt)
		if r.Count != c.count || r.Covered != c.fans || len(r.Largest.Fans) != c.largest || len(r.Largest.Centres) != c.wide || r.Unsettled != 0 {
			t.Errorf("%s: %+v", c.name, *r)
		}
	}
	// Links inside a host make no core, unless they are asked for.
	g := graph(20, bipartiteLinks(0, 4, 10, 3))
	g.hosts = []uint32{0}
	if r := trawl(t, g, TrawlOptions{}); r.Count != 0 {
		t.Errorf("inside a host: %+v", *r)
	}
	if r := trawl(t, g, TrawlOptions{Within: true}); r.Count != 1 {
		t.Errorf("inside a host, asked for: %+v", *r)
	}
	g.hosts = []uint32{0, 10, 12}
	if r := trawl(t, g, TrawlOptions{}); r.Count != 1 {
		t.Errorf("three hosts: %+v", *r)
	}
}

// Whatever is found is a core, no fan is in two, and nothing is left: among the
// other fans there is none, by trying all sets of them.
func TestTrawlByTryingAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 12)
		if rapid.Bool().Draw(t, "dense") {
			for u := range g.out {
				for v := range g.out {
					if u != v && rapid.IntRange(0, 2).Draw(t, "link") == 0 {
						g.out[u] = append(g.out[u], uint32(v))
					}
				}
			}
		}
		g.hosts = nil
		m := g.matrix()
		opt := TrawlOptions{Fans: rapid.IntRange(1, 3).Draw(t, "fans"), Centres: rapid.IntRange(1, 3).Draw(t, "centres"), Famous: -1}
		r := trawl(t, g, opt)
		used := make([]bool, len(m))
		for _, c := range r.Each {
			if len(c.Fans) < opt.Fans || len(c.Centres) < opt.Centres {
				t.Fatalf("%v is too small", c)
			}
			for _, u := range c.Fans {
				if used[u] {
					t.Fatalf("fan %d is in two cores", u)
				}
				used[u] = true
				for _, v := range c.Centres {
					if !m[u][v] {
						t.Fatalf("%v is no core: %d does not link to %d", c, u, v)
					}
				}
			}
		}
		if int64(len(r.Each)) != r.Count || r.Unsettled != 0 {
			t.Fatalf("%+v", *r)
		}
		for subset := range 1 << len(m) {
			var fans []int
			for u := range m {
				if subset>>u&1 != 0 {
					fans = append(fans, u)
				}
			}
			if len(fans) != opt.Fans || slices.ContainsFunc(fans, func(u int) bool { return used[u] }) {
				continue
			}
			shared := 0
			for v := range m {
				if !slices.ContainsFunc(fans, func(u int) bool { return !m[u][v] }) {
					shared++
				}
			}
			if shared >= opt.Centres {
				t.Fatalf("fans %v share %d centres and were not found: %+v", fans, shared, *r)
			}
		}
	})
}

// Planted cores are found in a random web that has none of its own.
func TestTrawlFindsPlanted(t *testing.T) {
	t.Parallel()
	r := rng.New(4, "planted")
	var all []link
	const n, planted = 20_000, 40
	for range 3 * n {
		all = append(all, link{r.Uint32N(n), r.Uint32N(n)})
	}
	for i := range uint32(planted) {
		all = append(all, bipartiteLinks(100*i, 3, 100*i+50, 4)...)
	}
	res := trawl(t, graph(n, all), TrawlOptions{Fans: 3, Centres: 4})
	if res.Count != planted || res.Covered != 3*planted {
		t.Errorf("%d cores, %d fans of %d planted", res.Count, res.Covered, planted)
	}
}

func TestTrawlGivesUp(t *testing.T) {
	t.Parallel()
	r := rng.New(5, "hard")
	var all []link
	for u := range uint32(60) {
		for v := range uint32(60) {
			if r.IntN(2) == 0 {
				all = append(all, link{u, 60 + v})
			}
		}
	}
	if res := trawl(t, graph(120, all), TrawlOptions{Fans: 12, Centres: 12, Steps: 3}); res.Unsettled == 0 {
		t.Errorf("three steps sufficed: %+v", *res)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Trawl(ctx, graph(120, all), TrawlOptions{}, nil); err == nil {
		t.Error("a cancelled search came to an end")
	}
}

// By the definitions, host by host.
func TestHosts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 25)
		got, err := FindHosts(context.Background(), g, nil)
		if err != nil {
			t.Fatal(err)
		}
		k := len(g.hosts)
		host := func(u uint32) int {
			i, ok := slices.BinarySearch(g.hosts, u)
			if !ok {
				i--
			}
			return i
		}
		to := make([][]int, k)
		for i := range to {
			to[i] = make([]int, k)
		}
		for u, out := range g.out {
			for _, v := range out {
				to[host(uint32(u))][host(v)]++
			}
		}
		var want HostFigures
		var shares, with float64
		for i := range to {
			all, out, in := 0, 0, 0
			for j := range to {
				all += to[i][j]
				if i != j && to[i][j] > 0 {
					out++
				}
				if i != j && to[j][i] > 0 {
					in++
				}
			}
			want.Links += int64(out)
			if out == 0 {
				want.NoOut++
			}
			if in == 0 {
				want.NoIn++
			}
			if all > 0 {
				shares += float64(to[i][i]) / float64(all)
				with++
			}
			_, pages := g.SiteSpan(i)
			want.Greatest = max(want.Greatest, int64(pages))
			if pages == 1 {
				want.Single++
			}
		}
		want.Hosts, want.Mean = int64(k), float64(g.Nodes())/float64(k)
		want.Internal = shares / max(with, 1)
		want.Pages = got.Pages
		if *got != want || got.Pages.Total() != int64(k) || got.Pages.Max() != want.Greatest {
			t.Fatalf("%+v, want %+v", *got, want)
		}
	})
	if f, err := FindHosts(context.Background(), graph(3, nil), nil); f != nil || err != nil {
		t.Errorf("no hosts: %+v, %v", f, err)
	}
}
