package content

import "github.com/freshet/freshet/internal/rng"

// LinkForm is how a site's author writes links to the same site.
type LinkForm uint8

// The forms of links.
const (
	Rooted      LinkForm = iota // /abcd.html
	Relative                    // abcd.html
	Absolute                    // http://www.aabbccdd.cz/abcd.html
	SchemeLess                  // //www.aabbccdd.cz/abcd.html
	DotRelative                 // ./abcd.html
	linkForms
)

// Quote is how attribute values are quoted.
type Quote uint8

// The ways to quote.
const (
	Double Quote = iota
	Single
	Bare // no quotes where HTML allows it
	quotes
)

// Habit is the hand of a site's author: everything about the HTML that does not
// change what a correct parser reads.
type Habit struct {
	Links       LinkForm
	Quote       Quote
	Upper       bool // tags and attributes in upper case
	NoDoctype   bool
	OpenEnds    bool // no </p>, </li>, </body>
	Entities    bool // letters beyond ASCII, and some in it, as character references
	Spaced      bool // line breaks and spaces inside tags
	LinksInText bool // links between sentences, not in a list
	NoMeta      bool // no <meta charset>: the HTTP header says it alone
}

// HabitOf returns the habit of a key, usually a host's: half of the authors
// write plain HTML, the others have two or three oddities each.
func HabitOf(key uint64) Habit {
	h := rng.Mix(key, 0x4ab17)
	odd := func(shift uint, in uint64) bool { return h>>shift%in == 0 }
	return Habit{
		Links:       LinkForm(h % uint64(linkForms)),
		Quote:       [...]Quote{Double, Double, Single, Bare}[h>>8%4],
		Upper:       odd(16, 5),
		NoDoctype:   odd(20, 4),
		OpenEnds:    odd(24, 3),
		Entities:    odd(28, 4),
		Spaced:      odd(32, 6),
		LinksInText: odd(36, 2),
		NoMeta:      odd(40, 6),
	}
}
