package behaviour

import (
	"errors"

	"github.com/freshet/freshet/internal/rng"
)

// mirror makes hosts repeat the text of others: the documents of an earlier host
// under a second name, alike to a known degree. The links stay the graph's.
type mirror struct {
	Scope      `yaml:",inline"`
	Similarity float64 `yaml:"similarity"` // share of sentences in common
}

func newMirror() *mirror { return &mirror{Scope: Scope{Hosts: .05, Pages: 1}, Similarity: 1} }

func (b *mirror) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireShare("similarity", b.Similarity))
}

// Apply implements Behaviour.
func (b *mirror) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || q.Host == 0 || !b.ofPage(q) {
		return false
	}
	of := q.Host - 1 - b.drawBits(q, q.Host)>>32%min(q.Host, 16)
	if b.touchesHost(q, of) {
		return false // no mirrors of mirrors: the original must exist
	}
	first, pages := q.World.Span(of)
	repeatText(q, r, first+q.Doc%pages, b.Similarity)
	r.Page.Lang = q.World.HostLanguage(of)
	return true
}

// repeatText gives the reply the text of another page, to a degree of similarity.
func repeatText(q *Request, r *Reply, of uint64, similarity float64) {
	r.Page.Base, r.Page.Topic = q.World.TextKey(of)
	r.Page.Version, r.Page.Drift = 0, 0
	if similarity < 1 {
		r.Page.Version, r.Page.Drift = rng.Mix(q.Page, of)|1, 1-similarity
	}
	r.CopyOf, r.Similarity = int64(of)+1, similarity
}
