package crawl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// AddScope takes a further source while the robot runs.
func (r *Robot) AddScope(sc Scope) {
	r.scopesMu.Lock()
	defer r.scopesMu.Unlock()
	r.config.Scopes.Add(sc)
	r.removed = slices.DeleteFunc(r.removed, func(m removed) bool { return m.scopes.Has(sc) })
}

// RemoveScope takes a source back while the robot runs. Pages that were of it and
// are of no other are visited no more; with keep they stay as they are, else they
// are taken out of the index, each when it is due next. AddScope undoes it.
func (r *Robot) RemoveScope(sc Scope, keep bool) {
	r.scopesMu.Lock()
	defer r.scopesMu.Unlock()
	r.config.Scopes.Remove(sc)
	r.removed = append(r.removed, removed{scopeOf(sc), keep})
}

// removed is a source that was taken back.
type removed struct {
	scopes Scopes
	keep   bool
}

func scopeOf(sc Scope) (s Scopes) {
	sc.Depth = 0
	s.Add(sc)
	return s
}

// takenBack reports whether a page is of a source that was taken back and of no
// other, and whether what is known of it stays. Depths do not count here: they may
// be of the other source.
func (r *Robot) takenBack(u weburl.URL) (yes, keep bool) {
	r.scopesMu.RLock()
	defer r.scopesMu.RUnlock()
	for i := range r.removed {
		if m := &r.removed[i]; m.scopes.Check(u, 0) == "" {
			yes, keep = true, keep || m.keep
		}
	}
	return yes && r.config.Scopes.Check(u, 0) != "", keep
}

// newSources asks for the sources anew, unless that was done since a time.
func (r *Robot) newSources(ctx context.Context, since time.Time) error {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.asked.After(since) {
		return nil
	}
	now := time.Now()
	if err := r.config.Sources(ctx); err != nil {
		return fmt.Errorf("sources: %w", err)
	}
	r.asked = now
	return nil
}

// InScope is Scopes.Check beside AddScope.
func (r *Robot) InScope(u weburl.URL, depth int) store.Reason {
	r.scopesMu.RLock()
	defer r.scopesMu.RUnlock()
	return r.config.Scopes.Check(u, depth)
}

// takeBack leaves a page alone whose source was taken back. It stays in the queue,
// so that it is found there when the source is added again.
func (a *agent) takeBack(p *store.Page, keep bool) {
	a.robot.stats.skip(store.ReasonSourceRemoved)
	before, now := *p, time.Now()
	if !keep || !before.Held() {
		p.State, p.Reason, p.Error, p.Digest = store.Excluded, store.ReasonSourceRemoved, "source removed", [16]byte{}
	}
	p.Slot = store.Slot{Due: now.Add(a.robot.config.MaxRevisit)}
	a.record(&before, p, store.Visit{Changed: before.Held() && !keep}, now)
}

// TakenBack reports whether a page was left out because its source was taken back.
func TakenBack(p *store.Page) bool {
	return p.State == store.Excluded && p.Reason == store.ReasonSourceRemoved
}
