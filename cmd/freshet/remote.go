package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/internal/command"
)

// openCmd prints a link for a browser.
type openCmd struct{ command.Remote }

// Run asks the running serve for a link that logs one browser in.
func (c *openCmd) Run(ctx context.Context, g *command.Globals) error {
	link, err := c.LoginLink(ctx, g)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(map[string]string{"link": link})
	}
	_, err = fmt.Fprintln(g.Stdout, link)
	return err
}

type statusCmd struct{ nodesRemote }

// Run prints how a running serve does.
func (c *statusCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.usesDatabase() {
		s, err := c.databaseStatus(ctx)
		if err != nil {
			return fmt.Errorf("status: %w", err)
		}
		if g.JSON {
			return g.PrintJSON(s)
		}
		printFleet(g.Stdout, s)
		return nil
	}
	var s console.Status
	if err := c.Call(ctx, g, http.MethodGet, "/api/status", nil, &s); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(s)
	}
	fmt.Fprintf(g.Stdout, "%s, up %s\n", s.State, s.Now.Sub(s.Started).Round(time.Second))
	fmt.Fprintf(g.Stdout, "pages      %d of %d URLs on %d hosts, %d never visited\n", s.Pages, s.URLs, s.Hosts, s.Queue)
	fmt.Fprintf(g.Stdout, "fetching   %d of %d agents, %.1f pages/s, %d visits unchanged\n", s.Agents.Fetch, s.Agents.FetchLimit, s.PagesPerSecond, s.Unchanged)
	if r := s.Render; r.Available || r.Waiting > 0 || r.Rendered > 0 {
		fmt.Fprintf(g.Stdout, "rendering  %d of %d agents, %d pages, %d URLs found only by that, %d pages wait\n", s.Agents.Render, s.Agents.RenderLimit, r.Rendered, r.Gained, r.Waiting)
		for i, w := range r.Hosts {
			if i == maxWaitLines {
				break
			}
			fmt.Fprintf(g.Stdout, "           %d of %s: %s\n", w.Pages, w.Host, w.Why)
		}
	}
	if s.Render.Why != "" {
		fmt.Fprintf(g.Stdout, "rendering  none: %s\n", s.Render.Why)
	}
	fmt.Fprintf(g.Stdout, "index      %d documents, %d waiting\n", s.Indexed, s.IndexQueue)
	for _, kind := range slices.Sorted(maps.Keys(s.IndexExcluded)) {
		fmt.Fprintf(g.Stdout, "index      excluded until fetched again: %s %d\n", kind, s.IndexExcluded[kind])
	}
	for _, h := range s.Shares {
		fmt.Fprintf(g.Stdout, "share      %s %s, %d files in %d parts", h.Host, h.State, h.Files, h.Parts)
		if h.Error != "" {
			fmt.Fprintf(g.Stdout, ", fails: %s", h.Error)
		}
		fmt.Fprintln(g.Stdout)
	}
	fmt.Fprintf(g.Stdout, "freshness  %.1f %%, mean age %s (estimated)\n", 100*s.Freshness, s.Age.Round(time.Second))
	for _, f := range s.Failed {
		fmt.Fprintf(g.Stdout, "error      %s %d, such as %s: %s\n", f.Kind, f.Count, f.Example, f.Message)
	}
	for _, h := range s.Top {
		for _, w := range h.Robots {
			fmt.Fprintf(g.Stdout, "waits      %d pages for %s (%s), asked for again in %s\n", w.Pages, w.URL, w.Why, max(0, w.Next.Sub(s.Now)).Round(time.Second))
		}
	}
	for _, t := range s.Traps {
		fmt.Fprintf(g.Stdout, "trap       %s %d, such as %s\n", t.Kind, t.Count, t.Example)
	}
	return nil
}

type agentsCmd struct {
	List agentsListCmd `cmd:"" default:"1" help:"Show the agents at work."`
	Set  agentsSetCmd  `cmd:"" help:"Change how many agents may work."`
}

type agentsListCmd struct{ nodesRemote }

// agentsAnswer is what /api/agents says.
type agentsAnswer struct {
	Agents console.AgentCount `json:"agents"`
	Work   []cluster.Agent    `json:"work"`
}

// Run lists the live agents.
func (c *agentsListCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.usesDatabase() {
		a, err := c.databaseAgents(ctx)
		if err != nil {
			return fmt.Errorf("agents: %w", err)
		}
		return a.printAgentCounts(g)
	}
	var a agentsAnswer
	if err := c.Call(ctx, g, http.MethodGet, "/api/agents", nil, &a); err != nil {
		return err
	}
	return a.printAgentCounts(g)
}

func (a *agentsAnswer) printAgentCounts(g *command.Globals) error {
	if g.JSON {
		return g.PrintJSON(a)
	}
	fmt.Fprintf(g.Stdout, "%d of %d agents fetch, %d of %d render\n", a.Agents.Fetch, a.Agents.FetchLimit, a.Agents.Render, a.Agents.RenderLimit)
	for _, w := range a.Work {
		fmt.Fprintf(g.Stdout, "%-12s %-40s queue %-6d delay %s\n", w.Name, w.Zone, w.Queue, w.Delay.Round(time.Millisecond))
	}
	return nil
}

type agentsSetCmd struct {
	nodesRemote
	Fetch  int `arg:"" help:"Agents that may fetch."`
	Render int `help:"Agents that may render." default:"-1"`
}

// Run changes the number of agents.
func (c *agentsSetCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Fetch < 0 {
		return command.Usagef("agents set %d: not negative", c.Fetch)
	}
	if c.usesDatabase() {
		if c.Render >= 0 {
			return command.Usagef("agents set --render: each node has its own; give its --address")
		}
		if err := c.withCluster(ctx, func(all cluster.Cluster) error { return all.SetAgentLimit(ctx, c.Fetch) }); err != nil {
			return fmt.Errorf("agents: %w", err)
		}
		a, err := c.databaseAgents(ctx)
		if err != nil {
			return fmt.Errorf("agents: %w", err)
		}
		return a.printAgentCounts(g)
	}
	in := map[string]int{"fetch": c.Fetch}
	if c.Render >= 0 {
		in["render"] = c.Render
	}
	var a agentsAnswer
	if err := c.Call(ctx, g, http.MethodPut, "/api/agents", in, &a); err != nil {
		return err
	}
	return a.printAgentCounts(g)
}

type sourcesCmd struct {
	List   sourcesListCmd   `cmd:"" default:"1" help:"Show the sources."`
	Add    sourcesAddCmd    `cmd:"" help:"Add a web site."`
	Remove sourcesRemoveCmd `cmd:"" help:"Take a web site back that was added to the running serve."`
}

type sourcesListCmd struct{ command.Remote }

// Run lists the sources.
func (c *sourcesListCmd) Run(ctx context.Context, g *command.Globals) error {
	var a struct {
		Sources []console.Source `json:"sources"`
	}
	if err := c.Call(ctx, g, http.MethodGet, "/api/sources", nil, &a); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(a)
	}
	for _, s := range a.Sources {
		fmt.Fprintln(g.Stdout, s.URL, s.Scope)
	}
	return nil
}

type sourcesAddCmd struct {
	command.Remote
	URL   string `arg:"" help:"Where to start."`
	Scope string `help:"host, domain, prefix or any." enum:"host,domain,prefix,any" default:"host"`
	Depth int    `help:"Most links from the start; 0 is no limit."`
}

// Run adds a source.
func (c *sourcesAddCmd) Run(ctx context.Context, g *command.Globals) error {
	return c.Call(ctx, g, http.MethodPost, "/api/sources", console.Source{URL: c.URL, Scope: c.Scope, Depth: c.Depth}, nil)
}

type sourcesRemoveCmd struct {
	command.Remote
	URL  string `arg:"" help:"As it was added (freshet sources lists them)."`
	Keep bool   `help:"Its pages stay in the index as they are; else they are taken out."`
}

// Run takes a source back. Its pages are visited no more, unless another source has
// them, too.
func (c *sourcesRemoveCmd) Run(ctx context.Context, g *command.Globals) error {
	q := url.Values{"url": {c.URL}, "keep": {strconv.FormatBool(c.Keep)}}
	return c.Call(ctx, g, http.MethodDelete, "/api/sources?"+q.Encode(), nil, nil)
}

type pauseCmd struct{ nodesRemote }

// Run pauses the robots.
func (c *pauseCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.usesDatabase() {
		return c.withCluster(ctx, func(all cluster.Cluster) error { return all.Pause(ctx, true) })
	}
	return c.Call(ctx, g, http.MethodPost, "/api/pause", nil, nil)
}

type resumeCmd struct{ nodesRemote }

// Run lets the robots go on.
func (c *resumeCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.usesDatabase() {
		return c.withCluster(ctx, func(all cluster.Cluster) error { return all.Pause(ctx, false) })
	}
	return c.Call(ctx, g, http.MethodPost, "/api/resume", nil, nil)
}

type stopCmd struct {
	nodesRemote
	Now bool `help:"Do not wait for pages under way."`
}

// Run ends a running serve.
func (c *stopCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.usesDatabase() {
		return c.withCluster(ctx, func(all cluster.Cluster) error { return all.Stop(ctx, c.Now) })
	}
	path := "/api/stop"
	if c.Now {
		path += "?now=1"
	}
	return c.Call(ctx, g, http.MethodPost, path, nil, nil)
}

type searchCmd struct {
	nodesRemote
	Query  []string `arg:"" help:"Words, \"phrases\", -without, begin*, OR, field:value."`
	Kind   string   `help:"Only this kind: web, file, audio, video, image, document, archive, program, other."`
	Limit  int      `help:"Results." default:"10"`
	Offset int      `help:"Results to skip."`
}

// Run searches, in the database that is given, or in the running serve if there
// is one, else in the data directory.
func (c *searchCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Limit < 0 || c.Offset < 0 {
		return command.Usagef("search: --limit and --offset are not negative")
	}
	if !slices.Contains(console.Kinds, c.Kind) {
		return command.Usagef("--kind: %q is none of %s", c.Kind, strings.Join(console.Kinds[1:], ", "))
	}
	q := strings.Join(c.Query, " ")
	var a console.SearchAnswer
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	_, absent := app.Address(dir)
	switch {
	case c.usesDatabase():
		err := c.withTextIndex(ctx, func(e index.Engine) error {
			res, err := c.findIn(ctx, e, dir, q)
			if err == nil {
				a = res.Answer()
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
	case c.Address == "" && absent != nil:
		res, err := c.searchLocally(ctx, dir, q)
		if err != nil {
			return err
		}
		a = res.Answer()
		if a.Total == 0 && isUnused(dir) {
			fmt.Fprintf(g.Stderr, "freshet: nothing is indexed in %s yet: freshet crawl URL or freshet scan SOURCE fills it, --data DIR chooses another\n", dir)
		}
	default:
		v := url.Values{"q": {q}, "kind": {c.Kind}, "limit": {fmt.Sprint(c.Limit)}, "offset": {fmt.Sprint(c.Offset)}}
		if err := c.Call(ctx, g, http.MethodGet, "/api/search?"+v.Encode(), nil, &a); err != nil {
			return err
		}
	}
	if g.JSON {
		return g.PrintJSON(a)
	}
	about := ""
	if a.Estimated {
		about = "about "
	}
	fmt.Fprintf(g.Stdout, "%s%d results in %.1f ms\n", about, a.Total, a.TookMS)
	for i, r := range a.Results {
		title := r.Title
		if title == "" {
			title = r.URL
		}
		fmt.Fprintf(g.Stdout, "\n%d. %s\n   %s\n", c.Offset+i+1, command.PlainText(title), command.PlainText(r.URL))
		if r.Snippet != "" {
			fmt.Fprintf(g.Stdout, "   %s\n", command.PlainText(r.Snippet))
		}
		if len(r.Copies) > 0 {
			fmt.Fprintf(g.Stdout, "   %d more copies\n", len(r.Copies))
		}
	}
	return nil
}

// searchLocally opens the index itself.
func (c *searchCmd) searchLocally(ctx context.Context, dir, q string) (*console.Results, error) {
	cfg, err := defaultConfig()
	if err != nil {
		return nil, err
	}
	e, err := app.OpenIndex(dir, cfg)
	if err != nil {
		return nil, err
	}
	res, err := c.findIn(ctx, e, dir, q)
	return res, errors.Join(err, e.Close())
}

// isUnused tells whether a data directory was never crawled or scanned into.
func isUnused(dir string) bool {
	for _, part := range []string{"store", "shares"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err == nil {
			return false
		}
	}
	return true
}

// findIn asks an index of pages, and that of files in the data directory.
func (c *searchCmd) findIn(ctx context.Context, e index.Engine, dir, q string) (_ *console.Results, err error) {
	cfg, err := defaultConfig()
	if err != nil {
		return nil, err
	}
	f := app.Finder{Engine: e, Ranking: app.RankingOf(cfg), HideOffline: cfg.Share.Offline == "hide"}
	shares, err := app.OpenShares(ctx, dir, false, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if shares != nil {
		f.Files = shares.Index
		defer func() { err = errors.Join(err, shares.Close()) }()
	}
	return f.Find(ctx, console.Request{Query: q, Kind: c.Kind, Limit: c.Limit, Offset: c.Offset})
}

// maxWaitLines is how many hosts whose pages wait for the browser are listed.
const maxWaitLines = 5
