package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/webgraph/stats"
)

// webStatsCmd measures a stored graph.
type webStatsCmd struct {
	Dir     string        `arg:"" help:"Stored graph."`
	Report  string        `help:"Write a report with plots to this HTML file." placeholder:"FILE"`
	Seed    uint64        `help:"Seed of everything that is sampled." default:"1"`
	Skip    []string      `help:"Steps to leave out: ${web_steps}." placeholder:"STEP,..."`
	Profile string        `help:"YAML file with the figures of real webs to compare with." placeholder:"FILE"`
	Samples int           `help:"Samples of the bootstrap of each law." default:"100" placeholder:"N"`
	Time    time.Duration `help:"At most so long for the bootstrap of each law." default:"30s" placeholder:"D"`
	Memory  int64         `help:"Megabytes for the counters of distances." default:"4096" placeholder:"MB"`
	Runs    int           `help:"Runs of HyperBall; 0: 4, or 2 above 10 million links." default:"0" placeholder:"N"`
	Wedges  int           `help:"Pairs of neighbours looked at for clustering when triangles are too many to count." default:"40000" placeholder:"N"`
	Exact   bool          `help:"Count triangles and search distances from all pages, however long it takes."`
	Fans    int           `help:"Least number of fans of a bipartite core." default:"3"`
	Centres int           `help:"Least number of its centres." default:"3"`
	Threads int           `help:"Threads; the figures do not depend on it. 0: one for each processor." default:"0"`
}

// checkStatsFlags says what is wrong with the flags.
func (c *webStatsCmd) checkStatsFlags() error {
	for _, s := range c.Skip {
		if !slices.Contains(stats.Steps(), s) {
			return command.Usagef("web stats: no step %q to skip; there are %s", s, strings.Join(stats.Steps(), ", "))
		}
	}
	if c.Report != "" { // told now, not after an hour's work
		if _, err := os.Stat(filepath.Dir(c.Report)); err != nil {
			return command.Usagef("web stats: --report %s: %w", c.Report, err)
		}
	}
	switch {
	case c.Samples < 1:
		return command.Usagef("web stats: --samples %d: at least 1 (or --skip goodness)", c.Samples)
	case c.Memory < 1:
		return command.Usagef("web stats: --memory %d: at least 1", c.Memory)
	case c.Runs < 0 || c.Threads < 0:
		return command.Usagef("web stats: --runs and --threads are at least 0")
	case c.Wedges < 1:
		return command.Usagef("web stats: --wedges %d: at least 1", c.Wedges)
	case c.Fans < 1 || c.Centres < 1:
		return command.Usagef("web stats: --fans and --centres are at least 1")
	}
	return nil
}

// readProfile returns the profile to compare with.
func (c *webStatsCmd) readProfile() (*stats.Profile, error) {
	if c.Profile == "" {
		return stats.DefaultProfile()
	}
	f, err := os.Open(c.Profile)
	if err != nil {
		return nil, command.Usagef("web stats: %w", err)
	}
	defer f.Close()
	p, err := stats.ReadProfile(f)
	if err != nil {
		return nil, command.Usagef("%s: %w", c.Profile, err)
	}
	return p, nil
}

// Run measures.
func (c *webStatsCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	if err := c.checkStatsFlags(); err != nil {
		return err
	}
	profile, err := c.readProfile()
	if err != nil {
		return err
	}
	graph, err := openGraph(g, ctx, c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, graph.Close()) }()
	show, end := graphProgress(g)
	opt := stats.Options{
		Seed: c.Seed, Workers: c.Threads, Skip: c.Skip, Memory: c.Memory << 20, Replications: c.Samples, Time: c.Time,
		Clustering: stats.ClusteringOptions{Wedges: c.Wedges},
		Distances:  stats.DistanceOptions{Runs: c.Runs},
		Trawl:      stats.TrawlOptions{Fans: c.Fans, Centres: c.Centres},
	}
	if opt.Workers == 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Exact {
		opt.Clustering.ExactLinks, opt.Distances.Exact = 1<<62, 1<<62
	}
	opt.Progress = show
	a, err := stats.Analyse(ctx, graph, opt)
	end()
	if err != nil {
		return err
	}
	profile.Compare(a)
	if c.Report != "" {
		if err := c.writeStatsReport(a, profile); err != nil {
			return err
		}
	}
	if g.JSON {
		return g.PrintJSON(a)
	}
	return printAnalysis(g.Stdout, a)
}

func (c *webStatsCmd) writeStatsReport(a *stats.Analysis, p *stats.Profile) (err error) {
	f, err := os.Create(c.Report)
	if err != nil {
		return fmt.Errorf("web stats: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	return a.WriteReport(f, filepath.Base(dir), p)
}

// printAnalysis prints the figures for people.
func printAnalysis(w io.Writer, a *stats.Analysis) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, v ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, v...)) }
	row("pages", "%d", a.Nodes)
	row("links", "%d (%.4g a page)", a.Links, a.MeanOut)
	row("in-degree", "at most %d; %d pages linked by none%s", a.MaxIn, a.NoIn, lawText(a.InLaw))
	row("out-degree", "at most %d; %d pages without links%s", a.MaxOut, a.NoOut, lawText(a.OutLaw))
	row("reciprocity", "%.4f", a.Reciprocity)
	if a.IntraHost != nil {
		row("links inside hosts", "%.4f", *a.IntraHost)
	}
	if b := a.BowTie; b != nil {
		row("strong components", "%d, the largest with %.4f of the pages", *a.Strong, *a.LargestSCC)
		row("weak components", "%d, the largest with %.4f of the pages", *a.Weak, *a.LargestWCC)
		row("bow-tie", "scc %.4f, in %.4f, out %.4f, tubes %.4f, tendrils %.4f, disconnected %.4f", b.SCC, b.In, b.Out, b.Tubes, b.Tendrils, b.Disconnected)
	}
	if c := a.Closed; c != nil {
		row("clustering", "%s over pages, %s over pairs, undirected", plusMinus(c.Local, c.LocalError), plusMinus(c.Transitivity, c.TransitivityError))
	}
	if r := a.PageRank; r != nil {
		row("PageRank", "%d rounds, residual %.2g; a hundredth of the pages holds %.4f", r.Rounds, r.Residual, r.TopShare)
		if r.Tau != nil {
			row("", "Kendall's tau with the in-degree %.4f", *r.Tau)
		}
	}
	if d := a.Distances; d != nil {
		row("distances", "mean %s, 90 %% within %s, farthest %d", plusMinus(d.Mean, d.MeanError), plusMinus(d.Effective, d.EffectiveError), d.Longest)
		row("joined pairs", "%s", plusMinus(d.Reachable, d.ReachableError))
	}
	if c := a.Core; c != nil {
		row("innermost core", "%d pages with %d neighbours each", c.Pages, c.Max)
	}
	if r := a.Trawled; r != nil {
		row("bipartite cores", "%d of %d fans and %d centres or more, %d fans in all", r.Count, r.Fans, r.Centres, r.Covered)
	}
	if h := a.Hosts; h != nil {
		row("hosts", "%d, %.4g pages each, at most %d%s", h.Hosts, h.Mean, h.Greatest, lawText(a.HostLaw))
	}
	for _, c := range a.Compare {
		if c.Value != nil && !c.Within {
			row("unlike real webs", "%s %.4g, not %.4g to %.4g", c.Figure, *c.Value, c.Low, c.High)
		}
	}
	return t.Flush()
}

func plusMinus(v, err float64) string {
	if err == 0 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.4f +- %.2g", v, err)
}

func lawText(l *stats.LawFigures) string {
	if l == nil {
		return ""
	}
	s := fmt.Sprintf("; exponent %.3f +- %.2g from %d on", l.Exponent, l.StdErr, l.Xmin)
	if l.Shift != 0 {
		s = fmt.Sprintf("; exponent %.3f +- %.2g of the number %+.2f from %d on", l.Exponent, l.StdErr, l.Shift, l.Xmin)
	}
	return s + ": " + l.Verdict()
}
