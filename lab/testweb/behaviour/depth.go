package behaviour

import (
	"strings"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// depth gives hosts a folder whose every page links to deeper ones.
type depth struct {
	Scope `yaml:",inline"`
}

func newDepth() *depth { return &depth{Scope{Hosts: .05, Pages: .3}} }

const depthPath = "/archive/y/"

// Apply implements Behaviour.
func (b *depth) Apply(q *Request, r *Reply) bool {
	switch {
	case !b.ofHost(q):
		return false
	case strings.HasPrefix(q.Path, depthPath) && strings.HasSuffix(q.Path, "/"):
		key := b.pathKey(q)
		r.setExtraPage(q, truth.Trap, key, string('a'+rune(key%26))+"/", string('a'+rune(key>>8%26))+"/x/")
	case r.Page != nil && b.ofPage(q):
		r.addLink(q, depthPath, "")
	default:
		return false
	}
	return true
}
