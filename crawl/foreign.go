package crawl

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

// foreignRules returns the rules of a host that is asked for something without being
// the agent's own, or nil while they cannot be had. They are taken from the host's
// record if that has them, and kept in the cache, as long as those of the robot's own
// hosts; a robots.txt is asked for once at a time. has are the places that the agent
// behind the request holds.
func (r *Robot) foreignRules(ctx context.Context, u weburl.URL, has *held) *robots.File {
	origin := u.Origin()
	if f := r.robots.fresh(origin); f != nil {
		return f
	}
	f, err, _ := r.asksRules.Do(origin, func() (any, error) {
		if f := r.robots.fresh(origin); f != nil {
			return f, nil
		}
		rb := r.robotsOfRecord(ctx, u)
		if rb == nil {
			var err error
			if rb, err = r.fetchForeignRobots(ctx, u, has); err != nil {
				return (*robots.File)(nil), err
			}
		}
		f := r.robots.get(origin, rb, r.config.Token)
		r.slowDownHost(u.Host(), f.Delay)
		return f, nil
	})
	if err != nil {
		return nil
	}
	return f.(*robots.File)
}

// robotsOfRecord returns the robots.txt in the record of a host, or nil.
func (r *Robot) robotsOfRecord(ctx context.Context, u weburl.URL) *store.Robots {
	h := r.hostRecord(ctx, u.Host())
	if h == nil {
		return nil
	}
	for i := range h.Robots {
		if rb := &h.Robots[i]; rb.Scheme == u.Scheme() && time.Since(rb.Fetched) < robotsGood(rb) {
			return rb
		}
	}
	return nil
}

// fetchForeignRobots gets the robots.txt of a host that the robot does not work.
// Redirects are followed on that host only: one that leads elsewhere counts as no
// file. An error says that we gave up.
func (r *Robot) fetchForeignRobots(ctx context.Context, u weburl.URL, has *held) (*store.Robots, error) {
	rb := &store.Robots{Scheme: u.Scheme(), Fetched: time.Now(), Tries: maxRetries}
	at, err := weburl.Parse(u.Origin() + robotsPath)
	if err != nil {
		return rb, nil //nolint:nilerr // as one that cannot be had
	}
	for range robotsRedirects + 1 {
		res, err := r.fetchAuxiliary(ctx, fetch.Request{URL: at, Accept: acceptRobots, Private: r.PermitsURL(at)}, has)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errGaveUp):
			return nil, err
		case err != nil:
			return rb, nil //nolint:nilerr // as one that cannot be had
		}
		r.stats.bytes.Add(res.Wire)
		to, ok := res.Location(at)
		if !ok {
			rb.Status = res.Status
			if res.Status >= 200 && res.Status < 300 {
				rb.Body = res.Body[:min(len(res.Body), robots.MaxSize+1)]
			}
			return rb, nil
		}
		if to.Host() != at.Host() {
			break
		}
		at = to
	}
	rb.Status = http.StatusNotFound
	return rb, nil
}
