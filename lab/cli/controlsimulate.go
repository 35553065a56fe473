package cli

import (
	"context"
	"fmt"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/control"
)

type controlSimulateCmd struct {
	Time         float64 `help:"Time of each replication, in the unit of the rates."`
	Pages        int     `help:"Pages offered in each replication, instead of a time." placeholder:"100000"`
	Seed         uint64  `help:"Seed of the random numbers: equal seeds give equal results." default:"1"`
	Replications int     `help:"Independent replications." default:"20"`
	WarmUp       float64 `help:"Part of a replication that is run before and not counted." default:"0.1"`
	Model        string  `arg:"" name:"model.json" help:"The model with policy or thresholds; - is standard input."`
}

// Help says what the figures are.
func (controlSimulateCmd) Help() string {
	return "The same measures as control solve; half_width has the half widths of their confidence intervals of 95 % over the replications, error the widest of them."
}

// Run simulates.
func (c *controlSimulateCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.WarmUp < 0 || c.Replications < 2 || c.Time < 0 || c.Pages < 0 || c.Time > 0 && c.Pages > 0 {
		return command.Usagef("control simulate: want 2 replications at least, a positive --time or --pages, a --warm-up from 0")
	}
	m, err := readModel(g, c.Model)
	if err != nil {
		return err
	}
	if m.Policy() == nil {
		return command.Usagef("%s: policy: missing; give policy or thresholds", c.Model)
	}
	if c.Time == 0 && c.Pages == 0 {
		c.Pages = 100_000
	}
	r, err := m.Simulate(ctx, m.Policy(), control.Simulation{Seed: c.Seed, Replications: c.Replications, Time: c.Time, Pages: c.Pages, WarmUp: c.WarmUp})
	if err != nil {
		return modelError(c.Model, err)
	}
	if g.JSON {
		return g.PrintJSON(r)
	}
	fmt.Fprintf(g.Stdout, "policy %s\n", formatPolicyRuns(m.Policy()))
	for _, l := range []struct {
		name    string
		v, half float64
	}{
		{"arrival rate", r.ArrivalRate, r.HalfWidth.ArrivalRate},
		{"lost", r.Loss, r.HalfWidth.Loss},
		{"stale", r.Obsolete, r.HalfWidth.Obsolete},
		{"served", r.Success, r.HalfWidth.Success},
		{"starvation", r.Starvation, r.HalfWidth.Starvation},
		{"mean sojourn", r.Sojourn, r.HalfWidth.Sojourn},
		{"  of served pages", r.SojournServed, r.HalfWidth.SojournServed},
		{"  of stale pages", r.SojournObsolete, r.HalfWidth.SojournObsolete},
		{"mean robots", r.MeanRobots, r.HalfWidth.MeanRobots},
		{"cost", r.Cost, r.HalfWidth.Cost},
	} {
		fmt.Fprintf(g.Stdout, "%-18s %.6g ± %.2g\n", l.name, l.v, l.half)
	}
	fmt.Fprintf(g.Stdout, "simulation: %d replications, %d pages, time %.6g, seed %d\n", r.Replications, r.Pages, r.Time, r.Seed)
	return nil
}
