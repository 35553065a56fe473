package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/robots"
)

type robotsCmd struct {
	Agent   string   `help:"Product token of the robot." default:"freshet"`
	File    string   `arg:"" help:"robots.txt: a file, - for standard input, or a URL."`
	Targets []string `arg:"" help:"URLs or paths to check."`
}

// robotsResult is one target's answer.
type robotsResult struct {
	URL     string `json:"url"`
	Allowed bool   `json:"allowed"`
	Line    int    `json:"line"`
	Rule    string `json:"rule"`
}

// Help explains the answer.
func (robotsCmd) Help() string {
	return "Prints for each target whether the robot may fetch it, and the line of robots.txt that decides (0: none does)."
}

// Run prints the verdict for each target.
func (c *robotsCmd) Run(ctx context.Context, g *command.Globals) error {
	f, err := c.loadRobots(ctx, g)
	if err != nil {
		return err
	}
	results := make([]robotsResult, len(c.Targets))
	for i, t := range c.Targets {
		d := f.Decide(robots.Target(t))
		results[i] = robotsResult{t, d.Allow, d.Line, d.Text}
	}
	if g.JSON {
		sitemaps := f.Sitemaps
		if sitemaps == nil {
			sitemaps = []string{}
		}
		return g.PrintJSON(map[string]any{"results": results, "crawl_delay": f.Delay.Seconds(), "sitemaps": sitemaps})
	}
	for _, r := range results {
		verdict, why := "disallowed", "nothing may be fetched while robots.txt cannot be had"
		if r.Allowed {
			verdict, why = "allowed", "no rule matches"
		}
		if r.Line > 0 {
			why = fmt.Sprintf("line %d: %s", r.Line, r.Rule)
		}
		fmt.Fprintf(g.Stdout, "%-10s  %s  (%s)\n", verdict, r.URL, why)
	}
	if f.Delay > 0 {
		fmt.Fprintln(g.Stdout, "crawl-delay:", f.Delay)
	}
	for _, s := range f.Sitemaps {
		fmt.Fprintln(g.Stdout, "sitemap:", s)
	}
	return nil
}

// loadRobots reads the file, twice as much of it as counts, for UTF-16.
func (c *robotsCmd) loadRobots(ctx context.Context, g *command.Globals) (*robots.File, error) {
	var body []byte
	var err error
	switch {
	case c.File == "-":
		body, err = io.ReadAll(io.LimitReader(g.Stdin, 2*robots.MaxSize))
	case strings.HasPrefix(c.File, "http://"), strings.HasPrefix(c.File, "https://"):
		return c.fetchRobots(ctx)
	default:
		var f *os.File
		if f, err = os.Open(c.File); err == nil {
			defer f.Close()
			body, err = io.ReadAll(io.LimitReader(f, 2*robots.MaxSize))
		}
	}
	if err != nil {
		return nil, command.Usagef("%w", err)
	}
	return robots.Parse(body, c.Agent), nil
}

// fetchRobots gets the file from a server, whose status decides as RFC 9309 says: 4xx
// and more than five redirects allow everything, 5xx nothing.
func (c *robotsCmd) fetchRobots(ctx context.Context) (*robots.File, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.File, nil)
	if err != nil {
		return nil, command.Usagef("robots.txt URL: %w", err)
	}
	req.Header.Set("User-Agent", c.Agent)
	client := http.Client{CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch robots.txt: %w", err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 500:
		return robots.DisallowAll(), nil
	case res.StatusCode >= 300:
		return &robots.File{}, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 2*robots.MaxSize))
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", c.File, err)
	}
	f := robots.Parse(body, c.Agent)
	for i, s := range f.Sitemaps {
		if u, err := res.Request.URL.Parse(s); err == nil {
			f.Sitemaps[i] = u.String()
		}
	}
	return f, nil
}
