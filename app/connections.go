package app

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/internal/ratelimit"
)

// Bounds of the console's connections. A client that reaches its own bound is
// refused at once, so that one client cannot take the places of all.
const (
	maxConnections       = 1024
	maxClientConnections = 128
)

// timeouts are the deadlines of a server. Event streams and media set their own.
type timeouts struct {
	header  time.Duration // of a request
	request time.Duration // header and body
	answer  time.Duration
	idle    time.Duration // between two requests of a connection
}

var consoleTimeouts = timeouts{header: 10 * time.Second, request: 30 * time.Second, answer: 2 * time.Minute, idle: 2 * time.Minute}

// consoleServer returns a server that waits for no client longer than t says.
func consoleServer(h http.Handler, t timeouts) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: t.header, ReadTimeout: t.request, WriteTimeout: t.answer, IdleTimeout: t.idle, MaxHeaderBytes: 64 << 10}
}

// isProxy reports whether an address is one of console.trusted_proxies.
func (n *Node) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(n.proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// connLimiter is a listener that bounds connections: in all, by waiting, and for
// each client, by closing. Clients that exempt names, such as trusted proxies,
// have no bound of their own.
type connLimiter struct {
	net.Listener
	perClient int
	exempt    func(netip.Addr) bool
	places    chan struct{}
	closed    chan struct{}
	closing   sync.Once

	mu      sync.Mutex
	clients map[string]int // connections by ratelimit.ClientKey
}

func newConnLimiter(l net.Listener, total, perClient int, exempt func(netip.Addr) bool) *connLimiter {
	return &connLimiter{Listener: l, perClient: perClient, exempt: exempt, places: make(chan struct{}, total), closed: make(chan struct{}), clients: map[string]int{}}
}

// Accept implements net.Listener.
func (l *connLimiter) Accept() (net.Conn, error) {
	for {
		select {
		case l.places <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.places
			return nil, err
		}
		key, ok := l.admit(c.RemoteAddr())
		if !ok {
			_ = c.Close()
			<-l.places
			continue
		}
		return &limitedConn{Conn: c, release: sync.OnceFunc(func() { l.release(key) })}, nil
	}
}

// admit counts a connection of a client, unless the client has too many. The key
// is "" for a client without a bound.
func (l *connLimiter) admit(remote net.Addr) (key string, ok bool) {
	ap, err := netip.ParseAddrPort(remote.String())
	if err != nil || l.exempt(ap.Addr().Unmap()) {
		return "", true
	}
	key = ratelimit.ClientKey(ap.Addr())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clients[key] >= l.perClient {
		return "", false
	}
	l.clients[key]++
	return key, true
}

func (l *connLimiter) release(key string) {
	if key != "" {
		l.mu.Lock()
		if l.clients[key]--; l.clients[key] <= 0 {
			delete(l.clients, key)
		}
		l.mu.Unlock()
	}
	<-l.places
}

// Close implements net.Listener.
func (l *connLimiter) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}
