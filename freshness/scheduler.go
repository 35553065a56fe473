package freshness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// SchedulerConfig is what a Scheduler needs of the process around it.
type SchedulerConfig struct {
	Policy      string        // a name of PolicyNames, HalfChangePolicy or AdaptivePolicy
	Budget      float64       // requests a second
	BudgetBytes float64       // bytes a second; where it is set, Budget is not used
	MinRevisit  time.Duration // between two visits of a page
	Store       store.Store
	Start       time.Time // when the schedule's clock is 0
	Log         *slog.Logger

	// Importance returns what a page's freshness is worth.
	Importance func(p *store.Page, u weburl.URL) float64
	// PlansHost reports whether this process plans for a host; of the processes on
	// one database each host has one that does.
	PlansHost func(host string) bool
	// Shared reports whether robots of other processes visit pages, too.
	Shared bool
	// Rates, if not nil, knows the change rates of pages, in changes a second: for
	// experiments that leave out what must be learned.
	Rates func(u weburl.URL) (rate float64, ok bool)
}

// Scheduler divides the budget among the pages: it keeps all of them in a
// revisit.Schedule and makes those due whose time has come, a few ahead of the
// robot. The schedule decides when a page's time comes; the store keeps the queue
// by which the robot visits due pages politely.
//
// Rules of the schedule (greedy, most-likely-changed, sweep) are followed as
// they are. A policy of plans is followed by the rate that it gives a page at
// the present price, and the adaptive interval by its own.
type Scheduler struct {
	config SchedulerConfig
	rule   string          // of the schedule
	policy *revisit.Policy // of a plan, nil for other rules
	budget float64         // requests or bytes a second
	wake   chan struct{}

	tariff atomic.Pointer[revisit.Tariff] // of the plan; nil until pages were counted

	mu        sync.Mutex
	schedule  *revisit.Schedule
	pages     keyIndex
	groups    map[string]uint32 // of hosts
	hosts     []plannedHost     // by group
	sent      map[uint32]sentPage
	sendLimit int  // pages that may be on their way to the robot
	ready     bool // the pages of the store are in the schedule
}

// sentPage is a page on its way to the robot.
type sentPage struct {
	at   time.Time
	last time.Time // its visit before, as the store has it; zero until that was read
	due  time.Time // when the store has it due
}

// plannedHost is what the scheduler knows of a host.
type plannedHost struct {
	sent  int
	delay time.Duration
}

// stride is the rule for rates that come from elsewhere.
const stride = "stride"

// NewPlanner returns the planner of a policy. It is a Scheduler, which is also
// returned, where a budget is divided; else scheduler is nil.
func NewPlanner(c SchedulerConfig) (planner Planner, scheduler *Scheduler, err error) {
	if err := CheckPolicy(c.Policy, c.Budget > 0 || c.BudgetBytes > 0); err != nil {
		return nil, nil, err
	}
	budget := max(c.Budget, 0)
	if c.BudgetBytes > 0 {
		budget = c.BudgetBytes
	}
	switch {
	case c.Policy == HalfChangePolicy:
		return HalfChange{}, nil, nil
	case c.Policy == AdaptivePolicy && budget <= 0:
		return Adaptive{}, nil, nil
	}
	p := &Scheduler{
		config: c, rule: c.Policy, budget: budget, wake: make(chan struct{}, 1),
		groups: map[string]uint32{}, hosts: make([]plannedHost, 1), sent: map[uint32]sentPage{}, sendLimit: minSent,
	}
	if policy, ok := revisit.Policies()[c.Policy]; ok {
		p.policy, p.rule = &policy, stride
	} else if c.Policy == AdaptivePolicy {
		p.rule = stride
	}
	rule, err := revisit.RuleOf(p.rule)
	if err != nil {
		return nil, nil, err
	}
	p.schedule = revisit.NewSchedule(rule)
	p.schedule.SetRest(c.MinRevisit.Seconds())
	return p, p, nil
}

// Names of the policies that need no budget.
const (
	HalfChangePolicy = "half-change"
	AdaptivePolicy   = "adaptive"
)

// PolicyNames returns the names of the policies that divide a budget.
func PolicyNames() []string {
	names := append(revisit.Names(), "greedy", "most-likely-changed", "sweep")
	slices.Sort(names)
	return names
}

// CheckPolicy refuses a policy that does not exist or lacks its budget.
func CheckPolicy(policy string, hasBudget bool) error {
	switch {
	case policy == HalfChangePolicy || policy == AdaptivePolicy:
		return nil
	case !slices.Contains(PolicyNames(), policy):
		return fmt.Errorf("crawl.policy: unknown policy %q; there are half-change, adaptive, %s", policy, strings.Join(PolicyNames(), ", "))
	case !hasBudget:
		return fmt.Errorf("crawl.policy: %s divides a budget: set crawl.budget (requests a second) or crawl.budget_bytes (a day)", policy)
	}
	return nil
}

func (p *Scheduler) secondsSinceStart(t time.Time) float64 { return t.Sub(p.config.Start).Seconds() }

// valueOf returns importance and rate of a page in the schedule. since is the time
// between its last two visits, 0 where that is not known.
func (p *Scheduler) valueOf(page *store.Page, u weburl.URL, b change.Belief, noisy revisit.Noisy, since time.Duration, changed bool) (mu, rate float64) {
	worth, d := p.config.Importance(page, u), b.Rate()
	bytes := p.config.BudgetBytes > 0
	switch {
	case p.policy != nil:
		it := revisit.Item{Importance: worth, Rate: d * (1 - noisy.Recall), Shape: b.Shape} // signals tell of the rest
		if bytes {
			it.Cost = VisitCost(page)
		}
		if t := p.tariff.Load(); t != nil {
			return 1, t.Rate(it)
		}
		return 1, 1e-6 // all alike until there is a price
	case p.rule == stride:
		if since <= 0 {
			return 1, d / math.Ln2
		}
		return 1, 1 / revisit.Adaptive{}.Next(since.Seconds(), changed)
	case bytes:
		worth /= VisitCost(page)
	}
	return max(worth, 1e-9), d
}

// Visited implements Planner.
func (p *Scheduler) Visited(v *Visited) time.Duration {
	if !p.config.PlansHost(v.URL.Host()) { // the robots work each other's hosts
		p.Unplanned(v.URL)
		return math.MaxInt64
	}
	b := p.knownBelief(v.URL, v.Belief())
	mu, rate := p.valueOf(v.Page, v.URL, b, v.Signals, v.Since, v.Changed)
	p.mu.Lock()
	defer p.mu.Unlock()
	id, group := p.itemOf(v.URL, mu, rate, v.Page.History.Last)
	p.hosts[group].delay = v.Delay
	p.setSignals(group, v.Signals)
	at := p.secondsSinceStart(v.Page.History.Last)
	err := errors.Join(p.setShape(id, b), p.schedule.Visited(id, mu, rate, at))
	if p.usesRates() && v.Signals.Recall == 0 && b.Shape < unsureShape && pseudoRandom(v.URL, v.Page.History.Last) < probeShare {
		err = errors.Join(err, p.schedule.Probe(id, at+b.Even()))
	}
	if err != nil {
		p.config.Log.Error("schedule", "url", v.Page.URL, "err", err)
	}
	p.markReturned(id, group)
	return math.MaxInt64
}

// While a page's rate is uncertain (shape of its posterior < unsureShape, an error
// beyond a third), the share probeShare of its visits is followed by a probe at the
// posterior's median time to change, the most informative time for a visit.
// Without probes a page that is visited too rarely is seen changed every time and
// its rate is never learned.
const (
	probeShare  = .25
	unsureShape = 10
)

// usesRates reports whether visits go by what is believed of change rates.
func (p *Scheduler) usesRates() bool {
	return p.policy != nil && !p.policy.Flat() || p.rule == "greedy" || p.rule == "most-likely-changed"
}

// pseudoRandom returns a number from 0 to 1 that looks like chance, of a page and a visit.
func pseudoRandom(u weburl.URL, at time.Time) float64 {
	h := fnv.New64a()
	k := u.Key()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(k[:], uint64(at.UnixNano())))
	x := h.Sum64() * 0x9e3779b97f4a7c15
	return float64((x^x>>29)*0xbf58476d1ce4e5b9>>11) / (1 << 53)
}

// setShape tells the schedule how sure a page's rate is. In a plan that is in the
// rate of its visits.
func (p *Scheduler) setShape(id uint32, b change.Belief) error {
	if p.rule == stride {
		return nil
	}
	return p.schedule.Believe(id, b.Shape)
}

// setSignals tells the schedule of a host's signals. Plans reckon with them in their
// rates.
func (p *Scheduler) setSignals(group uint32, noisy revisit.Noisy) {
	if p.rule == stride {
		return
	}
	if err := p.schedule.SetSignals(group, noisy); err != nil {
		p.config.Log.Error("schedule", "err", err)
	}
}

// itemOf returns the numbers of a page and of its host, new ones if need be. The
// caller holds mu.
func (p *Scheduler) itemOf(u weburl.URL, mu, rate float64, last time.Time) (id, group uint32) {
	group, ok := p.groups[u.Host()]
	if !ok {
		group = p.schedule.AddGroup()
		p.groups[u.Host()] = group
		p.hosts = append(p.hosts, plannedHost{})
	}
	k := u.Key()
	if id, ok = p.pages.indexOf(k); ok {
		return id, group
	}
	id = p.pages.addKey(k)
	if _, err := p.schedule.AddTo(group, mu, rate, p.secondsSinceStart(last)); err != nil {
		p.config.Log.Error("schedule", "url", u.String(), "err", err)
		_, _ = p.schedule.AddTo(group, 0, 0, 0) // numbers of pages and items are the same
	}
	return id, group
}

// Signalled implements Planner. A page whose moment the signal brings is
// due now, in the store, so that no crash forgets it; with too many of them it
// is in a while, and sooner when its turn comes.
func (p *Scheduler) Signalled(s *Signalled) time.Time {
	now := time.Now()
	mine := p.config.PlansHost(s.URL.Host())
	p.mu.Lock()
	defer p.mu.Unlock()
	id, known := p.pages.indexOf(s.URL.Key())
	if !known || !mine { // of that page's value only the other process knows
		return HalfChange{}.Signalled(s)
	}
	b, e := p.knownBelief(s.URL, s.Belief), s.Evidence
	d := b.Rate()
	switch {
	case p.rule == "sweep": // heeds none
	case p.rule != stride:
		mu, rate := p.valueOf(s.Page, s.URL, b, s.Signals, 0, false)
		if err := errors.Join(p.setShape(id, b), p.schedule.Set(id, mu, rate)); err != nil {
			p.config.Log.Error("schedule", "url", s.Page.URL, "err", err)
		}
	default:
		if e = 0; s.Signals.Fresh(d, 0, s.Total) <= .5 && p.visitsOnSignal(s, d) {
			e = math.Inf(1)
		}
	}
	if e <= 0 {
		return time.Time{}
	}
	due, err := p.schedule.Signal(id, e, p.secondsSinceStart(now))
	group := p.groups[s.URL.Host()]
	switch _, out := p.sent[id]; {
	case err != nil || !due:
		return time.Time{}
	case out:
		return now
	case len(p.sent) >= p.sendLimit || p.hostIsFull(group):
		return now.Add(signalledDelay)
	}
	p.markSent(id, group, now)
	p.sent[id] = sentPage{at: now, last: s.Page.History.Last}
	return now
}

// signalledDelay is when a signalled page is visited at the latest that has to wait for
// its turn.
const signalledDelay = time.Minute

// visitsOnSignal decides whether a plan visits a page for this signal: with the
// probability that the price of visits leaves.
func (p *Scheduler) visitsOnSignal(s *Signalled, d float64) bool {
	t := p.tariff.Load()
	if p.policy == nil || t == nil {
		return true
	}
	if s.Signals.Recall > 0 {
		d *= s.Signals.Recall
	}
	it := revisit.Item{Importance: p.config.Importance(s.Page, s.URL), Rate: d, Signals: true}
	if p.config.BudgetBytes > 0 {
		it.Cost = VisitCost(s.Page)
	}
	return t.Rate(it) >= rand.Float64()*d
}

// Unplanned implements Planner.
func (p *Scheduler) Unplanned(u weburl.URL) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, ok := p.pages.indexOf(u.Key()); ok {
		_ = p.schedule.Set(id, 0, 0) // it is there
		p.markReturned(id, p.groups[u.Host()])
	}
}

// markSent notes that a page is on its way to the robot. The caller holds mu, as for
// those below.
func (p *Scheduler) markSent(id, group uint32, now time.Time) {
	p.sent[id] = sentPage{at: now}
	p.hosts[group].sent++
	p.schedule.SetBusy(group, p.hostIsFull(group))
}

// markReturned notes that a page was visited, or is given up.
func (p *Scheduler) markReturned(id, group uint32) {
	if _, ok := p.sent[id]; !ok {
		return
	}
	delete(p.sent, id)
	p.hosts[group].sent--
	p.schedule.SetBusy(group, p.hostIsFull(group))
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// hostIsFull reports whether a host has as many pages before it as it answers in a
// second, or most of all that are on their way.
func (p *Scheduler) hostIsFull(group uint32) bool {
	h := &p.hosts[group]
	most := max(1, p.sendLimit*3/4)
	if h.delay > 0 {
		most = min(most, max(1, int(time.Second/h.delay)))
	}
	return h.sent >= most
}

// updateKnown brings what is known of a page up to date, which the robot may not have
// visited in this process.
func (p *Scheduler) updateKnown(page *store.Page, u weburl.URL, b change.Belief, noisy revisit.Noisy, mine bool) {
	mu, rate := p.valueOf(page, u, b, noisy, 0, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	id, known := p.pages.indexOf(u.Key())
	if !known {
		if mine {
			id, group := p.itemOf(u, mu, rate, page.History.Last)
			p.setSignals(group, noisy)
			_ = errors.Join(p.setShape(id, b), p.schedule.Set(id, mu, rate))
		}
		return
	}
	if !mine {
		mu, rate = 0, 0
	}
	m, r, last, _ := p.schedule.Known(id)
	switch at := p.secondsSinceStart(page.History.Last); {
	case at > last+1 && mine: // another process was there
		_ = p.setShape(id, b)
		_ = p.schedule.Visited(id, mu, rate, at)
	case p.policy == nil && p.rule == stride && r > 0 && mine: // intervals of its own
	case math.Abs(m-mu) > .05*m || math.Abs(r-rate) > .05*r:
		_ = p.setShape(id, b)
		_ = p.schedule.Set(id, mu, rate)
	}
}

// setHostDelay notes the time between visits of a host, which other robots may have
// found.
func (p *Scheduler) setHostDelay(host string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if group, ok := p.groups[host]; ok {
		p.hosts[group].delay = delay
		p.schedule.SetBusy(group, p.hostIsFull(group))
	}
}

// knownBelief returns what is believed of a page's change rate: what was learned, or
// what is known from outside in an experiment.
func (p *Scheduler) knownBelief(u weburl.URL, learned change.Belief) change.Belief {
	return knownOr(p.config.Rates, u, learned)
}

// knownOr returns a belief that is all but certain where rates knows the page, and
// what was learned elsewhere.
func knownOr(rates func(weburl.URL) (float64, bool), u weburl.URL, learned change.Belief) change.Belief {
	if rates != nil {
		if d, ok := rates(u); ok {
			const certain = 1e9
			return change.Belief{Shape: certain, Time: certain / d}
		}
	}
	return learned
}
