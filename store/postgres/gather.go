package postgres

import (
	"cmp"
	"slices"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// part is what one caller wants written: URLs found and, under a lease, visits
// and the host's record. Rows are sorted by key, so that transactions lock in
// one order.
type part struct {
	own     *held // nil for Add
	number  int64 // of the batch under its lease
	record  []byte
	next    int64
	release bool // give the host back

	keys  []weburl.Key // every URL found, stored when the transaction is
	names map[int64]string
	fresh []row  // URLs that may be new
	moves []move // known pages to be moved forward

	visits  []row
	was     []place // of the visits
	source  []store.Visit
	urls    []int64 // keys of source
	changed []int   // visits that changed
	feed    []int   // those, and visits of which the index shows something else
	logged  []int   // visits that were requests

	// What came of it.
	done  bool // the batch was committed before, by an attempt whose answer was lost
	err   error
	added int64 // URLs that were new
}

// move asks for a page to stand earlier in its queue; 0 asks nothing.
type move struct {
	host, url, ord, due int64
	refetch             bool
	mark                bool // it comes from elsewhere than the host's agent, who may have the page out
}

// gatherFound gathers URLs, leaving out those known to be stored.
func (p *part) gatherFound(found []store.Found, known *known) {
	p.names = map[int64]string{}
	seen := map[weburl.Key]bool{}
	for i := range found {
		f := &found[i]
		k := f.URL.Key()
		host, url := splitKey(k)
		if !f.Due.IsZero() || f.Promote {
			m := move{host: host, url: url, due: orderedMillis(f.Due), refetch: f.Refetch, mark: !f.Due.IsZero() && (p.own == nil || p.own.host != host)}
			if f.Promote {
				m.ord = orderColumn(f.Order)
			}
			p.moves = append(p.moves, m)
			p.names[host] = f.URL.Host()
		}
		if seen[k] || known.isCached(k) {
			continue
		}
		seen[k] = true
		p.keys = append(p.keys, k)
		p.names[host] = f.URL.Host()
		p.fresh = append(p.fresh, row{host: host, url: url, depth: int32(f.Depth), ord: orderColumn(f.Order), address: f.URL.String(), origin: plainText(f.From)})
	}
}

// gatherVisits gathers the visits of a leased host.
func (p *part) gatherVisits(visits []store.Visit, taken map[weburl.Key]place) error {
	if err := store.CheckVisits(visits, func(k weburl.Key) bool { _, out := taken[k]; return out }); err != nil {
		return err
	}
	p.source, p.urls = visits, make([]int64, len(visits))
	order := make([]int, len(visits))
	rows := make([]row, len(visits))
	for i := range visits {
		r, err := rowOf(visits[i].Page)
		if err != nil {
			return &store.PageError{Key: visits[i].Page.Key, URL: visits[i].Page.URL, Err: err}
		}
		r.changed = visits[i].Changed
		r.asked = taken[visits[i].Page.Key].asked
		rows[i], order[i], p.urls[i] = r, i, r.url
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(rows[i].url, rows[j].url) })
	for _, i := range order {
		p.visits = append(p.visits, rows[i])
		p.was = append(p.was, taken[joinKey(rows[i].host, rows[i].url)])
		if visits[i].Changed {
			p.changed = append(p.changed, i)
		}
		if visits[i].Changed || visits[i].Reindex {
			p.feed = append(p.feed, i)
		}
		if !visits[i].Arrived.IsZero() {
			p.logged = append(p.logged, i)
		}
	}
	return nil
}

// isEmpty reports whether there is nothing to write.
func (p *part) isEmpty() bool { return p.own == nil && len(p.fresh)+len(p.moves) == 0 }

// batch is what one transaction writes: the parts that are not done and have
// not failed, in columns as the statements take them.
type batch struct {
	fresh []row
	of    []*part // who found each of fresh first
	moves []move
	names map[int64]string
}

// mergeParts joins what parts found. A URL found by several counts for the first.
func mergeParts(parts []*part) *batch {
	b := &batch{names: map[int64]string{}}
	type found struct {
		row row
		of  *part
	}
	var all []found
	for _, p := range parts {
		for _, r := range p.fresh {
			all = append(all, found{r, p})
		}
		b.moves = append(b.moves, p.moves...)
		for host, name := range p.names {
			b.names[host] = name
		}
	}
	slices.SortStableFunc(all, func(a, c found) int {
		return cmp.Or(cmp.Compare(a.row.host, c.row.host), cmp.Compare(a.row.url, c.row.url))
	})
	for i := range all {
		if i > 0 && all[i].row.host == all[i-1].row.host && all[i].row.url == all[i-1].row.url {
			continue
		}
		b.fresh, b.of = append(b.fresh, all[i].row), append(b.of, all[i].of)
	}
	slices.SortFunc(b.moves, func(a, c move) int { return cmp.Or(cmp.Compare(a.host, c.host), cmp.Compare(a.url, c.url)) })
	once := b.moves[:0]
	for _, m := range b.moves {
		if n := len(once) - 1; n >= 0 && once[n].host == m.host && once[n].url == m.url {
			once[n].ord, once[n].due = lesserNonZero(once[n].ord, m.ord), lesserNonZero(once[n].due, m.due)
			once[n].refetch, once[n].mark = once[n].refetch || m.refetch, once[n].mark || m.mark
			continue
		}
		once = append(once, m)
	}
	b.moves = once
	return b
}

// lesserNonZero is the lesser of two that are not 0.
func lesserNonZero(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// sortedHosts lists the hosts on which something was found, sorted.
func (b *batch) sortedHosts() []int64 {
	out := make([]int64, 0, len(b.names))
	for h := range b.names {
		out = append(out, h)
	}
	slices.Sort(out)
	return out
}

// finderOf returns who found a URL that is in fresh.
func (b *batch) finderOf(host, url int64) *part {
	n, ok := slices.BinarySearchFunc(b.fresh, row{host: host, url: url}, func(r, key row) int {
		return cmp.Or(cmp.Compare(r.host, key.host), cmp.Compare(r.url, key.url))
	})
	if !ok {
		return nil
	}
	return b.of[n]
}

// insertsInto reports whether pages of a host are to be inserted.
func (b *batch) insertsInto(host int64) bool {
	_, found := slices.BinarySearchFunc(b.fresh, host, func(r row, h int64) int { return cmp.Compare(r.host, h) })
	return found
}

// columnOf makes an array of one field of some rows.
func columnOf[R, V any](rows []R, f func(*R) V) []V {
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

func (t *tally) tallyVisit(r *row, was place) {
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

// arrivalMillis is when a change came about, in milliseconds.
func arrivalMillis(v *store.Visit) int64 {
	if v.Arrived.IsZero() {
		return time.Now().UnixMilli()
	}
	return orderedMillis(v.Arrived)
}
