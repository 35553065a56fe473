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

	"github.com/freshet/freshet/internal/ratelimit"
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

// Bounds of what one sender may send, and of the memory for telling senders apart.
const (
	perSecond  = 200
	burst      = 20_000
	maxSenders = 10_000
)

// flood allows each sender an average number of notices a second, with a burst.
type flood struct {
	once    sync.Once
	limiter *ratelimit.Limiter
}

func (f *flood) allowSender(sender string, n int) bool {
	f.once.Do(func() { f.limiter = ratelimit.New(perSecond, burst, maxSenders) })
	return f.limiter.AllowN(sender, n)
}

// Times of signed events that say when the change was seen.
const (
	// maxEventAge is how old an event may be, so that a recorded request is of no
	// use for ever, also after a restart.
	maxEventAge = 24 * time.Hour
	// repeatAge is for how long an event is known as a repetition.
	repeatAge  = 10 * time.Minute
	remembered = 100_000
)

// recent remembers the events of the last minutes, to pass each on once: two
// generations of a bounded set.
type recent struct {
	mu       sync.Mutex
	now, old map[[16]byte]struct{}
	since    time.Time // of now
}

// rememberIfNew reports whether an event is not a repetition, and remembers it under the
// key that it returns. Without a time nothing tells a repetition from the next
// change of the page: such an event is always fresh.
func (r *recent) rememberIfNew(e *Event, now time.Time) (key [16]byte, ok bool) {
	if e.Seen.IsZero() {
		return key, true
	}
	sum := sha256.Sum256([]byte(e.URL + "\x00" + e.Event + "\x00" + e.Digest + "\x00" + e.ETag + "\x00" + e.Seen.UTC().Format(time.RFC3339Nano)))
	key = [16]byte(sum[:16])
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil || len(r.now) >= remembered || now.Sub(r.since) > repeatAge {
		if now.Sub(r.since) > 2*repeatAge {
			r.now = nil
		}
		r.old, r.now, r.since = r.now, map[[16]byte]struct{}{}, now
	}
	if _, ok := r.now[key]; ok {
		return key, false
	}
	if _, ok := r.old[key]; ok {
		return key, false
	}
	r.now[key] = struct{}{}
	return key, true
}

// forgetEvents takes events out again, whose delivery failed.
func (r *recent) forgetEvents(keys [][16]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		delete(r.now, k)
		delete(r.old, k)
	}
}
