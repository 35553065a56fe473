package extract

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// commonWords of the languages that are guessed: frequent, short, and not
// shared between them.
var commonWords = map[string]string{
	"en": "the and of to in is that for it with as was on are this be by at from or an have not",
	"de": "der die und das ist nicht mit den von zu auf für ein eine dem im sich auch als wird",
	"fr": "le la les des et est une du dans pour que qui sur pas par plus avec ce sont aux",
	"es": "el los las y que del en por con una para es como más su al lo pero sus este",
	"lt": "ir kad yra su iš bei tai buvo kaip bet per apie taip savo už dėl nuo po šio kuris nėra jau tik ar jis",
	"pl": "i w na z do się nie jest że to jak od po za przez ale tym oraz są był",
	"ru": "и в не на что с по как это из за от для его но так все быть был она они",
	"uk": "і в не на що з та як це до за від для його але ще вони був є у",
}

var languageOf = func() map[string][]string {
	out := map[string][]string{}
	for lang, words := range commonWords {
		for _, w := range strings.Fields(words) {
			out[w] = append(out[w], lang)
		}
	}
	return out
}()

// guessBytes is how much of a text the guess looks at.
const guessBytes = 4000

// Language returns the ISO 639-1 code of a text: what is declared, unless the
// script of the letters belies it, else a guess by frequent words and letters,
// else "".
func Language(declared, text string) string { return detectLanguage(declared, "", text) }

func detectLanguage(declared, title, text string) string {
	declared, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(declared)), "-")
	declared, _, _ = strings.Cut(declared, "_")
	if len(text) > guessBytes {
		text = text[:guessBytes]
	}
	latin, cyrillic := countScripts(text)
	if len(declared) == 2 && !(cyrillicLanguages[declared] && latin > 4*cyrillic+40) && !(latinLanguages[declared] && cyrillic > 4*latin+40) {
		return declared
	}
	return guessLanguage(title+" "+text, cyrillic > latin)
}

// countScripts counts about how many letters are of the Latin and of the Cyrillic
// script.
func countScripts(text string) (latin, cyrillic int) {
	for i := 0; i < len(text); {
		if i+8 <= len(text) { // nearly all text of most pages
			if x := loadUint64(text[i : i+8]); x&highs == 0 {
				latin += bits.OnesCount64(x & ('@' * ones))
				i += 8
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case r >= '@' && r < 0x250:
			latin++
		case r >= 0x250 && unicode.Is(unicode.Cyrillic, r):
			cyrillic++
		}
	}
	return latin, cyrillic
}

var (
	cyrillicLanguages = map[string]bool{"ru": true, "uk": true, "bg": true, "be": true, "mk": true}
	latinLanguages    = map[string]bool{"en": true, "lt": true, "lv": true, "et": true, "de": true, "fr": true, "es": true, "pl": true, "it": true}
)

func guessLanguage(text string, cyrillic bool) string {
	score := map[string]int{}
	words := 0
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		words++
		for _, l := range languageOf[w] {
			score[l]++
		}
	}
	for _, r := range text {
		switch r {
		case 'ė', 'į', 'ų', 'ū', 'Ė', 'Į', 'Ų', 'Ū':
			score["lt"]++
		case 'ł', 'ń', 'ś', 'ź':
			score["pl"]++
		case 'ы', 'э', 'ъ', 'Э':
			score["ru"]++
		case 'ї', 'є', 'ґ':
			score["uk"]++
		}
	}
	best, most := "", 0
	for _, l := range []string{"en", "lt", "ru", "de", "fr", "es", "pl", "uk"} {
		if cyrillicLanguages[l] == cyrillic && score[l] > most {
			best, most = l, score[l]
		}
	}
	if most*20 < words || most == 0 {
		if cyrillic && words > 0 {
			return "ru"
		}
		return ""
	}
	return best
}
