package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/internal/pgload"
	"github.com/freshet/freshet/internal/usage"
	"github.com/freshet/freshet/lab/jsweb"
	"github.com/freshet/freshet/render"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/weburl"
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
	st, err := local.Open(filepath.Join(dir, "store"), local.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	warc, err := archive.Open(archive.Config{Dir: filepath.Join(dir, "warc")})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, warc.Close()) }()
	client, err := fetch.New(fetch.Config{UserAgent: "freshet-bench", Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	config := crawl.Config{
		Store: st, Archive: warc, Fetch: client, Log: a.Log, Agents: a.Fetch, Once: true, Canon: weburl.DefaultCanon,
		Ordering:   crawl.Orderings()["host-balanced"](), // else few agents see few hosts in the time of a row
		DelayGiven: true, DelayFactor: 1e-9,              // the thesis's robots did not wait either; the web has one connection a host
	}
	var found []store.Found
	for _, s := range a.Web.Seeds() {
		u, err := weburl.Parse(s)
		if err != nil {
			return nil, err
		}
		scope, err := crawl.NewScope(u, "host", 0, nil, nil)
		if err != nil {
			return nil, err
		}
		config.Scopes.Add(scope)
		found = append(found, store.Found{URL: u, Order: 1})
	}
	if _, err := st.Add(ctx, found); err != nil {
		return nil, err
	}
	var r *render.Renderer
	if a.Render > 0 {
		pool := render.NewPool(render.Config{Client: client, Path: a.Chromium, Tabs: a.Render, NoSandbox: os.Geteuid() == 0})
		defer pool.Close()
		if err := pool.Available(); err != nil {
			return nil, err
		}
		r = &render.Renderer{Chooser: render.NewChooser(st, render.Rules{All: a.All, LinksOnly: a.LinksOnly}), Pool: pool}
		if err := warmBrowser(ctx, pool); err != nil {
			return nil, err
		}
		config.Render = r
	}
	robot := crawl.New(config)
	if a.Time > 0 {
		timer := time.AfterFunc(a.Time, robot.Drain)
		defer timer.Stop()
	}
	start, cpu := time.Now(), pgload.Own()
	var browser time.Duration
	if r != nil {
		browser = r.Pool.Stats().CPU
	}
	if err := robot.Run(ctx); err != nil {
		return nil, err
	}
	row = &AgentsRow{Fetch: a.Fetch, Render: a.Render, Seconds: time.Since(start).Seconds()}
	s := robot.Status()
	stats, err := st.Stats(ctx)
	if err != nil {
		return nil, err
	}
	row.Visited, row.Found, row.Hosts, row.Rendered, row.Only, row.Bytes = s.Pages, stats.URLs, stats.Hosts, s.Rendered, s.Gained, s.Bytes
	row.PerSecond, row.RenderedShare, row.OnlyShare = float64(row.Visited)/row.Seconds, shareOf(row.Rendered, row.Visited), shareOf(row.Only, row.Found)
	if r != nil {
		row.Scripts, row.Examined = r.Scripts()
		used := r.Pool.Stats()
		row.Memory, row.CPU = used.Memory, (used.CPU - browser).Seconds()
	}
	row.CPU += pgload.Own() - cpu
	row.Memory += residentMemory()
	row.Pages, row.Why = map[string]bool{}, map[string]string{}
	return row, st.Pages(ctx, func(p *store.Page) error {
		row.Pages[p.URL], row.Why[p.URL] = p.Rendered, p.Why
		return nil
	})
}

// warmBrowser starts the browser before the clock starts.
func warmBrowser(ctx context.Context, p *render.Pool) error {
	u, err := weburl.Parse("http://warm.test/")
	if err != nil {
		return err
	}
	_, err = p.Render(ctx, &render.Page{URL: u, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<p>")})
	return err
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
