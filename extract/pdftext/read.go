package pdftext

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klippa-app/go-pdfium"
	pdfium_errors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/tetratelabs/wazero/sys"
)

// Reason is the code of why a document could not be read to its end.
type Reason string

// Reasons.
const (
	TimeLimit   Reason = "pdf-time-limit"
	MemoryLimit Reason = "pdf-memory-limit"
	Crash       Reason = "pdf-crash" // by a trap inside the sandbox
	Damaged     Reason = "pdf-damaged"
	Encrypted   Reason = "pdf-password"
)

// OverLimit reports whether another attempt would be as costly and as vain.
func (r Reason) OverLimit() bool { return r == TimeLimit || r == MemoryLimit || r == Crash }

// Error is what is wrong with a document. Every other error of Read is of its
// surroundings: a cancelled context, a reader that failed.
type Error struct {
	Reason Reason
	Err    error // of the library, if there is one
}

func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + e.Err.Error()
}

// Unwrap returns the library's error.
func (e *Error) Unwrap() error { return e.Err }

// Limits bound what is read of a document. Zero is nothing.
type Limits struct {
	Pages int
	Text  int // bytes
	Links int // each counts once for a place where it stands
}

// Document is what was read.
type Document struct {
	Title, Author string
	Text          string   // pages after each other, as UTF-8
	Links         []string // addresses of link annotations, not resolved
	Pages         int      // of the whole document
}

// Read reads a document of size bytes. What was read before an error is returned
// with it. A nil pool reads nothing.
func (p *Pool) Read(ctx context.Context, r io.ReaderAt, size int64, l Limits) (d Document, err error) {
	if p == nil {
		return d, errors.New("PDF documents are not read here")
	}
	if size <= 0 {
		return d, &Error{Reason: Damaged}
	}
	s, err := p.acquireSandbox(ctx)
	if err != nil {
		return d, err
	}
	healthy := false
	defer func() { p.releaseSandbox(s, healthy) }()
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	in := &input{r: r, size: size}
	defer func() { in.r = nil }() // the library keeps in after some traps
	err = runTimed(p.config.Time, s.cancel, func() error { return s.readDocumentIn(in, l, &d) })
	healthy = stop() && s.ctx.Err() == nil
	var bad *Error
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, errTime):
		err = &Error{Reason: TimeLimit}
	case cause != nil:
		err = cause
	case in.err != nil:
		err, healthy = in.err, false
	case s.memory.exceeded.Load():
		err, healthy = &Error{Reason: MemoryLimit}, false
	case err != nil && !errors.As(err, &bad):
		err, healthy = &Error{Reason: Crash, Err: firstLine(err)}, false
	}
	return d, err
}

// firstLine leaves the stack of the sandbox out of an error.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}

// input is the document as the library wants it. It remembers the first error of
// the file itself.
type input struct {
	r         io.ReaderAt
	size, off int64
	err       error
}

// Read implements io.Reader.
func (in *input) Read(b []byte) (int, error) {
	if in.r == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := in.r.ReadAt(b, in.off)
	in.off += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && in.err == nil {
		in.err = err
	}
	return n, err
}

// Seek implements io.Seeker for the one way in which the library uses it.
func (in *input) Seek(off int64, whence int) (int64, error) {
	if whence != io.SeekStart || off < 0 || off > in.size {
		return 0, errors.New("seek outside of the document")
	}
	in.off = off
	return off, nil
}

// readDocumentIn reads a document in a new instance. A *Error tells what is wrong with it;
// any other error is a trap.
func (s *sandbox) readDocumentIn(in *input, l Limits, d *Document) (err error) {
	defer func() {
		if v := recover(); v != nil { // the library's Go side met numbers that PDFium never returns
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	lib, err := s.pool.GetInstanceWithContext(s.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.Close()) }()
	opened, err := lib.OpenDocument(&requests.OpenDocument{FileReader: in, FileReaderSize: in.size})
	if err != nil {
		return documentError(err)
	}
	doc := &reading{lib: lib, doc: opened.Document, limits: l, out: d}
	pages, err := lib.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.doc})
	if err != nil {
		return documentError(err)
	}
	if d.Pages = pages.PageCount; d.Pages <= 0 {
		return &Error{Reason: Damaged}
	}
	if d.Title, err = doc.metaEntry("Title"); err != nil {
		return err
	}
	if d.Author, err = doc.metaEntry("Author"); err != nil {
		return err
	}
	defer func() {
		text := doc.text.String()
		d.Text = strings.ToValidUTF8(text[:min(len(text), l.Text)], "")
	}()
	for i := 0; i < min(d.Pages, l.Pages) && doc.text.Len() < l.Text; i++ {
		if err := doc.appendPage(i); err != nil {
			return err
		}
	}
	return nil
}

// documentError makes a *Error of what PDFium itself says of a document, and
// returns every other error as it is.
func documentError(err error) error {
	switch {
	case errors.Is(err, pdfium_errors.ErrPassword), errors.Is(err, pdfium_errors.ErrSecurity):
		return &Error{Reason: Encrypted}
	case errors.Is(err, pdfium_errors.ErrFormat), errors.Is(err, pdfium_errors.ErrFile), errors.Is(err, pdfium_errors.ErrPage),
		errors.Is(err, pdfium_errors.ErrUnknown), errors.Is(err, pdfium_errors.ErrSuccess):
		return &Error{Reason: Damaged}
	}
	return err
}

// reading is one document on its way out of the sandbox.
type reading struct {
	lib    pdfium.Pdfium
	doc    references.FPDF_DOCUMENT
	limits Limits
	out    *Document
	text   strings.Builder
}

// maxMeta bounds one entry of a document's information.
const maxMeta = 4 << 10

// metaEntry returns an entry of the document's information, "" if there is none.
func (r *reading) metaEntry(tag string) (string, error) {
	m, err := r.lib.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: r.doc, Tag: tag})
	if err != nil {
		if isTrap(err) {
			return "", err
		}
		return "", nil
	}
	return strings.ToValidUTF8(strings.Trim(m.Value[:min(len(m.Value), maxMeta)], "\x00"), ""), nil
}

// appendPage appends text and links of one page. A page that PDFium cannot read is left
// out.
func (r *reading) appendPage(i int) error {
	p, err := r.lib.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: r.doc, Index: i})
	if err != nil {
		return trapOnly(err)
	}
	page := requests.Page{ByReference: &p.Page}
	if err := r.appendPageLinks(page); err != nil {
		return err
	}
	if err := r.appendWords(page); err != nil {
		return err
	}
	_, err = r.lib.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: p.Page})
	return err
}

func (r *reading) appendWords(page requests.Page) error {
	t, err := r.lib.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return trapOnly(err)
	}
	n, err := r.lib.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: t.TextPage})
	if err != nil {
		return trapOnly(err)
	}
	if count := min(n.Count, r.limits.Text-r.text.Len()); count > 0 {
		got, err := r.lib.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: t.TextPage, StartIndex: 0, Count: count})
		if err != nil {
			return trapOnly(err)
		}
		r.text.WriteString(joinHyphens.Replace(got.Text))
		r.text.WriteByte('\n')
	}
	_, err = r.lib.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: t.TextPage})
	return err
}

// joinHyphens joins words that are divided at a line's end, where PDFium leaves a
// mark instead of the hyphen, and drops the marks and terminators that remain.
var joinHyphens = strings.NewReplacer("\x02\r\n", "", "\ufffe\r\n", "", "\x02", "", "\ufffe", "", "\x00", "")

// appendPageLinks appends the addresses of a page's link annotations.
func (r *reading) appendPageLinks(page requests.Page) error {
	for at := 0; len(r.out.Links) < r.limits.Links; {
		l, err := r.lib.FPDFLink_Enumerate(&requests.FPDFLink_Enumerate{Page: page, StartPos: at})
		if err != nil {
			return trapOnly(err)
		}
		if l.Link == nil || *l.NextStartPos <= at {
			return nil
		}
		at = *l.NextStartPos
		a, err := r.lib.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: *l.Link})
		if err != nil {
			return trapOnly(err)
		}
		if a.Action == nil {
			continue
		}
		u, err := r.lib.FPDFAction_GetURIPath(&requests.FPDFAction_GetURIPath{Document: r.doc, Action: *a.Action})
		if err != nil {
			return trapOnly(err)
		}
		if u.URIPath != nil && *u.URIPath != "" && len(*u.URIPath) <= maxMeta {
			r.out.Links = append(r.out.Links, *u.URIPath)
		}
	}
	return nil
}

// isTrap reports whether the sandbox itself failed, so that nothing more can be
// read in it.
func isTrap(err error) bool {
	var exit *sys.ExitError
	return errors.As(err, &exit) || strings.Contains(err.Error(), "wasm error") || strings.Contains(err.Error(), "panic")
}

// trapOnly drops errors that PDFium returns for a part of a document.
func trapOnly(err error) error {
	if isTrap(err) {
		return err
	}
	return nil
}
