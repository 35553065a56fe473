// Package pdftest makes PDF documents for tests: hostile ones, each of which
// stopped some reader by its cost or by an endless loop.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet/freshet/extract/pdftext"
)

// NewPool returns a pool that is closed with the test. All tests of a machine
// share the compiled module.
func NewPool(t testing.TB, c pdftext.Config) *pdftext.Pool {
	t.Helper()
	c.CacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("freshet-test-pdf-%d", os.Geteuid()))
	p := pdftext.NewPool(c)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// File is a document of Hostile.
type File struct {
	Name string
	Body []byte
}

// builder writes objects and the table of where they are.
type builder struct {
	bytes.Buffer
	at []int
}

func newBuilder() *builder {
	b := &builder{}
	b.WriteString("%PDF-1.5\n")
	return b
}

func (b *builder) writeObject(format string, args ...any) {
	b.at = append(b.at, b.Len())
	fmt.Fprintf(b, "%d 0 obj\n", len(b.at))
	fmt.Fprintf(b, format, args...)
	b.WriteString("\nendobj\n")
}

func (b *builder) writeStream(dict string, body []byte) {
	b.writeObject("<<%s/Length %d>>\nstream\n%s\nendstream", dict, len(body), body)
}

func (b *builder) writeTrailer() []byte {
	at := b.Len()
	fmt.Fprintf(b, "xref\n0 %d\n0000000000 65535 f \n", len(b.at)+1)
	for _, o := range b.at {
		fmt.Fprintf(b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(b.at)+1, at)
	return b.Bytes()
}

// xrefStream is a document whose only object is its cross-reference stream.
func xrefStream(dict string, rows []byte) []byte {
	b := newBuilder()
	at := b.Len()
	b.writeStream("/Type/XRef/Root 1 0 R"+dict, rows)
	fmt.Fprintf(b, "startxref\n%d\n%%%%EOF\n", at)
	return b.Bytes()
}

// deflateReader packs what r holds.
func deflateReader(r io.Reader) []byte {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed) // the level is right
	if _, err := io.Copy(w, r); err != nil {
		panic(err) // memory takes everything
	}
	_ = w.Close()
	return b.Bytes()
}

// repeated reads s again and again, n bytes in all.
type repeated struct {
	s    string
	n, i int
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	b = b[:min(len(b), r.n)]
	for k := range b {
		b[k] = r.s[r.i]
		r.i = (r.i + 1) % len(r.s)
	}
	r.n -= len(b)
	return len(b), nil
}

// onePage is a document of one page with further entries of the page and, as
// objects 5 and up, whatever rest writes.
func onePage(page string, content []byte, filter string, rest func(b *builder)) []byte {
	b := newBuilder()
	b.writeObject("<</Type/Catalog/Pages 2 0 R>>")
	b.writeObject("<</Type/Pages/Kids[3 0 R]/Count 1>>")
	b.writeObject("<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R%s>>", page)
	b.writeStream(filter, content)
	if rest != nil {
		rest(b)
	}
	return b.writeTrailer()
}

const helvetica = "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"

// Links is a document of one page with n link annotations, all to different
// pages.
func Links(n int) []byte {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "<</Type/Annot/Subtype/Link/Rect[0 0 1 1]/A<</S/URI/URI(/p%d)>>>>", i)
	}
	return onePage("/Annots["+list.String()+"]"+helvetica, []byte("BT /F 12 Tf 9 9 Td (many links) Tj ET"), "", nil)
}

// Bomb is a document whose page unpacks to n bytes of text operators.
func Bomb(n int) []byte {
	return onePage(helvetica, deflateReader(io.MultiReader(strings.NewReader("BT /F 12 Tf "), &repeated{s: "(word ) Tj ", n: n})), "/Filter/FlateDecode", nil)
}

// Hostile returns one document of each kind.
func Hostile() []File {
	row := func(kind byte, field uint32, last byte) []byte {
		return append(append([]byte{kind}, binary.BigEndian.AppendUint32(nil, field)...), last)
	}
	own := bytes.Join([][]byte{row(0, 0, 255), row(2, 1, 0)}, nil)
	return []File{
		{"object in itself", xrefStream("/Size 2/W[1 4 1]", own)},
		{"object streams in each other", xrefStream("/Size 4/W[1 4 1]", bytes.Join([][]byte{row(0, 0, 255), row(2, 2, 0), row(2, 3, 0), row(2, 1, 0)}, nil))},
		{"huge size", xrefStream("/Size 20000000000/W[1 4 1]", own)},
		{"size of 31 bits", xrefStream("/Size 2147483647/W[1 4 1]/Index[0 2147483647]", own)},
		{"huge field widths", xrefStream("/Size 2/W[1 2000000000 1]", own)},
		{"huge columns", xrefStream("/Size 2/W[1 4 1]/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 200000000000>>", deflateReader(bytes.NewReader(own)))},
		{"columns of 31 bits", xrefStream("/Size 2/W[1 4 1]/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 2147483600>>", deflateReader(bytes.NewReader(own)))},
		{"tables that follow themselves", []byte("%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\nxref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 2/Root 1 0 R/Prev 44>>\nstartxref\n44\n%%EOF\n")},
		{"cmap of 10^12 characters", onePage("/Resources<</Font<</F 5 0 R>>>>", []byte("BT /F 12 Tf (abc) Tj ET"), "", func(b *builder) {
			b.writeObject("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>")
			b.writeStream("", []byte("/CIDInit /ProcSet findresource begin begincmap 1000000000000 beginbfchar endbfchar 1 beginbfrange <0000> <ffffffff> <0041> endbfrange endcmap"))
		})},
		{"page that is its own parent", func() []byte {
			b := newBuilder()
			b.writeObject("<</Type/Catalog/Pages 2 0 R>>")
			b.writeObject("<</Type/Pages/Kids[3 0 R]/Count 1>>")
			b.writeObject("<</Type/Page/Parent 3 0 R>>")
			return b.writeTrailer()
		}()},
		{"tree that is its own kid", func() []byte {
			b := newBuilder()
			b.writeObject("<</Type/Catalog/Pages 2 0 R>>")
			b.writeObject("<</Type/Pages/Kids[2 0 R]/Count 1>>")
			return b.writeTrailer()
		}()},
		{"tree of 10^9 pages", func() []byte {
			b := newBuilder()
			b.writeObject("<</Type/Catalog/Pages 2 0 R>>")
			for i := range 9 {
				b.writeObject("<</Type/Pages/Count 1000000000/Kids[%s]>>", strings.Repeat(fmt.Sprintf("%d 0 R ", i+3), 10))
			}
			b.writeObject("<</Type/Page/MediaBox[0 0 9 9]>>")
			return b.writeTrailer()
		}()},
		{"count of 31 bits", bytes.Replace(onePage("", nil, "", nil), []byte("/Count 1"), []byte("/Count 2147483647"), 1)},
		{"nested arrays", onePage("/Annots"+strings.Repeat("[", 1<<20), nil, "", nil)},
		{"form that draws itself", onePage("/Resources<</XObject<</X 5 0 R>>>>", []byte("/X Do"), "", func(b *builder) {
			b.writeStream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>", []byte("/X Do /X Do"))
		})},
		{"forms that double each other", onePage("/Resources<</XObject<</X 5 0 R>>>>", []byte("/X Do"), "", func(b *builder) {
			for i := range 40 {
				b.writeStream(fmt.Sprintf("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>>>", i+6), []byte("/X Do /X Do"))
			}
			b.writeStream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]"+helvetica, []byte("BT /F 9 Tf (x) Tj ET"))
		})},
		{"60,000 links", Links(60_000)},
		{"text of 200 MB", Bomb(200 << 20)},
		{"string of 200 MB", onePage(helvetica, deflateReader(io.MultiReader(strings.NewReader("BT /F 12 Tf ("), &repeated{s: "word ", n: 200 << 20}, strings.NewReader(") Tj ET"))), "/Filter/FlateDecode", nil)},
		{"object stream of 200 MB", func() []byte {
			b := newBuilder()
			b.writeObject("<</Type/Catalog/Pages 2 0 R>>")
			b.writeStream("/Type/ObjStm/N 1/First 4/Filter/FlateDecode", deflateReader(io.MultiReader(strings.NewReader("3 0 ("), &repeated{s: "x", n: 200 << 20})))
			at := b.Len()
			rows := bytes.Join([][]byte{row(0, 0, 255), row(1, uint32(b.at[0]), 0), row(2, 2, 0), row(1, uint32(b.at[1]), 0)}, nil)
			b.writeStream("/Type/XRef/Size 4/W[1 4 1]/Root 1 0 R", rows)
			fmt.Fprintf(b, "startxref\n%d\n%%%%EOF\n", at)
			return b.Bytes()
		}()},
	}
}
