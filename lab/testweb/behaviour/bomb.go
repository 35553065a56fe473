package behaviour

import (
	"errors"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// bomb puts a link to a gzip bomb into pages of some hosts.
type bomb struct {
	Scope `yaml:",inline"`
	Size  int64 `yaml:"size"` // bytes once unpacked
}

func newBomb() *bomb { return &bomb{Scope: Scope{Hosts: .02, Pages: .1}, Size: 1 << 30} }

func (b *bomb) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requirePositive("size", float64(b.Size)))
}

const bombPath = "/archive/all.html"

// Apply implements Behaviour.
func (b *bomb) Apply(q *Request, r *Reply) bool {
	switch {
	case !b.ofHost(q):
		return false
	case q.Path == bombPath:
		*r = Reply{Kind: truth.Trap, Status: 200, Bomb: b.Size}
	case r.Page != nil && b.ofPage(q):
		r.addLink(q, bombPath, "")
	default:
		return false
	}
	return true
}
