package behaviour

import (
	"errors"
	"math"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// rateLimit makes hosts too busy in some windows of time: 429 with a Retry-After
// that is true, whoever asks and however often.
type rateLimit struct {
	Scope  `yaml:",inline"`
	Busy   float64  `yaml:"busy"`   // share of the windows
	Window duration `yaml:"window"` // of the web's time
	Status int      `yaml:"status"`
}

func newRateLimit() *rateLimit {
	return &rateLimit{Scope: Scope{Hosts: .1, Pages: 1}, Busy: .2, Window: duration(30 * time.Second), Status: 429}
}

func (b *rateLimit) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireShare("busy", b.Busy), requirePositive("window", float64(b.Window)), requireStatuses([]int{b.Status}, 400, 599))
}

// Apply implements Behaviour.
func (b *rateLimit) Apply(q *Request, r *Reply) bool {
	if !b.ofHost(q) || q.Path == robotsPath {
		return false
	}
	w := b.Window.windowNumber(q.Now)
	if rng.Unit(rng.Mix(b.drawBits(q, q.Host), w)) >= b.Busy {
		return false
	}
	left := float64(w+1)*time.Duration(b.Window).Seconds() - q.Now
	r.setErrorPage(truth.Failure, b.Status)
	r.Retry = int(math.Ceil(left / q.World.Scale()))
	return true
}
