package crawl

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
)

// malice names the traps that a request without answer tells of. Their bounds
// are those of package fetch.
var malice = map[fetch.Kind]string{
	fetch.Bomb:     "decompression bomb",
	fetch.Slow:     "slow drip",
	fetch.Timeout:  "silence",
	fetch.Header:   "header flood",
	fetch.Encoding: "false encoding",
	fetch.Private:  "private address",
	fetch.TLS:      "untrusted certificate",
}

// noAnswer counts a request without an answer, and returns the kind of the error.
func (r *Robot) noAnswer(address string, err error) fetch.Kind {
	kind, why := fetch.Protocol, err
	var fe *fetch.Error
	if errors.As(err, &fe) {
		kind, why = fe.Kind, fe.Err
	}
	r.stats.fail(string(kind), address, why.Error())
	if trap := malice[kind]; trap != "" {
		r.stats.trap(trap, address)
	}
	return kind
}

// oddities lists what is wrong with an answer that was taken all the same, as
// far as the bounds allow.
func oddities(page *extract.Page, res *fetch.Response) (kinds []string) {
	if res.Truncated {
		kinds = append(kinds, "endless body")
	}
	if page.Skipped > 0 {
		kinds = append(kinds, "link flood")
	}
	if page.Malformed {
		kinds = append(kinds, "bad charset")
	}
	if misnamed(res) {
		kinds = append(kinds, "wrong content type")
	}
	if deep(res.Body) {
		kinds = append(kinds, "deep nesting")
	}
	return kinds
}

// misnamed reports whether a body is plainly not what its header says: a picture,
// an archive or other bytes under the name of text, or a page under that of a
// picture. Text of one kind under the name of another is everyday.
func misnamed(res *fetch.Response) bool {
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

// nestingOdd is how many elements stand in each other on a page that nobody
// wrote by hand. The robot follows nesting by counters, without a tree, so that
// it costs nothing but the page's bytes.
const nestingOdd = 1000

// deep reports whether so many elements are open at one place, by start tags
// without their end tags. Elements that need no end tag do not count.
func deep(body []byte) bool {
	if bytes.Count(body, open) < nestingOdd {
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
		case (c|0x20 >= 'a' && c|0x20 <= 'z') && !unclosed[string(bytes.ToLower(name(body)))] && !alone(body):
			if depth++; depth >= nestingOdd {
				return true
			}
		}
	}
}

var open = []byte("<")

// name is the name of the tag that begins b.
func name(b []byte) []byte {
	b = b[:min(len(b), 12)]
	if i := bytes.IndexAny(b, " \t\n\r\f/>"); i >= 0 {
		return b[:i]
	}
	return b
}

// alone reports whether the tag that begins b ends itself.
func alone(b []byte) bool {
	i := bytes.IndexByte(b, '>')
	return i > 0 && b[i-1] == '/'
}

// unclosed are the elements that have no end tag, or whose end tag many leave
// out.
var unclosed = map[string]bool{
	"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true, "link": true, "meta": true,
	"param": true, "source": true, "track": true, "wbr": true,
	"p": true, "li": true, "dt": true, "dd": true, "tr": true, "td": true, "th": true, "option": true, "tbody": true, "thead": true, "path": true,
}
