package crawl

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/weburl"
)

// busyServer serves a site of so many pages and notes the most requests at once.
func busyServer(t *testing.T, pages int, robots string, took time.Duration) (site *httptest.Server, atOnce, asked *atomic.Int64) {
	var busy atomic.Int64
	atOnce, asked = new(atomic.Int64), new(atomic.Int64)
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		n := busy.Add(1)
		defer busy.Add(-1)
		for old := atOnce.Load(); n > old && !atOnce.CompareAndSwap(old, n); old = atOnce.Load() {
		}
		switch q.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, robots)
		default:
			asked.Add(1)
			time.Sleep(took)
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<title>%s</title><p>The text of page %[1]s is its own.", q.URL.Path)
			if q.URL.Path == "/" {
				for i := range pages - 1 {
					fmt.Fprintf(w, `<a href="/p%d">%[1]d</a> `, i)
				}
			}
		}
	}))
	t.Cleanup(site.Close)
	return site, atOnce, asked
}

// A host of a source with several connections is asked by so many requests at once and
// by no more, each page once; with a delay or a Crawl-delay by one.
func TestConnectionsOfSource(t *testing.T) {
	t.Parallel()
	const pages = 60
	for name, tt := range map[string]struct {
		delay       *time.Duration
		connections int
		robots      string
		min, max    int64
	}{
		"default":           {min: 1, max: 1},
		"loopback has none": {connections: 8, min: 4, max: 8},
		"no delay":          {delay: new(time.Duration(0)), connections: 8, min: 4, max: 8},
		"a delay":           {delay: new(5 * time.Millisecond), connections: 8, min: 1, max: 1},
		"Crawl-delay holds": {delay: new(time.Duration(0)), connections: 8, robots: "User-agent: *\nCrawl-delay: 0.02\n", min: 1, max: 1},
		"one by the source": {delay: new(time.Duration(0)), connections: 1, min: 1, max: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site, atOnce, asked := busyServer(t, pages, tt.robots, 3*time.Millisecond)
			r := newRig(t)
			seed, err := weburl.Parse(site.URL + "/")
			if err != nil {
				t.Fatal(err)
			}
			scope, err := NewScope(seed, "host", 0, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			scope.Delay, scope.Connections = tt.delay, tt.connections
			r.config.Scopes.Add(scope)
			r.config.Connections = 16 // of the seed's own scope: the fewer hold
			if tt.connections == 0 {
				r.config.Connections = 1
			}
			robot := r.crawl(t, site.URL+"/")
			if got := asked.Load(); got != pages {
				t.Errorf("%d requests for pages, want %d", got, pages)
			}
			if got := robot.Status().Pages; got != pages {
				t.Errorf("%d pages, want %d", got, pages)
			}
			if got := atOnce.Load(); got < tt.min || got > tt.max {
				t.Errorf("%d requests at once, want %d to %d", got, tt.min, tt.max)
			}
		})
	}
}
