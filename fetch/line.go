package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// line is one connection; one request at a time has it. It has one timer, which
// runs on from request to request and is set again only when it rings, and one
// watch of the context, as long as requests come under the same: to set both up
// for each request cost more than all else that is not a system call.
type line struct {
	wire    *wire
	next    *line // idle one of the same peer
	peer    peer
	remote  string
	conn    net.Conn
	raw     syscall.RawConn
	in      *bufio.Reader
	room    int64 // bytes that may be read before the header is too long; -1 is no limit
	answers int   // read on it; negative when one has begun
	since   time.Time
	body    lineBody

	text    []byte // room for requests
	request []byte // to be sent before the next read
	step    func(fd uintptr) bool
	into    []byte // what step reads to
	got     int    // that it read
	failed  error
	broke   error // how reading failed, which a parser of what came tells in its own words

	mu       sync.Mutex // guards what timer and context look at
	busy     bool
	cut      error // why the request was broken off; the connection is of no more use
	deadline time.Time
	checked  time.Time // when the body was looked at last; zero in the header
	had      int64     // bytes of it then
	set      bool      // the timer
	timer    *time.Timer
	done     <-chan struct{} // of the context that is watched
	unwatch  func() bool

	came atomic.Int64 // bytes of the body
}

var (
	errHeader = errors.New("the header is too long")
	errStale  = errors.New("the connection ended, or something came on it, while it was idle")
)

// longPast is a deadline that ends what waits.
var longPast = time.Unix(1, 0)

// begin watches over a request until end.
func (l *line) begin(ctx context.Context, deadline time.Time) error {
	done := ctx.Done()
	l.mu.Lock()
	l.busy, l.cut, l.deadline, l.checked = true, nil, deadline, time.Time{}
	if !l.set {
		l.set = true
		if wait := min(time.Until(deadline), l.wire.patience); l.timer == nil {
			l.timer = time.AfterFunc(wait, l.ring)
		} else {
			l.timer.Reset(wait)
		}
	}
	same := l.done == done
	l.done = done
	l.mu.Unlock()
	if !same {
		if l.unwatch != nil {
			l.unwatch()
		}
		l.unwatch = context.AfterFunc(ctx, func() { l.abandon(ctx) })
	}
	return ctx.Err() // it may have ended before the line was busy
}

// end ends the watch. It returns why the request was broken off, if it was.
func (l *line) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	return l.cut
}

// abandon breaks off the request that is under way under a context.
func (l *line) abandon(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy && l.done == ctx.Done() {
		l.breakOff(ctx.Err())
	}
}

// breakOff makes what waits fail. The caller holds mu.
func (l *line) breakOff(why error) {
	if l.cut == nil {
		l.cut = why
		_ = l.conn.SetDeadline(longPast)
	}
}

// ring looks at the request under way: at its time, and at how fast its body
// comes.
func (l *line) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set = false
	if !l.busy || l.cut != nil {
		return // the next request sets it again
	}
	now, patience := time.Now(), l.wire.patience
	left := l.deadline.Sub(now)
	if left <= 0 {
		l.breakOff(context.DeadlineExceeded)
		return
	}
	wait := patience // no sooner can a body that begins now be too slow
	if !l.checked.IsZero() {
		wait = l.checked.Add(patience).Sub(now)
		if wait <= 0 {
			came := l.came.Load()
			if float64(came-l.had) < float64(l.wire.minRate)*patience.Seconds() {
				l.breakOff(errSlow)
				return
			}
			l.checked, l.had, wait = now, came, patience
		}
	}
	l.set = true
	l.timer.Reset(min(wait, left))
}

// close ends the connection. No request is under way.
func (l *line) close() {
	l.mu.Lock()
	l.busy = false
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	if l.unwatch != nil {
		l.unwatch()
	}
	l.conn.Close()
}

// Read implements io.Reader for in.
func (l *line) Read(p []byte) (n int, err error) {
	if l.room == 0 {
		return 0, errHeader
	}
	if l.room > 0 && int64(len(p)) > l.room {
		p = p[:l.room]
	}
	if l.request != nil {
		n, err = l.exchange(p)
	} else {
		n, err = l.conn.Read(p)
	}
	if l.room > 0 {
		l.room -= int64(n)
	}
	if err != nil {
		l.broke = err
	}
	return n, err
}

// writeRead is exchange by the connection's own means.
func (l *line) writeRead(p []byte) (int, error) {
	request := l.request
	l.request = nil
	if _, err := l.conn.Write(request); err != nil {
		return 0, err
	}
	return l.conn.Read(p)
}

// ask sends the request and reads the header of its answer to out; the body is
// then read from l.body.
func (l *line) ask(request []byte, out *Response) error {
	l.room, l.request = maxHeader, request
	if _, err := l.in.Peek(1); err != nil {
		return err
	}
	before := l.answers
	l.answers = -1
	head, _ := l.in.Peek(l.in.Buffered())
	if o, ok := readOrdinary(head, out.Header, out.values); ok {
		_, _ = l.in.Discard(o.size) // it is there
		out.Status, out.Proto, out.Header, out.values = o.status, protocol, o.header, o.values
		l.body = lineBody{line: l, left: o.length, length: o.length, keep: true}
	} else {
		res, err := l.answer()
		if err != nil {
			return err
		}
		out.Status, out.Proto, out.Header = res.StatusCode, res.Proto, res.Header
		l.body = lineBody{line: l, body: res.Body, length: res.ContentLength, keep: !res.Close}
		l.body.whole = res.Body == http.NoBody
	}
	l.answers, l.room = before+1, -1
	if l.body.left > int64(l.in.Buffered()) || l.body.body != nil && !l.body.whole { // more is to come
		l.came.Store(0)
		l.mu.Lock()
		l.checked, l.had = time.Now(), 0
		l.mu.Unlock()
	}
	return nil
}

// answer reads a header that is not ordinary.
func (l *line) answer() (*http.Response, error) {
	for range 6 { // five answers of 1xx are enough
		res, err := http.ReadResponse(l.in, nil)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 200 {
			return res, nil
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("the server switches protocols unasked")
		}
	}
	return nil, errors.New("too many informational answers")
}

// cause is why a request failed: that for which it was broken off, if it was; that
// the connection broke, where a parser says that what came before is wrong.
func (l *line) cause(err error) error {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	var malformed textproto.ProtocolError
	switch {
	case cut != nil && errors.Is(l.broke, os.ErrDeadlineExceeded):
		return cut
	case l.room == 0:
		return errHeader
	case l.broke == io.EOF && errors.As(err, &malformed): // a line that was cut
		return io.ErrUnexpectedEOF
	case l.broke != nil && l.broke != io.EOF:
		return l.broke
	}
	return err
}

// lineBody reads the body of an answer.
type lineBody struct {
	line   *line
	length int64     // -1 if it is not known
	left   int64     // of an ordinary one
	body   io.Reader // of another; not closed, which would read it to its end
	keep   bool      // the connection goes on after its end
	whole  bool      // that was reached
	n      int64
}

// Read implements io.Reader.
func (b *lineBody) Read(p []byte) (n int, err error) {
	if b.whole {
		return 0, io.EOF
	}
	if b.body != nil {
		n, err = b.body.Read(p)
		b.whole = err == io.EOF
	} else {
		n, err = b.some(p)
	}
	b.n += int64(n)
	b.line.came.Store(b.n)
	if err != nil && err != io.EOF {
		err = b.line.cause(err)
	}
	return n, err
}

// some reads of a body whose length is known, to p itself where it can.
func (b *lineBody) some(p []byte) (n int, err error) {
	if b.left < int64(len(p)) {
		p = p[:b.left]
	}
	if in := b.line.in; in.Buffered() > 0 {
		n, err = in.Read(p)
	} else if len(p) > 0 {
		n, err = b.line.Read(p)
	}
	switch b.left -= int64(n); {
	case b.left == 0:
		b.whole, err = true, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// count implements source.
func (b *lineBody) count() int64 { return b.n }

// broken implements source.
func (b *lineBody) broken() error {
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	return b.line.cut
}
