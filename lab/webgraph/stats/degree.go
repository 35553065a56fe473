package stats

import (
	"context"

	"github.com/freshet/freshet/lab/webgraph/powerlaw"
)

// Degrees counts how many pages have so many links.
type Degrees struct {
	In, Out         *powerlaw.Histogram // pages without links excepted
	NoIn, NoOut     int64               // pages without
	MaxIn, MaxOut   int64
	MaxInPage       uint32 // the first page with MaxIn links to it
	Loops           int64  // links of pages to themselves
	Reciprocal      int64  // links, loops excepted, that are answered by one the other way
	Inside          int64  // links between pages of the same host
	HostsKnown      bool
	nodes, allLinks int64
}

// Reciprocity returns the share of links, loops excepted, whose target links
// back.
func (d *Degrees) Reciprocity() float64 { return quotientShare(d.Reciprocal, d.allLinks-d.Loops) }

// IntraHost returns the share of links inside hosts, and whether hosts are known.
func (d *Degrees) IntraHost() (float64, bool) {
	return quotientShare(d.Inside, d.allLinks), d.HostsKnown
}

func quotientShare(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// counter counts small degrees in an array, the others in a map.
type counter struct {
	small [1 << 12]int64
	great map[int64]int64
}

func (c *counter) countDegree(d int64) {
	if d < int64(len(c.small)) {
		c.small[d]++
		return
	}
	if c.great == nil {
		c.great = make(map[int64]int64)
	}
	c.great[d]++
}

// drainHistogram empties c.
func (c *counter) drainHistogram() *powerlaw.Histogram {
	m := c.great
	if m == nil {
		m = make(map[int64]int64)
	}
	for d, n := range c.small {
		if d > 0 && n > 0 {
			m[int64(d)] = n
		}
	}
	return powerlaw.NewHistogram(m)
}

// CountDegrees looks at every link once.
func CountDegrees(ctx context.Context, g Graph, tell Progress) (*Degrees, error) {
	n := int64(g.Nodes())
	d := &Degrees{nodes: n, allLinks: g.Links()}
	var in, out counter
	hosts, _ := g.(Hosts)
	d.HostsKnown = hosts != nil && hosts.Sites() > 0
	var first, end uint32 // of the host of the current page
	host := 0
	r := reader{g: g}
	t := ticker{ctx, tell, n}
	for u := range n {
		if err := t.checkEvery(u); err != nil {
			return nil, err
		}
		u := uint32(u)
		if d.HostsKnown && u >= end {
			var pages uint32
			first, pages = hosts.SiteSpan(host)
			end = first + pages
			host++
		}
		list, back := g.Out(u), g.In(u)
		out.countDegree(int64(len(list)))
		in.countDegree(int64(len(back)))
		d.MaxOut = max(d.MaxOut, int64(len(list)))
		if int64(len(back)) > d.MaxIn {
			d.MaxIn, d.MaxInPage = int64(len(back)), u
		}
		for _, v := range list {
			if v == u {
				d.Loops++
			}
			if d.HostsKnown && v >= first && v < end {
				d.Inside++
			}
		}
		d.Reciprocal += r.reciprocatedLinks(u, list, back)
	}
	d.NoIn, d.NoOut = in.small[0], out.small[0]
	d.In, d.Out = in.drainHistogram(), out.drainHistogram()
	return d, nil
}

// reciprocatedLinks counts the links in list, loops excepted, whose ends link to u.
func (r *reader) reciprocatedLinks(u uint32, list, back []uint32) (n int64) {
	if len(list) == 0 || len(back) == 0 {
		return 0
	}
	if len(back) > 16*len(list) { // a hub: search rather than merge
		for _, v := range list {
			if v != u && hasLink(r.g, v, u) {
				n++
			}
		}
		return n
	}
	r.out = append(r.out[:0], list...)
	sortLinks(r.out)
	j := 0
	for _, v := range r.out {
		for j < len(back) && back[j] < v {
			j++
		}
		if j == len(back) {
			break
		}
		if back[j] == v && v != u {
			n++
		}
	}
	return n
}
