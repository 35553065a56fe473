package content

import (
	"strconv"
	"unicode/utf8"

	"github.com/freshet/freshet/internal/rng"
)

// Link is a link of a page.
type Link struct {
	Href  []byte // as it is to be understood; the writer escapes it
	Topic Topic  // of the page it leads to: the anchor's text
	Lang  Language
	Rel   string // rel attribute, "" for none
	Own   bool   // leads to the same host
}

// Page is a page to be written. Its text has Sentences sentences; the ones that
// its version rewrote differ from those of the version before.
type Page struct {
	Lang      Language
	Topic     Topic
	Base      uint64  // key of the text
	Version   uint64  // key of the version, 0 for the first
	Drift     float64 // share of the sentences that a version rewrites
	Sentences int
	Size      int // bytes of the HTML, 0: what the sentences come to; see AppendHTML
	Habit     Habit
	Links     []Link

	Meta      string // charset declared in <meta>, "" for none
	Canonical []byte // href of <link rel=canonical>, empty for none
	Robots    string // content of <meta name=robots>, "" for none
	Scripted  bool   // the links are built by JavaScript when the page is opened
	Note      string // a line at the foot, e.g. a date; not escaped
}

// SentenceKey returns the key of sentence i: the version's own if it rewrote
// the sentence, else that of the base text. Two versions of a page, or two
// near-duplicates, therefore share each sentence with probability (1-Drift)
// squared, or 1-Drift if one of them is the first.
func (p *Page) SentenceKey(i int) uint64 {
	if p.Version != 0 && rng.Unit(rng.Mix(p.Version, uint64(i))) < p.Drift {
		return rng.Mix(p.Version^p.Base, uint64(i)<<1|1)
	}
	return rng.Mix(p.Base, uint64(i))
}

// AppendText appends the plain text of the page without links, a sentence a
// line: what a perfect extractor would find.
func (w *Words) AppendText(dst []byte, p *Page) []byte {
	for i := range p.Sentences {
		dst = append(w.AppendSentence(dst, p.Lang, p.Topic, p.SentenceKey(i)), '\n')
	}
	return dst
}

// paragraph is the number of sentences between two paragraph tags.
const paragraph = 5

// AppendHTML appends the page as HTML in UTF-8. A page of a given size has that
// many bytes: see fit.
func (w *Words) AppendHTML(dst []byte, p *Page) []byte {
	h := writer{b: dst, habit: p.Habit}
	if p.Size > 0 {
		w.writeToSize(&h, p)
		return h.b
	}
	w.writePageTop(&h, p)
	next := 0
	if p.Habit.LinksInText && !p.Scripted {
		next = min(len(p.Links), p.Sentences)
	}
	w.writeSentences(&h, p, p.Links[:next])
	w.writePageFoot(&h, p, p.Links[next:])
	return h.b
}

// writePageTop writes what stands above the text.
func (w *Words) writePageTop(h *writer, p *Page) {
	w.writeHead(h, p)
	h.writeStartTag("body")
	h.writeStartTag("h1")
	w.anchorText(h, p.Lang, p.Topic)
	h.writeEndTag("h1", false)
}

// writeSentences writes the text, with a link behind each of the first sentences.
func (w *Words) writeSentences(h *writer, p *Page, links []Link) {
	var scratch [512]byte
	for i := range p.Sentences {
		if i%paragraph == 0 {
			if i > 0 {
				h.writeEndTag("p", true)
			}
			h.writeStartTag("p")
		}
		h.writeEscaped(w.AppendSentence(scratch[:0], p.Lang, p.Topic, p.SentenceKey(i)))
		h.b = append(h.b, ' ')
		if i < len(links) {
			w.writeAnchor(h, &links[i])
		}
	}
	h.writeEndTag("p", true)
}

// writePageFoot writes what stands below the text.
func (w *Words) writePageFoot(h *writer, p *Page, links []Link) {
	switch {
	case p.Scripted:
		writeLinkScript(h, p.Links)
	case len(links) > 0:
		w.writeLinkList(h, links)
	}
	if p.Note != "" {
		h.writeStartTag("p")
		h.b = append(h.b, p.Note...)
		h.writeEndTag("p", true)
	}
	h.writeEndTag("body", true)
	h.writeEndTag("html", true)
}

func (w *Words) writeHead(h *writer, p *Page) {
	if !p.Habit.NoDoctype {
		h.b = append(h.b, "<!DOCTYPE html>\n"...)
	}
	h.openTag("html")
	h.writeAttribute("lang", p.Lang.Tag())
	h.closeTag()
	h.writeStartTag("head")
	if p.Meta != "" {
		h.openTag("meta")
		h.writeAttribute("charset", p.Meta)
		h.closeTag()
	}
	h.writeStartTag("title")
	w.anchorText(h, p.Lang, p.Topic)
	h.writeEndTag("title", false)
	if p.Robots != "" {
		h.openTag("meta")
		h.writeAttribute("name", "robots")
		h.writeAttribute("content", p.Robots)
		h.closeTag()
	}
	if len(p.Canonical) > 0 {
		h.openTag("link")
		h.writeAttribute("rel", "canonical")
		h.attrBytes("href", p.Canonical)
		h.closeTag()
	}
	h.writeEndTag("head", false)
}

// writeLinkList writes links as a list.
func (w *Words) writeLinkList(h *writer, links []Link) {
	h.writeStartTag("ul")
	for i := range links {
		h.writeStartTag("li")
		w.writeAnchor(h, &links[i])
		h.writeEndTag("li", true)
	}
	h.writeEndTag("ul", false)
}

func (w *Words) writeAnchor(h *writer, l *Link) {
	h.openTag("a")
	h.attrBytes("href", l.Href)
	if l.Rel != "" {
		h.writeAttribute("rel", l.Rel)
	}
	h.closeTag()
	w.anchorText(h, l.Lang, l.Topic)
	h.writeEndTag("a", false)
	h.b = append(h.b, '\n')
}

// anchorText writes the title of a topic.
func (w *Words) anchorText(h *writer, l Language, t Topic) {
	var scratch [256]byte
	h.writeEscaped(w.AppendTitle(scratch[:0], l, t))
}

// writeLinkScript writes a script that adds the links to the document. The addresses
// stand in it backwards: only a program that runs it finds them.
func writeLinkScript(h *writer, links []Link) {
	h.b = append(h.b, "<ul id=\"nav\"></ul>\n<script>\n["...)
	for i := range links {
		if i > 0 {
			h.b = append(h.b, ',')
		}
		h.b = append(h.b, '"')
		for j := len(links[i].Href) - 1; j >= 0; j-- {
			if c := links[i].Href[j]; c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' {
				h.b = append(h.b, c)
			}
		}
		h.b = append(h.b, '"')
	}
	h.b = append(h.b, `].forEach(function (s, i) {
  var a = document.createElement("a"), li = document.createElement("li");
  a.href = s.split("").reverse().join("");
  a.textContent = "#" + (i + 1);
  li.appendChild(a);
  document.getElementById("nav").appendChild(li);
});
</script>
`...)
}

// writer writes HTML in a habit.
type writer struct {
	b     []byte
	habit Habit
}

func (h *writer) writeTagName(s string) {
	if !h.habit.Upper {
		h.b = append(h.b, s...)
		return
	}
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		h.b = append(h.b, c)
	}
}

func (h *writer) openTag(tag string) {
	h.b = append(h.b, '<')
	h.writeTagName(tag)
}

func (h *writer) closeTag() {
	if h.habit.Spaced {
		h.b = append(h.b, '\n')
	}
	h.b = append(h.b, '>')
}

// writeStartTag writes a start tag without attributes.
func (h *writer) writeStartTag(tag string) {
	h.openTag(tag)
	h.b = append(h.b, '>')
}

// writeEndTag writes an end tag; optional ones are left out by authors who do so.
func (h *writer) writeEndTag(tag string, optional bool) {
	if optional && h.habit.OpenEnds {
		h.b = append(h.b, '\n')
		return
	}
	h.b = append(h.b, "</"...)
	h.writeTagName(tag)
	h.b = append(h.b, '>')
	if tag != "a" {
		h.b = append(h.b, '\n')
	}
}

func (h *writer) writeAttribute(name, value string) {
	var scratch [128]byte
	h.attrBytes(name, append(scratch[:0], value...))
}

func (h *writer) attrBytes(name string, value []byte) {
	if h.habit.Spaced {
		h.b = append(h.b, '\n')
	}
	h.b = append(h.b, ' ')
	h.writeTagName(name)
	h.b = append(h.b, '=')
	if h.habit.Spaced {
		h.b = append(h.b, ' ')
	}
	q := byte('"')
	switch {
	case h.habit.Quote == Bare && canStandUnquoted(value):
		q = 0
	case h.habit.Quote == Single:
		q = '\''
	}
	if q != 0 {
		h.b = append(h.b, q)
	}
	for _, c := range value {
		switch c {
		case '&':
			h.b = append(h.b, "&amp;"...)
		case '"':
			h.b = append(h.b, "&quot;"...)
		case '\'':
			h.b = append(h.b, "&#39;"...)
		case '<':
			h.b = append(h.b, "&lt;"...)
		default:
			h.b = append(h.b, c)
		}
	}
	if q != 0 {
		h.b = append(h.b, q)
	}
}

// canStandUnquoted reports whether a value may stand without quotes. A final slash is
// quoted: before the '>' it would look like the end of an empty element.
func canStandUnquoted(v []byte) bool {
	if len(v) == 0 || v[len(v)-1] == '/' {
		return false
	}
	for _, c := range v {
		switch c {
		case ' ', '\t', '\n', '\r', '\f', '"', '\'', '`', '=', '<', '>':
			return false
		}
	}
	return true
}

// writeEscaped writes text, escaped; authors with the habit write every letter beyond
// ASCII as a character reference, in decimal or hexadecimal by turns.
func (h *writer) writeEscaped(s []byte) {
	if !h.habit.Entities {
		for _, c := range s {
			switch c {
			case '&':
				h.b = append(h.b, "&amp;"...)
			case '<':
				h.b = append(h.b, "&lt;"...)
			default:
				h.b = append(h.b, c)
			}
		}
		return
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		i += n
		switch {
		case r == '.' && i%3 == 0:
			h.b = append(h.b, "&period;"...)
		case r < utf8.RuneSelf && r != '&' && r != '<':
			h.b = append(h.b, byte(r))
		case i%2 == 0:
			h.b = append(strconv.AppendInt(append(h.b, "&#"...), int64(r), 10), ';')
		default:
			h.b = append(strconv.AppendInt(append(h.b, "&#x"...), int64(r), 16), ';')
		}
	}
}
