package name

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		scheme Scheme
		addr   string
		want   string
	}{
		{Scheme{}, "1.0.0.0", "www.01000000.cz"},
		{Scheme{}, "170.187.204.221", "www.aabbccdd.cz"},
		{Scheme{Dotted: true}, "170.187.204.221", "www.aa.bb.cc.dd.cz"},
		{Scheme{Parent: "web.test"}, "8.8.8.8", "www.08080808.web.test"},
	}
	for _, tt := range tests {
		host, ok := Host(netip.MustParseAddr(tt.addr))
		if !ok {
			t.Fatalf("%s has no host", tt.addr)
		}
		if got := tt.scheme.Name(host); got != tt.want {
			t.Errorf("%s is called %s, want %s", tt.addr, got, tt.want)
		}
		if got, ok := tt.scheme.Parse(strings.ToUpper(tt.want) + "."); !ok || got != host {
			t.Errorf("Parse(%s) = %d, %v, want %d", tt.want, got, ok, host)
		}
	}
}

func TestNoHostBehindForeignNames(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", ".", "cz", "www.cz", "aabbccdd.cz", "www.aabbccdd.sk", "www.aabbccd.cz", "www.aabbccddd.cz",
		"www.aabbccdg.cz", "www.7f000001.cz", "www.00000001.cz", "www.e0000001.cz", "www.aa.bb.cc.dd.cz", "wwwxaabbccdd.cz",
	} {
		if h, ok := (Scheme{}).Parse(s); ok {
			t.Errorf("%q is host %d", s, h)
		}
	}
	if h, ok := (Scheme{Dotted: true}).Parse("www.aabbccdd.cz"); ok {
		t.Errorf("dotted scheme took the plain form for host %d", h)
	}
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.Uint64Range(0, Hosts()-1).Draw(t, "host")
		a := Addr(host)
		if got, ok := Host(a); !ok || got != host {
			t.Fatalf("Host(%s) = %d, %v, want %d", a, got, ok, host)
		}
		if got, ok := Host(Addr6(host)); !ok || got != host {
			t.Fatalf("Host(%s) = %d, %v, want %d", Addr6(host), got, ok, host)
		}
		for _, p := range reserved {
			if p.Contains(a) {
				t.Fatalf("host %d has the reserved address %s", host, a)
			}
		}
		for _, s := range []Scheme{{}, {Dotted: true}, {Parent: "a.b"}} {
			if got, ok := s.Parse(s.Name(host)); !ok || got != host {
				t.Fatalf("Parse(%s) = %d, %v", s.Name(host), got, ok)
			}
		}
		doc := rapid.Uint64Range(0, 1<<42).Draw(t, "doc")
		if got, ok := ParseDocument(Document(doc)); !ok || got != doc {
			t.Fatalf("ParseDocument(%s) = %d, %v, want %d", Document(doc), got, ok, doc)
		}
	})
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	for doc, want := range map[uint64]string{0: "/aaaa.html", 987: "/ablz.html", 731: "/abcd.html", 456975: "/zzzz.html", 456976: "/baaaa.html"} {
		if got := Document(doc); got != want {
			t.Errorf("document %d is %s, want %s", doc, got, want)
		}
	}
	for _, s := range []string{"", "/", "/aaa.html", "/aaaaa.html", "/aAaa.html", "aaaa.html", "/aaaa.htm", "/zzzzzzzzzzzzzz.html"} {
		if d, ok := ParseDocument(s); ok {
			t.Errorf("%q is document %d", s, d)
		}
	}
}

// The number of usable addresses is 2^32 less the reserved ones.
func TestHosts(t *testing.T) {
	t.Parallel()
	want := uint64(1) << 32
	for _, p := range reserved {
		want -= 1 << (32 - p.Bits())
	}
	if Hosts() != want {
		t.Errorf("%d hosts, want %d", Hosts(), want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("www.aabbccdd.cz", "/ablz.html")
	f.Add("www.aa.bb.cc.dd.cz", "/")
	f.Fuzz(func(t *testing.T, name, path string) {
		for _, s := range []Scheme{{}, {Dotted: true}} {
			if h, ok := s.Parse(name); ok && !strings.EqualFold(s.Name(h), strings.TrimSuffix(name, ".")) {
				t.Errorf("%q parsed as host %d, called %q", name, h, s.Name(h))
			}
		}
		if d, ok := ParseDocument(path); ok && Document(d) != path {
			t.Errorf("%q parsed as document %d, called %q", path, d, Document(d))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		Scheme{}.Parse("www.aabbccdd.cz")
	}
}
