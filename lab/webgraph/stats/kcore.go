package stats

import "context"

// Cores tells how densely the web is knit: the k-core is the greatest set of
// pages of which each has k neighbours inside it. Directions, repeats and loops
// are left out of account.
type Cores struct {
	Of     []uint32 // the greatest k such that the page is in the k-core
	Counts []int64  // pages with each k
}

// Max returns the greatest k of a core that is not empty.
func (c *Cores) Max() int { return len(c.Counts) - 1 }

// keptLinks is the greatest number of links of which all neighbours are kept
// while cores are found: 200 MB. Of greater graphs they are found twice.
const keptLinks = 25_000_000

// FindCores takes away pages in the order of the neighbours they have left
// (Batagelj and Zaversnik 2003), in time linear in the links. It keeps 12 bytes a
// page, and up to 8 a link and 8 a page of graphs of up to 25 million links.
func FindCores(ctx context.Context, g Graph, workers int, tell Progress) (*Cores, error) {
	if g.Links() <= keptLinks {
		degree, neighbours, err := keepNeighbours(ctx, g)
		if err != nil {
			return nil, err
		}
		return peelCores(ctx, degree, neighbours, tell)
	}
	degree, err := neighbourCounts(ctx, g, workers, nil)
	if err != nil {
		return nil, err
	}
	r := reader{g: g}
	return peelCores(ctx, degree, r.distinctNeighbours, tell)
}

// keepNeighbours finds the neighbours of all pages and returns how many each has, and a
// function that gets them.
func keepNeighbours(ctx context.Context, g Graph) ([]uint32, func(u uint32) []uint32, error) {
	n := g.Nodes()
	degree, starts := make([]uint32, n), make([]uint64, n+1)
	all := make([]uint32, 0, 2*g.Links()) // not more; what is not used is not touched
	r := reader{g: g}
	t := ticker{ctx: ctx}
	for u := range uint32(n) {
		if err := t.checkEvery(int64(u)); err != nil {
			return nil, nil, err
		}
		list := r.distinctNeighbours(u)
		degree[u] = uint32(len(list))
		all = append(all, list...)
		starts[u+1] = uint64(len(all))
	}
	return degree, func(u uint32) []uint32 { return all[starts[u]:starts[u+1]] }, nil
}

// peelCores takes away pages; degree becomes the cores.
func peelCores(ctx context.Context, degree []uint32, neighbours func(u uint32) []uint32, tell Progress) (*Cores, error) {
	n := len(degree)
	most := uint32(0)
	for _, d := range degree {
		most = max(most, d)
	}
	// order holds the pages by degree, place where each stands, first where
	// those of each degree begin.
	first := make([]uint32, most+2)
	for _, d := range degree {
		first[d+1]++
	}
	for d := range most + 1 {
		first[d+1] += first[d]
	}
	order, place := make([]uint32, n), make([]uint32, n)
	for u, d := range degree {
		place[u] = first[d]
		order[place[u]] = uint32(u)
		first[d]++
	}
	for d := most + 1; d > 0; d-- {
		first[d] = first[d-1]
	}
	first[0] = 0
	t := ticker{ctx, tell, int64(n)}
	for i := range n {
		if err := t.checkEvery(int64(i)); err != nil {
			return nil, err
		}
		u := order[i]
		for _, v := range neighbours(u) {
			d := degree[v]
			if d <= degree[u] {
				continue
			}
			// v changes places with the first page of its degree, which then
			// begins one later.
			w := order[first[d]]
			order[place[v]], order[first[d]] = w, v
			place[w], place[v] = place[v], first[d]
			first[d]++
			degree[v]--
		}
	}
	c := &Cores{Of: degree}
	for _, k := range degree {
		for int(k) >= len(c.Counts) {
			c.Counts = append(c.Counts, 0)
		}
		c.Counts[k]++
	}
	return c, nil
}
