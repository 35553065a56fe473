package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	pgindex "github.com/freshet/freshet/index/postgres"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/score"
	"github.com/freshet/freshet/lab/testweb/truth"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/postgres"
)

// relay stands between a node and the database, and can be cut like a cable:
// what is under way neither arrives nor fails.
type relay struct {
	listener net.Listener
	to       string

	mu   sync.Mutex
	cond *sync.Cond
	cut  bool
}

func newRelay(t *testing.T, port int) *relay {
	t.Helper()
	return newRelayAt(t, "127.0.0.1", fmt.Sprintf("127.0.0.1:%d", port))
}

// newRelayAt listens on an address and passes on to another.
func newRelayAt(t *testing.T, address, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp4", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to}
	r.cond = sync.NewCond(&r.mu)
	t.Cleanup(func() { l.Close(); r.set(false) })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(in)
		}
	}()
	return r
}

func (r *relay) set(cut bool) {
	r.mu.Lock()
	r.cut = cut
	r.mu.Unlock()
	r.cond.Broadcast()
}

// pass waits until the cable is whole.
func (r *relay) pass() {
	r.mu.Lock()
	for r.cut {
		r.cond.Wait()
	}
	r.mu.Unlock()
}

func (r *relay) serve(in net.Conn) {
	defer in.Close()
	r.pass()
	out, err := net.Dial("tcp4", r.to)
	if err != nil {
		return
	}
	defer out.Close()
	copyTo := func(dst, src net.Conn) {
		defer dst.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := src.Read(buf)
			r.pass()
			if n > 0 {
				if _, err := dst.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go copyTo(out, in)
	copyTo(in, out)
}

func (r *relay) port() int { return r.listener.Addr().(*net.TCPAddr).Port }

// address is a database's address through the relay.
func (r *relay) address(database string, port int) string {
	return strings.Replace(database, fmt.Sprintf(":%d/", port), fmt.Sprintf(":%d/", r.port()), 1)
}

// fleet is several processes of freshet crawling one test web into one database.
type fleet struct {
	delayed  int // requests that the network may deliver late, while another node has the host
	t        *testing.T
	bin      string
	dir      string
	web      *testweb.Server
	truth    string
	log      *truth.Log
	database string
	lease    time.Duration
	begun    time.Time
	store    *postgres.Store // the test's own eyes

	mu    sync.Mutex
	nodes map[string]*process
}

// process is one of them.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	stdout bytes.Buffer
	ended  chan error
}

func newFleet(t *testing.T, database string, pages, sites uint64, latency, lease time.Duration) *fleet {
	t.Helper()
	f := &fleet{t: t, bin: binary(t), dir: t.TempDir(), database: database, lease: lease, begun: time.Now(), nodes: map[string]*process{}}
	f.truth = filepath.Join(f.dir, "truth.jsonl")
	file, err := os.Create(f.truth)
	if err != nil {
		t.Fatal(err)
	}
	f.log, err = truth.NewLog(file, truth.Head{Record: truth.Record{Time: time.Now()}, Pages: pages, Hosts: sites, Seed: 5, Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	b, err := behaviour.Parse("", []byte("latency: {median: "+latency.String()+"}"))
	if err != nil {
		t.Fatal(err)
	}
	f.web, err = testweb.New(testweb.Config{Pages: pages, Layout: testweb.Even{Pages: pages, Sites: sites}, Seed: 5, Behaviours: b, Proxy: "127.0.0.1:0", Truth: f.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.web.Close(); file.Close() })
	if f.store, err = postgres.Open(context.Background(), database, postgres.Config{Node: "observer", Connections: 2}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.store.Close() })
	return f
}

// start starts a node, or starts it again on its data directory.
func (f *fleet) start(name, database string, agents int, more ...string) {
	f.t.Helper()
	seeds := f.web.Seeds(int(f.web.Hosts()))
	args := append([]string{
		"--data", filepath.Join(f.dir, name), "--quiet", "--json", "crawl", "--database", database, "--node", name, "--agent-name", name, "--lease", f.lease.String(),
		"--allow-private", "--scope", "any", "--agents", fmt.Sprint(agents), "--delay", "10ms", "--proxy", "http://" + f.web.ProxyAddr(),
	}, append(more, seeds...)...)
	f.launch(name, args...)
}

// launch starts a process of the fleet.
func (f *fleet) launch(name string, args ...string) {
	f.t.Helper()
	p := &process{cmd: exec.Command(f.bin, args...), ended: make(chan error, 1)}
	p.cmd.Stderr, p.cmd.Stdout = &p.stderr, &p.stdout
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	f.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	f.mu.Lock()
	f.nodes[name] = p
	f.mu.Unlock()
}

// kill ends a node as a power cut would.
func (f *fleet) kill(name string) time.Time {
	f.t.Helper()
	p := f.nodes[name]
	if err := p.cmd.Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
	<-p.ended
	return time.Now()
}

// wait waits until so many pages were visited.
func (f *fleet) wait(pages int64) {
	f.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		st, err := f.store.Stats(context.Background())
		if err == nil && st.States[store.OK] >= pages {
			f.t.Logf("%v: %d pages", time.Since(f.begun).Round(time.Millisecond), st.States[store.OK])
			return
		}
		f.alive()
	}
	f.t.Fatalf("%d pages are not visited in time", pages)
}

// asked waits until a node ("" is any) has asked the web so many times since a
// moment.
func (f *fleet) asked(node string, since time.Time, times int) {
	f.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		n := 0
		for _, r := range f.requests() {
			if (node == "" || r.node == node) && r.from.After(since) {
				n++
			}
		}
		if n >= times {
			return
		}
		f.alive()
	}
	f.t.Fatalf("%q does not ask", node)
}

// alive fails the test if a node has ended by an error.
func (f *fleet) alive() {
	f.t.Helper()
	for name, p := range f.nodes {
		select {
		case err := <-p.ended:
			p.ended <- err
			if err != nil && !strings.Contains(err.Error(), "killed") {
				f.t.Fatalf("%s: %v: %s", name, err, p.stderr.String())
			}
		default:
		}
	}
}

// finish waits for nodes to end by themselves and returns what they told.
func (f *fleet) finish(names ...string) map[string]crawlSummary {
	f.t.Helper()
	out := map[string]crawlSummary{}
	for _, name := range names {
		p := f.nodes[name]
		select {
		case err := <-p.ended:
			if err != nil {
				f.t.Fatalf("%s: %v: %s", name, err, p.stderr.String())
			}
		case <-time.After(5 * time.Minute):
			f.t.Fatalf("%s does not end: %s", name, p.stderr.String())
		}
		var sum crawlSummary
		if err := json.Unmarshal(p.stdout.Bytes(), &sum); err != nil {
			f.t.Fatalf("%s: %v: %s", name, err, p.stdout.String())
		}
		if p.stderr.Len() > 0 {
			f.t.Logf("%s says: %s", name, p.stderr.String())
		}
		out[name] = sum
	}
	return out
}

// orphans waits until no host is leased to a dead node any more, and tells how
// many there were and how long that took.
func (f *fleet) orphans(node string) (hosts int, took time.Duration) {
	f.t.Helper()
	start := time.Now()
	for first := true; time.Since(start) < 5*time.Minute; first = false {
		var n int
		err := f.store.Pool().QueryRow(context.Background(), "select count(*) from hosts where node = $1 and leased > 0", node).Scan(&n)
		if err != nil {
			f.t.Fatal(err)
		}
		if first {
			hosts = n
		}
		if n == 0 {
			return hosts, time.Since(start)
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.t.Fatalf("hosts of %s are not taken over", node)
	return 0, 0
}

// request is one line of the truth: who asked which host, from when till when.
type request struct {
	node, host, path string
	from, to         time.Time
}

// requests reads the truth, by time.
func (f *fleet) requests() []request {
	f.t.Helper()
	if err := f.log.Flush(); err != nil {
		f.t.Fatal(err)
	}
	r := f.reader()
	var out []request
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.t.Fatal(err)
		}
		node, _, _ := strings.Cut(rec.Agent, "/")
		out = append(out, request{node, rec.Host, rec.Path, rec.Time, rec.Time.Add(time.Duration(rec.Duration * float64(time.Second)))})
	}
	slices.SortFunc(out, func(a, b request) int { return a.from.Compare(b.from) })
	return out
}

func (f *fleet) reader() *truth.Reader {
	f.t.Helper()
	log, err := os.ReadFile(f.truth)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := truth.NewReader(bytes.NewReader(log))
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// check judges the whole: every page that links lead to was fetched, few more
// than once, and no host was asked by two nodes at once.
func (f *fleet) check(mostAgain int) {
	f.t.Helper()
	if err := f.log.Flush(); err != nil {
		f.t.Fatal(err)
	}
	card, err := score.Read(f.t.Context(), f.reader(), score.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	if card.Coverage != 1 {
		f.t.Errorf("%d of %d pages were fetched", card.Pages, card.Exist)
	}
	if card.Overlaps > f.delayed {
		f.t.Errorf("a host was asked %d times while it still answered", card.Overlaps)
	}
	if card.Revisits > mostAgain {
		f.t.Errorf("%d pages were fetched again, expected at most %d", card.Revisits, mostAgain)
	}
	last := map[string]request{}
	changes, both := 0, 0
	for _, r := range f.requests() {
		before, ok := last[r.host]
		if ok && before.node != r.node {
			changes++
			if r.from.Before(before.to) {
				if both++; both > f.delayed {
					f.t.Errorf("%s asked %s while %s did", r.node, r.host, before.node)
				}
			}
		}
		if !ok || r.to.After(before.to) {
			last[r.host] = r
		}
	}
	f.t.Logf("%d requests for %d pages on %d hosts, %d fetched again; hosts went from node to node %d times", card.Requests, card.Pages, card.Hosts, card.Revisits, changes)
}

// indexed counts the documents that any node finds.
func (f *fleet) indexed() int {
	f.t.Helper()
	ctx := context.Background()
	e, err := pgindex.Open(ctx, f.database, pgindex.Config{Lane: "observer"})
	if err != nil {
		f.t.Fatal(err)
	}
	defer e.Close()
	res, err := e.Search(ctx, index.Request{Query: query.Parse("", time.Now()), Limit: 1, Now: time.Now()})
	if err != nil {
		f.t.Fatal(err)
	}
	return res.Total
}

// limit sets the number of agents of all nodes together.
func (f *fleet) limit(n int) {
	f.t.Helper()
	if err := f.store.Put(context.Background(), "agents-limit", fmt.Append(nil, n)); err != nil {
		f.t.Fatal(err)
	}
}

// atOnce is how many requests ran at the same time between two moments, at most.
func atOnce(requests []request, from, to time.Time) int {
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, r := range requests {
		if r.to.After(from) && r.from.Before(to) {
			edges = append(edges, edge{r.from, 1}, edge{r.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	most, n := 0, 0
	for _, e := range edges {
		if n += e.by; e.at.After(from) && e.at.Before(to) {
			most = max(most, n)
		}
	}
	return most
}
