package testweb

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/testweb/score"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// Visits go through a reverse proxy, which sees every one of them, and are told
// from a robot's in the log.
func TestVisitorsPassTheSensor(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l, err := truth.NewLog(&log, truth.Head{Pages: 200})
	if err != nil {
		t.Fatal(err)
	}
	s, c := start(t, Config{Pages: 200, Sites: 5, Truth: l})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if seen.Add(1) == 100 {
			cancel()
		}
		r.SetURL(&url.URL{Scheme: "http", Host: s.HTTPAddr()})
		r.Out.Host = r.In.Host
	}})
	defer proxy.Close()
	done, err := s.Visit(ctx, Visitors{Rate: 400, Seed: 1, To: strings.TrimPrefix(proxy.URL, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	visits := done.Visits
	if n := int(seen.Load()); visits < 10 || n < visits || n > visits+done.Failed+visitorsAtOnce {
		t.Errorf("%d visits, %d through the proxy", visits, n)
	}
	get(t, c, s.URL(9))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := truth.NewReader(&log)
	if err != nil {
		t.Fatal(err)
	}
	card, err := score.Read(t.Context(), r, score.Options{})
	if err != nil || card.Requests != 1 || card.Visits < visits {
		t.Errorf("card %+v, %v; want one request of the robot", card, err)
	}
	if _, err := s.Visit(ctx, Visitors{}); err == nil {
		t.Error("no rate, no error")
	}
}

// A field's requests are made at their times, each once, to the page that was
// asked for.
func TestVisitorsReplayRequests(t *testing.T) {
	t.Parallel()
	f, err := field.New(field.Spec{PageCount: 30, Length: 5000, Changed: 3, Requested: 10, Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l, err := truth.NewLog(&log, truth.Head{Pages: 30})
	if err != nil {
		t.Fatal(err)
	}
	const scale = 1000 // half a second in all
	x, err := field.NewIndex(f)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, Config{Pages: 30, Sites: 1, History: x, Sizes: true, TimeScale: scale, Truth: l})
	begin := time.Now()
	s.Begin(begin)
	done, err := s.Visit(t.Context(), Visitors{Requests: f.Requests(), Timeout: time.Minute})
	if err != nil || done.Failed > 0 {
		t.Fatal(done, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := truth.NewReader(&log)
	if err != nil {
		t.Fatal(err)
	}
	asked := make([]int, 30)
	n := 0
	for rec, err := r.Read(); err == nil; rec, err = r.Read() {
		asked[rec.Page]++
		n++
		// The version is that of a moment between the request and the end of the answer.
		since := rec.Time.Sub(begin).Seconds()
		first := x.At(uint64(rec.Page), since*scale/field.Unit)
		last := x.At(uint64(rec.Page), (since+rec.Duration)*scale/field.Unit)
		if rec.Version+1 < first.Number || rec.Version > last.Number || rec.Agent != truth.Visitor {
			t.Errorf("%+v, field %+v to %+v", rec, first, last)
		}
	}
	requests := f.Requests()
	buf := make([]field.Request, 100)
	for k := requests.Read(buf); k > 0; k = requests.Read(buf) {
		for _, q := range buf[:k] {
			asked[q.Page]--
		}
	}
	if slices.ContainsFunc(asked, func(n int) bool { return n != 0 }) || n != done.Visits {
		t.Errorf("visits less requests %v, %d of %d", asked, n, done.Visits)
	}
}

// The surfer's visits follow the stationary law of his walk: on a strongly
// connected graph with one host, PageRank with all jumps to page 0.
func TestSurferFollowsPageRank(t *testing.T) {
	t.Parallel()
	w, err := NewWeb(Config{Pages: 30, Sites: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, 30)
	want[0] = 1
	for range 200 {
		next := make([]float64, 30)
		next[0] = 1 - follow
		for u := range want {
			out := w.Successors(uint64(u), nil)
			for _, v := range out {
				next[v] += follow * want[u] / float64(len(out))
			}
		}
		want = next
	}
	const n = 200_000
	u := surfer{web: w, rand: rng.New(1)}
	got := make([]float64, 30)
	for range n {
		got[u.nextPage()] += 1. / n
	}
	for p := range want {
		if math.Abs(got[p]-want[p]) > 6*math.Sqrt(want[p]/n)+.001 {
			t.Errorf("page %d: %.4f of the visits, want %.4f", p, got[p], want[p])
		}
	}
}

func TestReadEdges(t *testing.T) {
	t.Parallel()
	g, err := ReadEdges(strings.NewReader("# a graph\n2\t0\n0 1\n\n2 1\n0 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	for u, want := range [][]uint64{{1, 3}, nil, {0, 1}, nil} {
		if got := g.Successors(uint64(u), nil); !slices.Equal(got, want) {
			t.Errorf("page %d links to %v, want %v", u, got, want)
		}
	}
	s, c := start(t, Config{Graph: g, Sites: 2})
	_, body := get(t, c, s.URL(2))
	if got, want := hrefs(t, s.URL(2), body), []string{s.URL(0), s.URL(1)}; !slices.Equal(got, want) {
		t.Errorf("links %v, want %v", got, want)
	}
	for text, want := range map[string]string{
		"": "no link", "1 2\n3": "line 2", "1 2 3": "two page numbers", "a b": `"a" is no page number`,
		"1 4294967295": "no page number", "0 -1": "no page number",
	} {
		if _, err := ReadEdges(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzReadEdges(f *testing.F) {
	f.Add("0 1\n1 0\n")
	f.Add("# x\n5\t5")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 || strings.ContainsAny(text, "456789") {
			return // page numbers that cost memory
		}
		g, err := ReadEdges(strings.NewReader(text))
		if err != nil || g.Nodes() > 1<<20 {
			return
		}
		for u := range g.Nodes() {
			for _, v := range g.Successors(u, nil) {
				if v >= g.Nodes() {
					t.Fatalf("%q: a link to page %d of %d", text, v, g.Nodes())
				}
			}
		}
	})
}

// A million sites cost no goroutine and no file each: after requests to a
// thousand of them over one connection the server is as small as before.
func TestMillionSites(t *testing.T) { // not parallel: it counts goroutines
	s, c := start(t, Config{Pages: 4e6, Sites: 1e6, Seed: 1})
	c.Transport.(*http.Transport).MaxIdleConnsPerHost = 1
	get(t, c, s.URL(0))
	before := runtime.NumGoroutine()
	f, err := dial(s.HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer f.conn.Close()
	for i := range uint64(1000) {
		first, _ := s.Span(i * s.Hosts() / 1000)
		if n, err := f.get(s.Web, first, false); err != nil || n == 0 {
			t.Fatalf("host %d: %d bytes, %v", i, n, err)
		}
	}
	if n := runtime.NumGoroutine(); n > before+4 {
		t.Errorf("%d goroutines after a thousand hosts, %d before", n, before)
	}
}
