package freshness

import (
	"strconv"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
)

// Bounds of what is kept in a host's record.
const (
	maxClasses = 24
	maxSources = 24
)

// changeClass groups the pages of a host that may change alike: by type and depth.
func changeClass(p *store.Page) string { return extract.Type(p.Type) + strconv.Itoa(min(p.Depth, 3)) }

// PriorOf returns what the other pages of a host say of one, given base, what all
// hosts together say.
func PriorOf(h *store.Host, base change.Prior, p *store.Page) change.Prior {
	all := h.Groups[""]
	prior := all.Prior(base)
	if len(h.Groups) == 0 { // without a name for the class
		return prior
	}
	if g, ok := h.Groups[changeClass(p)]; ok {
		prior = g.Prior(prior)
	}
	return prior
}

// Learn adds a visit to what the host's record knows of its pages and of its
// sources of signals. before is the page's record that the visit found, answered
// are the signals that came before it. A visit that failed, or that had none
// before it, says nothing of changes and is left out.
func Learn(h *store.Host, base change.Prior, before, p *store.Page, answered PendingSignals, changed bool, now time.Time) (learned bool) {
	if p.State == store.Failed || before.State != store.OK || before.History.Last.IsZero() || (p.State != store.OK && p.State != store.Gone) {
		return false
	}
	seconds := now.Sub(before.History.Last).Seconds()
	rate := before.History.Own(PriorOf(h, base, before))
	for _, class := range []string{"", changeClass(before)} {
		g := h.Groups[class]
		g.Observe(seconds, changed)
		if h.Groups == nil {
			h.Groups = map[string]change.Group{}
		}
		if _, ok := h.Groups[class]; ok || len(h.Groups) < maxClasses {
			h.Groups[class] = g
		}
	}
	if source := answered.Source; source != "" {
		if h.Trust == nil {
			h.Trust = map[string]change.Trust{}
		}
		if _, ok := h.Trust[source]; ok || len(h.Trust) < maxSources {
			t := h.Trust[source]
			t.Visited(float64(answered.Count), changed, seconds, rate, now)
			h.Trust[source] = t
		}
	}
	for name, t := range h.Trust {
		if name != answered.Source {
			t.Visited(0, changed && answered.Source == "", seconds, rate, now)
			h.Trust[name] = t
		}
	}
	return true
}
