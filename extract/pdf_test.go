package extract

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/extract/pdftext/pdftest"
)

// paper is a PDF of two pages with a title, a link annotation and an address in
// its text.
func paper(t testing.TB) []byte {
	t.Helper()
	d := fpdf.New("P", "mm", "A4", "")
	d.SetTitle("Report of the year", false)
	d.SetFont("Helvetica", "", 12)
	d.AddPage()
	d.Write(6, "The first page tells of rivers and the sea.")
	d.LinkString(10, 10, 50, 8, "/annex.html")
	d.AddPage()
	d.Write(6, "More at http://other.example/more, and of the snow.")
	var b bytes.Buffer
	if err := d.Output(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPDF(t *testing.T) {
	t.Parallel()
	o := Options{PDF: pdftest.NewPool(t, pdftext.Config{})}
	whole := paper(t)
	p := Document(t.Context(), whole, "application/pdf", base(t), o)
	if p.Title != "Report of the year" || !strings.Contains(p.Text, "rivers and the sea") || !strings.Contains(p.Text, "snow") || p.Lang != "en" || p.Problem != "" {
		t.Errorf("title %q, language %q, text %q, problem %q", p.Title, p.Lang, p.Text, p.Problem)
	}
	if got, want := links(p), "http://h.example/annex.html http://other.example/more"; got != want {
		t.Errorf("links %q, want %q", got, want)
	}
	if q := Document(t.Context(), bytes.ReplaceAll(whole, []byte("Report of"), []byte("Rumour of")), "application/pdf", base(t), o); q.Digest == p.Digest {
		t.Error("another title, the same digest")
	}
	for _, n := range []int{0, 1, 100, len(whole) / 2, len(whole) - 10} { // cut short
		if q := Document(t.Context(), whole[:n], "application/pdf", base(t), o); q.Problem.Final() || q.Incomplete {
			t.Errorf("of %d bytes: problem %q, incomplete %v", n, q.Problem, q.Incomplete)
		}
	}
	if q := Document(t.Context(), whole, "application/pdf", base(t), Options{}); q.Text != "" || q.Problem != "" {
		t.Errorf("without a reader: text %q, problem %q", q.Text, q.Problem)
	}
}

// A document that exceeds a limit is marked, and not read again while its bytes
// are the same.
func TestRefusedPDF(t *testing.T) {
	t.Parallel()
	body := pdftest.Bomb(100 << 20)
	pool := pdftext.NewPool(pdftext.Config{Memory: 48 << 20})
	defer pool.Close()
	first := Document(t.Context(), body, "application/pdf", base(t), Options{PDF: pool})
	if first.Problem != Problem(pdftext.MemoryLimit) || !first.Problem.Final() || first.Digest == [16]byte{} || first.Text != "" {
		t.Fatalf("problem %q, digest %x, %d bytes of text", first.Problem, first.Digest, len(first.Text))
	}
	pool.Close() // from here on, reading would give an incomplete page
	again := Options{PDF: pool, Refused: first.Digest, RefusedFor: first.Problem}
	if p := Document(t.Context(), body, "application/pdf", base(t), again); p.Problem != first.Problem || p.Digest != first.Digest || p.Incomplete {
		t.Errorf("again: problem %q, digest %x, incomplete %v; want %q, %x", p.Problem, p.Digest, p.Incomplete, first.Problem, first.Digest)
	}
	if p := Document(t.Context(), append(body, ' '), "application/pdf", base(t), again); !p.Incomplete {
		t.Errorf("a changed document was not read: problem %q", p.Problem)
	}
}

func TestManyLinks(t *testing.T) {
	t.Parallel()
	o := Options{PDF: pdftest.NewPool(t, pdftext.Config{Time: 5 * time.Minute})}
	body := pdftest.Links(60_000)
	if p := PDF(t.Context(), body, base(t), o); len(p.Links) != 60_000 {
		t.Errorf("%d links, problem %q; want 60000", len(p.Links), p.Problem)
	}
	o.MaxLinks = 100
	if p := PDF(t.Context(), body, base(t), o); len(p.Links) != 100 {
		t.Errorf("%d links, problem %q; want 100", len(p.Links), p.Problem)
	}
}

// A panic of a parser is a problem of its document.
func TestParserPanic(t *testing.T) {
	t.Parallel()
	body := []byte("a body that no parser takes")
	broken := func() *Page { panic("index out of range") }
	p := parseGuarded(body, Options{}, broken)
	if p.Problem != ParserFailed || !p.Problem.Final() || p.Digest == [16]byte{} {
		t.Fatalf("problem %q, digest %x", p.Problem, p.Digest)
	}
	tried := false
	q := parseGuarded(body, Options{Refused: p.Digest, RefusedFor: p.Problem}, func() *Page { tried = true; return broken() })
	if tried || q.Problem != ParserFailed || q.Digest != p.Digest {
		t.Errorf("the same body: parsed %v, problem %q", tried, q.Problem)
	}
}

// Whatever the bytes, there is some page.
func FuzzPDF(f *testing.F) {
	f.Add(paper(f))
	f.Add([]byte("%PDF-1.4\n%%EOF"))
	o := Options{PDF: pdftest.NewPool(f, pdftext.Config{Memory: 64 << 20})}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p := PDF(context.Background(), b, base(t), o); len(p.Links) > 10_000 {
			t.Errorf("%d links", len(p.Links))
		}
	})
}
