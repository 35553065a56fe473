package gen

import (
	"context"

	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/powerlaw"
)

// Measured holds the measured figures of a web and the requested ones.
type Measured struct {
	Degree float64 `json:"mean_out_degree"`
	// In and Out are exponents by maximum likelihood, with standard errors, of a
	// power of the number of links plus a shift, from InMin and OutMin links on; 0
	// where no power law can be fitted.
	In       float64 `json:"in_exponent,omitempty"`
	InErr    float64 `json:"in_std_err,omitempty"`
	InShift  float64 `json:"in_shift,omitempty"`
	InMin    int64   `json:"in_xmin,omitempty"`
	Out      float64 `json:"out_exponent,omitempty"`
	OutErr   float64 `json:"out_std_err,omitempty"`
	OutShift float64 `json:"out_shift,omitempty"`
	OutMin   int64   `json:"out_xmin,omitempty"`
	// Intra is the share of links on the site, of graphs with sites.
	Intra *float64 `json:"intra_host,omitempty"`
}

// Measure measures a graph by reading it once. progress is called with the pages done.
func Measure(ctx context.Context, g *webgraph.Graph, progress func(done, total int64)) (*Measured, error) {
	m := &Measured{Degree: float64(g.Links()) / float64(g.Nodes())}
	in, out := map[int64]int64{}, map[int64]int64{}
	local, site := int64(0), -1
	var first, pages uint32
	for u := range uint32(g.Nodes()) {
		if u&(1<<18-1) == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			progress(int64(u), int64(g.Nodes()))
		}
		in[int64(g.InDegree(u))]++
		out[int64(g.OutDegree(u))]++
		if g.Sites() == 0 {
			continue
		}
		if u-first >= pages {
			site++
			first, pages = g.SiteSpan(site)
		}
		for _, v := range g.Out(u) {
			if v-first < pages {
				local++
			}
		}
	}
	if g.Sites() > 0 && g.Links() > 0 {
		share := float64(local) / float64(g.Links())
		m.Intra = &share
	}
	m.fitDegreeLaws(in, out)
	return m, nil
}

// fitDegreeLaws fits the laws of links to and from a page. An exponent greater than any that
// can be asked for is that of nearly equal numbers.
func (m *Measured) fitDegreeLaws(in, out map[int64]int64) {
	if l, _, err := powerlaw.FitBest(powerlaw.NewHistogram(in)); err == nil && l.Exponent <= maxExponent {
		m.In, m.InErr, m.InShift, m.InMin = l.Exponent, l.StdErr, l.Shift, l.Xmin
	}
	if l, _, err := powerlaw.FitBest(powerlaw.NewHistogram(out)); err == nil && l.Exponent <= maxExponent {
		m.Out, m.OutErr, m.OutShift, m.OutMin = l.Exponent, l.StdErr, l.Shift, l.Xmin
	}
}

// Trial draws the web without storing it and measures it: 8 bytes a page in addition to what
// the model needs.
func (p *Plan) Trial(ctx context.Context) (*Measured, error) {
	c := counts{to: make([]uint32, p.Nodes), from: make([]uint32, p.Nodes), sites: p.sites}
	if err := p.drawLinks(ctx, &c, &c, func(int64) {}); err != nil {
		return nil, err
	}
	m := &Measured{Degree: float64(c.links) / float64(p.Nodes)}
	if p.sites != nil && c.links > 0 {
		share := float64(c.local) / float64(c.links)
		m.Intra = &share
	}
	m.fitDegreeLaws(degreeHistogram(c.to), degreeHistogram(c.from))
	return m, nil
}

// counts is a sink that keeps the numbers of links to and from each page.
type counts struct {
	to, from     []uint32
	links, local int64
	sites        Table
	u, site      uint64 // the page whose links are next, and its site
}

// Append counts the links of the next page.
func (c *counts) Append(links []uint32) error {
	c.from[c.u] = uint32(len(links))
	c.links += int64(len(links))
	first, pages := uint64(0), uint64(0)
	if c.sites != nil {
		for uint64(c.sites[c.site+1]) <= c.u {
			c.site++
		}
		first, pages = c.sites.Span(c.site)
	}
	for _, v := range links {
		c.to[v]++
		if uint64(v)-first < pages {
			c.local++
		}
	}
	c.u++
	return nil
}

// Add counts a link.
func (c *counts) Add(u, v uint32) error {
	c.from[u]++
	c.to[v]++
	c.links++
	return nil
}

func degreeHistogram(degrees []uint32) map[int64]int64 {
	h := map[int64]int64{}
	for _, d := range degrees {
		h[int64(d)]++
	}
	return h
}
