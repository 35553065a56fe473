package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/internal/pgload"
	"github.com/freshet/freshet/internal/usage"
	"github.com/freshet/freshet/lab/jsweb"
	"github.com/freshet/freshet/store"
)

// Agents is one crawl of a web with scripts by so many fetch and render agents.
type Agents struct {
	Web       *jsweb.Web
	Fetch     int
	Render    int           // 0: without a browser
	All       bool          // render every page
	LinksOnly bool          // text is no gain
	Time      time.Duration // the crawl is stopped after; 0: when it has all
	Chromium  string
	Log       *slog.Logger
}

// AgentsRow is what came of it.
type AgentsRow struct {
	Fetch         int     `json:"fetch_agents"`
	Render        int     `json:"render_agents"`
	Seconds       float64 `json:"seconds"`
	Visited       int64   `json:"urls_visited"`
	PerSecond     float64 `json:"urls_per_second"`
	Found         int64   `json:"urls_found"`
	Hosts         int64   `json:"hosts"`
	Rendered      int64   `json:"rendered"`
	RenderedShare float64 `json:"rendered_share"` // of visited
	Only          int64   `json:"urls_only_by_rendering"`
	OnlyShare     float64 `json:"urls_only_by_rendering_share"` // of found
	Scripts       int64   `json:"scripts_fetched"`
	Examined      int64   `json:"scripts_examined"`
	CPU           float64 `json:"cpu_seconds"` // of the robot and its browser, and of the web, which is served by the same process
	Memory        int64   `json:"memory"`      // resident at the end, of both
	Bytes         int64   `json:"bytes"`       // received

	Pages map[string]bool   `json:"-"` // known in the end; true for a rendered one
	Why   map[string]string `json:"-"` // reasons by URL
}

// Run crawls.
func (a *Agents) Run(ctx context.Context) (row *AgentsRow, err error) {
	dir, err := os.MkdirTemp("", "freshet-agents-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	address, stop, err := serveWeb(a.Web)
	if err != nil {
		return nil, err
	}
	defer stop()
	cfg := a.settings()
	node, err := app.Open(cfg, app.Options{Dir: dir, Log: a.Log, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	if err != nil {
		return nil, err
	}
	if a.Time > 0 { // the end of ctx drains
		timed, cancel := context.WithTimeout(ctx, a.Time)
		defer cancel()
		ctx = timed
	}
	cpu := pgload.Own()
	report, err := node.Crawl(ctx, app.CrawlOptions{NoIndex: true})
	if err != nil {
		return nil, err
	}
	s, st := &report.Robot, &report.Store
	row = &AgentsRow{
		Fetch: a.Fetch, Render: a.Render, Seconds: report.Elapsed.Seconds(),
		Visited: s.Pages, Found: st.URLs, Hosts: st.Hosts, Rendered: s.Rendered, Only: s.Gained, Bytes: s.Bytes,
		Scripts: report.Browser.Scripts, Examined: report.Browser.Examined,
		Memory: report.Browser.Memory + residentMemory(), CPU: report.Browser.CPU.Seconds() + pgload.Own() - cpu,
	}
	row.PerSecond, row.RenderedShare, row.OnlyShare = float64(row.Visited)/row.Seconds, shareOf(row.Rendered, row.Visited), shareOf(row.Only, row.Found)
	return row, row.readPages(context.WithoutCancel(ctx), dir, cfg)
}

// settings returns the settings of the crawl. The robots of the thesis did not wait either: the web
// has one connection a host.
func (a *Agents) settings() *config.Config {
	c := config.Default()
	c.Agent.Name = "freshet-bench"
	c.Crawl.Agents, c.Crawl.Delay = a.Fetch, new(time.Duration)
	c.Crawl.Ordering = "host-balanced" // else few agents see few hosts in the time of a row
	c.Render.Mode, c.Render.LinksOnly = "off", a.LinksOnly
	if a.Render > 0 {
		c.Render.Mode, c.Render.Agents, c.Render.Chromium, c.Render.NoSandbox = "auto", a.Render, a.Chromium, os.Geteuid() == 0
		if a.All {
			c.Render.Mode = "all"
		}
	}
	for _, s := range a.Web.Seeds() {
		c.Sources = append(c.Sources, config.Source{URL: s, AllowPrivate: true})
	}
	return c
}

// readPages reads from the store which pages are known, and why they were rendered.
func (r *AgentsRow) readPages(ctx context.Context, dir string, cfg *config.Config) (err error) {
	parts, err := app.OpenParts(ctx, dir, cfg, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	r.Pages, r.Why = map[string]bool{}, map[string]string{}
	return parts.Store.Pages(ctx, func(p *store.Page) error {
		r.Pages[p.URL], r.Why[p.URL] = p.Rendered, p.Why
		return nil
	})
}

func shareOf(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// serveWeb serves a web on loopback, whatever host is asked for.
func serveWeb(h http.Handler) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("bench: serve: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	var done sync.WaitGroup
	done.Go(func() { _ = srv.Serve(l) }) // ends with stop
	return l.Addr().String(), func() { _ = srv.Close(); done.Wait() }, nil
}

// residentMemory is the memory of this process, in bytes.
func residentMemory() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if err != nil || len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// Usage returns what the crawl used, for prices.
func (r *AgentsRow) Usage() usage.Crawl {
	return usage.Crawl{Pages: r.Visited, CPUSeconds: r.CPU, MemoryBytes: r.Memory, Seconds: r.Seconds, Bytes: r.Bytes}
}

// Decision is how well the pages to render were chosen.
type Decision struct {
	Precision float64 `json:"precision"`      // of the rendered pages, those that needed it
	Recall    float64 `json:"recall"`         // of the pages that needed it, those rendered
	URLs      float64 `json:"recall_of_urls"` // of the URLs that only rendering finds, those found
	Renders   int64   `json:"renders"`
	Oracle    int64   `json:"oracle"` // renders of one who knows
	Ratio     float64 `json:"renders_of_oracle"`
}

// Judge compares a crawl with the truth.
func Judge(row *AgentsRow, t *jsweb.Truth, linksOnly bool) Decision {
	needed := t.Needed
	if linksOnly {
		needed = t.Links
	}
	d := Decision{Renders: row.Rendered, Oracle: int64(len(needed))}
	var right, rendered, got int64
	for u, r := range row.Pages {
		if r {
			rendered++
			if needed[u] {
				right++
			}
		}
		if t.Only[u] {
			got++
		}
	}
	d.Precision, d.Recall = shareOf(right, rendered), shareOf(right, d.Oracle)
	d.URLs, d.Ratio = shareOf(got, int64(len(t.Only))), shareOf(d.Renders, d.Oracle)
	return d
}
