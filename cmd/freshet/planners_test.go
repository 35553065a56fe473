package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/pgtest"
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
	const window = 4 * time.Second // in which each page comes up, on an idle machine
	judge := func(what string) {
		t.Helper()
		f.reached(what, sites, time.Now())
		from := time.Now()
		time.Sleep(window)
		to := time.Now()
		hosts, n, nodes := map[string]bool{}, 0, map[string]bool{}
		for _, r := range f.requests() {
			if r.from.After(from) && r.from.Before(to) {
				hosts[r.host], nodes[r.node] = true, true
				n++
			}
		}
		rate := float64(n) / to.Sub(from).Seconds()
		t.Logf("%s: %.1f requests a second of %d hosts by %d nodes", what, rate, len(hosts), len(nodes))
		if rate > budget*1.15 {
			t.Errorf("%s: %.1f requests a second, the budget is %.0f", what, rate, budget)
		}
	}
	time.Sleep(2 * lease) // all know each other
	judge("three nodes")
	f.kill("anna")
	time.Sleep(2 * lease) // it is dead to the others
	judge("after a kill")
	f.alive()
	f.check(1 << 30)
}

// reached waits until so many hosts have been asked since a time.
func (f *fleet) reached(what string, hosts int, since time.Time) {
	f.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		seen := map[string]bool{}
		for _, r := range f.requests() {
			if r.from.After(since) {
				seen[r.host] = true
			}
		}
		if len(seen) == hosts {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s: %d of %d hosts were asked", what, len(seen), hosts)
		}
	}
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
