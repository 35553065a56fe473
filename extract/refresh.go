package extract

import "strings"

// The white space of HTML's algorithms.
const htmlSpace = " \t\n\f\r"

// refreshURL reads the content of a meta refresh as the HTML standard says
// ("shared declarative refresh steps"): "5; url='x'", "5 x", "5,URL=x". It is
// false where the page itself is reloaded.
func refreshURL(content string) (string, bool) {
	s := strings.TrimLeft(content, htmlSpace)
	rest := strings.TrimLeft(s, "0123456789")
	if rest == s && !strings.HasPrefix(s, ".") {
		return "", false // no time, no refresh
	}
	s = strings.TrimLeft(rest, "0123456789.")
	if s == "" || !strings.ContainsRune(";,"+htmlSpace, rune(s[0])) {
		return "", false
	}
	s = strings.TrimLeft(s, htmlSpace)
	if s != "" && (s[0] == ';' || s[0] == ',') {
		s = strings.TrimLeft(s[1:], htmlSpace)
	}
	if len(s) > 3 && strings.EqualFold(s[:3], "url") {
		if after, ok := strings.CutPrefix(strings.TrimLeft(s[3:], htmlSpace), "="); ok {
			s = strings.TrimLeft(after, htmlSpace)
		}
	}
	if s != "" && (s[0] == '\'' || s[0] == '"') {
		s, _, _ = strings.Cut(s[1:], s[:1])
	}
	return s, s != ""
}

// eachSrcset calls f for the addresses of a srcset attribute, as the HTML standard
// says: an address ends at white space, and commas may be in it; those at its
// end are not its own. A descriptor ends at a comma outside of parentheses.
func eachSrcset(s string, f func(address string)) {
	for {
		s = strings.TrimLeft(s, htmlSpace+",")
		if s == "" {
			return
		}
		end := strings.IndexAny(s, htmlSpace)
		if end < 0 {
			end = len(s)
		}
		address := strings.TrimRight(s[:end], ",")
		f(address)
		bare := len(address) < end // a comma ended it: no descriptor
		if s = s[end:]; !bare {
			s = s[descriptorsLength(s):]
		}
	}
}

// descriptorsLength is the length of what follows an address, up to the comma.
func descriptorsLength(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(s)
}
