package trap

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
)

// errorKinds maps the errors of package fetch, whose bounds hold, to traps.
var errorKinds = map[fetch.Kind]Kind{
	fetch.Bomb:     DecompressionBomb,
	fetch.Slow:     SlowDrip,
	fetch.Timeout:  Silence,
	fetch.Header:   HeaderFlood,
	fetch.Encoding: FalseEncoding,
	fetch.Private:  PrivateAddress,
	fetch.TLS:      Untrusted,
}

// OfError returns the kind of trap that a failed request points to, or "".
func OfError(kind fetch.Kind) Kind { return errorKinds[kind] }

// OfAnswer lists what is wrong with an answer that is used all the same, as far as the
// bounds allow.
func OfAnswer(page *extract.Page, res *fetch.Response) (kinds []Kind) {
	if res.Truncated {
		kinds = append(kinds, EndlessBody)
	}
	if page.Skipped > 0 {
		kinds = append(kinds, LinkFlood)
	}
	if page.Malformed {
		kinds = append(kinds, BadCharset)
	}
	if hasFalseType(res) {
		kinds = append(kinds, WrongContentType)
	}
	if isDeeplyNested(res.Body) {
		kinds = append(kinds, DeepNesting)
	}
	return kinds
}

// hasFalseType reports whether a body is plainly not what its header says: a picture,
// an archive or other bytes under the name of text, or a page under that of a
// picture. Text of one kind under the name of another is everyday.
func hasFalseType(res *fetch.Response) bool {
	said := res.Header.Get("Content-Type")
	if said == "" || len(res.Body) == 0 {
		return false
	}
	is := http.DetectContentType(res.Body[:min(len(res.Body), 512)])
	if (strings.HasPrefix(said, "text/html") || strings.HasPrefix(said, "text/plain")) && strings.HasPrefix(is, "text/") { // as nearly always
		return false
	}
	switch kind := extract.Type(said); kind {
	case "html", "text", "xml", "json":
		return !strings.HasPrefix(is, "text/") && is != "application/json"
	case "image", "audio", "video", "pdf":
		return strings.HasPrefix(is, "text/html")
	}
	return false
}

// maxNesting is a depth of nested elements that no page written by hand has. The robot follows nesting by counters, without a tree, so that
// it costs nothing but the page's bytes.
const maxNesting = 1000

// isDeeplyNested reports whether maxNesting elements are open at one place, by start tags
// without their end tags. Elements that need no end tag do not count.
func isDeeplyNested(body []byte) bool {
	if bytes.Count(body, tagStart) < maxNesting {
		return false
	}
	depth := 0
	for {
		i := bytes.IndexByte(body, '<')
		if i < 0 || i+1 >= len(body) {
			return false
		}
		body = body[i+1:]
		switch c := body[0]; {
		case c == '/':
			depth = max(0, depth-1)
		case (c|0x20 >= 'a' && c|0x20 <= 'z') && !withoutEndTag[string(bytes.ToLower(tagName(body)))] && !isSelfClosing(body):
			if depth++; depth >= maxNesting {
				return true
			}
		}
	}
}

var tagStart = []byte("<")

// tagName returns the name of the tag that begins b.
func tagName(b []byte) []byte {
	b = b[:min(len(b), 12)]
	if i := bytes.IndexAny(b, " \t\n\r\f/>"); i >= 0 {
		return b[:i]
	}
	return b
}

// isSelfClosing reports whether the tag that begins b ends itself.
func isSelfClosing(b []byte) bool {
	i := bytes.IndexByte(b, '>')
	return i > 0 && b[i-1] == '/'
}

// withoutEndTag are the elements that have no end tag, or whose end tag many leave
// out.
var withoutEndTag = map[string]bool{
	"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true, "link": true, "meta": true,
	"param": true, "source": true, "track": true, "wbr": true,
	"p": true, "li": true, "dt": true, "dd": true, "tr": true, "td": true, "th": true, "option": true, "tbody": true, "thead": true, "path": true,
}
