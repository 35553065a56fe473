package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/internal/pgload"
	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// Nodes is one crawl of a test web by so many processes that share a database,
// from its seeds to its last page.
type Nodes struct {
	Nodes    int           // processes
	Agents   int           // of each
	Latency  time.Duration // median time before an answer of the web
	Sites    int           // hosts of the web; 0: 12 an agent, 40 at least
	Pages    int           // of a host; default 4
	Database string        // a server on which databases may be made
	Program  string        // freshet
	Index    bool          // index the pages, too
}

// NodesRow is what came of it. Rates are of the middle three quarters of the
// requests: neither start nor end.
type NodesRow struct {
	Nodes     int     `json:"nodes"`
	Agents    int     `json:"agents_each"`
	Pages     int     `json:"pages"`
	Again     int     `json:"requests_of_a_page_again"`
	Overlaps  int     `json:"overlaps"` // requests to a host that another had not ended
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"requests_per_second"`
	AtOnce    float64 `json:"requests_at_once"` // in the mean
	// CPU milliseconds a page, start and end of the processes included.
	Robots float64 `json:"robots_cpu_ms_per_page"`
	Server float64 `json:"database_cpu_ms_per_page"` // 0: it is on another machine
	Web    float64 `json:"web_cpu_ms_per_page"`
	Busy   float64 `json:"cpu_busy"` // share of the machine's CPU that was used, by anybody, in the middle
	// Of the database's statistics (pg_stat_database).
	Commits float64 `json:"commits_per_page"`
	Log     float64 `json:"log_bytes_per_page"`
}

// Run crawls.
func (n *Nodes) Run(ctx context.Context) (row *NodesRow, err error) {
	if n.Pages <= 0 {
		n.Pages = 4
	}
	if n.Sites <= 0 { // a host rests five response times after each: more hosts than agents by far
		n.Sites = max(40, 12*n.Nodes*n.Agents)
	}
	dir, err := os.MkdirTemp("", "freshet-nodes-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := MakeDatabase(ctx, n.Database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Drop()) }()
	file, err := os.Create(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	web, log, err := n.serveWeb(file)
	if err != nil {
		return nil, err
	}
	defer web.Close()
	before, err := pgload.Read(ctx, db.Address)
	if err != nil {
		return nil, err
	}
	watch := watchMachine()
	own, start := pgload.Own(), time.Now()
	robots, err := n.crawlWithNodes(ctx, dir, db.Address, web)
	took, own := time.Since(start), pgload.Own()-own
	machine := watch()
	if err != nil {
		return nil, err
	}
	after, err := pgload.Read(ctx, db.Address)
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	row = &NodesRow{Nodes: n.Nodes, Agents: n.Agents, Seconds: took.Seconds()}
	if err := row.countTruth(file.Name(), machine); err != nil {
		return nil, err
	}
	pages := float64(max(row.Pages, 1))
	did := after.Since(before)
	row.Robots, row.Web, row.Server = 1000*robots/pages, 1000*own/pages, 1000*did.CPU/pages
	row.Commits, row.Log = float64(did.Commits)/pages, float64(did.Log)/pages
	if want := n.Sites * n.Pages; row.Pages != want {
		return row, fmt.Errorf("%d of %d pages were fetched", row.Pages, want)
	}
	return row, nil
}

// serveWeb starts the web.
func (n *Nodes) serveWeb(file *os.File) (*testweb.Server, *truth.Log, error) {
	pages, sites := uint64(n.Sites*n.Pages), uint64(n.Sites)
	log, err := truth.NewLog(file, truth.Head{Record: truth.Record{Time: time.Now()}, Pages: pages, Hosts: sites, Seed: 5, Sites: sites})
	if err != nil {
		return nil, nil, err
	}
	b, err := behaviour.Parse("", []byte("latency: {median: "+n.Latency.String()+", spread: 1.3}"))
	if err != nil {
		return nil, nil, err
	}
	web, err := testweb.New(testweb.Config{Pages: pages, Layout: testweb.Even{Pages: pages, Sites: sites}, Seed: 5, Behaviours: b, Proxy: "127.0.0.1:0", Truth: log})
	return web, log, err
}

// crawlWithNodes runs the processes and returns what CPU they used, in seconds.
func (n *Nodes) crawlWithNodes(ctx context.Context, dir, database string, web *testweb.Server) (cpu float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seeds := filepath.Join(dir, "seeds")
	if err := os.WriteFile(seeds, []byte(strings.Join(web.Seeds(n.Sites), "\n")), 0o600); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n.Nodes {
		name := fmt.Sprint("node", i)
		args := []string{
			"--data", filepath.Join(dir, name), "--quiet", "--json", "crawl", "--database", database, "--node", name, "--allow-private", "--scope", "any",
			"--agents", fmt.Sprint(n.Agents), "--delay", "10ms", "--proxy", "http://" + web.ProxyAddr(), "--seeds", seeds, "--lease", "10s",
		}
		if !n.Index {
			args = append(args, "--no-index")
		}
		wg.Go(func() {
			var stderr bytes.Buffer
			cmd := exec.CommandContext(ctx, n.Program, args...)
			cmd.Stderr, cmd.WaitDelay = &stderr, 5*time.Second
			e := cmd.Run()
			mu.Lock()
			defer mu.Unlock()
			if e != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w: %s", name, e, strings.TrimSpace(stderr.String())))
				cancel()
				return
			}
			cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		})
	}
	wg.Wait()
	return cpu, err
}

// countTruth reads the truth.
func (row *NodesRow) countTruth(path string, machine []sample) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := truth.NewReader(file)
	if err != nil {
		return err
	}
	type span struct{ from, to time.Time }
	var all []span
	seen, last := map[string]bool{}, map[string]time.Time{}
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		s := span{rec.Time, rec.Time.Add(time.Duration(rec.Duration * float64(time.Second)))}
		all = append(all, s)
		if s.from.Before(last[rec.Host]) {
			row.Overlaps++
		}
		last[rec.Host] = s.to
		if rec.Kind != truth.Page {
			continue
		}
		if key := rec.Host + rec.Path; seen[key] {
			row.Again++
		} else {
			seen[key] = true
		}
	}
	row.Pages = len(seen)
	if len(all) < 16 {
		return fmt.Errorf("%d requests are too few to measure", len(all))
	}
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	first, end := all[len(all)/8].from, all[len(all)*7/8].from
	middle := end.Sub(first).Seconds()
	row.PerSecond = float64(len(all)) * .75 / middle
	for _, s := range all {
		if from, to := laterTime(s.from, first), earlierTime(s.to, end); from.Before(to) {
			row.AtOnce += to.Sub(from).Seconds() / middle
		}
	}
	row.Busy = busyShare(machine, first, end)
	return nil
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlierTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Database is an empty database for one measurement.
type Database struct {
	Address      string
	server, name string
}

// MakeDatabase makes an empty database on a server; Drop removes it.
func MakeDatabase(ctx context.Context, server string) (*Database, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("database %q: want postgres://user@host:port/name", server)
	}
	d := &Database{server: server, name: fmt.Sprintf("freshet_bench_%d_%d", os.Getpid(), time.Now().UnixMicro()%1e6)}
	u.Path = "/" + d.name
	d.Address = u.String()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "create database "+d.name)
	return d, err
}

// Drop removes the database.
func (d *Database) Drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "drop database "+d.name)
	return err
}
