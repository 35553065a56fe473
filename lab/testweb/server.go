// Package testweb serves synthetic webs to unmodified robots: many hosts with
// names, addresses, pages, links, habits and vices, all computed from a seed,
// over DNS, HTTP and HTTPS, with a log of the truth from which any robot can be
// judged.
//
// The idea and the behaviours are those of the test web of a 2008 thesis, which
// left the network side unfinished. A web is a graph (package webgraph or
// anything with Successors), a layout of its pages on hosts, and a history of
// its changes; Web turns a URL and a time into an answer; Server puts that on
// the network.
package testweb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/content"
	"github.com/freshet/freshet/lab/testweb/dns"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// Config says what is served, and where. Only Graph or Pages must be given.
type Config struct {
	Graph  Graph  // nil: a Tree of Pages pages
	Pages  uint64 // size of the Tree
	Sites  uint64 // number of hosts of the default layout, 0 for one for 64 pages
	Layout Layout // nil: the graph's own if it has one, else Sites

	Names     name.Scheme
	Seed      uint64
	Languages []content.Language // of hosts, drawn evenly; nil: English, English, Russian, Lithuanian
	Sentences int                // mean length of a page, 24 if 0

	Behaviours behaviour.Set
	// History says how pages change; nil: never. Sizes makes their bodies as long
	// as it says, too (a page is never shorter than its links).
	History field.Lookup
	Sizes   bool
	// Paths are the addresses of the first pages, as on the site that a history was
	// read from; where one is empty or no path, the page has the name of a document.
	Paths []string
	// TimeScale is how many seconds of the web pass in one of the clock, 1 if 0.
	TimeScale float64

	// HTTP, HTTPS, DNS and Proxy are addresses to listen on, "127.0.0.1:0" for any
	// free port, "" for none; HTTP is "127.0.0.1:0" if all are empty.
	HTTP, HTTPS, DNS, Proxy string
	// Answer is the address that DNS gives for every host, e.g. 127.0.0.1; the
	// zero Addr: each host's own, which leads to the server inside a namespace of
	// its own.
	Answer netip.Addr

	// Wrap puts something around all that answers, e.g. a model of time or a module
	// in the server; nil: nothing.
	Wrap func(http.Handler) http.Handler

	Truth *truth.Log   // nil: no log
	Log   *slog.Logger // of the server's own troubles; nil: none
}

// Server serves a web. Make it with New, end it with Close.
type Server struct {
	*Web
	cfg     Config
	ca      *authority
	close   []func() error // in reverse order
	tasks   sync.WaitGroup
	ctx     context.Context // ends with the server; its goroutines wait on it
	stop    context.CancelFunc
	log     *slog.Logger
	answers http.Handler

	http, https, proxy    net.Listener // nil where there is none
	dns                   *dns.Server
	tunnelHTTP, tunnelTLS *queue
	coders                coders
}

// NewWeb returns the web of a configuration without serving it.
func NewWeb(cfg Config) (*Web, error) {
	w := &Web{
		graph: cfg.Graph, layout: cfg.Layout, names: cfg.Names, seed: cfg.Seed, words: content.NewWords(),
		languages: cfg.Languages, history: cfg.History, behaviour: cfg.Behaviours, sentences: cfg.Sentences,
		sized: cfg.Sizes, paths: newPaths(cfg.Paths), scale: cfg.TimeScale,
	}
	w.Begin(time.Now())
	if w.scale == 0 {
		w.scale = 1
	}
	if !(w.scale > 0) || math.IsInf(w.scale, 1) {
		return nil, fmt.Errorf("test web: time scale %g: give a positive number", w.scale)
	}
	for _, b := range w.behaviour {
		if r, ok := b.Behaviour.(behaviour.Router); ok {
			w.routers = append(w.routers, r)
		}
	}
	if err := w.names.Check(); err != nil {
		return nil, fmt.Errorf("test web: %w", err)
	}
	nodes := cfg.Pages
	if w.graph != nil {
		nodes = w.graph.Nodes()
	}
	if l, ok := w.graph.(Layout); ok && w.layout == nil {
		w.layout = l
	}
	if w.layout == nil {
		l, err := NewSites(nodes, cfg.Sites, cfg.Seed)
		if err != nil {
			return nil, fmt.Errorf("test web: %w", err)
		}
		w.layout = l
	}
	if w.layout.Hosts() > name.Hosts() {
		return nil, fmt.Errorf("test web: %d hosts, but IPv4 has room for %d", w.layout.Hosts(), name.Hosts())
	}
	if w.graph == nil {
		w.graph = NewTree(nodes, w.layout, cfg.Seed)
	}
	if len(w.languages) == 0 {
		w.languages = []content.Language{content.English, content.English, content.Russian, content.Lithuanian}
	}
	if w.history == nil {
		w.history = field.Still{}
	}
	if w.sentences == 0 {
		w.sentences = 24
	}
	return w, nil
}

// New makes the web of a configuration and serves it until Close.
func New(cfg Config) (*Server, error) {
	web, err := NewWeb(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == "" && cfg.HTTPS == "" && cfg.DNS == "" && cfg.Proxy == "" {
		cfg.HTTP = "127.0.0.1:0"
	}
	s := &Server{Web: web, cfg: cfg, log: cfg.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.answers = http.HandlerFunc(s.handleRequest)
	if cfg.Wrap != nil {
		s.answers = cfg.Wrap(s.answers)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.startListeners(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) startListeners() (err error) {
	if s.ca, err = newAuthority(); err != nil {
		return err
	}
	if s.cfg.HTTP != "" {
		if s.http, err = listenTCP("HTTP", s.cfg.HTTP); err != nil {
			return err
		}
		s.serveHTTPOn(s.httpServer(s.answers), s.http, false)
	}
	if s.cfg.HTTPS != "" {
		if s.https, err = listenTCP("HTTPS", s.cfg.HTTPS); err != nil {
			return err
		}
		s.serveHTTPOn(s.httpServer(s.answers), s.https, true)
	}
	if s.cfg.Proxy != "" {
		if s.proxy, err = listenTCP("proxy", s.cfg.Proxy); err != nil {
			return err
		}
		s.tunnelHTTP, s.tunnelTLS = newQueue(s.proxy.Addr()), newQueue(s.proxy.Addr())
		s.serveHTTPOn(s.httpServer(s.answers), s.tunnelHTTP, false)
		s.serveHTTPOn(s.httpServer(s.answers), s.tunnelTLS, true)
		s.serveHTTPOn(s.httpServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodConnect {
				s.tunnelTo(rw, req)
				return
			}
			s.answers.ServeHTTP(rw, req) // the absolute form of the target names the host
		})), s.proxy, false)
	}
	if s.cfg.DNS != "" {
		if s.dns, err = dns.Listen(s.cfg.DNS, s.dnsZone()); err != nil {
			return &ListenError{"DNS", s.cfg.DNS, err}
		}
		s.close = append(s.close, s.dns.Close)
	}
	return nil
}

// dnsZone returns the web as DNS sees it.
func (s *Server) dnsZone() dns.Zone {
	return dns.Zone{Names: s.names, Hosts: s.layout.Hosts(), Answer: s.cfg.Answer, Fault: s.dnsFault}
}

// dnsFault asks the behaviours what is wrong with a host's name.
func (s *Server) dnsFault(host uint64) dns.Fault {
	q := behaviour.Request{World: s.Web, Seed: s.seed, Host: host, Now: s.Now()}
	for _, b := range s.behaviour {
		if d, ok := b.Behaviour.(behaviour.DNS); ok {
			if f := d.DNS(&q); f != (dns.Fault{}) {
				return f
			}
		}
	}
	return dns.Fault{}
}

// serveHTTPOn runs an HTTP server on a listener until Close.
func (s *Server) serveHTTPOn(h *http.Server, l net.Listener, secure bool) {
	s.close = append(s.close, h.Close)
	s.tasks.Go(func() {
		var err error
		if secure {
			h.TLSConfig = s.tlsConfig()
			err = h.ServeTLS(l, "", "")
		} else {
			err = h.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("test web", "serve", l.Addr().String(), "err", err)
		}
	})
}

// HTTPAddr returns the address of the HTTP listener, "" if there is none.
func (s *Server) HTTPAddr() string { return listenerAddr(s.http) }

// HTTPSAddr returns the address of the HTTPS listener, "" if there is none.
func (s *Server) HTTPSAddr() string { return listenerAddr(s.https) }

// ProxyAddr returns the address of the forward proxy, "" if there is none.
func (s *Server) ProxyAddr() string { return listenerAddr(s.proxy) }

// DNSAddr returns the address of the DNS server, "" if there is none.
func (s *Server) DNSAddr() string {
	if s.dns == nil {
		return ""
	}
	return s.dns.Addr()
}

func listenerAddr(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// CertificateAuthority returns the certificate, in PEM, that signs those of all
// hosts.
func (s *Server) CertificateAuthority() []byte { return s.ca.PEM() }

// Close ends the server and waits for its goroutines. The truth log stays the
// caller's to close.
func (s *Server) Close() error {
	s.stop()
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	s.tasks.Wait()
	return errors.Join(errs...)
}

// Now returns the time of the web, in seconds since it began.
func (s *Server) Now() float64 { return s.Time(time.Now()) }

// DialContext connects a robot under test to the server: as the dialer of an
// http.Transport it stands for DNS and routing. Port 443 leads to HTTPS, others
// to HTTP; a name that the web does not have fails as in DNS.
func (s *Server) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	if _, known := s.hostNamed(host); !known {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	to := s.HTTPAddr()
	if port == "443" {
		to = s.HTTPSAddr()
	}
	if to == "" {
		// As at a host where nobody listens.
		return nil, fmt.Errorf("dial %s: the test web does not listen for port %s: %w", addr, port, syscall.ECONNREFUSED)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to)
}

// hostNamed returns the host of a DNS name or an address in text.
func (s *Server) hostNamed(host string) (uint64, bool) {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return s.hostAt(ip)
	}
	return s.Host(host)
}

// hostAt returns the host with an address.
func (s *Server) hostAt(ip netip.Addr) (host uint64, ok bool) {
	h, ok := name.Host(ip)
	return h, ok && h < s.layout.Hosts()
}
