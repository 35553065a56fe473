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

// soft404Probe finds pages by which a host says, with status 200, that there is no such page.
// It belongs to the agent of the host.
type soft404Probe struct {
	detector *trap.Detector
	host     *store.Host
	access   *politeness.Host
}

// matches reports whether a page is the host's way of saying, with status 200, that there
// is no such page. A host that gave several URLs the same answer is asked for a page that
// cannot exist; its answer is kept with the host. If the host must rest first, the next agent
// asks. A page that has not changed does not count as another URL.
func (s *soft404Probe) matches(ctx context.Context, u weburl.URL, before *store.Page, page *extract.Page, now time.Time) bool {
	if !trap.MayBeSoft404(u, page) {
		return false
	}
	d := s.detector
	if page.Digest != before.Digest && d.RepeatsAnswer(s.host.Name, page.Digest) && now.Sub(s.host.Probed) > trap.NotFoundAge {
		if time.Until(s.host.Next) > politeness.Patience {
			d.SuspectSoft404(s.host.Name, true)
		} else {
			s.ask(ctx, u, now)
		}
	}
	return trap.EqualsNotFound(s.host.NotFound, page.Simhash)
}

// ask fetches a page that cannot exist, at a time when the host may be asked.
func (s *soft404Probe) ask(ctx context.Context, u weburl.URL, now time.Time) {
	s.detector.SuspectSoft404(s.host.Name, false)
	name := fnv.New64a()
	_, _ = name.Write([]byte(u.Origin() + now.String()))
	at, err := weburl.Parse(u.Origin() + "/" + hex.EncodeToString(name.Sum(nil)) + ".html")
	if err != nil || !s.access.Allows(at) {
		return
	}
	res, err := s.access.GetAuxiliary(ctx, fetch.Request{URL: at})
	if ctx.Err() != nil || errors.Is(err, politeness.ErrNotSent) {
		return
	}
	if err != nil {
		s.host.Probed = now.Add(time.Hour - trap.NotFoundAge) // in an hour again
		return
	}
	s.host.Probed, s.host.NotFound = now, 0
	if res.Status == http.StatusOK {
		s.host.NotFound = extract.Document(ctx, res.Body, res.Header.Get("Content-Type"), at, extract.Options{}).Simhash
	}
}
