package extract

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/go-pdf/fpdf"
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
	whole := paper(t)
	p := Document(whole, "application/pdf", base(t), Options{})
	if p.Title != "Report of the year" || !strings.Contains(p.Text, "rivers and the sea") || !strings.Contains(p.Text, "snow") || p.Lang != "en" {
		t.Errorf("title %q, language %q, text %q", p.Title, p.Lang, p.Text)
	}
	if got, want := links(p), "http://h.example/annex.html http://other.example/more"; got != want {
		t.Errorf("links %q, want %q", got, want)
	}
	if q := Document(bytes.ReplaceAll(whole, []byte("Report of"), []byte("Rumour of")), "application/pdf", base(t), Options{}); q.Digest == p.Digest {
		t.Error("another title, the same digest")
	}
	for _, n := range []int{0, 1, 100, len(whole) / 2, len(whole) - 10} { // cut short: no panic
		Document(whole[:n], "application/pdf", base(t), Options{})
	}
}

// Whatever the bytes, there is some page.
func FuzzPDF(f *testing.F) {
	f.Add(paper(f))
	f.Add([]byte("%PDF-1.4\n%%EOF"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := PDF(b, base(t), Options{})
		if len(p.Links) > 10_000 {
			t.Errorf("%d links", len(p.Links))
		}
	})
}
