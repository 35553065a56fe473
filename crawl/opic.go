package crawl

import (
	"math"
	"sync"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Spreader is an ordering that learns from the links of fetched pages; it is
// told of them before their targets are ordered.
type Spreader interface {
	Ordering
	// Spread tells that a page links to others. Targets that are known and not
	// yet visited are then moved forward to their new order.
	Spread(from weburl.Key, to []weburl.Key)
}

// OPIC orders pages by the cash that flowed to them (Abiteboul, Preda, Cobena,
// Adaptive on-line page importance computation, 2003): every page starts with
// the same cash; a page that is fetched gives its cash in equal shares to the
// pages it links to. Pages rich in cash are probably important, and are known
// to be so while the crawl runs, without a link graph.
//
// The cash of pages that were not fetched yet is kept in memory for a bounded
// number of pages; beyond it a page has what it got last.
type OPIC struct {
	mu   sync.Mutex
	cash map[weburl.Key]float32
}

// opicPages bounds the pages whose cash is remembered, about 40 bytes each.
const opicPages = 4 << 20

// opicStart is the cash of a page before anything flowed to it.
const opicStart = 1

// Spread implements Spreader.
func (o *OPIC) Spread(from weburl.Key, to []weburl.Key) {
	if len(to) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cash == nil || len(o.cash) > opicPages {
		o.cash = map[weburl.Key]float32{}
	}
	cash, ok := o.cash[from]
	if !ok {
		cash = opicStart
	}
	o.cash[from] = 0
	share := cash / float32(len(to))
	for _, k := range to {
		c, ok := o.cash[k]
		if !ok {
			c = opicStart
		}
		o.cash[k] = c + share
	}
}

// Order implements Ordering: the more cash, the earlier. A step is about a
// tenth of a per cent of cash, so that pages are not moved for nothing.
func (o *OPIC) Order(f *store.Found) uint64 {
	o.mu.Lock()
	cash, ok := o.cash[f.URL.Key()]
	o.mu.Unlock()
	if !ok {
		cash = opicStart
	}
	const steps, least = 1000, -40 // natural logarithm of the least cash told apart
	v := (math.Log(float64(max(cash, 1e-17))) - least) * steps
	return uint64(1e6 - math.Min(1e6-1, math.Max(0, v)))
}
