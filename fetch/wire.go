package fetch

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/freshet/freshet/weburl"
)

// wire sends plain HTTP/1.1 requests. A http.Transport has two goroutines for each
// connection, which hand each request and each answer on; here who asks also
// writes and reads, which takes half the time. What needs more (TLS, HTTP/2,
// a proxy, dialling of others) is left to the Transport.
type wire struct {
	dial     func(ctx context.Context, network, address string, permitted bool) (net.Conn, error)
	most     int // idle connections in all
	agent    string
	timeout  time.Duration
	patience time.Duration
	minRate  int

	mu     sync.Mutex
	idle   map[peer]*line // the one used last first
	kept   int
	sweep  *time.Timer // runs while there are idle ones
	closed bool
}

// peer is what a connection is kept for: a host and port, and requests with or
// without permission for private addresses.
type peer struct {
	address   string
	permitted bool
}

// Bounds of connections and headers.
const (
	idlePerHost = 64 // the most connections that a source may permit
	idleTime    = 60 * time.Second
	maxHeader   = 256 << 10
	readBuffer  = 16 << 10
)

// takes reports whether a request can go by wire: one whose target a header
// holds as it is.
func (w *wire) takes(u weburl.URL) bool {
	if w == nil || u.Scheme() != "http" {
		return false
	}
	for _, c := range []byte(u.String()) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// get sends a request and reads the header of the answer to out. The caller reads
// the body and gives the connection to release.
func (w *wire) get(ctx context.Context, r *Request, start time.Time, out *Response) (*line, error) {
	for _, v := range [...]string{w.agent, r.Accept, r.ETag, r.LastModified} {
		if strings.ContainsAny(v, "\r\n\x00") {
			return nil, errors.New("a line end in a field of the request")
		}
	}
	to := peer{r.URL.Host(), r.Private}
	if host := r.URL.Hostname(); host == to.address || "["+host+"]" == to.address {
		to.address = net.JoinHostPort(host, "80")
	}
	deadline := start.Add(w.timeout)
	for {
		l, err := w.line(ctx, deadline, to)
		if err != nil {
			return nil, err
		}
		used := l.answers > 0
		if err = l.begin(ctx, deadline); err == nil {
			l.text = w.compose(l.text[:0], r)
			err = l.ask(l.text, out)
		}
		if err == nil {
			out.Remote = l.remote
			return l, nil
		}
		err = l.cause(err)
		cut := l.end()
		l.close()
		if !used || l.answers < 0 || cut != nil || ctx.Err() != nil {
			return nil, err
		}
		// The server gave the connection up while it was idle: another, in the end a
		// new one.
	}
}

// compose appends a request to b.
func (w *wire) compose(b []byte, r *Request) []byte {
	b = append(append(append(b, "GET "...), r.URL.Target()...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, r.URL.Host()...), "\r\n"...)
	b = appendField(b, "User-Agent: ", w.agent)
	accept := acceptPages
	if r.Accept != "" {
		accept = r.Accept
	}
	b = appendField(b, "Accept: ", accept)
	b = appendField(b, "Accept-Encoding: ", acceptEncoding)
	b = appendField(b, "If-None-Match: ", r.ETag)
	b = appendField(b, "If-Modified-Since: ", r.LastModified)
	return append(b, "\r\n"...)
}

// appendField appends a field that has a value.
func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return append(append(append(b, name...), value...), "\r\n"...)
}

// line returns an idle connection, or a new one. Whether an idle one is still good
// is seen when the request is sent.
func (w *wire) line(ctx context.Context, deadline time.Time, to peer) (*line, error) {
	w.mu.Lock()
	l := w.idle[to]
	if l != nil {
		if w.kept--; l.next == nil {
			delete(w.idle, to)
		} else {
			w.idle[to], l.next = l.next, nil
		}
	}
	w.mu.Unlock()
	if l != nil {
		return l, nil
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn, err := w.dial(ctx, "tcp", to.address, to.permitted)
	if err != nil {
		return nil, err
	}
	l = &line{wire: w, peer: to, conn: conn}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		l.remote = a.IP.String()
	}
	if c, ok := conn.(syscall.Conn); ok {
		if l.raw, err = c.SyscallConn(); err != nil {
			conn.Close()
			return nil, err
		}
		l.step = l.advance
	}
	l.in = bufio.NewReaderSize(l, readBuffer)
	return l, nil
}

// release takes a connection back after a request: it is kept if the answer was
// read to its end.
func (w *wire) release(l *line, now time.Time) {
	b := &l.body
	if l.since = now; l.end() != nil || !b.whole || !b.keep || l.in.Buffered() > 0 || !w.keep(l) {
		l.close()
	}
}

// keep keeps a connection for the next request.
func (w *wire) keep(l *line) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !reusable || l.raw == nil || w.kept >= w.most {
		return false
	}
	others := w.idle[l.peer]
	n := 0
	for o := others; o != nil; o = o.next {
		n++
	}
	if n >= idlePerHost {
		return false
	}
	if w.idle == nil {
		w.idle = map[peer]*line{}
	}
	l.next, w.idle[l.peer] = others, l
	if w.kept++; w.sweep == nil {
		w.sweep = time.AfterFunc(idleTime, w.expire)
	}
	return true
}

// expire closes what was idle for too long, and comes again while anything is.
func (w *wire) expire() { w.shut(time.Now().Add(-idleTime)) }

// close ends idle connections, and keeps none any more.
func (w *wire) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.shut(time.Now().Add(time.Hour))
}

// shut closes the idle connections that were not used since.
func (w *wire) shut(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for to, l := range w.idle {
		var last *line // that stays
		for l != nil && !l.since.Before(since) {
			last, l = l, l.next
		}
		if last == nil {
			delete(w.idle, to)
		} else {
			last.next = nil
		}
		for ; l != nil; l = l.next {
			l.close()
			w.kept--
		}
	}
	if w.sweep != nil {
		w.sweep.Stop()
		w.sweep = nil
	}
	if w.kept > 0 {
		w.sweep = time.AfterFunc(idleTime/4, w.expire)
	}
}
