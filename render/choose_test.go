package render

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

func TestExamine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code string
		want Verdict
	}{
		{"", Inert},
		{"console.log(1)", Inert},
		{"/* react-dom 19 */", App},
		{"fetch(u).then(t=>{e.innerHTML=t})", App},
		{"x.innerHTML='<p>'", Builds},
		{"fetch('/beacon')", Inert},
		{`var s=d.createElement('script');s.src=u;f.parentNode.insertBefore(s,f);fetch(u)`, Inert},
		{`import("./chunk.js");document.createElement("div")`, App},
		{"location.href='/next'", Builds},
	} {
		if e := Examine([]byte(tt.code)); e.Verdict != tt.want {
			t.Errorf("%s: %+v, want %s", tt.code, e, tt.want)
		}
	}
}

func FuzzExamine(f *testing.F) {
	f.Add([]byte("createElement('script')"))
	f.Add([]byte("\xff\x00document.body.appendChild(s)innerHTML"))
	f.Fuzz(func(t *testing.T, code []byte) {
		if e := Examine(code); e.Verdict.verdictLevel() > 0 && len(e.Marks) == 0 {
			t.Errorf("%+v says not why", e)
		}
	})
}

// chance is the mean of the Beta posterior; the other way to it is to integrate
// prior times likelihood.
func TestChance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := class{a: rapid.Float64Range(.5, 5).Draw(t, "a"), b: rapid.Float64Range(.5, 5).Draw(t, "b")}
		of := Tally{Tried: rapid.Int64Range(0, 30).Draw(t, "class tried")}
		of.Gained = rapid.Int64Range(0, of.Tried).Draw(t, "class gained")
		tm := Tally{Tried: rapid.Int64Range(0, 30).Draw(t, "tried")}
		tm.Gained = rapid.Int64Range(0, tm.Tried).Draw(t, "gained")
		m := posterior(c.a, c.b, of)
		want := posterior(templateStrength*m, templateStrength*(1-m), tm)
		if got := gainProbability(c, of, tm); math.Abs(got-want) > 1e-6 {
			t.Fatalf("%g, by integration %g", got, want)
		}
	})
	if got := gainProbability(class{a: 3, b: 1}, Tally{}, Tally{}); got != .75 {
		t.Errorf("no evidence: %g, want the prior's 3/4", got)
	}
	if got := gainProbability(class{a: 1, b: 1}, Tally{}, Tally{Tried: 2}); got != .25 {
		t.Errorf("(2*1/2 + 0) / (2 + 2) = %g", got)
	}
}

// posterior integrates over y = log(p/(1-p)), in which the density has no poles
// and falls exponentially on both sides.
func posterior(a, b float64, t Tally) float64 {
	a += float64(t.Gained)
	b += float64(t.Tried - t.Gained)
	var num, den float64
	for y := -300.0; y <= 300; y += .1 {
		p := 1 / (1 + math.Exp(-y))
		w := math.Exp(-a*softplus(-y) - b*softplus(y))
		num += p * w
		den += w
	}
	return num / den
}

// softplus is log(1 + e^x) without overflow.
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func TestShape(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b string }{
		{"/item/1", "/item/999"},
		{"/news/2026/a-title", "/news/2025/another"},
		{"/?page=1&sort=a", "/?sort=b&page=7"},
		{"/about", "/contact"},
	} {
		if pathShape(tt.a) != pathShape(tt.b) {
			t.Errorf("%s is %s, %s is %s", tt.a, pathShape(tt.a), tt.b, pathShape(tt.b))
		}
	}
	for _, tt := range []struct{ a, b string }{{"/item/1", "/list/1"}, {"/a", "/a/b"}, {"/", "/?x=1"}} {
		if pathShape(tt.a) == pathShape(tt.b) {
			t.Errorf("%s and %s are %s", tt.a, tt.b, pathShape(tt.a))
		}
	}
}

// memory is a Keeper for tests.
type memory struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (m *memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[name], nil
}

func (m *memory) Put(_ context.Context, name string, v []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[string][]byte{}
	}
	m.m[name] = v
	return nil
}

// fetched is a page as the robot would ask about it.
func fetched(t *testing.T, address, html string, get func(string) string) *crawl.Fetched {
	t.Helper()
	u := parse(t, address)
	return &crawl.Fetched{
		URL: u, Answer: &fetch.Response{Status: 200, Header: http.Header{}}, Before: &store.Page{},
		Page: extract.HTML([]byte(html), "text/html", u, extract.Options{Traits: true}),
		Get: func(_ context.Context, u weburl.URL) (*fetch.Response, error) {
			if get == nil {
				return nil, errors.New("nothing is fetched here")
			}
			return &fetch.Response{Status: 200, Header: http.Header{"Content-Type": {"text/javascript"}}, Body: []byte(get(u.String()))}, nil
		},
	}
}

var long = strings.Repeat("Words that the server wrote. ", 20) + `<a href="/1">1</a><a href="/2">2</a><a href="/3">3</a>`

func TestClasses(t *testing.T) {
	t.Parallel()
	app := func(string) string { return "fetch(u).then(x=>{e.innerHTML=x})" }
	inert := func(string) string { return "count()" }
	for _, tt := range []struct {
		name, html string
		get        func(string) string
		want       bool
		why        string
	}{
		{"static", long, nil, false, "no scripts"},
		{"data only", long + `<script type="application/ld+json">{"fetch(":"innerHTML"}</script>`, nil, false, "no scripts"},
		{"empty mount", `<div id="root"></div><script src="/app.js"></script>`, app, true, "class empty"},
		{"hydrated", `<div id="__next">` + long + `</div><script id="__NEXT_DATA__" type="application/json">{}</script><script src="/app.js"></script>`, app, false, "class hydrated"},
		{"state but no content", `<div id="__nuxt"></div><script>window.__NUXT__={}</script><script src="/app.js"></script>`, app, true, "class empty"},
		{"inert", long + `<script src="/count.js"></script>`, inert, false, "class inert"},
		{"app beside text", long + `<script src="/app.js"></script>`, app, true, "class app"},
		{"noscript", `<noscript>Please enable JavaScript.</noscript><script src="/x.js"></script>`, inert, true, "class noscript"},
		{"script that cannot be had", long + `<script src="/x.js"></script>`, nil, false, "class inert"},
		{"angular element", `<app-root ng-version="17"></app-root><script src="/x.js"></script>`, inert, true, "marks of angular"},
	} {
		c := NewChooser(&memory{}, Rules{})
		if d := c.Wants(t.Context(), fetched(t, "http://h/p", tt.html, tt.get)); d.Render != tt.want || !strings.Contains(d.Why, tt.why) {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	rules, err := ParseRules([]string{"/app/"}, []string{`\.old/`}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	c := NewChooser(&memory{}, rules)
	for address, want := range map[string]bool{"http://h/app/x": true, "http://h.old/app/": false, "http://h/x": false} {
		if d := c.Wants(t.Context(), fetched(t, address, long, nil)); d.Render != want {
			t.Errorf("%s: %+v", address, d)
		}
	}
	if _, err := ParseRules([]string{"("}, nil, Rules{}); err == nil || !strings.Contains(err.Error(), `render.always: "("`) {
		t.Errorf("%v", err)
	}
}

// A script is fetched once per address and examined once per checksum, also by
// the next process.
func TestScriptTable(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	get := func(u string) string { asked[u]++; return "fetch(u).then(x=>{e.innerHTML=x})" }
	keep := &memory{}
	ask := func(c *Chooser, host string, n int) {
		for i := range n {
			c.Wants(t.Context(), fetched(t, fmt.Sprintf("http://%s/%d", host, i), long+`<script src="/a.js"></script>`, get))
		}
	}
	c := NewChooser(keep, Rules{})
	ask(c, "one", 5)
	ask(c, "two", 5)
	if f, e := c.Scripts(); f != 2 || e != 1 {
		t.Errorf("%d fetched, %d examined", f, e)
	}
	c = NewChooser(keep, Rules{})
	ask(c, "one", 5)
	if f, e := c.Scripts(); f != 0 || e != 0 {
		t.Errorf("after a restart: %d fetched, %d examined", f, e)
	}
	if len(asked) != 2 || asked["http://one/a.js"] != 1 {
		t.Errorf("asked %v", asked)
	}
}

// A template that gains nothing is soon left alone, but looked at again now and
// then; one that gains is rendered on; what was learned survives.
func TestLearning(t *testing.T) {
	t.Parallel()
	app := func(string) string { return "fetch(u).then(x=>{e.innerHTML=x})" }
	keep := &memory{}
	run := func(c *Chooser, host string, n, urls int) (renders int) {
		for i := range n {
			f := fetched(t, fmt.Sprintf("http://%s/%d", host, i), long+`<script src="/a.js"></script>`, app)
			d := c.Wants(t.Context(), f)
			if d.Wait {
				t.Fatal("nothing is under way")
			}
			if !d.Render {
				continue
			}
			f.Queued = true
			if d = c.Wants(t.Context(), f); d.Render {
				renders++
				f.Tag = d.Tag
				c.Learn(f, &crawl.Rendered{Page: f.Page}, urls)
			}
		}
		return renders
	}
	c := NewChooser(keep, Rules{})
	if n := run(c, "vain", 299, 0); n < 1 || n > 5 {
		t.Errorf("%d renders of 299 that gain nothing", n)
	}
	if n := run(c, "gains", 50, 3); n < 47 {
		t.Errorf("%d renders of 50 that gain", n)
	}
	c = NewChooser(keep, Rules{})
	if n := run(c, "vain", 20, 0); n > 5 { // the class gained elsewhere
		t.Errorf("after a restart: %d renders of 20 that gain nothing", n)
	}
	if n := run(c, "vain", 2000, 5); n < 1500 {
		t.Errorf("%d renders of 2000 after the site began to gain", n)
	}
}

// A menu that scripts add to every page is a gain once: rendering of its template ends. Text of
// each page's own is a gain each time.
func TestSameTextGainsOnce(t *testing.T) {
	t.Parallel()
	app := func(string) string { return "fetch(u).then(x=>{e.innerHTML=x})" }
	for _, tt := range []struct {
		name     string
		added    func(i int) string
		min, max int
	}{
		{"the same menu", func(int) string { return strings.Repeat("menu entry of the site ", 40) + words("menu", 150) }, 1, 12},
		{"own text", func(i int) string { return words(fmt.Sprint("page", i, "x"), 150) }, 190, 200},
	} {
		c, renders := NewChooser(&memory{}, Rules{}), 0
		for i := range 200 {
			f := fetched(t, fmt.Sprintf("http://h/%d", i), long+`<div id=root></div><script src="/a.js"></script>`, app)
			f.Queued, f.Answer.Body = true, []byte(long)
			d := c.Wants(t.Context(), f)
			if !d.Render {
				continue
			}
			renders++
			f.Tag = d.Tag
			page := extract.HTML([]byte(long+"<p>"+tt.added(i)), "text/html", f.URL, extract.Options{})
			c.Learn(f, &crawl.Rendered{Page: page}, 0)
		}
		if renders < tt.min || renders > tt.max {
			t.Errorf("%s: %d renders of 200, want %d to %d", tt.name, renders, tt.min, tt.max)
		}
	}
}

// words is a text of n words that begin with prefix.
func words(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", prefix, i)
	}
	return b.String()
}

// While the first render of a template is under way, its next pages wait.
func TestWait(t *testing.T) {
	t.Parallel()
	app := func(string) string { return "fetch(u).then(x=>{e.innerHTML=x})" }
	c := NewChooser(&memory{}, Rules{})
	page := func(i int) *crawl.Fetched {
		f := fetched(t, fmt.Sprintf("http://h/%d", i), long+`<script src="/a.js"></script>`, app)
		f.Queued = true
		return f
	}
	first := page(1)
	d := c.Wants(t.Context(), first)
	first.Tag = d.Tag
	if !d.Render || d.Wait {
		t.Fatalf("first: %+v", d)
	}
	if d := c.Wants(t.Context(), page(2)); !d.Wait || d.Render {
		t.Errorf("second: %+v", d)
	}
	c.Learn(first, nil, 0) // it failed
	if d := c.Wants(t.Context(), page(2)); d.Wait || !d.Render {
		t.Errorf("second, after the first failed: %+v", d)
	}
}

// A rendered page has what the fetched one had.
func TestRead(t *testing.T) {
	t.Parallel()
	u := parse(t, "http://h/dir/page")
	raw := extract.HTML([]byte(`<title>raw</title><meta name=robots content=noindex><a href="/kept">k</a><a href="/ad" rel=nofollow>a</a><p>`+long), "text/html", u, extract.Options{})
	p := Read(raw, &Document{URL: u.String(), HTML: []byte(`<html><body><a href="new">n</a><div id=x></div>`), Links: []string{"http://h/shadow#x", "http://h/ad", "http://h/dir/new"}}, u, "freshet")
	var got []string
	for _, l := range p.Links {
		got = append(got, l.URL.String())
	}
	if s := strings.Join(got, " "); s != "http://h/dir/new http://h/kept http://h/ad http://h/1 http://h/2 http://h/3 http://h/shadow" {
		t.Errorf("links %s", s)
	}
	if p.Title != "raw" || !p.Robots.NoIndex || p.Text != raw.Text || p.Digest != raw.Digest {
		t.Errorf("%+v", p)
	}
}
