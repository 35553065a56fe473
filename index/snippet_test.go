package index

import (
	"testing"

	"github.com/freshet/freshet/index/analysis"
)

// Every word that a marker of all words would mark is marked, although words
// with other first letters are passed over.
func TestHitsAreAllWords(t *testing.T) {
	t.Parallel()
	tests := []struct{ lang, query, text string }{
		{"en", "running lie", "Run, runs and runner: lying dogs lie. Rust ran RUN run"},
		{"lt", "žąsies", "Didelės žąsys, zasis, Žąsį prie Zarasų; z"},
		{"ru", "ёлка йод лисы", "Ёлки, елка, ЕЛКОЙ; и\u0306од йод Йода; лис лисы Лисам лес"},
		{"de", "Straße öl", "strasse STRASSE Straßen Öl oel öle ol Ol"},
		{"", "東京 é", "東 京 東京 tower É e e\u0301"},
		{"fr", "l’été", "L'été l’été d'été ete"},
	}
	for _, tt := range tests {
		m := NewMarker([]string{tt.query}, []string{"ta"}, []string{"en", "ru", "lt", "de", "fr"})
		var want []hit
		for _, tok := range analysis.For(tt.lang).Tokens(nil, tt.text) {
			if n := m.matchToken(tok); n >= 0 {
				want = append(want, hit{n, tok.Start, tok.End})
			}
		}
		got := m.queryHits(tt.text, tt.lang)
		if len(got) != len(want) || len(got) == 0 {
			t.Fatalf("%s: %q in %q: hits %v, want %v", tt.lang, tt.query, tt.text, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: hit %d is %v, want %v", tt.lang, i, got[i], want[i])
			}
		}
	}
}
