package behaviour

import (
	"errors"
	"math"
	"time"

	"github.com/freshet/freshet/internal/rng"
)

// latency makes hosts answer late: each host has a lognormal mean, each request
// an exponential time about it.
type latency struct {
	Scope  `yaml:",inline"`
	Median duration `yaml:"median"` // of the hosts' mean times
	Spread float64  `yaml:"spread"` // factor of one standard deviation between hosts
}

func newLatency() *latency {
	return &latency{Scope: everywhereScope(), Median: duration(50 * time.Millisecond), Spread: 2}
}

func (b *latency) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requirePositive("median", float64(b.Median)), requirePositive("spread", b.Spread))
}

// Apply implements Behaviour.
func (b *latency) Apply(q *Request, r *Reply) bool {
	if !b.ofHost(q) {
		return false
	}
	mean := lognormalOf(b.drawBits(q, q.Host), float64(b.Median), b.Spread)
	// Half of the mean is the distance, half the server's work, which varies.
	u := rng.Unit(rng.Mix(b.pathKey(q), math.Float64bits(q.Now)))
	r.Delay += time.Duration(mean/2 - mean/2*math.Log(1-u))
	return true
}
