package behaviour

import (
	"errors"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// outage takes whole hosts off the net for a while, now and then.
type outage struct {
	Scope  `yaml:",inline"`
	Down   float64  `yaml:"down"`   // share of the time
	Length duration `yaml:"length"` // of an outage, in the web's time
	Reset  bool     `yaml:"reset"`  // break connections; else answer 503
}

func newOutage() *outage {
	return &outage{Scope: Scope{Hosts: .1, Pages: 1}, Down: .05, Length: duration(10 * time.Minute), Reset: true}
}

func (b *outage) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireShare("down", b.Down), requirePositive("length", float64(b.Length)))
}

// Apply implements Behaviour.
func (b *outage) Apply(q *Request, r *Reply) bool {
	if !b.ofHost(q) || rng.Unit(rng.Mix(b.drawBits(q, q.Host), b.Length.windowNumber(q.Now))) >= b.Down {
		return false
	}
	r.setErrorPage(truth.Failure, 503)
	if b.Reset {
		r.Cut = -1
	}
	return true
}
