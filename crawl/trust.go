package crawl

import (
	"context"
	"time"

	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// dates is the source of signals that sitemaps and feeds are.
const dates = "dates"

// Signal says that a source has told of a change of a page, and returns when the
// page is due: zero for no sooner than it is anyway. Whether the page's next
// visit finds a change counts for or against the source, at its host.
func (r *Robot) Signal(ctx context.Context, source string, u weburl.URL) (due time.Time) {
	now := time.Now()
	p, err := r.config.Store.Page(ctx, u)
	if err != nil || p.State != store.OK { // new, or it failed when it was tried last
		if err == nil {
			return r.notBefore(source, now, p.History.Last)
		}
		return now // it is new
	}
	known := r.signals.Host(u.Host())
	e := freshness.LogOdds(known.Trust[source])
	all := r.signals.Add(source, u.Key(), e, now)
	b := freshness.EvidenceOf(known.Trust, all).Belief(p.History.Belief(known.Prior), now.Sub(p.History.Last).Seconds())
	due = r.config.Plan.Signalled(&freshness.Signalled{Page: p, URL: u, Belief: b, Evidence: e, Total: all.Evidence, Signals: freshness.SignalQuality(known.Trust)})
	return r.notBefore(source, due, p.History.Last)
}

// notBefore keeps dates in sitemaps from having a page visited more often than MinRevisit:
// they are what a site, or somebody else, writes into a file, not an event.
func (r *Robot) notBefore(source string, due, last time.Time) time.Time {
	if earliest := last.Add(r.config.MinRevisit); source == dates && !due.IsZero() && due.Before(earliest) {
		return earliest
	}
	return due
}

// Belief is what is believed of a page's change rate now, of which p was believed
// before its first visit: signals that came since the last visit tell of it, and
// so does their silence. evidence is what they say of a change.
func (r *Robot) Belief(p *store.Page, u weburl.URL, prior change.Prior, trust map[string]change.Trust, now time.Time) (b change.Belief, evidence float64) {
	pending, _ := r.signals.Pending(u.Key())
	return freshness.EvidenceOf(trust, pending).Belief(p.History.Belief(prior), now.Sub(p.History.Last).Seconds()), pending.Evidence
}

// Trust calls f for each host and source of signals that are known.
func (r *Robot) Trust(f func(host, source string, t change.Trust)) { r.signals.EachTrust(f) }

// knowSignals takes over what a host's record says of signals.
func (r *Robot) knowSignals(h *store.Host) {
	all := h.Groups[""]
	r.signals.SetHost(h.Name, h.Trust, all.Prior(r.prior()))
}

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

// prior returns what the host's pages say of one.
func (a *agent) prior(p *store.Page) change.Prior {
	return freshness.PriorOf(&a.host, a.robot.prior(), p)
}
