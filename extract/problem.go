package extract

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/freshet/freshet/extract/pdftext"
)

// Problem says why a document's content could not be read, or not wholly; "" if
// it could. It is a code that is stored with pages.
type Problem string

// Problems; those of PDF documents are the reasons of package pdftext.
const (
	ParserFailed Problem = "parser-failed"
	UnreadPDF    Problem = "pdf-reader-unavailable"
)

// Final reports whether the same content would fail again, at the same cost: it
// is not read again until it changes, or another version of the program or other limits
// read it.
func (p Problem) Final() bool { return p == ParserFailed || pdftext.Reason(p).OverLimit() }

// ReadsAgain reports whether another attempt may succeed with a document that was not read
// for p, although it has not changed. digest is what its page had.
func (p Problem) ReadsAgain(digest [16]byte, pdf *pdftext.Pool) bool {
	return p == UnreadPDF || p.Final() && binary.BigEndian.Uint32(digest[refusedBy:]) != pdf.Fingerprint()
}

// refusedBy is where the digest of a document without content names who could not read it.
const refusedBy = 12

// refusalDigest is the digest of a document whose content is not known: of its bytes, and of
// the reader's version and limits.
func refusalDigest(body []byte, pdf *pdftext.Pool) [16]byte {
	d := xxh3.Hash128(body).Bytes()
	binary.BigEndian.PutUint32(d[refusedBy:], pdf.Fingerprint())
	return d
}

// emptyPage is the page of a document whose type holds no text.
func emptyPage() *Page {
	p := &Page{}
	p.Digest, p.Simhash = computeDigest(p, spacesIn(p.Text))
	return p
}

// parseGuarded returns the page that parse makes of body. Where a parser panics, the
// page has a Problem instead of content: one document does not end the robot.
func parseGuarded(body []byte, o Options, parse func() *Page) (p *Page) {
	if o.RefusedFor == ParserFailed && o.Refused == refusalDigest(body, o.PDF) {
		return &Page{Problem: ParserFailed, Digest: o.Refused}
	}
	defer func() {
		if v := recover(); v != nil {
			p = &Page{Problem: ParserFailed, Digest: refusalDigest(body, o.PDF)}
		}
	}()
	return parse()
}
