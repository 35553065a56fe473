package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/bench/sensors"
)

// benchSensorCmd measures sensors: from change to search, and what they cost.
type benchSensorCmd struct {
	Sensors  []string      `help:"Which ways to watch a server take their turns: proxy, log, watch (nginx), middleware (a Go server)." default:"proxy,log,watch,middleware"`
	Pages    int           `help:"Pages of the site." default:"200"`
	Visitors int           `help:"Visitors that look at pages at the same time." default:"4"`
	Changes  int           `help:"Pages that change, one after the other." default:"100"`
	Every    time.Duration `help:"Time between changes." default:"150ms"`
	Kill     bool          `help:"Serve is killed without warning in the middle, and started again after 2 s." default:"true" negatable:""`
	Patience time.Duration `help:"After what time a change that no search finds is lost." default:"60s"`
	Requests int           `help:"Requests of each run of the overhead of the middleware; 0 leaves it out." default:"40000"`
	Pairs    int           `help:"Runs with and without." default:"5"`
	Seed     uint64        `help:"Of changes and visitors." default:"1"`

	Server string `hidden:"" help:"Be a server of this kind."`
	Listen string `hidden:""`
	Root   string `hidden:""`
	To     string `hidden:""`
	Spool  string `hidden:""`
	Mute   bool   `hidden:""`
	Hold   bool   `hidden:"" help:"End with the standard input."`
}

// Run measures, or is a server for that.
func (c *benchSensorCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Server != "" {
		var hold io.Reader
		if c.Hold {
			hold = os.Stdin
		}
		return sensors.Serve(ctx, sensors.ServerConfig{
			Kind: c.Server, Listen: c.Listen, Root: c.Root, To: c.To, Spool: c.Spool, Mute: c.Mute, Log: slog.New(slog.NewTextHandler(g.Stderr, nil)),
		}, hold, func(address string) { fmt.Fprintln(g.Stdout, address) })
	}
	for _, s := range c.Sensors {
		if !slices.Contains(sensors.Sensors(), s) {
			return command.Usagef("bench sensor: no sensor %q; there are %v", s, sensors.Sensors())
		}
	}
	if c.Pages < 1 || c.Changes < 1 || c.Visitors < 0 || c.Pairs < 1 || c.Requests < 0 {
		return command.Usagef("bench sensor: --pages, --changes and --pairs are at least 1")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "freshet-sensor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var chains []sensors.Result
	for _, s := range c.Sensors {
		if !g.Quiet {
			fmt.Fprintf(g.Stderr, "%s ...\n", s)
		}
		dir := filepath.Join(work, s)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		r, err := sensors.Run(ctx, sensors.Config{
			Self: self, Work: dir, Sensor: s, Pages: c.Pages, Visitors: c.Visitors, Changes: c.Changes, Every: c.Every, Kill: c.Kill, Patience: c.Patience, Seed: c.Seed,
		})
		if errors.Is(err, sensors.ErrNginx) {
			fmt.Fprintf(g.Stderr, "%s: skipped: %v\n", s, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("bench sensor: %s: %w", s, err)
		}
		chains = append(chains, r)
	}
	var costs []sensors.Cost
	for _, kind := range sensors.Kinds() {
		if c.Requests == 0 {
			break
		}
		if !g.Quiet {
			fmt.Fprintf(g.Stderr, "middleware of a server: %s ...\n", kind)
		}
		cost, err := sensors.Overhead(ctx, self, work, kind, c.Requests, c.Pairs)
		if err != nil {
			return fmt.Errorf("bench sensor: %w", err)
		}
		costs = append(costs, cost)
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"pages": c.Pages, "visitors": c.Visitors, "chains": chains, "middleware": costs})
	}
	w := tabwriter.NewWriter(g.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(chains) > 0 {
		fmt.Fprintln(w, "sensor\tchanges\tfound\tlost\tdelay p50, s\tp90\tp99\tmax\trequests\tfailed\t")
	}
	for _, r := range chains {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%d\t\n", r.Sensor, r.Changes, r.Found, r.Lost, r.P50, r.P90, r.P99, r.Max, r.Requests, r.Failed)
	}
	if len(costs) > 0 {
		fmt.Fprintln(w, "\nserver\tCPU us a request\twith the sensor\toverhead\t")
	}
	for _, c := range costs {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f %%\t\n", c.Server, c.Plain, c.Sensor, 100*c.Overhead)
	}
	return w.Flush()
}
