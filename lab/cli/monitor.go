package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
)

type monitorCmd struct {
	Field   monitorFieldCmd   `cmd:"" help:"Make a field from laws, or import one from access logs or our own log of visits."`
	Run     monitorRunCmd     `cmd:"" help:"Simulate one way of watching one field."`
	Emulate monitorEmulateCmd `cmd:"" help:"Let the live robot watch a field that is served in accelerated time, and compare with the simulator."`
	Sweep   monitorSweepCmd   `cmd:"" help:"Simulate every variant on every field of a plan; goes on where it was stopped."`
	Report  monitorReportCmd  `cmd:"" help:"Tables, ranking, correlations and one HTML file of a sweep's results."`
}

// fieldFlags make a field from laws. The commands set the defaults.
type fieldFlags struct {
	Pages         int     `help:"Number of resources." default:"${pages}"`
	Time          float64 `help:"Length in units of 100 ms." default:"${units}"`
	Changes       float64 `help:"Mean change events of a resource within the time." default:"${changes}"`
	Requests      float64 `help:"Mean visitor requests of a resource within the time." default:"${requests}"`
	Law           string  `help:"Law of the gaps between changes: ${laws}." default:"exponential"`
	RequestLaw    string  `help:"Law of the gaps between requests." default:"exponential"`
	Spread        string  `help:"Law of change rates across resources (default: all equal)." placeholder:"LAW"`
	RequestSpread string  `help:"Law of request rates across resources (default: all equal)." placeholder:"LAW"`
	Kinds         string  `help:"What change events do: classic (a third are errors), text (sizes change, nothing fails), or six probabilities of forbidden,missing,failed,shrunk,grown,same." default:"classic"`
	Seed          uint64  `help:"Seed; equal ones give equal results." default:"1"`
	Number        int     `help:"Number of the field: another one has other histories." default:"1"`
	Replication   int     `help:"Number of the replication, from 0." default:"0"`
}

// fieldSpecFromFlags reads the laws.
func (c *fieldFlags) fieldSpecFromFlags() (field.Spec, error) {
	s := field.Spec{
		PageCount: c.Pages, Length: c.Time, Changed: c.Changes, Requested: c.Requests,
		Seed: c.Seed, Number: c.Number, Replication: c.Replication,
	}
	for _, l := range []struct {
		text string
		to   *field.Law
	}{{c.Law, &s.ChangeLaw}, {c.RequestLaw, &s.RequestLaw}, {c.Spread, &s.ChangeSpread}, {c.RequestSpread, &s.RequestSpread}} {
		if l.text == "" {
			continue
		}
		law, err := field.ParseLaw(l.text)
		if err != nil {
			return s, err
		}
		*l.to = law
	}
	var err error
	s.Kinds, err = field.ParseKinds(c.Kinds)
	return s, err
}

// makeField makes the field.
func (c *fieldFlags) makeField() (field.Field, error) {
	s, err := c.fieldSpecFromFlags()
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	f, err := field.New(s)
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	return f, nil
}

type monitorRunCmd struct {
	fieldFlags `kong:"set='pages=100000',set='units=8640000',set='changes=1',set='requests=1'"`
	Variant    string `help:"Way of watching: ${variants}." required:""`
	measureFlags
}

// measureFlags say what is watched and what is written of it.
type measureFlags struct {
	Field  string  `help:"Field file of monitor field, instead of one made from laws." type:"path" placeholder:"FILE"`
	Warmup float64 `help:"Units from the start that means, delays and ages leave out." default:"0"`
	Series string  `help:"Also write the series as CSV to this file." type:"path" placeholder:"FILE"`
	Log    string  `help:"Also write every change, download and learning as CSV to this file: for small fields." type:"path" placeholder:"FILE"`
}

// withEventLog calls do with the log of events, if one is asked for.
func (c *measureFlags) withEventLog(do func(monitor.Log) error) error {
	if c.Log == "" {
		return do(nil)
	}
	l, err := newEventLog(c.Log)
	if err != nil {
		return err
	}
	return errors.Join(do(l), l.closeEventLog())
}

// writeSeriesFile writes the series, if they are asked for.
func (c *measureFlags) writeSeriesFile(pages int, r *monitor.Result) error {
	if c.Series == "" {
		return nil
	}
	return writeSeries(c.Series, pages, &r.Series)
}

// Run simulates.
func (c *monitorRunCmd) Run(ctx context.Context, g *command.Globals) error {
	v, err := monitor.Parse(c.Variant)
	if err != nil {
		return command.UsageError{Err: err}
	}
	f, err := c.loadOrMakeField(c.Field)
	if err != nil {
		return err
	}
	cfg := monitor.Config{Field: f, Variant: v, Warmup: c.Warmup, Seed: c.Seed, Number: c.Number, Replication: c.Replication}
	var res *monitor.Result
	err = c.withEventLog(func(l monitor.Log) (err error) {
		cfg.Log = l
		res, err = monitor.Run(ctx, cfg)
		return err
	})
	if errors.Is(err, monitor.ErrInput) {
		return command.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	if err := c.writeSeriesFile(f.Pages(), res); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(res)
	}
	fmt.Fprintf(g.Stdout, "freshness %.3f %% at the end (%d stale), %.3f %% on average; mean age %.6g units\n", res.FreshnessEnd, res.StaleEnd, res.FreshnessMean, res.AgeMean)
	fmt.Fprintf(g.Stdout, "%d downloads, %d bytes, %d probes or alerts; %d in progress, at most %d\n", res.Downloads, res.Bytes, res.Probes, res.InProgress, res.MaxInProgress)
	d := res.Delay
	fmt.Fprintf(g.Stdout, "delay %.6g min, %.6g mean, %.6g max; half within %.6g, 90 %% within %.6g, 99 %% within %.6g units\n", d.Min, d.Mean, d.Max, d.P50, d.P90, d.P99)
	fmt.Fprintf(g.Stdout, "%d real changes: %d detected, %d overwritten, %d still unknown\n", res.Real, res.Detected, res.Overwritten, res.StaleEnd)
	if len(res.Cycles) > 0 {
		s := make([]string, len(res.Cycles))
		for i, v := range res.Cycles {
			s[i] = fmt.Sprintf("%.3f", v)
		}
		fmt.Fprintf(g.Stdout, "cycles %s\n", strings.Join(s, " "))
	}
	fmt.Fprintf(g.Stdout, "%d events in %.2f s\n", res.Events, res.Seconds)
	return nil
}

// loadOrMakeField reads the field from a file, or makes it if that is "".
func (c *fieldFlags) loadOrMakeField(file string) (field.Field, error) {
	if file != "" {
		return readField(file)
	}
	return c.makeField()
}

// writeSeries writes time, stale resources, freshness and, where sampled, bytes.
func writeSeries(name string, pages int, s *monitor.Series) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := csv.NewWriter(f)
	_ = w.Write([]string{"time", "stale", "freshness", "bytes"}) // the error stays in w
	for i, n := range s.Stale {
		t := i * monitor.SampleEvery
		volume := ""
		if j := t / monitor.VolumeEvery; t%monitor.VolumeEvery == 0 && j < len(s.Volume) {
			volume = strconv.FormatInt(s.Volume[j], 10)
		}
		_ = w.Write([]string{strconv.Itoa(t), strconv.Itoa(int(n)), strconv.FormatFloat(100*float64(pages-int(n))/float64(pages), 'f', 5, 64), volume})
	}
	w.Flush()
	return w.Error()
}

// eventLog writes single events as CSV.
type eventLog struct {
	f *os.File
	w *csv.Writer
}

func newEventLog(name string) (*eventLog, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	l := &eventLog{f, csv.NewWriter(f)}
	_ = l.w.Write([]string{"time", "event", "page", "kind", "real", "bytes", "agent", "delay"})
	return l, nil
}

func (l *eventLog) closeEventLog() error {
	l.w.Flush()
	return errors.Join(l.w.Error(), l.f.Close())
}

func formatUnits(t float64) string         { return strconv.FormatFloat(t, 'f', 6, 64) }
func formatUint(n uint32) string           { return strconv.FormatUint(uint64(n), 10) }
func (l *eventLog) writeEvent(v ...string) { _ = l.w.Write(v) } // the error stays in w

// Changed notes a change event.
func (l *eventLog) Changed(t float64, c field.Change) {
	l.writeEvent(formatUnits(t), "change", formatUint(c.Page), c.Kind.String(), strconv.FormatBool(c.Real), formatUint(c.Size), "", "")
}

// Learned notes that a change became known.
func (l *eventLog) Learned(t float64, page uint32, since float64) {
	l.writeEvent(formatUnits(t), "learned", formatUint(page), "", "", "", "", formatUnits(t-since))
}

// Fetched notes the end of a download.
func (l *eventLog) Fetched(t float64, page, agent uint32, bytes int64) {
	l.writeEvent(formatUnits(t), "fetched", formatUint(page), "", "", strconv.FormatInt(bytes, 10), formatUint(agent), "")
}
