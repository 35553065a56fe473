package files

import (
	"unicode"
	"unicode/utf8"

	"github.com/freshet/freshet/index/analysis"
)

// eachWord calls f for the words of s: runs of letters and digits, folded. The
// bytes are valid until f returns. ASCII costs no allocation.
func eachWord(s string, buf []byte, f func(word []byte)) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && !isAlphanumeric(c) {
			i++
			continue
		}
		buf = buf[:0]
		ascii := true
		for i < len(s) {
			c := s[i]
			if c < utf8.RuneSelf {
				if !isAlphanumeric(c) {
					break
				}
				if 'A' <= c && c <= 'Z' {
					c += 'a' - 'A'
				}
				buf = append(buf, c)
				i++
				continue
			}
			r, n := utf8.DecodeRuneInString(s[i:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
				if len(buf) == 0 {
					i += n
				}
				break
			}
			ascii = false
			buf = utf8.AppendRune(buf, unicode.ToLower(r))
			i += n
		}
		if len(buf) == 0 {
			continue
		}
		if !ascii {
			buf = append(buf[:0], analysis.Fold(string(buf))...)
		}
		if len(buf) > maxWord {
			buf = buf[:maxWord]
		}
		f(buf)
	}
	return buf
}

// maxWord bounds a word in bytes.
const maxWord = 64

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// wordsOf returns the words of s.
func wordsOf(s string) []string {
	var out []string
	eachWord(s, nil, func(w []byte) { out = append(out, string(w)) })
	return out
}

// stems are the languages whose forms a word of a query also finds.
var stems = []analysis.Analyzer{analysis.For("en"), analysis.For("ru"), analysis.For("lt")}

// swapLayout returns a word typed on the other of the two keyboard layouts,
// English and Russian, or "".
func swapLayout(word string) string {
	out := make([]rune, 0, len(word))
	for _, r := range word {
		s, ok := layout[r]
		if !ok {
			return ""
		}
		out = append(out, s)
	}
	return string(out)
}

var layout = func() map[rune]rune {
	latin, cyrillic := []rune("qwertyuiop[]asdfghjkl;'zxcvbnm,."), []rune("йцукенгшщзхъфывапролджэячсмитьбю")
	m := map[rune]rune{}
	for i := range latin {
		m[latin[i]] = cyrillic[i]
		m[cyrillic[i]] = latin[i]
	}
	return m
}()
