package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/render"
	"github.com/freshet/freshet/share/source"
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
		Agents: console.AgentCount{Fetch: len(r.Agents)},
		Pages:  st.States[store.OK], URLs: st.URLs, Queue: st.New, Hosts: st.Hosts, HostsWaiting: max(0, st.Due-int64(st.Leases)),
		Fetches: r.Answers, PagesPerSecond: r.Rate, Unchanged: r.Unchanged, Bytes: r.Bytes, Errors: r.Errors, Skipped: r.SkippedTexts(),
		Indexed: int64(ix.Documents), IndexQueue: lag, IndexError: n.indexer.Problem(), IndexExcluded: n.indexer.Excluded(),
		Shares:  statusOf(n.files),
		Sources: redactSources(n.sources), Throttle: n.throttleStatus(lag),
	}
	n.freshnessStatus(s)
	n.renderStatus(s, r)
	s.Work = append(s.Work, r.Agents...)
	if err := n.parts.Space.Check(); err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	switch err := renderOff(&n.config.Render); {
	case errors.Is(err, render.ErrSandbox):
		s.Warnings = append(s.Warnings, err.Error())
	case n.render != nil && n.config.Render.NoSandbox && n.config.Render.Remote == "":
		s.Warnings = append(s.Warnings, "Chromium runs without its sandbox (render.no_sandbox): run freshet as a user without that key, or set render.mode: off")
	}
	n.addOtherNodes(s)
	for _, t := range r.Traps {
		s.Traps = append(s.Traps, console.Trap{Kind: string(t.Kind), Count: t.Count, Example: t.Example})
	}
	for _, f := range r.Failures {
		s.Failed = append(s.Failed, console.Failure(f))
	}
	slices.SortFunc(s.Failed, func(a, b console.Failure) int { return cmp.Compare(a.Kind, b.Kind) })
	s.Signals = n.trust()
	slices.SortFunc(s.Traps, func(a, b console.Trap) int { return cmp.Compare(b.Count, a.Count) })
	return s, nil
}

// redactSources returns sources without the passwords of their URLs.
func redactSources(sources []console.Source) []console.Source {
	out := slices.Clone(sources)
	for i := range out {
		out[i].URL = weburl.Redact(out[i].URL)
	}
	return out
}

// SetAgents implements console.Operator.
func (n *Node) SetAgents(ctx context.Context, fetch, render *int) error {
	if render != nil {
		if n.render == nil && *render != 0 {
			return renderOff(&n.config.Render)
		}
		if n.render != nil {
			n.render.Pool.SetTabs(*render)
		}
	}
	if fetch == nil {
		return nil
	}
	if err := n.parts.Cluster.SetAgentLimit(ctx, *fetch); err != nil {
		return err
	}
	n.robot.Wake()
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

// addShare gives a further share to the robot, if the process has one. Who may add
// sources is not one who may read this machine's files, nor may he show what needs a
// login to those who search without.
func (n *Node) addShare(ctx context.Context, s console.Source) error {
	shown := weburl.Redact(s.URL)
	switch {
	case source.IsLocal(s.URL):
		return fmt.Errorf("%s: folders of this machine are read only if the configuration file names them: put it under sources there and start again", shown)
	case source.HasLogin(s.URL) && !n.config.SearchNeedsLogin():
		return fmt.Errorf("%s: a share with a login, and searching needs none: put it into the configuration file with open: true, or set console.private", shown)
	}
	if n.files == nil {
		return fmt.Errorf("%s: no share is configured; put the first one into the configuration file", shown)
	}
	if _, err := n.files.AddSource(ctx, s.URL); err != nil {
		return err
	}
	s.URL = shown
	n.mu.Lock()
	n.sources = append(n.sources, s)
	n.mu.Unlock()
	return nil
}

// Pause implements console.Operator, for all nodes of the cluster.
func (n *Node) Pause(ctx context.Context) error {
	if err := n.parts.Cluster.Pause(ctx, true); err != nil {
		return err
	}
	n.robot.Pause()
	return nil
}

// Resume implements console.Operator, for all nodes of the cluster.
func (n *Node) Resume(ctx context.Context) error {
	if err := n.parts.Cluster.Pause(ctx, false); err != nil {
		return err
	}
	n.robot.Resume()
	return nil
}

// Stop implements console.Operator, for this node alone.
func (n *Node) Stop(_ context.Context, drain bool) error {
	n.endRun(drain)
	return nil
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
