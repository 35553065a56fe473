package behaviour

import (
	"errors"
	"fmt"

	"github.com/freshet/freshet/internal/rng"
)

// deadLinks puts links to documents that do not exist into pages.
type deadLinks struct {
	Scope `yaml:",inline"`
	Links int `yaml:"links"` // in each such page
}

func newDeadLinks() *deadLinks { return &deadLinks{Scope: Scope{Hosts: 1, Pages: .1}, Links: 1} }

func (b *deadLinks) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requirePositive("links", float64(b.Links)))
}

// Apply implements Behaviour.
func (b *deadLinks) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || !b.ofPage(q) {
		return false
	}
	for i := range b.Links {
		r.addLink(q, fmt.Sprintf("/old/%x.html", rng.Mix(b.drawBits(q, 2), q.Page)>>40+uint64(i)), "")
	}
	return true
}
