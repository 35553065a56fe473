package crawl

import (
	"context"
	"errors"
	"fmt"
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
// floor by the host's popularity; the last two not where a source lets the robot ask
// without a pause.
func (a *agent) polite(u weburl.URL, res *fetch.Response, now time.Time) {
	h := &a.host
	if !refuses(res.Status) {
		h.Failures, h.Reason, h.Error = 0, "", ""
	}
	h.Fetched++
	if h.Response == 0 {
		h.Response = res.First
	} else {
		h.Response += (res.First - h.Response) / 8
	}
	c := &a.robot.config
	h.Delay = a.robot.delayAfter(a.ownPace(), h.Pages, h.Response)
	if a.rules != nil {
		h.Delay = max(h.Delay, min(a.rules.Delay, c.MaxDelay))
	}
	a.rest(now.Add(h.Delay))
}

// refuses reports whether an answer says that the host has too much to do.
func refuses(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// errBudget is the error of a request for which there is no budget: one that is
// shared, and cannot be reached.
var errBudget = fmt.Errorf("%w: the budget of requests cannot be reached", errGaveUp)

// beside sends a request that is no page: within the budget, and when the time of its
// host has come. However it ends, the host rests after it.
func (a *agent) beside(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	r := a.robot
	if req.Private = a.private || r.PermitsURL(req.URL); req.URL.Host() != a.host.Name {
		req.Private = r.PermitsURL(req.URL)
		same := a.sameServer(ctx, req.URL)
		if wait := time.Until(a.host.Next); same && wait > 0 && !pause(ctx, min(wait, maxAuxiliaryWait)) {
			return nil, ctx.Err()
		}
		res, err := a.askOther(ctx, req)
		if same && !errors.Is(err, errGaveUp) {
			a.restAfterRequest()
		}
		return res, err
	}
	if wait := time.Until(a.host.Next); wait > 0 && !pause(ctx, wait) {
		return nil, ctx.Err()
	}
	if !r.budget.wait(ctx) {
		return nil, errBudget
	}
	res, err := a.ask(ctx, req)
	if err != nil {
		if !errors.Is(err, errGaveUp) {
			a.restAfterRequest()
		}
		return nil, err
	}
	now := time.Now()
	a.polite(req.URL, res, now)
	if refuses(res.Status) {
		a.overload(res, now)
	}
	r.budget.spent(res.Wire + headerBytes)
	return res, nil
}

// askOther sends an auxiliary request to another host. While it waits the agent does not
// count among those that fetch, so that hosts with long delays hold up no others.
func (a *agent) askOther(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	r := a.robot
	resting := func(n int) {
		r.mu.Lock()
		r.resting += n
		r.mu.Unlock()
		r.Wake()
	}
	resting(1)
	defer resting(-1)
	return r.fetchAuxiliary(ctx, req, a.places)
}

// overload heeds 429 and 503: the whole host rests, for as long as it asks for or
// the longer the more often it has to.
func (a *agent) overload(res *fetch.Response, now time.Time) {
	h := &a.host
	if a.ownPace().connections < 2 || h.Reason != store.ReasonOverloaded || !now.Before(a.gate().restsUntil()) { // else it refuses several requests that were sent together
		h.Failures++
	}
	h.Reason, h.Error = store.ReasonOverloaded, "status "+strconv.Itoa(res.Status)
	wait := retryAfter(res.Header.Get("Retry-After"), now)
	if wait <= 0 {
		wait = max(5*h.Delay, retryDelay(h.Failures+1))
	}
	a.rest(now.Add(min(wait, a.robot.config.MaxDelay)))
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
		a.rest(a.host.Next.Add(more))
	}
}

// use compiles the rules, or takes them from the cache.
func (a *agent) use(u weburl.URL, rb *store.Robots) *robots.File {
	a.scheme = u.Scheme()
	a.noRules = rb.Failed()
	a.askRobots = RobotsNext(rb).Add(time.Millisecond) // queues round down to milliseconds
	if a.noRules {
		a.askRobots = later(a.askRobots, a.host.Next) // Retry-After
	}
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
		if allowed, err := a.mayReadRobots(ctx, at); err != nil {
			return nil, err
		} else if !allowed {
			break
		}
		res, err := a.beside(ctx, fetch.Request{URL: at, Accept: acceptRobots})
		if ctx.Err() != nil || errors.Is(err, errGaveUp) {
			return nil, a.waitForRobots(at, err)
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
			if at.Host() != a.host.Name && at.Target() == robotsPath && !rb.Failed() {
				a.robot.slowDownHost(at.Host(), robots.Parse(rb.Body, a.robot.config.Token).Delay)
			}
			return rb, nil
		}
		at = to
	}
	rb.Status = http.StatusNotFound // endless redirects count as none
	return rb, nil
}

const (
	robotsPath   = "/robots.txt"
	acceptRobots = "text/plain,*/*;q=0.5"
)

// mayReadRobots reports whether a robots.txt may be read where a redirect led: on
// another host only as its own rules allow, for it need not be the robots.txt of that
// host. An error says that its rules cannot be asked for now.
func (a *agent) mayReadRobots(ctx context.Context, at weburl.URL) (bool, error) {
	if at.Host() == a.host.Name || at.Target() == robotsPath {
		return true, nil
	}
	rules := a.robot.foreignRules(ctx, at, a.places)
	if rules == nil {
		return false, a.waitForRobots(at, ErrHostRests)
	}
	return rules.Allowed(at.Target()), nil
}

// waitForRobots puts the agent's host off, where the host to which its robots.txt
// redirects has to be waited for.
func (a *agent) waitForRobots(at weburl.URL, err error) error {
	if errors.Is(err, ErrHostRests) && at.Host() != a.host.Name {
		wait := a.robot.servers.putOff("robots.txt at "+at.Host(), a.host.Name, time.Second, time.Now())
		a.host.Next = later(a.host.Next, time.Now().Add(wait))
	}
	return err
}

// robotsError notes that there was no answer, and returns the kind of the error.
func (a *agent) robotsError(at weburl.URL, err error) fetch.Kind {
	kind := a.robot.unanswered(at.String(), err)
	if kind == fetch.Private { // nobody was asked
		return kind
	}
	a.host.Failures++
	a.host.Reason, a.host.Error = store.ReasonRobotsNoAnswer, "robots.txt: "+string(kind)
	a.rest(time.Now().Add(min(retryDelay(a.host.Failures), a.robot.config.MaxDelay)))
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
	good    time.Duration // for which it counts
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

// fresh is peek for rules that are young enough to count.
func (c *robotsCache) fresh(origin string) *robots.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of[origin]
	if e.file == nil || time.Since(e.fetched) > e.good {
		return nil
	}
	return e.file
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
	c.of[origin] = compiled{f, rb.Fetched, robotsGood(rb)}
	return f
}
