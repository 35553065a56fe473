package politeness

import (
	"net/http"
	"testing"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
)

// ownHost returns the access to a host whose least delay is a second.
func ownHost(record *store.Host, maxDelay time.Duration) *Host {
	return NewClient(Config{Sources: oneSource(""), Delays: Delays{Delay: time.Second, DelayFactor: 5, MaxDelay: maxDelay}}).Own(record)
}

// A host that has too much to do is left alone for longer each time it says so,
// whichever page it was asked for, until it answers otherwise.
func TestOverloaded(t *testing.T) {
	t.Parallel()
	record := &store.Host{Name: "h.example"}
	h := ownHost(record, 20*time.Second)
	for i, step := range []struct {
		status int
		after  string // Retry-After
		want   time.Duration
	}{
		{503, "", 5 * time.Second},
		{429, "", 8 * time.Second},
		{503, "", 16 * time.Second},
		{503, "", 20 * time.Second},
		{200, "", time.Second},
		{503, "", 5 * time.Second},
		{503, "7", 7 * time.Second},
		{404, "", time.Second},
	} {
		now := time.Now()
		res := &fetch.Response{Status: step.status, Header: http.Header{"Retry-After": {step.after}}}
		if h.Answered(res, now); IsOverloaded(step.status) {
			h.Overloaded(res, now)
		}
		if rest := record.Next.Sub(now); rest != step.want {
			t.Errorf("step %d, status %d: the host rests %v, want %v", i, step.status, rest, step.want)
		}
	}
}

// A request without an answer lets the host rest: for its delay if the page is to blame, and
// for longer each time if the host is.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	const delay = 1500 * time.Millisecond
	for _, tt := range []struct {
		kind         fetch.Kind
		hostFailures int // before
		pageFailures int // with this one
		rest         time.Duration
		failures     int
	}{
		{fetch.Private, 0, 1, 0, 0}, // nobody was asked
		{fetch.Bomb, 0, 1, delay, 0},
		{fetch.Header, 3, 1, delay, 3},
		{fetch.Timeout, 0, 1, delay, 1}, // one page that hangs
		{fetch.Timeout, 1, 1, 4 * time.Second, 2},
		{fetch.Reset, 1, 2, delay, 1}, // the same page again
		{fetch.Refused, 0, 1, 2 * time.Second, 1},
		{fetch.Refused, 2, 5, 8 * time.Second, 3},
		{fetch.DNS, 9, 1, 20 * time.Second, 10},
	} {
		record := &store.Host{Name: "h.example", Delay: delay, Failures: tt.hostFailures}
		now := time.Now()
		ownHost(record, 20*time.Second).NoAnswer(tt.kind, tt.pageFailures, now)
		rest := time.Duration(0)
		if !record.Next.IsZero() {
			rest = record.Next.Sub(now)
		}
		if rest != tt.rest || record.Failures != tt.failures {
			t.Errorf("%s, host failed %d times, page %d times: got a rest of %v and %d failures, want %v and %d", tt.kind, tt.hostFailures, tt.pageFailures, rest, record.Failures, tt.rest, tt.failures)
		}
	}
}
