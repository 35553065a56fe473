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
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/freshness/revisit"
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
	Known   bool   // the robot is told the change rates
	Work    string // folder for the data directories
	// Nodes is how many processes keep the site fresh together, over an empty
	// Database of PostgreSQL. Default 1, with a store of its own.
	Nodes    int
	Database func(context.Context) (address string, drop func() error, err error)
	Log      *slog.Logger
}

// Row is the outcome of one policy.
type Row struct {
	Policy    string  `json:"policy"`
	Nodes     int     `json:"nodes"`
	Known     bool    `json:"known_rates"` // the robot was told the change rates
	Freshness float64 `json:"freshness"`   // measured mean share of pages that are up to date
	Age       float64 `json:"age"`         // measured mean age in seconds
	Requests  float64 `json:"requests"`    // a second
	// Estimated is what the robot's status page says of itself, in the mean.
	Estimated    float64 `json:"estimated_freshness"`
	EstimatedAge float64 `json:"estimated_age"`
	// Theory is by formula from the true rates, nil where there is none.
	Theory *Outcome `json:"theory,omitempty"`
	// Simulated is of the simulator, with known rates, on the same moments of
	// change, nil where it has no such policy.
	Simulated *Outcome `json:"simulated,omitempty"`
	// Parts are the freshness in equal parts of the time that was measured.
	Parts []float64 `json:"parts,omitempty"`
}

// Outcome is how fresh a site is kept. Age is +Inf by theory where pages are
// never visited: the robot then shows what the pages' last visits left.
type Outcome struct {
	Freshness float64  `json:"freshness"`
	Age       *float64 `json:"age,omitempty"` // seconds; nil for no bound
}

// Told is the suffix of the names of rows whose site reports each change.
const Told = "+signals"

// Names are the rows of an experiment, in the order in which theory expects
// them.
func Names() []string {
	return []string{
		"proportional", "most-likely-changed", "adaptive", "no-starvation", "sweep", "uniform", "age-optimal",
		"random-optimal", "fixed-optimal", "greedy", "fixed-optimal" + Told, "greedy" + Told,
	}
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
	if c.Nodes = max(c.Nodes, 1); c.Nodes > 1 && c.Database == nil {
		return nil, fmt.Errorf("%d nodes share a database: there is none", c.Nodes)
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
func (e *Experiment) Run(ctx context.Context, name string) (row Row, err error) {
	row = Row{Policy: name, Known: e.config.Known, Nodes: e.config.Nodes}
	policy, told := strings.CutSuffix(name, Told)
	dir, err := os.MkdirTemp(e.config.Work, "fresh-")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(dir)
	database := ""
	if e.config.Database != nil {
		var drop func() error
		if database, drop, err = e.config.Database(ctx); err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, drop()) }()
	}
	e.site.restartHistory()
	robots, err := e.startRobots(ctx, dir, database, policy)
	if err != nil {
		return row, fmt.Errorf("%s: %w", name, err)
	}
	var beside sync.WaitGroup // ends before the robot does: its store is closed then
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	if told {
		beside.Go(func() { e.sendSignals(asking, robots[0].Node) })
	}
	beside.Go(func() { row.Estimated, row.EstimatedAge = e.averageEstimates(asking, robots[0].Node) })
	t := time.NewTimer(time.Until(e.site.began.Add(e.config.Warm + e.config.Measure)))
	defer t.Stop()
	var stopped error
	select {
	case <-t.C:
	case <-ctx.Done():
		stopped = ctx.Err()
	case <-anyEnded(robots):
		stopped = errors.Join(errors.New("the robot ended"), ctx.Err())
	}
	stopAsking()
	beside.Wait()
	if err := errors.Join(stopped, stopAll(robots)); err != nil {
		return row, fmt.Errorf("%s: %w", name, err)
	}
	e.measureRow(&row)
	row.Theory = e.predictOutcome(policy, told)
	row.Simulated, err = e.simulatePolicy(context.WithoutCancel(ctx), policy, told)
	return row, err
}

// startRobots starts so many as there are to be.
func (e *Experiment) startRobots(ctx context.Context, dir, database, policy string) (robots []*Robot, err error) {
	for i := range e.config.Nodes {
		c := e.policyConfig(dir, policy)
		if database != "" {
			c.Database, c.Name = database, fmt.Sprint("node", i)
			c.Dir = filepath.Join(dir, c.Name)
			if err := os.MkdirAll(c.Dir, 0o700); err != nil {
				return nil, errors.Join(err, stopAll(robots))
			}
		}
		r, err := StartRobot(ctx, c)
		if err != nil {
			return nil, errors.Join(err, stopAll(robots))
		}
		robots = append(robots, r)
	}
	return robots, nil
}

// anyEnded is closed when one of them has ended.
func anyEnded(robots []*Robot) <-chan struct{} {
	out := make(chan struct{})
	var once sync.Once
	for _, r := range robots {
		go func() {
			<-r.Ended() // at the latest by stopAll
			once.Do(func() { close(out) })
		}()
	}
	return out
}

func stopAll(robots []*Robot) (err error) {
	for _, r := range robots {
		err = errors.Join(err, r.Stop())
	}
	return err
}

// policyConfig is the one of a policy.
func (e *Experiment) policyConfig(dir, policy string) RobotConfig {
	c := RobotConfig{Dir: dir, Policy: policy, Budget: e.config.Budget, Agents: e.config.Hosts, Log: e.config.Log}
	if e.config.Known {
		c.Rates = e.site.pageChangeRate
	}
	for h := range e.config.Hosts {
		c.Sources = append(c.Sources, fmt.Sprintf("http://127.0.0.%d:%d/", h+1, e.site.port))
	}
	return c
}

// parts is into how many the time that is measured is divided, to show how a
// robot that learns comes on.
const parts = 4

// measureRow measures what the robot knew.
func (e *Experiment) measureRow(row *Row) {
	warm, end := e.config.Warm.Seconds(), (e.config.Warm + e.config.Measure).Seconds()
	var requests int
	row.Freshness, row.Age, requests = e.site.measureKnowledge(warm, end)
	row.Requests = float64(requests) / (end - warm)
	for i := range parts {
		from := warm + (end-warm)*float64(i)/parts
		f, _, _ := e.site.measureKnowledge(from, from+(end-warm)/parts)
		row.Parts = append(row.Parts, f)
	}
}

// averageEstimates takes the mean of what the robot says of itself, over the time that is
// measured.
func (e *Experiment) averageEstimates(ctx context.Context, n *app.Node) (freshness, age float64) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	count := 0.
	for {
		select {
		case <-ctx.Done():
			if count > 0 {
				freshness, age = freshness/count, age/count
			}
			return freshness, age
		case <-t.C:
		}
		if time.Since(e.site.began) < e.config.Warm {
			continue
		}
		if s, err := n.Status(ctx); err == nil {
			freshness, age, count = freshness+s.Freshness, age+s.Age.Seconds(), count+1
		}
	}
}

// sendSignals tells the robot of changes as they happen.
func (e *Experiment) sendSignals(ctx context.Context, n *app.Node) {
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
			if v := e.site.versionAt(page, now); v > next[page] {
				next[page] = v
				events = append(events, signal.Event{URL: e.site.pageAddress(page)})
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

// predictOutcome is what theory gives a policy that knows the rates.
func (e *Experiment) predictOutcome(policy string, told bool) *Outcome {
	switch policy { // what they come to
	case "greedy":
		policy = "fixed-optimal"
	case "sweep":
		policy = "uniform"
	case "most-likely-changed": // visits where the chance of a change is the same for all
		policy = "proportional"
	}
	p, ok := revisit.Policies()[policy]
	if !ok {
		return nil
	}
	items := make([]revisit.Item, len(e.site.rates))
	for i, d := range e.site.rates {
		items[i] = revisit.Item{Importance: 1, Rate: d, Signals: told}
	}
	plan, err := revisit.New(p, items, e.config.Budget)
	if err != nil {
		return nil
	}
	o := &Outcome{Freshness: plan.Freshness}
	if !math.IsInf(plan.Age, 0) {
		o.Age = &plan.Age
	}
	return o
}
