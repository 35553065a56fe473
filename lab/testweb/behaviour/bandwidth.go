package behaviour

import (
	"errors"
)

// bandwidth bounds the speed of hosts, lognormally between them.
type bandwidth struct {
	Scope  `yaml:",inline"`
	Median float64 `yaml:"median"` // bytes per second
	Spread float64 `yaml:"spread"` // factor of one standard deviation between hosts
}

func newBandwidth() *bandwidth {
	return &bandwidth{Scope: everywhereScope(), Median: 1 << 20, Spread: 3}
}

func (b *bandwidth) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requirePositive("median", b.Median), requirePositive("spread", b.Spread))
}

// Apply implements Behaviour.
func (b *bandwidth) Apply(q *Request, r *Reply) bool {
	if !b.ofHost(q) {
		return false
	}
	r.Rate = lognormalOf(b.drawBits(q, q.Host), b.Median, b.Spread)
	return true
}
