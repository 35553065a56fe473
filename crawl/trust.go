package crawl

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Visited is what an Interval decides by.
type Visited struct {
	Page    *store.Page   // its record after the visit
	Since   time.Duration // since the visit before; 0 for the first
	Changed bool          // it is not what it was then
	Prior   change.Prior  // what the host's other pages say of one not known well
	Recall  float64       // share of the host's changes that are signalled
}

// Rate is the page's change rate in changes a second.
func (v *Visited) Rate() float64 { return v.Page.History.Rate(v.Prior) }

// dates is the source of signals that sitemaps and feeds are.
const dates = "dates"

// signals remembers which source told of which page, until its visit, and what
// is known of sources. Both are bounded; the lasting record of trust is the
// host's.
type signals struct {
	mu       sync.Mutex
	now, old map[weburl.Key]string
	trust    map[string]map[string]change.Trust // by host, source
	random   func() float64
}

const (
	signalsKept = 100_000
	trustedKept = 20_000
)

// accept decides whether a signal is heeded, and remembers it: always of a
// source that is right, seldom of one that never is, so that it can win its
// trust back.
func (s *signals) accept(source string, u weburl.URL) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	random := s.random
	if random == nil {
		random = rand.Float64
	}
	if doubt := s.trust[u.Host()][source].Believe(); doubt > 0 && random() < min(doubt, .95) {
		return false
	}
	if s.now == nil || len(s.now) >= signalsKept {
		s.old, s.now = s.now, map[weburl.Key]string{}
	}
	s.now[u.Key()] = source
	return true
}

// take returns the source whose signal a page is visited for, or "".
func (s *signals) take(k weburl.Key) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	source := s.now[k]
	if source == "" {
		source = s.old[k]
	}
	delete(s.now, k)
	delete(s.old, k)
	return source
}

// learned replaces what is known of a host's sources.
func (s *signals) learned(host string, of map[string]change.Trust) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(of) == 0 {
		return
	}
	if s.trust == nil || len(s.trust) >= trustedKept {
		s.trust = map[string]map[string]change.Trust{}
	}
	s.trust[host] = maps.Clone(of)
}

// Signal reports whether to heed the notice of a source that a page changed. If
// so, whether the page's next visit finds a change counts for or against the
// source, at its host.
func (r *Robot) Signal(source string, u weburl.URL) bool { return r.signals.accept(source, u) }

// Trust calls f for each host and source of signals that are known.
func (r *Robot) Trust(f func(host, source string, t change.Trust)) {
	r.signals.mu.Lock()
	defer r.signals.mu.Unlock()
	for host, of := range r.signals.trust {
		for source, t := range of {
			f(host, source, t)
		}
	}
}

// Recall is the share of a host's changes that its best source of signals tells
// of; 0 before it was right a few times.
func Recall(h *store.Host) float64 {
	const few = 5
	best := 0.
	for _, t := range h.Trust {
		if t.True >= few {
			best = max(best, t.Recall())
		}
	}
	return best
}

// learn adds a visit to what is known of the host's pages and sources of
// signals. before is the record that the visit found.
func (a *agent) learn(before, p *store.Page, u weburl.URL, changed bool, now time.Time) {
	if p.State == store.Failed {
		return // nothing was seen: the signal waits for the next try
	}
	source := a.robot.signals.take(u.Key())
	if before.State != store.OK || before.History.Last.IsZero() || (p.State != store.OK && p.State != store.Gone) {
		return
	}
	seconds := now.Sub(before.History.Last).Seconds()
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
	if source != "" {
		if a.host.Trust == nil {
			a.host.Trust = map[string]change.Trust{}
		}
		t := a.host.Trust[source]
		t.Signalled(changed)
		if _, ok := a.host.Trust[source]; ok || len(a.host.Trust) < maxSources {
			a.host.Trust[source] = t
		}
	}
	for name, t := range a.host.Trust {
		if name != source {
			t.Polled(changed && source == "", seconds)
			a.host.Trust[name] = t
		}
	}
	a.robot.signals.learned(a.host.Name, a.host.Trust)
}

// Bounds of what is kept in a host's record.
const (
	maxClasses = 24
	maxSources = 24
)

// class groups the pages of a host that may change alike: by type and depth.
func class(p *store.Page) string { return extract.Type(p.Type) + strconv.Itoa(min(p.Depth, 3)) }

// prior is what the host's pages say of one of its class.
func (a *agent) prior(p *store.Page) change.Prior {
	all := a.host.Groups[""]
	prior := all.Prior(change.DefaultPrior)
	if g, ok := a.host.Groups[class(p)]; ok {
		prior = g.Prior(prior)
	}
	return prior
}
