package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/gen"
)

// webGenCmd makes a synthetic web.
type webGenCmd struct {
	Model string    `help:"One of ${models}." default:"host-local"`
	Nodes int64     `help:"Number of pages." required:"" placeholder:"N"`
	Links int64     `help:"Links of a page in the mean (default: 8); as many as pages or more is the number of all links." placeholder:"K"`
	In    float64   `name:"in-exponent" help:"Exponent of the number of links to a page, greater than 2 (default 2.1; ba 3)." placeholder:"G"`
	Out   float64   `name:"out-exponent" help:"Exponent of the number of links of a page, greater than 2 (default 2.72; ba and copying: equal numbers)." placeholder:"G"`
	Intra float64   `name:"intra-host" help:"Share of the links that stay on the site (host-local; default 0.8)." placeholder:"P"`
	Tie   []float64 `name:"bow-tie" help:"Shares of the pages in the largest strong component, IN and OUT (host-local; default 0.513,0.32,0.061, those of the Common Crawl of 2012)." placeholder:"SCC,IN,OUT"`
	Sites int64     `help:"Number of sites (host-local; default: one for 64 pages)." placeholder:"N"`
	Seed  uint64    `help:"Seed: the same gives the same graph." default:"1"`
	Dir   string    `help:"Folder to make." short:"o" name:"out" required:"" placeholder:"DIR"`
}

// Run generates.
func (c *webGenCmd) Run(ctx context.Context, g *command.Globals) error {
	for _, asked := range []struct {
		flag  string
		value float64
	}{{"--in-exponent", c.In}, {"--out-exponent", c.Out}, {"--intra-host", c.Intra}} {
		if asked.value < 0 {
			return command.Usagef("web gen: %s %g: cannot be negative", asked.flag, asked.value)
		}
	}
	tie, err := bowTie(c.Tie)
	if err != nil {
		return err
	}
	links := c.Links
	if 0 < links && links < c.Nodes {
		links *= c.Nodes
	}
	spec := gen.Spec{Model: c.Model, Nodes: c.Nodes, Links: links, In: c.In, Out: c.Out, Intra: c.Intra, Sites: c.Sites, BowTie: tie, Seed: c.Seed}
	if spec.Links, err = spec.Check(); err != nil {
		return command.Usagef("web gen: %w", err)
	}
	if err := webgraph.Room(c.Dir, uint64(webgraph.Bytes(spec.Nodes, spec.Links))); err != nil {
		return graphError(err)
	}
	plan, err := spec.Plan()
	if err != nil {
		return command.Usagef("web gen: %w", err)
	}
	show, end := graphProgress(g)
	defer end()
	if err := plan.Generate(ctx, c.Dir, webgraph.Options{Progress: show}); err != nil {
		return graphError(err)
	}
	graph, err := webgraph.OpenUnchecked(c.Dir)
	if err != nil {
		return err
	}
	measured, err := gen.Measure(ctx, graph, func(done, total int64) { show("measured", done, total) })
	if err := errors.Join(err, graph.Close()); err != nil {
		return err
	}
	end()
	return tellGraph(g, c.Dir, measured)
}

// bowTie reads the flag of that name; none is the default.
func bowTie(shares []float64) (gen.BowTie, error) {
	switch len(shares) {
	case 0:
		return gen.BowTie{}, nil
	case 3:
		return gen.BowTie{SCC: shares[0], In: shares[1], Out: shares[2]}, nil
	}
	return gen.BowTie{}, command.Usagef("--bow-tie: want three shares, of the largest strong component, IN and OUT, not %d", len(shares))
}

// printMeasured prints the measured figures next to the requested ones.
func printMeasured(g *command.Globals, m *gen.Measured) {
	law := func(what string, exponent, stdErr, shift float64, xmin int64) {
		if exponent == 0 {
			return
		}
		of := ""
		if shift != 0 {
			of = fmt.Sprintf(" of the number %+.2f", shift)
		}
		fmt.Fprintf(g.Stdout, "%-22s exponent %.3f +- %.3f%s from %d on\n", what, exponent, stdErr, of, xmin)
	}
	law("links to a page", m.In, m.InErr, m.InShift, m.InMin)
	law("links from a page", m.Out, m.OutErr, m.OutShift, m.OutMin)
	if m.Intra != nil {
		fmt.Fprintf(g.Stdout, "%-22s %.3f\n", "links on the site", *m.Intra)
	}
}
