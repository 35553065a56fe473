package pack

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// Source is a graph that is coded: the ascending list of each page, each link
// once. The function that View returns is for one goroutine.
type Source struct {
	Nodes, Links int64
	Sites        []uint32 // first page of each, and the end; empty: none
	View         func() func(u uint32) []uint32
}

// Options say how a graph is coded.
type Options struct {
	Workers int
	// Progress is called with the number of pages done; there are two rounds. nil:
	// nobody.
	Progress func(done, total int64)
}

// Write codes all lists and writes their bits; it returns the other parts. It
// keeps 5 bytes a page.
func Write(ctx context.Context, src Source, opt Options, bits io.Writer) (Parts, error) {
	c := &coder{src: src, opt: opt, out: bits}
	if err := c.prepareCodes(ctx); err != nil {
		return Parts{}, err
	}
	if err := c.codeAllGroups(ctx); err != nil {
		return Parts{}, err
	}
	p := Parts{Codes: []byte{version, byte(c.layout), 0}, Places: c.groupOffsets()}
	if c.ranks != nil {
		p.Codes[2], p.Ranks = 1, c.ranks.rankWords()
	}
	for _, t := range c.codes {
		p.Codes = append(p.Codes, t.Lengths()...)
	}
	return p, nil
}

// coder carries a graph through coding.
type coder struct {
	src    Source
	opt    Options
	out    io.Writer
	layout layout
	sites  sites
	ranks  *ranks
	codes  *codes
	sizes  []uint32 // of groups, in bits
	w      bitcode.Writer
}

// samplePages is the number of pages to which codes are fitted.
const samplePages = 1 << 17

// prepareCodes finds the codes.
func (c *coder) prepareCodes(ctx context.Context) error {
	c.layout, c.sites = ownSites, c.src.Sites
	view := c.src.View()
	if len(c.src.Sites) < 2 {
		c.layout, c.sites = eachAlone, nil
		if c.hasNearLinks(view) {
			c.layout, c.sites = allOne, sites{0, uint32(c.src.Nodes)}
		}
	}
	ranks, err := c.rankByCrossLinks(ctx)
	if err != nil {
		return err
	}
	byGap, gaps, err := c.fitSampleCodes(ctx, view, nil)
	if err != nil {
		return err
	}
	byRank, ranked, err := c.fitSampleCodes(ctx, view, ranks)
	if err != nil {
		return err
	}
	// Gaps need no ranks to be stored.
	scale := float64(c.src.Nodes) / float64(min(c.src.Nodes, samplePages))
	if float64(ranked)*scale+float64(64*len(ranks.rankWords())) < float64(gaps)*scale {
		c.codes, c.ranks = byRank, ranks
	} else {
		c.codes = byGap
	}
	return nil
}

// hasNearLinks reports whether half of the links lead to pages with numbers near the page's.
func (c *coder) hasNearLinks(view func(u uint32) []uint32) bool {
	n := c.src.Nodes
	near, all := 0, 0
	for i := range min(n, samplePages) {
		u := uint32(i * n / min(n, samplePages))
		for _, v := range view(u) {
			all++
			if d := int64(v) - int64(u); max(d, -d) <= max(n/1000, 256) {
				near++
			}
		}
	}
	return 2*near > all
}

// rankByCrossLinks returns the pages by links from other sites.
func (c *coder) rankByCrossLinks(ctx context.Context) (*ranks, error) {
	links := make([]uint32, c.src.Nodes)
	view := c.src.View()
	site, lo, hi := -1, uint32(0), uint32(0)
	for u := range c.src.Nodes {
		if u%(1<<14) == 0 {
			if err := c.reportCoding(ctx, u); err != nil {
				return nil, err
			}
		}
		for uint32(u) >= hi {
			site++
			lo, hi = c.sites.siteSpan(site)
		}
		for _, v := range view(uint32(u)) {
			if v < lo || v >= hi {
				links[v]++
			}
		}
	}
	return newRanks(links), nil
}

func (c *coder) reportCoding(ctx context.Context, done int64) error {
	if c.opt.Progress != nil {
		c.opt.Progress(done, 2*c.src.Nodes)
	}
	return ctx.Err()
}

// rounds is how many times codes are fitted: which list is copied depends on what
// it costs, and the other way round.
const rounds = 3

// fitSampleCodes returns codes fitted to a sample of groups, and what the sample costs.
func (c *coder) fitSampleCodes(ctx context.Context, view func(u uint32) []uint32, r *ranks) (*codes, uint64, error) {
	e := &encoder{nodes: uint64(c.src.Nodes), sites: c.sites, cost: guessLengths(), ranks: r}
	all := int64(groupCount(uint64(c.src.Nodes)))
	sample := min(all, samplePages/groupPages)
	var fitted *codes
	cost := uint64(0)
	for range rounds {
		counts := newCounts()
		cost = 0
		for i := range sample {
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
			first, lists := c.readGroupLists(e, view, i*all/sample)
			e.encodeGroup(first, lists, func(s *sentence) {
				counts.countSentence(s)
				cost += s.cost
			})
		}
		var err error
		if fitted, err = counts.fitCodes(); err != nil {
			return nil, 0, err
		}
		e.cost = fitted.codeLengths()
	}
	return fitted, cost, nil
}

// readGroupLists reads the lists of a group into e.
func (c *coder) readGroupLists(e *encoder, view func(u uint32) []uint32, group int64) (uint32, [][]uint32) {
	first := group * groupPages
	n := min(groupPages, c.src.Nodes-first)
	for i := range n {
		e.lists[i] = append(e.lists[i][:0], view(uint32(first+i))...)
	}
	return uint32(first), e.lists[:n]
}

// pieceGroups is the number of groups that are coded as one piece of work.
const pieceGroups = 256

// piece is coded groups.
type piece struct {
	first, end int64 // groups
	w          bitcode.Writer
	sizes      []uint32
	done       chan struct{}
}

// codeAllGroups codes all groups, by workers, and writes them in order.
func (c *coder) codeAllGroups(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	workers := max(c.opt.Workers, 1)
	work, order := make(chan *piece), make(chan *piece, 2*workers) // bounds what is in memory
	all := int64(groupCount(uint64(c.src.Nodes)))
	group.Go(func() error {
		defer close(work)
		defer close(order)
		for at := int64(0); at < all; at += pieceGroups {
			p := &piece{first: at, end: min(at+pieceGroups, all), done: make(chan struct{})}
			for _, to := range []chan *piece{order, work} {
				select {
				case to <- p:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	})
	for range workers {
		group.Go(func() error {
			view := c.src.View()
			e := &encoder{nodes: uint64(c.src.Nodes), sites: c.sites, cost: c.codes.codeLengths(), ranks: c.ranks}
			for p := range work {
				c.codePiece(e, view, p)
				close(p.done)
			}
			return nil
		})
	}
	group.Go(func() error {
		for p := range order {
			select {
			case <-p.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			c.sizes = append(c.sizes, p.sizes...)
			c.w.Append(&p.w)
			if _, err := c.w.WriteTo(c.out); err != nil {
				return err
			}
			if err := c.reportCoding(ctx, c.src.Nodes+min(p.end*groupPages, c.src.Nodes)); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err := group.Wait(); err != nil {
		return err
	}
	c.w.Pad()
	_, err := c.w.WriteTo(c.out)
	return err
}

// codePiece codes the groups of a piece.
func (c *coder) codePiece(e *encoder, view func(u uint32) []uint32, p *piece) {
	var scratch bitcode.Writer
	for g := p.first; g < p.end; g++ {
		first, lists := c.readGroupLists(e, view, g)
		at := p.w.Len()
		e.encodeGroup(first, lists, func(s *sentence) { c.codes.writeSentence(&p.w, s, &scratch) })
		p.sizes = append(p.sizes, uint32(p.w.Len()-at))
	}
}

// groupOffsets returns where groups begin.
func (c *coder) groupOffsets() []uint64 {
	end := uint64(0)
	for _, s := range c.sizes {
		end += uint64(s)
	}
	e := bitcode.NewEliasFano(uint64(len(c.sizes)), end)
	at := uint64(0)
	for _, s := range c.sizes {
		e.Push(at)
		at += uint64(s)
	}
	return e.Words()
}
