package extract

import (
	"bytes"
	"strings"
)

// declaredCharset finds the encoding that a page declares of itself, in a meta element or
// an XML declaration, by the HTML standard's prescan, which knows tags and comments
// only. Browsers prescan 1,024 bytes and look at later meta elements when they come
// to them; all is prescanned here. "" is none.
func declaredCharset(b []byte) string {
	p := prescan{b: b}
	for p.at < len(b) {
		i := bytes.IndexByte(b[p.at:], '<')
		if i < 0 {
			break
		}
		p.at += i
		rest := b[p.at:]
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			end := bytes.Index(rest[2:], []byte("-->")) // the dashes may be those of the begin
			if end < 0 {
				return ""
			}
			p.at += 2 + end + 3
		case len(rest) > 5 && strings.EqualFold(string(rest[:5]), "<meta") && (isSpace(rest[5]) || rest[5] == '/'):
			p.at += 6
			if label := p.prescanMeta(); label != "" {
				return label
			}
		case len(rest) > 1 && isASCIILetter(rest[1]), len(rest) > 2 && rest[1] == '/' && isASCIILetter(rest[2]):
			for p.at < len(b) && !isSpace(b[p.at]) && b[p.at] != '>' {
				p.at++
			}
			for more := true; more; {
				_, _, more = p.prescanAttribute()
			}
		case len(rest) > 1 && strings.IndexByte("!/?", rest[1]) >= 0:
			end := bytes.IndexByte(rest, '>')
			if end < 0 {
				return ""
			}
			p.at += end
		default:
			p.at++
		}
	}
	if m := xmlEncoding.FindSubmatch(b[:min(len(b), 1024)]); m != nil {
		return string(m[1])
	}
	return ""
}

type prescan struct {
	b  []byte
	at int
}

// prescanMeta reads the attributes of a meta element. Of those that come twice the first
// counts; content does only beside http-equiv=content-type. A tag that does not end
// declares nothing.
func (p *prescan) prescanMeta() string {
	var seen []string
	label, fromContent, pragma := "", false, false
	for {
		name, value, more := p.prescanAttribute()
		if !more {
			break
		}
		again := false
		for _, s := range seen {
			again = again || s == name
		}
		if again || len(seen) > maxAttrs {
			continue
		}
		seen = append(seen, name)
		switch name {
		case "http-equiv":
			pragma = value == "content-type"
		case "content":
			if l := contentCharset(value); l != "" && label == "" {
				label, fromContent = l, true
			}
		case "charset":
			label, fromContent = strings.TrimSpace(value), false
		}
	}
	if p.at >= len(p.b) || fromContent && !pragma {
		return ""
	}
	return label
}

// prescanAttribute reads an attribute, in lower case; more is false at the end of the tag
// or of the document.
func (p *prescan) prescanAttribute() (name, value string, more bool) {
	b := p.b
	for p.at < len(b) && (isSpace(b[p.at]) || b[p.at] == '/') {
		p.at++
	}
	start := p.at
	for p.at < len(b) && b[p.at] != '>' && b[p.at] != '/' && !isSpace(b[p.at]) && (b[p.at] != '=' || p.at == start) {
		p.at++
	}
	if p.at == start || p.at >= len(b) {
		return "", "", false
	}
	name = strings.ToLower(string(b[start:p.at]))
	for p.at < len(b) && isSpace(b[p.at]) {
		p.at++
	}
	if p.at >= len(b) || b[p.at] != '=' {
		return name, "", p.at < len(b)
	}
	for p.at++; p.at < len(b) && isSpace(b[p.at]); p.at++ {
	}
	if p.at >= len(b) {
		return "", "", false
	}
	start = p.at
	if quote := b[p.at]; quote == '"' || quote == '\'' {
		start++
		end := bytes.IndexByte(b[start:], quote)
		if end < 0 {
			p.at = len(b)
			return "", "", false
		}
		p.at = start + end + 1
		return name, strings.ToLower(string(b[start : start+end])), true
	}
	for p.at < len(b) && b[p.at] != '>' && !isSpace(b[p.at]) {
		p.at++
	}
	return name, strings.ToLower(string(b[start:p.at])), p.at < len(b)
}

// contentCharset extracts the encoding from "text/html; charset=x".
func contentCharset(s string) string {
	for {
		_, rest, ok := strings.Cut(s, "charset")
		if !ok {
			return ""
		}
		s = rest
		after, ok := strings.CutPrefix(strings.TrimLeft(rest, htmlSpace), "=")
		if !ok {
			continue
		}
		after = strings.TrimLeft(after, htmlSpace)
		if after != "" && (after[0] == '"' || after[0] == '\'') {
			label, _, ok := strings.Cut(after[1:], after[:1])
			if !ok {
				return ""
			}
			return label
		}
		if end := strings.IndexAny(after, htmlSpace+";"); end >= 0 {
			after = after[:end]
		}
		return after
	}
}
