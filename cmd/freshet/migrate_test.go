package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/pgtest"
)

// command runs freshet in this process and decodes what it prints.
func runCommand(t *testing.T, out any, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := runArguments(context.Background(), append([]string{"--quiet", "--json"}, args...), strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("freshet %s: exit %d: %s", strings.Join(args, " "), code, stderr.String())
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		t.Fatalf("freshet %s: %v: %s", strings.Join(args, " "), err, stdout.String())
	}
}

// failing runs freshet, which must fail with a code and say something.
func failing(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := runArguments(context.Background(), append([]string{"--quiet"}, args...), strings.NewReader(""), &stdout, &stderr); got != code || !strings.Contains(stderr.String(), says) {
		t.Errorf("freshet %s: exit %d: %s; want exit %d and %q", strings.Join(args, " "), got, stderr.String(), code, says)
	}
}

// What was crawled into a data directory goes on in a database and back, and
// through a backup: the next crawl finds every page known and unchanged, the
// index is built again, copies can be read.
func TestMigrateAndBackup(t *testing.T) {
	t.Parallel()
	const pages = 120
	w := newWitness(t, pages, 3)
	cluster := pgtest.New(t)
	database, other := cluster.Database(t), cluster.Database(t)
	dir := t.TempDir()
	home, away, saved := filepath.Join(dir, "home"), filepath.Join(dir, "away"), filepath.Join(dir, "saved")
	crawl := func(data string, more ...string) crawlSummary {
		t.Helper()
		var sum crawlSummary
		runCommand(t, &sum, append(append([]string{"--data", data, "crawl", "--allow-private", "--scope", "any", "--agents", "3"}, more...), w.site.Seeds()...)...)
		return sum
	}
	known := func(what string, sum crawlSummary, indexed int64) {
		t.Helper()
		if sum.Pages != pages || sum.Unchanged != pages || sum.URLsSeen != pages || sum.Indexed != indexed {
			t.Errorf("%s: %+v", what, sum)
		}
	}
	if sum := crawl(home); sum.Pages != pages || sum.Indexed != pages {
		t.Fatalf("first crawl: %+v", sum)
	}
	var n struct{ Hosts, Pages, Visits, Files, FilesCopied int64 }
	runCommand(t, &n, "migrate", home, database)
	if n.Pages != pages || n.Hosts != 3 || n.Visits != pages {
		t.Errorf("copied %+v", n)
	}
	failing(t, 1, "not empty", "migrate", home, database)
	failing(t, 2, "neither a postgres:// address nor a data directory", "migrate", filepath.Join(dir, "none"), database)
	known("in the database", crawl(home, "--database", database), pages) // the bodies lie in home

	lines := filepath.Join(dir, "pages.jsonl")
	runCommand(t, nil, "export", "pages", "--database", database, "-o", lines)
	if b, err := os.ReadFile(lines); err != nil || bytes.Count(b, []byte("\n")) != pages {
		t.Errorf("exported %d lines, %v", bytes.Count(b, []byte("\n")), err)
	}
	runCommand(t, &n, "--data", home, "backup", "--database", database, saved)
	if n.Pages != pages || n.Visits != 2*pages || n.Files == 0 {
		t.Errorf("saved %+v", n)
	}
	runCommand(t, nil, "--data", home, "backup", "--database", database, saved) // again: nothing new
	runCommand(t, &n, "--data", away, "restore", saved)
	if n.Pages != pages {
		t.Errorf("restored %+v", n)
	}
	failing(t, 1, "not empty", "--data", away, "restore", saved)
	failing(t, 2, "is no backup", "--data", away, "restore", dir)
	known("restored into a directory", crawl(away), pages)
	agree(t, away, pages)

	runCommand(t, nil, "--data", filepath.Join(dir, "third"), "restore", "--database", other, saved)
	known("restored into a database", crawl(filepath.Join(dir, "third"), "--database", other), pages)
	runCommand(t, &n, "migrate", other, filepath.Join(dir, "third"))
	known("back from the database", crawl(filepath.Join(dir, "third")), pages)

	cut := filepath.Join(saved, backupStore)
	b, err := os.ReadFile(cut)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	failing(t, 1, "cut off", "--data", filepath.Join(dir, "fourth"), "restore", saved)
}
