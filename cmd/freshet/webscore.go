package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/score"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// webScoreCmd judges a robot.
type webScoreCmd struct {
	Truth string `arg:"" help:"Truth log written by web serve."`
	Web   string `help:"Folder of the stored graph, if it has moved since." placeholder:"DIR"`
	Agent string `help:"Judge only requests whose user agent contains this." placeholder:"TEXT"`
	Pages uint64 `help:"Number of pages that exist, if the log does not say." placeholder:"N"`
}

// Run prints the score card.
func (c *webScoreCmd) Run(g *globals) error {
	f, err := os.Open(c.Truth)
	if err != nil {
		return usagef("web score: %w", err)
	}
	defer f.Close()
	r, err := truth.NewReader(f)
	if err != nil {
		return usagef("%s: %w", c.Truth, err)
	}
	opt := score.Options{Agent: c.Agent, Pages: c.Pages}
	if opt.Graph, err = c.graph(&r.Head); err != nil {
		return err
	}
	card, err := score.Read(r, opt)
	if err != nil {
		return usagef("%s: %w", c.Truth, err)
	}
	if g.JSON {
		return g.printJSON(card)
	}
	return printCard(g.stdout, card)
}

// graph returns the graph that was served, nil if it is not known.
func (c *webScoreCmd) graph(h *truth.Head) (score.Graph, error) {
	if c.Web != "" || h.Graph != "" {
		dir := c.Web
		if dir == "" {
			dir = h.Graph
		}
		return openStored(dir)
	}
	if h.Pages == 0 {
		return nil, nil
	}
	web, err := testweb.NewWeb(testweb.Config{Pages: h.Pages, Sites: h.Sites, Seed: h.Seed})
	if err != nil {
		return nil, usagef("%s: %w", c.Truth, err)
	}
	return web.Graph(), nil
}

// printCard prints the card for people.
func printCard(w io.Writer, c *score.Card) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-20s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("robot", "%s", strings.Join(slices.Sorted(maps.Keys(c.Agents)), ", "))
	row("requests", "%d in %.1f s, %d bytes", c.Requests, c.Seconds, c.Bytes)
	row("pages", "%d of %d on %d hosts", c.Pages, c.Exist, c.Hosts)
	row("coverage", "%.1f %%", 100*c.Coverage)
	if c.Reachable > 0 {
		row("  of reachable", "%.1f %% of %d", 100*c.CoverageReachable, c.Reachable)
	}
	row("duplicates", "%d, near copies %d", c.Duplicates, c.NearCopies)
	row("traps", "%d pages, soft 404 %d, dead links %d", c.TrapPages, c.Soft404, c.DeadLinks)
	row("overlaps", "%d", c.Overlaps)
	row("intervals", "least %.3f s, median %.3f s", c.MinInterval, c.MedianInterval)
	row("robots.txt", "%d violations, %d hosts unread, %d delays not kept", c.RobotsViolations, c.RobotsUnread, c.DelayViolations)
	row("revisits", "%d, of them %d answered 304", c.Revisits, c.NotModified)
	row("wasted bytes", "%d (%.1f %%)", c.WastedBytes, 100*float64(c.WastedBytes)/float64(max(c.Bytes, 1)))
	for _, why := range slices.Sorted(maps.Keys(c.Wasted)) {
		row("  "+why, "%d", c.Wasted[why])
	}
	row("freshness", "mean %.3f, at the end %.3f", c.FreshnessMean, c.FreshnessEnd)
	for _, at := range slices.Sorted(maps.Keys(c.PageRankAt)) {
		row("  PageRank at "+at, "%.4f", c.PageRankAt[at])
	}
	if c.KendallTau != nil {
		row("Kendall's tau", "%.3f", *c.KendallTau)
	}
	if c.Cut {
		row("note", "the log ends within a line, as after a crash; the line was left out")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
