package crawl

import (
	"context"
	"sync"

	"github.com/freshet/freshet/weburl"
)

// fetchedLinks are the links of a page that need no browser, in canonical form; nil if
// it was not rendered.
func (a *agent) fetchedLinks(b *pendingVisit) map[weburl.Key]bool {
	if b.rendered == nil {
		return nil
	}
	out := make(map[weburl.Key]bool, len(b.Page.Links))
	for i := range b.Page.Links {
		u, _ := a.robot.config.Canon.Apply(b.Page.Links[i].URL)
		out[a.stripVoid(u, b.before.Depth+1).Key()] = true
	}
	return out
}

// tally keeps the account of URLs that only rendering finds. It reports whether
// this one, in canonical form, is new by a render.
func (a *agent) tally(ctx context.Context, u weburl.URL, fetched map[weburl.Key]bool) bool {
	r := a.robot
	if r.config.Render == nil {
		return false
	}
	k := u.Key()
	if fetched == nil || fetched[k] {
		r.gains.plain(k)
		a.gathers = append(a.gathers, k)
		return false
	}
	return r.gains.rendered(k, func() bool {
		_, err := r.config.Store.Page(ctx, u)
		return err == nil
	})
}

// gains are the URLs that this run found by rendering only. A URL that comes
// without a browser, too, before or after, is none of them.
type gains struct {
	mu     sync.Mutex
	only   map[weburl.Key]bool
	beyond int64              // of those that found no room in only
	recent map[weburl.Key]int // found without a browser, not committed yet
}

// maxGains bounds the memory of gains; what comes later is counted as gained
// for good.
const maxGains = 2_000_000

func (g *gains) plain(k weburl.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.only, k)
	if g.recent == nil {
		g.recent = map[weburl.Key]int{}
	}
	g.recent[k]++
}

// committed forgets URLs that the store knows by now.
func (g *gains) committed(keys []weburl.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range keys {
		if g.recent[k]--; g.recent[k] <= 0 {
			delete(g.recent, k)
		}
	}
}

// rendered reports whether a URL is found by this render first.
func (g *gains) rendered(k weburl.Key, known func() bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.only[k] || g.recent[k] > 0 || known() {
		return false
	}
	if len(g.only) >= maxGains {
		g.beyond++
		return true
	}
	if g.only == nil {
		g.only = map[weburl.Key]bool{}
	}
	g.only[k] = true
	return true
}

func (g *gains) count() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(len(g.only)) + g.beyond
}
