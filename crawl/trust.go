package crawl

import (
	"context"
	"maps"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/revisit"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// dates is the source of signals that sitemaps and feeds are.
const dates = "dates"

// pending is what a page was signalled since it was asked for last.
type pending struct {
	source   string // the last one
	count    uint32
	asked    uint32 // of count, those that came before the visit under way
	evidence float64
	before   float64 // of evidence, that of those
	at       time.Time
}

// signals remembers which source told of which page, until its visit, and what
// is known of sources. Both are bounded; the lasting record of trust is the
// host's.
type signals struct {
	mu       sync.Mutex
	now, old map[weburl.Key]pending
	hosts    map[string]heard
}

// heard is what is known of a host's sources and of its pages.
type heard struct {
	trust map[string]change.Trust
	prior change.Prior
}

const (
	signalsKept    = 100_000
	signalsCounted = 1000 // of a page, between two visits
	trustedKept    = 20_000
)

// add remembers a signal and returns what all since the last visit say.
func (s *signals) add(source string, k weburl.Key, evidence float64, now time.Time) (all pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.now[k]
	if !ok {
		p = s.old[k]
		delete(s.old, k)
	}
	p.source, p.evidence, p.at = source, p.evidence+evidence, now
	p.count = min(p.count+1, signalsCounted)
	if !ok && len(s.now) >= signalsKept || s.now == nil {
		s.old, s.now = s.now, map[weburl.Key]pending{}
	}
	s.now[k] = p
	return p
}

// ask notes that a page is asked for: signals that come from now on wait for the
// next visit.
func (s *signals) ask(k weburl.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range []map[weburl.Key]pending{s.now, s.old} {
		if p, ok := m[k]; ok {
			p.asked, p.before = p.count, p.evidence
			m[k] = p
			return
		}
	}
}

// take ends a visit: it returns what the page was signalled before it was asked
// for, and keeps what came since.
func (s *signals) take(k weburl.Key) (heard pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range []map[weburl.Key]pending{s.now, s.old} {
		p, ok := m[k]
		if !ok || p.asked == 0 {
			continue
		}
		heard = p
		heard.count, heard.evidence = p.asked, p.before
		if p.count -= p.asked; p.count == 0 {
			delete(m, k)
		} else {
			p.asked, p.evidence, p.before = 0, p.evidence-p.before, 0
			if math.IsNaN(p.evidence) { // both were infinite
				p.evidence = math.Inf(1)
			}
			m[k] = p
		}
	}
	return heard
}

// waiting returns what a page was signalled since its last visit.
func (s *signals) waiting(k weburl.Key) (pending, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.now[k]
	if !ok {
		p, ok = s.old[k]
	}
	return p, ok
}

// any reports whether any page was signalled and not visited since.
func (s *signals) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.now)+len(s.old) > 0
}

// learned replaces what is known of a host.
func (s *signals) learned(host string, of map[string]change.Trust, prior change.Prior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(of) == 0 {
		return
	}
	if s.hosts == nil || len(s.hosts) >= trustedKept {
		s.hosts = map[string]heard{}
	}
	s.hosts[host] = heard{maps.Clone(of), prior}
}

// heard returns what is known of a host.
func (s *signals) heard(host string) heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[host]
}

// worth is what is known of a source in the terms of the policies. False signals
// are reckoned in proportion to the true ones: late and doubled ones come with the
// changes, and those of a source that always tells drown all others.
func worth(t change.Trust) revisit.Noisy {
	p := t.Precision()
	return revisit.Noisy{Recall: t.Recall(), Wrong: (1 - p) / p}
}

// evidence is what one signal of a source says: that its page is as it was is as
// many times less likely as signals are wrong.
func evidence(t change.Trust) float64 { return -math.Log1p(-t.Precision()) }

// hearing is what a page was signalled, beside what is known of the host's best
// source.
func hearing(trust map[string]change.Trust, p pending) change.Heard {
	source, best := bestOf(trust)
	h := change.Heard{Recall: best.Recall}
	if p.count > 0 {
		if p.source != "" {
			source = p.source
		}
		h.Signals, h.Precision = float64(p.count), trust[source].Precision()
	}
	return h
}

// Signal says that a source has told of a change of a page, and returns when the
// page is due: zero for no sooner than it is anyway. Whether the page's next
// visit finds a change counts for or against the source, at its host.
func (r *Robot) Signal(ctx context.Context, source string, u weburl.URL) (due time.Time) {
	now := time.Now()
	p, err := r.config.Store.Page(ctx, u)
	if err != nil || p.State != store.OK {
		return now // new, or not to be had when it was tried last
	}
	known := r.signals.heard(u.Host())
	e := evidence(known.trust[source])
	all := r.signals.add(source, u.Key(), e, now)
	b := hearing(known.trust, all).Belief(p.History.Belief(known.prior), now.Sub(p.History.Last).Seconds())
	return r.config.Plan.Signalled(&Signalled{Page: p, URL: u, Belief: b, Evidence: e, Total: all.evidence, Signals: Noisy(known.trust)})
}

// Belief is what is believed of a page's change rate now, of which p was believed
// before its first visit: signals that came since the last visit tell of it, and
// so does their silence. evidence is what they say of a change.
func (r *Robot) Belief(p *store.Page, u weburl.URL, prior change.Prior, trust map[string]change.Trust, now time.Time) (b change.Belief, evidence float64) {
	heard, _ := r.signals.waiting(u.Key())
	return hearing(trust, heard).Belief(p.History.Belief(prior), now.Sub(p.History.Last).Seconds()), heard.evidence
}

// Trust calls f for each host and source of signals that are known.
func (r *Robot) Trust(f func(host, source string, t change.Trust)) {
	r.signals.mu.Lock()
	defer r.signals.mu.Unlock()
	for host, of := range r.signals.hosts {
		for source, t := range of.trust {
			f(host, source, t)
		}
	}
}

// Noisy is what is known of the signals of a host's pages, by the best of its
// sources: nothing before that was right a few times. However good, a source may
// fall silent: polling goes on.
func Noisy(trust map[string]change.Trust) revisit.Noisy {
	_, best := bestOf(trust)
	return best
}

// bestOf returns the source that tells of most changes, "" for none.
func bestOf(trust map[string]change.Trust) (source string, best revisit.Noisy) {
	const few, most = 5, .95
	for name, t := range trust {
		if n := worth(t); t.True >= few && (n.Recall > best.Recall || n.Recall == best.Recall && name < source) {
			source, best = name, n
		}
	}
	best.Recall = min(best.Recall, most)
	return source, best
}

// observe adds a visit to a page's history.
func (a *agent) observe(p *store.Page, changed bool, now time.Time) {
	p.History.ObserveHeard(now, changed, a.prior(p), hearing(a.host.Trust, a.told))
}

// learn adds a visit to what is known of the host's pages and sources of
// signals. before is the record that the visit found.
func (a *agent) learn(before, p *store.Page, changed bool, now time.Time) {
	if p.State == store.Failed || before.State != store.OK || before.History.Last.IsZero() || (p.State != store.OK && p.State != store.Gone) {
		return
	}
	seconds := now.Sub(before.History.Last).Seconds()
	rate := before.History.Own(a.prior(before))
	for _, class := range []string{"", class(before)} {
		g := a.host.Groups[class]
		g.Observe(seconds, changed)
		if a.host.Groups == nil {
			a.host.Groups = map[string]change.Group{}
		}
		if _, ok := a.host.Groups[class]; ok || len(a.host.Groups) < maxClasses {
			a.host.Groups[class] = g
		}
	}
	if source := a.told.source; source != "" {
		if a.host.Trust == nil {
			a.host.Trust = map[string]change.Trust{}
		}
		if _, ok := a.host.Trust[source]; ok || len(a.host.Trust) < maxSources {
			t := a.host.Trust[source]
			t.Visited(float64(a.told.count), changed, seconds, rate, now)
			a.host.Trust[source] = t
		}
	}
	for name, t := range a.host.Trust {
		if name != a.told.source {
			t.Visited(0, changed && a.told.source == "", seconds, rate, now)
			a.host.Trust[name] = t
		}
	}
	a.robot.heard(&a.host)
}

// heard takes what a host's record says of signals.
func (r *Robot) heard(h *store.Host) {
	all := h.Groups[""]
	r.signals.learned(h.Name, h.Trust, all.Prior(r.prior()))
}

// hasten has pages of the batch visited again whose signals came after they were
// asked for: before the commit in their records, after it in the queue, for
// signals that came meanwhile.
func (a *agent) hasten(ctx context.Context, visits []store.Visit, committed bool) error {
	r := a.robot
	if !r.signals.any() {
		return nil
	}
	var found []store.Found
	for i := range visits {
		v := &visits[i]
		u, err := weburl.Parse(v.Page.URL)
		if err != nil {
			continue
		}
		w, ok := r.signals.waiting(u.Key())
		if !ok || v.Page.State != store.OK || !w.at.After(v.Arrived.Add(-v.Took)) {
			continue
		}
		b := hearing(a.host.Trust, w).Belief(v.Page.History.Belief(a.prior(&v.Page)), w.at.Sub(v.Page.History.Last).Seconds())
		due := r.config.Plan.Signalled(&Signalled{Page: &v.Page, URL: u, Belief: b, Evidence: w.evidence, Total: w.evidence, Signals: Noisy(a.host.Trust)})
		switch {
		case due.IsZero() || !due.Before(v.Page.Slot.Due):
		case committed:
			found = append(found, store.Found{URL: u, Due: due})
		default:
			v.Page.Slot.Due = due
		}
	}
	if len(found) == 0 {
		return nil
	}
	_, err := r.config.Store.Add(ctx, found)
	return err
}

// Bounds of what is kept in a host's record.
const (
	maxClasses = 24
	maxSources = 24
)

// class groups the pages of a host that may change alike: by type and depth.
func class(p *store.Page) string { return extract.Type(p.Type) + strconv.Itoa(min(p.Depth, 3)) }

// SetPrior says what all hosts together say of one that nothing is known of yet.
// Without it a host whose pages were never visited twice would be taken for one
// that hardly ever changes, and with rules that choose by value stay so.
func (r *Robot) SetPrior(p change.Prior) { r.base.Store(&p) }

func (r *Robot) prior() change.Prior {
	if p := r.base.Load(); p != nil {
		return *p
	}
	return change.DefaultPrior
}

// prior is what the host's pages say of one of its class.
func (a *agent) prior(p *store.Page) change.Prior {
	all := a.host.Groups[""]
	prior := all.Prior(a.robot.prior())
	if len(a.host.Groups) == 0 { // a name of the class is made for nothing
		return prior
	}
	if g, ok := a.host.Groups[class(p)]; ok {
		prior = g.Prior(prior)
	}
	return prior
}
