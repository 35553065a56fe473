package extract

import (
	"net/http"
	"strings"
	"testing"
)

// The cases of the web platform's tests of meta refresh, in short: what the time and
// the separators may be, and what is taken for the address.
func TestRefresh(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"0; url=/x": "/x", "0;url=/x": "/x", "0,url=/x": "/x", "0 url=/x": "/x", " \t0;/x": "/x", "0;x": "x", "0, /x": "/x", "0 /x": "/x", "1.5; url=/x": "/x", ".5;url=/x": "/x", "5.5.5; URL = /x": "/x", "0;;url=x": ";url=x",
		"0; url='/x'": "/x", `0; url="/x"y`: "/x", `0; url="/x`: "/x", "0; url='/x\"": "/x\"", "0; '/x' y": "/x", "0; url=/x y": "/x y", "0; url": "url", "0; ur=x": "ur=x", "0; url x": "url x", "0; u": "u", "0; urlx=y": "urlx=y", "0; url =\n/x": "/x",
		"0": "", "0;": "", "0; ": "", "": "", ";url=/x": "", "url=/x": "", "x;url=/x": "", "0x;url=/x": "", "-1;url=/x": "", "+1;url=/x": "", "0;url=": "", "0;url=''": "", "0\u00a0;url=x": "",
	} {
		if got, ok := refreshURL(content); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", content, got, ok, want)
		}
	}
}

func TestSrcset(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"": "", " , ,": "", "a": "a", "a 1x": "a", "a 1x, b 2x": "a|b", "a,b": "a,b", "a, b": "a|b", "a,, b": "a|b", "a ,b": "a|b", "a 1x,b 2x": "a|b", "a (x,y) 1x, b": "a|b", "a 100w 50h,b\t200w\n": "a|b",
		"data:image/png;base64,AAAA 1x, /b 2x": "data:image/png;base64,AAAA|/b", "/i,w_300,q_80/x.png 300w, /i,w_600/x.png 600w": "/i,w_300,q_80/x.png|/i,w_600/x.png", ",a 1x": "a", "a (": "a", "a ) 1x, b": "a|b",
	} {
		var got []string
		eachSrcset(set, func(a string) { got = append(got, a) })
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: %q, want %q", set, s, want)
		}
	}
}

// Link headers by RFC 8288.
func TestLinkHeader(t *testing.T) {
	t.Parallel()
	const h = "http://h.example"
	for _, tt := range []struct{ header, want, canonical string }{
		{`</n>; rel=next`, h + "/n", ""},
		{`</c>; rel="canonical", </n>; rel=next`, h + "/c " + h + "/n", h + "/c"},
		{`</a,b>; rel="alternate nofollow"; hreflang=lt`, h + "/a,b", ""},
		{`</a>;rel=alternate;title="x, <y>; rel=next", </b> ; REL = NEXT`, h + "/a " + h + "/b", ""},
		{`</a>; title="canonical next"; rel=author`, "", ""},
		{`</s.css>; rel="alternate stylesheet"`, "", ""},
		{`</a>; rel=preload; as=image; imagesrcset="/next.png 1x"`, "", ""},
		{`</a>; rel=author; rel=next`, "", ""},
		{`</a>; rel=canonicalish`, "", ""},
		{`</a>; rel=next; anchor="/other"`, "", ""},
		{`</a>; rel=next; anchor="#part"`, h + "/a", ""},
		{`</a>; title="\"</b>; rel=next"; rel=prev`, h + "/a", ""},
		{`</a>`, "", ""},
		{`</a>;;rel=next;`, h + "/a", ""},
		{`</a; rel=next`, "", ""},
		{`a; rel=next, </b>; rel=next`, h + "/b", ""},
		{`<mailto:x@y>; rel=next, <>; rel=next`, "", ""},
		{`<https://other.example/>; rel="http://example.net/foo alternate"`, "https://other.example/", ""},
	} {
		p := &Page{}
		p.Header(http.Header{"Link": {tt.header}}, base(t), "freshet")
		if got := links(p); got != tt.want || p.Canonical.String() != tt.canonical {
			t.Errorf("%s: %s, canonical %s; want %s", tt.header, got, p.Canonical, tt.want)
		}
	}
	refresh := &Page{}
	refresh.Header(http.Header{"Refresh": {"0; url=/x"}}, base(t), "")
	if got := links(refresh); got != h+"/x" {
		t.Errorf("Refresh: %s", got)
	}
	many := &Page{}
	many.Header(http.Header{"Link": {strings.Repeat("</a>;rel=next,", 100_000)}}, base(t), "")
	if len(many.Links) != maxHeaderLinks {
		t.Errorf("%d links", len(many.Links))
	}
}

func FuzzLinkHeader(f *testing.F) {
	f.Add(`</a>;rel=alternate;title="x, <y>; rel=next", </b> ; REL = NEXT`)
	f.Add(`<`)
	f.Add(`</a>;="`)
	f.Fuzz(func(t *testing.T, v string) {
		for v != "" {
			_, rest := cutLink(v)
			if len(rest) >= len(v) {
				t.Fatalf("%q: %q is left", v, rest)
			}
			v = rest
		}
	})
}

// Which documents are lists, whatever servers call them.
func TestDocumentKinds(t *testing.T) {
	t.Parallel()
	const set = `<urlset><url><loc>/a</loc></url></urlset>`
	for _, tt := range []struct {
		name, contentType, body string
		list                    bool
	}{
		{"XML", "application/xml", set, true},
		{"as HTML", "text/html; charset=utf-8", set, true},
		{"as text", "text/plain", `<?xml version="1.0"?>` + "\n<!-- made by x --><?xml-stylesheet href='a'?>" + set, true},
		{"as bytes", "application/octet-stream", "\xEF\xBB\xBF" + set, true},
		{"nothing said", "", `<?xml version="1.0"?>` + set, true},
		{"RSS as HTML", "text/html", `<rss version="2.0"><channel><item><link>/a</link></item></channel></rss>`, true},
		{"RDF as text", "text/plain", `<rdf:RDF xmlns:rdf="r"><item><link>/a</link></item></rdf:RDF>`, true},
		{"Atom", "application/atom+xml", `<feed><entry><link href="/a"/></entry></feed>`, true},
		{"with a prefix, as HTML", "text/html", `<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>/a</s:loc></s:url></s:urlset>`, true},
		{"XHTML", "application/xhtml+xml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><a href="/a">x</a></body></html>`, false},
		{"HTML as XML", "text/xml", `<html><a href="/a">x</a></html>`, false},
		{"HTML", "text/html", `<!DOCTYPE html><a href="/a">x</a>`, false},
		{"SVG first", "text/html", `<svg></svg><a href="/a">x</a>`, false},
		{"text", "text/plain", "see http://h.example/a", false},
	} {
		p := Document(t.Context(), []byte(tt.body), tt.contentType, base(t), Options{})
		if got := links(p); p.Sitemap != tt.list || got != "http://h.example/a" {
			t.Errorf("%s: list %v, links %s", tt.name, p.Sitemap, got)
		}
	}
}
