package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/lab/control/fit"
	"github.com/freshet/freshet/lab/report"
)

// controlFitCmd fits the processes of a model to logs.
type controlFitCmd struct {
	Log string `arg:"" optional:"" name:"log" help:"CSV or JSON lines; column time (and batch): arrivals; column seconds or bytes: service; - is standard input."`

	As            string    `help:"Which process: arrivals or service; auto tells by the columns." enum:"auto,arrivals,service" default:"auto"`
	Column        string    `help:"Column to read instead." placeholder:"NAME"`
	Moments       []float64 `help:"Fit a service law to one to three moments about zero instead of to a log." placeholder:"M1,M2,M3"`
	Lags          []float64 `help:"With --moments: fit arrivals of these correlations at lags 1, 2, ... instead." name:"correlations" placeholder:"R1,R2,..."`
	Mean          float64   `help:"Scale service to this mean."`
	Rate          float64   `help:"Bytes that the indexer handles a second: service = bytes / rate."`
	BatchGap      float64   `help:"Arrivals: epochs at most so many seconds after the one before belong to its batch." placeholder:"S"`
	Pause         float64   `help:"Arrivals: longer gaps are pauses and left out." placeholder:"S"`
	PauseQuantile float64   `help:"Arrivals: gaps beyond this quantile are pauses and left out." placeholder:"Q"`
	Sort          bool      `help:"Put arrivals into order instead of refusing a log out of order."`
	MaxBatch      int       `help:"Largest batch; larger ones count as it." default:"50"`
	Regimes       int       `help:"Most regimes of arrivals." default:"6"`

	Method   string `help:"Service: by moments, em (likelihood), or auto." enum:"auto,moments,em" default:"auto"`
	MaxOrder int    `help:"Most phases of a fit by likelihood." default:"30"`
	MaxRows  int    `help:"Most rows read." default:"5000000"`
	Report   string `help:"Write figures and plots of log and fit as one HTML file." type:"path" placeholder:"FILE"`
}

// Help names the document.
func (controlFitCmd) Help() string {
	return "Fits the arrivals or the service of a model to a log and says how well. Formulas and examples are in docs/robot-control-fitting.md."
}

// mostShown is the order up to which matrices are printed for the eye.
const mostShown = 6

// Columns that a log is known by.
var (
	timeColumns    = []string{"time"} // of arrivals
	serviceColumns = []string{"seconds", "bytes"}
)

// Run reads the log and fits.
func (c *controlFitCmd) Run(ctx context.Context, g *command.Globals) error {
	switch {
	case c.Lags != nil && c.Moments == nil:
		return command.Usagef("--correlations goes with --moments")
	case c.Moments != nil && c.Log != "":
		return command.Usagef("give a log or --moments, not both")
	case c.Moments == nil && c.Log == "":
		return command.Usagef("give a log or --moments m1,m2,m3")
	case c.Mean < 0 || c.Rate < 0:
		return command.Usagef("--mean and --rate are positive")
	case c.Mean > 0 && c.Rate > 0:
		return command.Usagef("give --mean or --rate, not both")
	case c.MaxOrder < 1 || c.MaxOrder > fit.MaxOrder:
		return command.Usagef("--max-order is from 1 to %d", fit.MaxOrder)
	case c.MaxRows < 1:
		return command.Usagef("--max-rows is at least 1")
	case c.Moments != nil && c.Report != "":
		return command.Usagef("--report draws the curves of a log: there is none with --moments")
	case c.Lags != nil:
		return c.bySummary(g)
	case c.Moments != nil:
		return c.byMoments(g)
	}
	t, err := c.readLogTable(g)
	if err != nil {
		return err
	}
	if c.As == "arrivals" || c.As == "auto" && t.Column == timeColumns[0] {
		return c.fitArrivalColumn(ctx, g, t)
	}
	return c.fitServiceColumn(ctx, g, t)
}

// readLogTable reads the column that decides on what is fitted.
func (c *controlFitCmd) readLogTable(g *command.Globals) (*fit.Table, error) {
	in := g.Stdin
	if c.Log != "-" {
		f, err := os.Open(c.Log)
		if err != nil {
			return nil, command.UsageError{Err: err}
		}
		defer f.Close()
		in = f
	}
	t, err := fit.ReadTable(in, fit.Columns{Value: c.columnNames(), Count: "batch", Most: c.MaxRows})
	if err != nil {
		return nil, command.Usagef("%s: %w", c.Log, err)
	}
	return t, nil
}

// columnNames are the names to look for, the first found is taken.
func (c *controlFitCmd) columnNames() []string {
	switch {
	case c.Column != "":
		return []string{strings.ToLower(c.Column)}
	case c.As == "arrivals":
		return timeColumns
	case c.As == "service":
		return serviceColumns
	}
	return slices.Concat(timeColumns, serviceColumns)
}

// fittedService is what a fit of service prints.
type fittedService struct {
	fit.PH
	Method   string         `json:"method"`
	Words    []string       `json:"words,omitempty"`
	Goodness fit.Goodness   `json:"goodness"`
	Tried    []triedService `json:"tried,omitempty"`
}

type triedService struct {
	Method   string       `json:"method"`
	Order    int          `json:"order"`
	Goodness fit.Goodness `json:"goodness"`
}

// byMoments fits to given moments.
func (c *controlFitCmd) byMoments(g *command.Globals) error {
	m := append([]float64(nil), c.Moments...)
	if _, err := fit.Moments(m...); err != nil {
		return command.Usagef("--moments: %w", err)
	}
	factor := 1.0
	switch {
	case c.Mean > 0:
		factor = c.Mean / m[0]
	case c.Rate > 0:
		factor = 1 / c.Rate
	}
	power := 1.0
	for k := range m {
		power *= factor
		m[k] *= power
	}
	l, err := fit.Moments(m...)
	if err != nil {
		return command.Usagef("--moments: %w", err)
	}
	out := fittedService{PH: l.PH, Method: l.Method, Words: l.Notes}
	got := l.Moments(len(m))
	for k := range m {
		out.Goodness.Moments = append(out.Goodness.Moments, fit.Pair{Sample: m[k], Fit: got[k]})
	}
	if len(m) > 1 {
		out.Goodness.SCV = &fit.Pair{Sample: m[1]/(m[0]*m[0]) - 1, Fit: l.SCV()}
	}
	return printService(g, &out)
}

// fittedArrivals is what a fit of arrivals prints.
type fittedArrivals struct {
	fit.BMAP
	Method   string       `json:"method"`
	Order    int          `json:"order"`
	Words    []string     `json:"words,omitempty"`
	Goodness fit.Goodness `json:"goodness"`

	Batches []fit.Pair      `json:"batches,omitempty"` // shares of batches of 1, 2, ...
	Rate    float64         `json:"arrival_rate"`
	Log     *arrivalLog     `json:"log,omitempty"`
	Tried   []triedArrivals `json:"tried,omitempty"`
}

// arrivalLog says what was read.
type arrivalLog struct {
	Epochs  int     `json:"epochs"`
	Batches int     `json:"batches"`
	Pauses  int     `json:"pauses"`
	Paused  float64 `json:"paused"`
}

type triedArrivals struct {
	Method   string       `json:"method"`
	Order    int          `json:"order"`
	LagError float64      `json:"lag_error"`
	Chosen   bool         `json:"chosen"`
	Goodness fit.Goodness `json:"goodness"`
}

// fitArrivalColumn fits to a column of epochs.
func (c *controlFitCmd) fitArrivalColumn(ctx context.Context, g *command.Globals, t *fit.Table) error {
	line := progress.New(g.Stderr)
	if g.Quiet {
		line = progress.New(nil)
	}
	f, err := fit.FitArrivals(ctx, t, fit.ArrivalOptions{
		Cleaning: fit.Cleaning{Batch: c.BatchGap, Pause: c.Pause, PauseQuantile: c.PauseQuantile, Sort: c.Sort},
		Regimes:  c.Regimes, Order: c.MaxOrder, MaxBatch: c.MaxBatch,
		Progress: func(what string) { line.Update(0, 0, "fit "+what) },
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return command.Usagef("%s: %w", c.Log, err)
	}
	line.Done(fmt.Sprintf("%d processes tried", len(f.Tried)))
	if c.Report != "" {
		page, err := f.Report()
		if err != nil {
			return err
		}
		if err := writeReportFile(c.Report, page); err != nil {
			return err
		}
	}
	rate, err := f.Rate()
	if err != nil {
		return err
	}
	out := fittedArrivals{
		BMAP: f.BMAP, Method: f.Method, Order: f.Order(), Words: f.Words, Goodness: f.Goodness, Rate: rate, Batches: f.Batches,
		Log: &arrivalLog{f.Gaps.Epochs, len(f.Gaps.All), f.Gaps.Pauses, f.Gaps.Paused},
	}
	if c.As == "auto" {
		for _, name := range serviceColumns {
			if slices.Contains(t.Head, name) {
				out.Words = append(out.Words, fmt.Sprintf("The log has %s too: --as service fits them.", name))
				break
			}
		}
	}
	if t.Empty > 0 {
		out.Words = append(out.Words, fmt.Sprintf("Left out: rows without %s, %d of them.", t.Column, t.Empty))
	}
	for _, v := range f.Tried {
		out.Tried = append(out.Tried, triedArrivals{v.Method, v.Process.Order(), v.LagError, v.Chosen, v.Goodness})
	}
	return printArrivals(g, &out)
}

// bySummary fits arrivals to given moments and correlations.
func (c *controlFitCmd) bySummary(g *command.Globals) error {
	s := fit.Summary{Moments: c.Moments, Lags: c.Lags}
	a, err := fit.FitSummary(s, c.MaxOrder)
	if err != nil {
		return command.Usagef("--moments, --correlations: %w", err)
	}
	out := fittedArrivals{BMAP: a.BMAP, Method: a.Method, Order: a.Order(), Words: a.Words}
	if out.Goodness, err = s.Goodness(&a.BMAP); err != nil {
		return err
	}
	if out.Rate, err = a.Rate(); err != nil {
		return err
	}
	return printArrivals(g, &out)
}

// printArrivals prints a fitted process.
func printArrivals(g *command.Globals, a *fittedArrivals) error {
	if g.JSON {
		return g.PrintJSON(a)
	}
	fmt.Fprintf(g.Stdout, "%s, order %d\n", a.Method, a.Order)
	for _, w := range a.Words {
		fmt.Fprintln(g.Stdout, w)
	}
	if a.Order <= mostShown {
		for k, m := range a.D {
			if !slices.ContainsFunc(m, func(row []float64) bool { return slices.Max(row) > 0 || slices.Min(row) < 0 }) {
				continue // no batches of this size
			}
			for _, row := range m {
				fmt.Fprintf(g.Stdout, "%4s %.6g\n", fmt.Sprint("d", k), row)
			}
		}
	} else {
		fmt.Fprintln(g.Stdout, "The matrices are in the output of --json.")
	}
	fmt.Fprintf(g.Stdout, "%.6g arrivals a unit of time\n", a.Rate)
	printGoodness(g, a.Goodness)
	if len(a.Batches) > 1 {
		fmt.Fprintf(g.Stdout, "%-12s %14s %14s\n", "batches of", "log", "fit")
		for k, p := range a.Batches {
			if p.Sample > 0 || p.Fit > 1e-6 {
				fmt.Fprintf(g.Stdout, "%-12d %14.6g %14.6g\n", k+1, p.Sample, p.Fit)
			}
		}
	}
	if len(a.Tried) > 0 {
		fmt.Fprintf(g.Stdout, "\n  %-66s %5s %12s %9s %9s\n", "tried", "order", "BIC", "lags off", "CDF off")
	}
	for _, t := range a.Tried {
		mark := " "
		if t.Chosen {
			mark = "*"
		}
		fmt.Fprintf(g.Stdout, "%s %-66s %5d %12.1f %9.4f %9.4f\n", mark, t.Method, t.Order, t.Goodness.Score.BIC, t.LagError, t.Goodness.KS.Distance)
	}
	return nil
}

// fitServiceColumn fits to a column of times or sizes.
func (c *controlFitCmd) fitServiceColumn(ctx context.Context, g *command.Globals, t *fit.Table) error {
	x := make([]float64, 0, len(t.Values))
	zeros := 0
	var sum float64
	for i, v := range t.Values {
		switch {
		case v < 0:
			return command.Usagef("%s: line %d: %s: %g is negative", c.Log, t.Lines[i], t.Column, v)
		case v == 0:
			zeros++
			continue
		}
		sum += v
		x = append(x, v)
	}
	if len(x) < 2 {
		return command.Usagef("%s: %d positive values of %s: at least two are needed", c.Log, len(x), t.Column)
	}
	factor := 1.0
	switch {
	case c.Mean > 0:
		factor = c.Mean * float64(len(x)) / sum
	case c.Rate > 0:
		factor = 1 / c.Rate
	}
	for i := range x {
		x[i] *= factor
	}
	s, err := fit.NewSample(x)
	if err != nil {
		return command.Usagef("%s: %s: %w", c.Log, t.Column, err)
	}
	v, err := fit.FitService(ctx, s, fit.ServiceOptions{Method: fit.Method(c.Method), Order: c.MaxOrder})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Log, err)
	}
	out := fittedService{PH: v.PH, Method: v.Law.Method, Words: v.Words, Goodness: v.Goodness}
	if n := zeros + t.Empty; n > 0 {
		out.Words = append(out.Words, fmt.Sprintf("Left out: rows whose %s is empty or 0, %d of them.", t.Column, n))
	}
	if t.Column == "bytes" && factor == 1 {
		out.Words = append(out.Words, "The law is of bytes, not seconds: give --mean or --rate.")
	}
	if c.Report != "" {
		unit := t.Column
		if factor != 1 {
			unit = "service time"
		}
		if err := writeReportFile(c.Report, v.Report(s, unit)); err != nil {
			return err
		}
	}
	for _, tried := range v.Tried {
		out.Tried = append(out.Tried, triedService{tried.Law.Method, tried.Order(), tried.Goodness})
	}
	return printService(g, &out)
}

// printService prints a fitted service.
func printService(g *command.Globals, s *fittedService) error {
	if g.JSON {
		return g.PrintJSON(s)
	}
	fmt.Fprintf(g.Stdout, "%s, order %d\n", s.Method, s.Order())
	for _, w := range s.Words {
		fmt.Fprintln(g.Stdout, w)
	}
	if s.Order() <= mostShown {
		fmt.Fprintf(g.Stdout, "beta %.6g\n", s.Beta)
		for _, row := range s.S {
			fmt.Fprintf(g.Stdout, "   s %.6g\n", row)
		}
	} else {
		fmt.Fprintln(g.Stdout, "The matrices are in the output of --json.")
	}
	printGoodness(g, s.Goodness)
	return nil
}

// printGoodness prints figures of log and fit side by side.
func printGoodness(g *command.Globals, v fit.Goodness) {
	fmt.Fprintf(g.Stdout, "%-12s %14s %14s\n", "", "log", "fit")
	line := func(name string, p fit.Pair) {
		fmt.Fprintf(g.Stdout, "%-12s %14.6g %14.6g\n", name, p.Sample, p.Fit)
	}
	for k, p := range v.Moments {
		line(fmt.Sprint("moment ", k+1), p)
	}
	if v.SCV != nil {
		line("SCV", *v.SCV)
	}
	for k, p := range v.Lags {
		line(fmt.Sprint("lag ", k+1), p)
	}
	if v.KS != nil {
		fmt.Fprintf(g.Stdout, "distribution functions differ by at most %.4f, at %.6g (chance alone, 5 %%: %.4f)\n", v.KS.Distance, v.KS.At, v.KS.Critical)
	}
}

// writeReportFile writes a report to a file, which appears when it is complete.
func writeReportFile(name string, p *report.Page) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(p.Write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
