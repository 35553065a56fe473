package trap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/weburl"
)

func mustParse(t *testing.T, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestTraps(t *testing.T) {
	t.Parallel()
	year := time.Now().Year()
	tests := map[string]string{
		"http://h/a/b/c/d": "", "http://h/a/a/b": "", "http://h/x/x/x/x/x": "path loop", "http://h/a/b/a/b/a/b/a/b": "path loop",
		"http://h/" + strings.Repeat("s/", 30):              "deep path",
		"http://h/?" + strings.Repeat("a=1&", 20):           "many parameters",
		fmt.Sprintf("http://h/cal/%d/05/", year+5):          "calendar",
		fmt.Sprintf("http://h/cal?year=%d&m=2", year+9):     "calendar",
		fmt.Sprintf("http://h/news/%d/05/", year):           "",
		"http://h/product/2999":                             "",
		fmt.Sprintf("http://h/cal?date=%d-01-02", year+100): "calendar",
	}
	traps := Limits{}.WithDefaults()
	for s, want := range tests {
		if got := traps.Check(mustParse(t, s), "h", 0); got != Kind(want) {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
	if got := traps.Check(mustParse(t, "http://h/x"), "h", traps.HostMax); got != "host budget" {
		t.Errorf("full host: %q", got)
	}
}

// URLs of one shape are allowed up to a number, by host; those without a
// number in them are each a shape of their own.
func TestShapes(t *testing.T) {
	t.Parallel()
	traps := Limits{Shape: 5, Dated: 3, Deep: 4}.WithDefaults()
	tests := []struct {
		name, form string
		allowed    int
		kind       string
	}{
		{"numbers", "http://h/item/%d", 5, "one shape"},
		{"query", "http://h/list?page=%d&sort=a", 5, "one shape"},
		{"another host", "http://g/item/%d", 5, "one shape"},
		{"calendar", "http://h/cal/2020/%02d/", 3, "calendar"},
		{"articles by date", "http://h/2020/05/%d-story.html", 5, "one shape"},
		{"deep folders", "http://d/" + strings.Repeat("x%[1]d/", 9), 4, "deep folders"},
		{"names", "http://h/name-%c", 20, ""},
	}
	var d Detector
	for _, tt := range tests {
		got, kind := 0, ""
		for i := range 20 {
			arg := any(i + 10)
			if tt.name == "names" {
				arg = rune('a' + i)
			}
			if k := d.CountShape(mustParse(t, fmt.Sprintf(tt.form, arg)), 1, &traps); k == "" {
				got++
			} else {
				kind = string(k)
			}
		}
		if got != tt.allowed || kind != tt.kind {
			t.Errorf("%s: %d allowed, then %q; want %d, %q", tt.name, got, kind, tt.allowed, tt.kind)
		}
	}
}

// A host of many ordinary pages may have deep folders in proportion.
func TestDeepFoldersOfLargeHost(t *testing.T) {
	t.Parallel()
	traps := Limits{}.WithDefaults()
	for _, tt := range []struct{ ordinary, deep int }{{0, 24}, {200, 100}, {1000, 300}, {8000, 1000}} {
		var d Detector
		for i := range tt.ordinary {
			if kind := d.CountShape(mustParse(t, fmt.Sprintf("http://h/page/%d", i)), 1, &traps); kind != "" {
				t.Fatalf("page %d: %s", i, kind)
			}
		}
		deep := 0
		for d.CountShape(mustParse(t, fmt.Sprintf("http://h/a/b/c/d/e/f/g/h/i/%d", deep)), 1, &traps) == "" {
			deep++
		}
		if deep != tt.deep {
			t.Errorf("%d deep folders beside %d pages, want %d", deep, tt.ordinary, tt.deep)
		}
	}
}

// A calendar without pages in it ends after twenty years, or two where each month is
// found on the one before; an archive, which has a page for a month, does not. The
// same holds for folders in folders.
func TestEndlessSpaces(t *testing.T) {
	t.Parallel()
	traps := Limits{}.WithDefaults()
	index := func(int) int { return 2 }
	chain := func(i int) int { return i + 1 }
	tests := []struct {
		name, form string
		pages      int // ordinary ones for each
		depth      func(i int) int
		want       int
	}{
		{"calendar", "http://h/cal/%[1]d/%02[2]d/", 0, index, datedFree},
		{"chain", "http://h/cal/%[1]d/%02[2]d/", 0, chain, chainedFree},
		{"archive", "http://h/%[1]d/%02[2]d/", 1, index, 480},
		{"chained archive", "http://h/%[1]d/%02[2]d/", 1, chain, 480},
		{"folders", "http://h/%[1]d/%02[2]d/a/b/c/d/e/f/g/", 0, chain, deepFree},
	}
	for _, tt := range tests {
		var d Detector
		got := 0
		for i := range 480 {
			for k := range tt.pages {
				d.CountShape(mustParse(t, fmt.Sprintf("http://h/story-%d-%d", i, k)), 1, &traps)
			}
			if d.CountShape(mustParse(t, fmt.Sprintf(tt.form, 1980+i/12, 1+i%12)), tt.depth(i), &traps) == "" {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s: %d visited, want %d", tt.name, got, tt.want)
		}
	}
}

// A chain of numbered pages, each found on the one before, ends unless the host has
// as many other pages; a list whose pages are found from an index does not end.
func TestLongChains(t *testing.T) {
	t.Parallel()
	limits := Limits{}.WithDefaults()
	for _, tt := range []struct {
		name  string
		depth func(i int) int
		items int // found on each page of the list
		want  int
	}{
		{"endless chain", func(i int) int { return i }, 0, longChain},
		{"chained list of items", func(i int) int { return i }, 1, 3000},
		{"list from an index", func(int) int { return 2 }, 0, 3000},
	} {
		var d Detector
		visited := 0
		for i := range 3000 {
			for k := range tt.items {
				d.CountShape(mustParse(t, fmt.Sprintf("http://h/item-%c%c%c-%d", 'a'+i%26, 'a'+i/26%26, 'a'+i/676, k)), 3, &limits)
			}
			if d.CountShape(mustParse(t, fmt.Sprintf("http://h/list?page=%d", i)), tt.depth(i), &limits) == "" {
				visited++
			}
		}
		if visited != tt.want {
			t.Errorf("%s: %d pages visited, want %d", tt.name, visited, tt.want)
		}
	}
}
