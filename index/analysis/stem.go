package analysis

import (
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// stemmers by language code: Snowball's, and a light one of our own for
// Lithuanian, which the Go library lacks. Each takes a lower-case word.
var stemmers = map[string]func(string) string{
	"da": snowballStemmer(danish.Stem),
	"de": snowballStemmer(german.Stem),
	"en": snowballStemmer(english.Stem),
	"es": snowballStemmer(spanish.Stem),
	"fi": snowballStemmer(finnish.Stem),
	"fr": snowballStemmer(french.Stem),
	"hu": snowballStemmer(hungarian.Stem),
	"it": snowballStemmer(italian.Stem),
	"lt": stemLithuanian,
	"nl": snowballStemmer(dutch.Stem),
	"no": snowballStemmer(norwegian.Stem),
	"pt": snowballStemmer(portuguese.Stem),
	"ro": snowballStemmer(romanian.Stem),
	"ru": func(word string) string { return russianStem(Fold(word)) }, // ё counts as е
	"sv": snowballStemmer(swedish.Stem),
	"tr": snowballStemmer(turkish.Stem),
}

var russianStem = snowballStemmer(russian.Stem)

func snowballStemmer(stem func(*snowballstem.Env) bool) func(string) string {
	return func(word string) string {
		env := snowballstem.NewEnv(word)
		stem(env)
		return env.Current()
	}
}
