package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/monitor/emulate"
)

type monitorEmulateCmd struct {
	fieldFlags `kong:"set='pages=200',set='units=5000',set='changes=5',set='requests=20'"`
	Variant    string `help:"Way of watching: plain:K, conditional:K, sensor, or plan:POLICY:R/s by the whole robot (R requests a second of the model)." required:""`
	measureFlags
	Speed float64 `help:"Seconds of the model in one of the clock." default:"100"`
	Truth string  `help:"Also keep the log of all that the robot and the visitors were told (JSON lines)." type:"path" placeholder:"FILE"`
}

// Run emulates and simulates.
func (c *monitorEmulateCmd) Run(ctx context.Context, g *command.Globals) error {
	if _, err := monitor.Parse(c.Variant); err != nil {
		return command.UsageError{Err: err}
	}
	if !(c.Speed > 0) || math.IsInf(c.Speed, 0) {
		return command.Usagef("monitor emulate: --speed %g: a positive number", c.Speed)
	}
	f, err := c.loadOrMakeField(c.Field)
	if err != nil {
		return err
	}
	line := progress.New(g.Stderr)
	if g.Quiet {
		line = progress.New(nil)
	}
	var res *emulate.Result
	err = c.withEventLog(func(l monitor.Log) (err error) {
		res, err = emulate.Run(ctx, emulate.Config{
			Field: f, Variant: c.Variant, Unit: time.Duration(field.Unit / c.Speed * float64(time.Second)), Warmup: c.Warmup,
			Seed: c.Seed, Number: c.Number, Replication: c.Replication, Truth: c.Truth, Log: l,
			Progress: func(done, total time.Duration) { line.Update(int64(done), int64(total), "emulate "+c.Variant) },
		})
		return err
	})
	if errors.Is(err, monitor.ErrInput) || errors.Is(err, field.ErrInput) {
		return command.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	line.Done(fmt.Sprintf("%d answers", res.Answers))
	if late := max(res.Late, res.VisitsLate); late > 1 && !g.Quiet {
		fmt.Fprintf(g.Stderr, "answers or visits came %.1f units late on average: the machine cannot follow; lower --speed\n", late)
	}
	if res.Used > 0 && res.Used < .98 && !g.Quiet {
		fmt.Fprintf(g.Stderr, "the robot made %.0f %% of the requests of its budget, and is compared with a simulation of so many: the machine cannot follow; lower --speed\n", 100*res.Used)
	}
	if err := c.writeSeriesFile(f.Pages(), res.Result); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(res)
	}
	return c.printMeasures(g, res)
}

// printMeasures writes the measures side by side.
func (c *monitorEmulateCmd) printMeasures(g *command.Globals, r *emulate.Result) error {
	fmt.Fprintf(g.Stdout, "%-22s %14s %14s\n", c.Variant, "emulated", "simulated")
	s := r.Simulated
	for _, l := range []struct {
		name     string
		got, sim float64
		digits   int
	}{
		{"freshness mean, %", r.FreshnessMean, s.FreshnessMean, 3},
		{"freshness end, %", r.FreshnessEnd, s.FreshnessEnd, 3},
		{"mean age, units", r.AgeMean, s.AgeMean, 3},
		{"delay mean, units", r.Delay.Mean, s.Delay.Mean, 3},
		{"delay 90 %, units", r.Delay.P90, s.Delay.P90, 3},
		{"downloads", float64(r.Downloads), float64(s.Downloads), 0},
		{"probes or alerts", float64(r.Probes), float64(s.Probes), 0},
		{"bytes", float64(r.Bytes), float64(s.Bytes), 0},
		{"real changes", float64(r.Real), float64(s.Real), 0},
		{"detected", float64(r.Detected), float64(s.Detected), 0},
		{"overwritten", float64(r.Overwritten), float64(s.Overwritten), 0},
	} {
		fmt.Fprintf(g.Stdout, "%-22s %14.*f %14.*f\n", l.name, l.digits, l.got, l.digits, l.sim)
	}
	if r.Used > 0 {
		_, err := fmt.Fprintf(g.Stdout, "difference %+.3f points; %d answers by HTTP to the whole robot, %.1f %% of its budget\n", r.Difference, r.Answers, 100*r.Used)
		return err
	}
	_, err := fmt.Fprintf(g.Stdout, "difference %+.3f points; %d answers by HTTP, %d visits, %d requests failed; answers %.2f units late, at most %.1f, visits %.2f\n",
		r.Difference, r.Answers, r.Visits, r.Failed, r.Late, r.LateMax, r.VisitsLate)
	return err
}
