package emulate

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/lab/monitor"
)

// primePages gets every page once: at the start of the model all are known.
func (r *run) primePages(ctx context.Context) error {
	for p := range r.urls {
		if err := r.getConditionally(ctx, r.clients[0], uint32(p)); err != nil {
			return fmt.Errorf("before the start: %w", err)
		}
	}
	return nil
}

// cycleShares sends every robot through its share, again and again, until ctx ends.
func (r *run) cycleShares(ctx context.Context) error {
	shares := monitor.Shares(len(r.urls), r.robots)
	var robots sync.WaitGroup
	for i, c := range r.clients {
		robots.Go(func() {
			for p := shares[i]; ctx.Err() == nil; {
				r.visitOnce(ctx, c, p)
				if p++; p == shares[i+1] {
					p = shares[i]
				}
			}
		})
	}
	robots.Wait()
	return nil
}

// visitOnce gets a page and counts what fails; a robot comes again.
func (r *run) visitOnce(ctx context.Context, c *fetch.Client, p uint32) {
	if err := r.getConditionally(ctx, c, p); err != nil && ctx.Err() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed++
	}
}

// getConditionally asks for a page, on the condition that it changed where the variant says
// so. A page belongs to one robot, so nobody else touches its tag.
func (r *run) getConditionally(ctx context.Context, c *fetch.Client, p uint32) error {
	q := fetch.Request{URL: r.urls[p]}
	if r.kind == "conditional" {
		q.ETag, q.LastModified = r.tags[p].etag, r.tags[p].modified
	}
	resp, err := c.Get(ctx, q)
	if err != nil {
		return err
	}
	if r.kind == "conditional" && resp.Status == http.StatusOK {
		r.tags[p] = tag{resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")}
	}
	return nil
}
