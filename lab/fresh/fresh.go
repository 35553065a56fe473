package fresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/node"
	"github.com/freshet/freshet/revisit"
	"github.com/freshet/freshet/signal"
)

// Config describes an experiment.
type Config struct {
	Pages   int
	Hosts   int
	Slowest float64 // changes a second of the slowest page; the fastest change 10^4 times as often
	Budget  float64 // requests a second
	Warm    time.Duration
	Measure time.Duration
	Seed    uint64
	Work    string // folder for the data directories
	Log     *slog.Logger
}

// Row is the outcome of one policy.
type Row struct {
	Policy    string  `json:"policy"`
	Signals   bool    `json:"signals"`
	Freshness float64 `json:"freshness"` // measured mean share of pages that are up to date
	Age       float64 `json:"age"`       // measured mean age in seconds
	Requests  float64 `json:"requests"`  // a second
	// Predicted is the freshness by theory from the true rates, nil where there is
	// no formula.
	Predicted *float64 `json:"predicted,omitempty"`
	// Simulated is that of the simulator, with known rates, on the same moments
	// of change.
	Simulated *float64 `json:"simulated,omitempty"`
}

// Signalled is the name of the row where each change is signalled.
const Signalled = "fixed-optimal+signals"

// Names are the policies of an experiment, in the order in which theory expects
// them, but for half-change, which has no budget but the limit.
func Names() []string {
	return []string{"half-change", "proportional", "adaptive", "uniform", "no-starvation", "age-optimal", "random-optimal", "fixed-optimal", Signalled}
}

// Experiment is a site that is served while policies take their turns.
type Experiment struct {
	config Config
	site   *site
	server *http.Server
	done   chan struct{}
}

// Open draws the site's history and serves it on loopback.
func Open(c Config) (*Experiment, error) {
	switch {
	case c.Pages < 1 || c.Hosts < 1 || c.Hosts > 200 || c.Hosts > c.Pages:
		return nil, fmt.Errorf("%d pages on %d hosts: at least a page a host, at most 200 hosts", c.Pages, c.Hosts)
	case !(c.Slowest > 0) || !(c.Budget > 0) || math.IsInf(c.Slowest, 0) || math.IsInf(c.Budget, 0):
		return nil, fmt.Errorf("slowest rate %g, budget %g: both are positive numbers", c.Slowest, c.Budget)
	case c.Measure <= 0 || c.Warm < 0:
		return nil, fmt.Errorf("warm-up %v, measurement %v: times are not negative, and something must be measured", c.Warm, c.Measure)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l, err := net.Listen("tcp4", "0.0.0.0:0") // its hosts are many of 127.0.0.0/8; others are refused
	if err != nil {
		return nil, err
	}
	e := &Experiment{config: c, site: newSite(c), done: make(chan struct{})}
	e.site.port = l.Addr().(*net.TCPAddr).Port
	e.server = &http.Server{Handler: e.site, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(e.done)
		_ = e.server.Serve(l)
	}()
	return e, nil
}

// Close stops serving.
func (e *Experiment) Close() error {
	err := e.server.Close()
	<-e.done
	return err
}

// Run lets the whole of serve (robot, store, indexer) keep the site fresh under
// a policy, from nothing, and measures after the warm-up.
func (e *Experiment) Run(ctx context.Context, policy string) (Row, error) {
	row := Row{Policy: policy, Signals: policy == Signalled}
	dir, err := os.MkdirTemp(e.config.Work, "fresh-")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(dir)
	c := config.Default()
	c.Console.Listen = "127.0.0.1:0"
	c.Crawl.Policy, c.Crawl.Budget = policy, e.config.Budget
	if row.Signals {
		c.Crawl.Policy = "fixed-optimal"
	}
	c.Crawl.MinRevisit, c.Crawl.MaxRevisit = 10*time.Millisecond, 24*time.Hour
	if _, planned := revisit.Policies()[c.Crawl.Policy]; !planned {
		// They begin with intervals of days, which the experiment has no time for.
		c.Crawl.MaxRevisit = time.Duration(3 * float64(e.config.Pages) / e.config.Budget * float64(time.Second))
	}
	c.Crawl.Agents = e.config.Hosts
	for h := range e.config.Hosts {
		c.Sources = append(c.Sources, config.Source{URL: fmt.Sprintf("http://127.0.0.%d:%d/", h+1, e.site.port), AllowPrivate: true})
	}
	e.site.reset()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n, err := node.New(ctx, c, node.Options{Dir: dir, AllowPrivate: true, Log: e.config.Log})
	if err != nil {
		return row, fmt.Errorf("%s: %w", policy, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx, nil) }()
	var sender sync.WaitGroup
	if row.Signals {
		sender.Go(func() { e.signal(ctx, n) })
	}
	warm, end := e.config.Warm.Seconds(), (e.config.Warm + e.config.Measure).Seconds()
	t := time.NewTimer(time.Until(e.site.began.Add(e.config.Warm + e.config.Measure)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case err := <-ended:
		cancel()
		sender.Wait()
		return row, fmt.Errorf("%s: the robot ended: %w", policy, errors.Join(err, ctx.Err()))
	}
	stopped := ctx.Err()
	cancel()
	sender.Wait()
	if err := errors.Join(stopped, <-ended); err != nil {
		return row, fmt.Errorf("%s: %w", policy, err)
	}
	var requests int
	row.Freshness, row.Age, requests = e.site.measure(warm, end)
	row.Requests = float64(requests) / (end - warm)
	row.Predicted = e.predict(policy)
	if _, ok := revisit.Policies()[policy]; ok {
		f, err := e.simulate(context.WithoutCancel(ctx), policy)
		if err != nil {
			return row, err
		}
		row.Simulated = &f
	}
	return row, nil
}

// signal tells the robot of changes as they happen.
func (e *Experiment) signal(ctx context.Context, n *node.Node) {
	next := make([]int, len(e.site.rates))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Since(e.site.began).Seconds()
		var events []signal.Event
		for page := range next {
			if v := e.site.version(page, now); v > next[page] {
				next[page] = v
				events = append(events, signal.Event{URL: e.site.address(page)})
			}
		}
		if len(events) == 0 {
			continue
		}
		if _, err := n.Changed(ctx, "experiment", events); err != nil && ctx.Err() == nil {
			e.config.Log.Warn("signals", "err", err)
		}
	}
}

// predict is the freshness that theory gives a policy that knows the rates.
func (e *Experiment) predict(policy string) *float64 {
	p, ok := revisit.Policies()[policy]
	if policy == Signalled {
		p, ok = revisit.Policies()["fixed-optimal"]
	}
	if !ok {
		return nil
	}
	items := make([]revisit.Item, len(e.site.rates))
	for i, d := range e.site.rates {
		items[i] = revisit.Item{Importance: 1, Rate: d, Signals: policy == Signalled}
	}
	plan, err := revisit.New(p, items, e.config.Budget)
	if err != nil {
		return nil
	}
	return &plan.Freshness
}
