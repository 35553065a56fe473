package extract

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/freshet/freshet/weburl"
)

func base(t testing.TB) weburl.URL {
	t.Helper()
	u, err := weburl.Parse("http://h.example/dir/page.html")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func links(p *Page) string {
	var out []string
	for _, l := range p.Links {
		s := l.URL.String()
		if l.NoFollow {
			s += "!"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestLinks(t *testing.T) {
	t.Parallel()
	const h = "http://h.example"
	tests := []struct{ name, html, want string }{
		{"anchor", `<a href="a.html">x</a>`, h + "/dir/a.html"},
		{"forms of quoting", `<A HREF='/b'>x<a href=c>y<a href = " d ">`, h + "/b " + h + "/dir/c " + h + "/dir/d"},
		{"entities", `<a href="?a=1&amp;b=2">`, h + "/dir/page.html?a=1&b=2"},
		{"base", `<base href="/other/"><a href=x>`, h + "/other/x"},
		{"second base", `<base href="/one/"><base href="/two/"><a href=x>`, h + "/one/x"},
		{"first base is none", `<base target=x><base href="data:,x"><base href="/two/"><a href=x>`, h + "/dir/x"},
		{"base of another host", `<base href="//o.example/d/e?f#g"><a href=x><a href=?y>`, "http://o.example/d/x http://o.example/d/e?y"},
		{"white space in an address", "<a href='\n/a\tb \n'>", h + "/ab"},
		{"alternate style", `<link rel="alternate stylesheet" href=/s.css><link rel="next" href=/2><link rel="prev nofollow" href=/0><link rel="icon" href=/i>`, h + "/2 " + h + "/0"},
		{"refresh without url", `<meta http-equiv=Refresh content="3;/new"><meta http-equiv=refresh content=5><meta http-equiv=refresh content=";url=/no">`, h + "/new"},
		{"fragment alone", `<a href="#top"><a href="">`, ""},
		{"schemes", `<a href="mailto:a@b"><a href="javascript:x()"><a href="ftp://f/"><a href="data:,x">`, ""},
		{"nofollow", `<a rel="noopener NOFOLLOW" href=/x><a rel=ugc href=/y><a rel=nofollowing href=/z>`, h + "/x! " + h + "/y! " + h + "/z"},
		{"area, frames", `<area href=/a><iframe src=/f></iframe><frame src=/g>`, h + "/a " + h + "/f " + h + "/g"},
		{"refresh", `<meta http-equiv=refresh content="0; URL='/new'">`, h + "/new"},
		{"canonical, hreflang, style", `<link rel=canonical href=/c><link rel=alternate hreflang=lt href=/lt><link rel=stylesheet href=/s.css>`, h + "/c " + h + "/lt"},
		{"in comment and script", `<!-- <a href=/a> --><script>"<a href=/b>"</script><style><a href=/c></style><a href=/d>`, h + "/d"},
		{"in textarea and title", `<title><a href=/a></title><textarea><a href=/b></textarea><a href=/c>`, h + "/c"},
		{"in noscript", `<noscript><a href=/n>x</a></noscript>`, h + "/n"},
		{"unfinished", `<a href="/x`, ""},
		{"unfinished script", `<script><a href=/x>`, ""},
		{"Cyrillic", `<a href="/путь?ключ=é">`, h + "/%D0%BF%D1%83%D1%82%D1%8C?%D0%BA%D0%BB%D1%8E%D1%87=%C3%A9"},
	}
	for _, tt := range tests {
		p := HTML([]byte(tt.html), "text/html; charset=utf-8", base(t), Options{})
		if got := links(p); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestTextAndTitle(t *testing.T) {
	t.Parallel()
	tests := []struct{ html, title, text string }{
		{"<title> A\n  title </title><p>One<p>two <b>th</b>ree", "A title", "One two three"},
		{"<p>a</p><script>no()</script><style>no</style>b", "", "a b"},
		{"<nav>menu</nav><main>" + strings.Repeat("word ", 50) + "</main><footer>foot</footer>", "", strings.TrimSpace(strings.Repeat("word ", 50))},
		{"<nav>only a menu</nav>", "", "only a menu"},
		{"&lt;tag&gt; &amp; &nbsp;&eacute;", "", "<tag> & \u00a0é"},
		{"<title>one</title><svg><title>two</title></svg>", "one", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		p := HTML([]byte(tt.html), "", base(t), Options{})
		if p.Title != tt.title || p.Text != tt.text {
			t.Errorf("%q: title %q, text %q", tt.html, p.Title, p.Text)
		}
	}
}

func TestCharset(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, contentType, want, charset string }{
		{"header", "\xcf\xf0\xe8\xe2\xe5\xf2", "text/html; charset=windows-1251", "Привет", "windows-1251"},
		{"meta", "<meta charset=windows-1257><p>\xfa\xe0sis", "text/html", "śąsis", "windows-1257"},
		{"byte order mark beats header", "\xef\xbb\xbfŽ", "text/html; charset=latin1", "Ž", "utf-8"},
		{"UTF-16", "\xff\xfeA\x00b\x00", "", "Ab", "utf-16le"},
		{"nothing said, UTF-8 late", strings.Repeat("a ", 1000) + "ž", "", strings.Repeat("a ", 1000) + "ž", "utf-8"},
		{"wrong UTF-8", "a\xffb", "text/html; charset=utf-8", "a\uFFFDb", "utf-8"},
	}
	for _, tt := range tests {
		p := HTML([]byte(tt.body), tt.contentType, base(t), Options{})
		if p.Text != tt.want || p.Charset != tt.charset {
			t.Errorf("%s: %q in %s, want %q in %s", tt.name, p.Text, p.Charset, tt.want, tt.charset)
		}
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	tests := []struct{ declared, text, want string }{
		{"lt-LT", "anything", "lt"},
		{"", "The cat sat on the mat and it was happy with the dog.", "en"},
		{"", "Vilniaus universiteto biblioteka yra seniausia ir didžiausia, ji buvo įkurta kaip kolegijos dalis.", "lt"},
		{"", "Кошка сидела на окне, и это было хорошо для всех.", "ru"},
		{"en", strings.Repeat("Это русский текст. ", 10), "ru"},
		{"", "12345", ""},
		{"x-default", "", ""},
	}
	for _, tt := range tests {
		if got := Language(tt.declared, tt.text); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.declared, tt.text, got, tt.want)
		}
	}
}

// A changed word changes the digest, a changed clock or token does not; similar
// texts have near simhashes.
func TestDigest(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("The quick brown fox jumps over the lazy dog number ", 8)
	page := func(extra string) *Page {
		return HTML([]byte("<p>"+body+extra), "", base(t), Options{})
	}
	plain := page("price 5")
	for extra, same := range map[string]bool{
		"price 5": true, "price 6": false, "price 5 12:34:56": true, "price 5 a8f3e2c19b7d4f60a1b2": true, "price 5<a href=/x>": false,
	} {
		if got := page(extra).Digest == plain.Digest; got != same {
			t.Errorf("%q: same digest %v", extra, got)
		}
	}
	if d := Distance(plain.Simhash, page("price 6").Simhash); d > 8 {
		t.Errorf("one word changed: distance %d", d)
	}
	other := HTML([]byte("<p>"+strings.Repeat("Entirely different words stand in this other text about boats ", 8)), "", base(t), Options{})
	if d := Distance(plain.Simhash, other.Simhash); d < 12 {
		t.Errorf("another text: distance %d", d)
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprint(w, `<urlset><url><loc>/z</loc></url></urlset>`)
	w.Close()
	tests := []struct{ name, body, want string }{
		{"sitemap", `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url><loc> http://h.example/a </loc><lastmod>2024-05-06</lastmod><image:image><image:loc>http://h.example/i.png</image:loc></image:image></url><url><loc>http://h.example/b&amp;c</loc></url></urlset>`, "http://h.example/a 2024-05-06,http://h.example/b&c -"},
		{"index", `<sitemapindex><sitemap><loc>http://h.example/s.xml</loc><lastmod>2024-05-06T10:00:00+02:00</lastmod></sitemap></sitemapindex>`, "http://h.example/s.xml 2024-05-06 index"},
		{"RSS", `<rss><channel><link>http://h.example/</link><item><title>t</title><link>http://h.example/1</link><pubDate>Mon, 06 May 2024 10:00:00 GMT</pubDate></item></channel></rss>`, "http://h.example/1 2024-05-06"},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><entry><link rel="self" href="/no"/><link href="/e1"/><updated>2024-05-06T00:00:00Z</updated></entry></feed>`, "http://h.example/e1 2024-05-06"},
		{"text", "http://h.example/a\nhttp://h.example/b\n", "http://h.example/a -,http://h.example/b -"},
		{"gzip", z.String(), "http://h.example/z -"},
		{"cut off", `<urlset><url><loc>/a</loc></url><url><loc>/b`, "http://h.example/a -"},
		{"HTML", `<html><body>x</body></html>`, ""},
		{"nothing", ``, ""},
	}
	for _, tt := range tests {
		entries, _ := Entries([]byte(tt.body), base(t))
		var got []string
		for _, e := range entries {
			s := e.URL.String() + " "
			if e.Modified.IsZero() {
				s += "-"
			} else {
				s += e.Modified.Format("2006-01-02")
			}
			if e.Sitemap {
				s += " index"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ","); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}

func TestHeaderAndText(t *testing.T) {
	t.Parallel()
	p := Text([]byte("Title line\nsee http://x.example/a, and (https://y.example/b)."), "text/plain", base(t), Options{})
	p.Header(http.Header{"Link": {`</c>; rel="canonical", </n>; rel=next`}, "X-Robots-Tag": {"noindex"}}, base(t), "freshet")
	if got := links(p); got != "http://x.example/a https://y.example/b http://h.example/c http://h.example/n" {
		t.Errorf("links %s", got)
	}
	if p.Title != "Title line" || !p.Robots.NoIndex || p.Canonical.Path() != "/c" {
		t.Errorf("page %+v", p)
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, html string
		check      func(Traits) bool
	}{
		{"empty mount", `<div id="root"></div><script src="/app.js"></script>`, func(t Traits) bool { return t.EmptyMount && len(t.Scripts) == 1 && !t.Hydrated }},
		{"filled mount", `<div id="root"><p>text</p></div>`, func(t Traits) bool { return !t.EmptyMount }},
		{"hydrated", `<div id="__next"><p>x</p></div><script id="__NEXT_DATA__" type="application/json">{}</script>`, func(t Traits) bool { return t.Hydrated }},
		{"noscript", `<noscript>You need to enable JavaScript to run this app.</noscript>`, func(t Traits) bool { return t.NoScript }},
		{"angular", `<app-root ng-version="17"></app-root>`, func(t Traits) bool { return len(t.Frameworks) == 1 }},
	}
	for _, tt := range tests {
		if p := HTML([]byte(tt.html), "", base(t), Options{Traits: true}); !tt.check(p.Traits) {
			t.Errorf("%s: %+v", tt.name, p.Traits)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	many := HTML([]byte(strings.Repeat("<a href=/x>y</a>", 300)), "", base(t), Options{MaxLinks: 100})
	if len(many.Links) != 100 || many.Skipped != 200 {
		t.Errorf("%d links, %d skipped", len(many.Links), many.Skipped)
	}
	deep := HTML([]byte(strings.Repeat("<div>", 200_000)+"x"), "", base(t), Options{})
	if deep.Text != "x" {
		t.Errorf("deep nesting: text %q", deep.Text)
	}
	if long := HTML([]byte(strings.Repeat("word ", 1000)), "", base(t), Options{MaxText: 100}); len(long.Text) > 100 {
		t.Errorf("text of %d bytes", len(long.Text))
	}
}

// The links are those of a tree built by the full parser, and no bytes make the
// extraction fail.
func FuzzHTML(f *testing.F) {
	f.Add([]byte(`<a href="x">y</a><base href=/z><noscript><a href=q>`), "text/html")
	f.Add([]byte("\xff\xfe<\x00a\x00"), "text/html; charset=utf-16")
	f.Add([]byte("<meta charset=gb18030>\x81\x30"), "")
	f.Add([]byte(`<meta http-equiv=refresh content=";url=">`), "application/xhtml+xml")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		b, _ := weburl.Parse("http://h.example/")
		p := Document(t.Context(), body, contentType, b, Options{Traits: true, Images: true})
		for _, l := range p.Links {
			if l.URL.IsZero() {
				t.Fatal("a link without URL")
			}
		}
	})
}

func FuzzEntries(f *testing.F) {
	f.Add([]byte(`<urlset><url><loc>/a</loc></url></urlset>`))
	f.Add([]byte(`<rss><item><link>x`))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, _ := weburl.Parse("http://h.example/")
		_, _ = Entries(body, b)
	})
}

// samplePage is an ordinary page of about 12 KB with 32 links.
func samplePage() []byte {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><html lang=en><head><title>A sample page</title></head><body>")
	for i := range 32 {
		fmt.Fprintf(&b, `<p class="par">Some words of a paragraph that is about as long as paragraphs are on the web, and then <a href="/section/%d/item-%d.html">a link</a> and more words, until it ends. %s</p>`, i%7, i, strings.Repeat("lorem ipsum dolor ", 10))
	}
	b.WriteString("</body></html>")
	return []byte(b.String())
}

func BenchmarkHTML(b *testing.B) {
	body, at := samplePage(), base(b)
	b.Run("extract", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for range b.N {
			HTML(body, "text/html; charset=utf-8", at, Options{})
		}
	})
	b.Run("tree", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for range b.N {
			if _, err := html.Parse(bytes.NewReader(body)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Characters that a terminal obeys, or that turn the direction of text, come out of no
// document.
func TestControlCharacters(t *testing.T) {
	t.Parallel()
	const escape = "a\x1b]0;own\x07b\u009b2J\u202egpj.exe\u2066\x7fc"
	const want = "a]0;ownb2Jgpj.exec"
	for _, tt := range []struct{ contentType, body string }{
		{"text/html; charset=utf-8", "<title>" + escape + "</title><meta name=description content='" + escape + "'><p>" + escape},
		{"text/plain; charset=utf-8", escape},
	} {
		p := Document(t.Context(), []byte(tt.body), tt.contentType, base(t), Options{})
		if p.Title != want || p.Text != want || p.Description != "" && p.Description != want {
			t.Errorf("%s: title %q, description %q, text %q; want %q", tt.contentType, p.Title, p.Description, p.Text, want)
		}
	}
}
