package crawl

import (
	"sync"

	"github.com/freshet/freshet/weburl"
)

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
