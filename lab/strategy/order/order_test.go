package order

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// open opens a script given as text, or a shipped one.
func open(t testing.TB, src string, opt Options) crawl.Ordering {
	t.Helper()
	name := src
	if strings.Contains(src, "begin") {
		name = filepath.Join(t.TempDir(), "test.strategy")
		if err := os.WriteFile(name, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, own, err := Open(t.Context(), name, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(own.dir); !os.IsNotExist(err) {
			t.Errorf("left %s: %v", own.dir, err)
		}
	})
	return o
}

func found(t testing.TB, url string, depth int) *store.Found {
	t.Helper()
	u, err := weburl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return &store.Found{URL: u, Depth: depth}
}

func TestOrderOfScripts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		src         string
		first, last *store.Found
	}{
		"depth":  {"breadth-first", found(t, "http://a.test/1", 1), found(t, "http://a.test/0", 2)},
		"word":   {"function order(n : node) : boolean; begin order := n.contains('news') end; begin end.", found(t, "http://a.test/NEWS/1", 9), found(t, "http://a.test/", 0)},
		"url":    {"function order(n : node) : integer; begin order := -length(n.url) end; begin end.", found(t, "http://a.test/", 9), found(t, "http://a.test/long/path", 0)},
		"server": {"function order(n : node) : integer; begin order := 10 - n.server end; begin end.", found(t, "http://first.test/", 9), found(t, "http://second.test/", 0)},
		"body":   {"const k = 5; var sign : real; function order(n : node) : real; begin order := sign * n.depth end; begin sign := k end.", found(t, "http://a.test/9", 9), found(t, "http://a.test/", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, tt.src, Options{})
			if _, ok := o.(crawl.Spreader); ok {
				t.Error("a script without fetched spreads")
			}
			if a, b := o.Order(tt.first), o.Order(tt.last); a >= b || a < 1 || b >= 1<<63 {
				t.Errorf("places %d, %d", a, b)
			}
		})
	}
}

// The links of fetched pages move a page forward; what is forgotten does not.
func TestScriptsLearnFromLinks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"best-indegree", "opic"} {
		o := open(t, name, Options{Pages: 50}).(crawl.Spreader)
		a, b := found(t, "http://a.test/a", 1), found(t, "http://a.test/b", 1)
		if o.Order(a) != o.Order(b) {
			t.Errorf("%s: places differ before anything was fetched", name)
		}
		for i := range 3 {
			o.Spread(found(t, fmt.Sprintf("http://a.test/%d", i), 0).URL.Key(), []weburl.Key{b.URL.Key()})
		}
		if o.Order(a) <= o.Order(b) {
			t.Errorf("%s: three links do not move a page forward", name)
		}
		for i := range 60 {
			o.Order(found(t, fmt.Sprintf("http://b.test/%d", i), 0))
		}
		if o.Order(a) != o.Order(b) {
			t.Errorf("%s: what is forgotten still counts", name)
		}
		many := make([]weburl.Key, 500) // more than are remembered
		for i := range many {
			many[i] = found(t, fmt.Sprintf("http://c.test/%d", i), 0).URL.Key()
		}
		o.Spread(a.URL.Key(), many)
	}
}

// A script that fails, or does not end, costs pages their order and no more.
func TestFailingScripts(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"var zero : integer; function order(n : node) : integer; begin order := 1 div zero end; begin end.",
		"function order(n : node) : integer; begin while true do; end; begin end.",
		"function order(n : node) : integer; begin order := order(n) end; begin end.",
		"var q : queue of node; function order(n : node) : integer; begin order := q.top().server end; begin end.",
	} {
		var log strings.Builder
		o := open(t, src, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for i := range 200 {
			if got := o.Order(found(t, "http://a.test/", i)); got != uint64(i)+1 {
				t.Fatalf("%s: place %d of depth %d", src, got, i)
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), "asked no more") {
			t.Errorf("%s: log %s", src, log.String())
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"begin end.": "has a function order(n : node) : real",
		"function order(i : integer) : real; begin order := 1 end; begin end.":               "order is to have one parameter, a node",
		"function order(n : node) : real; begin order := x end; begin end.":                  `unknown name "x"`,
		"function order(n : node) : real; begin order := 1 end; begin while true do; end.":   "steps: limit reached",
		"function order(n : node) : real; begin order := 1 end; begin output(node(-1)) end.": "unknown node -1",
	} {
		name := filepath.Join(t.TempDir(), "x.strategy")
		if err := os.WriteFile(name, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(t.Context(), name, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

func TestOrderingIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	o := open(t, "best-indegree", Options{Pages: 100}).(crawl.Spreader)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				f := found(t, fmt.Sprintf("http://h%d.test/%d", g, i), i)
				o.Spread(f.URL.Key(), []weburl.Key{found(t, fmt.Sprintf("http://h%d.test/%d", g, i+1), i).URL.Key()})
				o.Order(f)
			}
		})
	}
	wg.Wait()
}

// BenchmarkOrder is what every found link of a live crawl costs.
func BenchmarkOrder(b *testing.B) {
	var fs []*store.Found
	for i := range 10_000 {
		fs = append(fs, found(b, fmt.Sprintf("http://host%d.test/page/%d.html", i%50, i), i%7))
	}
	for _, name := range []string{"breadth-first", "opic"} {
		o := open(b, name, Options{})
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				o.Order(fs[i%len(fs)])
			}
		})
	}
	for name, makeOrdering := range crawl.Orderings() {
		if name == "breadth-first" || name == "opic" {
			o := makeOrdering()
			b.Run("built-in "+name, func(b *testing.B) {
				for i := range b.N {
					o.Order(fs[i%len(fs)])
				}
			})
		}
	}
	keys := []weburl.Key{}
	for _, f := range fs[:30] {
		keys = append(keys, f.URL.Key())
	}
	o := open(b, "opic", Options{}).(crawl.Spreader)
	b.Run("spread 30 links", func(b *testing.B) {
		for range b.N {
			o.Spread(keys[0], keys)
		}
	})
	s := crawl.Orderings()["opic"]().(crawl.Spreader)
	b.Run("built-in spread 30 links", func(b *testing.B) {
		for range b.N {
			s.Spread(keys[0], keys)
		}
	})
}
