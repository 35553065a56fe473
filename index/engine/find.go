package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/invert"
	"github.com/freshet/freshet/index/engine/search"
	"github.com/freshet/freshet/index/query"
)

// withSnapshot calls f with a snapshot of everything that was applied.
func (e *Engine) withSnapshot(ctx context.Context, f func(parts []*search.Part) error) error {
	if err := e.refreshSnapshot(ctx); err != nil {
		return err
	}
	return e.set.Read(f)
}

// Search implements index.Engine.
func (e *Engine) Search(ctx context.Context, r index.Request) (*index.Results, error) {
	start := time.Now()
	e.lastSearch.Store(start.UnixNano())
	r = r.Bounded()
	if err := query.CheckBounds(r.Query); err != nil {
		return nil, err
	}
	var out *index.Results
	err := e.withSnapshot(ctx, func(parts []*search.Part) error {
		found, err := search.Run(ctx, parts, r, search.Options{Languages: e.config.Languages})
		if err != nil {
			return err
		}
		out = &index.Results{Total: found.Total, Estimated: found.Estimated, Facets: found.Facets}
		out.Hits = e.foldCopies(ctx, found.Hits, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("search %q: %w", r.Query, err)
	}
	out.Elapsed = time.Since(start)
	return out, nil
}

// foldCopies makes results of hits: copies become one, and each gets its snippet.
func (e *Engine) foldCopies(ctx context.Context, hits []search.Hit, r index.Request) []index.Hit {
	scored := make([]index.Scored, len(hits))
	at := make(map[string]*search.Hit, len(hits))
	for i := range hits {
		scored[i] = index.Scored{ID: hits[i].ID, Score: hits[i].Score}
		at[hits[i].ID] = &hits[i]
	}
	return index.Fold(scored, r, e.config.Languages, func(s index.Scored) (*index.Document, error) {
		h := at[s.ID]
		return e.readDocument(ctx, h.Part, h.Doc)
	})
}

// readDocument returns a document with its body.
func (e *Engine) readDocument(ctx context.Context, p *search.Part, doc uint32) (*index.Document, error) {
	t, err := p.Segment.Text(doc)
	if err != nil {
		return nil, err
	}
	c := p.Segment.Document(doc)
	d := &index.Document{
		ID: c.ID, Kind: c.Kind, Type: c.Type, Host: c.Host, Lang: c.Lang, Title: t.Title, Body: t.Body, Same: t.Same,
		Date: time.Unix(c.Date, 0).UTC(), Size: c.Size, Popularity: invert.UnpackPopularity(p.Popularity[doc]),
	}
	return d, nil
}

// Document implements index.Engine.
func (e *Engine) Document(ctx context.Context, id string) (*index.Document, error) {
	var d *index.Document
	err := e.withSnapshot(ctx, func(parts []*search.Part) (err error) {
		for _, p := range parts {
			if doc, ok := p.Segment.Find(id); ok && !p.IsDead(doc) {
				d, err = e.readDocument(ctx, p, doc)
				return err
			}
		}
		return fmt.Errorf("%s: %w", id, index.ErrNotFound)
	})
	return d, err
}

// IDs implements index.Engine.
func (e *Engine) IDs(ctx context.Context, f func(id string) error) error {
	return e.withSnapshot(ctx, func(parts []*search.Part) error {
		for _, p := range parts {
			for doc := range uint32(p.Segment.Len()) {
				if p.IsDead(doc) {
					continue
				}
				if err := errors.Join(ctx.Err(), f(p.Segment.ID(doc))); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
