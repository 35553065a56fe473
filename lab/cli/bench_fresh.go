package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	bench "github.com/freshet/freshet/lab/bench/crawl"
	"github.com/freshet/freshet/lab/bench/fresh"
)

// benchFreshCmd measures how fresh the robot keeps a site under each policy.
type benchFreshCmd struct {
	Pages    int           `help:"Pages of the site." default:"200"`
	Hosts    int           `help:"Hosts of the site (127.0.0.1, 127.0.0.2 ...)." default:"10"`
	Slowest  float64       `help:"Changes a second of the slowest page; the fastest changes 10,000 times as often." default:"0.002"`
	Budget   float64       `help:"Requests a second of each policy." default:"40"`
	Warm     time.Duration `help:"Time in which the robot learns." default:"40s"`
	Measure  time.Duration `help:"Time in which freshness is measured." default:"60s"`
	Seed     uint64        `help:"Of the site's history." default:"1"`
	Known    bool          `help:"The robot is told the change rates: what learning costs is left out."`
	Nodes    int           `help:"Processes that keep the site fresh together, with one budget; more than one need --database." default:"1"`
	Database string        `help:"A PostgreSQL server on which databases may be made: each policy gets an empty one, which is dropped afterwards." placeholder:"postgres://..." env:"FRESHET_BENCH_DATABASE"`
	Policies []string      `help:"Which policies take their turns (default: all)."`
}

// Run lets the policies take their turns.
func (c *benchFreshCmd) Run(ctx context.Context, g *command.Globals) error {
	names := c.Policies
	if len(names) == 0 {
		names = fresh.Names()
	}
	for _, n := range names {
		if !slices.Contains(fresh.Names(), n) {
			return command.Usagef("bench fresh: unknown policy %q; there are %v", n, fresh.Names())
		}
	}
	var database func(context.Context) (string, func() error, error)
	if c.Database != "" {
		database = func(ctx context.Context) (string, func() error, error) {
			d, err := bench.MakeDatabase(ctx, c.Database)
			if err != nil {
				return "", nil, err
			}
			return d.Address, d.Drop, nil
		}
	}
	e, err := fresh.Open(fresh.Config{
		Nodes: c.Nodes, Database: database,
		Pages: c.Pages, Hosts: c.Hosts, Slowest: c.Slowest, Budget: c.Budget, Warm: c.Warm, Measure: c.Measure, Seed: c.Seed, Known: c.Known,
		Log: slog.New(slog.NewTextHandler(g.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return command.Usagef("bench fresh: %w", err)
	}
	defer e.Close()
	var bar *progress.Line
	if !g.Quiet {
		bar = progress.New(g.Stderr)
		defer bar.Done("")
	}
	var rows []fresh.Row
	for i, n := range names {
		if bar != nil {
			bar.Update(int64(i), int64(len(names)), n)
		}
		row, err := e.Run(ctx, n)
		if err != nil {
			return fmt.Errorf("bench fresh: %w", err)
		}
		rows = append(rows, row)
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"pages": c.Pages, "budget": c.Budget, "nodes": c.Nodes, "slowest": c.Slowest, "warm": c.Warm.Seconds(), "measured": c.Measure.Seconds(), "rows": rows})
	}
	w := tabwriter.NewWriter(g.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tfreshness\tsimulated\ttheory\tage, s\tsimulated\ttheory\trequests/s\tsays of itself\tage, s\tin quarters\t")
	for _, r := range rows {
		simulated, simulatedAge := formatOutcome(r.Simulated)
		theory, theoryAge := formatOutcome(r.Theory)
		fmt.Fprintf(w, "%s\t%.3f\t%s\t%s\t%.1f\t%s\t%s\t%.1f\t%.3f\t%.1f\t%.3f\t\n", r.Policy, r.Freshness, simulated, theory, r.Age, simulatedAge, theoryAge, r.Requests, r.Estimated, r.EstimatedAge, r.Parts)
	}
	return w.Flush()
}

// formatOutcome is text of what may not be known.
func formatOutcome(o *fresh.Outcome) (freshness, age string) {
	switch {
	case o == nil:
		return "-", "-"
	case o.Age == nil:
		return fmt.Sprintf("%.3f", o.Freshness), "no bound"
	}
	return fmt.Sprintf("%.3f", o.Freshness), fmt.Sprintf("%.1f", *o.Age)
}
