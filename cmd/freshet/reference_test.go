package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

// TestReference keeps docs/commands.md what --help says. After a change of
// commands or flags: go test ./cmd/freshet -run TestReference -update
func TestReference(t *testing.T) {
	t.Parallel()
	const file = "../../docs/commands.md"
	var c commandLine
	p, err := c.newParser()
	if err != nil {
		t.Fatal(err)
	}
	want := reference(p.Model.Node)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the commands say of themselves: go test ./cmd/freshet -run TestReference -update", file)
	}
}

// reference describes every command in Markdown.
func reference(top *kong.Node) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nMade from the program's own help (`freshet COMMAND --help`); a test keeps it so. Every command also takes:\n\n")
	flags(&b, top.Flags)
	for _, n := range top.Children {
		describe(&b, n)
	}
	return b.String()
}

func describe(b *strings.Builder, n *kong.Node) {
	if n.Hidden {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n", n.FullPath(), escape(n.Help))
	if n.Detail != "" {
		fmt.Fprintf(b, "\n%s\n", escape(n.Detail))
	}
	var words []string
	for _, p := range n.Positional {
		words = append(words, p.Summary())
	}
	if len(n.Children) == 0 {
		fmt.Fprintf(b, "\n```\n%s\n```\n\n", strings.TrimSpace(n.FullPath()+" "+strings.Join(words, " ")))
	}
	for _, p := range n.Positional {
		fmt.Fprintf(b, "- `%s`: %s\n", p.Summary(), escape(p.Help))
	}
	flags(b, n.Flags)
	for _, c := range n.Children {
		describe(b, c)
	}
}

func flags(b *strings.Builder, list []*kong.Flag) {
	for _, f := range list {
		if f.Hidden || f.Name == "help" {
			continue
		}
		fmt.Fprintf(b, "- `%s`: %s\n", f.String(), escape(f.Help))
	}
}

// escape keeps Markdown from taking the names of arguments for tags.
func escape(s string) string { return strings.ReplaceAll(s, "<", "\\<") }
