package extract

import (
	"bytes"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/freshet/freshet/weburl"
)

// HTML reads a page. base is the address that it was fetched from, contentType
// its header. Every sequence of bytes is some page.
func HTML(body []byte, contentType string, base weburl.URL, o Options) *Page {
	text, charset := UTF8(body, contentType)
	o = o.withExtractDefaults()
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.beginDocument(o, base, charset, len(text))
	if !s.scanFast(text) {
		s.beginDocument(o, base, charset, len(text))
		s.scanSlow(text)
	}
	s.finishDocument()
	page := s.page
	s.page = nil
	return page
}

// scanners are used again for the memory in which they gather text.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

// tokens is what a lexer and html.Tokenizer have in common.
type tokens interface {
	Next() html.TokenType
	Raw() []byte
	Text() []byte
	TagName() (name []byte, attrs bool)
	TagAttr() (key, val []byte, more bool)
	NextIsNotRawText()
}

var lexers = sync.Pool{New: func() any { return new(lexer) }}

// scanFast reads the document with the lexer; false means in doubt: it must be
// read again.
func (s *scanner) scanFast(text []byte) bool {
	z := lexers.Get().(*lexer)
	defer lexers.Put(z)
	z.resetLexer(text)
	s.scanTokens(z)
	z.b = nil
	return !z.doubt
}

func (s *scanner) scanSlow(text []byte) {
	z := html.NewTokenizer(bytes.NewReader(text))
	z.SetMaxBuf(4 << 20) // one token: a script or a data URL
	s.scanTokens(z)
}

// scanner walks the tokens of one page.
type scanner struct {
	o    Options
	at   weburl.Resolver
	page *Page

	based  bool // a base element was seen
	hidden int  // open elements whose text is not shown
	aside  int  // open elements whose text is not the page's own
	lang   string
	href   []byte // of the anchor at hand

	title   strings.Builder
	inTitle bool
	main    folder // text of the page
	rest    folder // text of navigation, footers ...
	mount   bool   // an empty mount element was opened just now
	script  bool   // inside an inline script element
	data    bool   // that holds no JavaScript
}

// beginDocument forgets the page before.
func (s *scanner) beginDocument(o Options, base weburl.URL, charset string, size int) {
	*s = scanner{o: o, at: weburl.Resolver{Base: base}, page: &Page{Charset: charset}, href: s.href, main: s.main.emptied(), rest: s.rest.emptied()}
	s.page.Traits.MarkupBytes = size
}

// hidesText reports whether the text in an element is not shown.
func hidesText(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Svg, atom.Select, atom.Textarea, atom.Object:
		return true
	}
	return false
}

// isAside reports whether the text in an element is not the page's own.
func isAside(a atom.Atom) bool { return a == atom.Nav || a == atom.Footer || a == atom.Aside }

func (s *scanner) scanTokens(z tokens) {
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			s.scanText(z)
		case html.StartTagToken:
			name, attrs := z.TagName()
			s.scanStartTag(z, atom.Lookup(name), attrs, false)
		case html.SelfClosingTagToken:
			name, attrs := z.TagName()
			s.scanStartTag(z, atom.Lookup(name), attrs, true)
		case html.EndTagToken:
			name, _ := z.TagName()
			s.scanEndTag(atom.Lookup(name))
		}
	}
}

func (s *scanner) scanText(z tokens) {
	switch {
	case s.inTitle:
		if s.title.Len() < 1000 {
			s.title.Write(z.Text())
		}
	case s.hidden > 0:
		if s.o.Traits {
			s.hiddenText(z.Raw())
		}
	case s.aside > 0:
		s.rest.appendText(z.Text(), s.o.MaxText/4)
	default:
		t := z.Text()
		if s.mount && len(bytes.TrimSpace(t)) > 0 {
			s.mount = false
		}
		s.main.appendText(t, s.o.MaxText)
	}
}

func (s *scanner) scanEndTag(a atom.Atom) {
	switch {
	case a == atom.Title:
		s.inTitle = false
	case hidesText(a):
		s.hidden = max(0, s.hidden-1)
	case isAside(a):
		s.aside = max(0, s.aside-1)
	case a == atom.Div || a == atom.Main || a == atom.Section:
		if s.mount {
			s.page.Traits.EmptyMount = true
			s.mount = false
		}
	}
	s.separateWords(a)
}

// isInline reports whether an element does not separate words.
func isInline(a atom.Atom) bool {
	switch a {
	case atom.A, atom.B, atom.I, atom.Em, atom.Strong, atom.Span, atom.Font, atom.Code, atom.Sub, atom.Sup, atom.U, atom.S, atom.Small, atom.Mark, atom.Abbr, atom.Wbr:
		return true
	}
	return false
}

func (s *scanner) separateWords(a atom.Atom) {
	if !isInline(a) {
		s.main.addGap()
		s.rest.addGap()
	}
}

func (s *scanner) scanStartTag(z tokens, a atom.Atom, attrs, selfClosed bool) {
	s.separateWords(a)
	if s.mount && a != atom.Noscript {
		s.mount = false
	}
	if hidesText(a) && !selfClosed {
		s.hidden++
		s.script, s.data = a == atom.Script, false
	}
	if isAside(a) && !selfClosed {
		s.aside++
	}
	if a == atom.Noscript {
		z.NextIsNotRawText() // a robot without scripts sees what is inside
	}
	if a == atom.Title && s.title.Len() == 0 && s.hidden == 0 {
		s.inTitle = true
	}
	if !attrs {
		return
	}
	switch a {
	case atom.A, atom.Area:
		s.scanAnchor(z)
	case atom.Iframe, atom.Frame:
		s.eachAttribute(z, func(key, val []byte) {
			if string(key) == "src" {
				s.resolveLink(val, Frame, false)
			}
		})
	case atom.Link:
		s.scanLinkElement(z)
	case atom.Meta:
		s.scanMeta(z)
	case atom.Base:
		s.eachAttribute(z, func(key, val []byte) {
			if string(key) == "href" && !s.based {
				s.based = true // the first counts, even if it is none
				if u, err := s.at.Resolve(val); err == nil {
					s.at.Base = u
				}
			}
		})
	case atom.Html:
		s.eachAttribute(z, func(key, val []byte) {
			if string(key) == "lang" || string(key) == "xml:lang" {
				s.lang = string(val)
			}
			s.traitAttr(a, key, val)
		})
	case atom.Img, atom.Source:
		if s.o.Images {
			s.scanImage(z)
		}
	default:
		if s.o.Traits {
			s.eachAttribute(z, func(key, val []byte) { s.traitAttr(a, key, val) })
		}
	}
}

// eachAttribute calls f for the attributes of the tag; val is only valid inside f.
func (s *scanner) eachAttribute(z tokens, f func(key, val []byte)) {
	for more := true; more; {
		var key, val []byte
		key, val, more = z.TagAttr()
		f(key, val)
	}
}

func (s *scanner) scanAnchor(z tokens) {
	found, nofollow := false, false
	s.href = s.href[:0]
	for more := true; more; {
		var key, val []byte
		key, val, more = z.TagAttr()
		switch string(key) {
		case "href":
			if !found {
				s.href, found = append(s.href, val...), true
			}
		case "rel":
			nofollow = relHas(val, "nofollow", "ugc", "sponsored")
		}
	}
	if found {
		s.resolveLink(s.href, Anchor, nofollow)
	}
}

func (s *scanner) scanLinkElement(z tokens) {
	var href, rel []byte
	s.eachAttribute(z, func(key, val []byte) {
		switch string(key) {
		case "href":
			href = append(href[:0], val...)
		case "rel":
			rel = append(rel[:0], val...)
		}
	})
	if kind, ok := linkRelation(rel); ok && len(href) > 0 {
		s.resolveLink(href, kind, false)
	}
}

func relHas(rel []byte, words ...string) bool {
	for _, f := range bytes.Fields(rel) {
		for _, w := range words {
			if strings.EqualFold(string(f), w) {
				return true
			}
		}
	}
	return false
}

func (s *scanner) scanMeta(z tokens) {
	var name, equiv, content string
	s.eachAttribute(z, func(key, val []byte) {
		switch string(key) {
		case "name", "property":
			name = strings.ToLower(string(val))
		case "http-equiv":
			equiv = strings.ToLower(string(val))
		case "content":
			content = string(val)
		}
	})
	switch {
	case name == "robots", name == strings.ToLower(s.o.Token):
		s.page.Robots.Add(content)
	case name == "description" && s.page.Description == "":
		s.page.Description = foldSpace(content, 2000)
	case equiv == "refresh":
		if u, ok := refreshURL(content); ok {
			s.resolveLink([]byte(u), Refresh, false)
		}
	case equiv == "content-language" && s.lang == "":
		s.lang = content
	case name == "generator":
		s.noteFramework(strings.ToLower(content))
	}
}

func (s *scanner) scanImage(z tokens) {
	s.eachAttribute(z, func(key, val []byte) {
		switch string(key) {
		case "src":
			s.resolveLink(val, Image, false)
		case "srcset":
			eachSrcset(string(val), func(a string) { s.resolveLink([]byte(a), Image, false) })
		}
	})
}

// resolveLink resolves a link and keeps it.
func (s *scanner) resolveLink(href []byte, k Kind, nofollow bool) {
	if s.page.Links == nil {
		s.page.Links = make([]Link, 0, 32)
	}
	if len(s.page.Links) >= s.o.MaxLinks {
		s.page.Skipped++
		return
	}
	if len(href) == 0 || href[0] == '#' {
		return
	}
	u, err := s.at.Resolve(href)
	if err != nil {
		return // mailto:, javascript:, malformed
	}
	if k == Canonical {
		s.page.Canonical = u
	}
	s.page.Links = append(s.page.Links, Link{u, k, nofollow})
}

func (s *scanner) finishDocument() {
	p := s.page
	p.Title = foldSpace(s.title.String(), 500)
	p.Text = unsafe.String(unsafe.SliceData(s.main.b), len(s.main.b)) // until the end of this function
	whole := s.main.String
	if len(p.Text) < 200 && s.rest.Len() > 0 {
		p.Text = strings.TrimSpace(p.Text + " " + s.rest.String())
		joined := p.Text
		whole = func() string { return joined }
		s.main.spaces = spacesIn(joined)
	}
	p.Lang = detectLanguage(s.lang, p.Title, p.Text)
	p.measureText()
	p.Digest, p.Simhash = computeDigest(p, s.main.spaces)
	if p.Text = ""; !s.o.Brief {
		p.Text = whole()
	}
	p.dropControls()
}
