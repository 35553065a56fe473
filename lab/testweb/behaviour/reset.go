package behaviour

import (
	"errors"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// reset breaks the connection in the middle of a page.
type reset struct {
	Scope `yaml:",inline"`
	After int64 `yaml:"after"` // bytes of the body
}

func newReset() *reset { return &reset{Scope: Scope{Hosts: 1, Pages: .01}, After: 512} }

func (b *reset) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requirePositive("after", float64(b.After)))
}

// Apply implements Behaviour.
func (b *reset) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || !b.ofPage(q) {
		return false
	}
	r.Cut, r.Kind = b.After, truth.Failure
	return true
}
