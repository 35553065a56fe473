// Package fetch gets one URL by HTTP: bounded in time, header, body and
// decompression, conditional where the last answer is known, and careful about
// where it connects. It knows nothing of politeness; its caller decides when.
//
// Redirects are answers, not followed: the robot treats them as records with a
// link. Addresses that are not public (loopback, private, link-local) are
// refused at the moment of dialling, after name resolution, so that a name that
// resolves to them (DNS rebinding) is refused as well. Permission to reach them is
// carried by each request, never by the process: connections made under a permission
// are kept apart from the others and serve only requests that carry it, too.
//
// All requests go over net/http. A connection is kept for one host name and port. Bytes
// that arrive on it while no request is under way close it. HTTP/1.1 cannot tell an
// answer from bytes sent unasked after the next request: a server can substitute one of
// its own pages for another, but never a page of another host.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/freshet/freshet/weburl"
)

// Config are the options of a Client. The zero value is usable.
type Config struct {
	UserAgent string
	Timeout   time.Duration // of a whole request; default 30 s
	MaxBody   int64         // after decompression; default 16 MiB
	MinRate   int           // bytes a second below which a body is given up; default 64
	Patience  time.Duration // how long a body may stay below MinRate; default 10 s
	// Permit says for which hosts and ports Dial may use private addresses; nil is
	// none. Get does not ask it: a Request carries its permission.
	Permit func(host, port string) bool
	// AllowPrivate permits all requests private addresses, whatever they carry: for
	// tests and measurements on this machine.
	AllowPrivate bool
	Resolver     string // DNS server address:port; "" is the system's
	// Proxy chooses the forward proxy of a request; nil is none. Permission to reach a
	// target is checked before the request is handed to the proxy.
	Proxy    ProxyFunc
	Insecure bool           // accept certificates that do not verify (tests)
	RootCAs  *x509.CertPool // authorities that certificates are verified by; nil is the system's
	// Identities returns what requests to an origin say of the robot, nil for Config's.
	Identities  func(origin string) *Identity
	Connections int // idle connections kept in all; default 512
	// Dial replaces dialling and with it the check of addresses.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client fetches. It is safe for concurrent use.
type Client struct {
	config  Config
	public  *http.Transport
	private *http.Transport // of requests with permission for private addresses
	dialer  *dialer
	proxied *http.Transport // of requests that go through a proxy
}

// Request is what to get.
type Request struct {
	URL          weburl.URL
	ETag         string // of the last answer, for If-None-Match
	LastModified string // of the last answer, for If-Modified-Since
	Accept       string // default: HTML first
	Head         bool   // only the header is asked for
	// Private permits private addresses of the URL's host: it is covered by a source
	// that may reach them.
	Private bool
	MaxBody int64 // after decompression; 0 is Config.MaxBody
	// Room, if not nil, is an earlier answer that nobody needs any more: Get fills it
	// in and returns it, with the body in the memory of the earlier one.
	Room *Response
}

// Response is an answer whose body was read to its end or to a bound.
type Response struct {
	Status    int
	Proto     string
	Header    http.Header
	Body      []byte        // decompressed; empty for 304
	Wire      int64         // bytes of the body as transferred
	Truncated bool          // the body is longer than MaxBody
	Head      bool          // only the header was asked for
	First     time.Duration // until the header was read
	Elapsed   time.Duration
	Remote    string // IP address of the server; "" behind a proxy
}

// reset empties an answer and keeps the memory of its body. A nil answer is a new one.
func (r *Response) reset() *Response {
	if r == nil {
		return &Response{}
	}
	*r = Response{Body: r.Body[:0]}
	return r
}

// Bounds of connections and headers.
const (
	idlePerHost = 64 // the largest number of connections that a source may permit
	idleTime    = 60 * time.Second
	maxHeader   = 256 << 10
	readBuffer  = 16 << 10
)

// Location returns the target of a redirect.
func (r *Response) Location(from weburl.URL) (weburl.URL, bool) {
	if r.Status < 300 || r.Status > 308 || r.Status == 304 {
		return weburl.URL{}, false
	}
	u, err := from.Resolve(r.Header.Get("Location"))
	return u, err == nil && r.Header.Get("Location") != ""
}

// New returns a client.
func New(c Config) (*Client, error) {
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.MaxBody <= 0 {
		c.MaxBody = 16 << 20
	}
	if c.MinRate <= 0 {
		c.MinRate = 64
	}
	if c.Patience <= 0 {
		c.Patience = 10 * time.Second
	}
	if c.Connections <= 0 {
		c.Connections = 512
	}
	client := &Client{config: c, dialer: newDialer(c)}
	client.public, client.private = client.transport(false), client.transport(true)
	client.proxied = client.proxyTransport()
	return client, nil
}

// transport returns the transport of requests with or without permission for private
// addresses. Each has connections of its own.
func (c *Client) transport(permitted bool) *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.dialer.dial(ctx, network, address, permitted)
		},
		DisableCompression:     true, // decoded here, with bounds
		MaxIdleConns:           c.config.Connections,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
		TLSHandshakeTimeout:    15 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: c.config.Insecure, RootCAs: c.config.RootCAs}, //nolint:gosec // only where a test asks for it
		ReadBufferSize:         readBuffer,
	}
	if c.config.Dial != nil {
		t.DialContext = c.config.Dial
	}
	return t
}

// Close ends idle connections.
func (c *Client) Close() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
	c.proxied.CloseIdleConnections()
}

const acceptPages = "text/html,application/xhtml+xml;q=0.9,application/xml;q=0.8,text/plain;q=0.7,*/*;q=0.5"

const acceptEncoding = "gzip, br, zstd"

// Get sends one request and reads the answer. Any status from 200 on is an answer; the
// error is an *Error for a request that got none.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	out := r.Room.reset()
	out.Head = r.Head
	r.Private = r.Private || c.config.AllowPrivate
	if r.MaxBody <= 0 {
		r.MaxBody = c.config.MaxBody
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	if err := c.exchange(ctx, cancel, &r, out); err != nil {
		return nil, &Error{URL: r.URL.String(), Kind: classify(ctx, err), Err: err}
	}
	return out, nil
}

// exchange sends the request and reads the answer to out. cancel ends ctx.
func (c *Client) exchange(ctx context.Context, cancel context.CancelFunc, r *Request, out *Response) error {
	transport := c.public
	if r.Private {
		transport = c.private
	}
	proxy, err := c.ProxyOf(&url.URL{Scheme: r.URL.Scheme(), Host: r.URL.Host()})
	if err != nil {
		return err
	}
	if proxy != nil {
		transport = c.proxied
		if err := checkWritten(address(r.URL), r.Private); err != nil {
			return err
		}
	} else {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if a, ok := i.Conn.RemoteAddr().(*net.TCPAddr); ok {
				out.Remote = a.IP.String()
			}
		}})
	}
	start := time.Now()
	res, err := transport.RoundTrip(c.newRequest(r, proxy != nil).WithContext(ctx))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode < 200 {
		return fmt.Errorf("the server switches protocols unasked (status %d)", res.StatusCode)
	}
	out.Status, out.Proto, out.Header, out.First = res.StatusCode, res.Proto, res.Header, time.Since(start)
	if r.Head {
		out.Elapsed = out.First
		return nil
	}
	counted := &counter{r: res.Body}
	stop := c.watch(ctx, cancel, counted)
	defer stop()
	err = c.body(counted, res.ContentLength, r.MaxBody, out)
	out.Elapsed = time.Since(start)
	return err
}

// newRequest returns what net/http sends for r, to a proxy or to the host itself.
func (c *Client) newRequest(r *Request, proxied bool) *http.Request {
	h := make(http.Header, 5)
	h.Set("User-Agent", c.config.UserAgent)
	h.Set("Accept-Encoding", acceptEncoding)
	if h.Set("Accept", acceptPages); r.Accept != "" {
		h.Set("Accept", r.Accept)
	}
	// Both are the server's own text, and net/http sends no request whose header holds
	// control characters.
	if r.ETag != "" && httpguts.ValidHeaderFieldValue(r.ETag) {
		h.Set("If-None-Match", r.ETag)
	}
	if r.LastModified != "" && httpguts.ValidHeaderFieldValue(r.LastModified) {
		h.Set("If-Modified-Since", r.LastModified)
	}
	c.identityOf(r.URL).apply(h)
	method := http.MethodGet
	if r.Head {
		method = http.MethodHead
	}
	return &http.Request{Method: method, URL: target(r.URL, proxied), Host: r.URL.Host(), Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// address returns the host and port that a URL is asked at.
func address(u weburl.URL) string {
	host := u.Host()
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := "80"
	if u.Scheme() == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// target is an address for net/http, whose own parser knows RFC 3986 only: what it
// refuses ("/100%") or would write otherwise ("/a|b") goes as it is.
func target(u weburl.URL, proxied bool) *url.URL {
	if parsed, err := url.Parse(u.String()); err == nil && parsed.RequestURI() == u.Target() {
		return parsed
	}
	out := &url.URL{Scheme: u.Scheme(), Host: u.Host(), Opaque: u.Target()}
	if proxied || strings.HasPrefix(out.Opaque, "//") { // the absolute form
		out.Opaque = "//" + u.Host() + out.Opaque
	}
	return out
}

// body reads and decodes the body within the bounds. length is that of the body as
// it is transferred, negative where it is not known.
func (c *Client) body(b *counter, length, maxBody int64, out *Response) error {
	if out.Status == http.StatusNotModified {
		return nil
	}
	encoding := out.Header.Get("Content-Encoding")
	in := packed{counter: b}
	r, err := decoder(encoding, &in)
	if err == nil {
		if length > 0 && length >= int64(cap(out.Body)) && length <= maxBody && encoding == "" {
			out.Body = make([]byte, 0, length+1) // one more, so that the end is seen without growing
		}
		out.Body, err = readAll(r, out.Body, maxBody+1)
	}
	out.Wire = b.n.Load()
	if int64(len(out.Body)) > maxBody {
		out.Body, out.Truncated = out.Body[:maxBody], true
		if out.Wire > 0 && maxBody/out.Wire > 100 {
			return errBomb
		}
		return nil
	}
	return in.outcome(out.Body, err)
}

// readAll is io.ReadAll of at most so many bytes into a buffer that may already
// have room.
func readAll(r io.Reader, b []byte, most int64) ([]byte, error) {
	if cap(b) == 0 {
		b = make([]byte, 0, 16<<10)
	}
	for int64(len(b)) < most {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return b, err
		}
	}
	return b, nil
}
