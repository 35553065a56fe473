package extract

import (
	"net/http"
	"strings"

	"github.com/freshet/freshet/weburl"
)

// maxHeaderLinks bounds the links of an answer's header.
const maxHeaderLinks = 1000

// Header reads the links of the headers Link (RFC 8288) and Refresh, and
// X-Robots-Tag.
func (p *Page) Header(h http.Header, base weburl.URL, token string) {
	for _, v := range h.Values("X-Robots-Tag") {
		p.Robots.Header(v, token)
	}
	if to, ok := refreshURL(h.Get("Refresh")); ok {
		if u, err := base.Resolve(to); err == nil {
			p.Links = append(p.Links, Link{URL: u, Kind: Refresh})
		}
	}
	n := 0
	for _, v := range h.Values("Link") {
		for v != "" && n < maxHeaderLinks {
			var l headerLink
			l, v = cutLink(v)
			p.headerLink(l, base)
			n++
		}
	}
}

// headerLink is one link of a header.
type headerLink struct{ target, rel, anchor string }

func (p *Page) headerLink(l headerLink, base weburl.URL) {
	if l.target == "" {
		return
	}
	if l.anchor != "" { // of another page, or of a part of this one
		if a, err := base.Resolve(l.anchor); err != nil || a != base {
			return
		}
	}
	u, err := base.Resolve(l.target)
	if err != nil {
		return
	}
	switch kind, ok := linkRelation([]byte(l.rel)); {
	case !ok:
	case kind == Canonical:
		p.Canonical = u
		fallthrough
	default:
		p.Links = append(p.Links, Link{URL: u, Kind: kind})
	}
}

// linkRelation says what kind of link a rel value makes, if it is one to follow.
func linkRelation(rel []byte) (Kind, bool) {
	switch {
	case relHas(rel, "canonical"):
		return Canonical, true
	case relHas(rel, "stylesheet"): // an alternate one is no page
		return 0, false
	case relHas(rel, "alternate", "next", "prev", "previous"):
		return Alternate, true
	}
	return 0, false
}

// cutLink reads one link-value ("<target>; name=value; ...") from the begin of
// v. Of a parameter that comes twice the first counts (RFC 8288, section 3.3).
func cutLink(v string) (l headerLink, rest string) {
	v = strings.TrimLeft(v, " \t,")
	if !strings.HasPrefix(v, "<") {
		_, rest = headerValue(v, ",")
		return l, rest
	}
	target, v, ok := strings.Cut(v[1:], ">")
	if !ok {
		return l, ""
	}
	l.target = strings.TrimSpace(target)
	seen := map[string]bool{}
	for {
		v = strings.TrimLeft(v, " \t")
		if !strings.HasPrefix(v, ";") {
			_, rest = headerValue(v, ",")
			return l, rest
		}
		v = strings.TrimLeft(v[1:], " \t;")
		end := strings.IndexAny(v, "=;, \t")
		if end < 0 {
			return l, ""
		}
		name, content := strings.ToLower(v[:end]), ""
		if v = strings.TrimLeft(v[end:], " \t"); strings.HasPrefix(v, "=") {
			content, v = headerValue(strings.TrimLeft(v[1:], " \t"), ";,")
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		switch name {
		case "rel":
			l.rel = content
		case "anchor":
			l.anchor = content
		}
	}
}

// headerValue reads a token or a quoted string, and returns what follows from the next
// of the ends on; a comma that ends it is taken away.
func headerValue(v, ends string) (content, rest string) {
	if strings.HasPrefix(v, `"`) {
		var b strings.Builder
		i := 1
		for ; i < len(v) && v[i] != '"'; i++ {
			if v[i] == '\\' && i+1 < len(v) {
				i++
			}
			b.WriteByte(v[i])
		}
		content, v = b.String(), v[min(i+1, len(v)):]
	}
	end := strings.IndexAny(v, ends)
	if end < 0 {
		end = len(v)
	}
	if content == "" {
		content = strings.TrimSpace(v[:end])
	}
	return content, v[end:]
}
