package main

import (
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// pages reads README.md and everything under docs, by their paths.
func pages(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, start := range []string{"README.md", "CHANGELOG.md", "docs"} {
		err := filepath.WalkDir(filepath.Join(root, start), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			b, err := os.ReadFile(path)
			out[path] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var (
	fenced  = regexp.MustCompile("(?s)```.*?```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	marks   = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchor is the name that a heading has in links.
func anchor(heading string) string {
	return strings.ReplaceAll(marks.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

// Every link of the documentation leads to a file, and to a heading of it where
// it names one; every page is led to.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t, filepath.Join("..", ".."))
	ledTo := map[string]bool{}
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, at, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
				continue
			}
			if to != path {
				ledTo[to] = true
			}
			if text, ok := all[to]; ok && at != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(text, -1), func(h []string) bool { return anchor(h[1]) == at }) {
				t.Errorf("%s: %s has no heading %q", path, to, at)
			}
		}
	}
	for path := range all {
		if !ledTo[path] && filepath.Dir(path) != filepath.Join("..", "..") {
			t.Errorf("no page leads to %s", path)
		}
	}
}

// The page of the house names every package.
func TestHouse(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text := pages(t, root)[filepath.Join(root, "docs", "architecture.md")]
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "peers" || name == "dist") {
			return filepath.SkipDir
		}
		sources, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(sources) == 0 {
			return err
		}
		dir, err := filepath.Rel(root, path)
		if dir = filepath.ToSlash(dir); !strings.Contains(text, "`"+dir+"`") && !strings.Contains(text, "`"+filepath.Base(dir)+"`") {
			t.Errorf("docs/architecture.md does not name %s", dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The page of the house tells what the packages above the lab import of ours.
func TestImports(t *testing.T) {
	t.Parallel()
	const module = "github.com/freshet/freshet/"
	root := filepath.Join("..", "..")
	row := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|.*\\|([^|]*)\\|$")
	name := regexp.MustCompile("`([a-z]+)[a-z/]*`")
	for _, m := range row.FindAllStringSubmatch(pages(t, root)[filepath.Join(root, "docs", "architecture.md")], -1) {
		if m[1] == "app" {
			continue // it assembles them all
		}
		told := map[string]bool{m[1]: true}
		for _, n := range name.FindAllStringSubmatch(m[2], -1) {
			told[n[1]] = true
		}
		err := filepath.WalkDir(filepath.Join(root, m[1]), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range f.Imports {
				of, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
				if of, _, _ = strings.Cut(of, "/"); ours && !told[of] {
					t.Errorf("docs/architecture.md does not say that %s imports %s", path, of)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Every command that the documentation prints is one, with flags that it has.
func TestPrintedCommands(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	n := 0
	for path, text := range pages(t, filepath.Join("..", "..")) {
		for _, block := range fenced.FindAllString(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
				if !strings.HasPrefix(line, "freshet ") {
					continue
				}
				line, _, _ = strings.Cut(line, " #")
				for part := range strings.SplitSeq(line, "&&") {
					part = strings.TrimSpace(part)
					for _, end := range []string{" | ", " > ", " < ", "; ", " --netns -- ", " 2>", " &"} {
						part, _, _ = strings.Cut(part, end)
					}
					args := words.FindAllString(part, -1)
					if len(args) < 2 || args[0] != "freshet" || strings.Contains(part, "...") {
						continue
					}
					for i := range args {
						args[i] = strings.Trim(args[i], `'"`)
					}
					var c commandLine
					k, err := c.newParser(kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
					if err != nil {
						t.Fatal(err)
					}
					n++
					if _, err := k.Parse(args[1:]); err != nil && (strings.Contains(err.Error(), "unknown flag") || strings.Contains(err.Error(), "unexpected argument")) {
						t.Errorf("%s: %s: %v", path, line, err)
					}
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found", n)
	}
}
