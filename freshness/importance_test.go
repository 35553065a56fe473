package freshness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/cluster/single"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/weburl"
)

// With a budget the rate of a page's visits follows the policy at the price that
// the known pages make; a policy without budget, or an unknown one, is refused.
func TestPolicy(t *testing.T) {
	t.Parallel()
	p := newTestScheduler(t, SchedulerConfig{Policy: "uniform", Budget: 2})
	kinds := map[kind]int{{rate: 1e-3, importance: 1}: 30, {rate: 1e-5, importance: 1}: 10}
	if err := p.setPrices(kinds, kinds); err != nil {
		t.Fatal(err)
	}
	page := &store.Page{URL: "http://h.example/"}
	u, _ := weburl.Parse(page.URL)
	if _, rate := p.valueOf(page, u, change.Belief{Shape: 1, Time: 1e4}, revisit.Noisy{}, 0, false); math.Abs(rate-1./20) > 1e-9 { // 40 pages, 2 a second
		t.Errorf("uniform: %g a second", rate)
	}
	for policy, want := range map[string]string{"best": "unknown policy", "fixed-optimal": "set crawl.budget", "greedy": "set crawl.budget"} {
		if _, _, err := NewPlanner(SchedulerConfig{Policy: policy}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without a budget: %v, want %q", policy, err, want)
		}
	}
	for _, name := range PolicyNames() {
		if _, s, err := NewPlanner(SchedulerConfig{Policy: name, Budget: 1}); err != nil || s == nil {
			t.Errorf("%s: %v, scheduler %v; want one", name, err, s)
		}
	}
}

// What a page is worth: its source's weight, the links to it, the clicks on it;
// a policy visits it the more often, and with a budget of bytes a large page
// without validators the less.
func TestImportance(t *testing.T) {
	t.Parallel()
	var clicks Clicks
	importance := Importance{Clicks: &clicks}
	for address, weight := range map[string]float64{"http://h.example/": 2, "http://h.example/news/": 6} {
		u, err := weburl.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		importance.SetWeight(u, weight)
	}
	worth := func(address string) float64 {
		t.Helper()
		u, err := weburl.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return importance.Of(&store.Page{URL: address}, u)
	}
	plain, news, foreign := worth("http://h.example/a"), worth("http://h.example/news/a"), worth("http://other.example/a")
	if plain != 2*foreign || news != 3*plain {
		t.Errorf("weights 1, 2, 6 give %g, %g, %g", foreign, plain, news)
	}
	for range 3 {
		clicks.Add("http://h.example/a", time.Now())
	}
	if got := worth("http://h.example/a"); got != 3*plain {
		t.Errorf("after three clicks %g, want %g", got, 3*plain)
	}
	small, large := &store.Page{URL: "http://h.example/s", Bytes: 1000}, &store.Page{URL: "http://h.example/l", Bytes: 1_000_000}
	guarded := &store.Page{URL: "http://h.example/g", Bytes: 1_000_000, ETag: "x", History: change.History{Visits: 50, Changes: 1, Time: 1e6}}
	kinds := map[kind]int{}
	for _, p := range []*store.Page{small, large, guarded} {
		kinds[kind{rate: 1e-5, importance: 1, cost: roundToOctave(VisitCost(p), 2)}] += 50_000
	}
	p := newTestScheduler(t, SchedulerConfig{Policy: "fixed-optimal", BudgetBytes: (1 << 30) / 86400.})
	if err := p.setPrices(kinds, kinds); err != nil {
		t.Fatal(err)
	}
	rate := func(page *store.Page) float64 {
		u, _ := weburl.Parse(page.URL)
		_, f := p.valueOf(page, u, page.History.Belief(change.DefaultPrior), revisit.Noisy{}, 0, false)
		return f
	}
	if a, b, c := rate(small), rate(large), rate(guarded); !(a > c && c > b) {
		t.Errorf("visits a second: small page %g, large one %g, large one with validators %g", a, b, c)
	}
}

// Clicks outlast the process, fade, and do not fill the memory; a click writes
// its shard, not all clicks.
func TestClicks(t *testing.T) {
	t.Parallel()
	s, err := local.Open(filepath.Join(t.TempDir(), "store"), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var i Clicks
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := s.Put(t.Context(), clicksName, []byte(`{"faded":"2026-01-01T00:00:00Z","clicks":{"http://old/":8}}`)); err != nil {
		t.Fatal(err)
	}
	alone := single.New("", s)
	if err := errors.Join(i.Load(t.Context(), s, now.Add(change.HalfLife)), i.takeWhole(t.Context(), alone, now.Add(change.HalfLife))); err != nil || math.Abs(i.Count("http://old/")-4) > 1e-9 {
		t.Fatalf("clicks of an older program: %g, %v, want 4", i.Count("http://old/"), err)
	}
	now = now.Add(change.HalfLife)
	for k := range 3 * maxClicked {
		i.Add(fmt.Sprintf("http://h/%d", k), now)
		if k%4 == 0 {
			i.Add("http://h/0", now)
			i.Add("http://old/", now)
		}
	}
	i.Add("http://h/"+strings.Repeat("x", maxClickedURL), now)
	if len(i.clicks) > maxClicked+1 || i.Count("http://h/0") < maxClicked/2 {
		t.Errorf("%d pages, %g clicks on the first", len(i.clicks), i.Count("http://h/0"))
	}
	before := i.Count("http://h/0")
	i.Add("http://h/0", now.Add(change.HalfLife))
	if got := i.Count("http://h/0"); math.Abs(got-(before/2+1)) > 1 {
		t.Errorf("%g clicks a half-life after %g", got, before)
	}
	if err := i.save(t.Context(), alone, now.Add(change.HalfLife)); err != nil {
		t.Fatal(err)
	}
	var back Clicks
	if err := back.Load(t.Context(), s, now.Add(change.HalfLife)); err != nil || math.Abs(back.Count("http://h/0")-i.Count("http://h/0")) > 1e-6 || math.Abs(back.Count("http://old/")-i.Count("http://old/")) > 1e-6 {
		t.Errorf("read back %g, %v, want %g", back.Count("http://h/0"), err, i.Count("http://h/0"))
	}
	counting := &countingStore{Store: s}
	back.Add("http://h/1", now.Add(change.HalfLife))
	if err := back.save(t.Context(), single.New("", counting), now.Add(change.HalfLife)); err != nil || counting.puts != 1 || counting.bytes > 200<<10 {
		t.Errorf("one click: %d writes of %d bytes, %v, want 1", counting.puts, counting.bytes, err)
	}
}

// Clicks that several processes count add up, and each learns of the others'.
func TestClicksOfProcesses(t *testing.T) {
	t.Parallel()
	s, err := local.Open(filepath.Join(t.TempDir(), "store"), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, shared := t.Context(), single.New("", s)
	const page, processes, rounds = "http://h/", 3, 4
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := make([]Clicks, processes)
	var wg sync.WaitGroup
	for k := range all {
		if err := all[k].Load(ctx, s, now); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range rounds {
				all[k].Add(page, now)
				if err := all[k].save(ctx, shared, now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all[0].Add(page, now) // not saved yet
	for k := range all {
		if err := all[k].Load(ctx, s, now); err != nil {
			t.Fatal(err)
		}
		want := float64(processes * rounds)
		if k == 0 {
			want++
		}
		if got := all[k].Count(page); got != want {
			t.Errorf("process %d knows of %g clicks, want %g", k, got, want)
		}
	}
	failing := &all[0]
	cut, cancel := context.WithCancel(ctx)
	cancel()
	if err := failing.save(cut, cutOff{}, now); err == nil {
		t.Error("saving succeeded without a store")
	}
	if err := failing.save(ctx, shared, now); err != nil || failing.Count(page) != processes*rounds+1 {
		t.Errorf("%g clicks after a save that failed and one that did not, %v; want %d", failing.Count(page), err, processes*rounds+1)
	}
}

// cutOff are settings that cannot be reached.
type cutOff struct{}

func (cutOff) UpdateSetting(ctx context.Context, _ string, _ func([]byte) ([]byte, error)) error {
	return ctx.Err()
}

// countingStore counts what is written to settings.
type countingStore struct {
	store.Store
	puts, bytes int
}

func (s *countingStore) Put(ctx context.Context, name string, value []byte) error {
	s.puts++
	s.bytes += len(value)
	return s.Store.Put(ctx, name, value)
}
