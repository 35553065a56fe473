package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "freshet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := write(t, `
crawl:
  agents: 4
  max_body: 1MB
  delay: 250ms
sources:
  - url: https://www.example.org/
    scope: domain
  - url: smb://fileserver/Музыка
`)
	c, err := Load(path, []string{"FRESHET_CRAWL_AGENTS=5", "FRESHET_INDEX_HALF_LIFE=48h", "FRESHET_LONG=1", "PATH=/bin"}, []string{"crawl.delay=2s", "index.languages=en, lt"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Crawl.Agents != 5 || c.Crawl.MaxBody != 1<<20 || c.Crawl.Delay == nil || *c.Crawl.Delay != 2*time.Second || c.Index.HalfLife != 48*time.Hour {
		t.Errorf("crawl %+v, index %+v", c.Crawl, c.Index)
	}
	if len(c.Index.Languages) != 2 || c.Index.Languages[1] != "lt" {
		t.Errorf("languages %q", c.Index.Languages)
	}
	if c.Sources[0].Share() || !c.Sources[1].Share() {
		t.Error("the second source is a share, the first is not")
	}
	if c.Crawl.Timeout != Default().Crawl.Timeout {
		t.Error("a key that is not given loses its default")
	}
}

// What is wrong is said with file, line and what was meant.
func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, set, want string }{
		{"misspelt", "crawl:\n  agnets: 4\n", "", `freshet.yaml:2: unknown key "agnets" (did you mean "agents"?)`},
		{"two at once", "crwal: {}\nindex:\n  foo_bar_baz: 1\n", "", `:3: unknown key "foo_bar_baz" (known here: freshness_weight,`},
		{"in a list", "sources:\n  - ulr: x\n", "", `:2: unknown key "ulr" (did you mean "url"?)`},
		{"wrong type", "crawl:\n  agents: many\n", "", `freshet.yaml:2: agents: "many" is no whole number`},
		{"wrong size", "crawl:\n  max_body: big\n", "", `freshet.yaml:2: "big" is no size`},
		{"not YAML", "crawl: [", "", "freshet.yaml: line 1"},
		{"no URL", "sources:\n  - url: example\n", "", `sources[0].url: "example" is no URL`},
		{"scope", "sources:\n  - {url: 'http://x/', scope: all}\n", "", `"all" is none of host`},
		{"share policy", "share: {policy: best}\n", "", `share.policy: "best" is none of`},
		{"render mode", "render: {mode: some}\n", "", `render.mode: "some" is none of off, auto, all`},
		{"render rule", "render: {never: ['(']}\n", "", `render.never: "("`},
		{"render cost", "render: {cost: .5}\n", "", "render.cost: 0.5 is below 1"},
		{"open to the world", "console: {listen: '0.0.0.0:80'}\n", "", "can be reached from outside: set console.password"},
		{"proxy header", "console: {listen: ':80', trusted_header: X-User}\n", "", "name the proxies"},
		{"modes", "throttle: {thresholds: [5, 9], modes: [1, 2]}\n", "", "2 values for 2 thresholds"},
		{"falling", "throttle: {thresholds: [9, 5], modes: [1, 2, 3]}\n", "", "throttle.thresholds[1]: 5 is below the value before it, 9"},
		{"set unknown", "", "crawl.agent=1", `--set crawl.agent: unknown key "agent" (did you mean "agents"?)`},
		{"set badly", "", "crawl.delay=soon", `"soon" is no duration`},
		{"set nothing", "", "crawl.delay", "want key=value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sets []string
			if tt.set != "" {
				sets = []string{tt.set}
			}
			_, err := Load(write(t, tt.text), nil, sets)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant %q", err, tt.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), nil, nil); err == nil {
		t.Error("a missing file is no error")
	}
}

// What Print writes Load reads to the same configuration.
func TestPrintReadsBack(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Sources = []Source{{URL: "https://ą.example/", Scope: "host", Exclude: []string{`\.zip$`, "a: b"}}}
	c.Throttle.Thresholds, c.Throttle.Modes = []int{3}, []int{1, 9}
	c.Crawl.MaxRevisit = 90 * time.Minute
	var first, second bytes.Buffer
	if err := c.Print(&first); err != nil {
		t.Fatal(err)
	}
	again, err := Load(write(t, first.String()), nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, first.String())
	}
	if err := again.Print(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("printed\n%s\nread back as\n%s", first.String(), second.String())
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("crawl: {agents: 1}")
	f.Add("a: &a [*a]")
	f.Add("sources: [{url: 1}, 2]")
	f.Fuzz(func(t *testing.T, text string) {
		c := Default()
		_ = c.decodeYAML("f", []byte(text)) // must not panic
	})
}
