package media

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/ledongthuc/pdf"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// maxPages bounds the pages of a PDF that are looked at.
const maxPages = 5

// readPDF reads title, author and the words of the first pages.
func readPDF(r io.ReaderAt, size int64, in *Info) error {
	d, err := pdf.NewReader(r, size)
	if err != nil {
		return err
	}
	if info := d.Trailer().Key("Info"); info.Kind() == pdf.Dict {
		in.Title, in.Artist = info.Key("Title").Text(), info.Key("Author").Text()
	}
	var b strings.Builder
	for i := 1; i <= min(d.NumPage(), maxPages) && b.Len() < MaxText; i++ {
		text, err := d.Page(i).GetPlainText(nil)
		if err != nil {
			return err
		}
		b.WriteString(text)
		b.WriteByte(' ')
	}
	in.Text = b.String()
	return nil
}

func readDOCX(r io.ReaderAt, size int64, in *Info) error {
	return readZipped(r, size, "word/document.xml", "docProps/core.xml", in)
}

func readODT(r io.ReaderAt, size int64, in *Info) error {
	return readZipped(r, size, "content.xml", "meta.xml", in)
}

// readZipped reads the words of one XML file in a zip archive, and title and
// author of another.
func readZipped(r io.ReaderAt, size int64, body, meta string, in *Info) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range z.File {
		if f.Name != body && f.Name != meta {
			continue
		}
		rc, err := f.Open()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// A bomb unpacks to no more than this.
		errs = append(errs, readXML(io.LimitReader(rc, 4<<20), f.Name == meta, in))
		rc.Close()
	}
	return errors.Join(errs...)
}

func readXML(r io.Reader, meta bool, in *Info) error {
	d := xml.NewDecoder(r)
	d.Strict = false
	var text strings.Builder
	element := ""
	for text.Len() < MaxText {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			if text.Len() > 0 {
				break
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
				text.Write(t)
			case element == "title":
				in.Title = string(t)
			case element == "creator" || element == "initial-creator":
				in.Artist = string(t)
			}
		}
	}
	if !meta {
		in.Text = text.String()
	}
	return nil
}

func readText(r io.ReaderAt, size int64, in *Info) error {
	b, err := read(r, 0, int(min(size, 2*MaxText)))
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
	in.Text = legacy(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	return nil
}

func readHTML(r io.ReaderAt, size int64, in *Info) error {
	b, err := read(r, 0, int(min(size, 64<<10)))
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
