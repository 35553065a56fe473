package freshness

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Pages have the numbers in which they came, however many.
func TestKeyIndex(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	var x keyIndex
	key := func() (k weburl.Key) {
		for i := range k {
			k[i] = byte(r.Uint32())
		}
		return k
	}
	var keys []weburl.Key
	for i := range 5000 {
		k := key()
		if i%2 == 1 { // of one host
			copy(k[:8], keys[0][:8])
		}
		if _, ok := x.indexOf(k); ok {
			t.Fatal("a key that was not added")
		}
		if id := x.addKey(k); id != uint32(i) {
			t.Fatalf("key %d has the number %d", i, id)
		}
		keys = append(keys, k)
	}
	for i, k := range keys {
		if id, ok := x.indexOf(k); !ok || id != uint32(i) {
			t.Fatalf("key %d: %d, %v", i, id, ok)
		}
	}
	if per := float64(4*len(x.slots)) / float64(len(x.keys)); per > 8 {
		t.Errorf("%.1f bytes a page beside the keys", per)
	}
}

// newTestScheduler returns a scheduler without a store for a page of importance 1.
func newTestScheduler(t *testing.T, c SchedulerConfig) *Scheduler {
	t.Helper()
	c.Log, c.Start = slog.New(slog.DiscardHandler), time.Now()
	c.PlansHost = func(string) bool { return true }
	if c.Importance == nil {
		c.Importance = (&Importance{Clicks: &Clicks{}}).Of
	}
	_, p, err := NewPlanner(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pageOf(t *testing.T, address string, last time.Time) (*store.Page, weburl.URL) {
	t.Helper()
	u, err := weburl.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &store.Page{URL: address, State: store.OK, History: change.History{Last: last, Visits: 20, Changes: 10, Time: 2000}}, u
}

// A few pages are on their way at a time, of a slow host no more than it
// answers in a second; a visit makes room for the next one, and one that never
// comes does in the end.
func TestPlannerSendsAhead(t *testing.T) {
	t.Parallel()
	p := newTestScheduler(t, SchedulerConfig{Policy: "greedy", Budget: 20})
	now := time.Now()
	for i := range 100 {
		host := "fast.example"
		if i%2 == 0 {
			host = "slow.example"
		}
		page, u := pageOf(t, fmt.Sprintf("http://%s/%d", host, i), now.Add(-time.Duration(i+1)*time.Minute))
		p.Visited(&Visited{Page: page, URL: u, Delay: time.Duration(i%2^1) * time.Second})
	}
	if keys := p.nextKeys(now); len(keys) != 0 {
		t.Errorf("%d pages before those of the store were counted", len(keys))
	}
	if err := p.startSending(20); err != nil {
		t.Fatal(err)
	}
	keys := p.nextKeys(now)
	slow := p.hosts[p.groups["slow.example"]].sent
	if fast := p.hosts[p.groups["fast.example"]].sent; len(keys) != 8 || slow != 1 || fast != 7 { // 7: three quarters of 10 ahead
		t.Errorf("%d pages sent, %d of the slow host, %d of the fast one", len(keys), slow, fast)
	}
	if again := p.nextKeys(now); len(again) != 0 {
		t.Errorf("%d more without a visit", len(again))
	}
	id, _ := p.pages.indexOf(keys[0])
	p.mu.Lock()
	p.markReturned(id, p.schedule.Group(id))
	p.mu.Unlock()
	if next := p.nextKeys(now.Add(time.Second)); len(next) != 1 {
		t.Errorf("%d pages after a visit", len(next))
	}
	if late := p.nextKeys(now.Add(sentTimeout + 2*time.Second)); len(late) != 8 {
		t.Errorf("%d pages after those on their way were given up", len(late))
	}
}

// A signal of a source that is right makes a page due at once; one of a source
// that lies does not; one more than there is room for is due a little later.
func TestPlannerSignals(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"greedy", "fixed-optimal", "adaptive", "most-likely-changed", "sweep"} {
		p := newTestScheduler(t, SchedulerConfig{Policy: policy, Budget: 4})
		now := time.Now()
		kinds := map[kind]int{}
		var pages []*store.Page
		var urls []weburl.URL
		for i := range 200 {
			page, u := pageOf(t, fmt.Sprintf("http://h%d.example/%d", i%4, i), now.Add(-time.Millisecond))
			p.Visited(&Visited{Page: page, URL: u, Prior: change.DefaultPrior})
			kinds[kind{rate: page.History.Rate(change.DefaultPrior), importance: 1}]++
			pages, urls = append(pages, page), append(urls, u)
		}
		if err := p.setPrices(kinds, kinds); err != nil {
			t.Fatal(err)
		}
		for k := range 3000 { // the threshold is found
			p.mu.Lock()
			p.schedule.Next(p.secondsSinceStart(now) + float64(k)/4)
			p.mu.Unlock()
		}
		later := time.Duration(3000/4) * time.Second
		p.config.Start = p.config.Start.Add(-later) // the clock goes on from there
		tell := func(i int, trust change.Trust) time.Time {
			precision := trust.Precision()
			noisy, e := revisit.Noisy{Recall: trust.Recall(), Wrong: (1 - precision) / precision}, -math.Log1p(-precision)
			return p.Signalled(&Signalled{Page: pages[i], URL: urls[i], Belief: pages[i].History.Belief(change.DefaultPrior), Evidence: e, Total: e, Signals: noisy})
		}
		liar, honest := change.Trust{False: 1000, Watched: 1000, Missed: 20}, change.Trust{True: 1000, Watched: 1e6, Missed: 2, Silent: 100}
		if due := tell(0, liar); !due.IsZero() {
			t.Errorf("%s: a liar's page is due in %v", policy, time.Until(due))
		}
		if policy == "sweep" { // goes round, whatever it hears
			if due := tell(1, honest); !due.IsZero() {
				t.Errorf("sweep: a signalled page is due in %v", time.Until(due))
			}
			continue
		}
		now = time.Now()
		soon, late := 0, 0
		for i := range 40 {
			switch due := tell(i, honest); {
			case due.IsZero(): // the price leaves some out
			case due.Sub(now) < time.Second:
				soon++
			default:
				late++
			}
		}
		if soon != p.sendLimit || policy != "fixed-optimal" && soon+late < 30 {
			t.Errorf("%s: %d pages are due at once, %d later; there is room for %d", policy, soon, late, p.sendLimit)
		}
		if due := p.Signalled(&Signalled{Page: pages[50], URL: urls[50], Belief: pages[50].History.Belief(change.DefaultPrior), Evidence: math.Inf(1), Total: math.Inf(1)}); due.IsZero() && policy != "fixed-optimal" {
			t.Errorf("%s: a certain signal was let pass", policy)
		}
	}
}

// The budget that the status page says a wanted freshness needs is the one with
// which a plan for all pages has it.
func TestNeeded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 1))
	kinds := map[kind]int{}
	var items []revisit.Item
	for range 400 {
		k := kind{rate: roundToOctave(math.Pow(10, 4*r.Float64()-6), 4), importance: roundToOctave(.5+r.Float64(), 1)}
		kinds[k]++
		items = append(items, revisit.Item{Importance: k.importance, Rate: k.rate})
	}
	for _, n := range neededBudgets(kinds, 2000) {
		plan, err := revisit.New(revisit.Policies()["fixed-optimal"], items, n.Rate)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(plan.Freshness-n.Freshness) > 1e-4 || math.Abs(n.Bytes-n.Rate*2000*86400) > 1 {
			t.Errorf("%+v: the plan has %.4f", n, plan.Freshness)
		}
	}
	before := neededBudgets(kinds, 1)[0].Rate
	kinds[kind{rate: 1e-3, importance: 1, signals: true}] = 10
	if after := neededBudgets(kinds, 1)[0].Rate; after <= before {
		t.Errorf("signals cost no visits: %g, before %g", after, before)
	}
}
