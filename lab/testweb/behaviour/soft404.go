package behaviour

import (
	"html"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// soft404 makes hosts answer 200 for what does not exist.
type soft404 struct {
	Scope `yaml:",inline"`
}

func newSoft404() *soft404 { return &soft404{Scope{Hosts: .1, Pages: 1}} }

// Apply implements Behaviour.
func (b *soft404) Apply(q *Request, r *Reply) bool {
	if r.Status != 404 || !b.ofHost(q) || q.Path == robotsPath || q.Path == sitemapPath {
		return false
	}
	*r = Reply{
		Kind: truth.Soft404, Status: 200, Type: "text/html", Charset: "utf-8",
		Body: []byte("<html><head><title>Oops</title></head><body><h1>Sorry, this page could not be found</h1>" +
			"<p>It may have been moved. You asked for " + html.EscapeString(q.Path) + ".</p><p><a href=\"/\">Home</a></p></body></html>\n"),
	}
	return true
}
