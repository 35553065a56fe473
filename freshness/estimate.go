package freshness

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Report is the last estimate over all pages.
type Report struct {
	Freshness float64       // share of the pages that are fresh, weighted by importance
	Age       time.Duration // mean age of the pages, weighted likewise
	Hosts     []HostReport  // the largest hosts, and some that wait for a robots.txt
	Needed    []Needed      // what more freshness would cost
}

// HostReport is the estimate of one host.
type HostReport struct {
	Host      store.Host
	Pages     int64 // kept
	Queue     int64 // new or due
	Freshness float64
	Age       time.Duration
	// RobotsWaits counts the pages that wait for a robots.txt, by scheme.
	RobotsWaits map[string]int64
}

// Evidence knows signals that no visit has answered yet.
type Evidence interface {
	// SetPrior says what all hosts together say of one that nothing is known of.
	SetPrior(change.Prior)
	// Belief returns the posterior of a page's change rate now, and the evidence of
	// a change in signals since its last visit.
	Belief(p *store.Page, u weburl.URL, prior change.Prior, trust map[string]change.Trust, now time.Time) (b change.Belief, evidence float64)
}

// Estimator goes through all pages now and then and reports how fresh they are. It
// also gives a Scheduler the prices of its plan and what other processes learned.
type Estimator struct {
	Store     store.Store
	Log       *slog.Logger
	Start     time.Time
	Evidence  Evidence
	Scheduler *Scheduler // nil where no budget is divided

	Importance  func(p *store.Page, u weburl.URL) float64
	PlansHost   func(host string) bool
	BudgetBytes bool                                       // the budget is of bytes, so that pages differ in cost
	Rates       func(u weburl.URL) (rate float64, ok bool) // SchedulerConfig.Rates

	mu   sync.Mutex
	last Report
}

// How often pages are gone through, and how many hosts a report has.
const (
	estimateInterval = 15 * time.Second
	topHosts         = 25
)

// Report returns the last estimate.
func (e *Estimator) Report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

// Run keeps the estimate up to date until ctx ends; a pass over many pages is
// followed by a pause of ten times its duration.
func (e *Estimator) Run(ctx context.Context) error {
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
		if err := e.Estimate(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			e.Log.Error("estimate freshness", "err", err)
		}
		interval := estimateInterval
		if start.Sub(e.Start) < time.Minute {
			interval = 2 * time.Second
		}
		wait = max(interval, 10*time.Since(start))
	}
}

// Estimate goes through all hosts and pages once.
func (e *Estimator) Estimate(ctx context.Context) error {
	pass := &estimatePass{Estimator: e, now: time.Now(), hosts: map[string]*hostSum{}, kinds: map[kind]int{}, own: map[kind]int{}}
	if err := pass.readHosts(ctx); err != nil {
		return err
	}
	err := e.Store.Pages(ctx, func(p *store.Page) error {
		if u, err := weburl.Parse(p.URL); err == nil { // else the robot excludes the page
			pass.addPage(p, u)
		}
		return nil
	})
	if err != nil {
		return err
	}
	report, err := pass.buildReport(ctx)
	if err != nil {
		return err
	}
	if e.Scheduler != nil {
		if err := e.Scheduler.setPrices(pass.kinds, pass.own); err != nil {
			return err
		}
	}
	e.mu.Lock()
	e.last = report
	e.mu.Unlock()
	return nil
}

// estimatePass is one pass over hosts and pages.
type estimatePass struct {
	*Estimator
	now   time.Time
	base  change.Prior // of hosts that nothing is known of
	hosts map[string]*hostSum
	all   sum
	bytes float64 // of one visit to each page
	kinds map[kind]int
	own   map[kind]int // kinds of the pages that this process plans for
}

// sum adds up pages: a page with change rate d visited t ago is still fresh with
// probability e^{-d t}, and its expected age is t - (1 - e^{-d t})/d.
type sum struct {
	pages      int64
	weight     float64 // importance, by which both are weighted
	fresh, age float64
}

func (s *sum) addWeighted(weight, fresh, age float64) {
	s.pages++
	s.weight += weight
	s.fresh += weight * fresh
	s.age += weight * age
}

// weightedMeans returns the weighted means, 0 of no pages.
func (s *sum) weightedMeans() (freshness float64, age time.Duration) {
	if s.weight == 0 {
		return 0, 0
	}
	return s.fresh / s.weight, Seconds(s.age / s.weight)
}

// hostSum is the sum over a host and what its record says.
type hostSum struct {
	sum
	queue       int64
	robotsWaits map[string]int64
	planned     bool // by this process
	prior       change.Prior
	trust       map[string]change.Trust
	signals     revisit.Noisy
}

// readHosts learns the priors of all hosts and of each.
func (s *estimatePass) readHosts(ctx context.Context) error {
	groups, together := map[string]change.Group{}, change.Group{}
	err := s.Store.Hosts(ctx, func(h *store.Host) error {
		groups[h.Name] = h.Groups[""]
		together.Add(h.Groups[""])
		s.hosts[h.Name] = &hostSum{trust: h.Trust, signals: SignalQuality(h.Trust), planned: s.PlansHost(h.Name)}
		if s.Scheduler != nil {
			s.Scheduler.setHostDelay(h.Name, h.Delay)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.base = together.Prior(change.DefaultPrior)
	s.Evidence.SetPrior(s.base)
	for name, h := range s.hosts {
		g := groups[name]
		h.prior = g.Prior(s.base)
	}
	return nil
}

// addPage counts a page, and gives the scheduler what is known of it.
func (s *estimatePass) addPage(p *store.Page, u weburl.URL) {
	h := s.hosts[u.Host()]
	if h == nil {
		h = &hostSum{prior: s.base, planned: s.PlansHost(u.Host())}
		s.hosts[u.Host()] = h
	}
	if p.Slot.Order > 0 || (!p.Slot.Due.IsZero() && p.Slot.Due.Before(s.now)) {
		h.queue++
	}
	if p.Reason == store.ReasonRobotsUnavailable {
		if h.robotsWaits == nil {
			h.robotsWaits = map[string]int64{}
		}
		h.robotsWaits[u.Scheme()]++
	}
	switch p.State {
	case store.Redirect:
		if s.Scheduler != nil {
			s.Scheduler.updateKnown(p, u, knownOr(s.Rates, u, p.History.Belief(h.prior)), h.signals, h.planned)
		}
	case store.OK:
		s.addKept(h, p, u)
	}
}

// addKept counts a page that is kept.
func (s *estimatePass) addKept(h *hostSum, p *store.Page, u weburl.URL) {
	b, evidence := s.Evidence.Belief(p, u, h.prior, h.trust, s.now)
	b = knownOr(s.Rates, u, b)
	d, importance := b.Rate(), s.Importance(p, u)
	if s.Scheduler != nil {
		s.Scheduler.updateKnown(p, u, b, h.signals, h.planned)
	}
	t := max(0, s.now.Sub(p.History.Last).Seconds())
	fresh, age := b.Fresh((1-h.signals.Recall)*t)*math.Exp(-evidence), h.signals.Age(d, t)
	h.addWeighted(importance, fresh, age)
	s.all.addWeighted(importance, fresh, age)
	s.bytes += VisitCost(p)
	k := kind{rate: roundToOctave(d*(1-h.signals.Recall), 4), importance: roundToOctave(importance, 1), shape: roundToOctave(min(b.Shape, maxShape), 2)}
	if s.BudgetBytes {
		k.cost = roundToOctave(VisitCost(p), 2)
	}
	s.countKind(k, h.planned)
	if h.signals.Recall > 0 {
		k.shape = 0
		k.rate, k.signals = roundToOctave(d*h.signals.Recall, 4), true
		s.countKind(k, h.planned)
	}
}

func (s *estimatePass) countKind(k kind, planned bool) {
	s.kinds[k]++
	if planned {
		s.own[k]++
	}
}

// buildReport puts the sums together with the hosts' records.
func (s *estimatePass) buildReport(ctx context.Context) (Report, error) {
	var out Report
	out.Freshness, out.Age = s.all.weightedMeans()
	out.Needed = neededBudgets(s.kinds, s.bytes/max(1, float64(s.all.pages)))
	err := s.Store.Hosts(ctx, func(h *store.Host) error {
		sum := s.hosts[h.Name]
		if sum == nil {
			sum = &hostSum{}
		}
		row := HostReport{Host: *h, Pages: sum.pages, Queue: sum.queue, RobotsWaits: sum.robotsWaits}
		row.Freshness, row.Age = sum.weightedMeans()
		out.Hosts = append(out.Hosts, row)
		if len(out.Hosts) > 4*topHosts {
			out.Hosts = largestHosts(out.Hosts)
		}
		return nil
	})
	out.Hosts = largestHosts(out.Hosts)
	return out, err
}

// largestHosts returns the largest hosts, and as many more that wait for a
// robots.txt.
func largestHosts(hosts []HostReport) []HostReport {
	slices.SortFunc(hosts, func(a, b HostReport) int {
		return cmp.Or(cmp.Compare(b.Pages+b.Queue, a.Pages+a.Queue), cmp.Compare(a.Host.Name, b.Host.Name))
	})
	waiting := 0
	n := min(len(hosts), topHosts)
	return append(hosts[:n], slices.DeleteFunc(hosts[n:], func(h HostReport) bool {
		if len(h.RobotsWaits) > 0 {
			waiting++
		}
		return len(h.RobotsWaits) == 0 || waiting > topHosts
	})...)
}
