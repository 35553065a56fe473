package syntax

import (
	"fmt"
	"strings"
	"testing"
)

func parse(t *testing.T, src string, d Dialect) (*Script, []string) {
	t.Helper()
	var diag Diagnostics
	s := Parse(src, d, &diag)
	diag.Sort()
	var got []string
	for _, m := range diag.List {
		got = append(got, fmt.Sprintf("%d:%d: %s", m.Pos.Line, m.Pos.Col, m.Message))
	}
	return s, got
}

// What is printed parses to what it was printed from.
func TestFormatIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"header of the thesis": "ATTRIBUTES PageRank : integer; Seen : Boolean;\nvar w(/path//to/web) file; q(pagerank) : queue of node; r : queue(pagerank) of node; a, b2_ : node;\nbegin end.",
		"dangling else":        "begin if a then if b then c() else d() end.",
		"loops":                "begin for i := 1 to 10 do x := x + i; for i := 9 downto 0 do begin end; for m in n.outlinks do output(m); repeat f(); g until a; while b do ; end.",
		"procedures":           "const k = -3; e = 1.5e3; function f(a, b : integer; var q : queue of node) : real; var i : integer; begin f := 1.5 end; procedure p; begin end; begin p(); end.",
		"expressions":          "begin x := -a * (b + c) div 2 mod 3 / 4; y := a < b and not (c >= d) or e <> \"say \"\"it\"\"\"; z := q.top(i).size() + a[1][2] end.",
		"comments":             "{ one } // two { \nbegin { three\n} x := 1 // four\nend.",
		"types":                "var m : map of string to array of integer; s : stack of node; q : aoq; begin end.",
		"thesis's words":       "{$thesis} var map, for, to : integer; begin to := map and for = 1 end.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, errs := parse(t, src, Strict)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			once := Format(s)
			s2, errs := parse(t, once, Strict)
			if len(errs) > 0 {
				t.Fatalf("%v in\n%s", errs, once)
			}
			if twice := Format(s2); twice != once {
				t.Errorf("printed again:\n%s\nwas\n%s", twice, once)
			}
		})
	}
}

func TestDialectsReadRelationsDifferently(t *testing.T) {
	t.Parallel()
	shape := func(x Expr) string { return strings.ReplaceAll(grouped(x), " ", "") }
	for src, want := range map[string][2]string{ // strict, thesis
		"a and b = c":       {"(aand(b=c))", "((aandb)=c)"},
		"a or b and c":      {"(aor(bandc))", "(aor(bandc))"},
		"not a = b":         {"(not(a=b))", "((nota)=b)"},
		"a = b or c":        {"((a=b)orc)", "(a=(borc))"},
		"- a * b + c":       {"(((-a)*b)+c)", "(((-a)*b)+c)"},
		"a - b - c < d / e": {"(((a-b)-c)<(d/e))", "(((a-b)-c)<(d/e))"},
		"(a < b) and c":     {"((a<b)andc)", "((a<b)andc)"},
	} {
		for d, w := range want {
			s, errs := parse(t, "begin x := "+src+" end.", Dialect(d))
			if len(errs) > 0 {
				t.Errorf("%s: %v", src, errs)
				continue
			}
			if got := shape(s.Body.List[0].(*AssignStmt).Right); got != w {
				t.Errorf("%s in %s: %s, want %s", src, Dialect(d), got, w)
			}
		}
	}
}

// grouped writes an expression with all its parentheses.
func grouped(x Expr) string {
	switch x := x.(type) {
	case *Binary:
		return "(" + grouped(x.X) + x.Op.String() + grouped(x.Y) + ")"
	case *Unary:
		return "(" + x.Op.String() + grouped(x.X) + ")"
	case *Paren:
		return grouped(x.X)
	}
	return exprText(x)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		src  string
		want []string
	}{
		"several at once": {
			"var a : integr;\n    b : integer\nbegin\n  a = 1;\n  if a then b := ;\n  while do a := 2;\n  c := (1 + 2;\n  d := 3\n  e := 4\nend.",
			[]string{
				`1:9: expected a type, found "integr"`,
				`2:16: expected ";" after the declaration, found "begin"`,
				`4:5: an assignment is written ":="; "=" compares`,
				`5:18: expected an expression, found ";"`,
				`6:9: expected an expression, found "do"`,
				`7:14: expected ")" to close the parenthesis, found ";"`,
				`8:9: expected ";" between two statements, found "e"`,
			},
		},
		"else after semicolon": {"begin if a then b(); else c() end.", []string{`1:22: this else belongs to no if: there may be no ; before else`}},
		"chained relations":    {"begin x := a < b < c end.", []string{`1:18: relations do not chain: write a < b and b < c`}},
		"reserved word":        {"var map : integer; begin end.", []string{`1:5: "map" is a reserved word and cannot be a name (a script of the thesis may use it: begin the script with {$thesis})`}},
		"no end":               {"begin x := 1", []string{`1:13: expected "end" or a statement, found end of the script`}},
		"after the end":        {"begin end. x", []string{`1:12: nothing may follow the last "end.", found "x"`}},
		"open comment":         {"begin end. { x", []string{"1:12: this comment is never closed; } ends it"}},
		"open string":          {"begin x := \"ab\nend.", []string{`1:12: this string is not closed on its line`}},
		"strange bytes":        {"begin x := 1 § 2; \xff\xfe y := 2 end.", []string{`1:13: expected ";" between two statements, found "2"`, `1:14: "§" begins nothing in this language`, `1:19: byte 0xff is no character: the script is not UTF-8`}},
		"empty":                {"", []string{`1:1: expected a declaration or "begin", found end of the script`}},
		"late directive":       {"begin {$thesis} end.", []string{`1:7: {$thesis} must stand before everything but comments`}},
		"too deep":             {"begin x := " + strings.Repeat("(", 1000) + " end.", []string{"1:261: nested deeper than 250 levels"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got := parse(t, tt.src, Strict)
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestHumanMessagePointsAtThePlace(t *testing.T) {
	t.Parallel()
	src := "begin\n\tžąsis := count + 1;\nend."
	d := Diagnostic{Pos: Pos{2, 11}, End: 16, Message: "unknown"}
	want := "a.strategy:2:11: unknown\n    \tžąsis := count + 1;\n    \t         ^~~~~"
	if got := d.Human("a.strategy", src); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range []string{
		"attributes a : integer; var w(/x) file; q : queue(a) of node; begin while w.size() > 0 do q.push(w.pop()); end.",
		"{$thesis} begin if a and b = c then x := 'it''s' else ; end.",
		"const k = 1; procedure p(var q : stack of node; n : integer); var i : integer; begin for i := 1 to n do q.push(q.top()) end; begin end.",
		"begin repeat x := -1.5e3 mod (2) until not true end.", "begin ((((( \xff { ",
	} {
		f.Add(src, false)
		f.Add(src, true)
	}
	f.Fuzz(func(t *testing.T, src string, thesis bool) {
		d := Strict
		if thesis {
			d = Thesis
		}
		var diag Diagnostics
		s := Parse(src, d, &diag)
		for _, m := range diag.List {
			if m.Pos.Line < 1 || m.Pos.Col < 1 || m.End <= m.Pos.Col {
				t.Fatalf("message at %v to %d", m.Pos, m.End)
			}
			_ = m.Human("x", src)
		}
		if diag.Errors() > 0 {
			return
		}
		text := Format(s)
		var again Diagnostics
		if s2 := Parse(text, d, &again); again.Errors() > 0 || Format(s2) != text {
			t.Fatalf("printed as\n%s\nerrors %v", text, again.List)
		}
	})
}
