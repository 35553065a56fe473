package freshness

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/weburl"
)

// PendingSignals are the signals of a page that no visit has answered yet.
type PendingSignals struct {
	Source   string // of the last one
	Count    uint32
	Evidence float64 // of all (LogOdds)
	At       time.Time

	// Of these came before the visit under way began.
	countBefore    uint32
	evidenceBefore float64
}

// HostSignals is what is known of a host's sources of signals, and of its pages.
type HostSignals struct {
	Trust map[string]change.Trust
	Prior change.Prior
}

// SignalLedger remembers which source reported which page, until the page's
// visit, and what is known of sources. Both are bounded; the lasting record of
// trust is the host's. The zero SignalLedger is empty; it is safe for concurrent
// use.
type SignalLedger struct {
	mu sync.Mutex
	// Two generations: when the new one is full it becomes the old one, whose
	// signals are forgotten.
	now, old map[weburl.Key]PendingSignals
	hosts    map[string]HostSignals
}

const (
	maxPendingPages  = 100_000
	maxPageSignals   = 1000 // counted between two visits
	maxTrustingHosts = 20_000
)

// Add remembers a signal and returns all since the page's last visit.
func (l *SignalLedger) Add(source string, k weburl.Key, evidence float64, now time.Time) PendingSignals {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.now[k]
	if !ok {
		p = l.old[k]
		delete(l.old, k)
	}
	p.Source, p.Evidence, p.At = source, p.Evidence+evidence, now
	p.Count = min(p.Count+1, maxPageSignals)
	if !ok && len(l.now) >= maxPendingPages || l.now == nil {
		l.old, l.now = l.now, map[weburl.Key]PendingSignals{}
	}
	l.now[k] = p
	return p
}

// BeginVisit notes that a page is asked for: signals that come from now on wait
// for the next visit.
func (l *SignalLedger) BeginVisit(k weburl.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range []map[weburl.Key]PendingSignals{l.now, l.old} {
		if p, ok := m[k]; ok {
			p.countBefore, p.evidenceBefore = p.Count, p.Evidence
			m[k] = p
			return
		}
	}
}

// EndVisit returns the signals that came before the page was asked for, and keeps
// those that came since.
func (l *SignalLedger) EndVisit(k weburl.Key) (answered PendingSignals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range []map[weburl.Key]PendingSignals{l.now, l.old} {
		p, ok := m[k]
		if !ok || p.countBefore == 0 {
			continue
		}
		answered = p
		answered.Count, answered.Evidence = p.countBefore, p.evidenceBefore
		if p.Count -= p.countBefore; p.Count == 0 {
			delete(m, k)
			continue
		}
		p.countBefore, p.Evidence, p.evidenceBefore = 0, p.Evidence-p.evidenceBefore, 0
		if math.IsNaN(p.Evidence) { // both were infinite
			p.Evidence = math.Inf(1)
		}
		m[k] = p
	}
	return answered
}

// Pending returns the signals of a page since its last visit.
func (l *SignalLedger) Pending(k weburl.Key) (PendingSignals, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.now[k]
	if !ok {
		p, ok = l.old[k]
	}
	return p, ok
}

// HasPending reports whether any page has signals that no visit has answered.
func (l *SignalLedger) HasPending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.now)+len(l.old) > 0
}

// SetHost replaces what is known of a host.
func (l *SignalLedger) SetHost(host string, trust map[string]change.Trust, prior change.Prior) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(trust) == 0 {
		return
	}
	if l.hosts == nil || len(l.hosts) >= maxTrustingHosts {
		l.hosts = map[string]HostSignals{}
	}
	l.hosts[host] = HostSignals{maps.Clone(trust), prior}
}

// Host returns what is known of a host.
func (l *SignalLedger) Host(host string) HostSignals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hosts[host]
}

// EachTrust calls f for each known host and source.
func (l *SignalLedger) EachTrust(f func(host, source string, t change.Trust)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for host, known := range l.hosts {
		for source, t := range known.Trust {
			f(host, source, t)
		}
	}
}

// LogOdds returns the log-likelihood ratio of one signal of a source, -log(1 -
// precision): by so much it makes an unchanged page less likely.
func LogOdds(t change.Trust) float64 { return -math.Log1p(-t.Precision()) }

// qualityOf expresses the trust in a source in the terms of the policies. False
// signals are counted in proportion to true ones: late and doubled signals come
// with the changes, and those of a source that always reports drown all others.
func qualityOf(t change.Trust) revisit.Noisy {
	p := t.Precision()
	return revisit.Noisy{Recall: t.Recall(), Wrong: (1 - p) / p}
}

// SignalQuality returns how good the signals of a host's pages are, by the best of
// its sources. Until a source was right a few times nothing is known of it; and
// however good it is, it may fall silent, so that polling goes on.
func SignalQuality(trust map[string]change.Trust) revisit.Noisy {
	_, best := bestSource(trust)
	return best
}

// bestSource returns the source that reports most changes, "" for none.
func bestSource(trust map[string]change.Trust) (source string, best revisit.Noisy) {
	const minRight, maxRecall = 5, .95
	for name, t := range trust {
		if n := qualityOf(t); t.True >= minRight && (n.Recall > best.Recall || n.Recall == best.Recall && name < source) {
			source, best = name, n
		}
	}
	best.Recall = min(best.Recall, maxRecall)
	return source, best
}

// EvidenceOf returns the signals of a page together with the trust in their
// source, and in the host's best source where there was none.
func EvidenceOf(trust map[string]change.Trust, p PendingSignals) change.Heard {
	source, best := bestSource(trust)
	h := change.Heard{Recall: best.Recall}
	if p.Count > 0 {
		if p.Source != "" {
			source = p.Source
		}
		h.Signals, h.Precision = float64(p.Count), trust[source].Precision()
	}
	return h
}
