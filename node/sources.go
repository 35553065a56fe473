package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// removedKey is the setting with the sources that were taken back, by which a
// later start and the other nodes know what to do with their pages.
const removedKey = "sources-removed"

// removedSource is a source that was taken back, or, for a while, one that was
// taken back and added again.
type removedSource struct {
	console.Source
	Keep  bool // its pages stay in the index
	Again bool // it is a source again
	Swept bool // its pages have been made due
}

// RemoveSource implements console.Operator.
func (n *Node) RemoveSource(ctx context.Context, url string, keep bool) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	saved, err := n.savedSources(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(saved, func(s console.Source) bool { return s.URL == url })
	if i < 0 {
		return n.notRemovable(url)
	}
	var removed []removedSource
	if err := n.setting(ctx, removedKey, &removed); err != nil {
		return err
	}
	removed = slices.DeleteFunc(removed, func(r removedSource) bool { return r.URL == url })
	removed = append(removed, removedSource{Source: saved[i], Keep: keep})
	// In this order: what a crash leaves undone between the two is that the source
	// is in both, and then it is still a source.
	if err := n.set(ctx, removedKey, removed); err != nil {
		return err
	}
	if err := n.set(ctx, sourcesKey, slices.Delete(saved, i, i+1)); err != nil {
		return err
	}
	return n.readRemoved(ctx)
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
// back, here, before the start or at another node.
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
	var removed []removedSource
	if err := n.setting(ctx, removedKey, &removed); err != nil {
		return err
	}
	i := slices.IndexFunc(removed, func(r removedSource) bool { return r.URL == s.URL })
	if i < 0 {
		return nil
	}
	removed[i] = removedSource{Source: s, Again: true}
	if err := n.set(ctx, removedKey, removed); err != nil {
		return err
	}
	n.wakeSweep()
	return nil
}

func (n *Node) wakeSweep() {
	select {
	case n.sweep <- struct{}{}:
	default:
	}
}

// sweepSources makes the pages of sources due that were taken back or added again,
// so that the robot comes to them now and not when they would have been due. What
// a crash cuts short is done again.
func (n *Node) sweepSources(ctx context.Context) error {
	for {
		for {
			var removed []removedSource
			if err := n.setting(ctx, removedKey, &removed); err != nil {
				return err
			}
			i := slices.IndexFunc(removed, func(r removedSource) bool { return !r.Swept })
			if i < 0 {
				break
			}
			if err := n.sweepSource(ctx, removed[i]); err != nil {
				return err
			}
			if err := n.swept(ctx, removed[i]); err != nil {
				return err
			}
			n.robot.Wake()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.sweep:
		}
	}
}

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
		if p.Slot.Due.IsZero() {
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
func (n *Node) swept(ctx context.Context, done removedSource) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	var removed []removedSource
	if err := n.setting(ctx, removedKey, &removed); err != nil {
		return err
	}
	i := slices.Index(removed, done)
	if i < 0 {
		return nil
	}
	if done.Again { // a source like others
		removed = slices.Delete(removed, i, i+1)
	} else {
		removed[i].Swept = true
	}
	return n.set(ctx, removedKey, removed)
}
