package app

import (
	"context"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// A round is one crawl of all pages. A crawl that was interrupted is continued by the
// next one, unless it began too long ago.

// RoundKey names the value that holds when the round under way began; it is empty
// between rounds.
const RoundKey = "crawl-began"

// maxRoundAge is how old an interrupted round may be to be continued.
const maxRoundAge = 24 * time.Hour

// roundBatch is how many pages are queued at a time.
const roundBatch = 1000

// beginRound returns when the round began that this crawl works on: now, unless the
// crawl before was interrupted.
func (n *Node) beginRound(ctx context.Context, now time.Time) (time.Time, error) {
	v, err := n.parts.Store.Get(ctx, RoundKey)
	if err != nil {
		return now, err
	}
	if t, err := time.Parse(time.RFC3339Nano, string(v)); err == nil && now.Sub(t) < maxRoundAge && !t.After(now) {
		return t, nil
	}
	return now, n.parts.Store.Put(ctx, RoundKey, []byte(now.Format(time.RFC3339Nano)))
}

// endRound notes that all pages of the round were visited.
func (n *Node) endRound(ctx context.Context) error { return n.parts.Store.Put(ctx, RoundKey, nil) }

// queueRound queues the seeds, and makes pages due that this round has not visited
// yet: a crawl asked for now looks now.
func (n *Node) queueRound(ctx context.Context) error {
	now := time.Now()
	began, err := n.beginRound(ctx, now)
	if err != nil {
		return err
	}
	var found []store.Found
	add := func() error {
		_, err := n.parts.Store.Add(ctx, found)
		found = found[:0]
		return err
	}
	err = n.parts.Store.Pages(ctx, func(p *store.Page) error {
		u, err := weburl.Parse(p.URL)
		if err != nil {
			return nil //nolint:nilerr // the robot excludes it when it comes to it
		}
		if p.Slot.Due.After(now) && p.History.Last.Before(began) {
			found = append(found, store.Found{URL: u, Due: now})
		}
		if len(found) >= roundBatch {
			return add()
		}
		return nil
	})
	if err != nil {
		return err
	}
	found = append(found, n.seeds...)
	return add()
}
