package feed

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// The kinds of bodies that cannot be indexed, beside those of archive.Damage.
const (
	otherPage = "other page" // the record is of another URL
	notHere   = "elsewhere"  // the body is with a node that has not indexed it
	extractor = "extraction" // a defect of package extract
)

var (
	errOtherPage = errors.New("the record is of another page")
	errExtract   = errors.New("the text cannot be extracted")
)

// exclusions counts pages whose bodies could not be indexed, by kind.
type exclusions struct {
	mu     sync.Mutex
	counts map[string]int64
}

func (e *exclusions) countExclusion(kind string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts == nil {
		e.counts = map[string]int64{}
	}
	e.counts[kind]++
}

// Excluded counts, since the start, the pages whose bodies could not be indexed, by
// kind: missing, damaged, unreadable, other page, elsewhere, extraction.
func (x *Indexer) Excluded() map[string]int64 {
	x.excluded.mu.Lock()
	defer x.excluded.mu.Unlock()
	return maps.Clone(x.excluded.counts)
}

// excludePage passes a page over whose body cannot be indexed, and has the body fetched
// again. A document that the index has of it stays, unless there is no body at all.
func (x *Indexer) excludePage(b *batch, p *store.Page, err error) {
	kind := archive.Damage(err)
	switch {
	case errors.Is(err, errOtherPage):
		kind = otherPage
	case errors.Is(err, errExtract):
		kind = extractor
	case kind == "missing":
		b.Delete = append(b.Delete, p.URL)
	}
	x.excluded.countExclusion(kind)
	x.config.Log.Warn("indexer: page excluded until it is fetched again", "url", p.URL, "kind", kind, "err", err)
	if kind != extractor { // another copy of the body would not help
		b.fetchAgain(p)
	}
}

// fetchAgain makes a page due with its body forgotten.
func (b *batch) fetchAgain(p *store.Page) {
	if u, err := weburl.Parse(p.URL); err == nil {
		b.refetch = append(b.refetch, store.Found{URL: u, Due: time.Now(), Refetch: true})
	}
}

// skipElsewhere passes over a change whose body another node keeps. That node indexes
// it, or has done so; where the index does not show this content, nobody may ever:
// the body is fetched again.
func (x *Indexer) skipElsewhere(ctx context.Context, b *batch, p *store.Page) error {
	if p.Digest == [16]byte{} {
		return nil // it is being fetched again
	}
	d, err := x.config.Engine.Document(ctx, p.URL)
	if err != nil && !errors.Is(err, index.ErrNotFound) {
		return err
	}
	if err == nil && d.Same == sameOf(p) {
		return nil
	}
	x.excluded.countExclusion(notHere)
	x.config.Log.Warn("indexer: page excluded until it is fetched again", "url", p.URL, "kind", notHere, "file", p.Body.File)
	b.fetchAgain(p)
	return nil
}
