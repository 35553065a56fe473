package crawl

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// A conditional GET costs one round trip whether or not the page changed. Some
// servers send validators and ignore the conditions made of them: each visit
// costs the whole body. Where that was seen, a HEAD goes first if it saves bytes
// in the mean.
const (
	// ignoredMost is how many answers in a row must have brought a page again, with
	// the validator that was asked about, before a HEAD goes first.
	ignoredMost = 3
	// conditionsAgain is how often a condition is tried all the same: of so many
	// answers once, for a server that has learned.
	conditionsAgain = 32
	// headless marks a host whose validators or whose answers to HEAD say nothing.
	headless = -1
)

// conditions notes what became of the conditions of a visit, at the host.
func (a *agent) conditions(asked fetch.Request, res *fetch.Response, same bool) {
	h := &a.host
	switch {
	case asked.ETag == "" && asked.LastModified == "" || h.Ignored == headless:
	case res.Status == http.StatusNotModified:
		h.Ignored = 0
	case !validated(asked, res):
	case same:
		h.Ignored = min(h.Ignored+1, ignoredMost)
	default: // another page with the same validator
		h.Ignored = headless
	}
}

// validated reports whether an answer has the validators that were asked about.
func validated(asked fetch.Request, res *fetch.Response) bool {
	if tag := res.Header.Get("ETag"); tag != "" || asked.ETag != "" {
		return tag == asked.ETag
	}
	date := res.Header.Get("Last-Modified")
	return date != "" && date == asked.LastModified
}

// heads reports whether a HEAD saves bytes: the body that it spares with the
// probability that the page is as it was, against its own header. It must spare
// a body more often than not, for it costs a request.
func (a *agent) heads(p *store.Page, asked fetch.Request) bool {
	if a.host.Ignored < ignoredMost || asked.ETag == "" && asked.LastModified == "" || a.host.Fetched%conditionsAgain == 0 {
		return false
	}
	b := p.History.Belief(a.prior(p))
	fresh := b.Fresh(max(0, time.Since(p.History.Last).Seconds()))
	return fresh > .5 && fresh*float64(p.Bytes) > politeness.HeaderBytes
}

// request asks for a page: conditionally, and where the host ignores conditions by a
// HEAD first. What the HEAD found unchanged is answered as not modified.
func (a *agent) request(ctx context.Context, p *store.Page, u weburl.URL, req fetch.Request) (*fetch.Response, error) {
	r := a.robot
	if !a.heads(p, req) {
		return a.access.Get(ctx, req)
	}
	ask := req
	ask.Head, ask.Room = true, nil
	res, err := a.access.Get(ctx, ask)
	now := time.Now()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, politeness.ErrNotSent):
		return nil, err
	case err != nil: // that it was the HEAD's fault, the GET will tell
		a.host.Ignored = headless
		a.access.Rest(now.Add(a.host.Delay))
	case res.Status == http.StatusOK && validated(req, res), res.Status == http.StatusNotModified:
		res.Status = http.StatusNotModified
		return res, nil
	case politeness.IsOverloaded(res.Status):
		return res, nil
	default:
		if res.Status == http.StatusMethodNotAllowed || res.Status == http.StatusNotImplemented {
			a.host.Ignored = headless
		}
		a.access.Answered(res, now)
		r.stats.answer(res, now)
		r.budget.AddBytes(politeness.HeaderBytes)
	}
	if wait := time.Until(a.host.Next); wait > 0 && !politeness.Pause(ctx, wait) {
		return nil, ctx.Err()
	}
	if !r.budget.Wait(ctx) {
		return nil, politeness.ErrNoBudget
	}
	return a.access.Get(ctx, req)
}
