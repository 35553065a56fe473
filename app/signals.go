package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/internal/ratelimit"
	"github.com/freshet/freshet/signal"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// receivers are the handlers that take notices of changes.
func (n *Node) receivers() map[string]http.Handler {
	client := func(r *http.Request) string { return ratelimit.ClientKey(console.ClientAddr(r, n.proxies)) }
	all := map[string]http.Handler{}
	if n.config.Signals.IndexNow {
		n.indexNow = &signal.IndexNow{Keys: keyFiles{n}, Sink: n, Client: client}
		all["GET /indexnow"], all["POST /indexnow"] = n.indexNow, n.indexNow
	}
	if len(n.config.Signals.Secrets) > 0 {
		all["POST /api/signals"] = &signal.Events{Secrets: n.config.Signals.Secrets, Sink: n, Client: client}
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
// only: a stranger cannot have us ask others. Nor can one have us ask those more than
// the robot would: a key file waits for its host as a page does, robots.txt must allow
// it, and after one that was no key the host is left alone for a while.
type keyFiles struct{ node *Node }

// keyRequests are the hosts whose key files are being asked for, or were in vain.
type keyRequests struct {
	mu    sync.Mutex
	until map[string]time.Time // zero while a request is under way
}

const (
	failedKeyRest = 5 * time.Minute
	maxKeyHosts   = 10_000
)

// begin reports whether a host may be asked now; end must follow.
func (k *keyRequests) begin(host string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	until, known := k.until[host]
	if known && (until.IsZero() || now.Before(until)) || len(k.until) >= maxKeyHosts && !k.forget(now) {
		return false
	}
	if k.until == nil {
		k.until = map[string]time.Time{}
	}
	k.until[host] = time.Time{}
	return true
}

// forget drops hosts that may be asked again; it reports whether there were any. The
// caller holds mu.
func (k *keyRequests) forget(now time.Time) bool {
	n := len(k.until)
	for host, until := range k.until {
		if !until.IsZero() && !now.Before(until) {
			delete(k.until, host)
		}
	}
	return len(k.until) < n
}

// end notes whether a host was asked in vain.
func (k *keyRequests) end(host string, inVain bool, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.until, host); inVain {
		k.until[host] = now.Add(failedKeyRest)
	}
}

// Key implements signal.KeyFetcher.
func (k keyFiles) Key(ctx context.Context, address string) ([]byte, error) {
	u, err := weburl.Parse(address)
	if err != nil {
		return nil, err
	}
	if !k.node.hosts(u) {
		return nil, fmt.Errorf("%s is on no host of our sources", address)
	}
	requests := &k.node.keyRequests
	if !requests.begin(u.Host(), time.Now()) {
		return nil, fmt.Errorf("%s: a key file of this host is being asked for, or was in vain within the last %v: %w", address, failedKeyRest, politeness.ErrHostRests)
	}
	res, err := k.node.robot.FetchAuxiliary(ctx, u, "text/plain")
	isKey := err == nil && res.Status == http.StatusOK && len(res.Body) <= 1024
	requests.end(u.Host(), !isKey && ctx.Err() == nil && !errors.Is(err, politeness.ErrHostRests), time.Now())
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
	return out[:min(len(out), maxSignalRows)]
}

// maxSignalRows bounds the hosts whose signals the status lists.
const maxSignalRows = 25
