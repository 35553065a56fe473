package gen

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/freshet/freshet/internal/rng"
)

// growth makes webs that grow page by page, each page linking to earlier ones
// only. The links so far are kept in memory, 4 bytes each.
type growth struct {
	pages uint64
	links []uint32
	// starts are the first links of the pages where degrees are drawn; where they
	// are all but equal, the first link of page u is floor((u-1) mean), and page 0
	// has none.
	starts []uint64
	mean   float64
	law    *Law // nil: equal degrees
	src    *rand.ChaCha8

	copies  int     // links that are copied before the next one that is not
	logCopy float64 // logarithm of the probability that a link is copied
}

func newGrowth(p *Plan, label string) *growth {
	g := &growth{pages: uint64(p.Nodes), mean: float64(p.Links) / float64(max(p.Nodes-1, 1)), law: p.law, src: rng.Source(p.Seed, label)}
	if p.law != nil {
		g.starts = make([]uint64, 1, p.Nodes+1)
	}
	g.links = make([]uint32, 0, p.Links+p.Links/64+1024)
	return g
}

// firstLinkIndex returns the index of the first link of page u.
func (g *growth) firstLinkIndex(u uint64) uint64 {
	if g.starts != nil {
		return g.starts[u]
	}
	if u == 0 {
		return 0
	}
	return uint64(float64(u-1)*g.mean + 1e-6)
}

// nextDegree returns the number of links of the next page, u.
func (g *growth) nextDegree(u uint64) int {
	switch {
	case u == 0:
		return 0
	case g.law != nil:
		return int(min(uint64(g.law.Draw(g.src.Uint64())), u)) // as many as there are pages to link to
	}
	return int(g.firstLinkIndex(u+1) - g.firstLinkIndex(u))
}

// appendPages calls add for every page, which is to append the links of the page, and
// gives them to the sink.
func (g *growth) appendPages(ctx context.Context, s Sink, progress func(done int64), add func(u uint64, degree int)) error {
	for u := range g.pages {
		if u&(1<<16-1) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(int64(u))
		}
		from := len(g.links)
		add(u, g.nextDegree(u))
		if g.starts != nil {
			g.starts = append(g.starts, uint64(len(g.links)))
		}
		if err := s.Append(g.links[from:]); err != nil {
			return err
		}
	}
	return nil
}

// drawCopying is the linear copying model (Kumar et al., FOCS 2000): a new page takes
// an earlier one, drawn evenly, as its prototype; its link i goes to a page drawn
// evenly with probability a, else where link i of the prototype goes. The number
// of links to a page has exponent (2-a)/(1-a), and pages of one prototype make
// bipartite cores. A page with more links than its prototype takes another for the
// rest.
func drawCopying(ctx context.Context, p *Plan, s Sink, progress func(int64)) error {
	g := newGrowth(p, "copying")
	g.logCopy = math.Log1p(-p.Params["a"])
	g.copies = g.drawCopyRun()
	return g.appendPages(ctx, s, progress, g.copyFrom)
}

// drawCopyRun draws how many links are copied before the next one that is not.
func (g *growth) drawCopyRun() int {
	u := float64(g.src.Uint64()>>11+1) / (1 << 53) // in (0, 1]
	return int(min(math.Log(u)/g.logCopy, 1<<40))
}

// copyFrom appends the links of page u. Which links are copied is drawn by the
// lengths of runs, so that most links cost no random number.
func (g *growth) copyFrom(u uint64, degree int) {
	if degree == 0 {
		return
	}
	at, end := g.drawPrototype(u)
	model := g.links[at:end] // the prototype's links that are left
	for degree > 0 {
		if g.copies == 0 {
			g.links = append(g.links, uint32(scaleBelow(g.src.Uint64(), u)))
			degree--
			model = model[min(1, len(model)):]
			g.copies = g.drawCopyRun()
			continue
		}
		if len(model) == 0 {
			if at, end = g.drawPrototype(u); at == end { // page 0, which has none
				g.links = append(g.links, uint32(scaleBelow(g.src.Uint64(), u)))
				degree--
				continue
			}
			model = g.links[at:end]
		}
		n := min(degree, g.copies, len(model))
		g.links = append(g.links, model[:n]...)
		model = model[n:]
		degree -= n
		g.copies -= n
	}
}

// drawPrototype draws a page before u and returns where its links stand.
func (g *growth) drawPrototype(u uint64) (at, end uint64) {
	p := scaleBelow(g.src.Uint64(), u)
	return g.firstLinkIndex(p), g.firstLinkIndex(p + 1)
}

// drawPreferential is the model of Barabasi and Albert with targets drawn in
// proportion to (number of links to a page) + A, by the method of Batagelj and
// Brandes (2005): the target of an earlier link, drawn evenly, is a page drawn in
// proportion to the links to it. The exponent is 2 + A/m with m links a page. Where
// the numbers of links are drawn, m is their mean so far: one early page with very
// many would else change A/m for all that come later.
func drawPreferential(ctx context.Context, p *Plan, s Sink, progress func(int64)) error {
	g := newGrowth(p, "ba")
	attract := p.Params["A"]
	return g.appendPages(ctx, s, progress, func(u uint64, degree int) {
		before := uint64(len(g.links))
		weight := attract * float64(u)
		if g.law != nil {
			weight *= float64(before) / (g.mean * float64(u))
		}
		fresh := uint32(min(weight/(weight+float64(before))*(1<<32), 1<<32-1))
		for range degree {
			x := g.src.Uint64()
			if uint32(x) < fresh || before == 0 {
				g.links = append(g.links, uint32((x>>32)*u>>32))
				continue
			}
			g.links = append(g.links, g.links[scaleBelow(g.src.Uint64(), before)])
		}
	})
}
