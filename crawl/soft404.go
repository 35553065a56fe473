package crawl

import (
	"context"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"net/http"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// isSoft404 reports whether a page is the host's way of saying, with status 200, that there
// is no such page. A host that gave several URLs the same answer is asked for a page that
// cannot exist; its answer is kept with the host. If the host must rest first, the next agent
// asks. A page that has not changed does not count as another URL.
func (a *agent) isSoft404(ctx context.Context, u weburl.URL, before *store.Page, page *extract.Page, now time.Time) bool {
	if !trap.MayBeSoft404(u, page) {
		return false
	}
	d := &a.robot.traps
	if page.Digest != before.Digest && d.RepeatsAnswer(a.host.Name, page.Digest) && now.Sub(a.host.Probed) > trap.NotFoundAge {
		if time.Until(a.host.Next) > politeness.Patience {
			d.SuspectSoft404(a.host.Name, true)
		} else {
			a.probeNotFound(ctx, u, now)
		}
	}
	return trap.EqualsNotFound(a.host.NotFound, page.Simhash)
}

// probeNotFound fetches a page that cannot exist, at a time when the host may be asked.
func (a *agent) probeNotFound(ctx context.Context, u weburl.URL, now time.Time) {
	a.robot.traps.SuspectSoft404(a.host.Name, false)
	name := fnv.New64a()
	_, _ = name.Write([]byte(u.Origin() + now.String()))
	at, err := weburl.Parse(u.Origin() + "/" + hex.EncodeToString(name.Sum(nil)) + ".html")
	if err != nil || !a.access.Allows(at) {
		return
	}
	res, err := a.access.GetAuxiliary(ctx, fetch.Request{URL: at})
	if ctx.Err() != nil || errors.Is(err, politeness.ErrNotSent) {
		return
	}
	if err != nil {
		a.host.Probed = now.Add(time.Hour - trap.NotFoundAge) // in an hour again
		return
	}
	a.host.Probed, a.host.NotFound = now, 0
	if res.Status == http.StatusOK {
		a.host.NotFound = extract.Document(ctx, res.Body, res.Header.Get("Content-Type"), at, extract.Options{}).Simhash
	}
}
