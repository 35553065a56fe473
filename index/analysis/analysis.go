// Package analysis turns text into the words that are indexed and searched:
// cut at letters and digits, folded to one case without accents, and stemmed
// by language. Both text engines and the snippets use it, so that all of them
// agree on what a word is.
//
// Each word keeps two forms: the folded word itself, which phrases of exact
// words and prefixes need, and its stem, by which "running" finds "runs". Both
// are indexed at the same position. Folding takes the accents off Latin
// letters (a Lithuanian often types "zasys" for "žąsys") and makes ё an е, but
// leaves й alone, which is a letter and not an accented и. Han, kana and Thai,
// which put no spaces between words, are cut into single characters that a
// query then looks for in a row.
package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Token is one word of a text.
type Token struct {
	Word       string // folded
	Stem       string // "" where it is the word itself
	Pos        int    // 1 for the first word
	Start, End int    // byte offsets in the text
	Joined     bool   // a character of a script without spaces, right behind the last token
}

// maxWord bounds a token in bytes: longer runs of letters are no words (base64,
// DNA), and would fill the dictionary.
const maxWord = 64

// Analyzer analyses texts of one language. The zero value folds but does not
// stem. It is safe for concurrent use.
type Analyzer struct {
	stem func(string) string
}

// For returns the analyser of a language given by its ISO 639-1 code ("en",
// "lt-LT"); languages without a stemmer are folded only.
func For(lang string) Analyzer {
	lang, _, _ = strings.Cut(strings.ToLower(lang), "-")
	return Analyzer{stem: stemmers[lang]}
}

// Tokens appends the words of text to dst. Invalid UTF-8 separates words.
func (a Analyzer) Tokens(dst []Token, text string) []Token {
	pos := 0
	for i := 0; i < len(text); {
		start := i
		end, class := scanWord(text, i)
		if end == i { // not a word
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
			continue
		}
		i = end
		if end-start > maxWord {
			pos++
			continue
		}
		pos++
		t := Token{Pos: pos, Start: start, End: end}
		if class == spaceless {
			t.Word = text[start:end]
			t.Joined = len(dst) > 0 && dst[len(dst)-1].End == start
		} else {
			lower := lowerApostrophe(text[start:end])
			t.Word = Fold(lower)
			if a.stem != nil {
				if s := Fold(a.stem(lower)); s != t.Word && s != "" {
					t.Stem = s
				}
			}
		}
		dst = append(dst, t)
	}
	return dst
}

// Stem returns the folded stem of one word, or the folded word.
func (a Analyzer) Stem(word string) string {
	word = lowerApostrophe(word)
	if a.stem == nil {
		return Fold(word)
	}
	return Fold(a.stem(word))
}

// Stems reports whether the language has a stemmer.
func (a Analyzer) Stems() bool { return a.stem != nil }

// MaxWord bounds a word in bytes, see ScanWord.
const MaxWord = maxWord

// ScanWord returns the end of the word of text that begins at i, or i if none
// does, and whether it is one character of a script without spaces. Words longer
// than MaxWord take a position and are not indexed. An indexer that keeps a
// vocabulary cuts texts with it as Tokens does.
func ScanWord(text string, i int) (end int, isSpaceless bool) {
	end, c := scanWord(text, i)
	return end, c == spaceless
}

// Lower returns a word in lower case with its apostrophe made one, as stemmers
// take it; Fold of it is the indexed word.
func Lower(word string) string { return lowerApostrophe(word) }

type class byte

const (
	separator class = iota
	letter
	spaceless
)

// scanWord returns the end of the word that begins at i, or i if none does.
// Apostrophes inside a word belong to it (don't, l'heure); combining marks too.
func scanWord(s string, i int) (int, class) {
	r, n := utf8.DecodeRuneInString(s[i:])
	switch classOf(r, n) {
	case separator:
		return i, separator
	case spaceless:
		return i + n, spaceless
	}
	i += n
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			if asciiWord[c] {
				i++
				continue
			}
			if c == '\'' && i+1 < len(s) && isLetter(s[i+1:]) {
				i++
				continue
			}
			break
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '’' && isLetter(s[i+n:]) {
			i += n
			continue
		}
		if classOf(r, n) != letter && (n < 2 || !unicode.Is(unicode.M, r)) {
			break
		}
		i += n
	}
	return i, letter
}

func isLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

var asciiWord = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return t
}()

func classOf(r rune, n int) class {
	switch {
	case r < utf8.RuneSelf:
		if asciiWord[r] {
			return letter
		}
		return separator
	case r == utf8.RuneError && n == 1:
		return separator
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return spaceless
	case unicode.IsLetter(r), unicode.IsDigit(r):
		return letter
	}
	return separator
}

// lowerApostrophe is strings.ToLower that does not allocate for lower-case ASCII, with
// the apostrophe made one.
func lowerApostrophe(s string) string {
	s = strings.ToLower(s)
	if strings.Contains(s, "’") {
		s = strings.ReplaceAll(s, "’", "'")
	}
	return s
}

// Fold takes the accents off Latin and Greek letters and makes ё an е. The
// word must be lower case. ASCII words come back as they are.
func Fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	bare := false // the last base letter loses its marks
	for _, r := range norm.NFKD.String(s) {
		if unicode.Is(unicode.Mn, r) {
			if bare || r == '\u0308' && strings.HasSuffix(b.String(), "е") { // ё
				continue
			}
			b.WriteRune(r)
			continue
		}
		bare = unicode.In(r, unicode.Latin, unicode.Greek)
		if plain, ok := plainLetters[r]; ok {
			b.WriteString(plain)
			continue
		}
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

// plainLetters are letters that decomposition leaves whole.
var plainLetters = map[rune]string{'ø': "o", 'đ': "d", 'ł': "l", 'ß': "ss", 'æ': "ae", 'œ': "oe", 'ı': "i", 'þ': "th", 'ð': "d", 'ħ': "h", 'ŧ': "t"}
