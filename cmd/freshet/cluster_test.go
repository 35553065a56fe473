package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/internal/pgtest"
)

// Three nodes crawl a web together. One is killed, one is cut off from the
// database, one joins, the database crashes and comes back, the limit of agents
// shrinks: nothing is lost, no host is worked by two at once.
func TestClusterSurvives(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	pages, sites := uint64(rounds(600, 4000)), uint64(rounds(40, 100))
	cluster := pgtest.New(t)
	f := newFleet(t, cluster.Database(t), pages, sites, 80*time.Millisecond, lease)
	cable := newRelay(t, cluster.Port())

	f.start("anna", f.database, 14)
	f.start("boris", cable.address(f.database, cluster.Port()), 14)
	f.wait(int64(pages) / 10)
	f.asked("anna", f.begun, 1)

	f.kill("anna")
	f.start("clara", f.database, 14)
	hosts, took := f.orphans("anna")
	t.Logf("the %d hosts of the killed node were taken over within %v, lease %v", hosts, took, lease)
	f.wait(int64(pages) / 5)
	f.asked("boris", f.begun, 1)

	cable.set(true)
	cut := time.Now()
	time.Sleep(lease + 500*time.Millisecond)
	whole := time.Now()
	cable.set(false)
	f.wait(int64(pages) * 3 / 10)

	f.limit(3)
	if err := cluster.Down(true); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if err := cluster.Up(); err != nil {
		t.Fatal(err)
	}
	f.start("anna", f.database, 14) // again: its bodies are to be indexed
	time.Sleep(2 * lease)
	narrow := time.Now()
	time.Sleep(lease)
	f.asked("", narrow, 1)
	wide := time.Now()
	f.limit(40)
	f.finish("anna", "boris", "clara")
	t.Logf("%v: all have ended", time.Since(f.begun).Round(time.Millisecond))

	f.check(3 * 14 * 2) // in flight at a kill, a cut and a crash: few, since commits follow soon
	if n := f.indexed(); n != int(pages) {
		t.Errorf("the index finds %d of %d pages", n, pages)
	}
	requests := f.requests()
	if n := atOnce(requests, narrow, wide); n > 3 || n == 0 {
		t.Errorf("%d requests at once under a limit of 3", n)
	}
	// What it asked in time may be served late, but then it is the last of its kind.
	late := map[string]int{}
	for _, r := range requests {
		if r.node == "boris" && r.from.After(cut.Add(lease)) && r.from.Before(whole) {
			if late[r.host]++; late[r.host] > 1 {
				t.Errorf("a node that was cut off went on: asked %s again %v after the cut", r.host, r.from.Sub(cut))
			}
		}
	}
}

// ask runs a command on the database of the nodes.
func (f *fleet) ask(out any, args ...string) {
	f.t.Helper()
	cmd := exec.Command(f.bin, append([]string{"--data", filepath.Join(f.dir, "operator"), "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "FRESHET_DATABASE="+f.database)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("%v: %v: %s", args, err, stderr.String())
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(b, out); err != nil {
		f.t.Fatalf("%v: %v: %s", args, err, b)
	}
}

// What holds for all nodes, whoever is asked: budget, pause, limit of agents,
// stop; and what the commands read from the database.
func TestNodesTogether(t *testing.T) {
	t.Parallel()
	const lease, budget = 2 * time.Second, 40.0
	f := newFleet(t, pgtest.New(t).Database(t), 3000, 60, 20*time.Millisecond, lease)
	for _, name := range []string{"anna", "boris"} {
		f.start(name, f.database, 8, "--budget", fmt.Sprint(budget))
	}
	f.wait(80)
	f.asked("anna", f.begun, 1)
	f.asked("boris", f.begun, 1)
	var s console.Status
	waitFor(t, "both nodes to be seen", func() bool {
		f.ask(&s, "status")
		return len(s.Nodes) == 2 && s.Agents.FetchLimit == 16
	})
	if s.State != "running" || s.Pages < 80 || s.URLs < s.Pages {
		t.Errorf("status %+v", s)
	}
	var a agentsAnswer
	f.ask(&a, "agents", "set", "5")
	if a.Agents.FetchLimit != 5 {
		t.Errorf("agents %+v", a)
	}
	paused := time.Now()
	f.ask(nil, "pause")
	time.Sleep(lease)
	waitFor(t, "all agents to rest", func() bool { f.ask(&s, "status"); return s.Agents.Fetch == 0 })
	quiet := time.Now()
	time.Sleep(lease / 2)
	wide := time.Now()
	if s.State != "paused" {
		t.Errorf("status %+v", s)
	}
	f.ask(nil, "resume")
	time.Sleep(2 * lease)
	few := time.Now()
	time.Sleep(lease)
	f.asked("", few, 1)
	end := time.Now()
	var found console.SearchAnswer
	f.ask(&found, "search", "")
	if len(found.Results) == 0 {
		t.Fatal("nothing is found in the database")
	}
	var why console.Why
	f.ask(&why, "why", found.Results[0].URL)
	if why.State != "ok" || why.Status != 200 {
		t.Errorf("why: %+v", why)
	}
	f.ask(nil, "stop")
	sums := f.finish("anna", "boris")
	requests := f.requests()
	first := requests[0].from
	n, both := 0, map[string]int{}
	for _, r := range requests {
		if r.from.After(quiet) && r.from.Before(wide) {
			t.Errorf("%s asked %s while all were paused", r.node, r.host)
		}
		if r.from.Before(paused) {
			n++
			both[r.node]++
		}
	}
	took := paused.Sub(first).Seconds()
	t.Logf("%d requests in %.1f s, by node %v; pages %d and %d", n, took, both, sums["anna"].Pages, sums["boris"].Pages)
	// robots.txt is asked for beside the budget: once a host.
	if most := budget*(took+.5) + 60; float64(n) > most || len(both) != 2 {
		t.Errorf("%d requests in %.1f s under a budget of %v a second, by %d nodes", n, took, budget, len(both))
	}
	if n := atOnce(requests, few, end); n > 5 || n == 0 {
		t.Errorf("%d requests at once under a limit of 5", n)
	}
}

// Pages a second by agents and nodes, on a web where every answer takes 200 ms:
// the figures of docs/benchmarks/scale-out.md.
func TestScaleOut(t *testing.T) {
	if os.Getenv("FRESHET_LONG") == "" {
		t.Skip("minutes of measuring: set FRESHET_LONG")
	}
	cluster := pgtest.New(t)
	for _, row := range []struct{ nodes, agents int }{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 16}, {1, 32}, {2, 16}, {3, 11}, {2, 32}, {3, 32}} {
		all := row.nodes * row.agents
		// Each host is asked once a second at most: more hosts than agents by far.
		sites := uint64(max(40, 12*all))
		f := newFleet(t, cluster.Database(t), 4*sites, sites, 200*time.Millisecond, 10*time.Second)
		var names []string
		for n := range row.nodes {
			names = append(names, fmt.Sprint("node", n))
			f.start(names[n], f.database, row.agents)
		}
		f.finish(names...)
		f.check(0)
		requests := f.requests()
		first, last := requests[0].from, requests[len(requests)-1].to
		// Between the first and the last eighth: neither start nor end.
		n := len(requests)
		middle := requests[n*7/8].from.Sub(requests[n/8].from).Seconds()
		t.Logf("nodes %d agents %2d: %5.1f requests/s (%5.1f from start to end), at most %d at once", row.nodes, row.agents, float64(n)*.75/middle, float64(n)/last.Sub(first).Seconds(), atOnce(requests, first, last))
	}
}

// A database that crashes again and again is waited for each time.
func TestDatabaseComesAndGoes(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	sites := uint64(rounds(20, 60))
	f := newFleet(t, cluster.Database(t), 20*sites, sites, 30*time.Millisecond, 3*time.Second)
	f.start("anna", f.database, 10)
	f.start("boris", f.database, 10)
	for n := range rounds(3, 15) {
		time.Sleep(time.Second)
		if err := cluster.Down(n%2 == 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(n%3) * 400 * time.Millisecond)
		if err := cluster.Up(); err != nil {
			t.Fatal(err)
		}
		f.alive()
	}
	f.finish("anna", "boris")
	f.check(200)
	if n := f.indexed(); n != int(20*sites) {
		t.Errorf("the index finds %d of %d pages", n, 20*sites)
	}
}
