package politeness

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/robots"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// ForgetRules drops the rules in use: the next LoadRules takes them from the record, or asks
// for them.
func (h *Host) ForgetRules() { h.rules = nil }

// Allows reports whether the rules in use allow a URL of the host; false without rules.
func (h *Host) Allows(u weburl.URL) bool { return h.rules != nil && h.rules.Allowed(u.Target()) }

// RulesUnavailable reports whether robots.txt is unavailable, so that nothing may be fetched,
// and when it is asked for again.
func (h *Host) RulesUnavailable() (unavailable bool, askedAgain time.Time) {
	return h.rulesUnavailable, h.askRobots
}

// LoadRules makes the rules of the URL's origin those in use. It fetches robots.txt if the
// record's file is too old; then sitemaps are those that the file names. It reports false if
// the host must rest first.
func (h *Host) LoadRules(ctx context.Context, u weburl.URL) (ready bool, sitemaps []weburl.URL) {
	if h.rules != nil && h.scheme == u.Scheme() {
		return true, nil
	}
	now := time.Now()
	for i := range h.record.Robots {
		rb := &h.record.Robots[i]
		if rb.Scheme == u.Scheme() && now.Sub(rb.Fetched) < robotsValidity(rb) && !rb.Fetched.After(now) && !(rb.Failed() && rb.Fetched.Before(h.client.started)) {
			h.UseRobots(u, rb)
			return true, nil
		}
	}
	h.rules = nil
	rb, err := h.fetchRobots(ctx, u)
	if err != nil {
		return false, nil // we gave up, not the server
	}
	h.recordRobots(rb)
	h.UseRobots(u, rb)
	if more := min(h.rules.Delay, h.client.config.Delays.MaxDelay) - h.record.Delay; more > 0 { // it holds from this request on
		h.record.Delay += more
		h.Rest(h.record.Next.Add(more))
	}
	for _, s := range h.rules.Sitemaps {
		if to, err := u.Resolve(s); err == nil {
			sitemaps = append(sitemaps, to)
		}
	}
	return true, sitemaps
}

// recordRobots replaces the record's robots.txt of the same scheme. Tries that failed are
// counted on.
func (h *Host) recordRobots(rb *store.Robots) {
	if rb.Failed() {
		rb.Tries, rb.Since = 1, rb.Fetched
	}
	kept := h.record.Robots[:0:0]
	for _, old := range h.record.Robots {
		if old.Scheme != rb.Scheme {
			kept = append(kept, old)
		} else if rb.Failed() && old.Failed() {
			rb.Tries += old.Tries
			if !old.Since.IsZero() {
				rb.Since = old.Since
			}
		}
	}
	h.record.Robots = append(kept, *rb)
}

// UseRobots compiles a robots.txt of the URL's origin, or takes its rules from the cache.
func (h *Host) UseRobots(u weburl.URL, rb *store.Robots) {
	h.scheme = u.Scheme()
	h.rulesUnavailable = rb.Failed()
	h.askRobots = RobotsNext(rb).Add(time.Millisecond) // queues round down to milliseconds
	if h.rulesUnavailable {
		h.askRobots = later(h.askRobots, h.record.Next) // Retry-After
	}
	h.rules = h.client.rules.compile(u.Origin(), rb, h.client.config.Token)
}

// fetchRobots gets a robots.txt with its redirects. An error says that we gave up, of which
// the host knows nothing.
func (h *Host) fetchRobots(ctx context.Context, u weburl.URL) (*store.Robots, error) {
	rb := &store.Robots{Scheme: u.Scheme(), Fetched: time.Now()}
	at, err := weburl.Parse(u.Origin() + robotsPath)
	if err != nil {
		return rb, nil //nolint:nilerr // as one that is unavailable
	}
	for range robotsRedirects + 1 {
		if allowed, err := h.mayReadRobots(ctx, at); err != nil {
			return nil, err
		} else if !allowed {
			break
		}
		res, err := h.GetAuxiliary(ctx, fetch.Request{URL: at, Accept: acceptRobots})
		if ctx.Err() != nil || errors.Is(err, ErrNotSent) {
			return nil, h.putOffForRobots(at, err)
		}
		if err != nil {
			rb.Why = string(h.robotsFailed(at, err))
			return rb, nil
		}
		to, ok := res.Location(at)
		if !ok {
			rb.Status = res.Status
			if res.Status >= 200 && res.Status < 300 {
				rb.Body = res.Body[:min(len(res.Body), robots.MaxSize+1)] // a byte more shows that it was cut
			}
			if at.Host() != h.record.Name && at.Target() == robotsPath && !rb.Failed() {
				h.client.slowDownHost(at.Host(), robots.Parse(rb.Body, h.client.config.Token).Delay)
			}
			return rb, nil
		}
		at = to
	}
	rb.Status = http.StatusNotFound // endless redirects count as none
	return rb, nil
}

// mayReadRobots reports whether a robots.txt may be read where a redirect led: on another
// host only as its own rules allow, for the file need not be the robots.txt of that host. An
// error says that its rules cannot be asked for now.
func (h *Host) mayReadRobots(ctx context.Context, at weburl.URL) (bool, error) {
	if at.Host() == h.record.Name || at.Target() == robotsPath {
		return true, nil
	}
	rules := h.client.foreignRules(ctx, at, h.slots)
	if rules == nil {
		return false, h.putOffForRobots(at, ErrHostRests)
	}
	return rules.Allowed(at.Target()), nil
}

// putOffForRobots puts the host off if the host to which its robots.txt redirects has to be
// waited for.
func (h *Host) putOffForRobots(at weburl.URL, err error) error {
	if errors.Is(err, ErrHostRests) && at.Host() != h.record.Name {
		wait := h.client.servers.putOff("robots.txt at "+at.Host(), h.record.Name, time.Second, time.Now())
		h.record.Next = later(h.record.Next, time.Now().Add(wait))
	}
	return err
}

// robotsFailed notes that there was no answer, and returns the kind of the error.
func (h *Host) robotsFailed(at weburl.URL, err error) fetch.Kind {
	h.client.config.Observer.RequestFailed(at.String(), err)
	kind, _ := KindOf(err)
	if kind == fetch.Private { // nobody was asked
		return kind
	}
	r := h.record
	r.Failures++
	r.Reason, r.Error = store.ReasonRobotsNoAnswer, "robots.txt: "+string(kind)
	h.Rest(time.Now().Add(min(RetryDelay(r.Failures), h.client.config.Delays.MaxDelay)))
	return kind
}
