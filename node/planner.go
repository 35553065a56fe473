package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// planner divides the budget among the pages: it keeps all of them in a
// revisit.Schedule and has those visited whose turn it is, a few ahead of the
// robot. When their turns come is up to the schedule; the store keeps the queue
// by which the robot comes to them politely, and no more than the last day on
// which a page is visited in any case.
//
// Rules of the schedule (greedy, most-likely-changed, sweep) are followed as
// they are. A policy of plans is followed by the rate that it gives a page at
// the present price, and the adaptive interval by its own.
type planner struct {
	node   *Node
	rule   string          // of the schedule
	policy *revisit.Policy // of a plan, nil for other rules
	budget float64         // requests a second, or bytes
	base   time.Time       // when the schedule's clock was 0
	wake   chan struct{}

	tariff atomic.Pointer[revisit.Tariff] // of the plan; nil until pages were counted

	mu       sync.Mutex
	schedule *revisit.Schedule
	pages    keyIndex
	groups   map[string]uint32 // of hosts
	hosts    []plannedHost     // by group
	out      map[uint32]sent
	ahead    int  // pages that may be out
	ready    bool // the pages of the store are in the schedule
}

// sent is a page on its way to the robot.
type sent struct {
	at   time.Time
	last time.Time // its visit before, as the store has it; zero until that was read
	due  time.Time // what the store was told
}

// plannedHost is what the planner knows of a host.
type plannedHost struct {
	out   int
	delay time.Duration
}

// stride is the rule for rates that come from elsewhere.
const stride = "stride"

// newPlanner returns what says when pages are visited again: the planner, where
// there is a budget and a policy that divides it, which is returned beside.
func newPlanner(n *Node, c config.Crawl) (crawl.Planner, *planner, error) {
	budget := max(c.Budget, 0)
	if c.BudgetBytes > 0 {
		budget = float64(c.BudgetBytes) / 86400
	}
	switch {
	case c.Policy == halfChange:
		return crawl.HalfChange{}, nil, nil
	case c.Policy == adaptive && budget <= 0:
		return crawl.Adaptive{}, nil, nil
	}
	p := &planner{
		node: n, rule: c.Policy, budget: budget, base: n.started, wake: make(chan struct{}, 1),
		groups: map[string]uint32{}, hosts: make([]plannedHost, 1), out: map[uint32]sent{}, ahead: leastAhead,
	}
	if policy, ok := revisit.Policies()[c.Policy]; ok {
		p.policy, p.rule = &policy, stride
	} else if c.Policy == adaptive {
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
	halfChange = "half-change"
	adaptive   = "adaptive"
)

// policies are the names of those that divide a budget.
func policies() []string {
	names := append(revisit.Names(), "greedy", "most-likely-changed", "sweep")
	slices.Sort(names)
	return names
}

// checkPolicy refuses a policy that does not exist or lacks its budget.
func checkPolicy(c config.Crawl) error {
	switch {
	case c.Policy == halfChange || c.Policy == adaptive:
		return nil
	case !slices.Contains(policies(), c.Policy):
		return fmt.Errorf("crawl.policy: unknown policy %q; there are half-change, adaptive, %s", c.Policy, strings.Join(policies(), ", "))
	case c.Budget <= 0 && c.BudgetBytes <= 0:
		return fmt.Errorf("crawl.policy: %s divides a budget: set crawl.budget (requests a second) or crawl.budget_bytes (a day)", c.Policy)
	}
	return nil
}

func (p *planner) clock(t time.Time) float64 { return t.Sub(p.base).Seconds() }

// numbers are importance and rate of a page in the schedule. since is the time
// between its last two visits, 0 where that is not known.
func (p *planner) numbers(page *store.Page, u weburl.URL, b change.Belief, noisy revisit.Noisy, since time.Duration, changed bool) (mu, rate float64) {
	worth, d := p.node.importance(page, u), b.Rate()
	bytes := p.node.config.Crawl.BudgetBytes > 0
	switch {
	case p.policy != nil:
		it := revisit.Item{Importance: worth, Rate: d * (1 - noisy.Recall), Shape: b.Shape} // signals tell of the rest
		if bytes {
			it.Cost = cost(page)
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
		worth /= cost(page)
	}
	return max(worth, 1e-9), d
}

// Visited implements crawl.Planner.
func (p *planner) Visited(v *crawl.Visited) time.Duration {
	if !p.node.mine(v.URL.Host()) { // the robots work each other's hosts
		p.Unplanned(v.URL)
		return math.MaxInt64
	}
	b := p.node.belief(v.URL, v.Belief())
	mu, rate := p.numbers(v.Page, v.URL, b, v.Signals, v.Since, v.Changed)
	p.mu.Lock()
	defer p.mu.Unlock()
	id, group := p.item(v.URL, mu, rate, v.Page.History.Last)
	p.hosts[group].delay = v.Delay
	p.listen(group, v.Signals)
	at := p.clock(v.Page.History.Last)
	err := errors.Join(p.believe(id, b), p.schedule.Visited(id, mu, rate, at))
	if p.learns() && v.Signals.Recall == 0 && b.Shape < unsure && draw(v.URL, v.Page.History.Last) < probes {
		err = errors.Join(err, p.schedule.Probe(id, at+b.Even()))
	}
	if err != nil {
		p.node.log.Error("schedule", "url", v.Page.URL, "err", err)
	}
	p.done(id, group)
	return math.MaxInt64
}

// Of the visits to pages whose change rate is hardly known the share probes is
// followed by one after a time in which a change is as likely as none, which is
// what tells the most of the rate: by the turns that a page gets for its rate as
// it is believed, one that is visited too rarely for its changes is seen changed
// each time, and nothing is learned. unsure is the shape of the belief below which
// that is done: beyond it the rate is known within a third.
const (
	probes = .25
	unsure = 10
)

// learns reports whether visits go by what is believed of change rates.
func (p *planner) learns() bool {
	return p.policy != nil && !p.policy.Flat() || p.rule == "greedy" || p.rule == "most-likely-changed"
}

// draw is a number from 0 to 1 that looks like chance, of a page and a visit.
func draw(u weburl.URL, at time.Time) float64 {
	h := fnv.New64a()
	k := u.Key()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(k[:], uint64(at.UnixNano())))
	x := h.Sum64() * 0x9e3779b97f4a7c15
	return float64((x^x>>29)*0xbf58476d1ce4e5b9>>11) / (1 << 53)
}

// believe tells the schedule how sure a page's rate is. In a plan that is in the
// rate of its visits.
func (p *planner) believe(id uint32, b change.Belief) error {
	if p.rule == stride {
		return nil
	}
	return p.schedule.Believe(id, b.Shape)
}

// listen tells the schedule of a host's signals. Plans reckon with them in their
// rates.
func (p *planner) listen(group uint32, noisy revisit.Noisy) {
	if p.rule == stride {
		return
	}
	if err := p.schedule.SetSignals(group, noisy); err != nil {
		p.node.log.Error("schedule", "err", err)
	}
}

// item returns the numbers of a page and of its host, new ones if need be. The
// caller holds mu.
func (p *planner) item(u weburl.URL, mu, rate float64, last time.Time) (id, group uint32) {
	group, ok := p.groups[u.Host()]
	if !ok {
		group = p.schedule.AddGroup()
		p.groups[u.Host()] = group
		p.hosts = append(p.hosts, plannedHost{})
	}
	k := u.Key()
	if id, ok = p.pages.of(k); ok {
		return id, group
	}
	id = p.pages.add(k)
	if _, err := p.schedule.AddTo(group, mu, rate, p.clock(last)); err != nil {
		p.node.log.Error("schedule", "url", u.String(), "err", err)
		_, _ = p.schedule.AddTo(group, 0, 0, 0) // numbers of pages and items are the same
	}
	return id, group
}

// Signalled implements crawl.Planner. A page whose moment the signal brings is
// due now, in the store, so that no crash forgets it; with too many of them it
// is in a while, and sooner when its turn comes.
func (p *planner) Signalled(s *crawl.Signalled) time.Time {
	now := time.Now()
	mine := p.node.mine(s.URL.Host())
	p.mu.Lock()
	defer p.mu.Unlock()
	id, known := p.pages.of(s.URL.Key())
	if !known || !mine { // of that page's value only the other process knows
		return crawl.HalfChange{}.Signalled(s)
	}
	b, e := p.node.belief(s.URL, s.Belief), s.Evidence
	d := b.Rate()
	switch {
	case p.rule == "sweep": // heeds none
	case p.rule != stride:
		mu, rate := p.numbers(s.Page, s.URL, b, s.Signals, 0, false)
		if err := errors.Join(p.believe(id, b), p.schedule.Set(id, mu, rate)); err != nil {
			p.node.log.Error("schedule", "url", s.Page.URL, "err", err)
		}
	default:
		if e = 0; s.Signals.Fresh(d, 0, s.Total) <= .5 && p.heeds(s, d) {
			e = math.Inf(1)
		}
	}
	if e <= 0 {
		return time.Time{}
	}
	due, err := p.schedule.Signal(id, e, p.clock(now))
	group := p.groups[s.URL.Host()]
	switch _, out := p.out[id]; {
	case err != nil || !due:
		return time.Time{}
	case out:
		return now
	case len(p.out) >= p.ahead || p.full(group):
		return now.Add(putOff)
	}
	p.send(id, group, now)
	p.out[id] = sent{at: now, last: s.Page.History.Last}
	return now
}

// putOff is when a signalled page is visited at the latest that has to wait for
// its turn.
const putOff = time.Minute

// heeds decides whether a plan visits a page for this signal: with the
// probability that the price of visits leaves.
func (p *planner) heeds(s *crawl.Signalled, d float64) bool {
	t := p.tariff.Load()
	if p.policy == nil || t == nil {
		return true
	}
	if s.Signals.Recall > 0 {
		d *= s.Signals.Recall
	}
	it := revisit.Item{Importance: p.node.importance(s.Page, s.URL), Rate: d, Signals: true}
	if p.node.config.Crawl.BudgetBytes > 0 {
		it.Cost = cost(s.Page)
	}
	return t.Rate(it) >= rand.Float64()*d
}

// Unplanned implements crawl.Planner.
func (p *planner) Unplanned(u weburl.URL) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, ok := p.pages.of(u.Key()); ok {
		_ = p.schedule.Set(id, 0, 0) // it is there
		p.done(id, p.groups[u.Host()])
	}
}

// send notes that a page is on its way to the robot. The caller holds mu, as for
// those below.
func (p *planner) send(id, group uint32, now time.Time) {
	p.out[id] = sent{at: now}
	p.hosts[group].out++
	p.schedule.SetBusy(group, p.full(group))
}

// done notes that a page was visited, or is given up.
func (p *planner) done(id, group uint32) {
	if _, ok := p.out[id]; !ok {
		return
	}
	delete(p.out, id)
	p.hosts[group].out--
	p.schedule.SetBusy(group, p.full(group))
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// full reports whether a host has as many pages before it as it answers in a
// second, or most of all that are on their way.
func (p *planner) full(group uint32) bool {
	h := &p.hosts[group]
	most := max(1, p.ahead*3/4)
	if h.delay > 0 {
		most = min(most, max(1, int(time.Second/h.delay)))
	}
	return h.out >= most
}

// keep brings what is known of a page up to date, which the robot may not have
// visited in this process.
func (p *planner) keep(page *store.Page, u weburl.URL, b change.Belief, noisy revisit.Noisy, mine bool) {
	mu, rate := p.numbers(page, u, b, noisy, 0, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	id, known := p.pages.of(u.Key())
	if !known {
		if mine {
			id, group := p.item(u, mu, rate, page.History.Last)
			p.listen(group, noisy)
			_ = errors.Join(p.believe(id, b), p.schedule.Set(id, mu, rate))
		}
		return
	}
	if !mine {
		mu, rate = 0, 0
	}
	m, r, last, _ := p.schedule.Known(id)
	switch at := p.clock(page.History.Last); {
	case at > last+1 && mine: // another process was there
		_ = p.believe(id, b)
		_ = p.schedule.Visited(id, mu, rate, at)
	case p.policy == nil && p.rule == stride && r > 0 && mine: // intervals of its own
	case math.Abs(m-mu) > .05*m || math.Abs(r-rate) > .05*r:
		_ = p.believe(id, b)
		_ = p.schedule.Set(id, mu, rate)
	}
}

// pace notes the time between visits of a host, which other robots may have
// found.
func (p *planner) pace(host string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if group, ok := p.groups[host]; ok {
		p.hosts[group].delay = delay
		p.schedule.SetBusy(group, p.full(group))
	}
}

// mine reports whether this process plans for a host: of those that share a
// database and serve each host has one (rendezvous hashing). A process that only
// crawls has no console, and no plans.
func (n *Node) mine(host string) bool {
	if n.member == nil {
		return true
	}
	score := func(name string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(name + "\x00" + host))
		return h.Sum64()
	}
	own := score(n.parts.id.Name)
	for _, o := range n.member.Others() {
		if o.Address != "" && score(o.Name) > own {
			return false
		}
	}
	return true
}

// belief is what is believed of a page's change rate: what was learned, or what
// is known from outside in an experiment.
func (n *Node) belief(u weburl.URL, learned change.Belief) change.Belief {
	if n.rates != nil {
		if d, ok := n.rates(u); ok {
			const sure = 1e9
			return change.Belief{Shape: sure, Time: sure / d}
		}
	}
	return learned
}
