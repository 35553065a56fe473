package fresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Robot is the whole of serve (robot, planner, store, index) in a process of
// somebody's own, under a policy that divides a budget.
type Robot struct {
	*app.Node
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended
}

// RobotConfig describes a Robot.
type RobotConfig struct {
	Dir     string // data directory
	Policy  string // of crawl.policy
	Budget  float64
	Agents  int           // hosts worked at the same time
	Delay   time.Duration // least one of a host; 0: the default
	Sources []string      // addresses, one of each host
	Seeds   []weburl.URL  // pages that are known from the start
	Rates   func(weburl.URL) (float64, bool)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Log     *slog.Logger
	// Database, if not empty, is shared with other robots, each of another Name.
	Database, Name string
}

// StartRobot starts a robot that runs until Stop or the end of ctx, and returns when it
// answers, or has ended.
func StartRobot(ctx context.Context, c RobotConfig) (*Robot, error) {
	settings := c.robotSettings()
	if err := c.seedStore(ctx, settings); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	n, err := app.Open(settings, app.Options{Dir: c.Dir, AllowPrivate: true, Log: c.Log, Rates: c.Rates, Dial: c.Dial})
	if err != nil {
		cancel()
		return nil, err
	}
	r := &Robot{Node: n, cancel: cancel, ended: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		defer close(r.ended)
		r.err = n.Serve(ctx, func(string) { close(ready) })
	}()
	select {
	case <-ready:
	case <-r.ended:
	}
	return r, nil
}

// Ended is closed when the robot has ended, by itself or by Stop.
func (r *Robot) Ended() <-chan struct{} { return r.ended }

// Stop ends the robot, waits until it has, and returns what it ended with.
func (r *Robot) Stop() error {
	r.cancel()
	<-r.ended
	return r.err
}

// robotSettings returns the configuration of the robot.
func (c *RobotConfig) robotSettings() *config.Config {
	s := config.Default()
	s.Console.Listen = "127.0.0.1:0"
	s.Crawl.Policy, s.Crawl.Budget = c.Policy, c.Budget
	s.Crawl.MinRevisit, s.Crawl.MaxRevisit = 10*time.Millisecond, 24*time.Hour
	s.Crawl.Agents = c.Agents
	s.Agent.Contact = "https://freshet.example/" // the names of a served web look like public ones
	if c.Database != "" {
		s.Database, s.Node, s.Lease = c.Database, c.Name, 5*time.Second
	}
	if c.Delay > 0 {
		s.Crawl.Delay = &c.Delay
	}
	for _, u := range c.Sources {
		s.Sources = append(s.Sources, config.Source{URL: u, AllowPrivate: true})
	}
	return s
}

// seedStore puts the pages that are known from the start into the store.
func (c *RobotConfig) seedStore(ctx context.Context, settings *config.Config) (err error) {
	if len(c.Seeds) == 0 {
		return nil
	}
	parts, err := app.OpenParts(ctx, c.Dir, settings, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	found := make([]store.Found, len(c.Seeds))
	for i, u := range c.Seeds {
		found[i] = store.Found{URL: u, Order: 1}
	}
	if _, err := parts.Store.Add(ctx, found); err != nil {
		return fmt.Errorf("pages of the robot: %w", err)
	}
	return nil
}
