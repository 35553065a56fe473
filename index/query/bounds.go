package query

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a query that strangers may ask. They hold for every engine: each
// clause, word and prefix costs a reader of the index, memory and time.
const (
	MaxBytes    = 4096 // of the text
	MaxNesting  = 20   // parentheses inside parentheses
	MaxClauses  = 64   // words, phrases, filters and ranges
	MaxWords    = 96   // of all terms and phrases together; foo-bar is two words
	MaxPrefixes = 8    // words with a star
	MinPrefix   = 2    // letters before a star
)

// BoundsError says which bound a query exceeds, for the person who typed it.
type BoundsError struct{ problem string }

// Error implements error.
func (e *BoundsError) Error() string { return e.problem }

func tooMuch(format string, args ...any) error {
	return &BoundsError{fmt.Sprintf(format, args...)}
}

// ParseBounded is Parse for queries of strangers: it returns a *BoundsError for
// a query that exceeds a bound, before it builds a tree of an overlong text.
func ParseBounded(s string, now time.Time) (Node, error) {
	if len(s) > MaxBytes {
		return nil, tooMuch("the query has %d bytes: at most %d are allowed", len(s), MaxBytes)
	}
	depth, deepest := 0, 0
	for _, t := range lexQuery(s) {
		switch t.kind {
		case opening:
			depth++
			deepest = max(deepest, depth)
		case closing:
			depth = max(0, depth-1)
		}
	}
	if deepest > MaxNesting {
		return nil, tooMuch("parentheses are nested %d deep: at most %d are allowed", deepest, MaxNesting)
	}
	n := Parse(s, now)
	return n, CheckBounds(n)
}

// CheckBounds returns a *BoundsError if n exceeds a bound, else nil.
func CheckBounds(n Node) error {
	clauses, words, prefixes := 0, 0, 0
	var short string
	Walk(n, func(n Node, _ bool) {
		switch n := n.(type) {
		case Term:
			clauses++
			count, letters := countWords(n.Text)
			words += count
			if n.Prefix {
				prefixes++
				if count == 1 && letters < MinPrefix && short == "" {
					short = n.Text
				}
			}
		case Phrase:
			clauses++
			count, _ := countWords(n.Text)
			words += count
		case Filter, Range:
			clauses++
		}
	})
	switch {
	case clauses > MaxClauses:
		return tooMuch("the query has %d words and conditions: at most %d are allowed", clauses, MaxClauses)
	case words > MaxWords:
		return tooMuch("the query has %d words: at most %d are allowed", words, MaxWords)
	case prefixes > MaxPrefixes:
		return tooMuch("%d words end with a star: at most %d may", prefixes, MaxPrefixes)
	case short != "":
		return tooMuch("%s* stands for too many words: write at least %d letters before the star", short, MinPrefix)
	}
	return nil
}

// countWords counts the words of a text as engines cut it, at most too many:
// runs of letters and digits, and each character of scripts without spaces.
// letters is the number of letters of the last word; a character of a script
// without spaces counts as MinPrefix, since it is a word of its own.
func countWords(s string) (words, letters int) {
	inside := false
	for _, r := range s {
		switch {
		case r != utf8.RuneError && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			words, letters, inside = words+1, MinPrefix, false
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if !inside {
				words, letters, inside = words+1, 0, true
			}
			letters++
		case unicode.Is(unicode.M, r):
		default:
			inside = false
		}
	}
	return words, letters
}
