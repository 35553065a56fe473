package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// sourcesKey is the setting with the sources that were added while nodes ran.
const sourcesKey = "sources"

func (n *Node) savedSources(ctx context.Context) (out []console.Source, err error) {
	return out, n.setting(ctx, sourcesKey, &out)
}

// setting reads a setting that is kept as JSON; without one v stays as it is.
func (n *Node) setting(ctx context.Context, key string, v any) error {
	b, err := n.parts.Store.Get(ctx, key)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	return nil
}

// updateSetting changes a setting that is kept as JSON; no concurrent change, here or at
// other nodes, is lost. change may be called again.
func updateSetting[T any](ctx context.Context, c cluster.Cluster, key string, change func(v *T) error) error {
	return c.UpdateSetting(ctx, key, func(b []byte) ([]byte, error) {
		var v T
		if len(b) > 0 {
			if err := json.Unmarshal(b, &v); err != nil {
				return nil, err
			}
		}
		if err := change(&v); err != nil {
			return nil, err
		}
		return json.Marshal(v)
	})
}

// saveSource keeps a source for the next start, and for the other nodes.
func (n *Node) saveSource(ctx context.Context, s console.Source) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	return updateSetting(ctx, n.parts.Cluster, sourcesKey, func(saved *[]console.Source) error {
		if !slices.ContainsFunc(*saved, func(o console.Source) bool { return o.URL == s.URL }) {
			*saved = append(*saved, s)
		}
		return nil
	})
}

// readSources takes up sources that were added before the start or at other
// nodes.
func (n *Node) readSources(ctx context.Context) error {
	n.reading.Lock()
	defer n.reading.Unlock()
	saved, err := n.savedSources(ctx)
	if err != nil {
		return err
	}
	if err := n.readRemoved(ctx); err != nil {
		return err
	}
	for _, s := range saved {
		n.mu.Lock()
		known := slices.ContainsFunc(n.sources, func(o console.Source) bool { return o.URL == s.URL })
		n.mu.Unlock()
		if known {
			continue
		}
		if err := n.takeSource(s); err != nil {
			return err
		}
	}
	return nil
}

// takeSource lets the robot follow the links of a web site.
func (n *Node) takeSource(s console.Source) error {
	u, err := weburl.Parse(s.URL)
	if err != nil {
		return err
	}
	if err := n.checkContact(u, false); err != nil {
		return err
	}
	sc, err := scopeOf(s)
	if err != nil {
		return err
	}
	s.Added = true
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.sources {
		switch {
		case o.URL != s.URL:
		case cmp.Or(o.Scope, "host") == cmp.Or(s.Scope, "host") && o.Depth == s.Depth:
			return nil // added twice
		default:
			return fmt.Errorf("%s is a source already, with the scope %s and depth %d: take it back first", s.URL, cmp.Or(o.Scope, "host"), o.Depth)
		}
	}
	sc.Private = n.options.AllowPrivate
	n.ready.Load().AddScope(sc)
	n.sources = append(n.sources, s)
	delete(n.gone, s.URL)
	return nil
}

// removedKey is the setting with the sources that were taken back, by which a
// later start and the other nodes know what to do with their pages.
const removedKey = "sources-removed"

// removedSource is a source that was taken back, or, for a while, one that was
// taken back and added again.
type removedSource struct {
	console.Source
	At    time.Time // when it was taken back, or added again
	Keep  bool      // its pages stay in the index
	Again bool      // it is a source again
	Swept bool      // its pages have been made due
	// Settled says that they have been once more, after all nodes had heard of it:
	// before, one that had not may have visited them like any other.
	Settled bool
}

// same tells an entry from a later one of the same source.
func (r *removedSource) same(o removedSource) bool {
	return r.URL == o.URL && r.At.Equal(o.At) && r.Again == o.Again
}

// RemoveSource implements console.Operator.
func (n *Node) RemoveSource(ctx context.Context, url string, keep bool) error {
	if err := n.removeSource(ctx, url, keep); err != nil {
		return err
	}
	return n.readRemoved(ctx)
}

func (n *Node) removeSource(ctx context.Context, url string, keep bool) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	saved, err := n.savedSources(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(saved, func(s console.Source) bool { return s.URL == url })
	if i < 0 || n.configured(url) {
		return n.notRemovable(url)
	}
	entry := removedSource{Source: saved[i], At: time.Now().UTC(), Keep: keep}
	// In this order: what a crash leaves undone between the two is that the source
	// is in both, and then it is still a source.
	err = updateSetting(ctx, n.parts.Cluster, removedKey, func(removed *[]removedSource) error {
		*removed = append(slices.DeleteFunc(*removed, func(r removedSource) bool { return r.URL == url }), entry)
		return nil
	})
	if err != nil {
		return err
	}
	return updateSetting(ctx, n.parts.Cluster, sourcesKey, func(saved *[]console.Source) error {
		*saved = slices.DeleteFunc(*saved, func(s console.Source) bool { return s.URL == url })
		return nil
	})
}

// notRemovable says why a source cannot be taken back.
func (n *Node) notRemovable(url string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.ContainsFunc(n.sources, func(s console.Source) bool { return s.URL == url }) {
		return fmt.Errorf("%s is no source: freshet sources lists them", url)
	}
	if src := (config.Source{URL: url}); src.Share() {
		return fmt.Errorf("%s is a share: shares are taken back by the configuration file and a new start", url)
	}
	return fmt.Errorf("%s stands in the configuration file: take it out there and start again", url)
}

// readRemoved lets the robot leave the pages of sources alone that were taken
// back, here, before the start or at another node. One that stands in this
// process's configuration by now is a source again.
func (n *Node) readRemoved(ctx context.Context) error {
	var removed []removedSource
	if err := n.setting(ctx, removedKey, &removed); err != nil {
		return err
	}
	saved, err := n.savedSources(ctx)
	if err != nil {
		return err
	}
	for _, r := range removed {
		if n.configured(r.URL) {
			if !r.Again {
				if err := n.takeUpAgain(ctx, r.Source); err != nil {
					return err
				}
			}
			continue
		}
		if r.Again || slices.ContainsFunc(saved, func(s console.Source) bool { return s.URL == r.URL }) || !n.forget(r) {
			continue
		}
		sc, err := scopeOf(r.Source)
		if err != nil {
			return err
		}
		n.ready.Load().RemoveScope(sc, r.Keep)
	}
	n.wakeSweep()
	return nil
}

// configured reports whether a source stands in the configuration file.
func (n *Node) configured(url string) bool {
	return slices.ContainsFunc(n.config.Sources, func(s config.Source) bool { return s.URL == url })
}

// forget takes a source off the list; false if the robot was told before.
func (n *Node) forget(r removedSource) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sources = slices.DeleteFunc(n.sources, func(s console.Source) bool { return s.Added && s.URL == r.URL })
	if n.gone[r.URL] {
		return false
	}
	if n.gone == nil {
		n.gone = map[string]bool{}
	}
	n.gone[r.URL] = true
	return true
}

func scopeOf(s console.Source) (crawl.Scope, error) {
	u, err := weburl.Parse(s.URL)
	if err != nil {
		return crawl.Scope{}, err
	}
	return crawl.NewScope(u, s.Scope, s.Depth, nil, nil)
}

// takeUpAgain lets the pages of a source that had been taken back be visited soon.
func (n *Node) takeUpAgain(ctx context.Context, s console.Source) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	known := false
	err := updateSetting(ctx, n.parts.Cluster, removedKey, func(removed *[]removedSource) error {
		i := slices.IndexFunc(*removed, func(r removedSource) bool { return r.URL == s.URL })
		if known = i >= 0; known {
			(*removed)[i] = removedSource{Source: s, At: time.Now().UTC(), Again: true}
		}
		return nil
	})
	if err == nil && known {
		n.wakeSweep()
	}
	return err
}

func (n *Node) wakeSweep() {
	select {
	case n.sweep <- struct{}{}:
	default:
	}
}

// sweepSources makes the pages of sources due that were taken back or added again,
// so that the robot comes to them now and not when they would have been due: at
// once, and again when no node can have a page under way that began before it heard
// of it. What a crash cuts short is done again.
func (n *Node) sweepSources(ctx context.Context) error {
	for {
		wait := time.Duration(math.MaxInt64)
		var removed []removedSource
		if err := n.setting(ctx, removedKey, &removed); err != nil {
			return err
		}
		for _, r := range removed {
			left := n.unsettled() - time.Since(r.At)
			switch {
			case r.Settled:
				continue
			case r.Swept && left > 0:
				wait = min(wait, left, n.unsettled()) // the clock may have been set back
				continue
			}
			if err := n.sweepSource(ctx, r); err != nil {
				return err
			}
			if err := n.swept(ctx, r, left <= 0); err != nil {
				return err
			}
			n.robot.Wake()
			wait = min(wait, max(left, 0))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.sweep:
		case <-time.After(wait):
		}
	}
}

// unsettled is for how long after an order some node may act as if there were none:
// it hears of it with a sign of life, which is often within a lease, and ends the
// page under way.
func (n *Node) unsettled() time.Duration { return n.config.Lease + n.config.Crawl.Timeout }

// sweepSource makes the pages of one source due.
func (n *Node) sweepSource(ctx context.Context, r removedSource) error {
	r.Depth = 0
	sc, err := scopeOf(r.Source)
	if err != nil {
		return err
	}
	var of crawl.Scopes
	of.Add(sc)
	var found []store.Found
	add := func() error {
		_, err := n.parts.Store.Add(ctx, found)
		found = found[:0]
		return err
	}
	err = n.parts.Store.Pages(ctx, func(p *store.Page) error {
		if p.Slot.Due.IsZero() || r.Again && p.History.Last.After(r.At) || !r.Again && crawl.TakenBack(p) {
			return nil
		}
		u, err := weburl.Parse(p.URL)
		if err != nil || of.Check(u, 0) != "" {
			return err
		}
		if found = append(found, store.Found{URL: u, Due: time.Now()}); len(found) < sweepBatch {
			return nil
		}
		return add()
	})
	return errors.Join(err, add())
}

// sweepBatch is how many pages are made due at a time.
const sweepBatch = 500

// swept notes that a source was swept, unless it was meanwhile taken back or
// added again.
func (n *Node) swept(ctx context.Context, done removedSource, settled bool) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	return updateSetting(ctx, n.parts.Cluster, removedKey, func(removed *[]removedSource) error {
		i := slices.IndexFunc(*removed, done.same)
		switch {
		case i < 0:
		case done.Again && settled: // a source like others
			*removed = slices.Delete(*removed, i, i+1)
		default:
			r := &(*removed)[i]
			r.Swept, r.Settled = true, r.Settled || settled
		}
		return nil
	})
}
