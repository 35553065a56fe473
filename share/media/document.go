package media

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/freshet/freshet/extract/pdftext"
)

// maxPages bounds the pages of a PDF that are looked at.
const maxPages = 5

// readPDF reads title, author and the words of the first pages.
func readPDF(ctx context.Context, pool *pdftext.Pool, r io.ReaderAt, size int64, in *Info) error {
	d, err := pool.Read(ctx, r, size, pdftext.Limits{Pages: maxPages, Text: 2 * MaxText})
	in.Title, in.Artist, in.Text = d.Title, d.Author, d.Text
	var bad *pdftext.Error
	if errors.As(err, &bad) && bad.Reason.OverLimit() {
		in.Problem = string(bad.Reason)
	}
	return err
}

func readDOCX(r io.ReaderAt, size int64, in *Info) error {
	return readZipped(r, size, "word/document.xml", "docProps/core.xml", in)
}

func readODT(r io.ReaderAt, size int64, in *Info) error {
	return readZipped(r, size, "content.xml", "meta.xml", in)
}

// readZipped reads the words of one XML file in a zip archive, and title and
// author of another. Of several files of one name the first counts.
func readZipped(r io.ReaderAt, size int64, body, meta string, in *Info) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return err
	}
	var errs []error
	wanted := map[string]bool{body: true, meta: true}
	for _, f := range z.File {
		if !wanted[f.Name] {
			continue
		}
		wanted[f.Name] = false
		errs = append(errs, readPacked(f, f.Name == meta, in))
	}
	return errors.Join(errs...)
}

// maxUnpacked bounds what one file of an archive is unpacked to.
const maxUnpacked = 4 << 20

func readPacked(f *zip.File, meta bool, in *Info) error {
	rc, err := f.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	return readXML(io.LimitReader(rc, maxUnpacked), meta, in)
}

// readXML reads words or, of meta, title and author. Raw tokens keep no list of
// open elements, which a document could make as long as it likes.
func readXML(r io.Reader, meta bool, in *Info) error {
	d := xml.NewDecoder(r)
	d.Strict = false
	var text strings.Builder
	defer func() {
		if !meta {
			in.Text = text.String()
		}
	}()
	element := ""
	for text.Len() < MaxText {
		tok, err := d.RawToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if text.Len() > 0 {
				return nil
			}
			return err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			element = t.Name.Local
		case xml.EndElement:
			if t.Name.Local == "p" || t.Name.Local == "h" {
				text.WriteByte(' ')
			}
			element = ""
		case xml.CharData:
			switch {
			case !meta:
				text.Write(t[:min(len(t), 4*MaxText)])
			case element == "title":
				in.Title = string(t[:min(len(t), 4*maxTag)])
			case element == "creator" || element == "initial-creator":
				in.Artist = string(t[:min(len(t), 4*maxTag)])
			}
		}
	}
	return nil
}

func readText(r io.ReaderAt, size int64, in *Info) error {
	b, err := readAtMost(r, 0, int(min(size, 2*MaxText)))
	if err != nil {
		return err
	}
	if bytes.IndexByte(b, 0) >= 0 && !bytes.HasPrefix(b, []byte("\xff\xfe")) && !bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return errors.New("no text")
	}
	if int64(len(b)) < size { // do not end in the middle of a letter
		for i := 0; i < 4 && len(b) > 0 && b[len(b)-1] >= 0x80; i++ {
			b = b[:len(b)-1]
		}
	}
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		in.Text = id3Text(append([]byte{1}, b...))
		return nil
	}
	in.Text = decodeLegacy(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	return nil
}

func readHTML(r io.ReaderAt, size int64, in *Info) error {
	b, err := readAtMost(r, 0, int(min(size, 64<<10)))
	if err != nil {
		return err
	}
	utf8, err := charset.NewReader(bytes.NewReader(b), "text/html")
	if err != nil {
		return err
	}
	z := html.NewTokenizer(utf8)
	var text strings.Builder
	skip := ""
	for text.Len() < MaxText {
		switch z.Next() {
		case html.ErrorToken:
			in.Text = text.String()
			return nil
		case html.StartTagToken:
			if name, _ := z.TagName(); string(name) == "script" || string(name) == "style" || string(name) == "title" {
				skip = string(name)
			}
		case html.EndTagToken:
			skip = ""
			text.WriteByte(' ')
		case html.TextToken:
			switch skip {
			case "":
				text.Write(z.Text())
			case "title":
				in.Title = string(z.Text())
			}
		}
	}
	in.Text = text.String()
	return nil
}
