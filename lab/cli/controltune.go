package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/control/tune"
)

type controlTuneCmd struct {
	command.Remote
	Agents   []int         `help:"Numbers of active agents to choose from, fewest first." default:"1,4,16"`
	Since    time.Duration `help:"How far back the log is read." default:"24h"`
	Capacity int           `help:"Most pages in the queue of the model." default:"100"`
	Order    int           `help:"Phases of arrivals and of service at most." default:"3"`
	Stale    float64       `help:"Mean seconds until a waiting page is stale; 0 is never." default:"0"`

	Loss       float64 `help:"Cost of a page that finds the queue full." default:"1"`
	Obsolete   float64 `help:"Cost of a page that goes stale waiting." default:"1"`
	Response   float64 `help:"Cost of a second from fetched to searchable, on average." default:"0.1"`
	Starvation float64 `help:"Cost of an idle indexer, by its share of time." default:"1"`
	Robot      float64 `help:"Cost of an active agent." default:"0"`

	Model string `help:"Write the fitted model here." placeholder:"MODEL.json" type:"path"`
	Apply bool   `help:"Set the throttle of the running serve."`
}

// Help tells what is read.
func (controlTuneCmd) Help() string {
	return "Reads the indexer's log of services in the data directory, also while serve runs. The log should be of a time without control: all agents active."
}

// Run proposes, and applies if asked to.
func (c *controlTuneCmd) Run(ctx context.Context, g *command.Globals) error {
	log, err := c.readServiceLog(g)
	if err != nil {
		return err
	}
	p, err := tune.Propose(ctx, log, tune.Config{
		Agents: c.Agents, Capacity: c.Capacity, Order: c.Order, Stale: c.Stale,
		Cost: control.Cost{Loss: c.Loss, Obsolete: c.Obsolete, Response: c.Response, Starvation: c.Starvation, Robot: c.Robot},
	})
	if errors.Is(err, tune.ErrShort) {
		return fmt.Errorf("control tune: %w: let the robot work for a while, or give a longer --since", err)
	}
	if err != nil {
		return command.Usagef("control tune: %w", err)
	}
	if c.Model != "" {
		p.Model.Policy = p.Optimum.Best.Policy
		b, err := json.MarshalIndent(p.Model, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.Model, append(b, '\n'), 0o644); err != nil {
			return fmt.Errorf("control tune: %w", err)
		}
	}
	if c.Apply {
		setting := map[string][]int{"thresholds": p.Thresholds, "modes": p.Agents}
		if len(p.Thresholds) == 0 { // one number of agents at any length: a threshold that is never passed
			setting = map[string][]int{"thresholds": {-1}, "modes": {p.Agents[0], p.Agents[0]}}
		}
		if err := c.Call(ctx, g, http.MethodPut, "/api/throttle", setting, nil); err != nil {
			return fmt.Errorf("control tune: set the throttle: %w", err)
		}
	}
	if g.JSON {
		return g.PrintJSON(p)
	}
	c.printProposal(g, p)
	return nil
}

// readServiceLog reads the services.
func (c *controlTuneCmd) readServiceLog(g *command.Globals) ([]tune.Page, error) {
	dir, err := g.DataDir()
	if err != nil {
		return nil, err
	}
	since := time.Now().Add(-c.Since)
	var log []tune.Page
	err = feed.ReadServices(dir, func(s *feed.Service) error {
		if !s.Arrived.IsZero() && s.Time.After(since) {
			log = append(log, tune.Page{Arrived: unixSeconds(s.Arrived), Done: unixSeconds(s.Time), Seconds: s.Seconds})
		}
		return nil
	})
	return log, err
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func (c *controlTuneCmd) printProposal(g *command.Globals, p *tune.Proposal) {
	l := p.Log
	fmt.Fprintf(g.Stdout, "log: %d pages in %.0f s, %.3g a second, %.3g ms each at the indexer, which worked %.0f %% of the time; %.3g s from fetched to searchable\n",
		l.Pages, l.Seconds, l.Rate, 1000*l.Service, 100*l.Load, l.Response)
	for _, w := range p.Words {
		fmt.Fprintln(g.Stdout, w)
	}
	fmt.Fprintf(g.Stdout, "%-26s%12s%12s\n", "by the model", "all agents", "thresholds")
	for _, row := range []struct {
		name string
		of   func(*control.Result) float64
	}{
		{"cost", func(r *control.Result) float64 { return r.Cost }},
		{"lost", func(r *control.Result) float64 { return r.Loss }},
		{"stale", func(r *control.Result) float64 { return r.Obsolete }},
		{"starvation", func(r *control.Result) float64 { return r.Starvation }},
		{"response of served pages", func(r *control.Result) float64 { return r.SojournServed }},
	} {
		fmt.Fprintf(g.Stdout, "%-26s%12.5g%12.5g\n", row.name, row.of(&p.Without), row.of(&p.Expected))
	}
	if len(p.Thresholds) == 0 {
		fmt.Fprintf(g.Stdout, "no thresholds help: %d agents at any length\n", p.Agents[0])
	} else {
		fmt.Fprintf(g.Stdout, "throttle:\n  thresholds: %s\n  modes: %s\n", yamlList(p.Thresholds), yamlList(p.Agents))
	}
	if c.Apply {
		fmt.Fprintln(g.Stdout, "set")
	}
}

// yamlList writes numbers as YAML.
func yamlList(n []int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
