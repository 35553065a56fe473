package extract

import "github.com/freshet/freshet/extract/pdftext"

// Problem says why a document's content could not be read, or not wholly; "" if
// it could. It is a code that is stored with pages.
type Problem string

// Problems; those of PDF documents are the reasons of package pdftext.
const (
	ParserFailed Problem = "parser-failed"
	UnreadPDF    Problem = "pdf-reader-unavailable"
)

// Final reports whether the same content would fail again, at the same cost: it
// is not read again until it changes.
func (p Problem) Final() bool { return p == ParserFailed || pdftext.Reason(p).OverLimit() }

// emptyPage is the page of a document whose type holds no text.
func emptyPage() *Page {
	p := &Page{}
	p.Digest, p.Simhash = digest(p, spacesIn(p.Text))
	return p
}

// guarded returns the page that parse makes of body. Where a parser panics, the
// page has a Problem instead of content: one document does not end the robot.
func guarded(body []byte, o Options, parse func() *Page) (p *Page) {
	if o.RefusedFor == ParserFailed && o.Refused == bodyDigest(body) {
		return &Page{Problem: ParserFailed, Digest: o.Refused}
	}
	defer func() {
		if v := recover(); v != nil {
			p = &Page{Problem: ParserFailed, Digest: bodyDigest(body)}
		}
	}()
	return parse()
}
