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
	"da": snowball(danish.Stem),
	"de": snowball(german.Stem),
	"en": snowball(english.Stem),
	"es": snowball(spanish.Stem),
	"fi": snowball(finnish.Stem),
	"fr": snowball(french.Stem),
	"hu": snowball(hungarian.Stem),
	"it": snowball(italian.Stem),
	"lt": lithuanian,
	"nl": snowball(dutch.Stem),
	"no": snowball(norwegian.Stem),
	"pt": snowball(portuguese.Stem),
	"ro": snowball(romanian.Stem),
	"ru": func(word string) string { return russianStem(Fold(word)) }, // ё counts as е
	"sv": snowball(swedish.Stem),
	"tr": snowball(turkish.Stem),
}

var russianStem = snowball(russian.Stem)

func snowball(stem func(*snowballstem.Env) bool) func(string) string {
	return func(word string) string {
		env := snowballstem.NewEnv(word)
		stem(env)
		return env.Current()
	}
}
