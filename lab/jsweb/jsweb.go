// Package jsweb is a web of labelled sites, some of which only a browser can
// read: small ones written for the purpose, each in the manner of a framework
// or habit of the real web, together with the truth about every page: which
// links stand in its HTML, which only its scripts make, whether its text is
// theirs, too.
//
// A site is a tree of pages: lists with children, and items. All is a pure
// function of the site's kind and number.
package jsweb

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/rng"
)

//go:embed assets
var assets embed.FS

// Kind is how a site makes its pages.
type Kind struct {
	Name string
	// Label says what a browser finds that HTML does not hold.
	Label string
	// Dynamic reports whether the links and the text of a page are made by scripts.
	links func(list bool) bool
	text  func(list bool) bool
	page  func(s *site, n int) string
}

func showsAlways(bool) bool { return true }
func showsNever(bool) bool  { return false }
func ofLists(l bool) bool   { return l }

// Kinds are all kinds, those that need a browser first.
var Kinds = []Kind{
	{"react", "all: an empty root, elements by a bundle", showsAlways, showsAlways, shellPage(`<div id="root"></div>`, "react")},
	{"vue", "all: a cloaked mount point, a template", showsAlways, showsAlways, shellPage(`<div id="app" v-cloak></div>`, "vue")},
	{"angular", "all: a component element", showsAlways, showsAlways, shellPage(`<app-root></app-root>`, "angular")},
	{"svelte", "all: compiled components", showsAlways, showsAlways, shellPage(`<div id="svelte"></div>`, "svelte")},
	{"history", "all: a router over the session history", showsAlways, showsAlways, shellPage(`<div id="app"></div>`, "history")},
	{"noscript", "all: says that it needs JavaScript", showsAlways, showsAlways, noscriptPage},
	{"plain", "links of lists; items are static", ofLists, showsNever, plainPage},
	{"scroll", "links beyond the first two of a list that grows when scrolled", ofLists, showsNever, scrollPage},
	{"hash", "items, by routes behind #/ of one document", ofLists, showsNever, hashRoutePage},
	{"timer", "links of lists, some seconds after the page has loaded", ofLists, showsNever, timerPage},
	{"hydrated", "nothing: rendered by the server, revived by scripts", showsNever, showsNever, hydratedPage},
	{"broken", "nothing: its script fails", showsNever, showsNever, scriptedPage("broken", `<div id="more"></div>`)},
	{"widget", "nothing: scripts make ornaments", showsNever, showsNever, scriptedPage("widget", "")},
	{"counted", "nothing: a script counts visitors", showsNever, showsNever, scriptedPage("count", "")},
	{"static", "nothing: no scripts", showsNever, showsNever, scriptedPage("", "")},
}

// branch is how many children a list has.
const branch = 6

// site is one host.
type site struct {
	kind  *Kind
	host  string
	pages int
}

// isList reports whether a page has children.
func (s *site) isList(n int) bool { return n*branch+1 < s.pages }

func (s *site) pathOfPage(n int) string {
	switch {
	case n == 0:
		return "/"
	case s.isList(n):
		return "/list/" + strconv.Itoa(n)
	}
	return "/item/" + strconv.Itoa(n)
}

// pageOfPath is the page of a path, -1 for none.
func (s *site) pageOfPath(path string) int {
	if path == "/" {
		return 0
	}
	i := strings.LastIndexByte(path, '/')
	n, err := strconv.Atoi(path[i+1:])
	if err != nil || n < 1 || n >= s.pages || s.pathOfPage(n) != path {
		return -1
	}
	return n
}

// childPages are the pages that a list leads to. On a site with routes by
// fragment the first page leads to all items.
func (s *site) childPages(n int) []int {
	var out []int
	if s.kind.Name == "hash" {
		for i := 1; n == 0 && i < s.pages; i++ {
			if !s.isList(i) {
				out = append(out, i)
			}
		}
		return out
	}
	for i := n*branch + 1; i < min(s.pages, (n+1)*branch+1); i++ {
		out = append(out, i)
	}
	return out
}

var words = strings.Fields("river market window paper morning signal garden harbour letter bridge winter copper meadow engine village thunder lantern harvest station valley compass orchard timber canal")

func (s *site) pageTitle(n int) string {
	x := rng.Mix(uint64(n), uint64(len(s.host))*7919+uint64(s.host[0]))
	return fmt.Sprintf("%s %s of %s %d", words[x%24], words[x/24%24], s.host, n)
}

func (s *site) pageText(n int) string {
	x := rng.Mix(uint64(n)+1, uint64(len(s.host)))
	var b strings.Builder
	for i := range 90 {
		x = rng.Mix(x, uint64(i))
		b.WriteString(words[x%24])
		b.WriteByte(' ')
	}
	return b.String()
}

// link is one entry of a page's list.
type link struct {
	Href  string `json:"href"`
	Title string `json:"title"`
}

func (s *site) linksTo(pages []int) []link {
	out := []link{}
	for _, c := range pages {
		out = append(out, link{s.pathOfPage(c), s.pageTitle(c)})
	}
	return out
}

// Web is all sites. It is an http.Handler by Host.
type Web struct {
	Sites   []string // hosts
	Latency time.Duration
	of      map[string]*site
}

// New makes n sites of so many pages each, kinds taking turns: kinds[0],
// kinds[1] ...; a kind may stand in the list more than once.
func New(n, pages int, kinds []string) (*Web, error) {
	w := &Web{of: map[string]*site{}}
	for i := range n {
		name := kinds[i%len(kinds)]
		k := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
		if k < 0 {
			return nil, fmt.Errorf("jsweb: unknown kind %q", name)
		}
		host := fmt.Sprintf("%s-%d.test", name, i)
		w.Sites = append(w.Sites, host)
		w.of[host] = &site{&Kinds[k], host, pages}
	}
	return w, nil
}

// Seeds are the first pages of all sites.
func (w *Web) Seeds() []string {
	out := make([]string, len(w.Sites))
	for i, h := range w.Sites {
		out[i] = "http://" + h + "/"
	}
	return out
}

// ServeHTTP implements http.Handler.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if w.Latency > 0 {
		time.Sleep(w.Latency)
	}
	s := w.of[r.Host]
	if s == nil && len(w.Sites) == 1 { // by whatever name
		s = w.of[w.Sites[0]]
	}
	if s == nil || r.URL.Path == "/robots.txt" {
		http.NotFound(rw, r)
		return
	}
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/static/"):
		b, err := assets.ReadFile("assets/" + strings.TrimPrefix(path, "/static/"))
		if err != nil {
			b = []byte("/* nothing */")
		}
		rw.Header().Set("Content-Type", "text/javascript")
		rw.Header().Set("Cache-Control", "max-age=3600")
		_, _ = rw.Write(b)
	case strings.HasPrefix(path, "/api/hash/"):
		s.serveRoute(rw, strings.TrimPrefix(path, "/api/hash/"))
	case strings.HasPrefix(path, "/api/"):
		s.serveAPI(rw, r)
	default:
		n := s.pageOfPath(path)
		if n < 0 {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(rw, "<!DOCTYPE html>\n<html lang=\"en\">%s</html>\n", s.kind.page(s, n))
	}
}

// serveAPI answers for a page: title, text and links, of which ?from=&n= takes some.
func (s *site) serveAPI(w http.ResponseWriter, r *http.Request) {
	n := s.pageOfPath(strings.TrimPrefix(r.URL.Path, "/api"))
	if n < 0 {
		http.NotFound(w, r)
		return
	}
	links := s.linksTo(s.childPages(n))
	if q := r.URL.Query(); q.Has("from") {
		from, _ := strconv.Atoi(q.Get("from"))
		count, _ := strconv.Atoi(q.Get("n"))
		from = min(max(from, 0), len(links))
		links = links[from:min(from+max(count, 0), len(links))]
	}
	writeJSONPage(w, s.pageTitle(n), s.pageText(n), links)
}

// serveRoute answers for a route of a site with fragments: the start leads to
// routes, each of which shows up to eight items.
func (s *site) serveRoute(w http.ResponseWriter, name string) {
	const each = 8
	items := s.childPages(0)
	var links []link
	if name == "start" {
		for i := 0; i < len(items); i += each {
			links = append(links, link{"#/part-" + strconv.Itoa(i/each), "part " + strconv.Itoa(i/each)})
		}
		writeJSONPage(w, s.pageTitle(0), s.pageText(0), links)
		return
	}
	i, _ := strconv.Atoi(strings.TrimPrefix(name, "part-"))
	from := min(max(0, i*each), len(items))
	writeJSONPage(w, "part "+name, s.pageText(i+1), s.linksTo(items[from:min(from+each, len(items))]))
}

func writeJSONPage(w http.ResponseWriter, title, text string, links []link) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"title": title, "text": text, "links": links})
}

func headHTML(title string) string {
	return "<head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) + "</title></head>"
}

// contentHTML is a page as a server writes it.
func (s *site) contentHTML(n int, links []link) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<h1>%s</h1><p>%s</p><ul id=\"list\">", html.EscapeString(s.pageTitle(n)), s.pageText(n))
	for _, l := range links {
		fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a></li>", l.Href, html.EscapeString(l.Title))
	}
	b.WriteString("</ul>")
	return b.String()
}

func scriptTag(name string) string { return `<script src="/static/` + name + `.js"></script>` }

// shellPage is a page whose content is all made by a bundle.
func shellPage(mount, name string) func(*site, int) string {
	return func(s *site, _ int) string { return headHTML("App") + "<body>" + mount + scriptTag(name) + "</body>" }
}

func noscriptPage(*site, int) string {
	return headHTML("App") + `<body><noscript>You need to enable JavaScript to run this app.</noscript><div class="shell"></div><script>
addEventListener('load', async () => {
  const page = await (await fetch('/api' + location.pathname)).json();
  document.querySelector('.shell').innerHTML = '<h1>' + page.title + '</h1><p>' + page.text + '</p>' + page.links.map((l) => '<a href="' + l.href + '">' + l.title + '</a>').join(' ');
});
</script></body>`
}

func plainPage(s *site, n int) string {
	if s.isList(n) {
		return headHTML(s.pageTitle(n)) + "<body>" + s.contentHTML(n, nil) + scriptTag("plain") + "</body>"
	}
	body := strings.Replace(s.contentHTML(n, []link{{"/", "home"}}), `id="list"`, `id="done"`, 1)
	return headHTML(s.pageTitle(n)) + "<body>" + body + scriptTag("plain") + "</body>"
}

func scrollPage(s *site, n int) string {
	links := s.linksTo(s.childPages(n))
	body := s.contentHTML(n, links[:min(2, len(links))])
	if s.isList(n) {
		body += `<div id="end"></div>`
	}
	return headHTML(s.pageTitle(n)) + "<body>" + body + scriptTag("scroll") + "</body>"
}

func hashRoutePage(s *site, n int) string {
	if n == 0 {
		return headHTML(s.pageTitle(0)) + `<body><div id="app"></div>` + scriptTag("hash") + "</body>"
	}
	return headHTML(s.pageTitle(n)) + "<body>" + s.contentHTML(n, []link{{"/", "home"}}) + "</body>"
}

func timerPage(s *site, n int) string {
	b, err := json.Marshal(s.linksTo(s.childPages(n)))
	if err != nil || !s.isList(n) {
		return headHTML(s.pageTitle(n)) + "<body>" + s.contentHTML(n, []link{{"/", "home"}}) + "</body>"
	}
	return headHTML(s.pageTitle(n)) + "<body>" + s.contentHTML(n, nil) + "<script>setTimeout(() => { for (const l of " + string(b) +
		") document.getElementById('list').insertAdjacentHTML('beforeend', '<li><a href=\"' + l.href + '\">' + l.title + '</a></li>'); }, 3000);</script></body>"
}

func hydratedPage(s *site, n int) string {
	state, err := json.Marshal(map[string]any{"props": map[string]any{"title": s.pageTitle(n), "links": s.linksTo(s.childPages(n))}})
	if err != nil {
		return ""
	}
	return headHTML(s.pageTitle(n)) + `<body><div id="__next">` + s.contentHTML(n, append(s.linksTo(s.childPages(n)), link{"/", "home"})) + `</div><script id="__NEXT_DATA__" type="application/json">` + string(state) +
		"</script>" + scriptTag("hydrate") + "</body>"
}

// scriptedPage is a page written by the server, with a script.
func scriptedPage(name, extra string) func(*site, int) string {
	return func(s *site, n int) string {
		body := headHTML(s.pageTitle(n)) + "<body><nav><a href=\"/\">home</a></nav>" + s.contentHTML(n, s.linksTo(s.childPages(n))) + extra
		if name != "" {
			body += scriptTag(name)
		}
		return body + "</body>"
	}
}

// Mix is a list of kinds for New of which a share builds its pages by scripts.
func Mix(share float64) []string {
	const n = 20
	scripted := []string{"react", "plain", "vue", "scroll", "angular", "timer", "svelte", "hash", "history", "noscript"}
	other := []string{"static", "counted", "hydrated", "static", "widget", "static", "counted", "static", "broken", "static"}
	kinds := make([]string, n)
	js := int(share*n + .5)
	for i := range kinds {
		// Evenly between the others: the i-th is scripted where i*share passes a whole number.
		if before := i * js / n; (i+1)*js/n > before {
			kinds[i] = scripted[before%len(scripted)]
		} else {
			kinds[i] = other[(i-before)%len(other)]
		}
	}
	return kinds
}
