package cli

import (
	"fmt"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/gen"
)

// graphAnswer is the JSON of commands that make a stored graph.
type graphAnswer struct {
	Dir    string  `json:"dir"`
	Nodes  int64   `json:"nodes"`
	Links  int64   `json:"links"`
	Sites  int64   `json:"sites"`
	Degree float64 `json:"mean_out_degree"`
	Bytes  int64   `json:"bytes"`
	Made   any     `json:"made"`
	// Measured is what came out of a generation.
	Measured *gen.Measured `json:"measured,omitempty"`
}

// tellGraph prints what has been made; m may be nil.
func tellGraph(g *command.Globals, dir string, m *gen.Measured) error {
	graph, err := webgraph.OpenUnchecked(dir)
	if err != nil {
		return err
	}
	meta := graph.Meta()
	a := graphAnswer{Dir: dir, Nodes: meta.Nodes, Links: meta.Links, Sites: meta.Sites, Degree: float64(meta.Links) / float64(meta.Nodes), Made: meta.Made, Measured: m}
	for _, f := range meta.Files {
		a.Bytes += f.Bytes
	}
	if err := graph.Close(); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(a)
	}
	fmt.Fprintf(g.Stdout, "%s: %d pages, %d links (%.2f a page), %d sites, %d bytes\n", a.Dir, a.Nodes, a.Links, a.Degree, a.Sites, a.Bytes)
	if m != nil {
		printMeasured(g, m)
	}
	return nil
}

// graphProgress returns a function that shows the stages of the making of a
// graph, and one that ends the last.
func graphProgress(g *command.Globals) (func(what string, done, total int64), func()) {
	if g.Quiet {
		return func(string, int64, int64) {}, func() {}
	}
	var line *progress.Line
	var stage string
	var began time.Time
	end := func() {
		if line != nil {
			line.Done(progress.Clock(time.Since(began)) + "  " + stage)
		}
	}
	show := func(what string, done, total int64) {
		if what != stage {
			end()
			line, stage, began = progress.New(g.Stderr), what, time.Now()
		}
		line.Update(done, total, what)
	}
	return show, end
}
