package robots

import (
	"slices"
	"strings"
)

const upperHex = "0123456789ABCDEF"

// escapePattern percent-encodes bytes beyond ASCII and makes hexadecimal digits upper
// case, as Google's parser does with patterns.
func escapePattern(s string) string {
	if isPlain(s) {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isEscape(s[i:]):
			b = append(b, strings.ToUpper(s[i:i+3])...)
			i += 2
		case c >= 0x80:
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// plainForm is the form in which RFC 9309 (section 2.2.2) compares: what need
// not be escaped is not, all the rest is in upper-case hexadecimal digits. In a
// query that goes for the characters, too, that separate parts of a URL, but
// none there (RFC 3986, section 3.4): the RFC's baz=https%3A%2F%2Ffoo.bar is
// baz=https://foo.bar. The characters of special, which are meant literally, are
// escaped (section 2.2.3).
func plainForm(s, special string) string {
	s = escapePattern(s)
	b := make([]byte, 0, len(s))
	query := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isEscape(s[i:]) {
			d := upperHexValue(s[i+1])<<4 | upperHexValue(s[i+2])
			if !isUnreserved(d) && !(query && strings.IndexByte(":/?@", d) >= 0) {
				b = append(b, s[i:i+3]...)
				i += 2
				continue
			}
			c = d
			i += 2
		} else if strings.IndexByte(special, c) >= 0 {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
			continue
		} else if c == '?' {
			query = true
		}
		b = append(b, c)
	}
	return string(b)
}

// plainRules returns the rules with patterns in plain form, and whether any is
// another then.
func plainRules(list []rule) (plain []rule, other bool) {
	for i, r := range list {
		p, anchored := strings.CutSuffix(r.pattern, "$")
		if p = plainForm(p, "$"); anchored {
			p += "$"
		}
		if p == r.pattern {
			continue
		}
		if !other {
			plain, other = slices.Clone(list), true
		}
		plain[i].pattern = p
	}
	return plain, other
}

// isPlain reports whether nothing in s is escaped, needs to be, or is special.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || c == '%' || c == '*' || c == '$' {
			return false
		}
	}
	return true
}

func isEscape(s string) bool {
	return len(s) > 2 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// upperHexValue is the value of an upper-case hexadecimal digit.
func upperHexValue(c byte) byte {
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}

// isUnreserved characters mean the same escaped or not (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
