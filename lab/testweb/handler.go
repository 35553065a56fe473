package testweb

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// readTimeout ends connections that ask nothing: a robot's idle pool is kept
// for longer than robots do.
const readTimeout = 2 * time.Minute

// localAddr is the key of the connection's own address in a request's context.
type localAddr struct{}

func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: readTimeout, IdleTimeout: readTimeout,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ErrorLog:    nil,
	}
}

// handle answers one request and logs it.
func (s *Server) handle(rw http.ResponseWriter, req *http.Request) {
	began := time.Now()
	host, dns, port, known := s.target(req)
	rec := truth.Record{
		Time: began, Host: dns, Path: req.URL.RequestURI(), Method: req.Method,
		Agent: req.UserAgent(), Page: truth.NoPage, Kind: truth.Other,
	}
	if req.TLS != nil {
		rec.Scheme = "https"
	}
	switch {
	case !known:
		rec.Status, rec.Kind = http.StatusNotFound, truth.Missing
		rec.Bytes = s.plain(rw, req, rec.Status, s.unknown(dns))
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		rw.Header().Set("Allow", "GET, HEAD")
		rec.Status = http.StatusMethodNotAllowed
		rec.Bytes = s.plain(rw, req, rec.Status, req.Method+" is not served here\n")
	default:
		o := origin{"http", port}
		if req.TLS != nil {
			o.scheme = "https"
		}
		v := s.visit(host, dns, o, req.URL.Path, req.URL.RawQuery, s.time(began))
		a := answer{s: s, rw: rw, req: req, v: v, rec: &rec}
		a.write()
		s.describe(&rec, v)
		s.release(v)
		if a.broken {
			defer panic(http.ErrAbortHandler) // after the log: net/http resets the connection
		}
	}
	if s.cfg.Truth != nil {
		rec.Duration = time.Since(began).Seconds()
		s.cfg.Truth.Add(&rec)
	}
}

// target returns the host that the robot means: by the Host header or, where
// that holds an address or nothing, by the address.
func (s *Server) target(req *http.Request) (host uint64, dns, port string, ok bool) {
	dns = req.Host
	if i := strings.LastIndexByte(dns, ':'); i >= 0 && !strings.HasSuffix(dns, "]") {
		dns, port = dns[:i], dns[i:]
	}
	if host, ok = s.Host(dns); ok {
		return host, dns, port, true
	}
	if ip, err := netip.ParseAddr(strings.Trim(dns, "[]")); err == nil {
		if host, ok = s.hostAt(ip); ok {
			return host, s.HostName(host), port, true
		}
	}
	return 0, dns, port, false
}

// unknown is what a robot is told that asks for a host outside the web.
func (s *Server) unknown(dns string) string {
	return fmt.Sprintf("no host %q in this web of %d hosts; it begins at %s\n", dns, s.Hosts(), s.Seeds(1)[0])
}

// plain sends a short text.
func (s *Server) plain(rw http.ResponseWriter, req *http.Request, status int, text string) int64 {
	h := rw.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	rw.WriteHeader(status)
	if req.Method == http.MethodHead {
		return 0
	}
	n, _ := rw.Write([]byte(text))
	return int64(n)
}

// describe puts what the web knows about the answer into the record.
func (s *Server) describe(rec *truth.Record, v *visit) {
	rec.Kind = v.r.Kind
	rec.CopyOf, rec.Similarity, rec.Behaviour, rec.Disallowed = v.r.CopyOf, v.r.Similarity, v.r.By, v.r.Disallowed
	if v.r.Kind != truth.Page || !v.q.Found {
		return
	}
	rec.Page = int64(v.q.Page)
	rec.Version = v.version.Number
	if v.version.Number != 0 {
		rec.Changed = s.clock(v.version.Since)
	}
	if !v.version.forever() {
		rec.FreshUntil = s.clock(v.version.Until)
	}
}

// answer is one reply on its way to the robot.
type answer struct {
	s      *Server
	rw     http.ResponseWriter
	req    *http.Request
	v      *visit
	rec    *truth.Record
	broken bool // the connection is to be reset
}

func (a *answer) write() {
	r := &a.v.r
	if r.Delay > 0 && !a.sleep(r.Delay) {
		a.broken = true
		return
	}
	if r.Cut < 0 {
		a.broken = true
		return
	}
	h := a.rw.Header()
	for _, f := range r.Header {
		h.Set(f.Name, f.Value)
	}
	if r.Location != "" {
		h["Location"] = []string{r.Location}
	}
	if r.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(r.Retry))
	}
	if r.Status == http.StatusOK && a.unchanged(h) {
		a.rec.Status = http.StatusNotModified
		a.rw.WriteHeader(a.rec.Status)
		return
	}
	a.body(h)
}

// sleep waits for a time of the clock; false if robot or server left.
func (a *answer) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.req.Context().Done():
		return false
	}
}

// unchanged sets the validators and reports whether the robot's conditions say
// that it has this version (RFC 9110, 13.2.2: If-None-Match goes first).
func (a *answer) unchanged(h http.Header) bool {
	val := a.v.r.Validator
	none, since := a.req.Header["If-None-Match"], a.req.Header["If-Modified-Since"]
	a.rec.Conditional = len(none) > 0 || len(since) > 0
	tag := ""
	if val.Tag != 0 {
		tag = `"` + strconv.FormatUint(val.Tag, 36) + `"`
		h["Etag"] = []string{tag}
	}
	var modified time.Time
	if val.Dated {
		modified = a.s.modified(val.Modified)
		h["Last-Modified"] = []string{modified.Format(http.TimeFormat)}
	}
	switch {
	case val.Deaf:
		return false
	case len(none) > 0:
		return tag != "" && matches(none, tag)
	case len(since) > 0 && val.Dated:
		t, err := http.ParseTime(since[0])
		return err == nil && !modified.After(t)
	}
	return false
}

// modified returns the Last-Modified date of a time of the web.
func (s *Server) modified(t float64) time.Time {
	return s.clock(t).UTC().Truncate(time.Second)
}

// matches reports whether an If-None-Match field holds a tag, by the weak
// comparison; a coding's suffix (see body) is not part of it.
func matches(fields []string, tag string) bool {
	for _, f := range fields {
		for part := range strings.SplitSeq(f, ",") {
			part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
			if part == "*" || part == tag || len(part) > 3 && part[len(part)-3] == '-' && part[:len(part)-3]+`"` == tag {
				return true
			}
		}
	}
	return false
}

// body sends header and body.
func (a *answer) body(h http.Header) {
	r := &a.v.r
	a.rec.Status = r.Status
	if r.Type != "" {
		h["Content-Type"] = []string{contentType(r)}
	}
	body := a.s.body(a.v)
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	a.rw.WriteHeader(a.rec.Status)
	if a.req.Method == http.MethodHead {
		return
	}
	n, _ := a.rw.Write(body)
	a.rec.Bytes = int64(n)
}

func contentType(r *behaviour.Reply) string {
	if r.Charset == "" {
		return r.Type
	}
	if r.Type == "text/html" && r.Charset == "utf-8" {
		return "text/html; charset=utf-8" // the common case, without a new string
	}
	return r.Type + "; charset=" + r.Charset
}
