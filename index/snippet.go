package index

import (
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/freshet/freshet/index/analysis"
)

// Snippet is an extract of a text with the words that match marked: runs of
// text, alternately plain and marked, beginning plain.
type Snippet []string

// Snippet bounds: length of an extract in bytes, and how much of a document is
// looked through for the best place.
const (
	snippetLength = 240
	snippetSearch = 64 << 10
)

// HTML returns the snippet escaped, with the marked words in <mark>.
func (s Snippet) HTML() template.HTML {
	var b strings.Builder
	for i, run := range s {
		if i%2 == 1 {
			b.WriteString("<mark>" + template.HTMLEscapeString(run) + "</mark>")
		} else {
			b.WriteString(template.HTMLEscapeString(run))
		}
	}
	return template.HTML(b.String())
}

// String returns the snippet with the marked words in **.
func (s Snippet) String() string {
	var b strings.Builder
	for i, run := range s {
		if i%2 == 1 {
			b.WriteString("**" + run + "**")
		} else {
			b.WriteString(run)
		}
	}
	return b.String()
}

// Marker finds the words of a query in texts. It is not safe for concurrent use.
type Marker struct {
	exact  map[string]int // folded word or stem -> number of the query's word
	prefix []string
	first  map[rune]bool // letters that they begin with
	langs  []string

	known     map[string]int // matches of words as they are written, in knownLang
	knownLang string
}

// NewMarker returns a marker for the texts of a query (query.Words); words
// with prefix true may go on. Every word is stemmed by each of langs, since
// the language of a query is not known.
func NewMarker(texts []string, prefixes []string, langs []string) *Marker {
	m := &Marker{exact: map[string]int{}, first: map[rune]bool{}, langs: langs}
	n := 0
	for _, lang := range append([]string{""}, langs...) {
		a := analysis.For(lang)
		for _, text := range texts {
			for _, t := range a.Tokens(nil, text) {
				for _, w := range []string{t.Word, t.Stem} {
					if _, ok := m.exact[w]; !ok && w != "" {
						m.exact[w] = n
						m.noteFirst(w)
						n++
					}
				}
			}
		}
	}
	for _, p := range prefixes {
		for _, t := range (analysis.Analyzer{}).Tokens(nil, p) {
			m.prefix = append(m.prefix, t.Word)
			m.noteFirst(t.Word)
		}
	}
	return m
}

func (m *Marker) noteFirst(word string) {
	r, _ := utf8.DecodeRuneInString(word)
	m.first[r] = true
}

// matchToken returns the number of the query's word that t is, or -1.
func (m *Marker) matchToken(t analysis.Token) int {
	if n, ok := m.exact[t.Word]; ok {
		return n
	}
	if t.Stem != "" {
		if n, ok := m.exact[t.Stem]; ok {
			return n
		}
	}
	for i, p := range m.prefix {
		if strings.HasPrefix(t.Word, p) {
			return len(m.exact) + i
		}
	}
	return -1
}

// Snippet returns the extract of text with the most different words of the
// query, then the most words, then the earliest; without any, the beginning.
func (m *Marker) Snippet(text, lang string) Snippet {
	hits := m.queryHits(headBytes(text, snippetSearch), lang)
	start := bestStart(hits)
	return cutSnippet(text, start, hits)
}

type hit struct{ word, start, end int }

// queryHits returns the words of the query in text. A word that begins with another
// letter than all of the query is passed over, and others are folded and stemmed
// once: stemming every word of a page took ten times as long as finding the page.
func (m *Marker) queryHits(text, lang string) []hit {
	if m.known == nil || m.knownLang != lang {
		m.known, m.knownLang = map[string]int{}, lang
	}
	var out []hit
	a := analysis.For(lang)
	for i := 0; i < len(text); {
		end, _ := analysis.ScanWord(text, i)
		if end == i { // not a word
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
			continue
		}
		if word := text[i:end]; len(word) <= analysis.MaxWord && m.mayBegin(word) {
			n, ok := m.known[word]
			if !ok {
				n = -1
				for _, t := range a.Tokens(nil, word) {
					n = m.matchToken(t)
				}
				m.known[word] = n
			}
			if n >= 0 {
				out = append(out, hit{n, i, end})
			}
		}
		i = end
	}
	return out
}

// mayBegin reports whether a word may match by its first letter: no stemmer
// changes it. Letters that folding may change may be any.
func (m *Marker) mayBegin(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	isPlain := r < utf8.RuneSelf || r >= 0x400 && r < 0x530 && !strings.ContainsRune("ёЁиИ", r) // ASCII, Cyrillic; й may be и with a mark
	return !isPlain || m.first[unicode.ToLower(r)]
}

// bestStart slides a window over the hits and returns where the best begins.
func bestStart(hits []hit) int {
	best, bestScore := 0, 0
	count := map[int]int{}
	from := 0
	for to, h := range hits {
		count[h.word]++
		for hits[from].start < h.end-snippetLength*3/4 {
			if count[hits[from].word]--; count[hits[from].word] == 0 {
				delete(count, hits[from].word)
			}
			from++
		}
		if score := len(count)*1000 + to - from; score > bestScore {
			best, bestScore = hits[from].start, score
		}
	}
	return best
}

// cutSnippet takes snippetLength bytes of text from a little before start, at word
// ends, and marks the hits inside.
func cutSnippet(text string, start int, hits []hit) Snippet {
	from := max(0, start-snippetLength/4)
	if from > 0 {
		if i := strings.IndexByte(text[from:start], ' '); i >= 0 {
			from += i + 1
		} else {
			from = start
		}
	}
	to := min(len(text), from+snippetLength)
	if to < len(text) {
		if i := strings.LastIndexByte(text[from:to], ' '); i > snippetLength/2 {
			to = from + i
		}
		for to > from && !utf8.RuneStart(text[to]) {
			to--
		}
	}
	var out Snippet
	last := from
	plain := func(s string) string { return strings.Join(strings.Fields("x"+s+"x"), " ") }
	run := func(s string) string { s = plain(s); return s[1 : len(s)-1] }
	for _, h := range hits {
		if h.start < last || h.end > to {
			continue
		}
		out = append(out, run(text[last:h.start]), text[h.start:h.end])
		last = h.end
	}
	out = append(out, run(text[last:to]))
	if from > 0 {
		out[0] = "… " + out[0]
	}
	if to < len(text) {
		out[len(out)-1] += " …"
	}
	return out
}

func headBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
