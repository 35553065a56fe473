package gen

import (
	"context"

	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/powerlaw"
)

// Measured is what came out, beside what was asked for.
type Measured struct {
	Degree float64 `json:"mean_out_degree"`
	// In and Out are exponents by maximum likelihood, from InMin and OutMin links
	// on; 0 where no power law can be fitted.
	In     float64 `json:"in_exponent,omitempty"`
	InMin  int64   `json:"in_xmin,omitempty"`
	Out    float64 `json:"out_exponent,omitempty"`
	OutMin int64   `json:"out_xmin,omitempty"`
	// Intra is the share of links on the site, of graphs with sites.
	Intra *float64 `json:"intra_host,omitempty"`
}

// Measure measures a graph by reading it once. progress is told of pages done.
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
	// A greater exponent is that of nearly equal numbers.
	if l, err := powerlaw.Fit(powerlaw.NewHistogram(in)); err == nil && l.Exponent <= maxExponent {
		m.In, m.InMin = l.Exponent, l.Xmin
	}
	if l, err := powerlaw.Fit(powerlaw.NewHistogram(out)); err == nil && l.Exponent <= maxExponent {
		m.Out, m.OutMin = l.Exponent, l.Xmin
	}
	return m, nil
}
