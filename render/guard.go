package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/fetch"
)

// guard is the proxy through which all traffic of the browser goes, so that
// each connection, of whatever request, redirect or script, is made by the
// robot's own dialler: it resolves the name once, looks at the address and
// connects to that address. A name that is public when it is looked at and
// private a moment later (DNS rebinding) gains nothing.
type guard struct {
	client   *fetch.Client
	upstream *url.URL // forward proxy of the robot, nil for none
	peer     net.IP   // the only address that may use the guard
	http     *http.Transport
	server   *http.Server
	listener net.Listener
	tunnels  sync.WaitGroup
	ctx      context.Context // ends with the guard
	stop     context.CancelFunc

	refused atomic.Int64 // connections to private addresses
	bytes   atomic.Int64 // sent to the browser
}

// newGuard listens on address for a browser at peer.
func newGuard(client *fetch.Client, upstream, address string, peer net.IP) (*guard, error) {
	g := &guard{client: client, peer: peer}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.http = &http.Transport{
		DialContext: g.dial, DisableCompression: true, MaxIdleConns: 128, MaxIdleConnsPerHost: 6, IdleConnTimeout: 30 * time.Second,
		ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 256 << 10,
	}
	if upstream != "" {
		u, err := url.Parse(upstream)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("render: proxy %q is no URL such as http://127.0.0.1:3128", upstream)
		}
		g.upstream, g.http.Proxy = u, http.ProxyURL(u)
	}
	var err error
	if g.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("render: listen for the browser: %w", err)
	}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 256 << 10}
	g.tunnels.Go(func() { _ = g.server.Serve(g.listener) }) // ends with close
	return g, nil
}

// address is what the browser takes as its proxy.
func (g *guard) address() string { return g.listener.Addr().String() }

func (g *guard) close() {
	g.stop()
	_ = g.server.Close()
	g.tunnels.Wait()
	g.http.CloseIdleConnections()
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err != nil || !net.ParseIP(host).Equal(g.peer) {
		http.Error(w, "this proxy serves one browser only", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		g.tunnel(w, r)
		return
	}
	if r.URL.Scheme != "http" || r.URL.Host == "" {
		http.Error(w, "not a proxy request", http.StatusBadRequest)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI = ""
	for _, h := range []string{"Proxy-Connection", "Proxy-Authorization", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade"} {
		out.Header.Del(h)
	}
	res, err := g.http.RoundTrip(out)
	if err != nil {
		g.fail(w, err)
		return
	}
	defer res.Body.Close()
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.Header().Del("Connection")
	w.WriteHeader(res.StatusCode)
	g.copy(w, res.Body)
}

// copy flushes what it copies: events of a stream must not wait for more.
func (g *guard) copy(w http.ResponseWriter, r io.Reader) {
	buf := make([]byte, 32<<10)
	flusher, _ := w.(http.Flusher)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			g.bytes.Add(int64(n))
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			if n < len(buf) && flusher != nil {
				flusher.Flush()
			}
		}
		if err != nil {
			return
		}
	}
}

func (g *guard) fail(w http.ResponseWriter, err error) {
	var r *refusal
	if errors.As(err, &r) {
		http.Error(w, r.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// tunnel serves CONNECT: TLS and WebSockets.
func (g *guard) tunnel(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	server, err := g.connect(ctx, r.Host)
	if err != nil {
		g.fail(w, err)
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
	unhook := context.AfterFunc(g.ctx, both)
	defer unhook()
	if _, err := io.WriteString(browser, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() { // ends when either side closes
		defer close(done)
		_, _ = io.Copy(server, buf)
		if c, ok := server.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
	}()
	n, _ := io.Copy(browser, server)
	g.bytes.Add(n)
	both()
	<-done
}

// connect reaches a server, directly or through the robot's own proxy.
func (g *guard) connect(ctx context.Context, address string) (net.Conn, error) {
	if g.upstream == nil {
		return g.dial(ctx, "tcp", address)
	}
	c, err := (&net.Dialer{Timeout: 15 * time.Second}).DialContext(ctx, "tcp", g.upstream.Host)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
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
