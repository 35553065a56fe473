package node

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/signal"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// receivers are the handlers that take notices of changes.
func (n *Node) receivers() map[string]http.Handler {
	now := &signal.IndexNow{Keys: keyFiles{n}, Sink: n}
	all := map[string]http.Handler{
		"GET /indexnow": now, "POST /indexnow": now,
		"POST /api/signals": &signal.Events{Secrets: n.config.Signals.Secrets, Sink: n},
	}
	if n.websub != nil {
		all["/websub/{id}"] = n.websub
	}
	return all
}

// Changed implements signal.Sink: pages that belong to a source are due when
// their notices make a visit worth it, mostly now; new ones are queued.
func (n *Node) Changed(ctx context.Context, source string, events []signal.Event) (int, error) {
	var found []store.Found
	for i := range events {
		u, err := weburl.Parse(events[i].URL)
		if err != nil {
			continue
		}
		u, _ = weburl.DefaultCanon.Apply(u)
		if n.robot.InScope(u, 1) != "" {
			continue
		}
		if due := n.robot.Signal(ctx, source, u); !due.IsZero() {
			found = append(found, store.Found{URL: u, Depth: 1, Order: 1, From: source, Due: due})
		}
	}
	if len(found) == 0 {
		return 0, nil
	}
	if _, err := n.parts.Store.Add(ctx, found); err != nil {
		n.log.Error("signals", "source", source, "err", err)
		return 0, err
	}
	n.robot.Wake()
	return len(found), nil
}

// keyFiles fetches the key files of IndexNow senders, from hosts of our sources
// only: a stranger cannot have us ask others.
type keyFiles struct{ node *Node }

// Key implements signal.KeyFetcher.
func (k keyFiles) Key(ctx context.Context, address string) ([]byte, error) {
	u, err := weburl.Parse(address)
	if err != nil {
		return nil, err
	}
	if !k.node.hosts(u) {
		return nil, fmt.Errorf("%s is on no host of our sources", address)
	}
	res, err := k.node.client.Get(ctx, fetch.Request{URL: u, Accept: "text/plain"})
	if err != nil {
		return nil, err
	}
	if res.Status != http.StatusOK || len(res.Body) > 1024 {
		return nil, fmt.Errorf("%s: status %d, %d bytes", address, res.Status, len(res.Body))
	}
	return res.Body, nil
}

// hosts reports whether some page beside u may be of a source: u itself need not.
func (n *Node) hosts(u weburl.URL) bool {
	if n.robot.InScope(u, 0) == "" {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.sources, func(s console.Source) bool { return hostOf(s.URL) == u.Host() })
}

// trust lists what sources of signals were worth, those with the most signals
// first.
func (n *Node) trust() []console.Signals {
	var out []console.Signals
	n.robot.Trust(func(host, source string, t change.Trust) {
		out = append(out, console.Signals{Host: host, Source: source, Right: t.True, Wrong: t.False, Missed: t.Missed, Recall: t.Recall(), Precision: t.Precision()})
	})
	slices.SortFunc(out, func(a, b console.Signals) int {
		return cmp.Or(cmp.Compare(b.Right+b.Wrong, a.Right+a.Wrong), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Source, b.Source))
	})
	return out[:min(len(out), topHosts)]
}
