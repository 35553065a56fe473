package politeness

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Pace is how fast a host may be asked, by the configuration and by the sources that name
// it.
type Pace struct {
	Delay       time.Duration // least delay, before popularity
	Fixed       bool          // Delay is a source's own: popularity does not change it
	NoPause     bool          // the operator lets the robot ask without any pause
	Connections int           // requests at once; above 1 only with NoPause
}

// Delays are the bounds of how long hosts rest between two requests.
type Delays struct {
	Delay time.Duration // least delay of public hosts
	// DelayPopular is the least delay of hosts with popularHost pages and more; from
	// smallHost pages on it falls from Delay to it. 0 makes no difference between hosts.
	DelayPopular time.Duration
	DelayFactor  float64       // delay in response times
	MaxDelay     time.Duration // of Crawl-delay and back-off
}

// Between these numbers of pages the least delay of a host goes from Delay to DelayPopular.
const (
	smallHost   = 100
	popularHost = 10_000
)

// popularityDelay returns the least delay of a host with a number of pages. A host of many
// pages is a server made for many visitors: it may be asked more often than a small one, in
// even steps of the logarithms of both.
func (d *Delays) popularityDelay(pages int64) time.Duration {
	if pages <= smallHost || d.DelayPopular <= 0 || d.DelayPopular >= d.Delay {
		return d.Delay
	}
	x := math.Log(float64(min(pages, popularHost))/smallHost) / math.Log(popularHost/smallHost)
	return time.Duration(math.Pow(float64(d.Delay), 1-x) * math.Pow(float64(d.DelayPopular), x))
}

// Min returns the least delay of a host with a number of pages.
func (d *Delays) Min(p Pace, pages int64) time.Duration {
	if p.NoPause || p.Fixed {
		return p.Delay
	}
	return d.popularityDelay(pages)
}

// After returns the delay of a host with a number of pages and a response time.
func (d *Delays) After(p Pace, pages int64, response time.Duration) time.Duration {
	if p.NoPause {
		return 0
	}
	return min(max(d.Min(p, pages), time.Duration(d.DelayFactor*float64(response))), d.MaxDelay)
}

// MaxRetries is how often in a row a request that fails is tried soon again.
const MaxRetries = 3

// RetryDelay is the wait before try n+1: 2, 4, 8 seconds ...
func RetryDelay(n int) time.Duration { return time.Second << min(max(n, 1), 10) }

// IsOverloaded reports whether a status says that the host has too much to do.
func IsOverloaded(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// retryAfter reads the seconds or the date of a Retry-After header; 0 is none.
func retryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if s, err := strconv.Atoi(v); err == nil && s >= 0 || errors.Is(err, strconv.ErrRange) && s > 0 {
		return time.Duration(min(s, 365*24*3600)) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return t.Sub(now)
	}
	return 0
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
