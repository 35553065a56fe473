// Package extract reads what a robot needs out of a page: links, title, text,
// language, what the page tells robots, and digests by which a change is told
// from noise.
//
// HTML is read in one pass over its tokens, without a tree (a tree costs 2.7
// times as much): elements whose content is not shown or not the page's own
// (script, style, template, nav, footer ...) are followed by depth counters.
// Bytes become UTF-8 first, by byte order mark, Content-Type, meta element and
// guess, in that order, as browsers do.
package extract

import (
	"strings"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/robots"
	"github.com/freshet/freshet/weburl"
)

// Kind says where in a page a link stands.
type Kind uint8

// Kinds of links.
const (
	Anchor    Kind = iota // a, area
	Frame                 // iframe, frame
	Refresh               // meta refresh
	Canonical             // link rel=canonical
	Alternate             // link rel=alternate, next, prev: languages, feeds, pages
	Image                 // img, source: src and srcset
	Plain                 // an address in plain text or PDF
)

// Link is one outgoing link.
type Link struct {
	URL      weburl.URL
	Kind     Kind
	NoFollow bool // rel=nofollow, ugc or sponsored
}

// Page is what was found in a document. Its strings do not refer to the bytes
// it was read from.
type Page struct {
	Title       string
	Description string
	Lang        string // ISO 639-1: declared, checked against the script, or guessed
	Charset     string
	Text        string // white space folded; "" with Options.Brief
	Length      int    // of the text, bytes
	Malformed   bool   // text or title have replacement characters: the encoding lied
	Links       []Link
	Canonical   weburl.URL // zero where none is declared
	Robots      robots.Directives
	Sitemap     bool // the page is a sitemap or feed: Links are its entries

	// Digest is of text and links without noise (times, tokens, session
	// numbers): a page with the same digest has not changed.
	Digest [16]byte
	// Simhash of the text's word triples: pages that differ in few words differ
	// in few bits (Charikar 2002; Manku, Jain, Das Sarma 2007).
	Simhash uint64
	// Problem, if not "", says why the content was not read, or not wholly.
	Problem Problem
	// Incomplete is set where reading was given up because the context ended: the
	// page says nothing of the document.
	Incomplete bool
	// Skipped counts links beyond MaxLinks.
	Skipped int
	// Traits tell whether a browser might see more; only with Options.Traits.
	Traits Traits
}

// measureText fills in what is known of the text without having it.
func (p *Page) measureText() {
	p.Length = len(p.Text)
	p.Malformed = strings.Contains(p.Text, "\uFFFD") || strings.Contains(p.Title, "\uFFFD")
}

// dropControls takes out of the texts the control characters, and those that turn the
// direction of what stands behind them: whatever shows a title or a snippet (a terminal,
// a table) could obey them. It comes after the digest, which stores keep.
func (p *Page) dropControls() {
	for _, s := range []*string{&p.Title, &p.Description, &p.Text} {
		if strings.ContainsFunc(*s, isControl) {
			*s = strings.Map(func(r rune) rune {
				if isControl(r) {
					return -1
				}
				return r
			}, *s)
		}
	}
}

func isControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Traits are marks of pages that are built by scripts.
type Traits struct {
	Scripts     []string // URLs of script elements
	Inline      int      // bytes of inline scripts
	Code        []byte   // of them what is JavaScript, up to 256 KiB
	NoScript    bool     // a noscript element asks for JavaScript
	EmptyMount  bool     // an element such as <div id="root"></div> with nothing inside
	Hydrated    bool     // marks of server rendering with state for hydration
	Frameworks  []string // names of frameworks whose marks were seen
	MarkupBytes int
}

// Options of an extraction. The zero value is usable.
type Options struct {
	Token    string // product token of the robot, for its own meta element
	MaxLinks int    // default 100,000
	MaxText  int    // bytes of text kept; default 1 MiB
	Images   bool   // also image addresses
	Traits   bool
	Brief    bool // of HTML not the text itself is wanted, but what is computed from it

	PDF *pdftext.Pool // reads PDF documents; nil leaves them out
	// Refused is the digest of a document that had the Problem RefusedFor, a final
	// one: if the body is still the same it is not read again.
	Refused    [16]byte
	RefusedFor Problem
}

func (o Options) withExtractDefaults() Options {
	if o.MaxLinks <= 0 {
		o.MaxLinks = 100_000
	}
	if o.MaxText <= 0 {
		o.MaxText = 1 << 20
	}
	if o.Token == "" {
		o.Token = "robots"
	}
	return o
}
