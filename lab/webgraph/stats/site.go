package stats

import (
	"context"

	"github.com/freshet/freshet/lab/webgraph/powerlaw"
)

// HostFigures tell how pages are spread over hosts and how hosts are linked.
type HostFigures struct {
	Hosts    int64               `json:"hosts"`
	Mean     float64             `json:"mean_pages"`
	Greatest int64               `json:"max_pages"`
	Single   int64               `json:"single_page"` // hosts of one page
	Pages    *powerlaw.Histogram `json:"-"`           // hosts by number of pages
	NoIn     int64               `json:"no_in"`       // hosts to which no other host links
	NoOut    int64               `json:"no_out"`      // hosts that link to no other host
	Links    int64               `json:"host_links"`  // pairs of different hosts, the first of which links to the second
	Internal float64             `json:"mean_intra"`  // mean over hosts of the share of links inside, hosts without links left out
}

// FindHosts looks at the hosts of a graph; nil if it has none. It keeps 12 bytes
// a host and 4 a page.
func FindHosts(ctx context.Context, g Graph, tell Progress) (*HostFigures, error) {
	h, ok := g.(Hosts)
	if !ok || h.Sites() == 0 {
		return nil, nil
	}
	n := h.Sites()
	of := make([]uint32, g.Nodes())
	var sizes counter
	f := &HostFigures{Hosts: int64(n), Mean: float64(g.Nodes()) / float64(n)}
	for i := range n {
		first, pages := h.SiteSpan(i)
		for u := first; u < first+pages; u++ {
			of[u] = uint32(i)
		}
		sizes.countDegree(int64(pages))
		f.Greatest = max(f.Greatest, int64(pages))
		if pages == 1 {
			f.Single++
		}
	}
	f.Pages = sizes.drainHistogram()
	linked := newPageSet(n)
	last := make([]uint32, n) // the last host seen to link there, plus 1
	var shares float64
	sharing := 0
	t := ticker{ctx, tell, int64(n)}
	for i := range n {
		if err := t.checkEvery(int64(i)); err != nil {
			return nil, err
		}
		first, pages := h.SiteSpan(i)
		inside, all, abroad := 0, 0, int64(0)
		for u := first; u < first+pages; u++ {
			for _, v := range g.Out(u) {
				all++
				switch k := of[v]; {
				case int(k) == i:
					inside++
				case last[k] != uint32(i)+1:
					last[k] = uint32(i) + 1
					linked.addPage(k)
					abroad++
				}
			}
		}
		f.Links += abroad
		if abroad == 0 {
			f.NoOut++
		}
		if all > 0 {
			shares += float64(inside) / float64(all)
			sharing++
		}
	}
	for i := range uint32(n) {
		if !linked.hasPage(i) {
			f.NoIn++
		}
	}
	if sharing > 0 {
		f.Internal = shares / float64(sharing)
	}
	return f, nil
}
