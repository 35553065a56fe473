package embedded

import (
	banalysis "github.com/blevesearch/bleve/v2/analysis"

	"github.com/freshet/freshet/index/analysis"
)

// analyzer gives Bleve the words of index/analysis: the folded word, and its
// stem at the same position.
type analyzer struct{ analysis.Analyzer }

// Analyze implements Bleve's analyser.
func (a analyzer) Analyze(text []byte) banalysis.TokenStream {
	toks := a.Tokens(nil, string(text))
	backing := make([]banalysis.Token, 0, len(toks)*2)
	out := make(banalysis.TokenStream, 0, cap(backing))
	add := func(t *analysis.Token, term string) {
		backing = append(backing, banalysis.Token{Term: []byte(term), Start: t.Start, End: t.End, Position: t.Pos})
		out = append(out, &backing[len(backing)-1])
	}
	for i := range toks {
		t := &toks[i]
		add(t, t.Word)
		if t.Stem != "" {
			add(t, t.Stem)
		}
	}
	return out
}

// whole makes one token of a keyword.
type whole struct{}

// Analyze implements Bleve's analyser.
func (whole) Analyze(text []byte) banalysis.TokenStream {
	return banalysis.TokenStream{{Term: text, Start: 0, End: len(text), Position: 1}}
}
