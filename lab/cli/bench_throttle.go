package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/index/feed"
	bench "github.com/freshet/freshet/lab/bench/crawl"
	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/control/tune"
)

// benchThrottleCmd shows what control of the robot's agents is worth: a crawl
// without it is fitted and optimised, then one with the thresholds is run.
type benchThrottleCmd struct {
	Pages    int     `help:"Pages of the site." default:"1500"`
	Hosts    int     `help:"Hosts of the site." default:"8"`
	Agents   []int   `help:"Numbers of active agents to choose from, fewest first." default:"0,1,2,8"`
	Capacity int     `help:"Most pages in the queue of the model." default:"100"`
	Stale    float64 `help:"Mean seconds until a waiting page is stale." default:"10"`
	Loss     float64 `help:"Cost of a page that finds the queue full." default:"1"`
	Obsolete float64 `help:"Cost of a page that goes stale waiting." default:"1"`
	Response float64 `help:"Cost of a second from fetched to searchable, on average." default:"1"`
	Starve   float64 `help:"Cost of an idle indexer, by its share of time." default:"20"`
}

// throttleRow is one column of the comparison.
type throttleRow struct {
	Name       string  `json:"name"`
	Rate       float64 `json:"pages_per_second"`
	Starvation float64 `json:"starvation"`
	Lost       float64 `json:"lost"`
	Stale      float64 `json:"stale"`
	Response   float64 `json:"response"`
	Cost       float64 `json:"cost"`
}

// Run runs both crawls, the model and its simulation.
func (c *benchThrottleCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Pages < 2*tune.Least || c.Hosts < 1 || c.Hosts > 200 {
		return command.Usagef("bench throttle: at least %d pages, 1 to 200 hosts", 2*tune.Least)
	}
	track, err := bench.Open(bench.NewSite(c.Pages, c.Hosts, 32, 12_000), "")
	if err != nil {
		return err
	}
	defer track.Close()
	cfg := tune.Config{Agents: c.Agents, Capacity: c.Capacity, Stale: c.Stale, Cost: control.Cost{Loss: c.Loss, Obsolete: c.Obsolete, Response: c.Response, Starvation: c.Starve}}
	free, err := c.crawlSite(ctx, g, track.Site, nil, nil)
	if err != nil {
		return err
	}
	p, err := tune.Propose(ctx, free, cfg)
	if err != nil {
		return command.Usagef("bench throttle: %w", err)
	}
	held, err := c.crawlSite(ctx, g, track.Site, p.Thresholds, p.Agents)
	if err != nil {
		return err
	}
	m, err := control.New(p.Model)
	if err != nil {
		return err
	}
	sim, err := m.Simulate(ctx, p.Optimum.Best.Policy, control.Simulation{Pages: 100_000, Replications: 5, WarmUp: -1, Seed: 1})
	if err != nil {
		return err
	}
	rows := []throttleRow{
		measuredRow("live, all agents", tune.Measure(free, cfg)), modelledRow("model, all agents", p.Without),
		measuredRow("live, thresholds", tune.Measure(held, cfg)), modelledRow("model, thresholds", p.Expected), modelledRow("simulation, thresholds", sim.Result),
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"rows": rows, "thresholds": p.Thresholds, "agents": p.Agents, "words": p.Words})
	}
	fmt.Fprintf(g.Stdout, "thresholds %v, agents %v\n", p.Thresholds, p.Agents)
	w := tabwriter.NewWriter(g.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tpages/s\tstarvation\tlost\tstale\tresponse, s\tcost\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.1f\t%.3f\t%.3f\t%.3f\t%.2f\t%.2f\t\n", r.Name, r.Rate, r.Starvation, r.Lost, r.Stale, r.Response, r.Cost)
	}
	return w.Flush()
}

func measuredRow(name string, m tune.Measured) throttleRow {
	return throttleRow{name, m.Rate, m.Starvation, m.Lost, m.Stale, m.Response, m.Cost}
}

func modelledRow(name string, r control.Result) throttleRow {
	return throttleRow{name, r.ArrivalRate, r.Starvation, r.Loss, r.Obsolete, r.SojournServed, r.Cost}
}

// crawlSite lets serve crawl and index the site from nothing, until all is
// searchable, and returns the indexer's log.
func (c *benchThrottleCmd) crawlSite(ctx context.Context, g *command.Globals, site *bench.Site, thresholds, agents []int) ([]tune.Page, error) {
	dir, err := os.MkdirTemp("", "freshet-throttle-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cfg := config.Default()
	cfg.Console.Listen, cfg.Crawl.Agents = "127.0.0.1:0", c.Agents[len(c.Agents)-1]
	cfg.Throttle.Thresholds, cfg.Throttle.Modes = thresholds, agents
	for _, s := range site.Seeds() {
		cfg.Sources = append(cfg.Sources, config.Source{URL: s, Scope: "any", AllowPrivate: true})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n, err := app.Open(cfg, app.Options{Dir: dir, AllowPrivate: true, Log: slog.New(slog.NewTextHandler(g.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return nil, err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Serve(ctx, func(string) { close(ready) }) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return nil, errors.Join(err, ctx.Err(), errors.New("bench throttle: the robot ended before all was indexed"))
		case <-tick.C:
		}
		select {
		case <-ready:
		default:
			continue
		}
		s, err := n.Status(ctx)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if s != nil && s.Indexed >= int64(site.Pages) {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		return nil, err
	}
	var log []tune.Page
	err = feed.ReadServices(dir, func(s *feed.Service) error {
		log = append(log, tune.Page{Arrived: unixSeconds(s.Arrived), Done: unixSeconds(s.Time), Seconds: s.Seconds})
		return nil
	})
	return log, err
}
