package weburl

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Pieces of which the fixed-point tests make URLs: dot segments, session parameters,
// escapes, and host names that IDNA changes or refuses.
var (
	pathPieces = []string{
		"/", "//", "..", ".", "%2e", "%2E", "%2f", "%5c", "%", "%00", "%zz", "%7e", "%D0%bf", "a", "é", "\\", ";", ";sid=1", ";jsessionid=ab", ";SID=x;sid=y",
		";phpsessid=", "?", "&", "=", "utm_x=1", "sid=12345678", "gclid=1", "sid=%41%41%41%41%41%41%41%41", "#", "'", "|", " ", "\t", "\x00", "\u2028", "%3b", "%3Bsid=1", "%73id=12345678", "u%74m_a=1",
	}
	hostPieces = []string{
		"h", "H", "example", ".", "..", "-", "--", "_", "~", "xn--", "xn--a", "xn--e1afmkfd", "İ", "ı", "ß", "ſ", "K", "Å", "ﬀ", "㎏", "½", "。", "．", "\u00ad", "\u200d", "\u200c", "é", "e\u0301", "пример", "例え",
		"1", "127.1", "0x7f", "08", "256", "[::1]", "[::ffff:1.2.3.4]", ":80", ":443", ":8080", ":0", "%41", "%2e", "%C4%B0", "⒈", "⁹", "①", "\U0001F600", "א", "ة", "०",
	}
)

// checkFixedPoint fails unless a parsed URL is the same when it is parsed again, and its
// canonical form when it is parsed and made canonical again.
func checkFixedPoint(t *testing.T, raw string, u URL) {
	t.Helper()
	if again, err := Parse(u.String()); err != nil || again != u {
		t.Errorf("%q: Parse(%q) = %q, %v, want the same URL", raw, u, again, err)
	}
	for name, canon := range map[string]Canon{"default": DefaultCanon, "same": {Same: true}, "sessions": {Sessions: DefaultCanon.Sessions}} {
		c, _ := canon.Apply(u)
		if again, err := Parse(c.String()); err != nil || again != c || again.Key() != c.Key() {
			t.Errorf("%q: canonical (%s) %q is parsed as %q, %v", raw, name, c, again, err)
		}
		if twice, cut := canon.Apply(c); twice != c || cut != 0 {
			t.Errorf("%q: canonical (%s) of %q is %q, cut %d", raw, name, c, twice, cut)
		}
	}
}

func TestCanonicalFormIsFixedPoint(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 7))
	base, err := Parse("https://x.example/dir/page?q")
	if err != nil {
		t.Fatal(err)
	}
	parsed := 0
	for range 60_000 {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteString([]string{"http://", "https://", "//"}[r.IntN(3)])
			for range 1 + r.IntN(5) {
				b.WriteString(hostPieces[r.IntN(len(hostPieces))])
			}
		} else {
			b.WriteString([]string{"http://h", "http://h.", "https://x.y:8443", "http://H.EXAMPLE.", "http://1.2.3.4.", "http://xn--p1ai.", "", "/a/b"}[r.IntN(8)])
		}
		if r.IntN(4) > 0 {
			b.WriteByte('/')
		}
		for range r.IntN(10) {
			b.WriteString(pathPieces[r.IntN(len(pathPieces))])
		}
		u, err := base.Resolve(b.String())
		if err != nil {
			continue
		}
		parsed++
		if checkFixedPoint(t, b.String(), u); t.Failed() {
			return
		}
	}
	if parsed < 20_000 {
		t.Errorf("only %d of 60,000 URLs could be parsed: the test tries too little", parsed)
	}
}

func FuzzCanonicalForm(f *testing.F) {
	for _, raw := range append([]string{"..;jsessionid=ABC", "/a/..;sid=1/b", "/x/%2e;sid=1/y", "http://İ~.example.com/", "/%;sid=1;2e%2e/..", "http://h./;sid=1", "//xn--a./"}, absolute...) {
		f.Add(raw)
	}
	base, err := Parse("https://x.example/dir/page?q")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if u, err := base.Resolve(raw); err == nil {
			checkFixedPoint(t, raw, u)
		}
	})
}

func TestCanonicalResolvesDotSegments(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"http://h/a/b/..;jsessionid=ABC":      "http://h/a/",
		"http://h/a/..;sid=1/b":               "http://h/b",
		"http://h/x/%2e;sid=1/y":              "http://h/x/y",
		"http://h/a/.;sid=1/b":                "http://h/a/b",
		"http://h/a/%;sid=1;/..?sid=1&utm_x=": "http://h/a/?sid=1",
	} {
		u, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := DefaultCanon.Apply(u); got.String() != want {
			t.Errorf("canonical form of %s is %s, want %s", raw, got, want)
		}
	}
}

func TestHostWithoutStandardFormIsRefused(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"http://İ~.example.com/", "https://a.İ~/x", "http://İ^.de"} {
		if u, err := Parse(raw); err == nil {
			t.Errorf("Parse(%q) = %q, want an error: the parser refuses that host", raw, u)
		}
	}
	for raw, want := range map[string]string{"http://пример.рф/": "http://xn--e1afmkfd.xn--p1ai/", "http://a_b.example/": "http://a_b.example/", "http://[::1]:8080/": "http://[::1]:8080/"} {
		if u, err := Parse(raw); err != nil || u.String() != want {
			t.Errorf("Parse(%q) = %q, %v, want %s", raw, u, err, want)
		}
	}
}
