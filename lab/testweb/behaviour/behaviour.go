// Package behaviour holds what real servers do to robots: slowness, errors,
// redirects, traps, lies. Each behaviour is a pure function of (seed, URL, time
// of the web): the same web misbehaves in the same way for every robot, and a
// run can be repeated.
//
// A behaviour is one file and one line of the table in table.go. The server
// makes the honest answer first, then lets the behaviours of the configuration
// change it in the order of the table.
package behaviour

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/content"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// World is the part of the web that behaviours may ask about.
type World interface {
	// Span returns the first page of a host and the number of its pages.
	Span(host uint64) (first, pages uint64)
	// TextKey returns the key of the text of a page, and its topic.
	TextKey(page uint64) (uint64, content.Topic)
	// HostLanguage returns the language of a host.
	HostLanguage(host uint64) content.Language
	// Changed returns when the version of a page at a time began.
	Changed(page uint64, now float64) float64
	// Clock returns the moment of the clock that is a time of the web.
	Clock(t float64) time.Time
	// Scale returns how many seconds of the web pass in one of the clock.
	Scale() float64
}

// Request is what a behaviour may depend on.
type Request struct {
	World World
	Seed  uint64  // of the web
	Host  uint64  // number of the host
	Name  string  // the host's DNS name
	Base  string  // scheme, name and port: "http://www.aabbccdd.cz"
	Path  string  // without the query
	Query string  // without '?'
	Page  uint64  // number of the page, where Found
	Doc   uint64  // number of the document on its host, where Found
	Docs  uint64  // number of documents of the host
	First uint64  // page number of the host's document 0
	Found bool    // the path names a page of the graph
	Now   float64 // seconds since the web began, of the web's own time
}

// showDocument makes the request one for a document of its host; false if there is none.
func (q *Request) showDocument(doc uint64) bool {
	if doc >= q.Docs {
		return false
	}
	q.Found, q.Doc, q.Page = true, doc, q.First+doc
	return true
}

// Reply is the answer in the making.
type Reply struct {
	Kind      truth.Kind
	Status    int
	Location  string // of a redirect
	Retry     int    // Retry-After in seconds, 0 for none
	Header    []Field
	Page      *content.Page // written as HTML; nil if Body is the answer
	Body      []byte
	Type      string // media type of Body, or of Page if not text/html
	Charset   string // in the Content-Type header, "" for none
	Encoding  string // the bytes' real charset, "" for UTF-8
	Validator Validator

	Delay time.Duration // before the first byte
	Rate  float64       // bytes per second, 0 for as fast as possible
	Cut   int64         // break the connection after so many bytes of the body, if > 0; -1: before the header
	Bomb  int64         // send so many zero bytes, gzipped

	CopyOf     int64 // 1 + number of the page whose text this one repeats
	Similarity float64
	Disallowed bool    // robots.txt forbids the path
	CrawlDelay float64 // that robots.txt asks for, in seconds
	By         string  // names of the behaviours that changed the reply
}

// Field is a header field.
type Field struct{ Name, Value string }

// Validator is what the reply says of the page's version.
type Validator struct {
	Tag      uint64  // of the ETag, 0 for none
	Modified float64 // time of the web, for Last-Modified and If-Modified-Since
	Dated    bool    // there is a Last-Modified
	Deaf     bool    // conditions are ignored: always 200
}

// Behaviour changes a reply.
type Behaviour interface {
	// Apply changes r, the reply to q so far, and reports whether it did. It is
	// called concurrently and keeps no state.
	Apply(q *Request, r *Reply) bool
}

// Router is implemented by behaviours that show pages under other paths too.
type Router interface {
	// Route makes q a request for the page behind its path, if the path is one of
	// the behaviour's.
	Route(q *Request)
}

// Scope is the part of the web that shows a behaviour: every option list of a
// behaviour has it.
type Scope struct {
	Hosts float64 `yaml:"hosts"` // share of hosts
	Pages float64 `yaml:"pages"` // share of pages on those hosts

	salt uint64 // keeps the choices of two behaviours apart
}

// everywhereScope is the scope of behaviours that touch all unless told otherwise.
func everywhereScope() Scope { return Scope{Hosts: 1, Pages: 1} }

func (s *Scope) checkOptions() error {
	for name, v := range map[string]float64{"hosts": s.Hosts, "pages": s.Pages} {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("%s: %g is no share: give a number from 0 to 1", name, v)
		}
	}
	return nil
}

func (s *Scope) setSalt(salt uint64) { s.salt = salt }

// drawBits returns 64 bits that hang on the behaviour and x alone.
func (s *Scope) drawBits(q *Request, x uint64) uint64 { return rng.Mix(q.Seed^s.salt, x) }

// ofHost returns whether the behaviour touches the host.
func (s *Scope) ofHost(q *Request) bool { return s.touchesHost(q, q.Host) }

func (s *Scope) touchesHost(q *Request, host uint64) bool {
	return s.Hosts > 0 && rng.Unit(s.drawBits(q, host)) < s.Hosts
}

// ofPage returns whether the behaviour touches the page that q asks for.
func (s *Scope) ofPage(q *Request) bool {
	return q.Found && s.ofHost(q) && (s.Pages >= 1 || rng.Unit(rng.Mix(s.drawBits(q, 1), q.Page)) < s.Pages)
}

// pathKey draws from the path, page of the graph or not.
func (s *Scope) pathKey(q *Request) uint64 { return rng.Mix(s.drawBits(q, q.Host), fnv1a(q.Path)) }

// fnv1a is FNV-1a.
func fnv1a(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// addLink adds a link to a reply that shows a page.
func (r *Reply) addLink(q *Request, href, rel string) {
	_, topic := q.World.TextKey(fnv1a(href))
	r.Page.Links = append(r.Page.Links, content.Link{
		Href: []byte(href), Rel: rel, Topic: topic, Lang: r.Page.Lang,
	})
}

// setExtraPage makes the reply a page outside the graph, with the host's looks.
func (r *Reply) setExtraPage(q *Request, kind truth.Kind, key uint64, links ...string) {
	_, topic := q.World.TextKey(key)
	p := &content.Page{
		Lang: q.World.HostLanguage(q.Host), Topic: topic, Base: key, Sentences: 6,
		Habit: content.HabitOf(q.Host), Meta: "utf-8",
	}
	*r = Reply{Kind: kind, Status: 200, Page: p, Type: "text/html", Charset: "utf-8"}
	for _, l := range links {
		r.addLink(q, l, "")
	}
}

// setRedirect makes the reply a redirect.
func (r *Reply) setRedirect(status int, to string) {
	*r = Reply{Kind: truth.Redirect, Status: status, Location: to}
}

// setErrorPage makes the reply an error page.
func (r *Reply) setErrorPage(kind truth.Kind, status int) {
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	*r = Reply{
		Kind: kind, Status: status, Type: "text/html", Disallowed: r.Disallowed,
		Body: []byte("<html><head><title>" + text + "</title></head><body><h1>" + text + "</h1></body></html>\n"),
	}
}

// lognormalOf draws a positive number with the given median from 64 bits; spread
// is the factor of one standard deviation.
func lognormalOf(bits uint64, median, spread float64) float64 {
	return median * math.Exp(math.Log(spread)*standardNormal(bits))
}

// standardNormal draws a standard normal number (Box and Muller).
func standardNormal(bits uint64) float64 {
	u, v := rng.Unit(rng.Mix(bits, 1)), rng.Unit(rng.Mix(bits, 2))
	return math.Sqrt(-2*math.Log(1-u)) * math.Cos(2*math.Pi*v)
}

// ETag returns the reply's entity tag with its quotes, "" for none.
func (v Validator) ETag() string {
	if v.Tag == 0 {
		return ""
	}
	return `"` + strconv.FormatUint(v.Tag, 36) + `"`
}
