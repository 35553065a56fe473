package testweb

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/content"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// Salts keep the hashes of different questions about one number apart.
const (
	saltHost = 0x1057 + iota
	saltPage
	saltText
	saltVersion
	saltHistory
)

// Web is a synthetic web as a pure function: what a URL answers at a time. It
// is safe for concurrent use, and immutable but for when its time begins.
type Web struct {
	graph     Graph
	layout    Layout
	names     name.Scheme
	seed      uint64
	words     *content.Words
	languages []content.Language
	history   field.Lookup
	sized     bool
	paths     paths
	behaviour behaviour.Set
	routers   []behaviour.Router
	sentences int
	start     atomic.Pointer[time.Time]
	scale     float64
	scratch   sync.Pool
}

// scratch is the memory in which a reply is made; it is used again for others.
type scratch struct {
	page  content.Page
	links []content.Link
	nodes []uint64
	hrefs []byte
	out   []byte
}

// visit is a request and its reply.
type visit struct {
	q       behaviour.Request
	r       behaviour.Reply
	by      string // names of the behaviours that changed the reply
	version Version
	mem     *scratch
}

// hostSeed seeds what is common to the pages of a host.
func (w *Web) hostSeed(host uint64) uint64 { return rng.Mix(w.seed+saltHost, host) }

// pageSeed seeds what a page has of its own.
func (w *Web) pageSeed(page uint64) uint64 { return rng.Mix(w.seed+saltPage, page) }

// Language returns the language of a host.
func (w *Web) Language(host uint64) content.Language {
	return w.languages[w.hostSeed(host)>>40%uint64(len(w.languages))]
}

// Title returns the title of a page, without the changes of behaviours.
func (w *Web) Title(page uint64) string {
	return string(w.words.AppendTitle(nil, w.Language(w.layout.Host(page)), w.words.Topic(w.pageSeed(page))))
}

// Pages returns the number of pages.
func (w *Web) Pages() uint64 { return w.graph.Nodes() }

// Graph returns the link graph.
func (w *Web) Graph() Graph { return w.graph }

// Hosts returns the number of hosts.
func (w *Web) Hosts() uint64 { return w.layout.Hosts() }

// Successors appends the pages that a page links to to buf.
func (w *Web) Successors(page uint64, buf []uint64) []uint64 {
	return w.graph.Successors(page, buf)
}

// HostName returns the DNS name of a host.
func (w *Web) HostName(host uint64) string { return w.names.Name(host) }

// URL returns the address of a page over plain HTTP.
func (w *Web) URL(page uint64) string {
	host := w.layout.Host(page)
	first, _ := w.layout.Span(host)
	b := w.names.Append([]byte("http://"), host)
	return string(w.appendPath(b, first, page-first))
}

// Page returns the page of a host name and a path; ok is false if there is none.
func (w *Web) Page(host, path string) (page uint64, ok bool) {
	h, ok := w.Host(host)
	if !ok {
		return 0, false
	}
	first, pages := w.layout.Span(h)
	path, query, _ := strings.Cut(path, "?")
	doc, ok := w.documentAt(first, pages, path, query)
	return first + doc, ok
}

// Host returns the number of the host of a DNS name; ok is false if the web has
// none of that name.
func (w *Web) Host(dns string) (host uint64, ok bool) {
	h, ok := w.names.Parse(dns)
	return h, ok && h < w.layout.Hosts()
}

// Span implements behaviour.World and Layout.
func (w *Web) Span(host uint64) (first, pages uint64) { return w.layout.Span(host) }

// TextKey implements behaviour.World.
func (w *Web) TextKey(page uint64) (uint64, content.Topic) {
	key := w.pageSeed(page)
	return rng.Mix(key, saltText), w.words.Topic(key)
}

// HostLanguage implements behaviour.World.
func (w *Web) HostLanguage(host uint64) content.Language { return w.Language(host) }

// Changed implements behaviour.World.
func (w *Web) Changed(page uint64, now float64) float64 { return w.Version(page, now).Since }

// Clock returns the moment of the clock that is a time of the web.
func (w *Web) Clock(t float64) time.Time {
	return w.start.Load().Add(time.Duration(t / w.scale * float64(time.Second)))
}

// Time returns the time of the web at a moment of the clock.
func (w *Web) Time(t time.Time) float64 { return t.Sub(*w.start.Load()).Seconds() * w.scale }

// Begin makes the web's time begin at a moment of the clock: before, pages are
// as they were made.
func (w *Web) Begin(at time.Time) { w.start.Store(&at) }

// Scale returns how many seconds of the web pass in one of the clock.
func (w *Web) Scale() float64 { return w.scale }

// Seeds returns the addresses of the entry pages of n hosts, spread evenly.
func (w *Web) Seeds(n int) []string {
	hosts := w.layout.Hosts()
	n = int(min(uint64(max(n, 1)), hosts))
	seeds := make([]string, n)
	for i := range seeds {
		first, _ := w.layout.Span(hosts / uint64(n) * uint64(i))
		seeds[i] = w.URL(first)
	}
	return seeds
}

// origin is what the address of a host looks like to this robot.
type origin struct {
	scheme string // "http" or "https"
	port   string // ":8080", or empty
}

// answerVisit answers a request for a path of a host. The reply lives until release.
func (w *Web) answerVisit(host uint64, dns string, o origin, path, query string, now float64) *visit {
	mem, _ := w.scratch.Get().(*scratch)
	if mem == nil {
		mem = new(scratch)
	}
	v := &visit{mem: mem}
	first, pages := w.layout.Span(host)
	v.q = behaviour.Request{
		World: w, Seed: w.seed, Host: host, Name: dns, Path: path, Query: query,
		Docs: pages, First: first, Now: now,
	}
	if len(w.behaviour) > 0 {
		v.q.Base = o.scheme + "://" + dns + o.port
	}
	if doc, ok := w.documentAt(first, pages, path, query); ok {
		v.q.Found, v.q.Doc, v.q.Page = true, doc, first+doc
	}
	for _, r := range w.routers {
		r.Route(&v.q)
	}
	w.answerHonestly(v, o)
	for _, b := range w.behaviour {
		if b.Apply(&v.q, &v.r) {
			if v.by != "" {
				v.by += " "
			}
			v.by += b.Name
		}
	}
	return v
}

// releaseVisit gives the memory of a reply back.
func (w *Web) releaseVisit(v *visit) { w.scratch.Put(v.mem) }

// answerHonestly makes the answer of a well-kept server.
func (w *Web) answerHonestly(v *visit, o origin) {
	switch {
	case v.q.Found:
		w.answerPage(v, o)
	case v.q.Path == "/":
		v.r.Kind, v.r.Status, v.r.Location = truth.Redirect, 301, string(w.appendPath(nil, v.q.First, 0))
	case v.q.Path == "/robots.txt":
		v.r.Kind, v.r.Status, v.r.Type = truth.Robots, 200, "text/plain"
		v.r.Body = []byte("User-agent: *\nDisallow: /private/\n")
	default:
		v.r.Kind, v.r.Status, v.r.Type = truth.Missing, 404, "text/html"
		v.r.Body = []byte("<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>\n")
	}
}

// answerPage makes the reply that shows a page of the graph.
func (w *Web) answerPage(v *visit, o origin) {
	q, mem := &v.q, v.mem
	v.version = w.Version(q.Page, q.Now)
	if v.version.Status != http.StatusOK {
		w.answerGone(v)
		return
	}
	key, hostKey := w.pageSeed(q.Page), w.hostSeed(q.Host)
	text, topic := w.TextKey(q.Page)
	p := &mem.page
	*p = content.Page{
		Lang: w.Language(q.Host), Topic: topic, Base: text, Drift: .3,
		Sentences: w.sentences/2 + int(key>>20%uint64(w.sentences)),
		Habit:     content.HabitOf(hostKey), Size: int(v.version.Size),
	}
	if v.version.Number != 0 {
		p.Version = rng.Mix(rng.Mix(key, saltVersion), v.version.Number)
		p.Note = "Revision " + strconv.FormatUint(v.version.Number, 10)
	}
	if !p.Habit.NoMeta {
		p.Meta = "utf-8"
	}
	p.Links = w.writePageLinks(v, o, p.Habit.Links)
	v.r = behaviour.Reply{
		Kind: truth.Page, Status: 200, Page: p, Type: "text/html", Charset: "utf-8",
		Validator: behaviour.Validator{Tag: rng.Mix(key, v.version.Number) | 1, Modified: v.version.Since, Dated: true},
	}
}

// answerGone makes the reply of a page whose history says that it cannot be had. Its
// kind stays that of a page: whoever sees it knows the present version.
func (w *Web) answerGone(v *visit) {
	text := strconv.Itoa(v.version.Status) + " " + http.StatusText(v.version.Status)
	v.r = behaviour.Reply{
		Kind: truth.Page, Status: v.version.Status, Type: "text/html",
		Body: []byte("<html><head><title>" + text + "</title></head><body><h1>" + text + "</h1></body></html>\n"),
	}
}

// writePageLinks writes the links of the page that is being answered.
func (w *Web) writePageLinks(v *visit, o origin, form content.LinkForm) []content.Link {
	mem, q := v.mem, &v.q
	mem.nodes = w.graph.Successors(q.Page, mem.nodes[:0])
	mem.links, mem.hrefs = mem.links[:0], mem.hrefs[:0]
	for _, u := range mem.nodes {
		host := q.Host
		first := q.First
		own := u >= q.First && u-q.First < q.Docs
		if !own {
			host = w.layout.Host(u)
			first, _ = w.layout.Span(host)
		}
		start := len(mem.hrefs)
		mem.hrefs = w.appendHref(mem.hrefs, o, form, own, host, first, u-first)
		mem.links = append(mem.links, content.Link{
			Href: mem.hrefs[start:len(mem.hrefs):len(mem.hrefs)], Own: own,
			Topic: w.words.Topic(w.pageSeed(u)), Lang: w.Language(host),
		})
	}
	return mem.links
}

func (w *Web) appendHref(b []byte, o origin, form content.LinkForm, own bool, host, first, doc uint64) []byte {
	if own {
		switch form {
		case content.Rooted:
			return w.appendPath(b, first, doc)
		case content.Relative, content.DotRelative:
			if len(w.paths.of) > 0 { // what they are relative to may be a folder
				return w.appendPath(b, first, doc)
			}
			// Without the slash the name of a document is a relative reference.
			if form == content.DotRelative {
				b = append(b, '.')
				return name.AppendDocument(b, doc)
			}
			n := len(b)
			b = name.AppendDocument(b, doc)
			copy(b[n:], b[n+1:])
			return b[:len(b)-1]
		case content.SchemeLess:
			b = w.names.Append(append(b, "//"...), host)
			return w.appendPath(append(b, o.port...), first, doc)
		}
	}
	b = append(append(b, o.scheme...), "://"...)
	b = w.names.Append(b, host)
	return w.appendPath(append(b, o.port...), first, doc)
}

// replyBody returns the bytes of the reply before any coding.
func (w *Web) replyBody(v *visit) []byte {
	if v.r.Page == nil {
		return v.r.Body
	}
	v.mem.out = w.words.AppendHTML(v.mem.out[:0], v.r.Page)
	return v.mem.out
}
