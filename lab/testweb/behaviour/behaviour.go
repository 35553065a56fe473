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
	"strconv"
	"time"

	"github.com/freshet/freshet/lab/rng"
	"github.com/freshet/freshet/lab/testweb/content"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// Request is what a behaviour may depend on.
type Request struct {
	Seed  uint64  // of the web
	Host  uint64  // number of the host
	Name  string  // the host's DNS name
	Port  string  // ":8080" where the robot had to name a port
	Path  string  // without the query
	Query string  // without '?'
	Page  uint64  // number of the page, where Found
	Doc   uint64  // number of the document on its host, where Found
	Docs  uint64  // number of documents of the host
	First uint64  // page number of the host's document 0
	Found bool    // the path names a page of the graph
	Now   float64 // seconds since the web began, of the web's own time
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
	Disallowed bool   // robots.txt forbids the path
	By         string // names of the behaviours that changed the reply
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

// Scope is the part of the web that shows a behaviour: every option list of a
// behaviour has it.
type Scope struct {
	// Hosts is the share of hosts that have the behaviour, 1 if absent.
	Hosts *float64 `yaml:"hosts"`
	// Pages is the share of pages on those hosts, 1 if absent.
	Pages *float64 `yaml:"pages"`
}

// host reports whether the behaviour of a salt touches a host.
func (s *Scope) host(q *Request, salt uint64) bool {
	return s.Hosts == nil || rng.Unit(rng.Mix(q.Seed^salt, q.Host)) < *s.Hosts
}

// page reports whether the behaviour touches the page that q asks for.
func (s *Scope) page(q *Request, salt uint64) bool {
	if !q.Found || !s.host(q, salt) {
		return false
	}
	return s.Pages == nil || rng.Unit(rng.Mix(q.Seed^salt+1, q.Page)) < *s.Pages
}

// ETag returns the reply's entity tag with its quotes, "" for none.
func (v Validator) ETag() string {
	if v.Tag == 0 {
		return ""
	}
	return `"` + strconv.FormatUint(v.Tag, 36) + `"`
}
