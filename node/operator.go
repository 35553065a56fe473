package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// statusPatience is how long the store may take to tell how things are: who looks
// at a page or gathers metrics learns that it is away.
const statusPatience = 5 * time.Second

// Status implements console.Operator.
func (n *Node) Status(ctx context.Context) (*console.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	st, err := n.parts.Store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	r := n.robot.Status()
	ix, err := n.parts.Engine.Stats(ctx)
	if err != nil {
		return nil, err
	}
	lag, err := n.indexer.Lag(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &console.Status{
		State: r.State, Node: n.config.Node, Started: n.started, Now: time.Now(),
		Agents: console.AgentCount{Fetch: len(r.Agents) - r.Resting, FetchLimit: r.Limit, Waiting: r.Resting},
		Pages:  st.States[store.OK], URLs: st.URLs, Queue: st.New, Hosts: st.Hosts, HostsWaiting: max(0, st.Due-int64(st.Leases)),
		Fetches: r.Answers, PagesPerSecond: r.Rate, Unchanged: r.Unchanged, Bytes: r.Bytes, Errors: r.Errors, Skipped: r.Skipped,
		Indexed: int64(ix.Documents), IndexQueue: lag, IndexError: n.indexer.Problem(),
		Freshness: n.fresh.all.freshness, Age: n.fresh.all.age, Top: n.fresh.hosts, Needed: n.fresh.needed,
		Shares:  statusOf(n.files),
		Sources: slices.Clone(n.sources), Throttle: n.throttleStatus(lag),
	}
	n.renderStatus(s, r)
	for _, a := range r.Agents {
		s.Work = append(s.Work, console.Agent{Name: a.Name, Zone: a.Zone, Since: a.Since, Last: a.Last, Queue: a.Queue, Delay: a.Delay, Waits: a.Waits})
	}
	if err := n.parts.Space.Check(); err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	if n.render != nil && os.Geteuid() == 0 {
		s.Warnings = append(s.Warnings, "Chromium runs without its sandbox, because freshet runs as root: run it as a user, or set render.mode to off")
	}
	n.others(s)
	slices.SortFunc(s.Work, func(a, b console.Agent) int { return cmp.Compare(a.Zone, b.Zone) })
	for _, t := range r.Traps {
		s.Traps = append(s.Traps, console.Trap{Kind: t.Kind, Count: t.Count, Example: t.Example})
	}
	for _, f := range r.Failures {
		s.Failed = append(s.Failed, console.Failure(f))
	}
	slices.SortFunc(s.Failed, func(a, b console.Failure) int { return cmp.Compare(a.Kind, b.Kind) })
	s.Signals = n.trust()
	slices.SortFunc(s.Traps, func(a, b console.Trap) int { return cmp.Compare(b.Count, a.Count) })
	return s, nil
}

// SetAgents implements console.Operator.
func (n *Node) SetAgents(ctx context.Context, fetch, render *int) error {
	if render != nil {
		if n.render == nil && *render != 0 {
			return errors.New("rendering is off: set render.mode to auto or all")
		}
		if n.render != nil {
			n.render.Pool.SetTabs(*render)
		}
	}
	if fetch != nil && n.member != nil {
		return n.member.SetLimit(ctx, *fetch)
	}
	if fetch != nil {
		n.robot.SetAgents(*fetch)
	}
	return nil
}

// AddSource implements console.Operator.
func (n *Node) AddSource(ctx context.Context, s console.Source) error {
	src := config.Source{URL: s.URL, Scope: s.Scope, Depth: s.Depth}
	if src.Share() {
		return n.addShare(ctx, s)
	}
	u, err := weburl.Parse(s.URL)
	if err != nil {
		return err
	}
	if err := n.takeSource(s); err != nil {
		return err
	}
	if err := n.saveSource(ctx, s); err != nil {
		return err
	}
	if err := n.takeUpAgain(ctx, s); err != nil {
		return err
	}
	if _, err := n.parts.Store.Add(ctx, []store.Found{{URL: u, Order: 1}}); err != nil {
		return err
	}
	n.robot.Wake()
	return nil
}

// addShare gives a further share to the robot, if the process has one.
func (n *Node) addShare(ctx context.Context, s console.Source) error {
	if n.files == nil {
		return fmt.Errorf("%s: no share is configured; put the first one into the configuration file", s.URL)
	}
	if _, err := n.files.AddSource(ctx, s.URL); err != nil {
		return err
	}
	n.mu.Lock()
	n.sources = append(n.sources, s)
	n.mu.Unlock()
	return nil
}

// Pause implements console.Operator: of all nodes on a database.
func (n *Node) Pause(ctx context.Context) error {
	if n.member != nil {
		if err := n.parts.Shared.Pause(ctx, true); err != nil {
			return err
		}
	}
	n.robot.Pause()
	return nil
}

// Resume implements console.Operator: of all nodes on a database.
func (n *Node) Resume(ctx context.Context) error {
	if n.member != nil {
		if err := n.parts.Shared.Pause(ctx, false); err != nil {
			return err
		}
	}
	n.robot.Resume()
	return nil
}

// Stop implements console.Operator, for this node alone.
func (n *Node) Stop(_ context.Context, drain bool) error {
	n.end(drain)
	return nil
}

// end ends the node. Draining ends when the pages under way are committed;
// without it they are given up.
func (n *Node) end(drain bool) {
	if !drain {
		n.stop()
		return
	}
	n.robot.Drain()
	go func() { // ends with the process: Run waits for the robot
		for len(n.robot.Status().Agents) > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		n.stop()
	}()
}

// Ready implements console.Operator.
func (n *Node) Ready(ctx context.Context) error {
	if p := n.indexer.Problem(); p != "" {
		return fmt.Errorf("indexer: %s", p)
	}
	if err := n.parts.Space.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	_, err := n.parts.Store.Stats(ctx)
	return err
}

// readyTime is how long the store may take to answer a process that is ready.
const readyTime = 3 * time.Second
