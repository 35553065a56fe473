package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/control"
)

type controlCmd struct {
	Solve    controlSolveCmd    `cmd:"" help:"Measures of a policy."`
	Simulate controlSimulateCmd `cmd:"" help:"Measures of a policy by simulation, with confidence intervals."`
	Optimize controlOptimizeCmd `cmd:"" help:"The best thresholds, of every subset of the modes, and the best policy of any form."`
	Report   controlReportCmd   `cmd:"" help:"A report with plots: what control is worth and what its thresholds depend on."`
	Tune     controlTuneCmd     `cmd:"" help:"Thresholds for a running serve, from the log of its indexer."`
	Fit      controlFitCmd      `cmd:"" help:"Arrivals and service of a model from logs."`
}

// readModel reads MODEL.json; what is wrong in it is wrong input.
func readModel(g *command.Globals, name string) (*control.Model, error) {
	in := g.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, command.UsageError{Err: err}
		}
		defer f.Close()
		in = f
	}
	m, err := control.Read(in)
	if err != nil {
		return nil, command.Usagef("%s: %w", name, err)
	}
	return m, nil
}

// modelError names the model of an error. What the model or the flags are to blame for
// is wrong input.
func modelError(name string, err error) error {
	err = fmt.Errorf("%s: %w", name, err)
	if errors.As(err, new(control.InputError)) {
		return command.UsageError{Err: err}
	}
	return err
}

// methodFlags choose how a policy is solved.
type methodFlags struct {
	Method    string  `help:"auto, exact, iterative or lumped." enum:"auto,exact,iterative,lumped" default:"auto"`
	MaxStates float64 `help:"States up to which the iterative method is taken, up to 60 bytes each." default:"8e6"`
}

func (f methodFlags) controlOptions() control.Options {
	return control.Options{Method: f.Method, MaxStates: f.MaxStates}
}

type controlSolveCmd struct {
	methodFlags
	Quantiles []float64 `help:"Also give standard deviation and these quantiles of the sojourn of served and of stale pages, such as 0.5,0.9,0.99." placeholder:"P,..."`

	Model string `arg:"" name:"model.json" help:"The model with policy or thresholds; - is standard input."`
}

// Help names the document.
func (controlSolveCmd) Help() string {
	return "The formats and formulas are in docs/robot-control.md. Modes count from 1: in mode r, r robots are active."
}

// Run solves.
func (c *controlSolveCmd) Run(ctx context.Context, g *command.Globals) error {
	m, err := readModel(g, c.Model)
	if err != nil {
		return err
	}
	if m.Policy() == nil {
		return command.Usagef("%s: policy: missing; give policy or thresholds", c.Model)
	}
	for _, q := range c.Quantiles {
		if !(q > 0 && q < 1) {
			return command.Usagef("--quantiles %g: want probabilities between 0 and 1", q)
		}
	}
	out := solved{}
	out.Result, err = m.SolveBy(ctx, m.Policy(), c.controlOptions())
	if err == nil && c.Quantiles != nil {
		out.Times, err = m.Sojourn(ctx, m.Policy(), c.Quantiles...)
	}
	if err != nil {
		return modelError(c.Model, err)
	}
	if g.JSON {
		return g.PrintJSON(out)
	}
	printMeasures(g, m, out.Result)
	if t := out.Times; t != nil {
		printTimes(g, "served", t.Served)
		if t.Stale != nil {
			printTimes(g, "stale", *t.Stale)
		}
	}
	return nil
}

// solved is the JSON of control solve.
type solved struct {
	control.Result
	Times *control.Sojourn `json:"sojourn,omitempty"`
}

// printTimes prints the sojourn of pages of one fate.
func printTimes(g *command.Globals, fate string, t control.Times) {
	fmt.Fprintf(g.Stdout, "sojourn of %s pages: mean %.6g, standard deviation %.6g", fate, t.Mean, t.Deviation)
	for _, q := range slices.Sorted(maps.Keys(t.Quantiles)) {
		fmt.Fprintf(g.Stdout, ", quantile %s %.6g", q, t.Quantiles[q])
	}
	fmt.Fprintln(g.Stdout)
}

// printMeasures prints a result for the eye.
func printMeasures(g *command.Globals, m *control.Model, r control.Result) {
	fmt.Fprintf(g.Stdout, "policy %s\n", formatPolicyRuns(m.Policy()))
	for _, l := range []struct {
		name string
		v    float64
	}{
		{"arrival rate", r.ArrivalRate},
		{"lost", r.Loss},
		{"stale", r.Obsolete},
		{"served", r.Success},
		{"starvation", r.Starvation},
		{"mean sojourn", r.Sojourn},
		{"  of served pages", r.SojournServed},
		{"  of stale pages", r.SojournObsolete},
		{"mean robots", r.MeanRobots},
		{"cost", r.Cost},
	} {
		fmt.Fprintf(g.Stdout, "%-18s %.6g\n", l.name, l.v)
	}
	fmt.Fprintf(g.Stdout, "%s, %.6g states, error %.2g\n", r.Method, r.States, r.Error)
}

// formatPolicyRuns writes a policy by runs of equal modes: 0-3: 4, 4-9: 1.
func formatPolicyRuns(policy []int) string {
	var parts []string
	for i := 0; i < len(policy); {
		j := i
		for j+1 < len(policy) && policy[j+1] == policy[i] {
			j++
		}
		run := fmt.Sprint(i)
		if j > i {
			run = fmt.Sprintf("%d-%d", i, j)
		}
		parts = append(parts, fmt.Sprintf("%s: %d", run, policy[i]))
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

type controlOptimizeCmd struct {
	methodFlags
	PhaseAware bool     `help:"Also find the best policy that sees the phases of arrival, service and staleness."`
	Bound      []string `help:"Keep MEASURE=VALUE, such as p_starvation=0.01: at most that; may be repeated. Measures: ${bound_measures}." placeholder:"MEASURE=VALUE"`
	Model      string   `arg:"" name:"model.json" help:"The model; a policy in it is not read. - is standard input."`
}

// Help says what is compared.
func (controlOptimizeCmd) Help() string {
	return "All threshold sets are looked at where that is feasible; search says whether they were. unrestricted is the best policy that depends on the number of pages only, any mode at any level; its search says whether all policies were evaluated (up to 1,000,000) or a heuristic found it, with a lower_bound where one can be computed; its gap says by which part of its cost the best thresholds are dearer. With bounds the cheapest thresholds that keep them are sought, and the multipliers: what a unit of each measure would have to cost for the bound to be kept by itself."
}

// optimum is the JSON of control optimize.
type optimum struct {
	*control.Optimum
	Bounded *control.Bounded `json:"bounded,omitempty"`
}

// Run optimises.
func (c *controlOptimizeCmd) Run(ctx context.Context, g *command.Globals) error {
	bounds, err := parseBounds(c.Bound)
	if err != nil {
		return err
	}
	m, err := readModel(g, c.Model)
	if err != nil {
		return err
	}
	o := optimum{}
	if o.Optimum, err = m.Optimize(ctx, c.controlOptions()); err != nil {
		return modelError(c.Model, err)
	}
	if c.PhaseAware {
		if o.PhaseAware, err = m.PhaseAware(ctx, o.Best.Policy, o.Unrestricted.Policy); err != nil {
			return modelError(c.Model+": phase-aware", err)
		}
		o.PhaseAware.Gap = control.Gap(o.Best.Cost, o.PhaseAware.Cost)
	}
	if bounds != nil {
		if o.Bounded, err = m.OptimizeBounded(ctx, bounds); err != nil {
			return modelError(c.Model, err)
		}
	}
	if g.JSON {
		return g.PrintJSON(o)
	}
	printOptimum(g, o)
	return nil
}

// parseBounds reads MEASURE=VALUE.
func parseBounds(texts []string) ([]control.Bound, error) {
	var out []control.Bound
	for _, t := range texts {
		name, value, ok := strings.Cut(t, "=")
		v, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil || !(v >= 0) {
			return nil, command.Usagef("--bound %s: want MEASURE=VALUE with a number from 0", t)
		}
		if !slices.Contains(control.BoundMeasures(), name) {
			return nil, command.Usagef("--bound %s: no measure %q; there are %s", t, name, strings.Join(control.BoundMeasures(), ", "))
		}
		out = append(out, control.Bound{Measure: name, AtMost: v})
	}
	return out, nil
}

// printOptimum prints for the eye.
func printOptimum(g *command.Globals, o optimum) {
	w := g.Stdout
	fmt.Fprintf(w, "%d threshold sets looked at (%s)\nbest: thresholds %v, policy %s, cost %.6g\n", o.Sets, o.Search, o.Best.Thresholds, formatPolicyRuns(o.Best.Policy), o.Best.Cost)
	for _, f := range o.Fixed {
		fmt.Fprintf(w, "always mode %d: cost %.6g (%+.2f %%)\n", f.Mode, f.Cost, 100*control.Gap(f.Cost, o.Best.Cost))
	}
	for _, b := range o.ByModes {
		if len(b.Modes) > 1 {
			fmt.Fprintf(w, "modes %v: thresholds %v, cost %.6g (%+.2f %%)\n", b.Modes, b.Thresholds, b.Cost, 100*control.Gap(b.Cost, o.Best.Cost))
		}
	}
	u := o.Unrestricted
	fmt.Fprintf(w, "any mode at any level (%s): %s, cost %.6g, thresholds are %.3f %% dearer\n", u.Search, formatPolicyRuns(u.Policy), u.Cost, 100*u.Gap)
	if u.LowerBound != nil {
		fmt.Fprintf(w, "no policy by levels costs less than %.6g\n", *u.LowerBound)
	}
	if p := o.PhaseAware; p != nil {
		fmt.Fprintf(w, "seeing the phases: cost %.6g, thresholds are %.3f %% dearer\n", p.Cost, 100*p.Gap)
	}
	if b := o.Bounded; b != nil {
		fmt.Fprintf(w, "within the bounds (%d of %d sets): thresholds %v, cost %.6g, %.3f %% above the lower bound %.6g\n", b.Feasible, b.Sets, b.Best.Thresholds, b.Best.Cost, 100*control.Gap(b.Best.Cost, b.LowerBound), b.LowerBound)
		for k, x := range b.Bounds {
			fmt.Fprintf(w, "%s at most %.6g: multiplier %.6g\n", x.Measure, x.AtMost, b.Multipliers[k])
		}
	}
}
