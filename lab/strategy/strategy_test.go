package strategy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/strategy/run"
	"github.com/freshet/freshet/lab/webgraph"
)

// smallWeb returns a random web of sites of ten pages.
func smallWeb(t testing.TB, pages, degree int, seed uint64) *webgraph.Graph {
	t.Helper()
	r := rng.New(seed, "small web")
	out := make([][]uint32, pages)
	var sites []uint32
	for u := range out {
		for range r.IntN(2 * degree) {
			v := r.IntN(pages)
			if r.IntN(2) == 0 { // near, so that sites matter
				v = u/10*10 + r.IntN(10)
			}
			if v < pages {
				out[u] = append(out[u], uint32(v))
			}
		}
		if u%10 == 0 {
			sites = append(sites, uint32(u))
		}
	}
	g, err := webgraph.New(out, sites)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// script loads a script that must be correct.
func script(t testing.TB, src string) *Script {
	t.Helper()
	s, err := Load("test.strategy", src, Auto, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Errors > 0 {
		var b strings.Builder
		for _, d := range s.Diagnostics {
			b.WriteString(d.Human(s.File, s.Source) + "\n")
		}
		t.Fatal(b.String())
	}
	return s
}

// options are those of a run on a web, with everything limited.
func options(t testing.TB, g run.Web) run.Options {
	return run.Options{Web: g, Dir: t.TempDir(), Seed: 1, Cost: run.DefaultCost(), MaxSteps: 3e6, MaxMemory: 1 << 23, MaxDisk: 1 << 22}
}

// outputs runs a script and returns what it outputs.
func outputs(t testing.TB, s *Script, opt run.Options) ([]uint32, run.Result) {
	t.Helper()
	var b bytes.Buffer
	opt.Out = &b
	res, err := Run(t.Context(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	var order []uint32
	for line := range strings.Lines(b.String()) {
		v, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, uint32(v))
	}
	return order, res
}

// Every shipped strategy is free of warnings, outputs every page once, and the
// same order again.
func TestShippedStrategies(t *testing.T) {
	t.Parallel()
	g := smallWeb(t, 600, 4, 1)
	if len(Scripts()) < 9 {
		t.Fatalf("strategies: %v", Scripts())
	}
	for _, name := range Scripts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, src, err := Read(name)
			if err != nil {
				t.Fatal(err)
			}
			s := script(t, src)
			if len(s.Diagnostics) > 0 {
				t.Errorf("%s", s.Diagnostics[0].Human(file, src))
			}
			order, res := outputs(t, s, options(t, g))
			if res.Repeated > 0 || res.Distinct != int64(g.Nodes()) || res.Servers != int64(g.Sites()) {
				t.Errorf("%+v", res)
			}
			again, _ := outputs(t, s, options(t, g))
			if !slices.Equal(order, again) {
				t.Error("a second run gave another order")
			}
		})
	}
}

// reference is breadth first as the shipped script does it: the first ten pages,
// and later the next page that was not seen whenever nothing is left.
func reference(g *webgraph.Graph) []uint32 {
	seen := make([]bool, g.Nodes())
	var order []uint32
	find := func(v uint32) {
		if !seen[v] {
			seen[v] = true
			order = append(order, v)
		}
	}
	for u := range uint32(10) {
		find(u)
	}
	done := 0
	for at := uint32(0); done < g.Nodes(); at++ {
		for ; done < len(order); done++ {
			for _, v := range g.Out(order[done]) {
				find(v)
			}
		}
		if at < uint32(g.Nodes()) {
			find(at)
		}
	}
	return order
}

func TestBreadthFirstIsBreadthFirst(t *testing.T) {
	t.Parallel()
	g := smallWeb(t, 3000, 3, 2)
	_, src, _ := Read("breadth-first")
	got, _ := outputs(t, script(t, src), options(t, g))
	if !slices.Equal(got, reference(g)) {
		t.Error("another order than a queue in Go")
	}
}

// Whatever ties there are, a page that is fetched has the greatest in-degree of
// those that wait.
func TestBestIndegreeIsBest(t *testing.T) {
	t.Parallel()
	g := smallWeb(t, 600, 4, 3)
	_, src, _ := Read("best-indegree")
	order, _ := outputs(t, script(t, src), options(t, g))
	indegree, found, done := make([]int, g.Nodes()), map[uint32]bool{}, map[uint32]bool{}
	for i, u := range order {
		if i >= 10 && found[u] {
			for v := range found {
				if !done[v] && indegree[v] > indegree[u] {
					t.Fatalf("%d. page: %d with in-degree %d, %d has %d", i, u, indegree[u], v, indegree[v])
				}
			}
		}
		done[u] = true
		for _, v := range g.Out(u) {
			found[v] = true
			indegree[v]++
		}
	}
}

// The scripts of the thesis run as they are: header variants, numbers for
// booleans, any case, a file that is popped twice a turn.
func TestScriptsOfTheThesis(t *testing.T) {
	t.Parallel()
	g := smallWeb(t, 500, 3, 4)
	for name, tt := range map[string]struct {
		src      string
		repeated bool
		warning  string
	}{
		"breadth first": {src: `
ATTRIBUTES Seen : Boolean;
var w(/path/to/web) file; q : queue of node; l : queue of node; n, m : node;
begin
  while w.size() > 0 do
  begin
    n := w.pop();
    if n.visited = 0 then q.push(w.pop());
    while q.size() > 0 do
    begin
      n := q.pop();
      n.visited := 1;
      output(n);
      l := n.outlinks;
      while l.size() > 0 do
      begin
        m := l.pop();
        if m.visited = 0 then q.push(m)
      end
    end
  end
end.`, repeated: true, warning: `"w" is popped a second time in one turn of the loop: nodes may be passed over, or fetched twice`},
		"best first": {src: `
attributes pagerank : integer;
var w(/path/to/web) : file; best(pagerank) : queue of node; s : stack of node; l : queue of node; n, m : node; i, max : integer;
begin
  { degrees first }
  while w.size() > 0 do
  begin
    n := w.pop();
    i := 0; max := n.inlinks.size();
    while i < max do i := i + 1;
    n.pagerank := i;
    s.push(n)
  end;
  best.push(s.top());
  while best.size() > 0 do
  begin
    n := best.pop();
    if not n.visited then
    begin
      n.visited := 1;
      output(n);
      l := n.outlinks;
      while (l.size() > 0) do
      begin
        m := l.pop();
        if (m.visited = 0) and (m.pagerank >= 0) then best.push(m)
      end
    end
  end
end.`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, tt.src)
			opt := options(t, g)
			opt.MaxSteps = 1e6
			_, res := outputs(t, s, opt)
			if res.Pages == 0 || (res.Repeated > 0) != tt.repeated {
				t.Errorf("%+v", res)
			}
			var warnings []string
			for _, d := range s.Diagnostics {
				warnings = append(warnings, d.Message)
			}
			if tt.warning != "" && !slices.Contains(warnings, tt.warning) {
				t.Errorf("warnings: %q", warnings)
			}
		})
	}
}

func TestRunTimeErrors(t *testing.T) {
	t.Parallel()
	g := smallWeb(t, 100, 3, 5)
	for name, tt := range map[string]struct{ src, want string }{
		"division":    {"var a, b : integer; begin a := 1 / b end.", "test.strategy:1:34: division by zero"},
		"mod":         {"var a, b : integer; begin a := 1 mod b end.", "division by zero"},
		"empty":       {"var q : queue of node; begin\n  output(q.pop())\nend.", "test.strategy:2:12: pop of an empty container\n      output(q.pop())\n               ^~~"},
		"empty stack": {"var s : stack of integer; begin print(s.top()) end.", "top of an empty container"},
		"nil":         {"var n : node; begin output(n) end.", "unknown node: nothing was assigned"},
		"nil's links": {"var n : node; begin print(n.outlinks.size()) end.", "unknown node"},
		"number":      {"begin output(node(100)) end.", "unknown node 100: the web has nodes 0 to 99"},
		"aoq":         {"var a : aoq; begin print(a.top(0).size()) end.", "queue 0 of an aoq with 0"},
		"array":       {"var a : array of real; begin a.resize(3); a[3] := 1 end.", "index 3 of an array of 3"},
		"steps":       {"begin while true do; end.", "steps: limit reached: more than 3000000"},
		"recursion":   {"procedure p; begin p() end; begin p() end.", "procedures call each other too deep"},
		"memory":      {"var a : array of integer; begin while true do a.push(1) end.", "memory: limit reached"},
		"disk":        {"var q : queue of integer; begin while true do q.push(1) end.", "disk: limit reached"},
		"string":      {"var s : string; begin s := 'a'; while true do s := s + s end.", "a string of more than 65536 bytes"},
		"strings":     {"var m : map of string to integer; s : string; begin while true do begin s := s + 'a'; if length(s) > 1000 then s := string(random()); m[s] := 1 end end.", "memory: limit reached"},
		"wait":        {"begin wait(-1) end.", "wait(-1): want 0 to 1e12 seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, tt.src)
			_, err := Run(t.Context(), s, options(t, g))
			var f *Failure
			if !errors.As(err, &f) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	opt := options(t, smallWeb(t, 10, 1, 1))
	opt.MaxSteps = 0
	if _, err := Run(ctx, script(t, "begin while true do; end."), opt); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
