package politeness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/robots"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Host is an agent's access to the host that it owns. It keeps the host's record: when the
// host may be asked next, its delay, its failures, its robots.txt. It is used by one
// goroutine.
type Host struct {
	// Private says that the page under way may be at a private address.
	Private bool

	client *Client
	record *store.Host
	pace   *Pace // nil before Pace is called

	rules  *robots.File // nil if they are not known
	scheme string       // of rules
	// rulesUnavailable says that robots.txt is unavailable: nothing may be fetched for now.
	rulesUnavailable bool
	askRobots        time.Time // when robots.txt is asked for again

	hostGate *hostGate  // nil before the first request
	slots    *heldSlots // of the host's servers
	asked    bool       // a request was sent to the host
}

// Own returns the access to a host whose lease the caller holds. Close must follow.
func (c *Client) Own(record *store.Host) *Host { return &Host{client: c, record: record} }

// gate returns the gate of the host.
func (h *Host) gate() *hostGate {
	if h.hostGate == nil {
		h.hostGate = h.client.gates.acquire(h.record.Name)
		h.hostGate.setOwned(true)
	}
	return h.hostGate
}

// Close lets others ask the host, not before its next time.
func (h *Host) Close() {
	if g := h.hostGate; g != nil {
		g.rest(h.record.Next)
		g.setOwned(false)
		h.hostGate = nil
		h.client.gates.release(h.record.Name, g)
	}
}

// AcquireSlots takes the slots of the host's servers for ttl. Without them putOff is how
// long the host is put off.
func (h *Host) AcquireSlots(ctx context.Context, ttl time.Duration) (putOff time.Duration, err error) {
	h.gate()
	slots := h.client.slotsOf(ctx, h.record.Name, h.record.Fetched == 0, h.record.Delay)
	h.slots, putOff, err = h.client.acquireSlots(ctx, h.record.Name, slots, nil, ttl)
	return putOff, err
}

// ReleaseSlots gives the slots back when the servers have rested.
func (h *Host) ReleaseSlots(ctx context.Context) { h.slots.releaseAll(ctx, h.serverRest()) }

// serverRest returns for how long the servers rest that were asked under the name of the
// host. A host that fails does not keep others of its domain waiting.
func (h *Host) serverRest() time.Duration {
	switch {
	case !h.asked:
		return 0
	case h.record.Reason == store.ReasonOverloaded:
		return max(h.record.Delay, time.Until(h.record.Next))
	}
	return h.record.Delay
}

// Pace returns the pace of the host.
func (h *Host) Pace() Pace {
	if h.pace == nil {
		p := h.client.config.Sources.PaceOf(h.record.Name)
		h.pace = &p
	}
	return *h.pace
}

// Rest lets the host rest until a time, for auxiliary requests, too.
func (h *Host) Rest(until time.Time) {
	h.record.Next = until
	h.gate().restWithDelay(until, h.record.Delay)
}

// minRest is how long the host rests at least after a request whose answer is not known.
func (h *Host) minRest() time.Duration {
	if h.record.Delay > 0 {
		return h.record.Delay
	}
	return h.client.config.Delays.Min(h.Pace(), h.record.Pages)
}

// RestAfterRequest lets the host rest after a request that may have arrived.
func (h *Host) RestAfterRequest() {
	h.Rest(later(h.record.Next, time.Now().Add(h.minRest())))
}

// UpdateNext takes over the rest that other requests of this process brought, and the
// hours of the host, and returns how long the host rests.
func (h *Host) UpdateNext() time.Duration {
	now := time.Now()
	h.record.Next = later(h.record.Next, h.gate().restsUntil())
	if opens := h.client.config.Sources.OpensAt(h.record.Name, now); !opens.IsZero() {
		h.record.Next = later(h.record.Next, opens)
		if latest := now.Add(store.LongestRest - time.Hour); h.record.Next.After(latest) {
			h.record.Next = latest
		}
	}
	return h.record.Next.Sub(now)
}

// WaitForSlot waits for the host's next time if that comes within Patience; it reports false
// if the agent should let go of the host instead.
func (h *Host) WaitForSlot(ctx context.Context) bool {
	wait := h.UpdateNext()
	return wait <= 0 || wait <= Patience && Pause(ctx, wait)
}

// Get sends a request whose time has come, behind auxiliary ones that are under way.
func (h *Host) Get(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	g := h.gate()
	h.asked = true
	if err := g.pass(ctx, maxAuxiliaryWait+h.client.config.Delays.MaxDelay); err != nil {
		h.record.Next = later(h.record.Next, g.restsUntil())
		return nil, err
	}
	defer g.leave()
	res, err := h.client.config.Fetch.Get(ctx, req)
	g.rest(time.Now().Add(h.minRest()))
	return res, err
}

// MayGetAhead reports whether several requests may be under way at once to the host.
func (h *Host) MayGetAhead() bool {
	return h.Pace().Connections > 1 && h.record.Delay <= 0 && h.record.Failures == 0
}

// GetAhead returns a function that sends one request from another goroutine. It gives up
// with ErrHostRests if the host rests by then.
func (h *Host) GetAhead() func(context.Context, fetch.Request) (*fetch.Response, error) {
	h.asked = true
	g := h.gate()
	return func(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
		if err := g.pass(ctx, 0); err != nil {
			return nil, err
		}
		defer g.leave()
		return h.client.config.Fetch.Get(ctx, req)
	}
}

// GetAuxiliary sends a request that is no page, to the host or to another: within the
// budget, and when the time of its host has come. However it ends, the host rests after it.
func (h *Host) GetAuxiliary(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	permitted := h.client.config.Sources.PermitsHost(req.URL)
	if req.URL.Host() != h.record.Name {
		req.Private = permitted
		return h.getElsewhere(ctx, req)
	}
	req.Private = h.Private || permitted
	if wait := time.Until(h.record.Next); wait > 0 && !Pause(ctx, wait) {
		return nil, ctx.Err()
	}
	if !h.client.config.Budget.Wait(ctx) {
		return nil, ErrNoBudget
	}
	res, err := h.Get(ctx, req)
	if err != nil {
		if !errors.Is(err, ErrNotSent) {
			h.RestAfterRequest()
		}
		return nil, err
	}
	now := time.Now()
	h.Answered(res, now)
	if IsOverloaded(res.Status) {
		h.Overloaded(res, now)
	}
	h.client.config.Budget.AddBytes(res.Wire + HeaderBytes)
	return res, nil
}

// getElsewhere sends an auxiliary request to another host. While it waits the agent does not
// count among those that fetch, so that hosts with long delays hold up no others.
func (h *Host) getElsewhere(ctx context.Context, req fetch.Request) (*fetch.Response, error) {
	same := h.sharesServer(ctx, req.URL)
	if wait := time.Until(h.record.Next); same && wait > 0 && !Pause(ctx, min(wait, maxAuxiliaryWait)) {
		return nil, ctx.Err()
	}
	h.client.config.Observer.AgentsWaiting(1)
	defer h.client.config.Observer.AgentsWaiting(-1)
	res, err := h.client.getAuxiliary(ctx, req, h.slots)
	if same && !errors.Is(err, ErrNotSent) {
		h.RestAfterRequest()
	}
	return res, err
}

// sharesServer reports whether another host is at a server at which the agent holds a slot,
// so that a request to it is one to the agent's own host.
func (h *Host) sharesServer(ctx context.Context, u weburl.URL) bool {
	if h.slots == nil || len(h.slots.slots) == 0 {
		return false
	}
	return slices.ContainsFunc(h.client.slotsOf(ctx, u.Host(), false, 0), func(s serverSlot) bool { return s.isServer && h.slots.has(s.Address) })
}

// GetScript fetches a script that a page of the host needs, as far as robots.txt allows it.
// A script of the host counts as a visit of it.
func (h *Host) GetScript(ctx context.Context, u weburl.URL) (*fetch.Response, error) {
	if !h.allowsScript(u) {
		return nil, errors.New("robots.txt forbids it")
	}
	if wait := time.Until(h.record.Next); u.Host() == h.record.Name && wait > LongPause {
		return nil, fmt.Errorf("%s rests for %v", h.record.Name, wait.Round(time.Second))
	}
	return h.GetAuxiliary(ctx, fetch.Request{URL: u, Accept: "*/*"})
}

// allowsScript reports whether robots.txt allows a script of a page, as far as the file is
// known.
func (h *Host) allowsScript(u weburl.URL) bool {
	if u.Host() == h.record.Name {
		return h.rules == nil || h.rules.Allowed(u.Target())
	}
	if !h.Private && h.client.config.Sources.PermitsHost(u) {
		return false
	}
	other := h.client.rules.peek(u.Origin())
	return other == nil || other.Allowed(u.Target())
}

// SubresourceFilter returns a function that says what a page of the host may ask for in a
// browser. Other goroutines may call it.
func (h *Host) SubresourceFilter() func(ctx context.Context, u weburl.URL) bool {
	return h.client.SubresourceFilter(h.record.Name, h.rules, h.Private)
}

// SubresourceFilter returns a function that says what a page of a host may ask for in a
// browser: the robots.txt of the URL's host is asked for if it is not known, and the request
// waits for its place in the budget. rules are those of the host, nil if they are not known;
// private says that the page may be at a private address.
func (c *Client) SubresourceFilter(host string, rules *robots.File, private bool) func(ctx context.Context, u weburl.URL) bool {
	return func(ctx context.Context, u weburl.URL) bool {
		rules := rules
		if !c.config.Sources.OpensAt(u.Host(), time.Now()).IsZero() {
			return false
		}
		if u.Host() != host && !private && c.config.Sources.PermitsHost(u) { // a page of the internet has no business in the private network
			return false
		}
		if u.Host() != host || rules == nil {
			rules = c.RulesOf(ctx, u)
		}
		return rules != nil && rules.Allowed(u.Target()) && c.config.Budget.Wait(ctx)
	}
}

// Answered notes an answer: it smooths the host's response time and sets when the host may
// be asked next. The delay is the largest of robots.txt's Crawl-delay, DelayFactor response
// times, and the least delay by the host's popularity; the last two not where a source lets
// the robot ask without a pause.
func (h *Host) Answered(res *fetch.Response, now time.Time) {
	r := h.record
	if !IsOverloaded(res.Status) {
		r.Failures, r.Reason, r.Error = 0, "", ""
	}
	r.Fetched++
	if r.Response == 0 {
		r.Response = res.First
	} else {
		r.Response += (res.First - r.Response) / 8
	}
	d := &h.client.config.Delays
	r.Delay = d.After(h.Pace(), r.Pages, r.Response)
	if h.rules != nil {
		r.Delay = max(r.Delay, min(h.rules.Delay, d.MaxDelay))
	}
	h.Rest(now.Add(r.Delay))
}

// Overloaded heeds 429 and 503: the whole host rests, for as long as it asks for, or the
// longer the more often it was overloaded in a row.
func (h *Host) Overloaded(res *fetch.Response, now time.Time) {
	r := h.record
	if h.Pace().Connections < 2 || r.Reason != store.ReasonOverloaded || !now.Before(h.gate().restsUntil()) { // else it refuses several requests that were sent together
		r.Failures++
	}
	r.Reason, r.Error = store.ReasonOverloaded, "status "+strconv.Itoa(res.Status)
	wait := retryAfter(res.Header.Get("Retry-After"), now)
	if wait <= 0 {
		wait = max(5*r.Delay, RetryDelay(r.Failures+1))
	}
	h.Rest(now.Add(min(wait, h.client.config.Delays.MaxDelay)))
}

// NoAnswer lets the host rest after a request without an answer. pageFailures is how often
// in a row the page has failed, this time included.
func (h *Host) NoAnswer(kind fetch.Kind, pageFailures int, now time.Time) {
	r := h.record
	hangs := kind == fetch.Timeout || kind == fetch.Reset
	switch {
	case kind == fetch.Private: // nobody was asked
	case kind == fetch.Bomb, kind == fetch.Slow, kind == fetch.Encoding, kind == fetch.Header, kind == fetch.Protocol, // the page's fault, not the host's
		hangs && pageFailures > 1: // this page again: nothing new about its host
		h.Rest(now.Add(r.Delay))
	default:
		r.Failures++
		r.Reason, r.Error = store.ReasonNoAnswer, string(kind)
		rest := RetryDelay(r.Failures)
		if hangs && r.Failures == 1 {
			rest = r.Delay // one page that hangs says little of its host
		}
		h.Rest(now.Add(min(rest, h.client.config.Delays.MaxDelay)))
	}
}

// KindOf returns the kind of the error of a request without an answer, and its cause.
func KindOf(err error) (kind fetch.Kind, cause error) {
	var fe *fetch.Error
	if errors.As(err, &fe) {
		return fe.Kind, fe.Err
	}
	return fetch.Protocol, err
}
