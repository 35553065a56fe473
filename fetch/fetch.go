// Package fetch gets one URL by HTTP: bounded in time, header, body and
// decompression, conditional where the last answer is known, and careful about
// where it connects. It knows nothing of politeness; its caller decides when.
//
// Redirects are answers, not followed: the robot treats them as records with a
// link. Addresses that are not public (loopback, private, link-local) are
// refused at the moment of dialling, after name resolution, so that a name that
// resolves to them (DNS rebinding) is refused as well.
package fetch

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/freshet/freshet/weburl"
)

// Config are the options of a Client. The zero value is usable.
type Config struct {
	UserAgent    string
	Timeout      time.Duration // of a whole request; default 30 s
	MaxBody      int64         // after decompression; default 16 MiB
	MinRate      int           // bytes a second below which a body is given up; default 64
	Patience     time.Duration // how long a body may stay below MinRate; default 10 s
	AllowPrivate bool          // loopback and private addresses may be dialled
	Resolver     string        // DNS server address:port; "" is the system's
	Proxy        string        // forward proxy URL; "" is none
	Insecure     bool          // accept certificates that do not verify (tests)
	Connections  int           // idle connections kept in all; default 512
	// Dial replaces dialling and with it the check of addresses.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client fetches. It is safe for concurrent use.
type Client struct {
	config Config
	http   *http.Transport
	wire   *wire // nil if all requests go by http
	dialer *dialer
}

// Request is what to get.
type Request struct {
	URL          weburl.URL
	ETag         string // of the last answer, for If-None-Match
	LastModified string // of the last answer, for If-Modified-Since
	Accept       string // default: HTML first
	Head         bool   // only the header is asked for
	// Room is where the body is read to, if it is long enough: the caller may use
	// it again when it is done with the answer.
	Room []byte
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
	Remote    string // IP address of the server, "" where it is not known
}

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
	d := newDialer(c)
	t := &http.Transport{
		DialContext:            d.dial,
		DisableCompression:     true, // decoded here, with bounds
		MaxIdleConns:           c.Connections,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
		TLSHandshakeTimeout:    15 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: c.Insecure}, //nolint:gosec // only where a test asks for it
		ReadBufferSize:         readBuffer,
	}
	if c.Dial != nil {
		t.DialContext = c.Dial
	}
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("proxy %q is no URL such as http://127.0.0.1:3128", c.Proxy)
		}
		t.Proxy = http.ProxyURL(u)
	}
	client := &Client{config: c, http: t, dialer: d}
	if c.Proxy == "" && c.Dial == nil {
		client.wire = &wire{dial: d.dial, most: c.Connections}
	}
	return client, nil
}

// Close ends idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	if c.wire != nil {
		c.wire.close()
	}
}

const acceptPages = "text/html,application/xhtml+xml;q=0.9,application/xml;q=0.8,text/plain;q=0.7,*/*;q=0.5"

// Get sends one request and reads the answer. Any status is an answer; the
// error is an *Error for a request that got none.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	h := make(http.Header, 5)
	h.Set("User-Agent", c.config.UserAgent)
	h.Set("Accept-Encoding", "gzip, br, zstd")
	if h.Set("Accept", acceptPages); r.Accept != "" {
		h.Set("Accept", r.Accept)
	}
	if r.ETag != "" {
		h.Set("If-None-Match", r.ETag)
	}
	if r.LastModified != "" {
		h.Set("If-Modified-Since", r.LastModified)
	}
	start := time.Now()
	res, remote, err := c.send(ctx, r, h)
	if err != nil {
		return nil, &Error{URL: r.URL.String(), Kind: classify(ctx, err), Err: err}
	}
	defer res.Body.Close()
	out := &Response{Status: res.StatusCode, Proto: res.Proto, Header: res.Header, Remote: remote, First: time.Since(start), Head: r.Head}
	if r.Head {
		out.Elapsed = out.First
		return out, nil
	}
	out.Body = r.Room[:0]
	if err := c.body(ctx, cancel, res, out); err != nil {
		return nil, &Error{URL: r.URL.String(), Kind: classify(ctx, err), Err: err}
	}
	out.Elapsed = time.Since(start)
	return out, nil
}

// send sends a request and reads the header of the answer. remote is the
// address, where it is known.
func (c *Client) send(ctx context.Context, r Request, h http.Header) (res *http.Response, remote string, err error) {
	method := http.MethodGet
	switch {
	case r.Head:
		method = http.MethodHead
	case c.wire.takes(r.URL):
		return c.wire.get(ctx, r.URL, h)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL.String(), nil)
	if err != nil {
		return nil, "", err
	}
	req.Header = h
	res, err = c.http.RoundTrip(req)
	return res, "", err
}

// body reads and decodes the body within the bounds.
func (c *Client) body(ctx context.Context, cancel context.CancelFunc, res *http.Response, out *Response) error {
	if res.StatusCode == http.StatusNotModified {
		return nil
	}
	counted := &counter{r: res.Body}
	stop := c.watch(ctx, cancel, counted)
	defer stop()
	r, err := decoder(res.Header.Get("Content-Encoding"), counted)
	if err != nil {
		return fmt.Errorf("%w: %w", errEncoding, err)
	}
	limited := io.LimitReader(r, c.config.MaxBody+1)
	if n := res.ContentLength; n > 0 && n >= int64(cap(out.Body)) && n <= c.config.MaxBody && res.Header.Get("Content-Encoding") == "" {
		out.Body = make([]byte, 0, n+1) // one more, so that the end is seen without growing
	}
	out.Body, err = readAll(limited, out.Body)
	out.Wire = counted.n.Load()
	if counted.slow.Load() {
		return errSlow
	}
	if int64(len(out.Body)) > c.config.MaxBody {
		out.Body, out.Truncated = out.Body[:c.config.MaxBody], true
		if out.Wire > 0 && c.config.MaxBody/out.Wire > 100 {
			return errBomb
		}
		return nil
	}
	if err != nil && errors.Is(err, io.ErrUnexpectedEOF) && len(out.Body) > 0 && res.Header.Get("Content-Encoding") == "" {
		return fmt.Errorf("body cut off after %d bytes: %w", len(out.Body), err)
	}
	return err
}

// readAll is io.ReadAll into a buffer that may already have room.
func readAll(r io.Reader, b []byte) ([]byte, error) {
	if cap(b) == 0 {
		b = make([]byte, 0, 16<<10)
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return b, err
		}
	}
}

// decoder undoes a Content-Encoding. Servers that call identity by some other
// name get what they send.
func decoder(encoding string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return r, nil
}
