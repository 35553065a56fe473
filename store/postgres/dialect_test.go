package postgres

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statements are all SQL statements of the Go files and schemas of some
// folders: every string that begins like one, with package constants put in and
// "x" for what is known only at run time.
func statements(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var parsed []*ast.File
		consts := map[string]ast.Expr{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
			ast.Inspect(f, func(n ast.Node) bool {
				if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
					for i := range v.Names {
						consts[v.Names[i].Name] = v.Values[i]
					}
				}
				return true
			})
		}
		for _, f := range parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if _, name := n.(*ast.Ident); !ok || name {
					return true
				}
				text, whole := textOf(e, consts)
				if !whole || !statement.MatchString(text) {
					return true
				}
				// A verb of fmt stands for a number, a condition or an expression.
				text = regexp.MustCompile(`%[sdgv]`).ReplaceAllString(text, "1")
				out[set.Position(e.Pos()).String()] = strings.TrimSpace(text)
				return false
			})
		}
		schemas, err := filepath.Glob(filepath.Join(dir, "schema", "*.sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range schemas {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			plain := regexp.MustCompile(`--[^\n]*`).ReplaceAllString(string(b), "")
			for i, s := range strings.Split(plain, ";") {
				if s = strings.TrimSpace(s); s != "" {
					out[fmt.Sprintf("%s:%d", name, i+1)] = s
				}
			}
		}
	}
	return out
}

// statement is how one begins.
var statement = regexp.MustCompile(`(?s)^\s*(select|insert|update|delete|with|create|drop|alter|set|analyze|explain)\s.*\s`)

// textOf evaluates a string expression as far as it is constant; whole is false
// for what is no string.
func textOf(e ast.Expr, consts map[string]ast.Expr) (text string, whole bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return textOf(e.X, consts)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		a, okA := textOf(e.X, consts)
		b, okB := textOf(e.Y, consts)
		if !okA && !okB {
			return "", false
		}
		if !okA {
			a = "x"
		}
		if !okB {
			b = "x"
		}
		return a + b, true
	case *ast.Ident:
		if c := consts[e.Name]; c != nil {
			return textOf(c, consts)
		}
	}
	return "", false
}

// foreign are forms that PostgreSQL has and one of CockroachDB and YugabyteDB
// documents not to have, or to have otherwise.
var foreign = map[string]*regexp.Regexp{
	"advisory locks":               regexp.MustCompile(`advisory`),
	"LISTEN and NOTIFY":            regexp.MustCompile(`(?m)^\s*(listen|notify)\b`),
	"extensions":                   regexp.MustCompile(`create\s+extension`),
	"triggers, rules, functions":   regexp.MustCompile(`create\s+(or\s+replace\s+)?(trigger|rule|function|procedure)|\bdo\s+\$`),
	"inheritance and partitions":   regexp.MustCompile(`\binherits\b|partition\s+(by|of)`),
	"MERGE":                        regexp.MustCompile(`\bmerge\s+into\b`),
	"system columns":               regexp.MustCompile(`\b(ctid|xmin|xmax)\b`),
	"table locks":                  regexp.MustCompile(`\block\s+table\b`),
	"temporary tables":             regexp.MustCompile(`create\s+(temp|temporary|unlogged)\b`),
	"several lists of unnest":      regexp.MustCompile(`unnest\([^)]*\)\s+with\s+ordinality`),
	"cursors":                      regexp.MustCompile(`\bdeclare\b.*\bcursor\b`),
	"TABLESAMPLE":                  regexp.MustCompile(`tablesample`),
	"DISTINCT ON with other order": regexp.MustCompile(`distinct\s+on`),
}

// Statements keep to what distributed engines that speak PostgreSQL's protocol
// accept (docs/scale-out.md). FRESHET_STATEMENTS names a file to which all are
// written, each on a line, for an engine's own parser.
func TestDialect(t *testing.T) {
	t.Parallel()
	all := statements(t, ".", "../../index/postgres", "../../cluster/postgres")
	if len(all) < 90 {
		t.Errorf("only %d statements were found", len(all))
	}
	var places []string
	for place, s := range all {
		places = append(places, place)
		for what, re := range foreign {
			if re.MatchString(strings.ToLower(s)) {
				t.Errorf("%s: %s, which other engines lack: %s", place, what, s)
			}
		}
	}
	if path := os.Getenv("FRESHET_STATEMENTS"); path != "" {
		slices.Sort(places)
		var b strings.Builder
		for _, p := range places {
			fmt.Fprintf(&b, "%s\t%s\n", p, strings.Join(strings.Fields(all[p]), " "))
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
