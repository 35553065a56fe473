package extract

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/freshet/freshet/internal/webdate"
	"github.com/freshet/freshet/weburl"
)

// Entry is one line of a sitemap or feed.
type Entry struct {
	URL      weburl.URL
	Modified time.Time // zero if not said
	Sitemap  bool      // another sitemap, of an index
	Deleted  bool      // ResourceSync: it is gone, at Modified
}

// Bounds of sitemaps and feeds: twice the entries that sitemaps.org allows, and the
// unpacked bytes that it allows.
const (
	maxEntries = 100_000
	maxXML     = 50 << 20
)

// ErrNotXML is the error of a document that is neither sitemap nor feed.
var ErrNotXML = errors.New("neither a sitemap nor a feed")

// Entries reads a sitemap, a sitemap index, a ResourceSync list, an RSS or Atom
// feed, or a plain list of URLs, gzip-compressed or not. What follows a syntax
// error is lost, what stands before it is returned with the error. Entries of
// other hosts are the caller's to judge.
func Entries(body []byte, base weburl.URL) (entries []Entry, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: %v", ParserFailed, v)
		}
	}()
	r := entryReader{base: base, most: maxXML}
	if err := r.readEntries(bytes.NewReader(body)); err != nil {
		return r.entries, fmt.Errorf("sitemap %s: %w", base, err)
	}
	return r.entries, nil
}

// entryReader walks the XML without a tree.
type entryReader struct {
	base    weburl.URL
	most    int64 // bytes that are unpacked
	entries []Entry
	cur     Entry
	link    string
	guid    string   // RSS: the address of an item without link
	others  []string // the same page in other languages
	date    string
	sitemap bool // not a feed
	known   bool // the root element is one of ours
}

// readEntries unpacks and decodes on the way: of a huge list no more than a piece is
// in memory.
func (r *entryReader) readEntries(body io.Reader) error {
	b := bufio.NewReader(body)
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		b = bufio.NewReader(z)
	}
	b = bufio.NewReader(decodedXML(io.LimitReader(b, r.most)))
	head, err := b.Peek(512)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch head = bytes.TrimLeft(head, " \t\r\n"); {
	case bytes.HasPrefix(head, []byte("http")):
		return r.plainList(b)
	case bytes.HasPrefix(head, []byte("<")):
		return r.readXML(&pieces{r: b})
	}
	return ErrNotXML
}

// pieces fails where one token (a text, comment, declaration or tag) is longer than
// maxPiece: the decoder gathers it in memory.
type pieces struct {
	r io.Reader
	n int // bytes read since the last token
}

const maxPiece = 1 << 20

func (p *pieces) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if p.n += n; p.n > maxPiece && err == nil {
		err = fmt.Errorf("an XML token of more than %d bytes", maxPiece)
	}
	return n, err
}

// decodedXML makes UTF-8 of a document, by byte order mark or XML declaration, and
// blanks of what may not stand in XML.
func decodedXML(body io.Reader) io.Reader {
	b := bufio.NewReader(body)
	head, _ := b.Peek(1024)
	label := ""
	if m := xmlEncoding.FindSubmatch(head); m != nil {
		label = string(m[1])
	}
	var r io.Reader = b
	if e, name := charset.Lookup(label); e != nil && name != "utf-8" && !strings.HasPrefix(name, "utf-16") { // UTF-16 could not say so
		r = e.NewDecoder().Reader(b)
	} else {
		r = transform.NewReader(b, unicode.BOMOverride(unicode.UTF8.NewDecoder()))
	}
	return transform.NewReader(r, runes.Map(func(c rune) rune {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0xFFFE || c == 0xFFFF {
			return ' '
		}
		return c
	}))
}

var xmlEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)["']`)

// plainList takes a line for an address if it is an absolute one; lines that are
// longer than the buffer are none.
func (r *entryReader) plainList(b *bufio.Reader) error {
	for whole := true; len(r.entries) < maxEntries; {
		line, err := b.ReadSlice('\n')
		if cut := errors.Is(err, bufio.ErrBufferFull); cut || !whole {
			whole = !cut
			if cut {
				continue
			}
		} else if u, err := weburl.Parse(string(bytes.TrimSpace(line))); err == nil {
			r.entries = append(r.entries, Entry{URL: u})
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

func (r *entryReader) readXML(body *pieces) error {
	d := xml.NewDecoder(body)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8 by now
	var text strings.Builder
	for depth := 0; len(r.entries) < maxEntries; {
		body.n = 0
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if depth++; depth == 1 {
				switch strings.ToLower(t.Name.Local) {
				case "urlset", "sitemapindex":
					r.known, r.sitemap = true, true
				case "rss", "rdf", "feed":
					r.known = true
				default:
					return ErrNotXML
				}
			}
			if depth > 100 {
				return errors.New("elements nested deeper than 100")
			}
			text.Reset()
			r.openElement(t)
		case xml.CharData:
			if text.Len() < 4096 {
				text.Write(t)
			}
		case xml.EndElement:
			depth--
			r.closeElement(t.Name, strings.TrimSpace(text.String()))
			text.Reset()
		}
	}
	if !r.known {
		return ErrNotXML
	}
	return nil
}

func (r *entryReader) openElement(t xml.StartElement) {
	switch t.Name.Local {
	case "url", "item", "entry":
		r.beginEntry(Entry{})
	case "sitemap":
		r.beginEntry(Entry{Sitemap: true})
	case "guid":
		r.guid = "yes"
		for _, a := range t.Attr {
			if a.Name.Local == "isPermaLink" && a.Value == "false" {
				r.guid = ""
			}
		}
	case "link": // Atom; in sitemaps the page in other languages
		var href, rel, lang string
		for _, a := range t.Attr {
			switch a.Name.Local {
			case "href":
				href = a.Value
			case "rel":
				rel = a.Value
			case "hreflang":
				lang = a.Value
			}
		}
		if lang != "" && r.sitemap {
			if rel == "alternate" && href != "" && len(r.others) < 1000 {
				r.others = append(r.others, href)
			}
			return
		}
		if href != "" && (rel == "" || rel == "alternate") && r.link == "" {
			r.link = href
		}
	case "md": // ResourceSync
		for _, a := range t.Attr {
			switch a.Name.Local {
			case "datetime":
				r.date = a.Value
			case "change":
				r.cur.Deleted = a.Value == "deleted"
			}
		}
	}
}

func (r *entryReader) closeElement(name xml.Name, text string) {
	foreign := strings.Contains(name.Space, "image") || strings.Contains(name.Space, "video") || strings.Contains(name.Space, "news")
	switch name.Local {
	case "loc":
		if !foreign && text != "" {
			r.link = text
		}
	case "link":
		if !foreign && text != "" && r.link == "" {
			r.link = text
		}
	case "guid":
		if r.guid != "" {
			r.guid = ""
			if strings.HasPrefix(text, "http") {
				r.guid = text
			}
		}
	case "lastmod", "updated", "pubDate", "date":
		if !foreign && text != "" && (r.date == "" || name.Local == "updated") {
			r.date = text
		}
	case "url", "sitemap", "item", "entry":
		if foreign {
			return
		}
		if r.link == "" {
			r.link = r.guid
		}
		if u, err := r.base.Resolve(r.link); err == nil && r.link != "" {
			r.cur.URL, r.cur.Modified = u, webdate.Parse(r.date)
			r.entries = append(r.entries, r.cur)
		}
		for _, o := range r.others {
			if u, err := r.base.Resolve(o); err == nil && u != r.cur.URL && len(r.entries) < maxEntries {
				r.entries = append(r.entries, Entry{URL: u})
			}
		}
		r.beginEntry(Entry{})
	}
}

func (r *entryReader) beginEntry(e Entry) {
	r.cur, r.link, r.guid, r.date, r.others = e, "", "", "", r.others[:0]
}
