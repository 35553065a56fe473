package behaviour

import (
	"errors"
	"fmt"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// sitemap gives hosts a sitemap that robots.txt names; some lie about dates.
type sitemap struct {
	Scope `yaml:",inline"`
	Lying float64 `yaml:"lying"` // share of those hosts whose lastmod is always today
	Limit int     `yaml:"limit"` // greatest number of addresses in it
}

func newSitemap() *sitemap {
	return &sitemap{Scope: Scope{Hosts: .5, Pages: 1}, Lying: .3, Limit: 5000}
}

func (b *sitemap) checkOptions() error {
	if b.Limit < 1 || b.Limit > 50000 {
		return fmt.Errorf("limit: %d addresses: a sitemap holds 1 to 50000", b.Limit)
	}
	return errors.Join(b.Scope.checkOptions(), requireShare("lying", b.Lying))
}

const sitemapPath = "/sitemap.xml"

// Apply implements Behaviour.
func (b *sitemap) Apply(q *Request, r *Reply) bool {
	if !b.ofHost(q) {
		return false
	}
	switch {
	case r.Kind == truth.Robots && r.Status == 200 && len(r.Body) > 0:
		r.Body = fmt.Appendf(r.Body[:len(r.Body):len(r.Body)], "\nSitemap: %s%s\n", q.Base, sitemapPath)
	case q.Path == sitemapPath:
		*r = Reply{Kind: truth.Sitemap, Status: 200, Type: "application/xml", Body: b.sitemapXML(q)}
	default:
		return false
	}
	return true
}

func (b *sitemap) sitemapXML(q *Request) []byte {
	out := []byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n")
	lying := rng.Unit(b.drawBits(q, q.Host+1)) < b.Lying
	for doc := range min(q.Docs, uint64(b.Limit)) {
		out = append(append(out, "<url><loc>"...), q.Base...)
		out = append(name.AppendDocument(out, doc), "</loc><lastmod>"...)
		when := q.Now
		if !lying {
			when = q.World.Changed(q.First+doc, q.Now)
		}
		out = q.World.Clock(when).UTC().AppendFormat(out, time.RFC3339)
		out = append(out, "</lastmod></url>\n"...)
	}
	return append(out, "</urlset>\n"...)
}
