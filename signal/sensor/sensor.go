// Package sensor watches what a web server serves and tells a robot at once
// when a page is not what it was: as middleware of a Go server, or of a reverse
// proxy in front of any other.
//
// The sensor digests bodies on their way out and compares with a small table.
// It never changes, delays or fails an answer: an event is put into memory and
// written, signed and sent by a Sender beside the requests. What nobody asks
// for it cannot see; it goes with polling, not instead of it.
package sensor

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/freshet/freshet/signal"
)

// Sensor compares what is served with what was. It is safe for concurrent use.
type Sensor struct {
	base string
	to   func(signal.Event)
	max  int

	errors bool

	mu   sync.Mutex
	seen map[uint64]page
}

// page is what the table keeps of an address.
type page struct {
	digest uint64 // of the body, or the status of an answer without one
	tag    uint64 // of the answer's validator, 0 for none
	told   int64  // Unix time of the last event
	looked int64  // Unix milliseconds of the last digest
	runs   uint8  // answers in a row that differed from the one before
	calm   uint8  // answers in a row that did not
}

const (
	// noisy is how many answers in a row differ before a page counts as one
	// that is never the same twice (a clock, a token); it is then told of once
	// a quiet.
	noisy = 8
	quiet = int64(3600)
	// calm is how many answers in a row were the same before a page without a
	// validator is digested once in glance milliseconds only, however often it is
	// asked for.
	calm   = 16
	glance = 100
)

// New returns a sensor for the site at base ("https://www.example.org") that
// gives its events to a function, which must not block (Spool.Add). It knows at
// most maxPages pages at a time; 0 is 100,000 (about 4 MB).
func New(base string, maxPages int, to func(signal.Event)) *Sensor {
	if maxPages <= 0 {
		maxPages = 100_000
	}
	return &Sensor{base: strings.TrimSuffix(base, "/"), to: to, max: maxPages, seen: map[uint64]page{}}
}

// Wrap puts the sensor around a handler. Looked at are answers 200 (whole
// bodies), 404 and 410 to GET without credentials; the rest passes untouched. The
// body of a page whose validator (ETag, or a Last-Modified of some seconds ago)
// is what it was is not digested, and goes the server's fast way (sendfile).
func (s *Sensor) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || len(r.Header["Authorization"]) > 0 || len(r.Header["Upgrade"]) > 0 {
			next.ServeHTTP(w, r)
			return
		}
		t := &tap{ResponseWriter: w, sensor: s, address: r.RequestURI} // a handler may change r.URL
		if !strings.HasPrefix(t.address, "/") {
			t.address = r.URL.RequestURI()
		}
		next.ServeHTTP(t, r)
		if t.status == 0 {
			t.noteStatus(http.StatusOK)
		}
		switch {
		case t.broken || t.known:
		case t.status == http.StatusOK:
			if c := w.Header().Get("Cache-Control"); c != "" && (strings.Contains(c, "private") || strings.Contains(c, "no-store")) {
				return
			}
			if !t.begun {
				t.digest.Reset()
			}
			s.noteServed(t.address, w.Header().Get("Content-Encoding"), w.Header().Get("ETag"), t.digest.Sum64(), t.tag, t.size)
		case t.status == http.StatusNotFound || t.status == http.StatusGone:
			s.noteFailed(t.address, http.StatusNotFound, "deleted")
		case s.errors && (t.status == http.StatusForbidden || t.status >= 500):
			s.noteFailed(t.address, t.status, "updated")
		}
	})
}

// young is how old a modification must be for its date to tell it from a later
// one (RFC 9110, section 8.8.2.2).
const young = 2 * time.Second

// tagOf digests the validator of an answer; 0 for none to go by.
func tagOf(h http.Header, now time.Time) uint64 {
	if v := h["Etag"]; len(v) > 0 && v[0] != "" {
		return max(1, xxhash.Sum64String(v[0]))
	}
	v := h["Last-Modified"]
	if len(v) == 0 {
		return 0
	}
	at, err := http.ParseTime(v[0])
	if err != nil || now.Sub(at) < young {
		return 0
	}
	tag := xxhash.Sum64String(v[0])
	if n := h["Content-Length"]; len(n) > 0 {
		tag ^= xxhash.Sum64String(n[0])
	}
	return max(1, tag)
}

// addressKey is what an answer goes by in the table. Encodings are told apart, for
// the same page has other bytes in each.
func addressKey(address, encoding string) uint64 {
	k := xxhash.Sum64String(address)
	if encoding != "" {
		k = k*31 + xxhash.Sum64String(encoding)
	}
	return k
}

// isUnchanged reports whether a page is known by this tag, and notes that it was seen;
// one without a tag, whether it was looked at a moment ago.
func (s *Sensor) isUnchanged(address, encoding string, tag uint64, now time.Time) bool {
	key := addressKey(address, encoding)
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.seen[key]
	switch {
	case !ok || p.tag != tag:
		return false
	case tag == 0:
		return p.calm >= calm && now.UnixMilli()-p.looked < glance
	}
	if p.runs > 0 {
		p.runs = 0
		s.seen[key] = p
	}
	return true
}

// TellErrors makes the sensor tell of answers 403 and 5xx to pages that it knows,
// too, and of their end: for experiments. In earnest a server in trouble would
// have all of its pages fetched. Call it before Wrap.
func (s *Sensor) TellErrors() { s.errors = true }

// noteServed notes an answer.
func (s *Sensor) noteServed(address, encoding, etag string, digest, tag uint64, size int64) {
	now := time.Now()
	s.mu.Lock()
	prev, tell := s.noteAnswer(addressKey(address, encoding), digest, tag, now, true)
	s.mu.Unlock()
	if tell {
		s.to(signal.Event{URL: s.base + address, Event: "updated", Digest: digestText(digest), Prev: digestText(prev), ETag: etag, Size: size, Seen: now})
	}
}

// noteFailed notes an answer that brought no page. What is kept of the page, in any
// encoding, becomes the status, so that its return is seen.
func (s *Sensor) noteFailed(address string, status int, event string) {
	now := time.Now()
	var prev uint64
	tell := false
	s.mu.Lock()
	for _, encoding := range []string{"", "gzip", "br", "zstd", "deflate"} {
		if was, changed := s.noteAnswer(addressKey(address, encoding), uint64(status), 0, now, false); changed {
			prev, tell = was, true
		}
	}
	s.mu.Unlock()
	if tell {
		s.to(signal.Event{URL: s.base + address, Event: event, Prev: digestText(prev), Seen: now})
	}
}

// noteAnswer enters what an address answers now and reports what it did before and
// whether that is to be told. An address that is not known is entered if add.
func (s *Sensor) noteAnswer(key, digest, tag uint64, now time.Time, add bool) (prev uint64, tell bool) {
	p, known := s.seen[key]
	switch {
	case !known:
		if add {
			s.evictOne()
			s.seen[key] = page{digest: digest, tag: tag}
		}
		return 0, false
	case p.digest == digest:
		p.runs, p.tag, p.looked, p.calm = 0, tag, now.UnixMilli(), min(p.calm+1, calm)
		s.seen[key] = p
		return 0, false
	}
	prev, p.digest, p.tag, p.calm = p.digest, digest, tag, 0
	p.runs = min(p.runs+1, noisy)
	tell = p.runs < noisy || now.Unix()-p.told >= quiet
	if tell {
		p.told = now.Unix()
	}
	s.seen[key] = p
	return prev, tell
}

// evictOne makes place for one more page, by forgetting any.
func (s *Sensor) evictOne() {
	if len(s.seen) < s.max {
		return
	}
	for k := range s.seen {
		delete(s.seen, k)
		return
	}
}

// digestText writes a digest; a status is none.
func digestText(d uint64) string {
	if d < 1000 {
		return ""
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, d))
}

// tap digests what a handler writes. The zero digest is ready for use after
// the first write.
type tap struct {
	http.ResponseWriter
	sensor  *Sensor
	address string
	status  int
	size    int64
	tag     uint64
	broken  bool // the client went away: the body is not whole
	known   bool // by its tag: not digested
	begun   bool
	digest  xxhash.Digest
}

// noteStatus notes the status, and whether the page is known by its validator.
func (t *tap) noteStatus(status int) {
	t.status = status
	if status != http.StatusOK {
		return
	}
	h, now := t.Header(), time.Now()
	encoding := ""
	if v := h["Content-Encoding"]; len(v) > 0 {
		encoding = v[0]
	}
	t.tag = tagOf(h, now)
	t.known = t.sensor.isUnchanged(t.address, encoding, t.tag, now)
}

// WriteHeader notes the status; 1xx are not the answer.
func (t *tap) WriteHeader(status int) {
	if t.status == 0 && status >= 200 {
		t.noteStatus(status)
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on and digests those of a 200. Templates write pages in
// hundreds of pieces: a known page's go straight on.
func (t *tap) Write(b []byte) (int, error) {
	if t.known {
		return t.ResponseWriter.Write(b)
	}
	if t.status == 0 {
		t.noteStatus(http.StatusOK)
	}
	n, err := t.ResponseWriter.Write(b)
	if t.status == http.StatusOK && !t.known {
		if !t.begun {
			t.digest.Reset()
			t.begun = true
		}
		t.digest.Write(b[:n])
		t.size += int64(n)
	}
	if err != nil {
		t.broken = true
	}
	return n, err
}

// WriteString is Write: the server's own takes strings without a copy, which is
// what templates write, so it is passed on.
func (t *tap) WriteString(b string) (int, error) {
	w, ok := t.ResponseWriter.(io.StringWriter)
	switch {
	case !ok:
		return t.Write([]byte(b))
	case t.known:
		return w.WriteString(b)
	case t.status == 0:
		t.noteStatus(http.StatusOK)
	}
	n, err := w.WriteString(b)
	if t.status == http.StatusOK && !t.known {
		if !t.begun {
			t.digest.Reset()
			t.begun = true
		}
		_, _ = t.digest.WriteString(b[:n])
		t.size += int64(n)
	}
	if err != nil {
		t.broken = true
	}
	return n, err
}

// ReadFrom passes a body on: by the server's own way where nothing is to be
// digested.
func (t *tap) ReadFrom(r io.Reader) (int64, error) {
	if t.status == 0 {
		t.noteStatus(http.StatusOK)
	}
	if f, ok := t.ResponseWriter.(io.ReaderFrom); ok && (t.known || t.status != http.StatusOK) {
		return f.ReadFrom(r)
	}
	return io.Copy(writer{t}, r)
}

// writer hides ReadFrom from io.Copy.
type writer struct{ io.Writer }

// Flush lets handlers stream.
func (t *tap) Flush() {
	if f, ok := t.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }
