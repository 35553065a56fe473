package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/store/postgres/pgtest"
)

// Three nodes divide one budget among the pages of a site, each planning for its
// own hosts. One is killed: the others plan for its hosts, too. The budget holds
// before and after, and no host is asked by two at once.
func TestPlannersSurvive(t *testing.T) {
	t.Parallel()
	const lease, budget, pages, sites = 2 * time.Second, 30., 120, 12
	cluster := pgtest.New(t)
	f := newFleet(t, cluster.Database(t), pages, sites, 10*time.Millisecond, lease)
	for _, name := range []string{"anna", "boris", "clara"} {
		f.serve(name, budget)
	}
	f.wait(pages)
	time.Sleep(2 * lease) // a pass over the pages, and all know each other
	window := 4 * time.Second
	// Each page comes up every four seconds, each host ten times as often.
	judge := func(what string, from, to time.Time) {
		hosts, n, nodes := map[string]bool{}, 0, map[string]bool{}
		for _, r := range f.requests() {
			if r.from.After(from) && r.from.Before(to) {
				hosts[r.host], nodes[r.node] = true, true
				n++
			}
		}
		rate := float64(n) / to.Sub(from).Seconds()
		t.Logf("%s: %.1f requests a second of %d hosts by %d nodes", what, rate, len(hosts), len(nodes))
		if len(hosts) != sites {
			t.Errorf("%s: %d of %d hosts were asked", what, len(hosts), sites)
		}
		if rate > budget*1.15 {
			t.Errorf("%s: %.1f requests a second, the budget is %.0f", what, rate, budget)
		}
	}
	from := time.Now()
	time.Sleep(window)
	judge("three nodes", from, time.Now())
	f.kill("anna")
	time.Sleep(3*lease + 3*time.Second) // until it is dead, and the next pass over the pages
	from = time.Now()
	time.Sleep(window)
	judge("after a kill", from, time.Now())
	f.alive()
	f.check(1 << 30)
}

// serve starts a node that keeps the web fresh, visiting all pages in turn.
func (f *fleet) serve(name string, budget float64) {
	f.t.Helper()
	path := filepath.Join(f.dir, name+".yaml")
	c := fmt.Sprintf("database: %s\nnode: %s\nlease: %v\nagent: {name: %s, contact: \"https://freshet.example/\"}\nconsole: {listen: \"127.0.0.1:0\"}\n", f.database, name, f.lease, name)
	c += fmt.Sprintf("crawl: {policy: sweep, budget: %g, agents: 8, delay: 10ms, min_revisit: 10ms, proxy: \"http://%s\"}\nsources:\n", budget, f.web.ProxyAddr())
	for _, seed := range f.web.Seeds(int(f.web.Hosts())) {
		c += fmt.Sprintf("  - {url: %q, scope: any, allow_private: true}\n", seed)
	}
	if err := os.WriteFile(path, []byte(c), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.launch(name, "--data", filepath.Join(f.dir, name), "--quiet", "serve", "--config", path)
}
