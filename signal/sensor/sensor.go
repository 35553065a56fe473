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
	runs   uint8  // answers in a row that differed from the one before
	told   int64  // Unix time of the last event
}

const (
	// noisy is how many answers in a row differ before a page counts as one
	// that is never the same twice (a clock, a token); it is then told of once
	// a quiet.
	noisy = 8
	quiet = int64(3600)
)

// New returns a sensor for the site at base ("https://www.example.org") that
// gives its events to a function, which must not block (Spool.Add). It knows at
// most max pages at a time; 0 is 100,000 (about 4 MB).
func New(base string, max int, to func(signal.Event)) *Sensor {
	if max <= 0 {
		max = 100_000
	}
	return &Sensor{base: strings.TrimSuffix(base, "/"), to: to, max: max, seen: map[uint64]page{}}
}

// Wrap puts the sensor around a handler. Looked at are answers 200 (whole
// bodies), 404 and 410 to GET without credentials; the rest passes untouched.
func (s *Sensor) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" || r.Header.Get("Upgrade") != "" {
			next.ServeHTTP(w, r)
			return
		}
		t := &tap{ResponseWriter: w}
		address := r.URL.RequestURI() // a handler may change r.URL
		next.ServeHTTP(t, r)
		if t.broken {
			return
		}
		switch h := w.Header(); t.status {
		case 0, http.StatusOK:
			if c := h.Get("Cache-Control"); strings.Contains(c, "private") || strings.Contains(c, "no-store") {
				return
			}
			s.served(address, h.Get("Content-Encoding"), h.Get("ETag"), t.digest.Sum64(), t.size)
		case http.StatusNotFound, http.StatusGone:
			s.failed(address, http.StatusNotFound, "deleted")
		default:
			if s.errors && (t.status == http.StatusForbidden || t.status >= 500) {
				s.failed(address, t.status, "updated")
			}
		}
	})
}

// TellErrors makes the sensor tell of answers 403 and 5xx to pages that it knows,
// too, and of their end: for experiments. In earnest a server in trouble would
// have all of its pages fetched. Call it before Wrap.
func (s *Sensor) TellErrors() { s.errors = true }

// served notes an answer. Encodings are told apart, for the same page has other
// bytes in each.
func (s *Sensor) served(address, encoding, etag string, digest uint64, size int64) {
	now := time.Now()
	s.mu.Lock()
	prev, tell := s.note(keyOf(address, encoding), digest, now, true)
	s.mu.Unlock()
	if tell {
		s.to(signal.Event{URL: s.base + address, Event: "updated", Digest: text(digest), Prev: text(prev), ETag: etag, Size: size, Seen: now})
	}
}

// failed notes an answer that brought no page. What is kept of the page, in any
// encoding, becomes the status, so that its return is seen.
func (s *Sensor) failed(address string, status int, event string) {
	now := time.Now()
	var prev uint64
	tell := false
	s.mu.Lock()
	for _, encoding := range []string{"", "gzip", "br", "zstd", "deflate"} {
		if was, changed := s.note(keyOf(address, encoding), uint64(status), now, false); changed {
			prev, tell = was, true
		}
	}
	s.mu.Unlock()
	if tell {
		s.to(signal.Event{URL: s.base + address, Event: event, Prev: text(prev), Seen: now})
	}
}

func keyOf(address, encoding string) uint64 { return xxhash.Sum64String(address + "\x00" + encoding) }

// note enters what an address answers now and reports what it did before and
// whether that is to be told. An address that is not known is entered if add.
func (s *Sensor) note(key, digest uint64, now time.Time, add bool) (prev uint64, tell bool) {
	p, known := s.seen[key]
	switch {
	case !known:
		if add {
			s.room()
			s.seen[key] = page{digest: digest}
		}
		return 0, false
	case p.digest == digest:
		if p.runs > 0 {
			p.runs = 0
			s.seen[key] = p
		}
		return 0, false
	}
	prev, p.digest = p.digest, digest
	p.runs = min(p.runs+1, noisy)
	tell = p.runs < noisy || now.Unix()-p.told >= quiet
	if tell {
		p.told = now.Unix()
	}
	s.seen[key] = p
	return prev, tell
}

// room makes place for one more page, by forgetting any.
func (s *Sensor) room() {
	if len(s.seen) < s.max {
		return
	}
	for k := range s.seen {
		delete(s.seen, k)
		return
	}
}

// text writes a digest; a status is none.
func text(d uint64) string {
	if d < 1000 {
		return ""
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, d))
}

// tap digests what a handler writes. The zero digest is ready for use after
// the first write.
type tap struct {
	http.ResponseWriter
	status int
	size   int64
	broken bool // the client went away: the body is not whole
	digest xxhash.Digest
	begun  bool
}

// WriteHeader notes the status; 1xx are not the answer.
func (t *tap) WriteHeader(status int) {
	if t.status == 0 && status >= 200 {
		t.status = status
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on and digests those of a 200.
func (t *tap) Write(b []byte) (int, error) {
	if t.status == 0 {
		t.status = http.StatusOK
	}
	n, err := t.ResponseWriter.Write(b)
	if t.status == http.StatusOK {
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

// Flush lets handlers stream.
func (t *tap) Flush() {
	if f, ok := t.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }
