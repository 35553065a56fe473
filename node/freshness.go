package node

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// freshness is the last estimate, made now and then over all pages.
type freshness struct {
	all    estimate
	hosts  []console.Host
	needed []console.Needed
}

// estimate sums over pages: a page with change rate d visited t ago is still
// fresh with probability e^{-d t}, and its expected age is t - (1 - e^{-d t})/d.
type estimate struct {
	freshness float64
	age       time.Duration
}

type sum struct {
	pages, queue int64
	weight       float64 // importance of the pages, by which both are weighted
	fresh, age   float64
	prior        change.Prior // of the host's pages
	recall       float64      // share of its changes that are signalled
}

func (s *sum) estimate() estimate {
	if s.weight == 0 {
		return estimate{}
	}
	return estimate{s.fresh / s.weight, crawl.Seconds(s.age / s.weight)}
}

// kind is what pages have in common that are planned for alike: numbers rounded
// to steps of a histogram.
type kind struct {
	rate, importance, cost float64
	signals                bool // the changes that are signalled
}

// step rounds x to a power of two, with so many steps an octave.
func step(x, octave float64) float64 {
	return math.Exp2(math.Round(math.Log2(max(x, 1e-12))*octave) / octave)
}

// How often pages are gone through, and how many hosts the status page lists.
const (
	freshnessEvery = 15 * time.Second
	topHosts       = 25
)

// watchFreshness keeps the estimate up to date; a pass over many pages waits
// ten times as long as it took.
func (n *Node) watchFreshness(ctx context.Context) error {
	wait := time.Second
	for {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		start := time.Now()
		if err := n.estimate(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			n.log.Error("estimate freshness", "err", err)
		}
		wait = max(freshnessEvery, 10*time.Since(start))
		if start.Sub(n.started) < time.Minute {
			wait = 2 * time.Second
		}
	}
}

func (n *Node) estimate(ctx context.Context) error {
	now := time.Now()
	var all sum
	kinds := map[kind]int{}
	hosts := map[string]*sum{}
	err := n.parts.Store.Hosts(ctx, func(h *store.Host) error {
		all := h.Groups[""]
		hosts[h.Name] = &sum{prior: all.Prior(change.DefaultPrior), recall: crawl.Recall(h)}
		return nil
	})
	if err != nil {
		return err
	}
	err = n.parts.Store.Pages(ctx, func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		if err != nil {
			return err
		}
		h := hosts[u.Host()]
		if h == nil {
			h = &sum{prior: change.DefaultPrior}
			hosts[u.Host()] = h
		}
		if p.Slot.Order > 0 || (!p.Slot.Due.IsZero() && p.Slot.Due.Before(now)) {
			h.queue++
		}
		if p.State != store.OK {
			return nil
		}
		d := p.History.Rate(h.prior)
		mu := n.importance(p, u)
		t := max(0, now.Sub(p.History.Last).Seconds())
		fresh := math.Exp(-d * t)
		age := t + math.Expm1(-d*t)/d
		for _, s := range []*sum{h, &all} {
			s.pages++
			s.weight += mu
			s.fresh += mu * fresh
			s.age += mu * age
		}
		k := kind{rate: step(d*(1-h.recall), 4), importance: step(mu, 1)}
		if n.config.Crawl.BudgetBytes > 0 {
			k.cost = step(cost(p), 2)
		}
		kinds[k]++
		if h.recall > 0 {
			k.rate, k.signals = step(d*h.recall, 4), true
			kinds[k]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	f := freshness{all: all.estimate(), needed: needed(kinds)}
	err = n.parts.Store.Hosts(ctx, func(h *store.Host) error {
		s := hosts[h.Name]
		if s == nil {
			s = &sum{}
		}
		e := s.estimate()
		f.hosts = append(f.hosts, console.Host{Name: h.Name, Pages: s.pages, Queue: s.queue, Freshness: e.freshness, Age: e.age, Delay: h.Delay, Failing: h.Error})
		if len(f.hosts) > 4*topHosts {
			f.hosts = top(f.hosts)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.hosts = top(f.hosts)
	if err := n.price(kinds); err != nil {
		return err
	}
	n.mu.Lock()
	n.fresh = f
	n.mu.Unlock()
	return nil
}

func top(hosts []console.Host) []console.Host {
	slices.SortFunc(hosts, func(a, b console.Host) int {
		return cmp.Or(cmp.Compare(b.Pages+b.Queue, a.Pages+a.Queue), cmp.Compare(a.Name, b.Name))
	})
	return hosts[:min(len(hosts), topHosts)]
}

// price finds what a visit costs under the policy and budget of the
// configuration, for a histogram of the pages.
func (n *Node) price(kinds map[kind]int) error {
	c := &n.config.Crawl
	policy, ok := revisit.Policies()[c.Policy]
	if !ok || len(kinds) == 0 {
		return nil // the others need no price
	}
	var items []revisit.Item
	var counts []float64
	for k, count := range kinds {
		items, counts = append(items, revisit.Item{Importance: k.importance, Rate: k.rate, Cost: k.cost, Signals: k.signals}), append(counts, float64(count))
	}
	budget := c.Budget
	if c.BudgetBytes > 0 {
		budget = float64(c.BudgetBytes) / 86400
	}
	t, err := revisit.NewTariff(policy, items, counts, budget*n.slack(budget))
	if err != nil {
		return err
	}
	n.tariff.Store(&t)
	return nil
}

// slack is by how much the price is made for more than the budget, for the robot
// comes a little later than planned: what the plan leaves of the budget shows in
// what was used since the last look. The robot itself never exceeds the budget.
func (n *Node) slack(budget float64) float64 {
	if n.robot == nil {
		return 1 // not started yet
	}
	s, now := n.robot.Status(), time.Now()
	used := float64(s.Answers)
	if n.config.Crawl.BudgetBytes > 0 {
		used = float64(s.Bytes)
	}
	u := &n.used
	if u.factor == 0 || u.at.IsZero() {
		*u = usage{factor: 1, at: now, total: used}
		return 1
	}
	past := now.Sub(u.at).Seconds()
	if past < 1 {
		return u.factor
	}
	switch share := (used - u.total) / past / budget; {
	case share < .97:
		u.factor = min(2, u.factor*1.05)
	case share > .995:
		u.factor = max(1, u.factor/1.05)
	}
	u.at, u.total = now, used
	return u.factor
}

// usage is what slack remembers; only the estimate's goroutine touches it.
type usage struct {
	factor float64
	at     time.Time
	total  float64
}

// interval returns the rule by which the robot comes again.
func (n *Node) interval() func(*crawl.Visited) time.Duration {
	if n.config.Crawl.Policy == adaptive {
		return n.adapt
	}
	return n.planned
}

// planned follows the policy's rate at the present price, or half-change until
// there is one.
func (n *Node) planned(v *crawl.Visited) time.Duration {
	t := n.tariff.Load()
	if t == nil {
		return crawl.HalfChange(v)
	}
	u, err := weburl.Parse(v.Page.URL)
	if err != nil {
		return crawl.HalfChange(v)
	}
	it := revisit.Item{Importance: n.importance(v.Page, u), Rate: v.Rate() * (1 - v.Recall)} // signals tell of the rest
	if n.config.Crawl.BudgetBytes > 0 {
		it.Cost = cost(v.Page)
	}
	rate := t.Rate(it)
	if rate <= 0 {
		return math.MaxInt64 // not worth a visit but for max_revisit
	}
	return crawl.Seconds(1 / rate)
}

// worthSignal decides whether a page is visited for a signal: under a policy the
// share of its signals that the present price leaves, else always.
func (n *Node) worthSignal(ctx context.Context, u weburl.URL) bool {
	t := n.tariff.Load()
	if t == nil {
		return true
	}
	p, err := n.parts.Store.Page(ctx, u)
	if err != nil || p.State != store.OK {
		return true // new pages are always worth it
	}
	d := p.History.Rate(change.DefaultPrior)
	it := revisit.Item{Importance: n.importance(p, u), Rate: d, Signals: true}
	if n.config.Crawl.BudgetBytes > 0 {
		it.Cost = cost(p)
	}
	return t.Rate(it) >= rand.Float64()*d
}

// adapt shrinks the interval after a change and lets it grow after none.
func (n *Node) adapt(v *crawl.Visited) time.Duration {
	if v.Since <= 0 {
		return crawl.HalfChange(v)
	}
	return crawl.Seconds(revisit.Adaptive{}.Next(v.Since.Seconds(), v.Changed))
}

// Names of the policies that are no planners.
const (
	halfChange = "half-change"
	adaptive   = "adaptive"
)

// checkPolicy refuses a policy that does not exist or lacks its budget.
func checkPolicy(c config.Crawl) error {
	if c.Policy == halfChange || c.Policy == adaptive {
		return nil
	}
	if _, ok := revisit.Policies()[c.Policy]; !ok {
		return fmt.Errorf("crawl.policy: unknown policy %q; there are half-change, adaptive, %s", c.Policy, strings.Join(revisit.Names(), ", "))
	}
	if c.Budget <= 0 && c.BudgetBytes <= 0 {
		return fmt.Errorf("crawl.policy: %s divides a budget: set crawl.budget (requests a second) or crawl.budget_bytes (a day)", c.Policy)
	}
	return nil
}

// wanted are the shares of fresh pages for which the status page tells the
// budget.
var wanted = [...]float64{.8, .9, .95}

// needed returns the least requests a second that would keep a wanted share of
// the pages, by importance, fresh: the budget at which the optimal plan has it,
// by bisection of its price.
func needed(kinds map[kind]int) []console.Needed {
	if len(kinds) == 0 {
		return nil
	}
	optimal := revisit.Policies()["fixed-optimal"]
	at := func(price float64) (freshness, requests float64) {
		weight := 0.0
		for k, count := range kinds {
			if k.signals {
				continue
			}
			f := optimal.Rate(revisit.Item{Importance: k.importance, Rate: k.rate}, price)
			requests += float64(count) * f
			freshness += float64(count) * k.importance * revisit.FixedFreshness(f, k.rate)
			weight += float64(count) * k.importance
		}
		return freshness / weight, requests
	}
	var out []console.Needed
	for _, want := range wanted {
		low, high := -60.0, 60.0 // logarithms of the price: a low one buys much
		for range 80 {
			mid := (low + high) / 2
			if f, _ := at(math.Exp2(mid)); f > want {
				low = mid
			} else {
				high = mid
			}
		}
		_, requests := at(math.Exp2(low))
		out = append(out, console.Needed{Freshness: want, Rate: requests})
	}
	return out
}
