package app

import (
	"context"
	"errors"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// maxTrail is how far the way to a page is followed back.
const maxTrail = 20

// Explain tells from the store what is known of a page: how it was found, why it
// was rendered or not, when it is visited next.
func Explain(ctx context.Context, st store.Store, address string) (*console.Why, error) {
	u, err := weburl.Parse(address)
	if err != nil {
		return nil, err
	}
	u, _ = weburl.DefaultCanon.Apply(u)
	p, err := st.Page(ctx, u)
	if errors.Is(err, store.ErrNotFound) {
		return nil, console.ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	w := &console.Why{
		URL: p.URL, State: string(p.State), Status: p.Status, Error: p.Error, Title: p.Title, Depth: p.Depth, Rendered: p.Rendered, Waits: p.Waits, Reason: p.Why,
		Visited: p.History.Last, Changed: p.History.Changed, Visits: p.History.Visits, Changes: p.History.Changes, Next: p.Slot.Due,
	}
	for from := p.From; from != "" && len(w.FoundOn) < maxTrail; {
		w.FoundOn = append(w.FoundOn, from)
		at, err := weburl.Parse(from)
		if err != nil {
			break // a sensor's name
		}
		q, err := st.Page(ctx, at)
		if err != nil {
			break // robots.txt, or a page of another store
		}
		from = q.From
	}
	return w, nil
}

// Why implements console.Operator.
func (n *Node) Why(ctx context.Context, address string) (*console.Why, error) {
	return Explain(ctx, n.parts.Store, address)
}
