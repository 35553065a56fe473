package crawl

import (
	"context"
	"net/http"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// followToItself follows, once, a redirect whose target is the page itself but for a session
// number or a tracking parameter: that target is never queued, since its canonical form is
// the page. Where the target redirects to the page again, or the host would have to rest for
// long before it, the redirect is returned, which is a loop.
func (a *agent) followToItself(ctx context.Context, u weburl.URL, res *fetch.Response, now time.Time) (*fetch.Response, time.Time, error) {
	to, ok := res.Location(u)
	if !ok || to == u || !a.access.Allows(to) || time.Until(a.host.Next) > politeness.LongPause {
		return res, now, nil
	}
	if c, _ := a.robot.config.Canon.Apply(to); c != u {
		return res, now, nil
	}
	followed, err := a.access.GetAuxiliary(ctx, fetch.Request{URL: to})
	now = time.Now()
	if err != nil {
		return nil, now, err
	}
	a.robot.stats.answer(followed, now)
	if followed.Status == http.StatusNotModified { // it was not asked for on a condition
		return res, now, nil
	}
	return followed, now, nil
}
