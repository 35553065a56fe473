package crawl

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/robots"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// robotsAge is how long a robots.txt is believed (RFC 9309 allows a day).
const robotsAge = 24 * time.Hour

// robotsRetry is when a robots.txt that could not be had is asked for again,
// after the first tries, which follow each other in seconds.
const robotsRetry = 10 * time.Minute

// robotsGood is how long a robots.txt counts.
func robotsGood(rb *store.Robots) time.Duration {
	switch {
	case !rb.Failed():
		return robotsAge
	case rb.Tries < maxRetries:
		return retryDelay(rb.Tries)
	}
	return robotsRetry
}

// RobotsNext is when a robots.txt is asked for again if a page of its host is due
// then.
func RobotsNext(rb *store.Robots) time.Time { return rb.Fetched.Add(robotsGood(rb)) }

// polite smooths the host's response time and sets when it may be asked next:
// the largest of robots.txt's Crawl-delay, DelayFactor response times, and the
// floor by the host's popularity, which loopback hosts do not have.
func (a *agent) polite(u weburl.URL, res *fetch.Response, now time.Time) {
	h := &a.host
	if !refuses(res.Status) {
		h.Failures, h.Error = 0, ""
	}
	h.Fetched++
	if h.Response == 0 {
		h.Response = res.First
	} else {
		h.Response += (res.First - h.Response) / 8
	}
	c := &a.robot.config
	if Loopback(u.Hostname()) && !c.DelayGiven {
		h.Delay = 0
	} else {
		h.Delay = min(max(c.floor(h.Pages), time.Duration(c.DelayFactor*float64(h.Response))), c.MaxDelay)
	}
	if a.rules != nil {
		h.Delay = max(h.Delay, min(a.rules.Delay, c.MaxDelay))
	}
	h.Next = now.Add(h.Delay)
}

// refuses reports whether an answer says that the host has too much to do.
func refuses(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// errBudget is the error of a request for which there is no budget: one that is
// shared, and cannot be reached.
var errBudget = errors.New("the budget of requests cannot be reached")

// beside sends a request that is no page: within the budget, and if it is to the
// agent's host, when its time has come. However it ends, the host rests after it.
func (a *agent) beside(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	r, own := a.robot, req.URL.Host() == a.host.Name
	if wait := time.Until(a.host.Next); own && wait > 0 && !pause(ctx, wait) {
		return nil, ctx.Err()
	}
	if !r.budget.wait(ctx) {
		return nil, errBudget
	}
	res, err := r.config.Fetch.Get(ctx, req)
	now := time.Now()
	switch {
	case err == nil && own:
		a.polite(req.URL, res, now)
		if refuses(res.Status) {
			a.overload(res, now)
		}
	case own:
		a.host.Next = later(a.host.Next, now.Add(a.host.Delay))
	}
	if err != nil {
		return nil, err
	}
	r.budget.spent(res.Wire + headerBytes)
	return res, nil
}

// overload heeds 429 and 503: the whole host rests, for as long as it asks for or
// the longer the more often it has to.
func (a *agent) overload(res *fetch.Response, now time.Time) {
	h := &a.host
	h.Failures++
	h.Error = "status " + strconv.Itoa(res.Status)
	wait := retryAfter(res.Header.Get("Retry-After"), now)
	if wait <= 0 {
		wait = max(5*h.Delay, retryDelay(h.Failures+1))
	}
	h.Next = now.Add(min(wait, a.robot.config.MaxDelay))
}

// retryAfter reads seconds or a date.
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

// Between so many pages the least delay of a host goes from Delay to
// DelayPopular.
const (
	smallHost   = 100
	popularHost = 10_000
)

// floor is the least delay of a host with so many pages. A host of many pages
// is a server made for many visitors: it may be asked more often than a small
// one, in even steps of the logarithms of both.
func (c *Config) floor(pages int64) time.Duration {
	if pages <= smallHost || c.DelayPopular <= 0 || c.DelayPopular >= c.Delay {
		return c.Delay
	}
	x := math.Log(float64(min(pages, popularHost))/smallHost) / math.Log(popularHost/smallHost)
	return time.Duration(math.Pow(float64(c.Delay), 1-x) * math.Pow(float64(c.DelayPopular), x))
}

// Loopback reports whether a host name means this machine.
func Loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// PublicName reports whether a host name may be a public server: not an address
// of a private network and not a loopback name.
func PublicName(host string) bool {
	if Loopback(host) {
		return false
	}
	a, err := netip.ParseAddr(host)
	return err != nil || fetch.Public(a)
}

// robotsFor loads the rules of the URL's origin, fetching robots.txt if what
// the host's record has is too old. It reports false when the host must rest.
func (a *agent) robotsFor(ctx context.Context, u weburl.URL) (bool, error) {
	if a.rules != nil && a.scheme == u.Scheme() {
		return true, nil
	}
	now := time.Now()
	for i := range a.host.Robots {
		rb := &a.host.Robots[i]
		if rb.Scheme == u.Scheme() && now.Sub(rb.Fetched) < robotsGood(rb) && !rb.Fetched.After(now) && !(rb.Failed() && rb.Fetched.Before(a.robot.started)) {
			a.use(u, rb)
			return true, nil
		}
	}
	a.rules = nil
	rb, err := a.fetchRobots(ctx, u)
	if err != nil {
		return false, nil //nolint:nilerr // we gave up, not the server
	}
	if rb.Failed() {
		rb.Tries, rb.Since = 1, rb.Fetched
	}
	kept := a.host.Robots[:0:0]
	for _, old := range a.host.Robots {
		if old.Scheme != rb.Scheme {
			kept = append(kept, old)
		} else if rb.Failed() && old.Failed() {
			rb.Tries += old.Tries
			if !old.Since.IsZero() {
				rb.Since = old.Since
			}
		}
	}
	a.host.Robots = append(kept, *rb)
	f := a.use(u, rb)
	a.slowDown(f.Delay)
	for _, s := range f.Sitemaps {
		if to, err := u.Resolve(s); err == nil {
			a.found(&store.Page{URL: u.Origin() + "/robots.txt"}, to, 0, time.Time{})
		}
	}
	return true, nil
}

// slowDown lets a delay that was just read hold from the request that brought it.
func (a *agent) slowDown(delay time.Duration) {
	if more := min(delay, a.robot.config.MaxDelay) - a.host.Delay; more > 0 {
		a.host.Delay += more
		a.host.Next = a.host.Next.Add(more)
	}
}

// use compiles the rules, or takes them from the cache.
func (a *agent) use(u weburl.URL, rb *store.Robots) *robots.File {
	a.scheme = u.Scheme()
	a.noRules = rb.Failed()
	a.ask = RobotsNext(rb).Add(time.Millisecond) // queues round down to milliseconds
	a.rules = a.robot.robots.get(u.Origin(), rb, a.robot.config.Token)
	return a.rules
}

// robotsRedirects is how many redirects of robots.txt are followed (RFC 9309:
// at least five).
const robotsRedirects = 5

// fetchRobots gets a robots.txt with its redirects. An error says that we gave up,
// of which the host knows nothing.
func (a *agent) fetchRobots(ctx context.Context, u weburl.URL) (*store.Robots, error) {
	rb := &store.Robots{Scheme: u.Scheme(), Fetched: time.Now()}
	at, err := weburl.Parse(u.Origin() + "/robots.txt")
	if err != nil {
		return rb, nil //nolint:nilerr // as one that cannot be had
	}
	for range robotsRedirects + 1 {
		res, err := a.beside(ctx, fetch.Request{URL: at, Accept: "text/plain,*/*;q=0.5"})
		if ctx.Err() != nil || errors.Is(err, errBudget) {
			return nil, err
		}
		if err != nil {
			rb.Why = string(a.robotsError(at, err))
			return rb, nil
		}
		to, ok := res.Location(at)
		if !ok {
			rb.Status = res.Status
			if res.Status >= 200 && res.Status < 300 {
				rb.Body = res.Body[:min(len(res.Body), robots.MaxSize+1)] // a byte more tells that it was cut
			}
			return rb, nil
		}
		at = to
	}
	rb.Status = http.StatusNotFound // endless redirects count as none
	return rb, nil
}

// robotsError notes that there was no answer, and returns the kind of the error.
func (a *agent) robotsError(at weburl.URL, err error) fetch.Kind {
	kind := a.robot.noAnswer(at.String(), err)
	if kind == fetch.Private { // nobody was asked
		return kind
	}
	a.host.Failures++
	a.host.Error = "robots.txt: " + string(kind)
	a.host.Next = time.Now().Add(min(retryDelay(a.host.Failures), a.robot.config.MaxDelay))
	return kind
}

// robotsCache keeps compiled rules of hosts worked lately.
type robotsCache struct {
	mu   sync.Mutex
	of   map[string]compiled
	size int // of the files
}

type compiled struct {
	file    *robots.File
	fetched time.Time
}

// So many files, of so many bytes in all, are in the cache; when it is full it
// starts anew.
const (
	cachedRobots      = 10_000
	cachedRobotsBytes = 16 << 20
)

// peek returns the rules of an origin, or nil if they are not in the cache.
func (c *robotsCache) peek(origin string) *robots.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[origin].file
}

func (c *robotsCache) get(origin string, rb *store.Robots, token string) *robots.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.of[origin]; ok && e.fetched.Equal(rb.Fetched) {
		return e.file
	}
	if c.of == nil || len(c.of) >= cachedRobots || c.size+len(rb.Body) > cachedRobotsBytes {
		c.of, c.size = map[string]compiled{}, 0
	}
	c.size += len(rb.Body)
	f := &robots.File{}
	switch {
	case rb.Status >= 200 && rb.Status < 300:
		f = robots.Parse(rb.Body, token)
	case rb.Failed():
		f = robots.DisallowAll()
	}
	c.of[origin] = compiled{f, rb.Fetched}
	return f
}
