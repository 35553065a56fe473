package query

import (
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)

// Each query beside the tree that it makes, printed.
func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"", ""},
		{"   ", ""},
		{"madonna music", "madonna music"},
		{"madonna OR music live", "madonna OR (music live)"},
		{"(madonna | music) live", "(madonna OR music) live"},
		{`"like a   prayer"`, `"like a prayer"`},
		{`"prayer"`, "prayer"},
		{`"open quote`, `"open quote"`},
		{"-live -\"greatest hits\"", `-live -"greatest hits"`},
		{"--live", "live"},
		{"-(a b)", "-(a b)"},
		{"a - b", "a b"},
		{"madon*", "madon*"},
		{"title:prayer title:\"a prayer\"", `title:prayer title:"a prayer"`},
		{"site:Lib.Example lang:LT", "host:lib.example lang:lt"},
		{"ext:flac -kind:video", "ext:flac -kind:video"},
		{"http://example.org/", "http://example.org/"},
		{"note: this", "note: this"},
		{"title: space", "title: space"},
		{"year:1980..1989", "year:1980..1989"},
		{"year:1999", "year:1999..1999"},
		{"size:>700mb", "size:734003200.."},
		{"size:..1.5k", "size:..1536"},
		{"size:big", `"size:big"`},
		{"size:-1", `"size:-1"`},
		{"date:2024-05", "date:2024-05-01T00:00:00Z..2024-05-31T23:59:59Z"},
		{"date:7d", "date:2026-05-03T12:00:00Z.."},
		{"date:>2024", "date:2024-01-01T00:00:00Z.."},
		{"duration:<90min", "duration:..5400"},
		{"a a a", "a"},
		{"((a))", "a"},
		{"(a", "a"},
		{"a) b", "a b"},
		{"OR", ""},
		{"a OR", "a"},
		{"Пугачёва альбом:1982", "Пугачёва альбом:1982"},
		{"žąsys title:ežeras", "žąsys title:ežeras"},
		{"C++ AT&T foo-bar", "C++ AT&T foo-bar"},
		{`online:true genre:"science fiction"`, `online:true genre:"science fiction"`},
	}
	for _, tt := range tests {
		if got := Parse(tt.in, now).String(); got != tt.want {
			t.Errorf("Parse(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	n := Parse(`madonna "like a prayer" -live host:x -(a -b) OR c*`, now)
	if got := strings.Join(Words(n), ","); got != "madonna,like a prayer,b,c" {
		t.Errorf("words %s of %s", got, n)
	}
	if got := Value(Parse("-host:a host:b", now), "host"); got != "b" {
		t.Errorf("host %q", got)
	}
}

// Every string has a tree, and the tree printed and read again is the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a OR b", `"x y`, "-(a (b", "size:1..2", "date:7d", "title:\"a\"*", "((((", "a|b)c", "\xff\xfe", "-\"", "host:\"\"", "OR*", "\"OR\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first := Parse(s, now)
		again := Parse(first.String(), now)
		if first.String() != again.String() {
			t.Errorf("%q prints as %q, which prints as %q", s, first, again)
		}
	})
}
