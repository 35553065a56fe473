package extract

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"

	"github.com/freshet/freshet/weburl"
)

// maxPDFPages bounds the pages of a PDF that are read.
const maxPDFPages = 50

// PDF reads title, text and links of a PDF document: link annotations, and the
// addresses that stand in the text. Of a damaged one it returns what could be
// read, maybe nothing.
func PDF(body []byte, base weburl.URL, o Options) *Page {
	o = o.withDefaults()
	p := &Page{}
	var text strings.Builder
	_ = readPDF(body, base, o, p, &text) // damaged: what was read until then counts
	p.Text = foldSpace(text.String(), o.MaxText)
	p.Title = foldSpace(p.Title, 500)
	for _, m := range plainURL.FindAllString(p.Text, o.MaxLinks) {
		p.addPlain(strings.TrimRight(m, ".,;:!?)]"), base, o.MaxLinks)
	}
	p.Lang = Language("", p.Text)
	p.measure()
	p.Digest, p.Simhash = digest(p, spacesIn(p.Text))
	return p
}

// pdfTime is how long one document may be read.
const pdfTime = 5 * time.Second

// patient is a document that ends the library's parser, by a panic that readPDF
// catches, when it goes round in circles: it has read the file many times over,
// or for too long.
type patient struct {
	r     io.ReaderAt
	until time.Time
	left  int64
}

// ReadAt implements io.ReaderAt.
func (p *patient) ReadAt(b []byte, at int64) (int, error) {
	n, err := p.r.ReadAt(b, at)
	if p.left -= int64(max(n, 16)); p.left < 0 || time.Now().After(p.until) {
		panic("read for too long")
	}
	return n, err
}

// readPDF walks the pages. The library's parser may panic on damaged files.
func readPDF(body []byte, base weburl.URL, o Options, p *Page, text *strings.Builder) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("damaged PDF: %v", v)
		}
	}()
	in := &patient{r: bytes.NewReader(body), until: time.Now().Add(pdfTime), left: 64*int64(len(body)) + 1<<20}
	d, err := pdf.NewReader(in, int64(len(body)))
	if err != nil {
		return err
	}
	if info := d.Trailer().Key("Info"); info.Kind() == pdf.Dict {
		p.Title = info.Key("Title").Text()
	}
	for i := 1; i <= min(d.NumPage(), maxPDFPages) && text.Len() < o.MaxText; i++ {
		page := d.Page(i)
		annotations := page.V.Key("Annots")
		for j := range min(annotations.Len(), o.MaxLinks) {
			if uri := annotations.Index(j).Key("A").Key("URI"); uri.Kind() == pdf.String {
				p.addPlain(uri.RawString(), base, o.MaxLinks)
			}
		}
		words, err := page.GetPlainText(nil)
		if err != nil {
			return err
		}
		text.WriteString(words)
		text.WriteByte(' ')
	}
	return nil
}

// addPlain adds an address that is no HTML link, once.
func (p *Page) addPlain(address string, base weburl.URL, limit int) {
	u, err := base.Resolve(address)
	if err != nil || len(p.Links) >= limit {
		return
	}
	for _, l := range p.Links {
		if l.URL == u {
			return
		}
	}
	p.Links = append(p.Links, Link{URL: u, Kind: Plain})
}
