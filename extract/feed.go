package extract

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/freshet/freshet/weburl"
)

// Entry is one line of a sitemap or feed.
type Entry struct {
	URL      weburl.URL
	Modified time.Time // zero if not said
	Sitemap  bool      // another sitemap, of an index
	Deleted  bool      // ResourceSync: it is gone, at Modified
}

// Bounds of sitemaps and feeds, twice those of sitemaps.org.
const (
	maxEntries = 100_000
	maxXML     = 100 << 20
)

// ErrNotXML is the error of a document that is neither sitemap nor feed.
var ErrNotXML = errors.New("neither a sitemap nor a feed")

// Entries reads a sitemap, a sitemap index, a ResourceSync list, an RSS or Atom
// feed, or a plain list of URLs, gzip-compressed or not. What follows a syntax
// error is lost, what stands before it is returned with the error. Entries of
// other hosts are the caller's to judge.
func Entries(body []byte, base weburl.URL) ([]Entry, error) {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("sitemap %s: %w", base, err)
		}
		if body, err = io.ReadAll(io.LimitReader(z, maxXML)); err != nil && len(body) == 0 {
			return nil, fmt.Errorf("sitemap %s: %w", base, err)
		}
	}
	trimmed := bytes.TrimLeft(body, "\xEF\xBB\xBF \t\r\n")
	if bytes.HasPrefix(trimmed, []byte("http")) {
		return plainList(trimmed, base), nil
	}
	if !bytes.HasPrefix(trimmed, []byte("<")) {
		return nil, fmt.Errorf("%s: %w", base, ErrNotXML)
	}
	r := entryReader{base: base}
	err := r.read(trimmed)
	if err != nil {
		err = fmt.Errorf("sitemap %s: %w", base, err)
	}
	return r.entries, err
}

func plainList(body []byte, base weburl.URL) []Entry {
	var out []Entry
	for line := range bytes.Lines(body) {
		if u, err := base.Resolve(string(bytes.TrimSpace(line))); err == nil && len(out) < maxEntries {
			out = append(out, Entry{URL: u})
		}
	}
	return out
}

// entryReader walks the XML without a tree.
type entryReader struct {
	base    weburl.URL
	entries []Entry
	cur     Entry
	link    string
	date    string
	known   bool // the root element is one of ours
}

func (r *entryReader) read(body []byte) error {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = charset.NewReaderLabel
	var text strings.Builder
	for depth := 0; len(r.entries) < maxEntries; {
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
				case "urlset", "sitemapindex", "rss", "rdf", "feed":
					r.known = true
				default:
					return ErrNotXML
				}
			}
			if depth > 100 {
				return errors.New("elements nested deeper than 100")
			}
			text.Reset()
			r.open(t)
		case xml.CharData:
			if text.Len() < 4096 {
				text.Write(t)
			}
		case xml.EndElement:
			depth--
			r.close(t.Name, strings.TrimSpace(text.String()))
			text.Reset()
		}
	}
	if !r.known {
		return ErrNotXML
	}
	return nil
}

func (r *entryReader) open(t xml.StartElement) {
	switch t.Name.Local {
	case "url", "item", "entry":
		r.link, r.date, r.cur = "", "", Entry{}
	case "sitemap":
		r.link, r.date, r.cur = "", "", Entry{Sitemap: true}
	case "link": // Atom
		var href, rel string
		for _, a := range t.Attr {
			switch a.Name.Local {
			case "href":
				href = a.Value
			case "rel":
				rel = a.Value
			}
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

func (r *entryReader) close(name xml.Name, text string) {
	foreign := strings.Contains(name.Space, "image") || strings.Contains(name.Space, "video") || strings.Contains(name.Space, "news")
	switch name.Local {
	case "loc", "link":
		if !foreign && text != "" && r.link == "" {
			r.link = text
		}
	case "lastmod", "updated", "pubDate", "date":
		if !foreign && text != "" && (r.date == "" || name.Local == "updated") {
			r.date = text
		}
	case "url", "sitemap", "item", "entry":
		if foreign || r.link == "" {
			return
		}
		u, err := r.base.Resolve(r.link)
		if err != nil {
			return
		}
		r.cur.URL, r.cur.Modified = u, Time(r.date)
		r.entries = append(r.entries, r.cur)
		r.link = ""
	}
}

// Time reads the date forms of sitemaps, feeds and HTTP; zero if it is none.
func Time(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02", "2006-01", "2006", time.RFC1123, time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700", time.RFC850, time.ANSIC, "2 Jan 2006 15:04:05 -0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}
