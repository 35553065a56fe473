// Package attack is a hostile web: a small site for each way in which a stranger
// can stop a robot, send it in circles or aim it at others. Each site has an
// address of its own on the loopback network, so any robot that crawls IP
// addresses can be pointed at it without DNS. After the crawl a score card says
// which attacks the robot withstood.
//
// An attack never depends on how the robot is written: it is judged by the
// requests that arrive, and by the exit and the memory of the robot's process.
// A site withstood its attack if the robot still found the ordinary page that the
// site links after the hostile ones (the canary), within a bounded number of
// requests, and if the bystander of the attack was left in peace.
package attack

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// canaryPath is the ordinary page that every site links last.
const canaryPath = "/canary.html"

// maxHits bounds the requests that are kept of a site; those beyond are counted.
const maxHits = 200_000

// An attack is what one site does to robots.
type attack struct {
	name  string
	what  string
	links []string // of the start page, as they stand in its markup

	// handle answers a request that is neither for the start page nor for the
	// canary and reports whether it did; others get 404. It may also answer
	// /robots.txt. nil answers none.
	handle func(s *site, w http.ResponseWriter, r *http.Request) bool
	// maxRequests bounds what the site may be asked for; 0 is defaultRequests.
	maxRequests int
	// canaryOptional says that a robot may stay away from the site altogether.
	canaryOptional bool
	// bystander judges the requests of a third party that the attack aims at; nil
	// where there is none.
	bystander func(hits []Hit, delay time.Duration) error
}

// defaultRequests is a bound for sites of a few pages: robots retry.
const defaultRequests = 150

// Hit is one request.
type Hit struct {
	Time   time.Time
	Method string
	Target string // path and query
	Agent  string
}

// site is a running attack.
type site struct {
	attack
	address   netip.AddrPort
	bystander *site // nil where there is none

	mu   sync.Mutex
	hits []Hit
	lost int // hits beyond maxHits
}

// originURL returns the site's scheme, address and port.
func (s *site) originURL() string { return "http://" + s.address.String() }

// recordHit keeps a request.
func (s *site) recordHit(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hits) >= maxHits {
		s.lost++
		return
	}
	s.hits = append(s.hits, Hit{time.Now(), r.Method, r.URL.RequestURI(), r.UserAgent()})
}

// recordedHits returns the requests so far, and how many.
func (s *site) recordedHits() ([]Hit, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[:len(s.hits):len(s.hits)], len(s.hits) + s.lost
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.recordHit(r)
	if s.handle != nil && s.handle(s, w, r) {
		return
	}
	switch r.URL.Path {
	case "/":
		writePage(w, s.name, s.startPage())
	case canaryPath:
		writePage(w, "Canary", "<p>This page is ordinary.")
	default:
		http.NotFound(w, r)
	}
}

// startPage returns the links of the attack, then the canary's link.
func (s *site) startPage() string {
	var b strings.Builder
	for _, l := range append(s.links, canaryPath) {
		fmt.Fprintf(&b, "<p><a href=\"%s\">a link</a>\n", html.EscapeString(strings.ReplaceAll(l, "{bystander}", s.bystanderAddress())))
	}
	return b.String()
}

func (s *site) bystanderAddress() string {
	if s.bystander == nil {
		return ""
	}
	return s.bystander.address.String()
}

func writePage(w http.ResponseWriter, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!DOCTYPE html><title>%s</title>\n%s", title, body)
}

// Web is the running hostile web.
type Web struct {
	sites   []*site
	servers []*http.Server
	done    sync.WaitGroup
}

// Open serves the hostile web on addresses 127.66.0.1 and up at one port, 0 for a
// free one, until it is closed.
func Open(ctx context.Context, port uint16) (*Web, error) {
	w := &Web{}
	last := netip.MustParseAddr("127.66.0.0")
	listen := func(a attack) (*site, error) {
		last = last.Next()
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(last, port).String())
		if err != nil {
			return nil, fmt.Errorf("serve attack %s: %w", a.name, err)
		}
		if port == 0 {
			port = l.Addr().(*net.TCPAddr).AddrPort().Port()
		}
		s := &site{attack: a, address: netip.AddrPortFrom(last, port)}
		server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
		w.servers = append(w.servers, server)
		w.done.Go(func() { _ = server.Serve(l) })
		return s, nil
	}
	for _, a := range allAttacks() {
		var third *site
		if a.bystander != nil {
			var err error
			if third, err = listen(attack{name: "bystander of " + a.name, what: "a third party"}); err != nil {
				return nil, errors.Join(err, w.Close())
			}
		}
		s, err := listen(a)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		s.bystander = third
		w.sites = append(w.sites, s)
	}
	return w, nil
}

// Seeds returns the start pages of all sites.
func (w *Web) Seeds() []string {
	var out []string
	for _, s := range w.sites {
		out = append(out, s.originURL()+"/")
	}
	return out
}

// Close ends all servers and waits for them.
func (w *Web) Close() error {
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Close())
	}
	w.done.Wait()
	return errors.Join(errs...)
}

// allAttacks lists all attacks; a new one is an entry of one of these files.
func allAttacks() []attack {
	var all []attack
	for _, part := range [][]attack{linkAttacks(), redirectAttacks(), answerAttacks(), fileAttacks(), aimedAttacks()} {
		all = append(all, part...)
	}
	return all
}
