package extract

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/freshet/freshet/weburl"
)

// plainURL finds addresses in text; trailing punctuation is not theirs.
var plainURL = regexp.MustCompile(`https?://[^\s<>"'{}|\\^` + "`" + `\x00-\x1f]+`)

// Text reads a plain-text document: its words and the addresses in it.
func Text(body []byte, contentType string, base weburl.URL, o Options) *Page {
	o = o.withExtractDefaults()
	text, charset := UTF8(body, contentType)
	p := &Page{Charset: charset, Text: foldSpace(string(text[:min(len(text), o.MaxText)]), o.MaxText)}
	for _, m := range plainURL.FindAllString(p.Text, o.MaxLinks) {
		if u, err := base.Resolve(strings.TrimRight(m, ".,;:!?)]")); err == nil {
			p.Links = append(p.Links, Link{URL: u, Kind: Plain})
		}
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(string(text[:min(len(text), 300)])), "\n"); line != "" {
		p.Title = foldSpace(line, 120)
	}
	p.Lang = Language("", p.Text)
	p.measureText()
	p.Digest, p.Simhash = computeDigest(p, spacesIn(p.Text))
	p.dropControls()
	return p
}

// Type shortens a content type to the word that searches filter by: html, pdf,
// text, xml, image, audio, video, json, or the subtype.
func Type(contentType string) string {
	ct, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	ct = strings.TrimSpace(ct)
	main, sub, _ := strings.Cut(ct, "/")
	switch {
	case ct == "text/html", ct == "application/xhtml+xml":
		return "html"
	case ct == "text/plain":
		return "text"
	case sub == "xml", strings.HasSuffix(sub, "+xml"):
		return "xml"
	case sub == "json", strings.HasSuffix(sub, "+json"):
		return "json"
	case main == "image", main == "audio", main == "video":
		return main
	}
	return strings.TrimPrefix(sub, "x-")
}

// Document reads a body by its content type, sniffed where it is missing.
// Types that hold no text give a page with links of none and no text. It returns
// within the limits of o whatever the body is: a document that exceeds them, or on
// which a parser panics, is a page with a Problem.
func Document(ctx context.Context, body []byte, contentType string, base weburl.URL, o Options) *Page {
	return parseGuarded(body, o, func() *Page { return parseDocument(ctx, body, contentType, base, o) })
}

func parseDocument(ctx context.Context, body []byte, contentType string, base weburl.URL, o Options) *Page {
	if contentType == "" {
		contentType = http.DetectContentType(body[:min(len(body), 512)])
	}
	kind := Type(contentType)
	list := kind == "xml"
	switch kind {
	case "gzip", "octet-stream": // sitemaps may be packed
		list = bytes.HasPrefix(body, []byte{0x1f, 0x8b}) || beginsAsList(body)
	case "html", "text": // servers call them that, too
		list = beginsAsList(body)
	}
	if list {
		if p := feedPage(body, base); p != nil {
			return p
		}
	}
	switch kind {
	case "html", "xml":
		return HTML(body, contentType, base, o)
	case "text":
		return Text(body, contentType, base, o)
	case "pdf":
		return PDF(ctx, body, base, o)
	}
	return emptyPage()
}

// beginsAsList reports whether a body begins as a sitemap or feed does.
func beginsAsList(body []byte) bool {
	head := bytes.TrimLeft(body[:min(len(body), 1024)], "\xEF\xBB\xBF \t\r\n")
	if len(head) < 2 || head[0] != '<' || !strings.ContainsRune("?!suSrRfF", rune(head[1])) || head[1] == '!' && head[min(2, len(head)-1)] != '-' {
		return false // nearly every page, by its first letters
	}
	return xmlList.Match(head)
}

// xmlList matches the head of a sitemap or feed.
var xmlList = regexp.MustCompile(`^(?:<\?[^>]*>\s*|<!--(?s:.*?)-->\s*)*<(?:\w+:)?(?:urlset|sitemapindex|rss|feed|RDF)\b`)

// feedPage makes links of the entries of a feed or sitemap.
func feedPage(body []byte, base weburl.URL) *Page {
	entries, err := Entries(body, base)
	if err != nil && len(entries) == 0 {
		return nil
	}
	p := &Page{Sitemap: true}
	for _, e := range entries {
		p.Links = append(p.Links, Link{URL: e.URL, Kind: Alternate})
	}
	p.Digest, p.Simhash = computeDigest(p, spacesIn(p.Text))
	p.dropControls()
	return p
}
