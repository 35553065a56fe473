package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/internal/command"

	"golang.org/x/sync/errgroup"

	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/lab/strategy"
	"github.com/freshet/freshet/lab/strategy/coverage"
	"github.com/freshet/freshet/lab/webgraph"
)

type strategyCompareCmd struct {
	scriptFlags
	runFlags
	Out      string   `help:"Folder for curves.csv, summary.csv and report.html." short:"o" required:"" placeholder:"DIR"`
	Points   int      `help:"Points of a curve." default:"200"`
	Subgraph bool     `help:"Also rank the fetched part at shares of the pages (Kendall's tau of Boldi et al.): as much work as ranking the web, each time." default:"true" negatable:""`
	Jobs     int      `help:"Strategies run at the same time (default: one a core)." placeholder:"N"`
	Scripts  []string `arg:"" name:"script" optional:"" help:"Files or names of shipped strategies (default: all shipped ones)."`
}

// Run compares.
func (c *strategyCompareCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	if err := c.checkRunFlags(); err != nil {
		return err
	}
	if c.Points < 1 || c.Jobs < 0 {
		return command.Usagef("--points and --jobs are positive")
	}
	if len(c.Scripts) == 0 {
		c.Scripts = strategy.Scripts()
	}
	var scripts []*strategy.Script
	for _, name := range c.Scripts {
		s, err := c.loadCorrectScript(g, name)
		if err != nil {
			return err
		}
		scripts = append(scripts, s)
	}
	web, err := c.openWebGraph(ctx, g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	comparison, err := c.compareScripts(ctx, g, web, scripts)
	if err != nil {
		return err
	}
	if err := comparison.Write(c.Out); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(comparison)
	}
	fmt.Fprintf(g.Stdout, "%-20s %10s %12s %8s %8s %10s %10s\n", "strategy", "pages", "seconds", "area", "tau", "pr at 10 %", "pr at 50 %")
	for _, r := range comparison.Runs {
		tau := "-"
		if r.Tau != nil {
			tau = fmt.Sprintf("%.4f", *r.Tau)
		}
		fmt.Fprintf(g.Stdout, "%-20s %10d %12.6g %8.4f %8s %10.4f %10.4f\n", r.Name, r.Distinct, r.Seconds, r.Area, tau, r.PageRankAt["0.1"], r.PageRankAt["0.5"])
	}
	fmt.Fprintln(g.Stdout, strings.Join(comparison.Files, "\n"))
	return nil
}

// compareScripts runs the scripts and sums them up.
func (c *strategyCompareCmd) compareScripts(ctx context.Context, g *command.Globals, web *webgraph.Graph, scripts []*strategy.Script) (*coverage.Comparison, error) {
	if !g.Quiet {
		fmt.Fprintln(g.Stderr, "freshet: PageRank of the web")
	}
	worth, err := coverage.NewWorth(ctx, web, runtime.NumCPU(), nil)
	if err != nil {
		return nil, err
	}
	comparison := &coverage.Comparison{
		Web:  coverage.WebInfo{Dir: c.Web, Nodes: web.Nodes(), Links: web.Links(), Sites: web.Sites()},
		Cost: coverage.Cost{Latency: c.Latency, Bandwidth: c.Bandwidth, Delay: c.Delay, Connections: c.Connections},
		Runs: make([]coverage.Run, len(scripts)),
	}
	dir, err := os.MkdirTemp(c.Temp, "freshet-strategy-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var done atomic.Int64
	stop := func() {}
	if !g.Quiet {
		stop = showPages(g, &done, int64(web.Nodes())*int64(len(scripts)))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.jobCount())
	for i, s := range scripts {
		group.Go(func() error {
			own := filepath.Join(dir, fmt.Sprint(i))
			if err := os.Mkdir(own, 0o700); err != nil {
				return err
			}
			r, err := c.runScript(ctx, web, worth, s, own, &done)
			comparison.Runs[i] = r
			return err
		})
	}
	err = group.Wait()
	stop()
	return comparison, err
}

func (c *strategyCompareCmd) jobCount() int {
	if c.Jobs == 0 {
		return runtime.NumCPU()
	}
	return c.Jobs
}

// runScript runs a script.
func (c *strategyCompareCmd) runScript(ctx context.Context, web *webgraph.Graph, worth *coverage.Worth, s *strategy.Script, dir string, done *atomic.Int64) (coverage.Run, error) {
	rec := coverage.NewRecorder(worth, c.Points)
	opt := c.runOptions(web, dir)
	opt.Output = func(u uint32, bytes int64, end float64) {
		rec.Output(u, bytes, end)
		done.Add(1)
	}
	began := time.Now()
	res, err := strategy.Run(ctx, s, opt)
	if err != nil {
		return coverage.Run{}, err
	}
	rec.Finish()
	wall := time.Since(began).Seconds()
	sum, err := rec.Summary(ctx, c.Subgraph)
	name := strings.TrimSuffix(filepath.Base(s.File), filepath.Ext(s.File))
	return coverage.Run{Name: name, Script: s.File, Result: res, WallSeconds: wall, Summary: sum, Points: rec.Points}, err
}

// showPages shows how many pages were output until the returned function is
// called.
func showPages(g *command.Globals, done *atomic.Int64, total int64) func() {
	line := progress.New(g.Stderr)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				line.Done(fmt.Sprintf("%d pages", done.Load()))
				return
			case <-tick.C:
				line.Update(min(done.Load(), total), total, "pages of all strategies")
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
