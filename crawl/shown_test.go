package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// again crawls a page that is known once more and returns the pages that the feed names since.
func (r *rig) again(t *testing.T, address string) (told []string) {
	t.Helper()
	st, err := r.store.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Add(t.Context(), []store.Found{{URL: mustParse(t, address), Due: time.Now().Add(-time.Second)}}); err != nil {
		t.Fatal(err)
	}
	r.crawl(t, address)
	changes, err := r.store.Changes(t.Context(), st.Feed, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		told = append(told, c.URL)
	}
	return told
}

// isShown reports whether the index shows a page by its record and that of its canonical page.
func (r *rig) isShown(t *testing.T, address string) bool {
	t.Helper()
	p := r.page(t, address)
	if target, ok := p.AliasOf(); ok {
		canonical, err := r.store.Records(t.Context(), []weburl.Key{target})
		if err != nil {
			t.Fatal(err)
		}
		if len(canonical) == 1 && canonical[0].Represents() {
			return false
		}
	}
	return p.Held() && !p.NoIndex
}

// What the index shows of a page changes without its text: the feed has an entry each time,
// both ways, and none when nothing of it has changed.
func TestIndexHearsOfFlags(t *testing.T) {
	t.Parallel()
	meta := func(on string) func(http.Header) string { return func(http.Header) string { return on } }
	past, future := time.Now().Add(-time.Hour).UTC(), time.Now().Add(48*time.Hour).UTC()
	for name, c := range map[string]struct {
		head   func(http.Header) string // writes headers, returns what stands in <head>
		tag    bool                     // the server answers conditional requests by 304
		hidden bool
	}{
		"X-Robots-Tag":                 {func(h http.Header) string { h.Set("X-Robots-Tag", "noindex"); return "" }, false, true},
		"X-Robots-Tag on a 304":        {func(h http.Header) string { h.Set("X-Robots-Tag", "none"); return "" }, true, true},
		"for this robot, on a 304":     {func(h http.Header) string { h.Set("X-Robots-Tag", "freshet: noindex"); return "" }, true, true},
		"meta robots":                  {meta(`<meta name=robots content="noindex,follow">`), false, true},
		"unavailable_after has passed": {meta(`<meta name=robots content="unavailable_after: ` + past.Format(time.RFC1123) + `">`), false, true},
		"passed, in a header of a 304": {func(h http.Header) string {
			h.Set("X-Robots-Tag", "unavailable_after: "+past.Format(time.RFC1123))
			return ""
		}, true, true},
		"unavailable_after to come": {meta(`<meta name=robots content="unavailable_after: ` + future.Format(time.RFC1123) + `"><meta name=description content="until then">`), false, false},
		"canonical":                 {meta(`<link rel=canonical href="/kept">`), false, true},
		"canonical in a header":     {func(h http.Header) string { h.Set("Link", `</kept>; rel="canonical"`); return "" }, true, true},
		"description":               {meta(`<meta name=description content="said otherwise">`), false, false},
		"content type":              {func(h http.Header) string { h.Set("Content-Type", "text/plain"); return "" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var on atomic.Bool
			s := newSite(t, map[string]string{"/kept": "<title>Kept</title><p>The page that stands for others, with words of its own"}, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				head := ""
				if on.Load() {
					head = c.head(w.Header())
				}
				if c.tag {
					w.Header().Set("ETag", `"x"`)
				}
				if r.Header.Get("If-None-Match") != "" {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				fmt.Fprintf(w, `<html><head><title>A title</title>%s</head><body><p>some words that stay as they are <a href="/kept">kept</a></body></html>`, head)
			}})
			r := newRig(t)
			r.crawl(t, s.URL+"/")
			for turn, want := range []bool{true, false, true, false} {
				on.Store(want)
				told := slices.Contains(r.again(t, s.URL+"/"), s.URL+"/")
				if name == "canonical in a header" && !want { // a 304 does not take it back
					return
				}
				if !told {
					t.Errorf("turn %d: the feed has no entry", turn+1)
				}
				if shown := r.isShown(t, s.URL+"/"); shown == (want && c.hidden) {
					t.Errorf("turn %d: shown %v, want %v", turn+1, shown, !(want && c.hidden))
				}
				if told := r.again(t, s.URL+"/"); slices.Contains(told, s.URL+"/") {
					t.Errorf("turn %d: the feed has an entry though nothing changed", turn+1)
				}
			}
		})
	}
}

// A page is visited when its unavailable_after passes.
func TestVisitWhenUnavailable(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	s := newSite(t, map[string]string{"/": `<meta name=robots content="unavailable_after: ` + until.UTC().Format(time.RFC1123) + `"><p>words`}, nil)
	r := newRig(t)
	r.crawl(t, s.URL+"/")
	p := r.page(t, s.URL+"/")
	if late := p.Slot.Due.Sub(until); late < 0 || late > time.Minute || !p.Expires.Equal(until) || p.NoIndex {
		t.Errorf("due %v, expires %v, hidden %v; want a visit just after %v", p.Slot.Due, p.Expires, p.NoIndex, until)
	}
}

// A canonical link that means the page itself hides nothing, however it is written.
func TestCanonicalOfItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, canonical string }{
		"lower-case escapes":   {"/%d0%bf%d1%80%d0%b8/", "/%d0%bf%d1%80%d0%b8/"},
		"escaped tilde":        {"/%7Ejoe/", "/%7Ejoe/"},
		"raw letters":          {"/при/", "/при/"},
		"upper and lower":      {"/%C4%8D?q=%c4%8d", "/%c4%8D?q=%C4%8D"},
		"tracking parameter":   {"/a", "/a?utm_source=canonical"},
		"session":              {"/a", "/a;jsessionid=77"},
		"dot segments":         {"/a/b", "/x/../a/./b"},
		"fragment":             {"/a", "/a#top"},
		"session before a dot": {"/a/", "/a/b/..;jsessionid=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, nil)
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				switch r.URL.Path {
				case "/robots.txt":
					http.NotFound(w, r)
				case "/":
					fmt.Fprint(w, link(c.path))
				default:
					fmt.Fprintf(w, `<html><head><title>t</title><link rel="canonical" href="http://%s%s"></head><body><p>words`, r.Host, c.canonical)
				}
			})
			r := newRig(t)
			r.crawl(t, s.URL+"/")
			pages := 0
			if err := r.store.Pages(t.Context(), func(p *store.Page) error {
				if p.URL != s.URL+"/" {
					if pages++; p.State != store.OK || p.Canonical != "" {
						t.Errorf("%s: %s, canonical %q, want none", p.URL, p.State, p.Canonical)
					}
				}
				return nil
			}); err != nil || pages != 1 {
				t.Errorf("%d pages, want 1 (%v)", pages, err)
			}
		})
	}
}

// A canonical link hides its page only while its target stands for it.
func TestCanonicalLeadsNowhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		canonical string
		shown     bool
	}{
		"a host that is not crawled":   {"https://www.example.org%s", true},
		"an address that leads back":   {"/old%s", true},
		"an address that is not there": {"/none%s", true},
		"an address that fails":        {"/failing%s", true},
		"a page that is not indexed":   {"/hidden%s", true},
		"a page that names it back":    {"/back%s", true},
		"a page that robots.txt hides": {"/refused%s", true},
		"another scheme":               {"ftp://h%s", true},
		"a page that is kept":          {"/kept%s", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, nil)
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
				switch kind {
				case "robots.txt":
					fmt.Fprint(w, "User-agent: *\nDisallow: /refused/\n")
				case "none":
					http.NotFound(w, r)
				case "failing":
					w.WriteHeader(http.StatusInternalServerError)
				case "old":
					http.Redirect(w, r, "/"+rest, http.StatusMovedPermanently)
				case "hidden":
					fmt.Fprint(w, `<meta name=robots content=noindex><p>hidden`)
				case "back":
					fmt.Fprintf(w, `<link rel=canonical href="/%s"><p>names it back`, rest)
				case "kept":
					fmt.Fprintf(w, `<title>Kept %s</title><p>kept page %s`, rest, rest)
				default:
					fmt.Fprintf(w, `<html><head><title>t</title><link rel="canonical" href="`+c.canonical+`"></head><body><p>words <a href="/1">1</a> <a href="/2">2</a>`, r.URL.Path)
				}
			})
			r := newRig(t)
			r.crawl(t, s.URL+"/1")
			for _, path := range []string{"/1", "/2"} {
				if got := r.isShown(t, s.URL+path); got != c.shown {
					t.Errorf("%s is shown: %v, want %v", path, got, c.shown)
				}
			}
		})
	}
}

// Pages that name another as canonical get entries in the feed when that one comes and when
// it is lost.
func TestCanonicalTargetComesAndGoes(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	s := newSite(t, map[string]string{"/": link("/copy"), "/copy": `<link rel=canonical href="/target"><p>the copy`}, map[string]http.HandlerFunc{"/target": func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>the target")
	}})
	r := newRig(t)
	gone.Store(true)
	r.crawl(t, s.URL+"/")
	for turn, lost := range []bool{true, false, true, false} {
		if gone.Store(lost); turn > 0 {
			if told := r.again(t, s.URL+"/target"); !slices.Contains(told, s.URL+"/copy") {
				t.Errorf("turn %d: the feed names %v, want the copy, too", turn, told)
			}
		}
		if got := r.isShown(t, s.URL+"/copy"); got != lost {
			t.Errorf("turn %d: the copy is shown: %v, want %v", turn, got, lost)
		}
	}
}

// A redirect to the page itself with a session's number is followed once.
func TestRedirectToItself(t *testing.T) {
	t.Parallel()
	query := func(want string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.URL.RawQuery == want }
	}
	for name, c := range map[string]struct {
		target string
		ends   func(*http.Request) bool
		state  store.State
		traps  int64
	}{
		"session in the query":  {"/a?PHPSESSID=0123456789abcdef", query("PHPSESSID=0123456789abcdef"), store.OK, 0},
		"tracking parameter":    {"/a?utm_source=self", query("utm_source=self"), store.OK, 0},
		"session in the path":   {"/a;jsessionid=42", func(r *http.Request) bool { return strings.Contains(r.URL.Path, "jsessionid") }, store.OK, 0},
		"again and again":       {"/a?PHPSESSID=0123456789abcdef", func(*http.Request) bool { return false }, store.Redirect, 1},
		"the very same address": {"/a", func(*http.Request) bool { return false }, store.Redirect, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			s := newSite(t, nil, nil)
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				switch {
				case r.URL.Path == "/robots.txt":
					http.NotFound(w, r)
				case r.URL.Path == "/":
					fmt.Fprint(w, link("/a"))
				default:
					asked.Add(1)
					if !c.ends(r) {
						http.Redirect(w, r, c.target, http.StatusFound)
						return
					}
					fmt.Fprint(w, "<title>The page</title><p>words"+link("/next"))
				}
			})
			r := newRig(t)
			robot := r.crawl(t, s.URL+"/")
			p := r.page(t, s.URL+"/a")
			if p.State != c.state || trapOf(robot, trap.RedirectLoop).Count != c.traps || c.traps > 0 && p.Reason != store.ReasonRedirectLoop {
				t.Errorf("state %s, reason %q, traps %+v; want %s and %d loops", p.State, p.Reason, robot.Status().Traps, c.state, c.traps)
			}
			if n := asked.Load(); c.traps > 0 && n > 2 {
				t.Errorf("a loop was asked for %d times, want at most 2", n)
			}
		})
	}
}

// Links are counted for the pages that are stored: their keys are canonical.
func TestLinkKeysAreCanonical(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link("/a?utm_source=x", "/%7ea;sid=1", "/b")}, nil)
	r := newRig(t)
	r.crawl(t, s.URL+"/")
	want := map[weburl.Key]bool{mustParse(t, s.URL+"/a").Key(): true, mustParse(t, s.URL+"/~a").Key(): true, mustParse(t, s.URL+"/b").Key(): true}
	if err := r.store.Links(t.Context(), func(_ weburl.Key, to []weburl.Key) error {
		for _, k := range to {
			if !want[k] {
				t.Errorf("the key %x is of no page", k)
			}
			delete(want, k)
		}
		return nil
	}); err != nil || len(want) > 0 {
		t.Errorf("%d keys are missing (%v)", len(want), err)
	}
}

// A page that says noarchive later, by its header, its document or the header of a 304, loses
// its copy at the next visit although its text is the same; it stays in the index.
func TestNoCopyWithoutChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, meta string
		tag          bool // the server answers conditional requests by 304
		want         bool
	}{
		"header":          {header: "noarchive", want: true},
		"header of a 304": {header: "noarchive", tag: true, want: true},
		"of this robot":   {header: "freshet: nocache", want: true},
		"of another":      {header: "otherbot: noarchive"},
		"meta":            {meta: "noarchive", want: true},
		"other directive": {meta: "nosnippet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var on atomic.Bool
			s := newSite(t, nil, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				meta := ""
				if on.Load() && c.header != "" {
					w.Header().Set("X-Robots-Tag", c.header)
				}
				if on.Load() && c.meta != "" {
					meta = `<meta name=robots content="` + c.meta + `">`
				}
				if c.tag {
					w.Header().Set("ETag", `"x"`)
					if r.Header.Get("If-None-Match") != "" {
						w.WriteHeader(http.StatusNotModified)
						return
					}
				}
				fmt.Fprint(w, "<title>A</title>", meta, "<p>the text stays the same")
			}})
			r := newRig(t)
			r.crawl(t, s.URL+"/")
			if p := r.page(t, s.URL+"/"); p.NoCopy || !r.isShown(t, s.URL+"/") {
				t.Fatalf("before: %+v, want a copy and a place in the index", p)
			}
			on.Store(true)
			r.again(t, s.URL+"/")
			if p := r.page(t, s.URL+"/"); p.NoCopy != c.want || !r.isShown(t, s.URL+"/") {
				t.Errorf("after: no copy %v, shown %v; want %v, true", p.NoCopy, r.isShown(t, s.URL+"/"), c.want)
			}
		})
	}
}
