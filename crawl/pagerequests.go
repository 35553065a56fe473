package crawl

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness/change"
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

// pageRequests sends the requests for pages of one host: on conditions, with a HEAD first where
// the host ignores conditions, and ahead where the host takes several at once. It belongs to
// the agent of the host.
type pageRequests struct {
	robot  *Robot
	host   *store.Host
	access *politeness.Host
	prior  func(*store.Page) change.Prior
	// maxBody bounds the bodies of the host; 0 is the client's bound.
	maxBody int64
	// reusable is an answer whose memory is used for the next one; nil for none.
	reusable *fetch.Response
}

// noteConditions notes what became of the conditions of a visit, at the host.
func (q *pageRequests) noteConditions(asked fetch.Request, res *fetch.Response, same bool) {
	h := q.host
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

// sendsHeadFirst reports whether a HEAD saves bytes: the body that it spares with the
// probability that the page is as it was, against its own header. It must spare
// a body more often than not, for it costs a request.
func (q *pageRequests) sendsHeadFirst(p *store.Page, asked fetch.Request) bool {
	if q.host.Ignored < ignoredMost || asked.ETag == "" && asked.LastModified == "" || q.host.Fetched%conditionsAgain == 0 {
		return false
	}
	b := p.History.Belief(q.prior(p))
	fresh := b.Fresh(max(0, time.Since(p.History.Last).Seconds()))
	return fresh > .5 && fresh*float64(p.Bytes) > politeness.HeaderBytes
}

// send asks for a page: conditionally, and where the host ignores conditions by a
// HEAD first. What the HEAD found unchanged is answered as not modified.
func (q *pageRequests) send(ctx context.Context, p *store.Page, u weburl.URL, req fetch.Request) (*fetch.Response, error) {
	r := q.robot
	if !q.sendsHeadFirst(p, req) {
		return q.access.Get(ctx, req)
	}
	ask := req
	ask.Head, ask.Room = true, nil
	res, err := q.access.Get(ctx, ask)
	now := time.Now()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, politeness.ErrNotSent):
		return nil, err
	case err != nil: // that it was the HEAD's fault, the GET will tell
		q.host.Ignored = headless
		q.access.Rest(now.Add(q.host.Delay))
	case res.Status == http.StatusOK && validated(req, res), res.Status == http.StatusNotModified:
		res.Status = http.StatusNotModified
		return res, nil
	case politeness.IsOverloaded(res.Status):
		return res, nil
	default:
		if res.Status == http.StatusMethodNotAllowed || res.Status == http.StatusNotImplemented {
			q.host.Ignored = headless
		}
		q.access.Answered(res, now)
		r.stats.answer(res, now)
		r.budget.AddBytes(politeness.HeaderBytes)
	}
	if wait := time.Until(q.host.Next); wait > 0 && !politeness.Pause(ctx, wait) {
		return nil, ctx.Err()
	}
	if !r.budget.Wait(ctx) {
		return nil, politeness.ErrNoBudget
	}
	return q.access.Get(ctx, req)
}

// sendAhead sends the request of a page and reports whether it did: only to a host
// with several connections that has no delay. The visit is sent to answers.
func (q *pageRequests) sendAhead(ctx context.Context, v *pageVisit, answers chan<- *pageVisit) bool {
	if !q.access.MayGetAhead() {
		return false
	}
	v.request = q.requestOf(v)
	if q.sendsHeadFirst(v.page, v.request) { // two requests, the second by the answer to the first
		return false
	}
	v.started, q.reusable = true, nil // its room is the request's now
	q.robot.signals.BeginVisit(v.url.Key())
	get := q.access.GetAhead()
	go func() {
		v.answer, v.err = get(ctx, v.request)
		v.at = time.Now()
		answers <- v // has room
	}()
	return true
}

// requestOf returns the request of a page.
func (q *pageRequests) requestOf(v *pageVisit) fetch.Request {
	p := v.page
	req := fetch.Request{URL: v.url, Room: q.reusable, Private: v.private, MaxBody: q.maxBody}
	// An error page's validators say nothing of the page, nor does a shell's of what scripts
	// put into it. Whether a page may be shown again only a whole answer tells: servers leave
	// headers out of a 304. A document that may be read now needs its body.
	if p.State == store.OK && !p.Rendered && !p.Waits && !p.NoIndex && !extract.Problem(p.Reason).ReadsAgain(p.Digest, q.robot.config.PDF) {
		req.ETag, req.LastModified = p.ETag, p.LastModified
	}
	return req
}

// answerTo returns the request of a page and its answer, that of the request that was
// sent ahead or of one that is sent now.
func (q *pageRequests) answerTo(ctx context.Context, v *pageVisit) (req fetch.Request, res *fetch.Response, at time.Time, err error) {
	if v.started {
		return v.request, v.answer, v.at, v.err
	}
	q.robot.signals.BeginVisit(v.url.Key())
	req = q.requestOf(v)
	res, err = q.send(ctx, v.page, v.url, req)
	return req, res, time.Now(), err
}

// followToItself follows, once, a redirect whose target is the page itself but for a session
// number or a tracking parameter: that target is never queued, since its canonical form is
// the page. Where the target redirects to the page again, or the host would have to rest for
// long before it, the redirect is returned, which is a loop.
func (q *pageRequests) followToItself(ctx context.Context, u weburl.URL, res *fetch.Response, now time.Time) (*fetch.Response, time.Time, error) {
	to, ok := res.Location(u)
	if !ok || to == u || !q.access.Allows(to) || time.Until(q.host.Next) > politeness.LongPause {
		return res, now, nil
	}
	if c, _ := q.robot.config.Canon.Apply(to); c != u {
		return res, now, nil
	}
	followed, err := q.access.GetAuxiliary(ctx, fetch.Request{URL: to})
	now = time.Now()
	if err != nil {
		return nil, now, err
	}
	q.robot.stats.answer(followed, now)
	if followed.Status == http.StatusNotModified { // it was not asked for on a condition
		return res, now, nil
	}
	return followed, now, nil
}
