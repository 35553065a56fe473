package render

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/fetch"
)

// guard is the proxy through which all traffic of the browser goes. It is the last
// line: it forwards for a tab that shows its credentials, while a page is being
// rendered there, and only what the page's visit has permitted before (visit.judge).
// Whatever else the browser wants to send, by a worker, a window, a WebSocket, a
// prefetch, or after the page is done, ends here.
//
// Each connection is made by the robot's own dialler: it resolves the name once,
// looks at the address and connects to that address. A name that is public when it
// is looked at and private a moment later (DNS rebinding) gains nothing.
type guard struct {
	client *fetch.Client
	http   *http.Transport
	// private has the connections to hosts whose private addresses a source permits: they
	// serve no request once it does not.
	private *http.Transport
	// proxied has the connections to the robot's own forward proxies.
	proxied  *http.Transport
	server   *http.Server
	listener net.Listener
	tunnels  sync.WaitGroup
	ctx      context.Context // ends with the guard
	stop     context.CancelFunc

	mu   sync.Mutex
	tabs map[string]*tabTraffic // by name

	refused atomic.Int64 // connections to private addresses
	blocked atomic.Int64 // requests that no visit had permitted
}

// tabTraffic is what one tab sends and receives through the guard.
type tabTraffic struct {
	name, password string

	mu    sync.Mutex
	visit *visit // nil between pages
}

func (t *tabTraffic) currentVisit() *visit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.visit
}

func (t *tabTraffic) setVisit(v *visit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visit = v
}

// newGuard listens on address for a browser.
func newGuard(client *fetch.Client, address string) (*guard, error) {
	g := &guard{client: client, tabs: map[string]*tabTraffic{}}
	g.ctx, g.stop = context.WithCancel(context.Background())
	transport := func() *http.Transport {
		return &http.Transport{
			DialContext: g.dialGuarded, DisableCompression: true, MaxIdleConns: 128, MaxIdleConnsPerHost: 6, MaxConnsPerHost: 6, IdleConnTimeout: 30 * time.Second,
			ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 256 << 10,
		}
	}
	g.http, g.private, g.proxied = transport(), transport(), transport()
	g.proxied.DialContext = (&net.Dialer{Timeout: proxyDialTime}).DialContext
	g.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return client.ProxyOf(r.URL) }
	var err error
	if g.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("render: listen for the browser: %w", err)
	}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 256 << 10}
	g.tunnels.Go(func() { _ = g.server.Serve(g.listener) }) // ends with close
	return g, nil
}

// proxyAddress is what the browser takes as its proxy.
func (g *guard) proxyAddress() string { return g.listener.Addr().String() }

func (g *guard) closeGuard() {
	g.stop()
	_ = g.server.Close()
	g.tunnels.Wait()
	g.http.CloseIdleConnections()
	g.private.CloseIdleConnections()
	g.proxied.CloseIdleConnections()
}

// registerTab makes credentials for a tab.
func (g *guard) registerTab() *tabTraffic {
	t := &tabTraffic{name: rand.Text(), password: rand.Text()}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tabs[t.name] = t
	return t
}

// unregisterTab lets a tab's credentials be valid no more.
func (g *guard) unregisterTab(t *tabTraffic) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tabs, t.name)
}

// tabOf returns the tab whose credentials a request shows, or nil.
func (g *guard) tabOf(r *http.Request) *tabTraffic {
	code, ok := strings.CutPrefix(r.Header.Get("Proxy-Authorization"), "Basic ")
	if !ok {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		return nil
	}
	name, password, _ := strings.Cut(string(b), ":")
	g.mu.Lock()
	t := g.tabs[name]
	g.mu.Unlock()
	if t == nil || subtle.ConstantTimeCompare([]byte(t.password), []byte(password)) != 1 {
		return nil
	}
	return t
}

// proxyDialTime bounds the connection to a forward proxy.
const proxyDialTime = 15 * time.Second

// proxyOf returns the robot's forward proxy for a request, nil for none. Targets that are
// written as private addresses are refused: the proxy would dial them.
func (g *guard) proxyOf(r *http.Request) (*url.URL, error) {
	to, target := &url.URL{Scheme: "https", Host: r.Host}, r.Host
	if r.Method != http.MethodConnect {
		to, target = r.URL, hostPort(r.URL)
	}
	proxy, err := g.client.ProxyOf(to)
	if proxy == nil || err != nil {
		return nil, err
	}
	if err := g.client.CheckTarget(target); err != nil {
		g.refused.Add(1)
		return nil, &refusal{err}
	}
	return proxy, nil
}

// hostPort returns the host and port of a URL of plain HTTP.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func (g *guard) dialGuarded(ctx context.Context, network, address string) (net.Conn, error) {
	c, private, err := g.client.Dial(ctx, network, address)
	if private {
		g.refused.Add(1)
		return nil, &refusal{err}
	}
	return c, err
}

// refusal marks a connection that was refused for its address.
type refusal struct{ error }

// Unwrap returns the dialler's error.
func (r *refusal) Unwrap() error { return r.error }

// ServeHTTP forwards one request.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tab := g.tabOf(r)
	if tab == nil {
		w.Header().Set("Proxy-Authenticate", `Basic realm="freshet"`)
		http.Error(w, "this proxy serves the browser of one process only", http.StatusProxyAuthRequired)
		return
	}
	proxy, err := g.proxyOf(r)
	if err != nil {
		g.failRequest(w, err)
		return
	}
	v := tab.currentVisit()
	if v == nil || !v.isPermitted(r) {
		g.blocked.Add(1)
		http.Error(w, "the page may not ask for this", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	unhook := context.AfterFunc(v.ctx, cancel) // nothing goes on after the page
	defer unhook()
	r = r.WithContext(ctx)
	if r.Method == http.MethodConnect {
		g.serveTunnel(w, r, v, proxy)
		return
	}
	g.forwardHTTP(w, r, v, proxy != nil)
}

// forwardHTTP sends a request of plain HTTP on.
func (g *guard) forwardHTTP(w http.ResponseWriter, r *http.Request, v *visit, proxied bool) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	for _, h := range []string{"Proxy-Connection", "Proxy-Authorization", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade"} {
		out.Header.Del(h)
	}
	if r.ContentLength != 0 {
		out.Body = io.NopCloser(&counted{r.Body, v})
	}
	transport := g.http
	switch {
	case proxied:
		transport = g.proxied
	case g.client.Permits(hostPort(r.URL)):
		transport = g.private
	}
	res, err := transport.RoundTrip(out)
	if err != nil {
		g.failRequest(w, err)
		return
	}
	defer res.Body.Close()
	for k, h := range res.Header {
		w.Header()[k] = h
	}
	for _, h := range []string{"Connection", "Alt-Svc", "Proxy-Authenticate"} {
		w.Header().Del(h)
	}
	w.WriteHeader(res.StatusCode)
	g.copyFlushing(w, &counted{res.Body, v})
}

// counted is a stream whose bytes count for a page; it fails when those are too
// many.
type counted struct {
	io.Reader
	visit *visit
}

var errTooMuch = errors.New("the page has loaded its share")

// Read reads and counts.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 && !c.visit.countTransferred(int64(n)) {
		return 0, errTooMuch
	}
	return n, err
}

// copyFlushing flushes what it copies. A stream that fails must not look whole.
func (g *guard) copyFlushing(w http.ResponseWriter, r io.Reader) {
	buf := make([]byte, 32<<10)
	flusher, _ := w.(http.Flusher)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			if n < len(buf) && flusher != nil {
				flusher.Flush()
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func (g *guard) failRequest(w http.ResponseWriter, err error) {
	var r *refusal
	if errors.As(err, &r) {
		http.Error(w, r.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// serveTunnel serves CONNECT, which is TLS to a host that the visit has permitted. What
// is asked for inside was judged by the visit; here bytes are counted.
func (g *guard) serveTunnel(w http.ResponseWriter, r *http.Request, v *visit, proxy *url.URL) {
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	server, err := g.connectServer(ctx, r.Host, proxy)
	if err != nil {
		g.failRequest(w, err)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		server.Close()
		http.Error(w, "no tunnel over this protocol", http.StatusHTTPVersionNotSupported)
		return
	}
	browser, buf, err := hijacker.Hijack()
	if err != nil {
		server.Close()
		return
	}
	g.tunnels.Add(1)
	defer g.tunnels.Done()
	both := func() { browser.Close(); server.Close() }
	defer both()
	for _, end := range []context.Context{g.ctx, v.ctx} {
		unhook := context.AfterFunc(end, both)
		defer unhook()
	}
	if _, err := io.WriteString(browser, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() { // ends when either side closes
		defer close(done)
		_, err := io.Copy(server, &counted{buf, v})
		if c, ok := server.(interface{ CloseWrite() error }); ok && err == nil {
			_ = c.CloseWrite()
		} else {
			both()
		}
	}()
	_, _ = io.Copy(browser, &counted{server, v})
	both()
	<-done
}

// connectServer reaches a server, directly or through the robot's own proxy.
func (g *guard) connectServer(ctx context.Context, address string, proxy *url.URL) (net.Conn, error) {
	if proxy == nil {
		return g.dialGuarded(ctx, "tcp", address)
	}
	c, err := (&net.Dialer{Timeout: proxyDialTime}).DialContext(ctx, "tcp", hostPort(proxy))
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if password, ok := proxy.User.Password(); ok {
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
	}
	if err := req.Write(c); err != nil {
		c.Close()
		return nil, err
	}
	if err := readConnected(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, c.SetDeadline(time.Time{})
}

// readConnected reads the answer to CONNECT byte by byte: what follows belongs
// to the tunnel.
func readConnected(c net.Conn) error {
	var head []byte
	one := make([]byte, 1)
	for len(head) < 16<<10 {
		if _, err := io.ReadFull(c, one); err != nil {
			return err
		}
		head = append(head, one[0])
		if n := len(head); n >= 4 && string(head[n-4:]) == "\r\n\r\n" {
			if len(head) > 12 && string(head[9:12]) == "200" {
				return nil
			}
			return fmt.Errorf("the proxy answered %.60q", head)
		}
	}
	return errors.New("the proxy's answer has no end")
}
