package weburl

import (
	"encoding/csv"
	"errors"
	"os"
	"strings"
	"testing"
)

// records reads a file of testdata that has comments, and lists fields by commas.
func records(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment, r.FieldsPerRecord, r.LazyQuotes, r.TrimLeadingSpace = '#', -1, true, true
	out, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Why a case's result is another here.
const (
	noPage   = "no address of a web page: not http, or without host"
	slashes  = "empty segments are segments (RFC 3986, 3.3; WHATWG keeps them): servers may and do tell /a//b from /a/b"
	order    = "the order of parameters, empty names and values may choose the page (RFC 3986, 6.2.4: only the owner of the scheme may say what is more the same)"
	percent  = "WHATWG leaves a % that begins no escape, as browsers send it; RFC 3986 knows no such URL"
	asWHATWG = "WHATWG does not escape it in queries, as browsers send it; servers decode both"
	bare     = "what has no scheme is a relative reference; people's input is completed where it is read"
	parts    = "user, password and fragment are no part of a page's address here"
)

// Canonical forms of the cases of crawler-commons' normalizer. Where ours is another it
// stands here with the reason; the rest must be the same.
func TestNormalizeCases(t *testing.T) {
	t.Parallel()
	type other struct{ is, why string }
	others := map[string]other{
		"http://x.com/?x[y]=1":                                              {"http://x.com/?x[y]=1", asWHATWG},
		"http://foo.com//aa/bb/foo.html":                                    {"http://foo.com//aa/bb/foo.html", slashes},
		"http://foo.com/aa//bb/foo.html":                                    {"http://foo.com/aa//bb/foo.html", slashes},
		"http://foo.com/aa/bb//foo.html":                                    {"http://foo.com/aa/bb//foo.html", slashes},
		"http://foo.com//aa//bb//foo.html":                                  {"http://foo.com//aa//bb//foo.html", slashes},
		"http://foo.com////aa////bb//foo.html":                              {"http://foo.com////aa////bb//foo.html", slashes},
		"http://foo.com////aa////bb////foo.html":                            {"http://foo.com////aa////bb////foo.html", slashes},
		"file:///foo/bar.txt":                                               {"", noPage},
		"ftp:/":                                                             {"", noPage},
		"http:////":                                                         {"", noPage},
		"http:///////":                                                      {"", noPage},
		"ftp://foo.com/index.html":                                          {"", noPage},
		"file:/path/index.html":                                             {"", noPage},
		"file:/var/www/html/////./bar/index.html":                           {"", noPage},
		"file:/var/www/html/foo/../bar/index.html":                          {"", noPage},
		"foo.com/index.html":                                                {"", bare},
		"http://www.example.com/a/c/../b/search?q=foobar^":                  {"http://www.example.com/a/b/search?q=foobar^", asWHATWG},
		"http://www.example.com/a/c/../b/search?q=foobar`":                  {"http://www.example.com/a/b/search?q=foobar`", asWHATWG},
		"http://www.example.com/a/c/../b/search?q=foobar|":                  {"http://www.example.com/a/b/search?q=foobar|", asWHATWG},
		"http://www.example.com/a/c/../b/search?q=foobar%":                  {"http://www.example.com/a/b/search?q=foobar%", percent},
		"http://www.example.com/search?q=foobar%":                           {"http://www.example.com/search?q=foobar%", percent},
		"http://www.example.com/search?q=foobar%2":                          {"http://www.example.com/search?q=foobar%2", percent},
		"http://www.example.com/p%zz%77%v":                                  {"http://www.example.com/p%zz%77%v", percent},
		"https://www.last.fm/music/Prefuse+73/_/90%+of+My+Mind+Is+With+You": {"https://www.last.fm/music/Prefuse+73/_/90%+of+My+Mind+Is+With+You", percent},
		"http://example.com/?b=1&a=1":                                       {"http://example.com/?b=1&a=1", order},
		"http://foo.com/foo.html?b=1&a=1":                                   {"http://foo.com/foo.html?b=1&a=1", order},
		"http://foo.com/index?b=2&a=1":                                      {"http://foo.com/index?b=2&a=1", order},
		"http://foo.com/index?b=2&a=1#c":                                    {"http://foo.com/index?b=2&a=1", order},
		"http://foo.com/index?a=1&b=":                                       {"http://foo.com/index?a=1&b=", order},
		"http://foo.com/index?b&a=1":                                        {"http://foo.com/index?b&a=1", order},
		"http://foo.com/index?b=&a=1":                                       {"http://foo.com/index?b=&a=1", order},
		"http://foo.com/index?b=1&a=1&":                                     {"http://foo.com/index?b=1&a=1", order},
		"http://foo.com/index?&b=1&a=1":                                     {"http://foo.com/index?b=1&a=1", order},
		"http://foo.com/index?&=1&a=1":                                      {"http://foo.com/index?=1&a=1", order},
		"http://foo.com/index?=1&b=1&a=1":                                   {"http://foo.com/index?=1&b=1&a=1", order},
	}
	n := 0
	for _, r := range records(t, "weirdToNormalizedUrls.csv") {
		in, want := r[0], strings.TrimSpace(r[1])
		n++
		if o, ok := others[in]; ok {
			if o.is == want {
				t.Errorf("%q differs no more", in)
			}
			delete(others, in)
			want = o.is
		}
		u, err := Parse(in)
		if u, _ = DefaultCanon.Apply(u); u.String() != want {
			t.Errorf("%q is %q, want %q (%v)", in, u, want, err)
		}
		if again, _ := DefaultCanon.Apply(u); again != u || !u.IsZero() && splitURL(u.String()) != u {
			t.Errorf("%q: %+v, again %+v", in, u, again)
		}
	}
	for in, o := range others {
		t.Errorf("%q is no case (%s)", in, o.why)
	}
	if n < 100 {
		t.Errorf("only %d cases", n)
	}
}

func TestResolveCases(t *testing.T) {
	t.Parallel()
	type other struct{ is, why string }
	others := map[string]other{
		"http://user:pass@foo:21/bar;par?b#c": {"http://foo:21/bar;par?b", parts},
		"#right-menu":                         {"https://example.org/product/red-table", parts},
		"//server/file":                       {"", noPage},
	}
	n := 0
	for _, r := range records(t, "url-resolve.csv") {
		ref, base, want := r[0], r[1], r[2]
		n++
		if o, ok := others[ref]; ok {
			want = o.is
			delete(others, ref)
		}
		b, _ := Parse(base)
		if u, err := b.Resolve(ref); u.String() != want {
			t.Errorf("%s + %s is %q, want %q (%v)", base, ref, u, want, err)
		}
	}
	if n < 20 || len(others) > 0 {
		t.Errorf("%d cases, no cases: %v", n, others)
	}
}

func TestInvalidCases(t *testing.T) {
	t.Parallel()
	all := records(t, "invalidUrls.csv")
	for _, r := range append(all, []string{"http://[::1"}, []string{"http://h:99999/"}, []string{"http://a b/"}, []string{"https://"}, []string{"http://1.2.3.4.5/"}, []string{"http://0xffffffff1/"}, []string{"http://a%00b/"}, []string{"http://h:port/"}, []string{"http://xn--/"}) {
		if u, err := Parse(r[0]); !errors.Is(err, ErrSyntax) || !u.IsZero() {
			t.Errorf("%q is %q, %v", r[0], u, err)
		}
	}
	if len(all) < 2 {
		t.Errorf("only %d cases", len(all))
	}
}
