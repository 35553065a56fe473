package behaviour

import (
	"errors"

	"github.com/freshet/freshet/lab/testweb/content"
)

// charset makes header, <meta> and bytes disagree on the charset.
type charset struct {
	Scope    `yaml:",inline"`
	Variants []string `yaml:"variants"` // drawn by host
}

// The variants of charset. The legacy charset is the usual one of the language.
const (
	charsetLegacy     = "legacy"      // legacy bytes, header and meta say so
	charsetHeaderOnly = "header-only" // legacy bytes, only the header says so
	charsetMetaOnly   = "meta-only"   // legacy bytes, only the meta says so
	charsetMetaLies   = "meta-lies"   // UTF-8 bytes and header, meta says legacy
	charsetHeaderLies = "header-lies" // legacy bytes and meta, header says UTF-8
	charsetSilent     = "silent"      // legacy bytes, nothing says so
)

func newCharset() *charset {
	return &charset{Scope{Hosts: .15, Pages: 1}, []string{charsetLegacy, charsetHeaderOnly, charsetMetaOnly, charsetMetaLies, charsetHeaderLies, charsetSilent}}
}

func (b *charset) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireKnown(b.Variants, newCharset().Variants))
}

// Apply implements Behaviour.
func (b *charset) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || r.Type != "text/html" || !b.ofHost(q) {
		return false
	}
	legacy := [...]string{content.English: "iso-8859-1", content.Russian: "windows-1251", content.Lithuanian: "windows-1257"}[r.Page.Lang]
	r.Encoding, r.Charset, r.Page.Meta = legacy, "", ""
	switch b.Variants[b.drawBits(q, q.Host)>>32%uint64(len(b.Variants))] {
	case charsetLegacy:
		r.Charset, r.Page.Meta = legacy, legacy
	case charsetHeaderOnly:
		r.Charset = legacy
	case charsetMetaOnly:
		r.Page.Meta = legacy
	case charsetMetaLies:
		r.Encoding, r.Charset, r.Page.Meta = "", "utf-8", legacy
	case charsetHeaderLies:
		r.Charset, r.Page.Meta = "utf-8", legacy
	}
	return true
}
