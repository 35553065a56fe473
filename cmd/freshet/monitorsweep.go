package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/freshet/freshet/lab/monitor/sweep"
	"github.com/freshet/freshet/progress"
)

type monitorSweepCmd struct {
	Plan    string `arg:"" help:"Plan in YAML; see plans/classic.yaml." placeholder:"PLAN.yaml"`
	Out     string `help:"Directory of the results." required:"" type:"path" placeholder:"DIR"`
	Cell    string `help:"Only part i of n, for batch systems: the parts may share the directory." placeholder:"i/n"`
	Workers int    `help:"Simulations at a time (default: one a core)."`
}

// Run sweeps. An interrupt keeps the runs that have ended.
func (c *monitorSweepCmd) Run(ctx context.Context, g *globals) error {
	text, err := os.ReadFile(c.Plan)
	if err != nil {
		return usageError{err}
	}
	plan, err := sweep.ParsePlan(c.Plan, text)
	if err != nil {
		return usageError{err}
	}
	cell, err := sweep.ParseCell(c.Cell)
	if err != nil {
		return usageError{err}
	}
	line := progress.New(g.stderr)
	if g.Quiet {
		line = progress.New(nil)
	}
	sum, err := plan.Do(ctx, sweep.Config{
		Text: text, Dir: c.Out, Cell: cell, Workers: c.Workers, Progress: line.Update,
		Warn: func(s string) { fmt.Fprintln(g.stderr, "freshet:", s) },
	})
	switch {
	case errors.Is(err, context.Canceled):
		line.Done("stopped")
		return fmt.Errorf("stopped after %d of %d runs; the same command goes on from there", sum.Kept+sum.Ran, sum.Runs)
	case errors.Is(err, sweep.ErrInput):
		return usageError{err}
	case err != nil:
		return err
	}
	line.Done(fmt.Sprintf("%d runs, %d of them now", sum.Runs, sum.Ran))
	if g.JSON {
		return g.printJSON(sum)
	}
	fmt.Fprintf(g.stdout, "%d runs: %d now, %d were there; %d events in %.1f s\n", sum.Runs, sum.Ran, sum.Kept, sum.Events, sum.Seconds)
	return nil
}
