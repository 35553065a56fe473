package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/freshet/freshet/weburl"
)

// wire sends plain HTTP/1.1 requests, the answers read by net/http's parser. A
// http.Transport has two goroutines for each connection, which hand each request
// and each answer on; here who asks also writes and reads, which takes half the
// time. What needs more (TLS, HTTP/2, a proxy, dialling of others) is left to
// the Transport.
type wire struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	most int // idle connections in all

	mu     sync.Mutex
	idle   map[string][]*line // by address, the one used last at the end
	kept   int
	sweep  *time.Timer // runs while there are idle ones
	closed bool
}

// Bounds of connections and headers.
const (
	idlePerHost = 4
	idleTime    = 60 * time.Second
	maxHeader   = 256 << 10
	readBuffer  = 16 << 10
)

// line is one connection; one request at a time has it.
type line struct {
	wire    *wire
	address string
	remote  string
	conn    net.Conn
	raw     syscall.RawConn
	in      *bufio.Reader
	room    int64 // bytes that may be read before the header is too long; -1 is no limit
	answers int   // read on it
	since   time.Time

	ctx  context.Context // of the request
	stop func() bool     // ends the watch of ctx
}

var errHeader = errors.New("the header is too long")

// Read implements io.Reader for in.
func (l *line) Read(p []byte) (int, error) {
	if l.room == 0 {
		return 0, errHeader
	}
	if l.room > 0 && int64(len(p)) > l.room {
		p = p[:l.room]
	}
	n, err := l.conn.Read(p)
	if l.room > 0 {
		l.room -= int64(n)
	}
	return n, err
}

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

// get sends a request, with the fields of h that Get sets, and returns the answer
// when its header was read. The caller closes the body.
func (w *wire) get(ctx context.Context, u weburl.URL, h http.Header) (res *http.Response, remote string, err error) {
	var b strings.Builder
	b.Grow(512)
	b.WriteString("GET " + u.Target() + " HTTP/1.1\r\nHost: " + u.Host() + "\r\n")
	for _, k := range [...]string{"User-Agent", "Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since"} {
		for _, v := range h[k] {
			if strings.ContainsAny(v, "\r\n\x00") {
				return nil, "", fmt.Errorf("invalid header %s", k)
			}
			b.WriteString(k + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	address := u.Host()
	if host := u.Hostname(); host == address || "["+host+"]" == address {
		address = net.JoinHostPort(host, "80")
	}
	for {
		l, err := w.line(ctx, address)
		if err != nil {
			return nil, "", err
		}
		used := l.answers > 0
		res, err := l.ask(ctx, b.String())
		if err == nil {
			return res, l.remote, nil
		}
		l.conn.Close()
		if !used || l.answers < 0 || ctx.Err() != nil {
			return nil, "", err
		}
		// The server gave the connection up while it was idle: another, in the end a
		// new one.
	}
}

// line returns an idle connection that is still good, or a new one.
func (w *wire) line(ctx context.Context, address string) (*line, error) {
	for {
		w.mu.Lock()
		lines := w.idle[address]
		if len(lines) == 0 {
			w.mu.Unlock()
			break
		}
		l := lines[len(lines)-1]
		if w.idle[address] = lines[:len(lines)-1]; len(lines) == 1 {
			delete(w.idle, address)
		}
		w.kept--
		w.mu.Unlock()
		if quiet(l) {
			return l, nil
		}
		l.conn.Close()
	}
	conn, err := w.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &line{wire: w, address: address, conn: conn}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		l.remote = a.IP.String()
	}
	if c, ok := conn.(syscall.Conn); ok {
		if l.raw, err = c.SyscallConn(); err != nil {
			conn.Close()
			return nil, err
		}
	}
	l.in = bufio.NewReaderSize(l, readBuffer)
	return l, nil
}

// longPast is a deadline that ends what waits.
var longPast = time.Unix(1, 0)

// ask sends a request and reads the header of its answer. After an error
// answers is negative if the server had begun to answer.
func (l *line) ask(ctx context.Context, request string) (*http.Response, error) {
	l.ctx, l.room = ctx, maxHeader
	l.stop = context.AfterFunc(ctx, func() { _ = l.conn.SetDeadline(longPast) })
	res, err := l.answer(request)
	if err != nil {
		l.stop()
		return nil, l.cause(err)
	}
	l.room = -1
	body := &lineBody{body: res.Body, line: l, keep: !res.Close}
	res.Body = body
	if body.body == http.NoBody {
		body.end(body.keep)
	}
	return res, nil
}

func (l *line) answer(request string) (*http.Response, error) {
	if _, err := io.WriteString(l.conn, request); err != nil {
		return nil, err
	}
	if _, err := l.in.Peek(1); err != nil {
		return nil, err
	}
	reused := l.answers
	l.answers = -1
	for range 6 { // five answers of 1xx are enough
		res, err := http.ReadResponse(l.in, nil)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 200 {
			l.answers = reused + 1
			return res, nil
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("the server switches protocols unasked")
		}
	}
	return nil, errors.New("too many informational answers")
}

// cause is why reading ended: that of the context, if it cut the line.
func (l *line) cause(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	if l.room == 0 { // whatever the parser says of what was cut off
		return errHeader
	}
	return err
}

// lineBody gives the connection back when the body was read to its end, and
// closes it otherwise.
type lineBody struct {
	body  io.ReadCloser
	line  *line
	keep  bool // if the end is reached
	ended bool
}

// Read implements io.Reader.
func (b *lineBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.body.Read(p)
	if err == io.EOF {
		b.end(b.keep)
		return n, err
	}
	if err != nil {
		err = b.line.cause(err)
		b.end(false)
	}
	return n, err
}

// Close implements io.Closer.
func (b *lineBody) Close() error {
	b.end(false)
	return nil
}

func (b *lineBody) end(keep bool) {
	if b.ended {
		return
	}
	b.ended = true
	l := b.line
	if !l.stop() || !keep || l.in.Buffered() > 0 || !l.wire.put(l) { // stopped too late, it has a deadline
		l.conn.Close()
	}
}

// put keeps a connection for the next request.
func (w *wire) put(l *line) bool {
	l.ctx, l.stop, l.since = nil, nil, time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || l.raw == nil || w.kept >= w.most || len(w.idle[l.address]) >= idlePerHost {
		return false
	}
	if w.idle == nil {
		w.idle = map[string][]*line{}
	}
	w.idle[l.address] = append(w.idle[l.address], l)
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
	for address, lines := range w.idle {
		old := 0
		for old < len(lines) && lines[old].since.Before(since) {
			lines[old].conn.Close()
			old++
		}
		w.kept -= old
		if w.idle[address] = lines[old:]; len(lines) == old {
			delete(w.idle, address)
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
