package behaviour

import (
	"errors"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// failures makes pages answer with errors, each for a window of time or for ever.
type failures struct {
	Scope    `yaml:",inline"`
	Statuses []int    `yaml:"statuses"` // drawn by page and window
	Window   duration `yaml:"window"`   // of the web's time; 0: the same pages fail for ever
}

func newFailures() *failures {
	return &failures{Scope: Scope{Hosts: 1, Pages: .02}, Statuses: []int{500, 502, 503, 404, 410}, Window: duration(time.Hour)}
}

func (b *failures) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireStatuses(b.Statuses, 400, 599), notNegative("window", float64(b.Window)))
}

// Apply implements Behaviour.
func (b *failures) Apply(q *Request, r *Reply) bool {
	if !q.Found || r.Kind != truth.Page || !b.ofHost(q) {
		return false
	}
	key := rng.Mix(rng.Mix(b.drawBits(q, 1), q.Page), b.Window.windowNumber(q.Now))
	if rng.Unit(key) >= b.Pages {
		return false
	}
	status := b.Statuses[rng.Mix(key, 1)%uint64(len(b.Statuses))]
	kind := truth.Failure
	if status == 404 || status == 410 {
		kind = truth.Missing
	}
	r.setErrorPage(kind, status)
	return true
}
