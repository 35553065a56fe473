package node

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/change"
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
	noRobots     map[string]int64 // pages that wait for a robots.txt, by scheme
	weight       float64          // importance of the pages, by which both are weighted
	fresh, age   float64
	mine         bool         // this process plans for the host
	prior        change.Prior // of the host's pages
	trust        map[string]change.Trust
	signals      revisit.Noisy // what is known of signals of its changes
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
	shape                  float64 // of the belief of rate
	signals                bool    // the changes that are signalled
}

// mostShape is the shape of a belief that is all but certain.
const mostShape = 1024

// item is a page of the kind.
func (k kind) item() revisit.Item {
	return revisit.Item{Importance: k.importance, Rate: k.rate, Shape: k.shape, Cost: k.cost, Signals: k.signals}
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
		least := freshnessEvery
		if start.Sub(n.started) < time.Minute {
			least = 2 * time.Second
		}
		wait = max(least, 10*time.Since(start))
	}
}

func (n *Node) estimate(ctx context.Context) error {
	now := time.Now()
	var all sum
	bytes := 0. // of a visit to each page
	kinds, own := map[kind]int{}, map[kind]int{}
	count := func(k kind, mine bool) {
		kinds[k]++
		if mine {
			own[k]++
		}
	}
	hosts := map[string]*sum{}
	groups, together := map[string]change.Group{}, change.Group{}
	err := n.parts.Store.Hosts(ctx, func(h *store.Host) error {
		groups[h.Name] = h.Groups[""]
		together.Add(h.Groups[""])
		hosts[h.Name] = &sum{trust: h.Trust, signals: crawl.Noisy(h.Trust), mine: n.mine(h.Name)}
		if n.plan != nil {
			n.plan.pace(h.Name, h.Delay)
		}
		return nil
	})
	if err != nil {
		return err
	}
	base := together.Prior(change.DefaultPrior)
	n.robot.SetPrior(base)
	for name, h := range hosts {
		g := groups[name]
		h.prior = g.Prior(base)
	}
	err = n.parts.Store.Pages(ctx, func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		if err != nil {
			return err
		}
		h := hosts[u.Host()]
		if h == nil {
			h = &sum{prior: base, mine: n.mine(u.Host())}
			hosts[u.Host()] = h
		}
		if p.Slot.Order > 0 || (!p.Slot.Due.IsZero() && p.Slot.Due.Before(now)) {
			h.queue++
		}
		if crawl.WaitsForRobots(p) {
			h.waits(u.Scheme())
		}
		if p.State == store.Redirect && n.plan != nil {
			n.plan.keep(p, u, n.belief(u, p.History.Belief(h.prior)), h.signals, h.mine)
		}
		if p.State != store.OK {
			return nil
		}
		b, evidence := n.robot.Belief(p, u, h.prior, h.trust, now)
		b = n.belief(u, b)
		d := b.Rate()
		mu := n.importance(p, u)
		if n.plan != nil {
			n.plan.keep(p, u, b, h.signals, h.mine)
		}
		t := max(0, now.Sub(p.History.Last).Seconds())
		fresh, age := b.Fresh((1-h.signals.Recall)*t)*math.Exp(-evidence), h.signals.Age(d, t)
		for _, s := range []*sum{h, &all} {
			s.pages++
			s.weight += mu
			s.fresh += mu * fresh
			s.age += mu * age
		}
		bytes += cost(p)
		k := kind{rate: step(d*(1-h.signals.Recall), 4), importance: step(mu, 1), shape: step(min(b.Shape, mostShape), 2)}
		if n.config.Crawl.BudgetBytes > 0 {
			k.cost = step(cost(p), 2)
		}
		count(k, h.mine)
		if h.signals.Recall > 0 {
			k.shape = 0
			k.rate, k.signals = step(d*h.signals.Recall, 4), true
			count(k, h.mine)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f := freshness{all: all.estimate(), needed: needed(kinds, bytes/max(1, float64(all.pages)))}
	err = n.parts.Store.Hosts(ctx, func(h *store.Host) error {
		s := hosts[h.Name]
		if s == nil {
			s = &sum{}
		}
		e := s.estimate()
		row := console.Host{Name: h.Name, Pages: s.pages, Queue: s.queue, Freshness: e.freshness, Age: e.age, Delay: h.Delay, Failing: h.Error, Robots: s.robots(h)}
		if len(row.Robots) > 0 && strings.HasPrefix(h.Error, "robots.txt: ") { // that is told with more
			row.Failing = ""
		}
		f.hosts = append(f.hosts, row)
		if len(f.hosts) > 4*topHosts {
			f.hosts = top(f.hosts)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.hosts = top(f.hosts)
	if n.plan != nil {
		if err := n.plan.price(kinds, own); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.fresh = f
	n.mu.Unlock()
	return nil
}

// waits counts a page that waits for its robots.txt.
func (s *sum) waits(scheme string) {
	if s.noRobots == nil {
		s.noRobots = map[string]int64{}
	}
	s.noRobots[scheme]++
}

// robots lists the files of a host for which pages wait.
func (s *sum) robots(h *store.Host) (waits []console.RobotsWait) {
	for i := range h.Robots {
		rb := &h.Robots[i]
		if s.noRobots[rb.Scheme] == 0 || !rb.Failed() {
			continue
		}
		w := console.RobotsWait{URL: rb.Scheme + "://" + h.Name + "/robots.txt", Why: rb.Why, Pages: s.noRobots[rb.Scheme], Since: rb.Since, Next: crawl.RobotsNext(rb)}
		if rb.Status != 0 {
			w.Why = "status " + strconv.Itoa(rb.Status)
		}
		waits = append(waits, w)
	}
	return waits
}

// top returns the greatest hosts, and of those that wait for a robots.txt some
// more.
func top(hosts []console.Host) []console.Host {
	slices.SortFunc(hosts, func(a, b console.Host) int {
		return cmp.Or(cmp.Compare(b.Pages+b.Queue, a.Pages+a.Queue), cmp.Compare(a.Name, b.Name))
	})
	waiting := 0
	n := min(len(hosts), topHosts)
	return append(hosts[:n], slices.DeleteFunc(hosts[n:], func(h console.Host) bool {
		if len(h.Robots) > 0 {
			waiting++
		}
		return len(h.Robots) == 0 || waiting > topHosts
	})...)
}

// wanted are the shares of fresh pages for which the status page tells the
// budget.
var wanted = [...]float64{.8, .9, .95}

// needed returns the least requests a second, and bytes a day for visits of so
// many bytes in the mean, that would keep a wanted share of the pages, by
// importance, fresh: the budget at which the optimal plan has it, by bisection of
// its price. Changes that are signalled cost a visit each, and no freshness.
func needed(kinds map[kind]int, bytes float64) []console.Needed {
	if len(kinds) == 0 {
		return nil
	}
	optimal := revisit.Policies()["fixed-optimal"]
	at := func(price float64) (freshness, requests float64) {
		weight := 0.0
		for k, count := range kinds {
			if k.signals {
				requests += float64(count) * optimal.Rate(revisit.Item{Importance: k.importance, Rate: k.rate, Signals: true}, price)
				continue
			}
			f := optimal.Rate(revisit.Item{Importance: k.importance, Rate: k.rate}, price) // by then it is known
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
		out = append(out, console.Needed{Freshness: want, Rate: requests, Bytes: requests * bytes * 86400})
	}
	return out
}
