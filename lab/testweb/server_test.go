package testweb

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/truth"
	"golang.org/x/net/html"
)

// start serves a web until the end of the test and returns a client that
// reaches it.
func start(t testing.TB, cfg Config) (*Server, *http.Client) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DialContext: s.DialContext}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// A port for which the web does not listen is one at which nobody does.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Pages: 20, Sites: 2, HTTP: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	host, _, _ := strings.Cut(strings.TrimPrefix(s.Seeds(1)[0], "http://"), "/")
	if _, err := s.DialContext(t.Context(), "tcp", host+":443"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}

// get fetches a URL with header fields given as name, value, name, value...
func get(t testing.TB, c *http.Client, u string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, b
}

// hrefs returns the addresses of a page's links, resolved by net/url.
func hrefs(t testing.TB, base string, page []byte) []string {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	b, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "a" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "href" {
				u, err := b.Parse(a.Val)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, u.String())
			}
		}
	}
	return found
}

// crawl fetches everything that links lead to from a seed, in breadth-first order.
func crawl(t testing.TB, c *http.Client, seed string) (pages []string) {
	t.Helper()
	seen := map[string]bool{seed: true}
	for queue := []string{seed}; len(queue) > 0; queue = queue[1:] {
		resp, body := get(t, c, queue[0])
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %s", queue[0], resp.Status)
		}
		pages = append(pages, queue[0])
		for _, u := range hrefs(t, queue[0], body) {
			if !seen[u] {
				seen[u] = true
				queue = append(queue, u)
			}
		}
	}
	return pages
}

// The tree is what it promises: a perfect robot finds every page from one seed,
// each under one address, and every page is where URL says.
func TestPerfectRobotFindsEverything(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 600, Sites: 20, Seed: 3})
	got := crawl(t, c, s.Seeds(1)[0])
	want := make([]string, s.Pages())
	for p := range want {
		want[p] = s.URL(uint64(p))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %d pages, want %d", len(got), len(want))
	}
}

func TestLinksAreTheGraphs(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 2000, Sites: 40, Seed: 8})
	for page := uint64(0); page < s.Pages(); page += 17 {
		_, body := get(t, c, s.URL(page))
		var want []string
		for _, v := range s.Successors(page, nil) {
			want = append(want, s.URL(v))
		}
		if got := hrefs(t, s.URL(page), body); !slices.Equal(got, want) {
			t.Fatalf("page %d links to\n%v, want\n%v", page, got, want)
		}
		if !strings.Contains(fold(body), strings.ToLower(strings.Fields(s.Title(page))[1])) {
			t.Errorf("page %d does not contain its topic %q", page, s.Title(page))
		}
	}
}

// fold returns the text of a page in lower case, character references resolved.
func fold(page []byte) string { return strings.ToLower(html.UnescapeString(string(page))) }

func TestAnswers(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 300, Sites: 5, Seed: 1})
	host := "http://" + s.HostName(2)
	tests := []struct {
		url    string
		status int
		holds  string // in the body, or in Location
	}{
		{host + "/aaaa.html", 200, "<"},
		{host + "/", 301, "/aaaa.html"},
		{host + "/robots.txt", 200, "Disallow: /private/"},
		{host + "/zzzz.html", 404, "Not Found"},
		{host + "/nothing/here", 404, "Not Found"},
		{"http://1.0.0.2/aaaa.html", 200, "<"},
	}
	for _, tt := range tests {
		resp, body := get(t, c, tt.url)
		if resp.StatusCode != tt.status || !strings.Contains(string(body)+resp.Header.Get("Location"), tt.holds) {
			t.Errorf("%s: %s %.80q, want %d and %q", tt.url, resp.Status, body, tt.status, tt.holds)
		}
	}
	for _, u := range []string{"http://www.zzzzzzzz.cz/", "http://www.02000000.cz/", "http://example.com/", "http://9.9.9.9/"} {
		_, err := c.Get(u)
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("%s: %v, want: no such host", u, err)
		}
	}
	resp, err := c.Post(host+"/aaaa.html", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %s, Allow %q", resp.Status, resp.Header.Get("Allow"))
	}
}

// The same configuration is the same web, bit for bit; another seed is another.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	a, ca := start(t, Config{Pages: 200, Sites: 4, Seed: 7})
	_, cb := start(t, Config{Pages: 200, Sites: 4, Seed: 7})
	_, cc := start(t, Config{Pages: 200, Sites: 4, Seed: 8})
	same := 0
	for p := range a.Pages() {
		_, x := get(t, ca, a.URL(p))
		_, y := get(t, cb, a.URL(p))
		if !bytes.Equal(x, y) {
			t.Fatalf("page %d differs between two servers of one seed", p)
		}
		if resp, z := get(t, cc, a.URL(p)); resp.StatusCode == 200 && bytes.Equal(x, z) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d pages are the same under another seed", same)
	}
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 100, Sites: 2, Seed: 1})
	u := s.URL(5)
	resp, _ := get(t, c, u)
	tag, modified := resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	tests := []struct {
		field, value string
		want         int
	}{
		{"If-None-Match", tag, 304},
		{"If-None-Match", `"x", W/` + tag, 304},
		{"If-None-Match", "*", 304},
		{"If-None-Match", `"x"`, 200},
		{"If-Modified-Since", modified, 304},
		{"If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT", 200},
		{"If-Modified-Since", "yesterday", 200},
	}
	for _, tt := range tests {
		if resp, _ := get(t, c, u, tt.field, tt.value); resp.StatusCode != tt.want {
			t.Errorf("%s: %s: %d, want %d", tt.field, tt.value, resp.StatusCode, tt.want)
		}
	}
}

// changing is the history of pages whose text changes.
func changing(t testing.TB, seed uint64, interval float64) field.Lookup {
	t.Helper()
	h, err := Change{Interval: interval, Seed: seed}.History()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Half of the pages change more often than the interval says.
func TestChangingHasItsMedian(t *testing.T) {
	t.Parallel()
	w, err := NewWeb(Config{Pages: 4000, History: changing(t, 5, 100)})
	if err != nil {
		t.Fatal(err)
	}
	often := 0.
	for page := range w.Pages() {
		// The number of changes within T at rate r is above rT, where that is many, as often as below.
		n, v := 0, w.Version(page, 0)
		for ; v.Until < 5000; n++ {
			next := w.Version(page, v.Until+1e-6) // rounding of seconds to units and back
			if next.Since != v.Until || next.Number <= v.Number || next.Until <= next.Since || next.Size != 0 || next.Status != 200 {
				t.Fatalf("page %d: %+v follows %+v", page, next, v)
			}
			v = next
		}
		switch {
		case n > 50:
			often++
		case n == 50:
			often += .5
		}
	}
	if share := often / 4000; math.Abs(share-.5) > .03 {
		t.Errorf("%.3f of the pages change more often than the median", share)
	}
}

// Status, size, text, ETag and Last-Modified of every page follow the field's
// history, of which the truth log tells the version.
func TestPagesFollowTheField(t *testing.T) {
	t.Parallel()
	f, err := field.New(field.Spec{PageCount: 60, Length: 1000, Changed: 4, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	x, err := field.NewIndex(f)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWeb(Config{Pages: 61, Sites: 1, History: x, Sizes: true}) // one page more than the field has
	if err != nil {
		t.Fatal(err)
	}
	met := map[int]int{}
	for page := range w.Pages() {
		bodies := map[uint64]string{}
		for i := range 50 {
			now := float64(i) * 2 // seconds
			v := w.answerVisit(0, w.HostName(0), origin{scheme: "http"}, name.Document(page), "", now)
			s := x.At(page, now/field.Unit)
			body := string(w.replyBody(v))
			met[v.r.Status]++
			if v.r.Kind != truth.Page || v.version.Number != s.Number || v.r.Status != statusOfKind(s.Kind) {
				t.Fatalf("page %d at %g: %+v, field %+v", page, now, v.r, s)
			}
			if v.r.Status == 200 {
				if s.Size > 4000 && len(body) != int(s.Size) {
					t.Fatalf("page %d at %g: %d bytes, field %d", page, now, len(body), s.Size)
				}
				if v.r.Validator.ETag() == "" || v.r.Validator.Modified != s.Since*field.Unit {
					t.Fatalf("page %d at %g: %+v, field %+v", page, now, v.r.Validator, s)
				}
				body += v.r.Validator.ETag()
			}
			if was, ok := bodies[s.Number]; ok && was != body {
				t.Fatalf("page %d at %g: version %d is not what it was", page, now, s.Number)
			}
			bodies[s.Number] = body
			w.releaseVisit(v)
		}
		different := map[string]bool{}
		for _, b := range bodies {
			different[b] = true
		}
		if page == 60 && len(bodies) != 1 || len(different) < len(bodies)-3 { // errors look alike
			t.Errorf("page %d: %d texts in %d versions", page, len(different), len(bodies))
		}
	}
	if met[403] == 0 || met[404] == 0 || met[500] == 0 || met[200] == 0 {
		t.Errorf("statuses %v", met)
	}
}

func TestPagesChange(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l, err := truth.NewLog(&log, truth.Head{})
	if err != nil {
		t.Fatal(err)
	}
	s, c := start(t, Config{Pages: 50, Sites: 1, Seed: 2, History: changing(t, 1, 100), TimeScale: 3000, Truth: l})
	before := map[uint64][]byte{}
	tags := map[uint64]string{}
	for p := range s.Pages() {
		resp, b := get(t, c, s.URL(p))
		before[p], tags[p] = b, resp.Header.Get("ETag")
	}
	time.Sleep(300 * time.Millisecond) // 900 seconds of the web
	changed := 0
	for p := range s.Pages() {
		resp, b := get(t, c, s.URL(p))
		if bytes.Equal(b, before[p]) != (resp.Header.Get("ETag") == tags[p]) {
			t.Errorf("page %d: the ETag does not tell the change", p)
		}
		if !bytes.Equal(b, before[p]) {
			changed++
		}
	}
	if changed < 20 {
		t.Errorf("%d of 50 pages changed in nine median intervals", changed)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := truth.NewReader(&log)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		if rec.Kind != truth.Page || !rec.FreshUntil.After(rec.Time) || rec.Changed.After(rec.Time) {
			t.Fatalf("record %+v", rec)
		}
	}
	if n != 100 {
		t.Errorf("%d records, want 100", n)
	}
}

func TestSitesLayout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pages, hosts uint64 }{{1, 1}, {10, 10}, {1000, 30}, {5000, 0}, {1 << 20, 5000}, {1 << 42, 0}} {
		s, err := NewSites(tt.pages, tt.hosts, 1)
		if err != nil {
			t.Fatal(err)
		}
		if tt.hosts > 0 && (s.Hosts() > tt.hosts+blockHosts || s.Hosts() < tt.hosts*9/10) {
			t.Errorf("%d hosts, want about %d", s.Hosts(), tt.hosts)
		}
		next, most := uint64(0), uint64(0)
		for h := range min(s.Hosts(), 5000) {
			first, n := s.Span(h)
			if first != next || n == 0 || s.Host(first) != h || s.Host(first+n-1) != h {
				t.Fatalf("%d pages: host %d has %d pages from %d, want from %d", tt.pages, h, n, first, next)
			}
			next, most = first+n, max(most, n)
		}
		if first, n := s.Span(s.Hosts() - 1); first+n != tt.pages {
			t.Errorf("the last host ends at %d of %d", first+n, tt.pages)
		}
		if mean := float64(tt.pages) / float64(s.Hosts()); tt.pages >= 1000 && float64(most) < 5*mean {
			t.Errorf("%d pages: the greatest site has %d pages, the mean %.0f: no power law", tt.pages, most, mean)
		}
	}
	for _, tt := range []struct{ pages, hosts uint64 }{{0, 0}, {5, 6}, {1 << 42, 1 << 32}} {
		if _, err := NewSites(tt.pages, tt.hosts, 1); err == nil {
			t.Errorf("%d pages on %d hosts: no error", tt.pages, tt.hosts)
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := New(Config{Pages: 10, HTTP: l.Addr().String()}); err == nil || !strings.Contains(err.Error(), "taken by another program") {
		t.Errorf("error %v", err)
	}
}
