package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/monitor/sweep"
)

type monitorSweepCmd struct {
	Plan    string `arg:"" help:"Plan in YAML; see plans/classic.yaml." placeholder:"PLAN.yaml"`
	Out     string `help:"Directory of the results." required:"" type:"path" placeholder:"DIR"`
	Cell    string `help:"Only part i of n, for batch systems: the parts may share the directory." placeholder:"i/n"`
	Workers int    `help:"Simulations at a time (default: one a core)."`
	Watch   string `help:"Show progress in a browser at this loopback address, where the sweep can also be paused and stopped; the console of freshet serve does so for the directories of lab.sweeps." placeholder:"127.0.0.1:PORT"`
}

// Run sweeps. An interrupt keeps the runs that have ended.
func (c *monitorSweepCmd) Run(ctx context.Context, g *command.Globals) error {
	text, err := os.ReadFile(c.Plan)
	if err != nil {
		return command.UsageError{Err: err}
	}
	plan, err := sweep.ParsePlan(c.Plan, text)
	if err != nil {
		return command.UsageError{Err: err}
	}
	cell, err := sweep.ParseCell(c.Cell)
	if err != nil {
		return command.UsageError{Err: err}
	}
	line := progress.New(g.Stderr)
	if g.Quiet {
		line = progress.New(nil)
	}
	watch := &sweep.Watch{}
	if c.Watch != "" {
		end, err := serveWatch(c.Watch, watch)
		if err != nil {
			return command.Usagef("monitor sweep: --watch: %w", err)
		}
		defer end()
	}
	sum, err := plan.Do(ctx, sweep.Config{
		Text: text, Dir: c.Out, Base: filepath.Dir(c.Plan), Cell: cell, Workers: c.Workers, Watch: watch, Progress: line.Update,
		Warn: func(s string) { fmt.Fprintln(g.Stderr, "freshet:", s) },
	})
	switch {
	case errors.Is(err, context.Canceled):
		line.Done("stopped")
		if watch.Stopped() {
			return fmt.Errorf("stopped from outside after %d of %d runs; the same command goes on from there", sum.Kept+sum.Ran, sum.Runs)
		}
		return fmt.Errorf("stopped after %d of %d runs; the same command goes on from there", sum.Kept+sum.Ran, sum.Runs)
	case errors.Is(err, sweep.ErrInput), errors.Is(err, field.ErrInput), errors.Is(err, monitor.ErrInput), errors.Is(err, os.ErrNotExist):
		return command.UsageError{Err: err}
	case err != nil:
		return err
	}
	line.Done(fmt.Sprintf("%d runs, %d of them now", sum.Runs, sum.Ran))
	if g.JSON {
		return g.PrintJSON(sum)
	}
	fmt.Fprintf(g.Stdout, "%d runs: %d now, %d were there; %d events in %.1f s\n", sum.Runs, sum.Ran, sum.Kept, sum.Events, sum.Seconds)
	return nil
}

// serveWatch shows a sweep until the returned function is called.
func serveWatch(address string, w *sweep.Watch) (end func(), err error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || (host != "localhost" && (ip == nil || !ip.IsLoopback())) {
		return nil, fmt.Errorf("%q is no loopback address with a port, such as 127.0.0.1:8090", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	return func() { _ = server.Close(); <-done }, nil
}

type monitorReportCmd struct {
	Dir string `arg:"" help:"Directory of a sweep's results; the report is written there." type:"path"`
}

// Run reports.
func (c *monitorReportCmd) Run(ctx context.Context, g *command.Globals) error {
	r, err := sweep.Read(ctx, c.Dir)
	if errors.Is(err, sweep.ErrInput) {
		return command.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	if err := r.Write(c.Dir); err != nil {
		return err
	}
	if r.Missing > 0 {
		fmt.Fprintf(g.Stderr, "freshet: %d of %d runs are missing; the report is of the others\n", r.Missing, r.Runs)
	}
	if g.JSON {
		return g.PrintJSON(r)
	}
	fmt.Fprintf(g.Stdout, "%-28s %10s %14s %13s %9s %9s %5s\n", "variant", "fresh, %", "volume, GB", "undominated", "freshest", "lightest", "ties")
	for _, s := range r.Variants {
		fmt.Fprintf(g.Stdout, "%-28s %10.3f %14.3f %13d %9d %9d %5d\n", s.Variant, s.Freshness, s.Bytes/1e9, s.Front, s.Freshest, s.Lightest, s.Ties)
	}
	fmt.Fprintf(g.Stdout, "%d of %d runs; %s\n", r.Read, r.Runs, filepath.Join(c.Dir, "report.html"))
	return nil
}
