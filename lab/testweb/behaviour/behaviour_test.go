package behaviour

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if seen[k.Name] || k.Doc == "" {
			t.Errorf("%s: twice, or without a description", k.Name)
		}
		seen[k.Name] = true
		if err := k.make().checkOptions(); err != nil {
			t.Errorf("%s: its defaults: %v", k.Name, err)
		}
		if _, err := os.Stat(k.Name + ".go"); err != nil {
			t.Errorf("%s has no file of its own: %v", k.Name, err)
		}
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	for _, p := range Presets() {
		set, err := Preset(p)
		if err != nil || len(set) == 0 {
			t.Errorf("preset %s: %d behaviours, %v", p, len(set), err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	names := func(s Set) (n []string) {
		for _, a := range s {
			n = append(n, a.Name)
		}
		return n
	}
	calm, err := Preset("calm")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		yaml string
		want []string
	}{
		{"", nil},
		{"# nothing\n", nil},
		{"latency: on", []string{"latency"}},
		{"errors: {pages: 0.5}\nmirror: {}\n", []string{"mirror", "errors"}}, // in the order of the table
		{"preset: calm", names(calm)},
		{"sitemap: off\npreset: calm", []string{"latency"}},
	}
	for _, tt := range tests {
		set, err := Parse("b.yaml", []byte(tt.yaml))
		if err != nil || !slices.Equal(names(set), tt.want) {
			t.Errorf("%q: %v, %v; want %v", tt.yaml, names(set), err, tt.want)
		}
	}
}

// Keys of a file change single options of the preset.
func TestFileOverPreset(t *testing.T) {
	t.Parallel()
	set, err := Parse("", []byte("latency: {spread: 9}\npreset: calm"))
	if err != nil {
		t.Fatal(err)
	}
	want := newLatency()
	want.Median, want.Spread = 20e6, 9
	want.setSalt(fnv1a("latency"))
	for _, a := range set {
		if l, ok := a.Behaviour.(*latency); ok && !reflect.DeepEqual(l, want) {
			t.Errorf("options %+v, want %+v", l, want)
		}
	}
}

func TestErrorsOfConfiguration(t *testing.T) {
	t.Parallel()
	tests := []struct{ yaml, want string }{
		{"latency: on\nmirorr: on", `b.yaml:2: unknown behaviour "mirorr" (did you mean "mirror"?)`},
		{"errors:\n  page: 0.5", `b.yaml:2: unknown key "page" of errors (did you mean "pages"?)`},
		{"errors: {pages: 1.5}", "b.yaml:1: errors: pages: 1.5 is no share"},
		{"errors: {statuses: [200]}", "200 is not in 400 to 599"},
		{"latency: {median: 50}", `"50" is no time`},
		{"latency: {spread: -1}", "spread: -1 is not positive"},
		{"latency: [1]", "b.yaml:1: latency: want options"},
		{"redirect: {chain: 0}", "chain: 0 redirects"},
		{"robots: {variants: [huge, bomb]}", `unknown variant "bomb" (did you mean "bom"?)`},
		{"preset: wildd", `unknown preset "wildd" (did you mean "wild"?)`},
		{"- latency", "want a mapping"},
		{"latency: {pages: [", "line 1"},
		{"sitemap: {limit: 99999}", "a sitemap holds"},
	}
	for _, tt := range tests {
		if _, err := Parse("b.yaml", []byte(tt.yaml)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %q", tt.yaml, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("preset: wild\nlatency: {median: 50ms}\nerrors: off")
	f.Add("robots: {variants: [huge], delay: 1e309}")
	f.Add("? [a]\n: b")
	f.Fuzz(func(t *testing.T, doc string) {
		set, err := Parse("b.yaml", []byte(doc))
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		for _, a := range set {
			if err := a.Behaviour.(module).checkOptions(); err != nil {
				t.Errorf("%q let %s pass: %v", doc, a.Name, err)
			}
		}
	})
}
