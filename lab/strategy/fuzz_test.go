package strategy

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/strategy/run"
)

// FuzzRun runs whatever is a correct script: it never panics, ends within its
// limits, uses no more memory and disk than it may, and touches no file outside
// of its folders.
func FuzzRun(f *testing.F) {
	for _, name := range Scripts() {
		_, src, err := Read(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	for _, src := range []string{
		"var w(/etc/passwd) file; q(visited) : queue of node; l : queue of node; n : node; begin while w.size() > 0 do begin n := w.pop(); if n.visited = 0 then begin n.visited := 1; output(n); l := n.outlinks; while l.size() > 0 do q.push(l.pop()) end end end.",
		"var a : aoq; q : queue of node; i : integer; begin for i := 0 to 8 do a.push(node(i)); q := a.pop(a.largest()); a.top(0).push(q.pop()); a.top(0).clear(); a.clear() end.",
		"function f(n : integer; var q : stack of real) : real; begin q.push(n); if n > 0 then f := f(n - 1, q) else f := q.top() end; var s : stack of real; begin print(f(5, s), s.size()) end.",
		"var m : map of string to integer; a : array of string; s : string; begin a.resize(3); a[1] := 'x' + string(now); for s in a do m[s] := length(s); for s in m do m.remove(s); wait(1.5); checkpoint end.",
		"attributes p : node; r : real; var q : queue(r) of node; n : node; begin for n in node(0).outlinks do begin n.p := node(0); n.r := random() - n.age; q.push(n) end; while q.size() > 0 do begin n := q.pop(); if n.contains('a') or (n.depth < n.server) then print(n.url, n.size, n.p) else halt end end.",
		"{$thesis} var i, b : integer; begin i := not 1; while i do i := i - true end.",
	} {
		f.Add(src)
	}
	g := lineWeb(f)
	f.Fuzz(func(t *testing.T, src string) { runSafely(t, g, src) })
}

// runSafely runs a script, if it is correct, and checks what must always hold.
func runSafely(t *testing.T, g run.Web, src string) (ran bool) {
	t.Helper()
	s, err := Load("fuzz", src, Auto, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Diagnostics {
		_ = d.Human(s.File, s.Source)
	}
	if s.Errors > 0 {
		return false
	}
	top := t.TempDir()
	dir := filepath.Join(top, "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	var out, log bytes.Buffer
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second) // a safety net: the limit of steps is to end it
	defer stop()
	attributes := filepath.Join(top, "attributes")
	if len(src)%8 > 0 { // most: checkpoints wait for the disk
		attributes = ""
	}
	res, err := Run(ctx, s, run.Options{
		Web: g, Dir: dir, Attributes: attributes, Seed: 1, Out: &out, Log: &log, Cost: run.DefaultCost(),
		MaxSteps: 20_000, MaxMemory: most, MaxDisk: most,
	})
	var fail *Failure
	if err != nil && !errors.As(err, &fail) {
		t.Fatalf("error without a place: %v", err)
	}
	if ctx.Err() != nil {
		t.Fatal("did not end")
	}
	if err == nil && (res.Memory > most || res.Disk > most) || res.Steps > 31_000 {
		t.Errorf("%+v", res)
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "run" && e.Name() != "attributes" {
			t.Errorf("left %s", e.Name())
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %d files", len(left))
	}
	return true
}

// FuzzProgram is FuzzRun with programs that are correct by the way they are
// made: the bytes choose among the rules of the grammar.
func FuzzProgram(f *testing.F) {
	r := rng.New(1, "programs")
	for n := range 40 {
		b := make([]byte, 60+50*n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	g := lineWeb(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		p := &maker{choices: choices}
		src := p.program()
		if !runSafely(t, g, src) {
			s, _ := Load("made", src, Strict, nil)
			for _, d := range s.Diagnostics {
				t.Log(d.Human("made", src))
			}
			t.Fatalf("made an incorrect program:\n%s", src)
		}
	})
}

// maker makes correct programs out of bytes.
type maker struct {
	choices []byte
	loops   int
	busy    [3]bool // variables of loops around
}

// pick chooses one of n; 0 when the bytes are used up.
func (p *maker) pick(n int) int {
	if len(p.choices) == 0 {
		return 0
	}
	c := int(p.choices[0])
	p.choices = p.choices[1:]
	return c % n
}

// form chooses one of the forms and fills it in: $i is an integer, $r a real,
// $t a string, $c a condition, $n a node, $v an integer that can be assigned to
// and $s statements. Deep down the first form, which has nothing to fill in, is
// taken.
func (p *maker) form(depth int, forms ...string) string {
	i := 0
	if depth < 6 {
		i = p.pick(len(forms))
	}
	var b strings.Builder
	for rest := forms[i]; ; {
		before, after, ok := strings.Cut(rest, "$")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString(p.fill(after[0], depth+1))
		rest = after[1:]
	}
}

func (p *maker) fill(what byte, depth int) string {
	switch what {
	case 'i':
		return p.form(depth, "1", "0", "2", "1000000007", "i", "j", "k", "($i + $i)", "($i - $i)", "($i * $i)", "($i div (1 + $i))", "($i mod 7)", "$n.ai", "$n.server", "$n.depth", "$n.size",
			"q.size()", "h.size()", "a.size()", "w.size()", "mp.size()", "$n.outlinks.size()", "qi.pop()", "qi.top()", "ar1[$i]", "mi[$n]", "a.total()", "a.largest()", "a.server($i)", "a.find($i)", "a.top($i).size()",
			"trunc($r)", "round($r)", "min($i, $i)", "max($i, $i)", "f($i, x, q, s)", "f($i, y, $n.outlinks, s)", "length($t)", "pages", "abs($i)", "-($i)", "random($i)", "integer($c)", "integer($n)")
	case 'r':
		return p.form(depth, "0.5", "x", "y", "1.5e3", "-0.25", "now", "random()", "($r / $r)", "($r * $r)", "($r - $i)", "$n.ar", "$n.age", "hr.pop()", "mp[$t]", "sqrt(abs($r))", "exp($r)", "ln($r)", "max($r, 1)")
	case 't':
		return p.form(depth, "'a'", "t", "u", "($t + $t)", "string($i)", "string($r)", "$n.url", "st.pop()", "st.top()")
	case 'c':
		return p.form(depth, "b", "true", "($i < $i)", "($i >= $i)", "($i = 0)", "($i <> $i)", "(0 < $i)", "(i < j)", "($r <= $r)", "($t = $t)", "($c and $c)", "($c or $c)", "not ($c)", "$n.visited", "$n.ab",
			"$n.contains($t)", "($n.visited = 0)", "($n = nil)", "mp.has($t)", "(w.size() > 0)", "(q.size() > 0)")
	case 'n':
		return p.form(depth, "n", "m", "node(3)", "node(0)", "node(abs($i) mod 9)", "q.pop()", "q.top()", "s.pop()", "h.pop()", "g.top()", "w.pop()", "w.top()", "n.an", "$n.outlinks.pop()", "a.top($i).pop()", "a.top(0).top()")
	case 'v':
		if v := p.pick(3); !p.busy[v] {
			return "ijk"[v : v+1]
		}
		return "ar1[0]"
	case 's':
		return p.stmts(depth)
	}
	return "$"
}

func (p *maker) program() string {
	body := p.stmts(0)
	p.busy = [3]bool{}
	proc := p.stmts(3)
	return `attributes ai : integer; ar : real; ab : boolean; an : node;
var w(x) : file; i, j, k : integer; x, y : real; b : boolean; t, u : string; n, m : node;
  q : queue of node; s : stack of node; h : queue(ai) of node; g : queue(ar) of node; a : aoq; qi : queue of integer; st : stack of string;
  hr : queue(z) of real; ar1 : array of integer; mp : map of string to real; mi : map of node to integer;
function f(v : integer; var r : real; c : queue of node; var d : stack of node) : integer;
begin
f := v;
` + proc + `end;
begin
` + body + "end."
}

func (p *maker) stmts(depth int) string {
	var b strings.Builder
	for range 1 + p.pick(6) {
		b.WriteString(p.stmt(depth) + ";\n")
	}
	return b.String()
}

func (p *maker) stmt(depth int) string {
	if p.pick(4) > 0 {
		return p.form(depth, "x := x + 1", "$v := $i", "$v := i + 1", "$v := j - 3", "x := $r", "y := $r", "b := $c", "t := $t", "u := $t", "n := $n", "m := $n", "n := nil", "$n.ai := $i", "$n.ar := $r", "$n.ab := $c", "$n.an := $n", "$n.visited := 1",
			"q.push($n)", "s.push($n)", "h.push($n)", "g.push($n)", "a.push($n)", "qi.push($i)", "st.push($t)", "hr.push($r)", "ar1.push($i)", "ar1.resize($i mod 100)", "ar1[$i] := $i", "mp[$t] := $r", "mi[$n] := $i", "mp.remove($t)",
			"q := $n.outlinks", "s := $n.inlinks", "h := q", "g := a.pop($i)", "q := a.top($i)", "q.clear()", "a.clear()", "h.clear()", "mp.clear()", "a.top(0).clear()", "a.pop(0)", "q.pop()", "st.pop()", "output($n)", "output(node(i mod 4))", "wait($r)",
			"print($t, $i, $r, $c, $n)", "f($i, y, q, s)")
	}
	what := p.pick(7)
	if what < 2 || what > 4 {
		p.loops++
		defer func() { p.loops-- }()
	}
	switch what {
	case 0:
		return p.form(depth, "b := false", "while $c do begin $s end")
	case 1:
		return p.form(depth, "b := true", "repeat $s until $c")
	case 2:
		return p.form(depth, "b := true", "if $c then begin $s end", "if $c then begin $s end else begin $s end")
	case 3:
		if p.loops > 0 {
			return p.form(depth, "break", "continue", "halt")
		}
		return "b := not b"
	case 4:
		return p.form(depth, "b := true", "for m in $n.outlinks do begin q.push(m); x := x + 1 end", "for t in mp do y := y + mp[t]", "for n in w do h.push(n)", "checkpoint")
	}
	v := p.pick(3)
	if p.busy[v] {
		return "b := false"
	}
	head := p.form(depth, "0 to 9", "$i to $i", "$i downto $i")
	p.busy[v] = true
	defer func() { p.busy[v] = false }()
	return "for " + "ijk"[v:v+1] + " := " + head + " do begin " + p.stmts(depth+1) + " end"
}
