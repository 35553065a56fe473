package sweep

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const small = `
name: small
seed: 3
pages: [50, 80]
time: 20000
changes: [2, 8]
requests: 5
variants: [plain:1, conditional:2, sensor]
replications: 2
`

func mustPlan(t *testing.T, text string) *Plan {
	t.Helper()
	p, err := ParsePlan("plan", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustSweep(t *testing.T, text string, c Config) *Summary {
	t.Helper()
	c.Text = []byte(text)
	sum, err := mustPlan(t, text).Do(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// content returns the results without the time that they took.
func content(t *testing.T, p *Plan, dir string) []Run {
	t.Helper()
	var out []Run
	for _, j := range p.Jobs() {
		r, err := loadResult(dir, j)
		if err != nil {
			t.Fatal(err)
		}
		r.Seconds = 0
		out = append(out, *r)
	}
	return out
}

// The plan that ships is the dissertation's: 54 fields in its order, 378 runs.
func TestClassicPlan(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../plans/classic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := mustPlan(t, string(text))
	fields, jobs := p.Fields(), p.Jobs()
	if len(fields) != 54 || len(jobs) != 378 {
		t.Fatalf("%d fields, %d runs", len(fields), len(jobs))
	}
	for _, want := range []Factors{
		{Field: 1, Pages: 100_000, Time: 8.64e6, Changes: 1, Requests: 1},
		{Field: 2, Pages: 100_000, Time: 8.64e6, Changes: 1, Requests: 50},
		{Field: 4, Pages: 100_000, Time: 8.64e6, Changes: 5, Requests: 1},
		{Field: 10, Pages: 100_000, Time: 17.28e6, Changes: 2, Requests: 2},
		{Field: 19, Pages: 200_000, Time: 8.64e6, Changes: 1, Requests: 1},
		{Field: 54, Pages: 300_000, Time: 17.28e6, Changes: 20, Requests: 200},
	} {
		want.ChangeLaw, want.RequestLaw, want.ChangeSpread, want.RequestSpread = "exponential", "exponential", "none", "none"
		if got := fields[want.Field-1]; got != want {
			t.Errorf("field %+v, want %+v", got, want)
		}
	}
}

// The other plans that ship can be read.
func TestShippedPlans(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../../plans/*.yaml")
	must(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		if _, err := ParsePlan(name, text); err != nil {
			t.Error(err)
		}
	}
	if len(names) < 2 {
		t.Errorf("only %v", names)
	}
}

// Results are the same on any number of workers and by cells.
func TestSweepDoesNotDependOnTheMachine(t *testing.T) {
	t.Parallel()
	p := mustPlan(t, small)
	one, many, cells := t.TempDir(), t.TempDir(), t.TempDir()
	mustSweep(t, small, Config{Dir: one, Workers: 1})
	mustSweep(t, small, Config{Dir: many, Workers: 7})
	runs := 0
	for i := 1; i <= 3; i++ {
		runs += mustSweep(t, small, Config{Dir: cells, Cell: Cell{i, 3}}).Ran
	}
	if runs != 24 {
		t.Errorf("the cells made %d runs", runs)
	}
	a, b, c := content(t, p, one), content(t, p, many), content(t, p, cells)
	for i := range a {
		if !same(a[i], b[i]) || !same(a[i], c[i]) {
			t.Errorf("run %d differs: %+v, %+v, %+v", i, a[i], b[i], c[i])
		}
	}
}

// A sweep that was stopped goes on; damaged files are run again and said.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := mustPlan(t, small)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := 0
	_, err := p.Do(ctx, Config{Text: []byte(small), Dir: dir, Workers: 2, Progress: func(int64, int64, string) {
		if stopped++; stopped == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "runs", ".*"))
	there, _ := filepath.Glob(filepath.Join(dir, "runs", "0*.json"))
	if len(there) < 5 || len(there) == 24 || len(left) != 0 {
		t.Fatalf("%d results, %d parts of files", len(there), len(left))
	}
	text, _ := os.ReadFile(there[0])
	must(t, os.WriteFile(there[0], text[:len(text)/2], 0o644))
	text, _ = os.ReadFile(there[1])
	must(t, os.WriteFile(there[1], []byte(strings.Replace(string(text), `"bytes":`, `"bytes":1`, 1)), 0o644))
	text, _ = os.ReadFile(there[3])
	must(t, os.WriteFile(there[2], text, 0o644)) // another run's result under this name
	var warned []string
	sum := mustSweep(t, small, Config{Dir: dir, Warn: func(s string) { warned = append(warned, s) }})
	if sum.Kept != len(there)-3 || sum.Damaged != 3 || sum.Ran != 24-sum.Kept || len(warned) != 3 {
		t.Errorf("%+v, warned %q", sum, warned)
	}
	for _, name := range there[:3] {
		if !strings.Contains(strings.Join(warned, "\n"), name) {
			t.Errorf("%q does not name %s", warned, name)
		}
	}
	other := t.TempDir()
	mustSweep(t, small, Config{Dir: other})
	a, b := content(t, p, dir), content(t, p, other)
	for i := range a {
		if !same(a[i], b[i]) {
			t.Errorf("run %d differs after the stop", i)
		}
	}
	if sum := mustSweep(t, small, Config{Dir: dir}); sum.Ran != 0 || sum.Kept != 24 {
		t.Errorf("again: %+v", sum)
	}
	if _, err := mustPlan(t, small+"warmup: 5\n").Do(context.Background(), Config{Text: []byte(small + "warmup: 5\n"), Dir: dir}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "another plan") {
		t.Error(err)
	}
}

func same(a, b Run) bool {
	if len(a.Cycles) != len(b.Cycles) || len(a.Series.Stale) != len(b.Series.Stale) {
		return false
	}
	for i := range a.Cycles {
		if a.Cycles[i] != b.Cycles[i] {
			return false
		}
	}
	for i := range a.Series.Stale {
		if a.Series.Stale[i] != b.Series.Stale[i] {
			return false
		}
	}
	return a.Factors == b.Factors && a.Variant == b.Variant && a.FreshnessMean == b.FreshnessMean && a.Bytes == b.Bytes &&
		a.Delay == b.Delay && a.Events == b.Events && a.AgeMean == b.AgeMean
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPlanErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", "not a list of keys"},
		{"- 1", "not a list of keys"},
		{"pages: [", "did not find"},
		{small + "page: 3", `plan:10: unknown factor or setting "page" (did you mean "pages"?)`},
		{small + "seed: 4", `"seed" stands twice`},
		{strings.Replace(small, "50, 80", "0", 1), "field 1: field: 0 pages"},
		{strings.Replace(small, "50, 80", "", 1), "pages: at least one"},
		{strings.Replace(small, "50, 80", "many", 1), "plan:4: pages: "},
		{strings.Replace(small, "plain:1", "plein:1", 1), `did you mean "plain"`},
		{strings.Replace(small, "sensor", "plain:1", 1), "stands twice"},
		{strings.Replace(small, "replications: 2", "replications: 0", 1), "replications"},
		{strings.Replace(small, "replications: 2", "replications: 1000000", 1), "runs; at most"},
		{small + "baseline: plain:2", "baseline"},
		{small + "warmup: 20000", "warmup"},
		{small + "change_law: gauss", "no law"},
		{small + "kinds: {grown: .5}", "sum to"},
		{small + "kinds: {grew: 1}", `did you mean "grown"`},
		{small + "files: a.csv", "one or the other"},
		{"files: a.csv", "variants: at least one"},
		{small + "sizes: {least: 5, most: 2}", "sizes"},
	} {
		p, err := ParsePlan("plan", []byte(tt.text))
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", tt.want, p, err)
		}
	}
}

func TestParseCell(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Cell{"": {}, "1/1": {1, 1}, "2/5": {2, 5}} {
		if c, err := ParseCell(s); err != nil || c != want {
			t.Errorf("%q: %v, %v", s, c, err)
		}
	}
	for _, s := range []string{"0/2", "3/2", "1", "a/b", "1/2x", "-1/2"} {
		if _, err := ParseCell(s); !errors.Is(err, ErrInput) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add(small)
	f.Add("pages: 1\ntime: 1e400\nchanges: .nan\nvariants: sensor")
	f.Add("? [a]\n: b")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePlan("plan", []byte(text)); err == nil && len(p.Jobs()) == 0 {
			t.Error("a plan without runs")
		}
	})
}

// Whatever stands in a result file, it is read as what was written, or said to
// be damaged.
func FuzzLoad(f *testing.F) {
	dir := f.TempDir()
	p, err := ParsePlan("small", []byte(small))
	if err != nil {
		f.Fatal(err)
	}
	j := p.Jobs()[0]
	if err := claimDirectory(dir, []byte(small)); err != nil {
		f.Fatal(err)
	}
	r, err := p.simulateJob(f.Context(), j, newShelf("", nil))
	if err != nil {
		f.Fatal(err)
	}
	if err := saveResult(j.Path(dir), r); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(j.Path(dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(bytes.Replace(good, []byte(`"bytes":`), []byte(`"bytes":1`), 1))
	f.Add([]byte(`{"sha256":"","run":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		must(t, claimDirectory(dir, []byte(small)))
		must(t, os.WriteFile(j.Path(dir), text, 0o600))
		got, err := loadResult(dir, j)
		switch {
		case err != nil && !errors.Is(err, ErrDamaged):
			t.Errorf("neither read nor damaged: %v", err)
		case err == nil && (got.Variant != j.Variant || !got.isRunOf(j.Factors)):
			t.Errorf("read as of another run: %+v", got)
		}
	})
}
