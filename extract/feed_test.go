package extract

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"

	"github.com/freshet/freshet/weburl"
)

func packed(t testing.TB, s string) string {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprint(w, s)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.String()
}

func utf16Of(t testing.TB, s string, order unicode.Endianness) string {
	t.Helper()
	out, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// entryList is a list in short: path, date, kind.
func entryList(entries []Entry) string {
	var out []string
	for _, e := range entries {
		s := strings.TrimPrefix(e.URL.String(), "http://h.example")
		if !e.Modified.IsZero() {
			s += " " + e.Modified.UTC().Format("2006-01-02T15:04Z")
		}
		if e.Sitemap {
			s += " index"
		}
		if e.Deleted {
			s += " deleted"
		}
		out = append(out, s)
	}
	return strings.Join(out, ",")
}

func TestEntryForms(t *testing.T) {
	t.Parallel()
	const decl, ns = `<?xml version="1.0" encoding="UTF-8"?>`, `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`
	one := func(s string) string { return "<urlset " + ns + "><url>" + s + "</url></urlset>" }
	foreign := `<news:news xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"><news:publication_date>2020-01-01</news:publication_date><news:loc>/no</news:loc></news:news>` +
		`<video:video xmlns:video="http://www.google.com/schemas/sitemap-video/1.1"><video:content_loc>/v.mp4</video:content_loc><video:loc>/no</video:loc></video:video>` +
		`<x:image xmlns:x="http://www.google.com/schemas/sitemap-image/1.1"><x:loc>/no.png</x:loc></x:image>`
	for _, tt := range []struct {
		name, body, want string
		fails            bool
	}{
		{"mark and declaration", "\xEF\xBB\xBF" + decl + one("<loc>/a</loc>"), "/a", false},
		{"white space and comments first", "\r\n " + decl + "<!-- <urlset> -->\n<?xml-stylesheet href='x'?>" + one("<loc>\n /a \n</loc>"), "/a", false},
		{"CDATA", one("<loc><![CDATA[http://h.example/a?b&c]]></loc>"), "/a?b&c", false},
		{"entities", one("<loc>/a?b&amp;c&#38;d&#x26;e&eacute;</loc>"), "/a?b&c&d&e%C3%A9", false},
		{"bare ampersand", one("<loc>/a?b&c=d&e</loc>"), "/a?b&c=d&e", false},
		{"comment inside", one("<loc>/a<!-- x -->b</loc>"), "/ab", false},
		{"news, video, images before and behind", one(foreign + "<loc>/a</loc>" + foreign + "<lastmod>2024-05-06</lastmod>"), "/a 2024-05-06T00:00Z", false},
		{"languages", one(`<xhtml:link rel="alternate" hreflang="lt" href="/lt"/><xhtml:link rel="alternate" hreflang="en" href="/en"/><loc>/en</loc><lastmod>2024-05-06T10:00+02:00</lastmod>`), "/en 2024-05-06T08:00Z,/lt", false},
		{"a prefix for all", `<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>/a</s:loc></s:url></s:urlset>`, "/a", false},
		{"no namespace, upper case elsewhere", `<urlset><url><loc>HTTP://H.Example:80/a#b</loc><changefreq>daily</changefreq><priority>1.0</priority></url></urlset>`, "/a", false},
		{"dates of an earlier entry", `<urlset><url><loc>/a</loc><lastmod>2024-05-06</lastmod></url><url><loc>/b</loc></url><url><lastmod>x</lastmod><loc>/c</loc></url></urlset>`, "/a 2024-05-06T00:00Z,/b,/c", false},
		{"no address", `<urlset><url><lastmod>2024</lastmod></url><url><loc></loc></url><url><loc>mailto:x@y</loc></url><url><loc>/a</loc></url></urlset>`, "/a", false},
		{"empty set", `<urlset/>`, "", false},
		{"index", `<sitemapindex ` + ns + `><sitemap><loc>/s.xml.gz</loc><lastmod>2024-05-06T10:00:00.5Z</lastmod></sitemap><sitemap><loc>/t.xml</loc></sitemap></sitemapindex>`, "/s.xml.gz 2024-05-06T10:00Z index,/t.xml index", false},
		{"Latin-1", "<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>/\xe9</loc></url></urlset>", "/%C3%A9", false},
		{"Cyrillic", "<?xml version=\"1.0\" encoding = \"windows-1251\" ?><urlset><url><loc>/\xef\xf3\xf2\xfc</loc></url></urlset>", "/%D0%BF%D1%83%D1%82%D1%8C", false},
		{"UTF-16, little end first", utf16Of(t, `<?xml version="1.0" encoding="utf-16"?>`+one("<loc>/ą</loc>"), unicode.LittleEndian), "/%C4%85", false},
		{"UTF-16, big end first", utf16Of(t, one("<loc>/ą</loc>"), unicode.BigEndian), "/%C4%85", false},
		{"an encoding that nobody knows", `<?xml version="1.0" encoding="x-none"?>` + one("<loc>/a</loc>"), "/a", false},
		{"bytes that are no UTF-8, control characters", "<rss><channel><title>a\xff\x08b</title><item><title>\x00</title><link>/a</link></item></channel></rss>", "/a", false},
		{"packed", packed(t, decl+one("<loc>/a</loc>")), "/a", false},
		{"packed, cut off", packed(t, one("<loc>/a</loc>")+strings.Repeat(" <!-- x -->", 100000))[:200], "/a", true},
		{"packed text", packed(t, "http://h.example/a\r\nhttp://h.example/b"), "/a,/b", false},
		{"text", "\xEF\xBB\xBFhttp://h.example/a\n\nno address\n/neither\n# http://h.example/c\n  https://h.example/b  \nhttp://h.example/" + strings.Repeat("x", 5000) + "\nhttp://h.example/d", "/a,https://h.example/b,/d", false},
		{"cut off", "<urlset><url><loc>/a</loc></url><url><loc>/b</loc>", "/a", true},
		{"tags that cross", "<urlset><url><loc>/a</url><url><loc>/b</loc></url></urlset>", "/a,/b", false},
		{"RSS 2.0", `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>t</title><link>http://h.example/</link><atom:link rel="self" href="/feed"/><image><link>/i</link></image>` +
			`<item><link>/1</link><guid>http://h.example/g</guid><pubDate>Mon, 06 May 2024 10:00:00 EDT</pubDate><enclosure url="/e.mp3"/><comments>/c</comments></item>` +
			`<item><guid>http://h.example/2</guid><pubDate>06 May 24 10:00 GMT</pubDate></item><item><guid isPermaLink="false">http://h.example/no</guid></item><item><guid>tag:x</guid></item></channel></rss>`, "/1 2024-05-06T14:00Z,/2", false},
		{"RSS 1.0", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="/"><link>/</link><items><rdf:Seq><rdf:li resource="/1"/></rdf:Seq></items></channel>` +
			`<item rdf:about="/1"><link>/1</link><dc:date>2024-05-06T10:00:00+00:00</dc:date></item></rdf:RDF>`, "/1 2024-05-06T10:00Z", false},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><link href="/"/><link rel="self" href="/feed"/><updated>2024-01-01T00:00:00Z</updated>` +
			`<entry><link rel="enclosure" href="/x.mp3"/><link rel="alternate" type="text/html" href="/1"/><id>/id</id><published>2023-01-01T00:00:00Z</published><updated>2024-05-06T10:00:00Z</updated></entry>` +
			`<entry><link href="/2" hreflang="lt"/></entry></feed>`, "/1 2024-05-06T10:00Z,/2", false},
		{"ResourceSync", `<urlset ` + ns + ` xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="changelist"/><url><loc>/a</loc><rs:md change="deleted" datetime="2024-05-06T10:00:00Z"/></url><url><loc>/b</loc></url></urlset>`, "/a 2024-05-06T10:00Z deleted,/b", false},
		{"HTML", `<!DOCTYPE html><html><body><urlset><url><loc>/a</loc></url></urlset>`, "", true},
		{"SVG", `<svg xmlns="http://www.w3.org/2000/svg"><a href="/x"/></svg>`, "", true},
		{"JSON", `{"a":1}`, "", true},
		{"nothing", "", "", true},
		{"gzip of nothing", "\x1f\x8b", "", true},
		{"deep", "<urlset>" + strings.Repeat("<a>", 1000), "", true},
	} {
		entries, err := Entries([]byte(tt.body), base(t))
		if got := entryList(entries); got != tt.want && got != strings.ReplaceAll(tt.want, "/1", "http://h.example/1") || (err != nil) != tt.fails {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// The greatest list that sitemaps.org allows is read whole; a greater one is bounded, and
// of what a packed one holds no more than a piece is in memory.
func TestEntryBounds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for i := range 50_000 {
		fmt.Fprintf(&b, "<url><loc>http://h.example/%d</loc><lastmod>2024-05-06</lastmod></url>\n", i)
	}
	began := time.Now()
	entries, err := Entries([]byte(b.String()+"</urlset>"), base(t))
	if err != nil || len(entries) != 50_000 || entries[49_999].URL.Path() != "/49999" {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	t.Logf("50,000 entries in %v", time.Since(began))
	entries, err = Entries([]byte(packed(t, "<urlset>"+strings.Repeat("<url><loc>/a</loc></url>", maxEntries+5))), base(t))
	if err != nil || len(entries) != maxEntries {
		t.Errorf("%d entries of more than %d, %v", len(entries), maxEntries, err)
	}
	lines, err := Entries([]byte(strings.Repeat("http://h.example/a\n", maxEntries+5)), base(t))
	if err != nil || len(lines) != maxEntries {
		t.Errorf("%d lines of more than %d, %v", len(lines), maxEntries, err)
	}
}

func TestEntryBomb(t *testing.T) { // alone: it looks at the memory of all
	const most = 32 << 20
	for name, tt := range map[string]struct{ start, filler string }{
		"comments": {"", "<!-- xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx -->"}, "text": {"", " "},
		"one comment": {"<!--", "<a> "}, "section": {"<url><![CDATA[", "<a> "}, "instruction": {"<?x ", "<a> "}, "declaration": {"<!DOCTYPE x [", "<a> "}, "attributes": {"<url ", "a='<b>' "},
	} {
		var z bytes.Buffer
		w, err := gzip.NewWriterLevel(&z, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, "<urlset><url><loc>/a</loc></url>"+tt.start)
		block := []byte(strings.Repeat(tt.filler, 1<<20/len(tt.filler)))
		for range most>>20 + 1 {
			if _, err := w.Write(block); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := entryReader{base: base(t), most: most}
		err = r.readEntries(bytes.NewReader(z.Bytes()))
		runtime.ReadMemStats(&after)
		if len(r.entries) != 1 || err == nil {
			t.Errorf("%s: %d entries, %v", name, len(r.entries), err)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > most/2 {
			t.Errorf("%s: %d MB of memory for %d KB", name, grown>>20, z.Len()>>10)
		}
	}
}

func BenchmarkEntries(b *testing.B) {
	var s strings.Builder
	s.WriteString("<urlset>")
	for i := range 1000 {
		fmt.Fprintf(&s, "<url><loc>http://h.example/%d</loc><lastmod>2024-05-06</lastmod></url>\n", i)
	}
	body, at := []byte(s.String()+"</urlset>"), weburl.URL{}
	b.SetBytes(int64(len(body)))
	for range b.N {
		if e, err := Entries(body, at); err != nil || len(e) != 1000 {
			b.Fatal(len(e), err)
		}
	}
}
