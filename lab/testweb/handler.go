package testweb

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// readTimeout ends connections that ask nothing: a robot's idle pool is kept
// for longer than robots do.
const readTimeout = 2 * time.Minute

// httpServer returns a server of one listener.
func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: readTimeout, IdleTimeout: readTimeout,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		// Robots break off handshakes, and bad TLS is a behaviour: no noise.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// handleRequest answers one request and logs it.
func (s *Server) handleRequest(rw http.ResponseWriter, req *http.Request) {
	began := time.Now()
	host, dns, port, known := s.requestTarget(req)
	rec := truth.Record{
		Time: began, Host: dns, Path: req.URL.RequestURI(), Method: req.Method,
		Agent: req.UserAgent(), Page: truth.NoPage, Kind: truth.Other,
	}
	if req.TLS != nil {
		rec.Scheme = "https"
	}
	if local, ok := req.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && s.cfg.Truth != nil {
		if ip := addrOf(local); !ip.IsLoopback() {
			rec.Local = ip.String()
		}
	}
	var ended time.Time
	switch {
	case !known:
		rec.Status, rec.Kind = http.StatusNotFound, truth.Missing
		rec.Bytes = s.sendPlainText(rw, req, rec.Status, s.unknownHostText(dns))
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		rw.Header().Set("Allow", "GET, HEAD")
		rec.Status = http.StatusMethodNotAllowed
		rec.Bytes = s.sendPlainText(rw, req, rec.Status, req.Method+" is not served here\n")
	default:
		o := origin{"http", port}
		if req.TLS != nil {
			o.scheme = "https"
		}
		v := s.answerVisit(host, dns, o, req.URL.Path, req.URL.RawQuery, s.Time(began))
		a := answer{s: s, rw: rw, req: req, v: v, rec: &rec}
		a.writeReply()
		ended = a.ended
		s.describeReply(&rec, v)
		s.releaseVisit(v)
		if a.reset {
			defer a.abortConnection() // when the record is in the log
		}
	}
	if s.cfg.Truth != nil {
		if ended.IsZero() {
			ended = time.Now()
		}
		rec.Duration = ended.Sub(began).Seconds()
		s.cfg.Truth.Add(&rec)
	}
}

// requestTarget returns the host that the robot means: by the Host header or, where
// that holds an address or nothing, by the address.
func (s *Server) requestTarget(req *http.Request) (host uint64, dns, port string, ok bool) {
	dns = req.Host
	if i := strings.LastIndexByte(dns, ':'); i >= 0 && !strings.HasSuffix(dns, "]") {
		dns, port = dns[:i], dns[i:]
	}
	if host, ok = s.Host(dns); ok {
		return host, dns, port, true
	}
	if host, ok = s.hostNamed(dns); ok {
		return host, s.HostName(host), port, true
	}
	if dns == "" { // HTTP/1.0 without a Host field
		local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if host, ok = s.hostAt(addrOf(local)); ok {
			return host, s.HostName(host), port, true
		}
	}
	return 0, dns, port, false
}

// unknownHostText is the answer for a host outside the web.
func (s *Server) unknownHostText(dns string) string {
	return fmt.Sprintf("no host %q in this web of %d hosts; it begins at %s\n", dns, s.Hosts(), s.Seeds(1)[0])
}

// sendPlainText sends a short text.
func (s *Server) sendPlainText(rw http.ResponseWriter, req *http.Request, status int, text string) int64 {
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

// describeReply puts what the web knows about the answer into the record.
func (s *Server) describeReply(rec *truth.Record, v *visit) {
	rec.Kind = v.r.Kind
	rec.CopyOf, rec.Similarity, rec.Behaviour = v.r.CopyOf, v.r.Similarity, v.by
	rec.Disallowed, rec.CrawlDelay = v.r.Disallowed, v.r.CrawlDelay
	if v.r.Kind != truth.Page || !v.q.Found {
		return
	}
	rec.Page = int64(v.q.Page)
	rec.Version = v.version.Number
	if v.version.Number != 0 {
		rec.Changed = s.Clock(v.version.Since)
	}
	if !v.version.lastsForever() {
		rec.FreshUntil = s.Clock(v.version.Until)
	}
}
