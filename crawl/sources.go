package crawl

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// sourceSet are the sources of a robot, which may be added and removed while it runs. It
// implements politeness.Sources.
type sourceSet struct {
	config *Config

	mu      sync.RWMutex // guards config.Scopes and removed
	removed []removedSource

	refreshing sync.Mutex
	refreshed  time.Time // when Config.Sources was called last; guarded by refreshing
}

// removedSource is a source that was removed while the robot ran.
type removedSource struct {
	scopes Scopes
	keep   bool
}

// AddScope adds a source while the robot runs.
func (r *Robot) AddScope(sc Scope) { r.sources.add(sc) }

// RemoveScope removes a source while the robot runs. Pages that were of it and are of no
// other are visited no more; with keep they stay as they are, else they are taken out of the
// index, each when it is due next. AddScope undoes it.
func (r *Robot) RemoveScope(sc Scope, keep bool) { r.sources.remove(sc, keep) }

// InScope returns "" for a URL that belongs to a source, else why it does not.
func (r *Robot) InScope(u weburl.URL, depth int) store.Reason { return r.sources.check(u, depth) }

func (s *sourceSet) add(sc Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Scopes.Add(sc)
	s.removed = slices.DeleteFunc(s.removed, func(m removedSource) bool { return m.scopes.Has(sc) })
}

func (s *sourceSet) remove(sc Scope, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Scopes.Remove(sc)
	var scopes Scopes
	sc.Depth = 0
	scopes.Add(sc)
	s.removed = append(s.removed, removedSource{scopes, keep})
}

// check returns "" for a URL that is in scope, else why not.
func (s *sourceSet) check(u weburl.URL, depth int) store.Reason {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.config.Scopes.Check(u, depth)
}

// isRemoved reports whether a page is of a source that was removed and of no other, and
// whether its content stays. Depths do not count here: they may be of the other source.
func (s *sourceSet) isRemoved(u weburl.URL) (yes, keep bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range s.removed {
		if m := &s.removed[i]; m.scopes.Check(u, 0) == "" {
			yes, keep = true, keep || m.keep
		}
	}
	return yes && s.config.Scopes.Check(u, 0) != "", keep
}

// refresh asks for the sources that other processes added, unless that was done since a
// time.
func (s *sourceSet) refresh(ctx context.Context, since time.Time) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	if s.refreshed.After(since) {
		return nil
	}
	now := time.Now()
	if err := s.config.Sources(ctx); err != nil {
		return fmt.Errorf("sources: %w", err)
	}
	s.refreshed = now
	return nil
}

// standingOf returns what speaks for a host against its copies.
func (s *sourceSet) standingOf(h *store.Host) trap.Standing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return trap.Standing{IsSource: s.config.Scopes.HasSeedOn(h.Name), Pages: h.Pages}
}

// permitsPage reports whether a source permits the request of a page to go to a private
// address.
func (s *sourceSet) permitsPage(u weburl.URL) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.config.Scopes.PermitsPage(u)
}

// PermitsHost implements politeness.Sources.
func (s *sourceSet) PermitsHost(u weburl.URL) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.config.Scopes.PermitsHost(u)
}

// NamesHost implements politeness.Sources.
func (s *sourceSet) NamesHost(u weburl.URL) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.config.Scopes.NamesHost(u)
}

// CheckPort implements politeness.Sources.
func (s *sourceSet) CheckPort(u weburl.URL) error {
	if blockedPort(u) && !s.NamesHost(u) {
		return errBlockedPort
	}
	return nil
}

// PaceOf implements politeness.Sources. Where several scopes name the host, the longest
// delay and the fewest connections hold.
func (s *sourceSet) PaceOf(host string) politeness.Pace {
	c := s.config
	p := politeness.Pace{Delay: c.Delay, Connections: 1}
	if politeness.IsLoopback(weburl.Hostname(host)) && !c.DelayGiven {
		p.Delay, p.NoPause = 0, true
	}
	named := s.scopesNaming(host)
	if len(named) == 0 {
		return p
	}
	connections := 0
	for _, sc := range named {
		if sc.Delay != nil && (!p.Fixed || *sc.Delay > p.Delay) {
			p.Delay, p.Fixed, p.NoPause = *sc.Delay, true, false
		}
		own := sc.Connections
		if own <= 0 {
			own = c.Connections
		}
		if connections == 0 || own < connections {
			connections = own
		}
	}
	if p.Delay == 0 && (p.Fixed || c.DelayGiven) {
		p.NoPause = true
	}
	if p.NoPause {
		p.Connections = max(connections, 1)
	}
	return p
}

// naming returns the scopes that name a host: those of the host and of its domain, and
// others that begin there.
func (s *Scopes) naming(host string) (named []*Scope) {
	u, err := weburl.Parse("http://" + host + "/")
	if err != nil {
		return nil
	}
	named = append(named, s.host[host]...)
	if s.domain != nil {
		named = append(named, s.domain[u.Domain()]...)
	}
	for _, sc := range s.others {
		if sc.Seed.Host() == host {
			named = append(named, sc)
		}
	}
	return named
}

// TakenBack reports whether a page was left out because its source was removed.
func TakenBack(p *store.Page) bool {
	return p.State == store.Excluded && p.Reason == store.ReasonSourceRemoved
}
