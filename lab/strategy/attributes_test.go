package strategy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Attributes persist from run to run, those of a failed run as they were at the
// last checkpoint, and those of other scripts beside them.
func TestAttributesPersist(t *testing.T) {
	t.Parallel()
	g := lineWeb(t)
	dir := filepath.Join(t.TempDir(), "attributes")
	steps := []struct {
		src, want string
		fails     bool
	}{
		{src: "attributes a : integer; r : real; b : boolean; p : node; begin print(node(3).a, node(3).r, node(3).b, node(3).p); node(3).a := -5; node(3).r := 0.1; node(3).b := true; node(3).p := node(8); node(4).visited := 1 end.", want: "0 0 false nil\n"},
		{src: "attributes a : integer; r : real; b : boolean; p : node; begin print(node(3).a, node(3).r, node(3).b, node(3).p, node(4).visited); node(3).a := 7 end.", want: "-5 0.1 true 8 true\n"},
		{src: "attributes a : integer; var z : integer; begin node(3).a := 8; checkpoint; node(3).a := 9; z := 1 / z end.", fails: true},
		{src: "attributes other : integer; begin node(0).other := 1 end."},
		{src: "attributes a : integer; r : real; other : integer; begin print(node(3).a, node(3).r, node(0).other) end.", want: "8 0.1 1\n"},
	}
	for i, step := range steps {
		opt := options(t, g)
		opt.Attributes = dir
		var log strings.Builder
		opt.Log = &log
		_, err := Run(t.Context(), script(t, step.src), opt)
		if (err != nil) != step.fails || log.String() != step.want {
			t.Fatalf("step %d: %q, %v; want %q", i, log.String(), err, step.want)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 { // current and one checkpoint
		t.Errorf("%d entries", len(entries))
	}
}

// Whatever is wrong with saved attributes, the error names the file and what to
// do; nothing panics.
func TestDamagedAttributes(t *testing.T) {
	t.Parallel()
	g := lineWeb(t)
	const src = "attributes b : boolean; p : node; i : integer; begin node(1).p := node(2); print(node(3).p, node(3).b) end."
	write := func(name, text string) func(dir string) error {
		return func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "checkpoint-1", name), []byte(text), 0o600)
		}
	}
	for name, tt := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"cut":        {write("i.column", "abc"), "i.column: 3 bytes, want 72: damaged"},
		"node":       {write("p.column", strings.Repeat("\xff", 36)), "p.column: node 4294967294 of 9: damaged"},
		"boolean":    {write("b.column", strings.Repeat("\x07", 9)), "b.column: value 7 of page 0 is no boolean: damaged"},
		"list":       {write("columns.json", "{"), "columns.json: unexpected end"},
		"other web":  {write("columns.json", `{"nodes": 10}`), "are of a web of 10 pages, this one has 9"},
		"other type": {write("columns.json", `{"nodes": 9, "columns": [{"name": "i", "type": "real"}]}`), `attribute "i" is real there, integer in the script`},
		"lost":       {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "checkpoint-1")) }, "no such file"},
		"elsewhere": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "current"), []byte("../../../etc\n"), 0o600)
		}, filepath.Join("attributes", "etc")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := options(t, g)
			opt.Attributes = filepath.Join(t.TempDir(), "attributes")
			if _, err := Run(t.Context(), script(t, src), opt); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(opt.Attributes); err != nil {
				t.Fatal(err)
			}
			if _, err := Run(t.Context(), script(t, src), opt); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
