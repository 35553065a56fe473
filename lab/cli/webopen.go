package cli

import (
	"context"
	"errors"
	"os"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/truth"
	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/gen"
)

// treeModel is the computed web in which every page is reached from the first.
const treeModel = "tree"

// virtualWeb says how the graph of a computed web is made.
type virtualWeb struct {
	Model  string    `help:"Links of the computed web: host-local, matched (as web gen makes them) or tree (simple and small)." enum:"host-local,matched,tree" default:"host-local"`
	In     float64   `name:"in-exponent" help:"Exponent of the number of links to a page (default 2.1)." placeholder:"G"`
	Out    float64   `name:"out-exponent" help:"Exponent of the number of links of a page (default 2.72)." placeholder:"G"`
	Intra  float64   `name:"intra-host" help:"Share of the links that stay on the site (default 0.8)." placeholder:"P"`
	Tie    []float64 `name:"bow-tie" help:"Shares of the pages in the largest strong component, IN and OUT (default 0.513,0.32,0.061)." placeholder:"SCC,IN,OUT"`
	Degree float64   `help:"Mean number of links of a page (default 8)." placeholder:"K"`
}

// computedGraph returns the graph of a computed web of cfg.Pages pages on cfg.Sites sites;
// nil: the tree.
func (v virtualWeb) computedGraph(cfg *testweb.Config) (testweb.Graph, error) {
	if v.Model == treeModel || cfg.Pages < 2 {
		return nil, nil
	}
	if v.In < 0 || v.Out < 0 || v.Intra < 0 || v.Degree < 0 {
		return nil, command.Usagef("exponents, --intra-host and --degree cannot be negative")
	}
	layout, err := testweb.NewSites(cfg.Pages, cfg.Sites, cfg.Seed)
	if err != nil {
		return nil, command.Usagef("computed web: %w", err)
	}
	tie, err := bowTie(v.Tie)
	if err != nil {
		return nil, err
	}
	var g testweb.Graph
	if v.Model == "matched" {
		if len(v.Tie) > 0 {
			return nil, command.Usagef("bow-tie: the model matched has none to choose; host-local has")
		}
		g, err = gen.NewMatched(gen.MatchedOptions{Nodes: cfg.Pages, Degree: v.Degree, In: v.In, Out: v.Out, Intra: v.Intra, Seed: cfg.Seed}, layout)
	} else {
		o := gen.HostLocalOptions{Nodes: cfg.Pages, Degree: v.Degree, In: v.In, Out: v.Out, Intra: v.Intra, BowTie: tie, Seed: cfg.Seed}
		g, err = gen.NewHostLocal(o, layout)
	}
	if err != nil {
		return nil, command.Usagef("computed web: %w", err)
	}
	return g, nil
}

// servedGraph returns the graph that a truth log names; nil: a tree, or not
// known.
func servedGraph(h *truth.Head, cfg *testweb.Config) (testweb.Graph, error) {
	if h.Model == "" {
		return nil, nil
	}
	g, err := virtualWeb{Model: h.Model, In: h.In, Out: h.Out, Intra: h.Intra, Tie: h.BowTie, Degree: h.Degree}.computedGraph(cfg)
	if err != nil {
		return nil, err
	}
	if l, ok := g.(testweb.Layout); ok {
		cfg.Layout = l
	}
	return testweb.Collect(g), nil // it will be read many times
}

// openStored opens a stored graph: a folder that web gen or web import made, or a
// file of links.
func openStored(g *command.Globals, ctx context.Context, path string) (testweb.Graph, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, command.Usagef("stored graph: %w", err)
	}
	if st.IsDir() {
		stored, err := openGraph(g, ctx, path) // mapped until the program ends
		if err != nil {
			return nil, err
		}
		return testweb.FromStored(stored), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, command.Usagef("stored graph: %w", err)
	}
	defer f.Close()
	web, err := testweb.ReadEdges(f)
	if err != nil {
		return nil, command.Usagef("stored graph: %s: %w", path, err)
	}
	return web, nil
}

// openGraph opens the folder of a stored graph; a great one is checked first if
// that was not done before.
func openGraph(g *command.Globals, ctx context.Context, dir string) (*webgraph.Graph, error) {
	show, end := graphProgress(g)
	defer end()
	graph, err := webgraph.OpenTold(ctx, dir, func(done, total int64) { show("checksums", done, total) })
	var damaged *webgraph.DamagedError
	switch {
	case err == nil:
		return graph, nil
	case errors.As(err, &damaged), ctx.Err() != nil:
		return nil, err
	default:
		return nil, command.Usagef("stored graph: %w", err)
	}
}
