package node

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// interest is how often results of our own search were opened, by page. Clicks
// fade by half in a month.
type interest struct {
	mu     sync.Mutex
	clicks map[string]float64 // by URL
	faded  time.Time          // up to when
	dirty  bool
}

const (
	clickedMost = 20_000
	clicksName  = "clicks"
	clicksSave  = time.Minute
)

// add counts a click. When there are too many pages, those with the fewest
// clicks are forgotten.
func (i *interest) add(url string, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.clicks == nil {
		i.clicks = map[string]float64{}
	}
	i.fade(now)
	i.clicks[url]++
	i.dirty = true
	if len(i.clicks) > clickedMost {
		i.thin()
	}
}

func (i *interest) fade(now time.Time) {
	past := now.Sub(i.faded)
	if i.faded.IsZero() || past < 0 {
		i.faded = now
		return
	}
	if past < time.Hour {
		return
	}
	f := math.Exp2(-past.Seconds() / change.HalfLife.Seconds())
	for u := range i.clicks {
		i.clicks[u] *= f
	}
	i.faded = now
}

// thin keeps the better half.
func (i *interest) thin() {
	counts := make([]float64, 0, len(i.clicks))
	for _, n := range i.clicks {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	middle := counts[len(counts)/2]
	for u, n := range i.clicks {
		if n <= middle && len(i.clicks) > clickedMost/2 {
			delete(i.clicks, u)
		}
	}
}

// of is how often a page was opened, lately.
func (i *interest) of(url string) float64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.clicks[url]
}

type savedClicks struct {
	Faded  time.Time          `json:"faded"`
	Clicks map[string]float64 `json:"clicks"`
}

// load reads what an earlier process saved.
func (i *interest) load(ctx context.Context, s store.Store) error {
	b, err := s.Get(ctx, clicksName)
	if err != nil || b == nil {
		return err
	}
	var saved savedClicks
	if err := json.Unmarshal(b, &saved); err != nil {
		return fmt.Errorf("clicks: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clicks, i.faded = saved.Clicks, saved.Faded
	return nil
}

// save writes the clicks if there are new ones.
func (i *interest) save(ctx context.Context, s store.Store) error {
	i.mu.Lock()
	if !i.dirty {
		i.mu.Unlock()
		return nil
	}
	b, err := json.Marshal(savedClicks{i.faded, i.clicks})
	i.dirty = false
	i.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Put(ctx, clicksName, b)
}

// watchInterest saves clicks now and then, and at the end.
func (n *Node) watchInterest(ctx context.Context) error {
	t := time.NewTicker(clicksSave)
	defer t.Stop()
	for {
		done := false
		select {
		case <-ctx.Done():
			done = true
		case <-t.C:
		}
		if err := n.interest.save(context.WithoutCancel(ctx), n.parts.Store); err != nil {
			n.log.Warn("save clicks", "err", err)
		}
		if done {
			return nil
		}
	}
}

// Clicked counts that somebody opened a result of a search.
func (n *Node) Clicked(address string) {
	u, err := weburl.Parse(address)
	if err != nil {
		return
	}
	n.interest.add(u.String(), time.Now())
}

// importance is what a page's freshness is worth: the weight of its source,
// more for pages that many links point to, and for those that are opened from
// our search:
//
//	weight (1/4 + popularity) (1 + log2(1 + clicks))
func (n *Node) importance(p *store.Page, u weburl.URL) float64 {
	popularity := 0.
	if n.indexer != nil {
		popularity = n.indexer.Popularity(u, p.Depth)
	}
	return n.weight(u) * (.25 + popularity) * (1 + math.Log2(1+n.interest.of(p.URL)))
}

// weight is that of the source with the longest address that the page begins
// with, on the same host; 1 by default.
func (n *Node) weight(u weburl.URL) float64 {
	best, length := 1., -1
	for _, w := range n.weights {
		if w.host == u.Host() && len(w.prefix) > length && len(u.String()) >= len(w.prefix) && u.String()[:len(w.prefix)] == w.prefix {
			best, length = w.weight, len(w.prefix)
		}
	}
	return best
}

// weighted is a source whose pages count more or less than others.
type weighted struct {
	host, prefix string
	weight       float64
}

// cost is about how many bytes a visit takes: headers, and the body unless the
// server tells that it has not changed.
func cost(p *store.Page) float64 {
	const headers = 700
	body := float64(p.Bytes)
	if p.ETag != "" || p.LastModified != "" {
		changed := 1.
		if p.History.Visits > 0 {
			changed = min(1, (p.History.Changes+.5)/(p.History.Visits+1))
		}
		body *= changed
	}
	return headers + body
}
