package stats

import (
	"context"
	"slices"
)

// BipartiteCore is a set of pages, the fans, that all link to each page of
// another set, the centres: the trace of a community in the making (Kumar,
// Raghavan, Rajagopalan and Tomkins 1999). A page may be both fan and centre.
type BipartiteCore struct {
	Fans    []uint32 `json:"fans"`
	Centres []uint32 `json:"centres"`
}

// Trawled is what trawling found. Each fan is in one core at most, so Count says
// how many cores can be laid side by side by taking them as they come.
type Trawled struct {
	Fans    int   `json:"fans"`    // least number of fans of a core
	Centres int   `json:"centres"` // and of centres
	Count   int64 `json:"count"`
	Covered int64 `json:"covered"` // fans in cores
	// Candidates are the pages left as fans when those that cannot be in any
	// core by their degrees alone are gone.
	Candidates int64           `json:"candidates"`
	Largest    BipartiteCore   `json:"largest"` // the one with the most links
	Unsettled  int64           `json:"unsettled,omitempty"`
	Each       []BipartiteCore `json:"-"` // the first TrawlOptions.Keep
}

// TrawlOptions say what a core is.
type TrawlOptions struct {
	Fans, Centres int // 0: 3
	// Famous is the greatest number of fans of a centre: everybody links to the
	// most famous pages, which makes no community. 0: 50, as in the paper; -1: any.
	Famous int
	// Within counts links inside a host, too, which are left out else if hosts
	// are known.
	Within bool
	Steps  int // of search for the core of one page; what takes more is left unsettled. 0: 10,000
	Keep   int
}

// table holds ascending lists of pages for some pages.
type table struct {
	at    []uint32 // where the list of each page is, plus 1; 0: none
	lists [][]uint32
}

// newLinkTable makes room for lists as long as counts says.
func newLinkTable(counts []uint32) table {
	var pages, total uint64
	for _, c := range counts {
		total += uint64(c)
		pages += uint64(min(c, 1))
	}
	room := make([]uint32, total)
	t := table{make([]uint32, len(counts)), make([][]uint32, 0, pages)}
	for u, c := range counts {
		if c > 0 {
			t.lists = append(t.lists, room[:0:c])
			t.at[u] = uint32(len(t.lists))
			room = room[c:]
		}
	}
	return t
}

func (t *table) hasList(u uint32) bool { return t.at[u] != 0 }

// listOf returns the list of u, nil if there is none.
func (t *table) listOf(u uint32) []uint32 {
	if k := t.at[u]; k != 0 {
		return t.lists[k-1]
	}
	return nil
}

func (t *table) setList(u uint32, list []uint32) { t.lists[t.at[u]-1] = list }
func (t *table) addToList(u, v uint32)           { t.setList(u, append(t.listOf(u), v)) }
func (t *table) removeList(u uint32)             { t.at[u] = 0 }

// removeFromList takes v out of the list of u, if both are there.
func (t *table) removeFromList(u, v uint32) {
	if !t.hasList(u) {
		return
	}
	list := t.listOf(u)
	if i, ok := slices.BinarySearch(list, v); ok {
		t.setList(u, slices.Delete(list, i, i+1))
	}
}

// commonToAll returns what is in the lists of all pages: ascending, a new slice.
func (t *table) commonToAll(pages []uint32) []uint32 {
	out := slices.Clone(t.listOf(pages[0]))
	for _, p := range pages[1:] {
		out = intersectSorted(out[:0], out, t.listOf(p))
	}
	return out
}

// bipartite holds the links between candidates, both ways.
type bipartite struct {
	fans, centres table
	opt           TrawlOptions
	dirty         []endpoint // fans and centres that lost a link
}

type endpoint struct {
	page   uint32
	centre bool
}

// Trawl takes away again and again the pages whose number of links rules them
// out; then settles fans with exactly as many centres as a core needs, whose
// core is certain or impossible, and centres likewise, each of which rules out
// more; and searches for the cores of the fans that remain.
func Trawl(ctx context.Context, g Graph, opt TrawlOptions, tell Progress) (*Trawled, error) {
	if opt.Fans == 0 {
		opt.Fans = 3
	}
	if opt.Centres == 0 {
		opt.Centres = 3
	}
	if opt.Famous == 0 {
		opt.Famous = 50
	}
	if opt.Steps == 0 {
		opt.Steps = 10_000
	}
	res := &Trawled{Fans: opt.Fans, Centres: opt.Centres}
	b, err := pruneCandidates(ctx, g, opt, tell)
	if err != nil {
		return nil, err
	}
	var order []uint32
	for v := range uint32(g.Nodes()) {
		if b.centres.hasList(v) {
			b.dirty = append(b.dirty, endpoint{v, true})
		}
	}
	for u := range uint32(g.Nodes()) {
		if b.fans.hasList(u) {
			order = append(order, u)
			b.dirty = append(b.dirty, endpoint{u, false})
		}
	}
	res.Candidates = int64(len(order))
	if err := b.settleCores(ctx, res); err != nil {
		return nil, err
	}
	// Fans with few centres first: their search is short and helps the others.
	slices.SortStableFunc(order, func(x, y uint32) int { return len(b.fans.listOf(x)) - len(b.fans.listOf(y)) })
	for _, u := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for b.fans.hasList(u) { // until u is taken
			steps := opt.Steps
			fans, centres := b.searchCore(u, &steps)
			if centres == nil {
				if steps <= 0 {
					res.Unsettled++
				}
				b.removeFan(u)
			} else {
				b.takeCore(res, fans, centres)
			}
			if err := b.settleCores(ctx, res); err != nil {
				return nil, err
			}
		}
	}
	return res, nil
}

// pruneCandidates finds the pages that have enough links to and from each other. It keeps
// 12 bytes a page, and then 8 a link and 24 a page of the candidates.
func pruneCandidates(ctx context.Context, g Graph, opt TrawlOptions, tell Progress) (*bipartite, error) {
	n := g.Nodes()
	l := newLinksAbroad(g, opt.Within)
	out, in := make([]uint32, n), make([]uint32, n) // 0: not a candidate
	t := ticker{ctx, tell, int64(n)}
	for u := range uint32(n) {
		if err := t.checkEvery(int64(u)); err != nil {
			return nil, err
		}
		for _, v := range l.crossHostLinks(u) {
			in[v]++
			out[u]++
		}
	}
	if opt.Famous > 0 {
		for v := range in {
			if in[v] > uint32(opt.Famous) {
				in[v] = 0
			}
		}
	}
	// Rounds over all pages rather than a queue: lists are read in their order
	// in the file, and few rounds rule out nearly all.
	next := make([]uint32, n)
	for again := true; again; {
		again = false
		clear(next)
		for u := range uint32(n) {
			if err := t.checkEvery(int64(u)); err != nil {
				return nil, err
			}
			if out[u] < uint32(opt.Centres) {
				out[u] = 0
				continue
			}
			had := out[u]
			out[u] = 0
			for _, v := range l.crossHostLinks(u) {
				if in[v] >= uint32(opt.Fans) {
					out[u]++
				}
			}
			if out[u] < uint32(opt.Centres) {
				out[u] = 0
			} else {
				for _, v := range l.crossHostLinks(u) {
					if in[v] >= uint32(opt.Fans) {
						next[v]++
					}
				}
			}
			again = again || out[u] != had
		}
		for v := range in {
			again = again || next[v] < uint32(opt.Fans) && in[v] >= uint32(opt.Fans)
		}
		in, next = next, in
	}
	b := &bipartite{fans: newLinkTable(out), centres: newLinkTable(in), opt: opt}
	for u := range uint32(n) {
		if out[u] == 0 {
			continue
		}
		for _, v := range l.crossHostLinks(u) {
			if in[v] >= uint32(opt.Fans) {
				b.fans.addToList(u, v)
				b.centres.addToList(v, u)
			}
		}
	}
	return b, nil
}

// linksAbroad reads the links of pages that leave their hosts.
type linksAbroad struct {
	r     reader
	hosts Hosts
	host  int
	first uint32
	end   uint32
}

func newLinksAbroad(g Graph, within bool) *linksAbroad {
	l := &linksAbroad{r: reader{g: g}}
	if h, ok := g.(Hosts); ok && !within && h.Sites() > 0 {
		l.hosts = h
	}
	return l
}

// crossHostLinks returns the different pages of other hosts that u links to, ascending.
// Pages are best asked for in ascending order.
func (l *linksAbroad) crossHostLinks(u uint32) []uint32 {
	list := l.r.outLinks(u)
	if l.hosts == nil {
		return list
	}
	if u < l.first {
		l.host, l.first, l.end = 0, 0, 0
	}
	for u >= l.end {
		first, pages := l.hosts.SiteSpan(l.host)
		l.first, l.end = first, first+pages
		l.host++
	}
	a, _ := slices.BinarySearch(list, l.first)
	b, _ := slices.BinarySearch(list, l.end)
	return slices.Delete(list, a, b)
}
