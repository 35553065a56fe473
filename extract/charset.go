package extract

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
)

// UTF8 converts the bytes of a text document and names the encoding that it
// was in. Bytes that are no text of that encoding become U+FFFD. The result is
// the input where that is UTF-8 already.
func UTF8(body []byte, contentType string) ([]byte, string) {
	if saysUTF8(contentType) && (len(body) == 0 || body[0] < 0x80) && utf8.Valid(body) { // nearly all pages
		return body, "utf-8"
	}
	head := body[:min(len(body), 1024)]
	enc, name, certain := charset.DetermineEncoding(head, contentType)
	if !certain { // no mark, no header, nothing said in the head
		if e, n := charset.Lookup(declaredCharset(body)); e != nil {
			enc, name, certain = e, n, true
			switch name {
			case "utf-16be", "utf-16le": // then it could not be read
				name = "utf-8"
			case "x-user-defined":
				enc, name = charmap.Windows1252, "windows-1252"
			}
		}
	}
	if !certain && name == "windows-1252" && utf8.Valid(body) {
		// The guess where nothing is said, from the head alone, and the label that
		// pages carry most often without being in it.
		return body, "utf-8"
	}
	if name == "utf-8" {
		body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
		if utf8.Valid(body) {
			return body, name
		}
		return bytes.ToValidUTF8(body, []byte("\uFFFD")), name
	}
	out, _, err := transform.Bytes(enc.NewDecoder(), body)
	if err != nil {
		return bytes.ToValidUTF8(body, []byte("\uFFFD")), name
	}
	return bytes.TrimPrefix(out, []byte("\uFEFF")), name
}

// saysUTF8 reports whether a content type is one of those by which most servers
// say that a text is UTF-8.
func saysUTF8(contentType string) bool {
	switch contentType {
	case "text/html; charset=utf-8", "text/html; charset=UTF-8", "text/html;charset=utf-8", "text/html;charset=UTF-8", "text/plain; charset=utf-8", "text/plain; charset=UTF-8":
		return true
	}
	return false
}
