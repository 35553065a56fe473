package robots

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, token, target string
		want                      bool
		line                      int
	}{
		{"empty file", "", "bot", "/x", true, 0},
		{"longest match", "user-agent: *\ndisallow: /a\nallow: /a/b", "bot", "/a/b/c", true, 3},
		{"tie goes to allow", "user-agent: *\ndisallow: /a\nallow: /a", "bot", "/a", true, 3},
		{"own group replaces *", "user-agent: *\ndisallow: /\nuser-agent: Bot\nallow: /x", "bot", "/y", true, 0},
		{"groups of one agent merge", "user-agent: bot\ndisallow: /a\nuser-agent: *\ndisallow: /b\nuser-agent: bot\ndisallow: /c", "bot", "/c", false, 6},
		{"several agents, one group", "user-agent: x\nuser-agent: bot\ndisallow: /a", "bot", "/a", false, 3},
		{"a version is cut off", "user-agent: bot/1.2\ndisallow: /", "bot", "/", false, 2},
		{"a name with digits", "user-agent: *\ndisallow: /\nuser-agent: Bot12.x/1.0\ndisallow: /x", "bot12.x", "/y", true, 0},
		{"a longer name is another", "user-agent: botany\ndisallow: /", "bot", "/", true, 0},
		{"star inside", "user-agent: *\ndisallow: /*.pdf$", "bot", "/a/b.pdf", false, 2},
		{"anchored", "user-agent: *\ndisallow: /*.pdf$", "bot", "/a/b.pdf?x", true, 0},
		{"dollar inside is itself", "user-agent: *\ndisallow: /a$b", "bot", "/a$bc", false, 2},
		{"escapes compare", "user-agent: *\ndisallow: /\xc5\xbe%2f", "bot", "/%c5%be%2Fx", false, 2},
		{"empty disallow", "user-agent: *\ndisallow:", "bot", "/x", true, 0},
		{"comment", "user-agent: * # all\ndisallow: /x # here", "bot", "/x", false, 2},
		{"CR only", "user-agent: *\rdisallow: /x", "bot", "/x", false, 2},
		{"CRLF", "user-agent: *\r\ndisallow: /x\r\n", "bot", "/x", false, 2},
		{"byte order mark", "\xEF\xBB\xBFuser-agent: *\ndisallow: /x", "bot", "/x", false, 2},
		{"no colon", "user-agent *\ndisallow /x", "bot", "/x", false, 2},
		{"rule before agents", "disallow: /\nuser-agent: *\nallow: /", "bot", "/x", true, 3},
		{"index page", "user-agent: *\nallow: /d/index.html\ndisallow: /", "bot", "/d/", true, 2},
		{"query", "user-agent: *\ndisallow: /*?", "bot", "/a?b", false, 2},
		{"many stars end", "user-agent: *\ndisallow: /" + strings.Repeat("*a", 200) + "b", "bot", "/" + strings.Repeat("a", 2000), true, 0},
	}
	for _, tt := range tests {
		f := Parse([]byte(tt.file), tt.token)
		if d := f.Decide(tt.target); d.Allow != tt.want || d.Line != tt.line || f.Allowed(tt.target) != tt.want {
			t.Errorf("%s: %+v, want %v by line %d", tt.name, d, tt.want, tt.line)
		}
	}
}

// A file with many rules is looked up, one with few is scanned: both must say
// the same.
func TestLookupAgreesWithScan(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("user-agent: *\n")
	for i := range 300 {
		key := "disallow"
		if i%3 == 0 {
			key = "allow"
		}
		b.WriteString(key + ": /" + strconv.Itoa(i*7919%1000))
		if i%5 == 0 {
			b.WriteString("*x")
		}
		b.WriteByte('\n')
	}
	f := Parse([]byte(b.String()), "bot")
	scan := &File{written: rules{list: f.written.list}}
	for i := range 3000 {
		target := "/" + strconv.Itoa(i) + "/ax"
		if f.Decide(target) != scan.Decide(target) {
			t.Fatalf("%s: %+v by lookup, %+v by scan", target, f.Decide(target), scan.Decide(target))
		}
	}
}

func TestDelayAndSitemaps(t *testing.T) {
	t.Parallel()
	f := Parse([]byte("sitemap: https://a.example/s.xml\nuser-agent: *\ncrawl-delay: 1.5\nuser-agent: bot\ncrawl-delay: 99999999\n\nSite-Map: /b.xml"), "bot")
	if f.Delay != time.Hour || len(f.Sitemaps) != 2 {
		t.Errorf("delay %v, sitemaps %q", f.Delay, f.Sitemaps)
	}
	if f := Parse([]byte("user-agent: *\ncrawl-delay: 1.5"), "bot"); f.Delay != 1500*time.Millisecond {
		t.Errorf("delay %v", f.Delay)
	}
	if DisallowAll().Allowed("/") || !DisallowAll().Allowed("/robots.txt") {
		t.Error("DisallowAll")
	}
}

// Google's conformance corpus, the part that is in testdata.
func TestConformanceCorpus(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/google/*.textproto")
	n := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range corpus(t, string(b)) {
			n++
			if got := Parse([]byte(c.robots), c.agent).Allowed(Target(c.url)); got != c.allowed {
				t.Errorf("%s: %s for %q: %v in\n%s", filepath.Base(name), c.url, c.agent, got, c.robots)
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d expectations", n)
	}
}

type expectation struct {
	robots, agent, url string
	allowed            bool
}

var stringValue = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// corpus reads the few fields of the text protocol buffers that matter.
func corpus(t *testing.T, text string) []expectation {
	t.Helper()
	var out []expectation
	var cur expectation
	key := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if k, rest, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, `"`) {
			key, line = k, rest
			switch key {
			case "robotstxt":
				cur.robots = ""
			case "testurl":
				cur.url = ""
			case "useragent":
				cur.agent = ""
			case "expected_outcome":
				cur.allowed = strings.TrimSpace(rest) == "ALLOWED"
				out = append(out, cur)
			}
		}
		for _, q := range stringValue.FindAllString(line, -1) {
			s := unquote(t, q)
			switch key {
			case "robotstxt":
				cur.robots += s
			case "testurl":
				cur.url += s
			case "useragent":
				cur.agent += s
			}
		}
	}
	return out
}

var escaped = regexp.MustCompile(`\\x[0-9a-fA-F]{1,2}|\\[0-7]{1,3}|\\.`)

// unquote reads a text-format string, whose escaped escapes may be short.
func unquote(t *testing.T, q string) string {
	t.Helper()
	return escaped.ReplaceAllStringFunc(q[1:len(q)-1], func(e string) string {
		if v, err := strconv.ParseUint(strings.Replace(e[1:], "x", "0x", 1), 0, 8); err == nil && e[1] == 'x' {
			return string([]byte{byte(v)})
		}
		if v, err := strconv.ParseUint(e[1:], 8, 8); err == nil {
			return string([]byte{byte(v)})
		}
		if i := strings.IndexByte("nrtvfab", e[1]); i >= 0 {
			return "\n\r\t\v\f\a\b"[i : i+1]
		}
		return e[1:]
	})
}

func TestTarget(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "/", "http://h": "/", "http://h/": "/", "http://h/a?b#c": "/a?b", "http://h?a": "/?a", "http://h;p": "/;p",
		"h/a": "/a", "//h/a": "/a", "/a://b": "/a://b", "http://h#/a": "/", "a": "/",
	} {
		if got := Target(in); got != want {
			t.Errorf("Target(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	type d = Directives
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	tests := []struct {
		header string
		want   Directives
	}{
		{"noindex", d{NoIndex: true}},
		{"NONE", d{NoIndex: true, NoFollow: true}},
		{"all", d{}},
		{"", d{}},
		{"nofollow, noarchive", d{NoFollow: true, NoArchive: true}},
		{" noindex;nofollow ", d{NoIndex: true, NoFollow: true}},
		{"noindex nofollow", d{NoIndex: true, NoFollow: true}},
		{"noindexing, xnofollow", d{}},
		{"otherbot: noindex", d{}},
		{"otherbot: noindex, nofollow", d{}},
		{"otherbot: noindex, freshet: nofollow", d{NoFollow: true}},
		{"noindex, otherbot: nofollow", d{NoIndex: true}},
		{"Freshet: noindex, nofollow", d{NoIndex: true, NoFollow: true}},
		{"freshet : noindex", d{NoIndex: true}},
		{"*: noindex", d{NoIndex: true}},
		{"max-snippet:20, noindex", d{NoIndex: true}},
		{"max-snippet: -1, max-image-preview:large, max-video-preview:-1, nofollow", d{NoFollow: true}},
		{"unavailable_after: 25 Jun 2010 15:00:00 PST", d{Until: at("2010-06-25T15:00:00-08:00")}},
		{"unavailable_after: 25-Aug-2007 15:00:00 EST", d{Until: at("2007-08-25T15:00:00-05:00")}},
		{"unavailable_after: 2020-09-21", d{Until: at("2020-09-21T00:00:00Z")}},
		{"UNAVAILABLE_AFTER: Saturday, 30-Aug-03 08:49:37 GMT", d{Until: at("2003-08-30T08:49:37Z")}},
		{"noindex, unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", d{NoIndex: true, NoFollow: true, Until: at("2010-06-25T15:00:00Z")}},
		{"otherbot: unavailable_after: 2010-01-01, freshet: noarchive", d{NoArchive: true}},
		{"freshet: unavailable_after: 2010-01-01", d{Until: at("2010-01-01T00:00:00Z")}},
		{"unavailable_after: soon, noindex", d{NoIndex: true}},
		{"unavailable_after:", d{}},
		{"unavailable_after: 2030-01-01, unavailable_after: 2020-01-01", d{Until: at("2020-01-01T00:00:00Z")}},
		{":::,noindex", d{}},
	}
	for _, tt := range tests {
		var got Directives
		got.Header(tt.header, "freshet")
		if !got.Until.Equal(tt.want.Until) {
			t.Errorf("%q: until %v, want %v", tt.header, got.Until, tt.want.Until)
		}
		got.Until, tt.want.Until = time.Time{}, time.Time{}
		if got != tt.want {
			t.Errorf("%q: %+v", tt.header, got)
		}
	}
	var m Directives // a meta element's, which names no robots
	m.Add("noindex, unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT")
	if m.Until.Year() != 2010 || !m.NoIndex {
		t.Errorf("%+v", m)
	}
	m.NoIndex = false
	if m.Hidden(m.Until.Add(-time.Second)) || !m.Hidden(m.Until.Add(time.Second)) {
		t.Error("unavailable_after is not heeded")
	}
}

func FuzzDirectives(f *testing.F) {
	f.Add("noindex, otherbot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, max-snippet:-1", "freshet")
	f.Fuzz(func(t *testing.T, value, token string) {
		var head, meta Directives
		head.Header(value, token)
		meta.Add(value)
		if head.NoIndex && !meta.NoIndex {
			t.Errorf("%q: what is for %s is for all, too, where no names count", value, token)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("user-agent: *\ndisallow: /*a$\nallow: /%zz"), "bot", "/a%")
	f.Add([]byte("\xef\xbb\r\r\n:::\nuser-agent:\n"), "", "")
	f.Fuzz(func(t *testing.T, body []byte, token, target string) {
		file := Parse(body, token)
		if d := file.Decide(target); d.Allow != file.Allowed(target) {
			t.Errorf("Decide and Allowed differ on %q", target)
		}
	})
}

func BenchmarkAllowed(b *testing.B) {
	for _, n := range []int{10, 40, 1000} {
		var sb strings.Builder
		sb.WriteString("user-agent: *\n")
		for i := range n {
			sb.WriteString("disallow: /section" + strconv.Itoa(i) + "/private\n")
		}
		sb.WriteString("disallow: /*.pdf$\n")
		f := Parse([]byte(sb.String()), "bot")
		b.Run(strconv.Itoa(n)+"rules", func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				f.Allowed("/section7/public/page-123.html?x=1")
			}
		})
	}
}
