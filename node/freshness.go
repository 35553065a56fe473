package node

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
	fresh, age   float64
}

func (s *sum) estimate() estimate {
	if s.pages == 0 {
		return estimate{}
	}
	return estimate{s.fresh / float64(s.pages), time.Duration(s.age / float64(s.pages) * float64(time.Second))}
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
	rates := map[float64]int{} // change rates, rounded: a histogram
	hosts := map[string]*sum{}
	err := n.parts.Store.Pages(ctx, func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		if err != nil {
			return err
		}
		h := hosts[u.Host()]
		if h == nil {
			h = &sum{}
			hosts[u.Host()] = h
		}
		if p.Slot.Order > 0 || (!p.Slot.Due.IsZero() && p.Slot.Due.Before(now)) {
			h.queue++
		}
		if p.State != store.OK {
			return nil
		}
		d := p.History.Rate(change.DefaultPrior)
		t := max(0, now.Sub(p.History.Last).Seconds())
		fresh := math.Exp(-d * t)
		age := t + math.Expm1(-d*t)/d
		for _, s := range []*sum{h, &all} {
			s.pages++
			s.fresh += fresh
			s.age += age
		}
		rates[math.Exp2(math.Round(math.Log2(d)*4)/4)]++
		return nil
	})
	if err != nil {
		return err
	}
	f := freshness{all: all.estimate(), needed: needed(rates)}
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
	if err := n.price(rates); err != nil {
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
// configuration, for a histogram of change rates.
func (n *Node) price(rates map[float64]int) error {
	policy, ok := revisit.Policies()[n.config.Crawl.Policy]
	if !ok || len(rates) == 0 {
		return nil // half-change needs no price
	}
	var kinds []revisit.Item
	var counts []float64
	for d, c := range rates {
		kinds, counts = append(kinds, revisit.Item{Importance: 1, Rate: d}), append(counts, float64(c))
	}
	t, err := revisit.NewTariff(policy, kinds, counts, n.config.Crawl.Budget)
	if err != nil {
		return err
	}
	n.tariff.Store(&t)
	return nil
}

// interval returns the rule by which the robot comes again: the policy's rate
// at the present price, or half-change until there is one.
func (n *Node) interval() func(*change.History) time.Duration {
	return func(h *change.History) time.Duration {
		t := n.tariff.Load()
		if t == nil {
			return crawl.HalfChange(h)
		}
		rate := t.Rate(revisit.Item{Importance: 1, Rate: h.Rate(change.DefaultPrior)})
		if rate <= 0 {
			return math.MaxInt64 // not worth a visit but for max_revisit
		}
		return crawl.Seconds(1 / rate)
	}
}

// checkPolicy refuses a policy that does not exist or lacks its budget.
func checkPolicy(c config.Crawl) error {
	if c.Policy == "half-change" {
		return nil
	}
	if _, ok := revisit.Policies()[c.Policy]; !ok {
		return fmt.Errorf("crawl.policy: unknown policy %q; there are half-change, %s", c.Policy, strings.Join(revisit.Names(), ", "))
	}
	if c.Budget <= 0 {
		return fmt.Errorf("crawl.policy: %s divides a budget: set crawl.budget (requests a second)", c.Policy)
	}
	return nil
}

// needed returns the request rates at which visiting every page at a regular
// interval in proportion to the square root of its rate would keep the wanted
// freshness: sum over pages of f with F = (f/d)(1 - e^{-d/f}), solved for a
// common F a page, which bounds the optimum from above.
func needed(rates map[float64]int) []console.Needed {
	if len(rates) == 0 {
		return nil
	}
	var out []console.Needed
	for _, want := range []float64{.8, .9, .95} {
		x := interval(want)
		total := 0.0
		for d, n := range rates {
			total += float64(n) * d / x
		}
		out = append(out, console.Needed{Freshness: want, Rate: total})
	}
	return out
}

// interval solves (1 - e^-x)/x = want for x, by bisection.
func interval(want float64) float64 {
	low, high := 1e-9, 100.0
	for range 100 {
		mid := (low + high) / 2
		if -math.Expm1(-mid)/mid > want {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
