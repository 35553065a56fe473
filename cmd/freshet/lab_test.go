package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/freshet/freshet/internal/command"
)

// long is a plan that a test has no time for.
const long = `name: long
pages: 3000
time: 400000
changes: [1, 2, 3, 4]
requests: 5
variants: ["plain:1", sensor]
replications: 5000
`

// startSweep runs freshet monitor sweep of a plan as a process of its own.
func startSweep(t *testing.T, plan, out string, more ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), append([]string{"--json", "--quiet", "lab", "monitor", "sweep", file, "--out", out}, more...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// An operator sees a sweep of another process move in the console, pauses it,
// lets it go on, reads the report so far, and stops it.
func TestSweepInConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "sweeps", "long")
	address := serveDemo(t, filepath.Join(dir, "data"), "--set", "lab.sweeps=["+filepath.Dir(out)+"]")
	b := browser(t)
	cmd := startSweep(t, long, out, "--workers", "1")
	b.do(chromedp.Navigate(loginLink(t, filepath.Join(dir, "data"))))
	b.see("#pause")
	b.click(`header a[href="/lab"]`)
	b.see("button[value=pause]")
	b.see("svg.spark")
	before := b.text("#live")
	waitFor(t, "the page to move", func() bool { return b.text("#live") != before })
	b.shoot(address, map[string]string{"lab": "/lab"})
	b.do(chromedp.Navigate(address + "/lab"))
	b.click("button[value=pause]")
	b.see("button[value=resume]")
	if s := b.text("#live h2"); !strings.Contains(s, "paused") {
		t.Errorf("it says %q", s)
	}
	b.click("#live a")
	b.see("h1")
	if s := b.text("body"); !strings.Contains(s, "runs are missing") || !strings.Contains(s, "sensor") {
		t.Errorf("report: %.300s", s)
	}
	b.do(chromedp.Navigate(address + "/lab"))
	b.click("button[value=resume]")
	b.see("button[value=pause]")
	b.click("button[value=stop]")
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != command.ExitFailed {
		t.Errorf("the sweep ended with %v", err)
	}
	waitFor(t, "the page to say so", func() bool { return strings.Contains(b.text("#live h2"), "stopped") })
}

// A sweep that is killed without warning goes on where it was, and its results
// are those of one that was let be, bit for bit.
func TestSweepKilled(t *testing.T) {
	t.Parallel()
	plan := strings.Replace(long, "5000", "40", 1)
	cut, whole := filepath.Join(t.TempDir(), "cut"), filepath.Join(t.TempDir(), "whole")
	for want := range 3 { // three times
		cmd := startSweep(t, plan, cut, "--workers", "2")
		waitFor(t, "results", func() bool {
			names, _ := filepath.Glob(filepath.Join(cut, "runs", "*.json"))
			return len(names) > 40*(want+1)
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	var sum struct{ Runs, Ran, Kept, Damaged int }
	for _, s := range []struct {
		dir     string
		workers string
	}{{cut, "2"}, {whole, "1"}} {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary(t), "--json", "--quiet", "lab", "monitor", "sweep", file, "--out", s.dir, "--workers", s.workers).Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &sum); err != nil {
			t.Fatal(err)
		}
		if s.dir == cut && (sum.Kept < 120 || sum.Damaged != 0 || sum.Kept+sum.Ran != 320) {
			t.Errorf("after it was killed: %+v", sum)
		}
	}
	a, b := results(t, cut), results(t, whole)
	if len(a) != 320 || len(b) != 320 {
		t.Errorf("%d and %d results", len(a), len(b))
	}
	for name := range b {
		if a[name] != b[name] {
			t.Errorf("%s differs:\n%.300s\n%.300s", name, a[name], b[name])
		}
	}
}

// results returns the runs of a sweep by file, but for the time that they took.
func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	runs := os.DirFS(filepath.Join(dir, "runs"))
	names, err := fs.Glob(runs, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(runs, name)
		if err != nil {
			t.Fatal(err)
		}
		var r struct{ Run map[string]any }
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		delete(r.Run, "seconds")
		rest, err := json.Marshal(r.Run)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(rest)
	}
	return out
}
