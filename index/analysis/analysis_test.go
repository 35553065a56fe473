package analysis

import (
	"strings"
	"testing"
)

func words(a Analyzer, text string) string {
	var out []string
	for _, t := range a.Tokens(nil, text) {
		w := t.Word
		if t.Stem != "" {
			w += "/" + t.Stem
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	tests := []struct{ lang, text, want string }{
		{"", "Hello, World! 42", "hello world 42"},
		{"en", "The runner's running shoes", "the runner's/runner running/run shoes/shoe"},
		{"en", "don’t AT&T C++", "don't at t c"},
		{"ru", "Быстрые лисы и Ёлки", "быстрые/быстр лисы/лис и елки/елк"},
		{"", "йод \u0438\u0306од", "йод йод"}, // й is a letter, whichever way it is encoded
		{"fr", "L'été à Orléans", "l'ete/l'et a orleans/orlean"},
		{"", "東京 tower", "東 京 tower"},
		{"", "bad \xff\xfe bytes", "bad bytes"},
		{"", strings.Repeat("x", 65) + " y", "y"},
		{"", "naïve café Łódź Straße", "naive cafe lodz strasse"},
		{"", "e\u0301te\u0301", "ete"},
	}
	for _, tt := range tests {
		if got := words(For(tt.lang), tt.text); got != tt.want {
			t.Errorf("%s: %q -> %q, want %q", tt.lang, tt.text, got, tt.want)
		}
	}
}

// Forms of one Lithuanian word share a stem, with and without accents.
func TestLithuanianForms(t *testing.T) {
	t.Parallel()
	lt := For("lt")
	for _, forms := range []string{
		"namas namo namui namą namu name namai namų namams namus namais namuose",
		"kelias kelio keliui kelią keliu kelyje keliai kelių keliams kelius keliais keliuose",
		"medis medžio medžiui medį medžiu medyje medžiai medžių medžiams medžius medžiais medziais",
		"katė katės katei katę kate katėje kačių katėms katėmis katėse kates",
		"knyga knygos knygai knygą knygoje knygų knygoms knygomis knygose",
		"biblioteka bibliotekos bibliotekoje bibliotekų bibliotekose",
		"žąsis žąsies žąsį žąsyse zasis zasies",
		"gražus gražaus gražų gražiam gražiame",
	} {
		fields := strings.Fields(forms)
		want := lt.Stem(fields[0])
		for _, f := range fields[1:] {
			if got := lt.Stem(f); got != want {
				t.Errorf("%s -> %q, %s -> %q", fields[0], want, f, got)
			}
		}
	}
	for _, pair := range []string{"namas knyga", "kelias medis", "katė kepurė"} {
		a, b, _ := strings.Cut(pair, " ")
		if lt.Stem(a) == lt.Stem(b) {
			t.Errorf("%s and %s share the stem %q", a, b, lt.Stem(a))
		}
	}
}

func TestPositionsAndOffsets(t *testing.T) {
	t.Parallel()
	text := "Žąsis, žąsies 東京!"
	toks := For("lt").Tokens(nil, text)
	if len(toks) != 4 {
		t.Fatalf("%d tokens: %v", len(toks), toks)
	}
	for i, tok := range toks {
		if tok.Pos != i+1 {
			t.Errorf("token %d at position %d", i, tok.Pos)
		}
	}
	if got := text[toks[1].Start:toks[1].End]; got != "žąsies" {
		t.Errorf("second token is %q", got)
	}
	if toks[2].Joined || !toks[3].Joined {
		t.Error("only the second character of a pair is joined to the one before")
	}
}

// Whatever the bytes are, tokens lie in order inside the text and are not empty.
func FuzzTokens(f *testing.F) {
	f.Add("en", "plain words")
	f.Add("lt", "žąsys \xff’’' ")
	f.Add("ru", "ё\u0308\u0308 й")
	f.Add("tr", "İstanbul ı")
	f.Fuzz(func(t *testing.T, lang, text string) {
		last := 0
		for _, tok := range For(lang).Tokens(nil, text) {
			if tok.Start < last || tok.End <= tok.Start || tok.End > len(text) || tok.Word == "" {
				t.Fatalf("token %+v after offset %d of %q", tok, last, text)
			}
			last = tok.End
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	text := strings.Repeat("The quick brown foxes were running over lazy dogs. ", 100)
	a := For("en")
	var dst []Token
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for range b.N {
		dst = a.Tokens(dst[:0], text)
	}
}
