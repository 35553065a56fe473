package monitor

import (
	"errors"

	"github.com/freshet/freshet/lab/field"
)

// sensor is a module in the web server: it sees the responses that go out to
// visitors, and alerts the robot whenever one differs from what it knew. Every
// alert starts a download of its own, without limit; the resource is known from
// the start of that download on.
type sensor struct{}

// alerted: an alert has arrived at the robot.
const alerted = Own

func readSensor(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) != 0 {
		return nil, errors.New("it has no arguments")
	}
	return func(field.Field) (Strategy, error) { return sensor{}, nil }, nil
}

// Start does nothing: visitors do.
func (sensor) Start(*Sim) {}

// Requested alerts of a stale resource.
func (sensor) Requested(s *Sim, page uint32) {
	s.Probe(alerted, 0, page)
}

// Done downloads what was alerted.
func (sensor) Done(s *Sim, e Event) {
	if e.What == alerted {
		s.DownloadKnown(0, e.Page)
	}
}
