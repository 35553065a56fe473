package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

func mustParse(t *testing.T, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// URLs of one shape are allowed up to a number, by host; those without a
// number in them are each a shape of their own.
func TestShapes(t *testing.T) {
	t.Parallel()
	traps := Traps{Shape: 5, Dated: 3, Deep: 4}.withDefaults()
	tests := []struct {
		name, form string
		allowed    int
		kind       string
	}{
		{"numbers", "http://h/item/%d", 5, "one shape"},
		{"query", "http://h/list?page=%d&sort=a", 5, "one shape"},
		{"another host", "http://g/item/%d", 5, "one shape"},
		{"calendar", "http://h/cal/2020/%02d/", 3, "calendar"},
		{"articles by date", "http://h/2020/05/%d-story.html", 5, "one shape"},
		{"deep folders", "http://d/" + strings.Repeat("x%[1]d/", 9), 4, "deep folders"},
		{"names", "http://h/name-%c", 20, ""},
	}
	var w waste
	for _, tt := range tests {
		got, kind := 0, ""
		for i := range 20 {
			arg := any(i + 10)
			if tt.name == "names" {
				arg = rune('a' + i)
			}
			if k := w.shape(mustParse(t, fmt.Sprintf(tt.form, arg)), 1, &traps); k == "" {
				got++
			} else {
				kind = k
			}
		}
		if got != tt.allowed || kind != tt.kind {
			t.Errorf("%s: %d allowed, then %q; want %d, %q", tt.name, got, kind, tt.allowed, tt.kind)
		}
	}
}

// A host of many ordinary pages may have deep folders in proportion.
func TestDeepFoldersOfLargeHost(t *testing.T) {
	t.Parallel()
	traps := Traps{}.withDefaults()
	for _, tt := range []struct{ ordinary, deep int }{{0, 24}, {200, 100}, {1000, 300}, {8000, 1000}} {
		var w waste
		for i := range tt.ordinary {
			if kind := w.shape(mustParse(t, fmt.Sprintf("http://h/page/%d", i)), 1, &traps); kind != "" {
				t.Fatalf("page %d: %s", i, kind)
			}
		}
		deep := 0
		for w.shape(mustParse(t, fmt.Sprintf("http://h/a/b/c/d/e/f/g/h/i/%d", deep)), 1, &traps) == "" {
			deep++
		}
		if deep != tt.deep {
			t.Errorf("%d deep folders beside %d pages, want %d", deep, tt.ordinary, tt.deep)
		}
	}
}

// A calendar without pages in it ends after twenty years, or two where each month is
// found on the one before; an archive, which has a page for a month, does not. The
// same holds for folders in folders.
func TestEndlessSpaces(t *testing.T) {
	t.Parallel()
	traps := Traps{}.withDefaults()
	index := func(int) int { return 2 }
	chain := func(i int) int { return i + 1 }
	tests := []struct {
		name, form string
		pages      int // ordinary ones for each
		depth      func(i int) int
		want       int
	}{
		{"calendar", "http://h/cal/%[1]d/%02[2]d/", 0, index, datedFree},
		{"chain", "http://h/cal/%[1]d/%02[2]d/", 0, chain, chainedFree},
		{"archive", "http://h/%[1]d/%02[2]d/", 1, index, 480},
		{"chained archive", "http://h/%[1]d/%02[2]d/", 1, chain, 480},
		{"folders", "http://h/%[1]d/%02[2]d/a/b/c/d/e/f/g/", 0, chain, deepFree},
	}
	for _, tt := range tests {
		var w waste
		got := 0
		for i := range 480 {
			for k := range tt.pages {
				w.shape(mustParse(t, fmt.Sprintf("http://h/story-%d-%d", i, k)), 1, &traps)
			}
			if w.shape(mustParse(t, fmt.Sprintf(tt.form, 1980+i/12, 1+i%12)), tt.depth(i), &traps) == "" {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s: %d visited, want %d", tt.name, got, tt.want)
		}
	}
}

// A host that says the same as another under the same paths is left alone once
// that is clear; two hosts that share a few pages are not mirrors.
func TestMirrors(t *testing.T) {
	t.Parallel()
	var w waste
	text := func(i int) uint64 { return hash(begun, fmt.Sprint("text ", i)) }
	for i := range 100 {
		w.mirror(mustParse(t, fmt.Sprintf("http://a/%d", i)), "t", text(i))
	}
	for _, tt := range []struct {
		host, title, kind string
		of                func(i int) uint64 // simhash of page i
	}{
		{"same", "t", "mirror host", text},
		{"near", "t", "near-duplicate host", func(i int) uint64 { return text(i) ^ 1<<(i%16) ^ 1<<(16+i%16) ^ 1<<(32+i%32) }},
		{"four-bits", "t", "", func(i int) uint64 { return text(i) ^ 1<<(i%16)*0x0001_0001_0001_0001 }},
		{"other-titles", "of its own", "", text},
		{"two-thirds", "t", "", func(i int) uint64 {
			if i%3 == 0 {
				return text(1000 + i)
			}
			return text(i)
		}},
	} {
		judged := 0
		for i := range 100 {
			if of := w.mirror(mustParse(t, fmt.Sprintf("http://%s/%d", tt.host, i)), tt.title, tt.of(i)); of != "" {
				if of != "a" || tt.kind == "" || w.mirrorKind(tt.host) != tt.kind {
					t.Errorf("%s: %s of %s after %d pages", tt.host, w.mirrorKind(tt.host), of, i+1)
				}
				judged = i + 1
				break
			}
		}
		if tt.kind != "" && judged != mirrorPages {
			t.Errorf("%s: judged after %d pages", tt.host, judged)
		}
	}
}

// With a table that is too small for all pages, a copy is noticed by the pages
// that all hosts are sampled by.
func TestMirrorsSampled(t *testing.T) {
	t.Parallel()
	w := waste{most: 2000}
	text := func(i int) uint64 { return hash(begun, fmt.Sprint("text ", i)) }
	for i := range 3000 {
		for k := range 3 { // hosts that say different things
			w.mirror(mustParse(t, fmt.Sprintf("http://h%d/%d", k, i)), "t", text(10_000*k+i))
		}
	}
	if w.sample == 0 || len(w.pages) > 1000 {
		t.Fatalf("one of 2^%d paths, %d entries", w.sample, len(w.pages))
	}
	for i := 2999; i >= 0 && w.copyOf("copy") == ""; i-- {
		w.mirror(mustParse(t, fmt.Sprintf("http://copy/%d", i)), "t", text(20_000+i))
	}
	if got := w.copyOf("copy"); got != "h2" {
		t.Errorf("copy of %q", got)
	}
}

// A server that answers everything with 200 has only the pages that it has.
func TestSoft404(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": link("/real", "/no1", "/no2", "/no3", "/no4", "/no5", "/no6"), "/real": "<title>Real</title><p>A page with words of its own about herons and lakes."}
	s := newSite(t, pages, nil)
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := pages[r.URL.Path]; ok || r.URL.Path == "/robots.txt" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Oops</title><p>Sorry, what you look for is not here any more, try the search box on our start page.")
	})
	r := newRig(t)
	robot := r.crawl(t, s.URL+"/")
	gone, ok := 0, 0
	for i := 1; i <= 6; i++ {
		switch r.page(t, fmt.Sprintf("%s/no%d", s.URL, i)).State {
		case store.Gone:
			gone++
		case store.OK:
			ok++
		}
	}
	if gone != 4 || ok != 2 { // two were taken before three alike raised the question
		t.Errorf("%d gone, %d ok", gone, ok)
	}
	if p := r.page(t, s.URL+"/real"); p.State != store.OK {
		t.Errorf("the real page is %s", p.State)
	}
	for _, tr := range robot.Status().Traps {
		if tr.Kind == "soft 404" && tr.Count == 4 {
			return
		}
	}
	t.Errorf("traps %+v", robot.Status().Traps)
}

// The same on a host that must rest between requests, so that each page has an
// agent of its own.
func TestSoft404OfRestingHost(t *testing.T) {
	t.Parallel()
	// An agent that is held up has its host's time come while it works, and asks
	// itself: then it is another case, and this one is tried again.
	gone := 0
	for try := 0; try < 6 && gone != 2; try++ {
		gone = goneAtRest(t)
	}
	if gone != 2 {
		t.Errorf("%d pages gone, want the 2 after three alike", gone)
	}
}

func goneAtRest(t *testing.T) (gone int) {
	t.Helper()
	s := newSite(t, map[string]string{"/": link("/no1", "/no2", "/no3", "/no4", "/no5")}, nil)
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || r.URL.Path == "/robots.txt" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Oops</title><p>Sorry, what you look for is not here any more, try the search box on our start page.")
	})
	r := newRig(t)
	r.config.Delay, r.config.DelayGiven = patience+100*time.Millisecond, true
	r.crawl(t, s.URL+"/")
	for i := 1; i <= 5; i++ {
		if r.page(t, fmt.Sprintf("%s/no%d", s.URL, i)).State == store.Gone {
			gone++
		}
	}
	return gone
}

// A copy stays known as one when its next agent comes, and hosts that all say
// the same do not fill the memory.
func TestMirrorsKept(t *testing.T) {
	t.Parallel()
	w := waste{most: 1000}
	for _, host := range []string{"a", "b"} {
		for i := range mirrorPages + 5 {
			w.mirror(mustParse(t, fmt.Sprintf("http://%s/%d", host, i)), "t", hash(begun, fmt.Sprint(i)))
		}
	}
	if a, b := w.copyOf("a"), w.copyOf("b"); a != "" || b != "a" {
		t.Errorf("a is a copy of %q, b of %q", a, b)
	}
	for i := range 5000 {
		host := fmt.Sprintf("h%d", i)
		w.mirror(mustParse(t, "http://"+host+"/"), "t", hash(begun, host))
		w.answered(host, [16]byte{1})
		w.suspect(host, true)
		if len(w.equal) > 1000 || len(w.pages) > 1000 || len(w.alike) > 1000 || len(w.odd) > 1000 {
			t.Fatalf("after %d hosts: %d hosts, %d pages, %d answers, %d suspects", i, len(w.equal), len(w.pages), len(w.alike), len(w.odd))
		}
	}
}

// Pages that many link to are fetched before pages that few link to.
func TestOPICOrder(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": link("/a1", "/a2", "/a3", "/a4")}
	for i := 1; i <= 4; i++ {
		pages[fmt.Sprintf("/a%d", i)] = link("/zz-popular", fmt.Sprintf("/b%d", i))
		pages[fmt.Sprintf("/b%d", i)] = link()
	}
	pages["/zz-popular"] = link()
	s := newSite(t, pages, nil)
	r := newRig(t)
	r.config.Ordering = new(OPIC)
	r.crawl(t, s.URL+"/")
	at := map[string]int{}
	for i, p := range s.log {
		at[p] = i
	}
	for i := 1; i <= 4; i++ {
		b := fmt.Sprintf("/b%d", i)
		if at["/zz-popular"] > at[b] {
			t.Errorf("%s was fetched before the popular page: %v", b, s.log)
		}
	}
	if len(s.log) != len(pages)+1 {
		t.Errorf("%d requests for %d pages", len(s.log), len(pages))
	}
	var o OPIC
	from, to := mustParse(t, "http://h/1").Key(), mustParse(t, "http://h/2")
	before := o.Order(&store.Found{URL: to})
	o.Spread(from, []weburl.Key{to.Key()})
	if after := o.Order(&store.Found{URL: to}); after >= before {
		t.Errorf("order %d after cash came, %d before", after, before)
	}
	if c := o.cash[from] + o.cash[to.Key()]; c != 2*opicStart {
		t.Errorf("cash %g is not kept", c)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var a addresses
	var leave []func(context.Context)
	for i := range 5 {
		l, err := a.Enter(ctx, "192.0.2.1", 3, time.Minute)
		if (l != nil) != (i < 3) || err != nil {
			t.Errorf("place %d: %v, %v", i, l != nil, err)
		}
		leave = append(leave, l)
	}
	leave[0](ctx)
	if l, _ := a.Enter(ctx, "192.0.2.1", 3, time.Minute); l == nil {
		t.Error("a place that is free is refused")
	} else {
		l(ctx)
	}
	if l, _ := a.Enter(ctx, "192.0.2.2", 3, time.Minute); l == nil {
		t.Error("a place at another address is refused")
	}
	leave[1](ctx)
	leave[2](ctx)
	if len(a.busy) != 1 {
		t.Errorf("addresses left over: %v", a.busy)
	}
}
