package postgres

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/analysis"
)

// Bounds of a tsvector: places of a lexeme, and the last place.
const (
	maxPlaces = 255
	lastPlace = 16383
	// maxVector bounds the text of a vector; the server's own bound is 1 MB.
	maxVector = 700 << 10
)

// Weights of the parts of a document.
const (
	titlePart = 'A'
	namePart  = 'B'
	bodyPart  = 'D'
)

// gap lies between the parts, so that no phrase reaches across.
const gap = 8

// places are where a lexeme stands: place and part.
type places struct {
	lexeme string
	at     []place
}

type place struct {
	pos  int
	part byte
}

// documentVector writes a document's words as the text of a tsvector.
func (e *Engine) documentVector(d *index.Document) string {
	lang := d.Lang
	if lang == "" { // too short to tell: the first language is the likeliest
		lang = e.config.Languages[0]
	}
	words := map[string][]place{}
	last := 0
	part := func(text string, a analysis.Analyzer, part byte) {
		base := last
		for _, t := range a.Tokens(nil, text) {
			p := place{min(base+t.Pos, lastPlace), part}
			addPlaceOf(words, t.Word, p)
			if t.Stem != "" {
				addPlaceOf(words, t.Stem, p)
			}
			last = base + t.Pos
		}
		last += gap
	}
	a := analysis.For(lang)
	part(databaseText(d.Title), a, titlePart)
	part(index.NameOf(d.ID), analysis.Analyzer{}, namePart)
	part(databaseText(d.Body), a, bodyPart)
	sorted := make([]places, 0, len(words))
	for w, at := range words {
		sorted = append(sorted, places{w, at})
	}
	// What does not fit is what comes last in the text.
	slices.SortFunc(sorted, func(a, b places) int {
		return cmp.Or(cmp.Compare(a.at[0].pos, b.at[0].pos), cmp.Compare(a.lexeme, b.lexeme))
	})
	var b strings.Builder
	for _, h := range index.Domains(databaseText(d.Host)) {
		quoteLexeme(&b, filterLexeme("host", h))
		b.WriteByte(' ')
	}
	for _, f := range [][2]string{{"type", d.Type}, {"lang", d.Lang}, {"kind", d.Kind}} {
		if f[1] != "" {
			quoteLexeme(&b, filterLexeme(f[0], databaseText(f[1])))
			b.WriteByte(' ')
		}
	}
	for _, w := range sorted {
		if b.Len() > maxVector {
			break
		}
		w.writeLexeme(&b)
	}
	return b.String()
}

func addPlaceOf(words map[string][]place, lexeme string, p place) {
	at := words[lexeme]
	if len(at) < maxPlaces && (len(at) == 0 || at[len(at)-1] != p) {
		words[lexeme] = append(at, p)
	}
}

func (w *places) writeLexeme(b *strings.Builder) {
	quoteLexeme(b, w.lexeme)
	for i, p := range w.at {
		if i == 0 {
			b.WriteByte(':')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(p.pos))
		if p.part != bodyPart {
			b.WriteByte(p.part)
		}
	}
	b.WriteByte(' ')
}

// filterLexeme is the lexeme of a keyword's value. No word, and no prefix of
// one, begins with an equals sign.
func filterLexeme(field, value string) string { return "=" + field + "=" + value }

// quoteLexeme writes a lexeme as tsvector and tsquery read it.
func quoteLexeme(b *strings.Builder, lexeme string) {
	b.WriteByte('\'')
	for i := range len(lexeme) {
		if c := lexeme[i]; c == '\'' || c == '\\' {
			b.WriteByte(c)
		}
		b.WriteByte(lexeme[i])
	}
	b.WriteByte('\'')
}
