package politeness

import (
	"testing"
	"time"
)

// The least delay falls from Delay to DelayPopular between 100 and 10,000 pages.
func TestPopularityDelay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		popular time.Duration
		pages   int64
		want    time.Duration
	}{
		{250 * time.Millisecond, 0, time.Second},
		{250 * time.Millisecond, 100, time.Second},
		{250 * time.Millisecond, 1000, 500 * time.Millisecond},
		{250 * time.Millisecond, 10_000, 250 * time.Millisecond},
		{250 * time.Millisecond, 1e9, 250 * time.Millisecond},
		{0, 1e9, time.Second},
		{2 * time.Second, 1e9, time.Second},
	} {
		d := Delays{Delay: time.Second, DelayPopular: tt.popular}
		if got := d.popularityDelay(tt.pages).Round(time.Microsecond); got != tt.want {
			t.Errorf("%d pages, popular hosts %v: %v, want %v", tt.pages, tt.popular, got, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{"5": 5 * time.Second, " 7 ": 7 * time.Second, "Thu, 01 Jan 2026 00:01:00 GMT": time.Minute, "soon": 0, "-3": 0, "": 0, "99999999999999999999": 365 * 24 * time.Hour, "-99999999999999999999": 0} {
		if got := retryAfter(v, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", v, got, want)
		}
	}
}
