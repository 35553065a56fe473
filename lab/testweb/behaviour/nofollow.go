package behaviour

import (
	"errors"

	"github.com/freshet/freshet/internal/rng"
)

// noFollow marks links, and some whole pages, as not to be followed or indexed.
type noFollow struct {
	Scope `yaml:",inline"`
	Links float64 `yaml:"links"` // share of links with rel=nofollow on those pages
	Meta  float64 `yaml:"meta"`  // share of those pages with <meta name=robots>
}

func newNoFollow() *noFollow {
	return &noFollow{Scope: Scope{Hosts: .2, Pages: .2}, Links: .2, Meta: .05}
}

func (b *noFollow) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireShare("links", b.Links), requireShare("meta", b.Meta))
}

// Apply implements Behaviour.
func (b *noFollow) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || !b.ofPage(q) {
		return false
	}
	key := rng.Mix(b.drawBits(q, 2), q.Page)
	if rng.Unit(key) < b.Meta {
		r.Page.Robots = "noindex,nofollow"
	}
	for i := range r.Page.Links {
		if rng.Unit(rng.Mix(key, uint64(i)+1)) < b.Links {
			r.Page.Links[i].Rel = "nofollow"
		}
	}
	return true
}
