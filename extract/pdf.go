package extract

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/weburl"
)

// maxPDFPages bounds the pages of a PDF that are read.
const maxPDFPages = 50

// PDF reads title, text and links of a PDF document: link annotations, and the
// addresses that stand in the text. Of a damaged one it returns what could be
// read, maybe nothing. A document that exceeds the limits of o.PDF has a Problem,
// a digest of its bytes, and no content.
func PDF(ctx context.Context, body []byte, base weburl.URL, o Options) *Page {
	o = o.withExtractDefaults()
	if o.PDF == nil {
		return emptyPage()
	}
	raw := refusalDigest(body, o.PDF)
	if o.Refused == raw {
		return &Page{Problem: o.RefusedFor, Digest: raw}
	}
	d, err := o.PDF.Read(ctx, bytes.NewReader(body), int64(len(body)), pdftext.Limits{Pages: maxPDFPages, Text: o.MaxText, Links: o.MaxLinks})
	var bad *pdftext.Error
	switch {
	case errors.As(err, &bad) && bad.Reason.OverLimit():
		return &Page{Problem: Problem(bad.Reason), Digest: raw}
	case err != nil && (ctx.Err() != nil || errors.Is(err, pdftext.ErrClosed)):
		return &Page{Incomplete: true, Digest: raw}
	case err != nil && bad == nil:
		return &Page{Problem: UnreadPDF, Digest: raw}
	}
	p := &Page{Title: foldSpace(d.Title, 500), Text: foldSpace(d.Text, o.MaxText)}
	if bad != nil {
		p.Problem = Problem(bad.Reason)
	}
	seen := map[weburl.Key]bool{}
	for _, address := range d.Links {
		p.addPlain(address, base, o.MaxLinks, seen)
	}
	for _, m := range plainURL.FindAllString(p.Text, o.MaxLinks) {
		p.addPlain(strings.TrimRight(m, ".,;:!?)]"), base, o.MaxLinks, seen)
	}
	p.Lang = Language("", p.Text)
	p.measureText()
	p.Digest, p.Simhash = computeDigest(p, spacesIn(p.Text))
	p.dropControls()
	return p
}

// addPlain adds an address that is no HTML link, once.
func (p *Page) addPlain(address string, base weburl.URL, limit int, seen map[weburl.Key]bool) {
	u, err := base.Resolve(address)
	if err != nil || len(p.Links) >= limit || seen[u.Key()] {
		return
	}
	seen[u.Key()] = true
	p.Links = append(p.Links, Link{URL: u, Kind: Plain})
}
