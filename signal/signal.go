// Package signal receives notices that pages changed: IndexNow, and signed
// events of sensors, as HTTP handlers to mount in a server.
//
// A notice is a hint to look, never content: the page is fetched as any other,
// when its host's politeness allows. What arrives is checked (key file or
// signature), bounded in size and rate, and given to a Sink once; a sender that
// repeats itself after a lost answer does no harm.
package signal

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Event says that a page changed.
type Event struct {
	URL    string    `json:"url"`
	Event  string    `json:"event,omitempty"`  // updated, deleted
	Digest string    `json:"digest,omitempty"` // of the content now
	Prev   string    `json:"prev,omitempty"`   // of the content before
	ETag   string    `json:"etag,omitempty"`
	Size   int64     `json:"size,omitempty"`
	Seen   time.Time `json:"seen,omitzero"` // when the sensor saw it
}

// Sink takes events. It returns how many were of pages that it keeps.
type Sink interface {
	Changed(ctx context.Context, source string, events []Event) (taken int, err error)
}

// Sign returns the signature of a body: HMAC-SHA256 in hexadecimal.
func Sign(secret string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

// flood allows each sender so many notices a second, with a burst.
type flood struct {
	mu sync.Mutex
	of map[string]*rate.Limiter
}

// Bounds of what one sender may send, and of the memory for telling senders apart.
const (
	perSecond  = 200
	burst      = 20_000
	maxSenders = 10_000
)

func (f *flood) allow(sender string, n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil || len(f.of) >= maxSenders {
		f.of = map[string]*rate.Limiter{}
	}
	l := f.of[sender]
	if l == nil {
		l = rate.NewLimiter(perSecond, burst)
		f.of[sender] = l
	}
	return l.AllowN(time.Now(), n)
}

// recent remembers the last events, to pass each on once: two generations of a
// bounded set.
type recent struct {
	mu       sync.Mutex
	now, old map[[16]byte]struct{}
}

const remembered = 100_000

// fresh reports whether an event was not seen lately, and remembers it.
func (r *recent) fresh(e *Event) bool {
	sum := sha256.Sum256([]byte(e.URL + "\x00" + e.Event + "\x00" + e.Digest + "\x00" + e.ETag + "\x00" + e.Seen.UTC().Format(time.RFC3339Nano)))
	k := [16]byte(sum[:16])
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.now[k]; ok {
		return false
	}
	if _, ok := r.old[k]; ok {
		return false
	}
	if r.now == nil || len(r.now) >= remembered {
		r.old, r.now = r.now, map[[16]byte]struct{}{}
	}
	r.now[k] = struct{}{}
	return true
}

// forget takes events out again, whose delivery failed.
func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.old = nil, nil
}
