package testweb

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/truth"
	"golang.org/x/text/encoding/htmlindex"
)

// answer is one reply on its way to the robot.
type answer struct {
	s     *Server
	rw    http.ResponseWriter
	req   *http.Request
	v     *visit
	rec   *truth.Record
	reset bool      // the connection is to be broken once the reply is logged
	ended time.Time // when the last bytes of a body were sent; zero without a body
}

func (a *answer) writeReply() {
	r := &a.v.r
	if r.Delay > 0 && !a.sleepServer(r.Delay) || r.Cut < 0 {
		a.reset = true
		return
	}
	h := a.rw.Header()
	for _, f := range r.Header {
		h.Add(f.Name, f.Value)
	}
	if r.Location != "" {
		h["Location"] = []string{r.Location}
	}
	if r.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(r.Retry))
	}
	if r.Status == http.StatusOK && a.isNotModified(h) {
		a.rec.Status = http.StatusNotModified
		a.rw.WriteHeader(a.rec.Status)
		return
	}
	a.rec.Status = r.Status
	if r.Bomb > 0 {
		a.sendBomb(h)
		return
	}
	a.writeBody(h)
}

// sleepServer waits for a time of the clock; false if robot or server left.
func (a *answer) sleepServer(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.req.Context().Done():
		return false
	}
}

// isNotModified sets the validators and reports whether the robot's conditions say
// that it has this version (RFC 9110, 13.2.2: If-None-Match goes first).
func (a *answer) isNotModified(h http.Header) bool {
	val := a.v.r.Validator
	none, since := a.req.Header["If-None-Match"], a.req.Header["If-Modified-Since"]
	a.rec.Conditional = len(none) > 0 || len(since) > 0
	tag := val.ETag()
	if tag != "" {
		h["Etag"] = []string{tag}
	}
	var modified time.Time
	if val.Dated {
		modified = a.s.lastModified(val.Modified)
		h["Last-Modified"] = []string{modified.Format(http.TimeFormat)}
	}
	switch {
	case val.Deaf:
		return false
	case len(none) > 0:
		return tag != "" && matchesETag(none, tag)
	case len(since) > 0 && val.Dated:
		t, err := http.ParseTime(since[0])
		return err == nil && !modified.After(t)
	}
	return false
}

// lastModified returns the Last-Modified date of a time of the web.
func (s *Server) lastModified(t float64) time.Time {
	return s.Clock(t).UTC().Truncate(time.Second)
}

// matchesETag reports whether an If-None-Match field holds a tag, by the weak
// comparison; the suffix of a coding (see coding) is not part of it.
func matchesETag(fields []string, tag string) bool {
	for _, f := range fields {
		for part := range strings.SplitSeq(f, ",") {
			part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
			if n := len(part); part == "*" || part == tag || n > 3 && part[n-3] == '-' && part[:n-3] == tag[:len(tag)-1] {
				return true
			}
		}
	}
	return false
}

// codedLeast is the least body that is worth a coding.
const codedLeast = 256

// writeBody sends header and body.
func (a *answer) writeBody(h http.Header) {
	r := &a.v.r
	if r.Type != "" {
		h["Content-Type"] = []string{contentTypeOf(r)}
	}
	body := a.s.replyBody(a.v)
	if r.Encoding != "" {
		body = encodeCharset(body, r.Encoding)
	}
	if r.Status == http.StatusOK {
		h["Accept-Ranges"] = []string{"bytes"}
		if rg := a.req.Header.Get("Range"); rg != "" && a.writeRange(h, rg, body) {
			return
		}
	}
	if accept := a.req.Header["Accept-Encoding"]; len(accept) > 0 && len(body) >= codedLeast && strings.HasPrefix(r.Type, "text/") {
		h["Vary"] = []string{"Accept-Encoding"}
		if name := negotiateCoding(accept[0]); name != "" {
			c := a.s.coders.getCoder(name)
			defer a.s.coders.putCoder(name, c)
			body = c.encodeBody(body)
			h["Content-Encoding"] = []string{name}
			if tag := h["Etag"]; tag != nil {
				tag[0] = tag[0][:len(tag[0])-1] + "-" + name[:1] + `"` // another representation, another strong tag
			}
		}
	}
	a.sendBody(h, body)
}

// writeRange answers a Range field of one range of bytes with 206 or 416; false for
// what a server may ignore: several ranges, other units, a stale If-Range.
func (a *answer) writeRange(h http.Header, field string, body []byte) bool {
	if cond := a.req.Header.Get("If-Range"); cond != "" && cond != h.Get("Etag") && cond != h.Get("Last-Modified") {
		return false
	}
	spec, ok := strings.CutPrefix(field, "bytes=")
	from, to, dash := strings.Cut(spec, "-")
	if !ok || !dash || strings.Contains(spec, ",") {
		return false
	}
	size := uint64(len(body))
	first, errFirst := strconv.ParseUint(from, 10, 63)
	last, errLast := strconv.ParseUint(to, 10, 63)
	switch {
	case from == "" && errLast == nil: // the last so many bytes
		first, last = size-min(last, size), size-1
	case errFirst == nil && to == "":
		last = size - 1
	case errFirst != nil || errLast != nil || last < first:
		return false
	}
	if first >= size {
		a.rec.Status = http.StatusRequestedRangeNotSatisfiable
		h["Content-Range"] = []string{"bytes */" + strconv.FormatUint(size, 10)}
		a.sendBody(h, nil)
		return true
	}
	last = min(last, size-1)
	a.rec.Status = http.StatusPartialContent
	h["Content-Range"] = []string{"bytes " + strconv.FormatUint(first, 10) + "-" + strconv.FormatUint(last, 10) + "/" + strconv.FormatUint(size, 10)}
	a.sendBody(h, body[first:last+1])
	return true
}

// sendBody writes header and body, at the reply's rate and up to its cut.
func (a *answer) sendBody(h http.Header, body []byte) {
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	a.rw.WriteHeader(a.rec.Status)
	if a.req.Method == http.MethodHead {
		return
	}
	r := &a.v.r
	if r.Cut > 0 && r.Cut < int64(len(body)) {
		body = body[:r.Cut]
		a.reset = true
	}
	if r.Rate > 0 {
		a.dripBody(body, r.Rate)
	} else {
		_ = a.deliverPiece(body)
	}
	if a.reset {
		_ = http.NewResponseController(a.rw).Flush() // so that what is not cut arrives
	}
}

// lastBytes is the size of the end of a body that is sent after the time was noted. It
// fits into the server's buffers together with the header.
const lastBytes = 512

// deliverPiece writes a piece of the body. It notes the time before the last bytes leave: as
// soon as the robot has them it may send its next request, long before this handler
// runs again on a busy machine.
func (a *answer) deliverPiece(b []byte) error {
	split := max(0, len(b)-lastBytes)
	if split > 0 {
		n, err := a.rw.Write(b[:split])
		a.rec.Bytes += int64(n)
		if err != nil {
			return err
		}
	}
	a.ended = time.Now()
	n, err := a.rw.Write(b[split:])
	a.rec.Bytes += int64(n)
	return err
}

// dripPause is the time between two pieces of a slow body.
const dripPause = 50 * time.Millisecond

// dripBody writes a body at a rate in bytes per second.
func (a *answer) dripBody(body []byte, rate float64) {
	ctl := http.NewResponseController(a.rw)
	owed := 0.
	for len(body) > 0 {
		owed += rate * dripPause.Seconds()
		if n := min(int(owed), len(body)); n > 0 {
			owed -= float64(n)
			if a.deliverPiece(body[:n]) != nil || ctl.Flush() != nil {
				return
			}
			body = body[n:]
		}
		if len(body) > 0 && !a.sleepServer(dripPause) {
			return
		}
	}
}

// sendBomb sends a gzip bomb: the same member of zeros again and again, so that it
// costs this side nothing.
func (a *answer) sendBomb(h http.Header) {
	member := a.s.coders.gzipZeros()
	n := (a.v.r.Bomb + zerosSize - 1) / zerosSize
	h["Content-Type"] = []string{"text/html"}
	h["Content-Encoding"] = []string{"gzip"}
	h["Content-Length"] = []string{strconv.FormatInt(n*int64(len(member)), 10)}
	a.rw.WriteHeader(a.rec.Status)
	if a.req.Method == http.MethodHead {
		return
	}
	for range n {
		if a.deliverPiece(member) != nil {
			return
		}
	}
}

// abortConnection breaks the connection: a reset over plain HTTP/1, else as hard as the
// protocol allows. It is the last act of a handler.
func (a *answer) abortConnection() {
	conn, _, err := http.NewResponseController(a.rw).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: a reset of the stream
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// encodeCharset turns UTF-8 into another charset; letters that it lacks become
// character references, as browsers do in forms.
func encodeCharset(body []byte, charset string) []byte {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return body
	}
	out, err := htmlEscaped(e).Bytes(body)
	if err != nil {
		return body
	}
	return out
}

func contentTypeOf(r *behaviour.Reply) string {
	if r.Charset == "" {
		return r.Type
	}
	if r.Type == "text/html" && r.Charset == "utf-8" {
		return "text/html; charset=utf-8" // the common case, without a new string
	}
	return r.Type + "; charset=" + r.Charset
}
