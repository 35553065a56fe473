package weburl

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// oracle is what the standard's parser makes of raw: the form that a URL of
// this package has, or "" if it has none.
func oracle(base, raw string) string {
	var w *whatwg.Url
	var err error
	if base == "" {
		w, err = whatwg.Parse(raw)
	} else {
		w, err = whatwg.ParseRef(base, raw)
	}
	if err != nil || (w.Protocol() != "http:" && w.Protocol() != "https:") {
		return ""
	}
	s := w.Protocol() + "//" + w.Host() + w.Pathname() + w.Search()
	if len(s) > maxLength {
		return ""
	}
	return s
}

var absolute = []string{
	"http://example.org", "http://example.org/", "https://example.org/a/b.html?x=1&y=2#frag", "http://example.org:80/", "https://example.org:443/x", "http://example.org:8080/",
	"HTTP://Example.ORG/A", "http://example.org/a/../b/./c", "http://example.org/.hidden", "http://example.org/a/..", "http://example.org/%7Euser", "http://example.org/%2e%2e/x",
	"http://user:pw@example.org/", "http://127.0.0.1/", "http://127.1/", "http://0x7f.1/", "http://256.1.1.1/", "http://1.2.3.4.5/", "http://[::1]:8080/", "http://пример.рф/путь", "http://žąsis.lt/ž?ą",
	"http://xn--e1afmkfd.xn--p1ai/", "http://a_b.example/", "http://-a.example/", "http://a..b/", "http://a./", "http://example.org?x", "http://example.org#x", "http://example.org/?", "http://example.org/a b", "http://example.org\\a",
	"http:example.org", "http:///example.org", "//example.org", "mailto:x@y", "javascript:alert(1)", "data:text/html,x", "ftp://h/", "", " ", "http://", "http://example.org:0/", "http://example.org:99999/", "http://example.org:080/", "http://example.org/a'b\"c<d>", "http://example.org/?a'b", "http://ex\tample.org/\n", "http://a.b.c.1/", "http://1a.2b/", "http://a.1b/",
}

var relative = []string{"", "a", "a/b?c", "./a", "../a", "/a", "/../a", "//other.example/x", "?q", "#f", "a:b", "/a:b", "a/../b", "/./", "mailto:a", "a#b?c", " a ", "ž", "/.x", ".x", "..", "?", "x?", "\\a", "http:b", "http://x.example/y", ";a", "@b", "%41"}

func TestFastPathAgreesWithTheStandard(t *testing.T) {
	t.Parallel()
	for _, raw := range absolute {
		u, err := Parse(raw)
		if want := oracle("", raw); u.String() != want {
			t.Errorf("Parse(%q) = %q, %v; standard %q", raw, u, err, want)
		}
	}
	for _, base := range []string{"http://example.org/", "https://h.example:81/a/b/c.html?q/r", "http://h/a/"} {
		b, err := Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range append(relative, absolute...) {
			u, err := b.Resolve(ref)
			if want := oracle(base, ref); u.String() != want {
				t.Errorf("%s + %q = %q, %v; standard %q", base, ref, u, err, want)
			}
			r := Resolver{Base: b}
			for range 3 { // the memory of one is not touched by the next
				if v, _ := r.Resolve([]byte(ref)); v != u {
					t.Errorf("%s + %q as bytes = %q, want %q", base, ref, v, u)
				}
			}
		}
	}
}

func FuzzFastPath(f *testing.F) {
	for _, a := range absolute {
		f.Add("http://example.org/a/b?c", a)
	}
	for _, r := range relative {
		f.Add("https://example.org:8443/a/b?c", r)
	}
	f.Fuzz(func(t *testing.T, base, ref string) {
		u, _ := Parse(ref)
		if want := oracle("", ref); u.String() != want {
			t.Errorf("Parse(%q) = %q; standard %q", ref, u, want)
		}
		b, err := Parse(base)
		if err != nil {
			return
		}
		r, err := b.Resolve(ref)
		if want := oracle(b.String(), ref); r.String() != want {
			t.Errorf("%s + %q = %q, %v; standard %q", b, ref, r, err, want)
		}
		resolver := Resolver{Base: b}
		first, _ := resolver.Resolve([]byte(ref))
		if again, _ := resolver.Resolve([]byte(ref)); first != r || again != r {
			t.Errorf("%s + %q as bytes = %q, %q, want %q", b, ref, first, again, r)
		}
		if err == nil {
			if again := splitURL(r.String()); again != r {
				t.Errorf("%q: parts %+v, want %+v", r, r, again)
			}
			c, _ := DefaultCanon.Apply(r)
			if again, _ := DefaultCanon.Apply(c); again != c || splitURL(c.String()) != c {
				t.Errorf("%q: canonical %+v, again %+v", r, c, again)
			}
		}
	})
}

// The cases of the web platform's own tests that concern http(s) results: no
// more of them fail than with the library that follows the standard to the
// letter.
func TestWebPlatformCases(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/urltestdata.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []json.RawMessage
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	n, failed, library := 0, 0, 0
	for _, raw := range cases {
		var c struct {
			Input, Base, Href, Protocol, Host, Pathname, Search string
			Failure                                             bool
		}
		if json.Unmarshal(raw, &c) != nil || c.Input == "" {
			continue // a comment
		}
		want := ""
		if !c.Failure && (c.Protocol == "http:" || c.Protocol == "https:") {
			want = c.Protocol + "//" + c.Host + c.Pathname + c.Search
		}
		var got URL
		theirs := ""
		if base, err := Parse(c.Base); err == nil {
			got, _ = base.Resolve(c.Input)
			theirs = oracle(c.Base, c.Input)
		} else if c.Base == "" || c.Base == "about:blank" {
			got, _ = Parse(c.Input)
			theirs = oracle("", c.Input)
		} else {
			continue // the base is no page that a robot can be on
		}
		n++
		if got.String() != want {
			failed++
			t.Logf("%q on %q: %q, want %q", c.Input, c.Base, got, want)
		}
		if theirs != want {
			library++
		}
	}
	t.Logf("%d cases, %d differ, %d with nlnwa/whatwg-url", n, failed, library)
	if failed > library || n < 400 {
		t.Errorf("%d of %d cases differ from the standard, %d with the library", failed, n, library)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in, want string
		cut      Cut
	}{
		{"http://h/a?utm_source=x&b=1&GCLID=2", "http://h/a?b=1", Tracking},
		{"http://h/a?utm_source=x", "http://h/a", Tracking},
		{"http://h/a;jsessionid=ABC?b=1", "http://h/a?b=1", Session},
		{"http://h/a;JSESSIONID=ABC/b;x=1", "http://h/a/b;x=1", Session},
		{"http://h/a;jsessionid=ABC?fbclid=1", "http://h/a", Session | Tracking},
		{"http://h/?PHPSESSID=0123456789", "http://h/", Session},
		{"http://h/?sid=5", "http://h/?sid=5", 0},
		{"http://h/?sid=0123456789abcdef", "http://h/", Session},
		{"http://h/?a=1&&b", "http://h/?a=1&b", 0},
		{"http://h/%7euser/%2e%41%2f%c3%BF?%7e=%26#%41", "http://h/~user/.A%2F%C3%BF?~=%26", 0},
		{"http://h/%4", "http://h/%4", 0},
		{"http://h/%%41%4%41", "http://h/%%41%4%41", 0},
		{"http://h/%25%34%31%zz%%", "http://h/%25%34%31%zz%%", 0},
		{"http://h/%25%34%31", "http://h/%2541", 0},
		{"http://h./a?b", "http://h/a?b", 0},
		{"http://h.:8080/%7e", "http://h:8080/~", 0},
		{"http://[::1]:81/%7e", "http://[::1]:81/~", 0},
		{"http://h/?b=2&a=1", "http://h/?b=2&a=1", 0},
	}
	for _, tt := range tests {
		u, err := Parse(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		got, cut := DefaultCanon.Apply(u)
		if again, _ := DefaultCanon.Apply(got); again != got {
			t.Errorf("%s -> %s -> %s", tt.in, got, again)
		}
		if got.String() != tt.want || cut != tt.cut {
			t.Errorf("%s -> %s, %v", tt.in, got, cut)
		}
		if got != splitURL(tt.want) {
			t.Errorf("%s: parts %+v", tt.in, got)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	u, err := Parse("https://www.lib.example.co.uk:8443/a/b?c=d#e")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{u.Scheme(), u.Host(), u.Hostname(), u.Domain(), u.Path(), u.Query(), u.Target(), u.Origin()}
	want := "https www.lib.example.co.uk:8443 www.lib.example.co.uk example.co.uk /a/b c=d /a/b?c=d https://www.lib.example.co.uk:8443"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("parts %s", s)
	}
	k := u.Key()
	if [8]byte(k[:8]) != HostKey(u.Host()) {
		t.Error("the key does not begin with the host's")
	}
}

func BenchmarkResolve(b *testing.B) {
	base, _ := Parse("https://www.example.org/news/2026/index.html")
	refs := []string{"/about", "item-17.html", "https://other.example.net/a/b?id=42", "../up/x.html"}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, err := base.Resolve(refs[i%3]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("whatwg", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, err := whatwg.ParseRef(base.String(), refs[i%3]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
