package feed

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Popularity is the share of links that point to a page, on a logarithmic
// scale: log(1 + links from other pages) / log(1 + the most of any page). It
// is counted anew from the stored links now and then; until then a page's
// distance from the seeds stands in for it.
type Popularity struct {
	mu    sync.Mutex
	count map[weburl.Key]uint32
	most  uint32
	last  time.Time
}

// How often links are counted, how many pages are counted at most (24 bytes
// each), and by how much a page's popularity must differ to be written again.
const (
	countEvery  = 10 * time.Minute
	countedMost = 5_000_000
	worthIt     = .1
)

// popularityOf returns a page's popularity in [0,1].
func (p *Popularity) popularityOf(k weburl.Key, depth int) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most == 0 {
		return .5 / float64(1+depth)
	}
	return math.Log1p(float64(p.count[k])) / math.Log1p(float64(p.most))
}

// refreshCounts counts the links and writes documents whose popularity changed.
func (p *Popularity) refreshCounts(ctx context.Context, x *Indexer) error {
	if time.Since(p.last) < countEvery {
		return nil
	}
	p.last = time.Now()
	count, most := map[weburl.Key]uint32{}, uint32(0)
	err := x.config.Store.Links(ctx, func(from weburl.Key, to []weburl.Key) error {
		for i, k := range to {
			if k == from || (i > 0 && k == to[i-1]) {
				continue
			}
			if _, ok := count[k]; !ok && len(count) >= countedMost {
				continue
			}
			count[k]++
			most = max(most, count[k])
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.count, p.most = count, most
	p.mu.Unlock()
	return x.updatePopularity(ctx)
}

// Reranker is an engine that changes the popularity of documents by itself:
// those that it has and whose popularity differs by least or more.
type Reranker interface {
	Rerank(ctx context.Context, pages []index.Popular, least float64) error
}

// reranked is how many pages are handed to a Reranker at once.
const reranked = 2000

// updatePopularity brings the popularity of all documents up to date.
func (x *Indexer) updatePopularity(ctx context.Context) error {
	var pages []index.Popular
	flush := func() error {
		err := x.rerankPages(ctx, pages)
		pages = pages[:0]
		return err
	}
	err := x.config.Store.Pages(ctx, func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		if err != nil || !p.Held() || p.NoIndex {
			return nil // it is not in the index
		}
		if pages = append(pages, index.Popular{ID: p.URL, Popularity: x.links.popularityOf(u.Key(), p.Depth)}); len(pages) < reranked {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// rerankPages writes the documents whose popularity has moved; an engine that cannot
// do so by itself gets them whole.
func (x *Indexer) rerankPages(ctx context.Context, pages []index.Popular) error {
	if r, ok := x.config.Engine.(Reranker); ok {
		return r.Rerank(ctx, pages, worthIt)
	}
	var b index.Batch
	flush := func() error {
		if len(b.Put) == 0 {
			return nil
		}
		err := x.config.Engine.Apply(ctx, b)
		b = index.Batch{}
		return err
	}
	for _, p := range pages {
		d, err := x.config.Engine.Document(ctx, p.ID)
		if errors.Is(err, index.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if math.Abs(p.Popularity-d.Popularity) < worthIt {
			continue
		}
		d.Popularity = p.Popularity
		if b.Put = append(b.Put, *d); len(b.Put) >= x.config.Batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
