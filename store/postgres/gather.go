package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// batch is what one transaction writes, gathered in columns as the statements
// take them. Rows are sorted by key, so that transactions lock in one order.
type batch struct {
	keys  []weburl.Key // every URL found, stored when the transaction is
	names map[int64]string
	moved map[int64]bool // hosts with pages to be moved forward

	fresh  []row  // URLs that may be new
	moves  []move // known pages to be moved forward
	visits []row
	was    []place // of the visits

	changed []int // visits that changed
	logged  []int // visits that were requests
	source  []store.Visit
}

// move asks for a page to stand earlier in its queue.
type move struct{ host, url, ord, due int64 }

// found gathers URLs, leaving out those known to be stored.
func (b *batch) found(found []store.Found, known *known) {
	b.names, b.moved = map[int64]string{}, map[int64]bool{}
	seen := map[weburl.Key]bool{}
	for i := range found {
		f := &found[i]
		k := f.URL.Key()
		host, url := split(k)
		if !f.Due.IsZero() || f.Promote {
			m := move{host: host, url: url, due: millis(f.Due)}
			if f.Promote {
				m.ord = order(f.Order)
			}
			b.moves = append(b.moves, m)
			b.moved[host] = true
			b.names[host] = f.URL.Host()
		}
		if seen[k] || known.has(k) {
			continue
		}
		seen[k] = true
		b.keys = append(b.keys, k)
		b.names[host] = f.URL.Host()
		b.fresh = append(b.fresh, row{host: host, url: url, depth: int32(f.Depth), ord: order(f.Order), address: f.URL.String(), origin: f.From})
	}
	slices.SortFunc(b.fresh, func(a, c row) int { return cmp.Or(cmp.Compare(a.host, c.host), cmp.Compare(a.url, c.url)) })
	slices.SortFunc(b.moves, func(a, c move) int { return cmp.Or(cmp.Compare(a.host, c.host), cmp.Compare(a.url, c.url)) })
}

// visited gathers the visits of a leased host.
func (b *batch) visited(visits []store.Visit, h held, taken map[weburl.Key]place) error {
	b.source = visits
	order := make([]int, len(visits))
	rows := make([]row, len(visits))
	for i := range visits {
		r, err := rowOf(visits[i].Page)
		if err != nil {
			return err
		}
		if r.host != h.host {
			return fmt.Errorf("%s is not on the leased host: %w", visits[i].Page.URL, errInput)
		}
		if _, out := taken[join(r.host, r.url)]; !out {
			return fmt.Errorf("%s was not taken: %w", visits[i].Page.URL, errInput)
		}
		rows[i], order[i] = r, i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(rows[i].url, rows[j].url) })
	for n, i := range order {
		if n > 0 && rows[i].url == rows[order[n-1]].url {
			return fmt.Errorf("%s is twice in a batch: %w", visits[i].Page.URL, errInput)
		}
		b.visits = append(b.visits, rows[i])
		b.was = append(b.was, taken[join(rows[i].host, rows[i].url)])
		if visits[i].Changed {
			b.changed = append(b.changed, i)
		}
		if !visits[i].Arrived.IsZero() {
			b.logged = append(b.logged, i)
		}
	}
	return nil
}

// hosts lists the hosts that the batch touches beside the leased one, sorted.
func (b *batch) hosts(own int64) []int64 {
	out := make([]int64, 0, len(b.names))
	for h := range b.names {
		if h != own {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return out
}

// column makes an array of one field of some rows.
func column[R, V any](rows []R, f func(*R) V) []V {
	out := make([]V, len(rows))
	for i := range rows {
		out[i] = f(&rows[i])
	}
	return out
}

// tally is what a batch adds to the counters.
type tally struct {
	hosts, urls, fresh int64
	states             [len(states)]int64
}

func (t *tally) visit(r *row, was place) {
	if was.slot.Order > 0 {
		t.fresh--
	}
	if r.ord > 0 {
		t.fresh++
	}
	t.states[r.state]++
	if code, err := stateCode(was.state); err == nil && was.state != store.Queued {
		t.states[code]--
	}
}

// arrived is when a change came about, in milliseconds.
func arrived(v *store.Visit) int64 {
	if v.Arrived.IsZero() {
		return time.Now().UnixMilli()
	}
	return millis(v.Arrived)
}
