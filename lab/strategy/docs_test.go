package strategy

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/freshet/freshet/lab/strategy/syntax"
)

// The scripts of the manual are correct and run.
func TestScriptsOfTheManual(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/strategy-language.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts := regexp.MustCompile("(?s)```pascal\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	if len(scripts) < 4 {
		t.Fatalf("%d scripts", len(scripts))
	}
	for _, s := range scripts {
		sc := script(t, s[1])
		if len(sc.Diagnostics) > 0 {
			t.Errorf("%s", sc.Diagnostics[0].Human("manual", s[1]))
		}
		order, _ := outputs(t, sc, options(t, smallWeb(t, 300, 4, 1)))
		if len(order) < 10 && !strings.Contains(s[1], "function order") {
			t.Errorf("%d pages by\n%s", len(order), s[1])
		}
	}
}

// The editor's grammar knows every reserved word, as one kind only, and its
// expressions are valid.
func TestEditorGrammar(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../editor/freshet-strategy.tmLanguage.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Patterns   []struct{ Include string }
		Repository map[string]struct{ Match string }
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	for _, p := range g.Patterns {
		if _, ok := g.Repository[strings.TrimPrefix(p.Include, "#")]; !ok {
			t.Errorf("no rule %s", p.Include)
		}
	}
	for _, word := range syntax.Keywords(syntax.Strict) {
		var kinds []string
		for _, kind := range []string{"declaration", "control", "operator-word", "type"} {
			if regexp.MustCompile("^(?:" + g.Repository[kind].Match + ")$").MatchString(word) {
				kinds = append(kinds, kind)
			}
		}
		if len(kinds) != 1 {
			t.Errorf("%s is %v", word, kinds)
		}
	}
}
