package behaviour

import (
	"errors"
)

// drip sends pages so slowly that only a robot with a limit on the whole
// transfer gets away.
type drip struct {
	Scope `yaml:",inline"`
	Rate  float64 `yaml:"rate"` // bytes per second
}

func newDrip() *drip { return &drip{Scope: Scope{Hosts: 1, Pages: .005}, Rate: 100} }

func (b *drip) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requirePositive("rate", b.Rate))
}

// Apply implements Behaviour.
func (b *drip) Apply(q *Request, r *Reply) bool {
	if !b.ofPage(q) {
		return false
	}
	r.Rate = b.Rate
	return true
}
